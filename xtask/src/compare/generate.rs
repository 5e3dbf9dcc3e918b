//! Random questions for each language.

use serde_json::{Value, json};

use super::Language;
use super::mutate::Pool;
use super::random::Random;
use super::seeds;

/// Functions whose work grows with a number: large numbers would take Go's memory.
const GROWING: [&str; 11] =
    ["until", "seq", "repeat", "indent", "wrap", "Range", "range", "rand", "%", "trunc", "derivePassword"];

/// This many questions.
pub fn questions(language: Language, seed: u64, count: usize) -> anyhow::Result<Vec<Value>> {
    let mut random = Random::new(seed);
    let mut question: Box<dyn FnMut(&mut Random) -> Value> = match language {
        Language::Template => Box::new(templates()?),
        Language::Cel => Box::new(expressions()?),
        Language::Path => Box::new(paths()?),
    };
    Ok(std::iter::repeat_with(|| question(&mut random)).filter(harmless).take(count).collect())
}

/// The question without its data.
pub fn short(question: &Value) -> Value {
    let mut short = question.clone();
    for field in ["data", "self", "input"] {
        short.as_object_mut().map(|fields| fields.remove(field));
    }
    short
}

/// Whether Go can answer the question in reasonable time and memory.
fn harmless(question: &Value) -> bool {
    let text = short(question).to_string();
    let digits = text.split(|c: char| !c.is_ascii_alphanumeric()).map(|word| {
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        if number && word.contains(['e', 'E', 'x', 'X', 'p', 'P']) {
            9
        } else {
            word.chars().filter(char::is_ascii_digit).count()
        }
    });
    digits.max().unwrap_or(0) < 4 || !GROWING.iter().any(|word| text.contains(word)) && question.get("op").is_none()
}

fn templates() -> anyhow::Result<impl FnMut(&mut Random) -> Value> {
    let mut sets = Vec::new();
    for file in ["vectors", "go", "sprig"] {
        let recorded = seeds::read(&format!("crates/template/tests/{file}.json"))?;
        sets.push((recorded["data"].clone(), Pool::new(seeds::texts(&recorded, "template"))));
    }
    Ok(move |random: &mut Random| {
        let set = random.below(sets.len());
        let (data, pool) = &mut sets[set];
        let mut question = json!({"template": pool.mutated(random, 3), "data": data});
        if data.get("LocalObject").is_some() && random.percent(30) {
            question["path"] = (*random.pick(&["spec.username", "spec.n", "spec.o", "spec.arr", "spec.nope"])).into();
        }
        question
    })
}

fn expressions() -> anyhow::Result<impl FnMut(&mut Random) -> Value> {
    let (plain, rich) = (seeds::read("crates/cel/tests/cel.json")?, seeds::read("crates/cel/tests/go.json")?);
    let mut sets = [
        (plain["data"][0].clone(), Pool::new(seeds::texts(&plain, "expression"))),
        (rich["self"].clone(), Pool::new(seeds::texts(&rich, "expression"))),
    ];
    let values = [json!("orig"), json!(3), json!(1.5), json!([1, 2, 3]), json!({"a": 1, "b": [true]}), json!(null)];
    Ok(move |random: &mut Random| {
        let value = random.pick(&values).clone();
        let set = random.below(sets.len());
        let (data, pool) = &mut sets[set];
        json!({"expression": pool.mutated(random, 1), "self": data, "value": value, "other": {"a": "b", "n": [1.5]}})
    })
}

fn paths() -> anyhow::Result<impl FnMut(&mut Random) -> Value> {
    let recorded = seeds::read("crates/json/tests/paths.json")?;
    let more = [
        "spec.objs.#(v>1)#.n",
        "spec.objs.#(n%\"a*\").v",
        "spec.objs.#.v|@reverse",
        "spec|@pretty",
        "spec.m|@values",
        "[kind,spec.t]",
        "spec.list|@flatten",
        "spec.objs|@join",
        "spec.s|@tostr",
        "spec.objs.#(n!=\"a\")",
        "spec.list.#(>=2)#",
        "@this|spec.list.0",
        "spec.objs|@group",
        "spec.list.-1",
        "spec.:1",
        "spec.m.a\\.b|@tostr|@fromstr",
        "{\"a\":kind,\"b\":!\"x\"}",
        "spec.big|@ugly",
    ];
    let texts = seeds::texts(&recorded, "path").into_iter().chain(more.map(str::to_owned));
    let mut pool = Pool::new(texts);
    let mut inputs = seeds::texts(&recorded, "input");
    inputs.truncate(1);
    inputs.extend(
        [
            "{ \"spec\" : { \"list\" : [ 3, 1.0, \"x\", null ], \"m\": {\"k\":\"v\"} }, \"kind\": \"\\u00e9\\n\" }",
            "[{\"n\":\"a\",\"v\":1e3},{\"n\":\"b\",\"v\":-0.5,\"spec\":{\"t\":true}}]",
            "{\"spec\":{\"objs\":[[1,[2]],[]],\"spec\":{},\"0\":\"zero\",\"list\":{}},\"kind\":true}",
        ]
        .map(str::to_owned),
    );
    let values = [
        json!("v"),
        json!(1),
        json!(1.5),
        json!(true),
        json!(null),
        json!([1, {"a": "<"}]),
        json!({"b": 1, "a": 1e30}),
    ];
    Ok(move |random: &mut Random| {
        let (path, input) = (pool.mutated(random, 3), random.pick(&inputs).clone());
        match random.below(10) {
            0..=5 => json!({"op": "gjson", "path": path, "input": input}),
            6..=7 => json!({"op": "sjsonset", "path": path, "input": input, "value": random.pick(&values)}),
            _ => json!({"op": "sjsondel", "path": path, "input": input}),
        }
    })
}
