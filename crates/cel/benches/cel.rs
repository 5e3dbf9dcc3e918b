//! What compiling and evaluating cost. `cargo bench -p carrick-cel`

use carrick_cel::{Mutation, Rule, Schema};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

const MUTATION: &str = "self.metadata.labels['app'] + '-' + (has(self.spec.tier) ? self.spec.tier : 'basic') + ':' + \
                        string(self.spec.replicas * 2)";

fn object() -> Value {
    json!({
        "apiVersion": "example.io/v1", "kind": "Widget",
        "metadata": {"name": "my-widget", "namespace": "default", "labels": {"app": "web", "team": "a"}},
        "spec": {
            "tier": "gold", "replicas": 3, "max": 10, "image": "registry/web:1.2.3",
            "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}, {"name": "metrics", "port": 9090}],
        },
    })
}

fn rule() -> Value {
    json!({
        "rule": "self.replicas <= self.max && self.ports.all(p, p.port > 0 && p.name.matches('^[a-z]+$'))",
        "message": "replicas must not exceed max, and ports must have names",
    })
}

fn schema() -> Schema {
    let ports = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}},
    });
    Schema::node(&json!({"type": "object", "properties": {
        "tier": {"type": "string"}, "replicas": {"type": "integer"}, "max": {"type": "integer"},
        "image": {"type": "string"}, "ports": ports,
    }}))
}

#[divan::bench]
fn mutation_compile() -> Mutation {
    Mutation::compile(black_box(MUTATION)).expect("compiles")
}

#[divan::bench]
fn mutation_evaluate(bencher: Bencher<'_, '_>) {
    let (mutation, object, other) = (mutation_compile(), object(), json!({}));
    bencher.bench(|| mutation.eval(&Value::Null, black_box(&object), &other).expect("evaluates"));
}

#[divan::bench]
fn mutation_compile_and_evaluate(bencher: Bencher<'_, '_>) {
    let (object, other) = (object(), json!({}));
    bencher.bench(|| mutation_compile().eval(&Value::Null, black_box(&object), &other).expect("evaluates"));
}

#[divan::bench]
fn rule_compile(bencher: Bencher<'_, '_>) {
    let (rule, schema) = (rule(), schema());
    bencher.bench(|| Rule::compile_typed(black_box(&rule), &schema).expect("compiles"));
}

#[divan::bench]
fn rule_evaluate(bencher: Bencher<'_, '_>) {
    let compiled = Rule::compile_typed(&rule(), &schema()).expect("compiles");
    let spec = object()["spec"].take();
    bencher.bench(|| compiled.eval(black_box(&spec), None).expect("evaluates"));
}

#[divan::bench]
fn rule_compile_and_evaluate(bencher: Bencher<'_, '_>) {
    let (rule, schema, spec) = (rule(), schema(), object()["spec"].take());
    bencher.bench(|| {
        let compiled = Rule::compile_typed(black_box(&rule), &schema).expect("compiles");
        compiled.eval(&spec, None).expect("evaluates")
    });
}

/// Expressions that would run for hours; each has to end in an error within milliseconds.
const HOSTILE: [(&str, &str); 10] = [
    ("nested loops", "value.map(a, value.map(b, value.map(c, a + b + c)))"),
    ("hidden loops", "value.exists(a, value.exists(b, value.exists(c, a == b + c)) || false) || true"),
    (
        "doubled text",
        "[value.join('')].map(a, a + a + a + a).map(a, a + a + a + a).map(a, a + a + a + a).map(a, a + a + a + a)",
    ),
    (
        "replaced text",
        "'aaaaaaaaaaaaaaaa'.replace('a', 'aaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaa')",
    ),
    ("patterns", "value.map(a, value.map(b, b.matches('(' + a + '|x*)*$')))"),
    ("large patterns", "value.all(a, a.matches('((x{9}){9}){9}' + a) || true)"),
    ("huge ranges", "lists.range(900000).map(a, lists.range(900000))"),
    ("quadratic", "lists.range(900).map(a, lists.range(900)).flatten().distinct()"),
    ("comparisons", "value.all(a, value.all(b, value == value.map(c, c)))"),
    ("formats", "value.map(a, '%s'.format([value]))"),
];

#[divan::bench(args = HOSTILE.map(|(name, _)| name))]
fn hostile(bencher: Bencher<'_, '_>, name: &str) {
    let expression = HOSTILE.iter().find(|(known, _)| *known == name).map(|(_, expression)| *expression);
    let mutation = Mutation::compile(expression.expect("listed")).expect("compiles");
    let words: Vec<String> = (0..2_000).map(|n| format!("word-{n}")).collect();
    let value = json!(words);
    assert!(mutation.eval(&value, &Value::Null, &Value::Null).is_err(), "{name} must be stopped");
    bencher.bench(|| mutation.eval(black_box(&value), &Value::Null, &Value::Null));
}
