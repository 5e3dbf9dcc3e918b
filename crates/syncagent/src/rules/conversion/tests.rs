use serde_json::json;

use super::*;

fn compile(conversion: Value) -> Result<Conversions, ConversionError> {
    Conversions::compile(Some(&serde_json::from_value(conversion).unwrap()))
}

/// v1alpha1 has `size` and a `region` in capitals; v1 has `capacity.size`, `region` and `color`.
pub(crate) fn rules() -> Value {
    json!({ "rules": [
        { "from": "v1alpha1", "to": "v1", "steps": [
            { "move": { "from": "spec.size", "to": "spec.capacity.size" } },
            { "when": "has(self.spec.region)", "cel": { "path": "spec.region", "expression": "self.spec.region.lowerAscii()" } },
            { "move": { "from": "status.phase", "to": "status.state" } },
        ] },
        { "from": "v1", "to": "v1alpha1", "preserve": ["spec.color"], "steps": [
            { "move": { "from": "spec.capacity.size", "to": "spec.size" } },
            { "when": "has(self.spec.region)", "cel": { "path": "spec.region", "expression": "self.spec.region.upperAscii()" } },
            { "move": { "from": "status.state", "to": "status.phase" } },
        ] },
    ] })
}

fn object(version: &str, spec: Value) -> Value {
    json!({ "apiVersion": format!("example.com/{version}"), "kind": "Bucket", "metadata": { "name": "b", "uid": "1" }, "spec": spec })
}

#[test]
fn objects_are_converted_there_and_back() {
    let conversions = compile(rules()).unwrap();
    let old = object("v1alpha1", json!({ "size": 3, "region": "EU" }));
    let new = conversions.convert(&old, "v1").unwrap();
    assert_eq!(new, object("v1", json!({ "capacity": { "size": 3 }, "region": "eu" })));
    assert_eq!(conversions.convert(&new, "v1alpha1").unwrap(), old);
    assert_eq!(conversions.convert(&new, "v1").unwrap(), new, "its own version needs no rule");
}

#[test]
fn what_the_other_version_has_no_place_for_is_kept_in_an_annotation() {
    let conversions = compile(rules()).unwrap();
    let mut new = object("v1", json!({ "capacity": { "size": 3 }, "color": "blue" }));
    new["metadata"]["annotations"] = json!({ "a": "b" });
    let old = conversions.convert(&new, "v1alpha1").unwrap();
    assert_eq!(old["spec"], json!({ "size": 3 }));
    assert_eq!(
        old["metadata"]["annotations"],
        json!({ "a": "b", "conversion.syncagent.kcp.io/v1": r#"{"spec.color":"blue"}"# })
    );
    assert_eq!(conversions.convert(&old, "v1").unwrap(), new);
}

#[test]
fn kept_values_touch_neither_metadata_nor_what_is_there() {
    let conversions = compile(rules()).unwrap();
    let kept = |text: &str| {
        let mut old = object("v1alpha1", json!({ "size": 3 }));
        old["metadata"]["annotations"] = json!({ "conversion.syncagent.kcp.io/v1": text });
        conversions.convert(&old, "v1").unwrap()
    };
    for text in ["nonsense", "[]", r#"{"metadata.name":"c","metadata.labels.x":"y"}"#, r#"{"spec.capacity.size":9}"#] {
        assert_eq!(kept(text), object("v1", json!({ "capacity": { "size": 3 } })), "{text}");
    }
}

#[test]
fn rules_change_no_metadata_but_labels_and_annotations() {
    let steps = json!([
        { "cel": { "path": "metadata.name", "expression": "'other'" } },
        { "cel": { "path": "metadata.labels.x", "expression": "'y'" } },
    ]);
    let conversions = compile(json!({ "rules": [{ "from": "v1", "to": "v2", "steps": steps }] })).unwrap();
    let converted = conversions.convert(&object("v1", json!({})), "v2").unwrap();
    assert_eq!(converted["metadata"], json!({ "name": "b", "uid": "1", "labels": { "x": "y" } }));
}

#[test]
fn ways_lead_over_other_versions() {
    let add = |from: &str, to: &str| {
        let cel = json!({ "path": "spec.at", "expression": format!("self.spec.at + '{to}'") });
        json!({ "from": from, "to": to, "steps": [{ "cel": cel }] })
    };
    let conversions = compile(json!({ "rules": [add("a", "b"), add("b", "c"), add("c", "a")] })).unwrap();
    let converted = conversions.convert(&object("a", json!({ "at": "a" })), "c").unwrap();
    assert_eq!(converted, object("c", json!({ "at": "abc" })));
    assert!(conversions.connect(&["a", "b", "c"]).is_ok());
    let error = conversions.connect(&["a", "d"]).unwrap_err().to_string();
    assert!(error.starts_with("spec.conversion.rules: nothing leads from a to d"), "{error}");
}

#[test]
fn mistakes_name_their_field() {
    let step = |step: Value| json!({ "rules": [{ "from": "a", "to": "b", "steps": [step] }] });
    for (conversion, expected) in [
        (step(json!({})), "spec.conversion.rules[0].steps[0]: nothing to do"),
        (
            step(json!({ "move": { "from": "a", "to": "b" }, "delete": { "path": "a" } })),
            "spec.conversion.rules[0].steps[0]: several",
        ),
        (step(json!({ "move": { "from": "a", "to": "" } })), "spec.conversion.rules[0].steps[0]: path cannot be empty"),
        (step(json!({ "when": "self.(", "delete": { "path": "a" } })), "spec.conversion.rules[0].steps[0].when: "),
        (step(json!({ "cel": { "path": "a", "expression": "nope" } })), "spec.conversion.rules[0].steps[0]: "),
        (
            step(json!({ "template": { "path": "a", "template": "{{ randAlpha 5 }}" } })),
            "spec.conversion.rules[0].steps[0]: template line 1, column 4: function \"randAlpha\" is refused: ",
        ),
        (json!({ "rules": [{ "from": "a", "to": "a" }] }), "spec.conversion.rules[0] leads from a to itself"),
        (
            json!({ "rules": [{ "from": "a", "to": "b" }, { "from": "a", "to": "b" }] }),
            "spec.conversion.rules[1] leads from a to b, as an earlier rule does",
        ),
    ] {
        let error = compile(conversion).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn failures_name_rule_and_path() {
    let conversions = compile(json!({ "rules": [{ "from": "a", "to": "b", "steps": [
        { "cel": { "path": "spec.x", "expression": "self.spec.nope" } },
    ] }] }));
    let error = conversions.unwrap().convert(&object("a", json!({})), "b").unwrap_err().to_string();
    assert!(error.starts_with("spec.conversion.rules[0].steps[0] failed at path \"spec.x\": "), "{error}");
}
