//! Any bytes as a conversion review: refused, or answered in JSON with all of its objects or with none.
#![no_main]

use std::sync::LazyLock;

use carrick_syncagent::rules::conversion::Conversions;
use carrick_syncagent::rules::review::answer;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

static CONVERSIONS: LazyLock<Conversions> = LazyLock::new(|| {
    let rules = json!({"rules": [
        {"from": "v1", "to": "v2", "preserve": ["spec.color", "spec.list.0"], "steps": [
            {"move": {"from": "spec.size", "to": "spec.capacity.size"}},
            {"when": "has(self.spec.a)", "cel": {"path": "spec.b", "expression": "self.spec.a"}},
            {"delete": {"path": "spec.a"}},
        ]},
        {"from": "v2", "to": "v1", "preserve": ["spec.shape"], "steps": [
            {"move": {"from": "spec.capacity.size", "to": "spec.size"}},
            {"regex": {"path": "spec.region", "pattern": "^(.)", "replacement": "$1-"}},
            {"template": {"path": "metadata.labels.name", "template": "{{ .LocalObject.metadata.name | upper }}"}},
        ]},
    ]});
    let rules = serde_json::from_value(rules).expect("rules of conversions");
    Conversions::compile(Some(&rules)).expect("rules without a mistake")
});

fuzz_target!(|body: &[u8]| {
    let find = |group: &str, kind: &str| ((group, kind) == ("example.com", "Gear")).then_some(&*CONVERSIONS);
    let Some(answered) = answer(body, find) else { return };
    let text: Value = serde_json::from_str(&answered.text).expect("the answer is JSON");
    // What no field of a review is may be anything: nobody reads it.
    let Ok(review) = serde_json::from_slice::<Value>(body) else { return };
    let (response, asked) = (&text["response"], review["request"]["objects"].as_array().map_or(0, Vec::len));
    let converted = response["convertedObjects"].as_array().expect("a list of objects");
    assert_eq!(converted.len(), if answered.problem.is_some() { 0 } else { asked });
    assert_eq!(response["result"]["status"] == "Success", answered.problem.is_none());
    // Of what somebody owns by its metadata, a conversion changes nothing.
    for (after, before) in converted.iter().zip(review["request"]["objects"].as_array().into_iter().flatten()) {
        for field in ["name", "namespace", "uid", "ownerReferences"] {
            assert_eq!(after["metadata"][field], before["metadata"][field]);
        }
    }
});
