//! The recorded results of cel-go, as the reference agent uses it.

use carrick_cel::Mutation;
use serde_json::{Value, json};

/// Expressions where ours differs on purpose, with our result: the reference garbles null, lists, maps and types (a
/// defect by the specification), and refuses the functions of the libraries that mutations are to have besides the
/// standard one.
fn deviations() -> Vec<(&'static str, Value)> {
    vec![
        ("null", json!(null)),
        ("self.spec.nul", json!(null)),
        ("self.spec.items", json!([1, 2, 3])),
        ("self.spec.objs.filter(o, o.v > 1).map(o, o.n)", json!(["b"])),
        ("self.spec.items.map(x, x>1, x*10)", json!([20, 30])),
        ("self.spec.items.map(x, x*2)", json!([2, 4, 6])),
        ("self.spec.items.filter(x, x>1)", json!([2, 3])),
        ("self.spec.objs.map(o, o.n)", json!(["a", "b"])),
        ("[1,2,3]", json!([1, 2, 3])),
        ("[1]+[2]", json!([1, 2])),
        (r#"[1,"a",true,null,1.5]"#, json!([1, "a", true, null, 1.5])),
        (r#"{"a":1}.map(k, k)"#, json!(["a"])),
        (r#"{"a":1}"#, json!({"a": 1})),
        (r#"{1:"a"}"#, json!({"1": "a"})),
        (r#"{"k":[{"z":null}]}"#, json!({"k": [{"z": null}]})),
        ("int", json!("int")),
        (r#"type("a")"#, json!("string")),
        ("self.spec.items.sum()", json!(6)),
        (r#"self.spec.names.join(",")"#, json!("a,b")),
        (r#""%s-%d".format(["a",1])"#, json!("a-1")),
        (r#"self.spec.image.replace("a","b")"#, json!("ubuntu:lbtest")),
        (r#"self.spec.image.split(":")"#, json!(["ubuntu", "latest"])),
        ("self.spec.image.lowerAscii()", json!("ubuntu:latest")),
    ]
}

#[test]
fn all_recorded_cases_agree_or_differ_on_purpose() {
    let file: Value = serde_json::from_str(include_str!("../cel.json")).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 95);
    let deviations = deviations();
    let mut wrong = Vec::new();
    for case in cases {
        let expression = case["expression"].as_str().unwrap();
        let this = &file["data"][usize::try_from(case["self"].as_u64().unwrap()).unwrap()];
        let compiled = Mutation::compile(expression);
        let got = match &compiled {
            Err(error) => Err(format!("compile: {error}")),
            Ok(mutation) => mutation.eval(&case["value"], this, &Value::Null).map_err(|error| format!("eval: {error}")),
        };
        if let Some((_, want)) = deviations.iter().find(|(known, _)| *known == expression) {
            if got.as_ref() != Ok(want) {
                wrong.push(format!("{expression}: {got:?}, want {want}"));
            }
            continue;
        }
        let ok = if let Some(error) = case["err"].as_str() {
            // "compile: …" or "eval: …": refused at the same time, in other words
            got.as_ref().is_err_and(|got| got.split(':').next() == error.split(':').next())
        } else {
            let set: Value = serde_json::from_str(case["set"].as_str().unwrap()).unwrap();
            got.as_ref() == Ok(&set["a"]["b"])
        };
        if !ok {
            wrong.push(format!("{expression}: {got:?}, want {} {}", case["err"], case["set"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
