//! Agreement with Go: every case of the vectors.

use carrick_template::Template;
use serde_json::Value;

/// Templates whose answer differs from Go's. A template that begins to agree must leave this list.
const EXCEPTIONS: &[&str] = &[
    // On purpose: templates see neither the environment nor the network.
    r#"{{ env "HOME" | empty }}"#,
    r#"{{ getHostByName "localhost" }}"#,
    // Refused: another result at every rendering.
    r#"{{ htpasswd "u" "" }}"#,
];

/// Enough of gjson for the cases: keys.
fn get(json: &Value, path: &str) -> Option<Value> {
    json.pointer(&format!("/{}", path.replace('.', "/"))).cloned()
}

fn render(text: &str, path: Option<&str>, data: &Value) -> Result<String, String> {
    let template = Template::compile(text).map_err(|error| error.to_string())?;
    let rendered = match path {
        Some(path) => {
            let value = get(&data["LocalObject"], path);
            template.render_mutation_value(value.as_ref(), get, data.as_object().unwrap())
        }
        None => template.render_value(data),
    };
    rendered.map_err(|error| error.to_string())
}

/// Renders every case; returns what disagrees.
fn disagreements(file: &str, exceptions: &[&str]) -> Vec<String> {
    let vectors: Value = serde_json::from_str(file).unwrap();
    let mut wrong = Vec::new();
    let mut excepted = Vec::new();
    for case in vectors["cases"].as_array().unwrap() {
        let text = case["template"].as_str().unwrap();
        let expected = case["output"].as_str();
        let rendered = render(text, case["path"].as_str(), &vectors["data"]);
        let agrees = rendered.as_deref().ok() == expected;
        let exception = exceptions.iter().find(|exception| text.contains(**exception));
        excepted.extend(exception);
        match (agrees, exception.is_some()) {
            (true, false) | (false, true) => {}
            (true, true) => wrong.push(format!("{text}\n  agrees by now: take it off the list")),
            (false, false) => {
                let error = case["error"].as_str().unwrap_or_default();
                wrong.push(format!("{text}\n  Go:   {expected:?} {error}\n  ours: {rendered:?}"));
            }
        }
    }
    wrong.extend(
        exceptions
            .iter()
            .filter(|e| !excepted.contains(e))
            .map(|e| format!("{e}\n  is in no case: take it off the list")),
    );
    wrong
}

#[test]
fn every_vector_agrees_with_go_except_for_the_listed_ones() {
    let wrong = disagreements(include_str!("../vectors.json"), EXCEPTIONS);
    assert!(wrong.is_empty(), "{} templates:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_vectors_are_complete() {
    let vectors: Value = serde_json::from_str(include_str!("../vectors.json")).unwrap();
    assert_eq!(vectors["cases"].as_array().unwrap().len(), 1286);
}

#[test]
fn random_templates_of_all_kinds_agree_with_go() {
    let wrong = disagreements(include_str!("../random.json"), &[]);
    assert!(wrong.is_empty(), "{} templates:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn random_templates_agree_with_go() {
    let wrong = disagreements(include_str!("../go.json"), &[]);
    assert!(wrong.is_empty(), "{} templates:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn random_calls_of_sprig_and_gjson_agree_with_go() {
    let wrong = disagreements(include_str!("../sprig.json"), &[]);
    assert!(wrong.is_empty(), "{} templates:\n{}", wrong.len(), wrong.join("\n"));
}
