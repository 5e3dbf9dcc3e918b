//! Compares rules with the API server, whose answers are recorded in `go.json`.

use serde_json::{Value, json};

use super::Schema;

fn recording() -> Value {
    serde_json::from_str(include_str!("go.json")).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Messages that quote the data, which ours never do, end where the data begins.
fn comparable(text: &str) -> String {
    text.replace("index out of bounds: 5", "index out of bounds")
}

#[test]
fn objects_are_judged_as_the_api_server_judges_them() {
    let recorded = recording();
    let mut wrong = Vec::new();
    for case in recorded["objects"].as_array().unwrap() {
        let mut schema = case.get("schema").unwrap_or(&recorded["rich"]).clone();
        if let Some(rules) = case.get("rules") {
            schema["x-kubernetes-validations"] = rules.clone();
        }
        let object = case.get("self").unwrap_or(&recorded["object"]);
        let old = case.get("old").map(|old| if old == "same" { &recorded["object"] } else { old });
        let mut want: Vec<String> = texts(&case["want"]).iter().map(|text| comparable(text)).collect();
        want.sort();
        // the schema of a node inside a resource
        let root = case["root"] == true;
        let wrapped = |value: &Value| if root { value.clone() } else { json!({"at": value}) };
        let outer = if root { schema } else { json!({"type": "object", "properties": {"at": schema}}) };
        let mut got: Vec<String> = match Schema::compile(&outer) {
            Err(error) => vec![error.to_string()],
            Ok(schema) => schema
                .check_rules(&wrapped(object), old.map(wrapped).as_ref(), &[])
                .iter()
                .map(|fault| format!("{}: {}", inside(&fault.field, root), fault.message))
                .collect(),
        };
        got.sort();
        let refused = got.iter().any(|got| got.contains("x-kubernetes-validations"));
        let fine = got == want || refused && want.iter().any(|want| want.contains("rule compile error"));
        if !fine {
            let rules = case.get("rules").unwrap_or(&case["schema"]);
            wrong.push(format!("{rules} before {}\n    got  {got:?}\n    want {want:?}", case["old"]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The field as seen from the node.
fn inside(field: &str, root: bool) -> String {
    match field.strip_prefix("at") {
        Some("") if !root => "<nil>".to_owned(),
        Some(below) if !root => below.trim_start_matches('.').to_owned(),
        _ => field.to_owned(),
    }
}
