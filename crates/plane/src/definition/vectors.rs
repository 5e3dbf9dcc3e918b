//! Comparison with the answers of the API server's own library, which are recorded in `vectors.jsonl`: a line has a CRD, the one before it
//! for an update, and what was answered: the warnings, the causes of a refusal or why the CRD could not be read, or the CRD as it is kept.

use serde_json::{Value, json};

use super::{Faults, complete, decode, faults, schema, stored_versions, tidy, warnings};

fn answer(case: &Value) -> Value {
    let mut old = case.get("old").cloned();
    if let Some(old) = &mut old {
        decode(old, &mut Vec::new()).unwrap();
        complete(old);
        old["status"]["storedVersions"] = stored_versions(old, Some(&old.clone()));
    }
    let (mut crd, mut warned) = (case["new"].clone(), Vec::new());
    if let Err(why) = decode(&mut crd, &mut warned) {
        return json!({ "unreadable": why });
    }
    let mut warned: Vec<String> = warned.iter().map(|field| format!("unknown field \"{field}\"")).collect();
    complete(&mut crd);
    crd["status"]["storedVersions"] = stored_versions(&crd, old.as_ref());
    let mut causes: Vec<String> = faults(&crd, old.as_ref())
        .iter()
        .map(|cause| format!("{} {}: {}", cause.reason, cause.field, cause.message))
        .collect();
    causes.sort();
    let mut kept = Value::Null;
    if causes.is_empty() {
        tidy(&mut crd);
        kept = crd["spec"].clone();
        warned.extend(warnings(&crd, old.as_ref()));
    }
    warned.sort();
    json!({ "warnings": warned, "causes": causes, "kept": kept })
}

#[test]
fn crds_are_judged_as_the_api_server_judges_them() {
    let file = std::env::var("CARRICK_CRD_VECTORS").ok().map(|path| std::fs::read_to_string(path).unwrap());
    let text = file.as_deref().unwrap_or(include_str!("vectors.jsonl"));
    let mut wrong = Vec::new();
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let got = answer(&case);
        if got != case["answer"] {
            wrong.push(format!("{}\n{}", case["new"], compared(&case["answer"], &got)));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), text.lines().count(), wrong.join("\n"));
}

fn compared(want: &Value, got: &Value) -> String {
    let texts = |value: &Value| match value {
        Value::Array(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>(),
        Value::Null => Vec::new(),
        other => vec![other.to_string()],
    };
    let mut lines = Vec::new();
    for key in ["unreadable", "warnings", "causes", "kept"] {
        let (want, got) = (texts(&want[key]), texts(&got[key]));
        lines.extend(want.iter().filter(|one| !got.contains(one)).map(|one| format!("  want {key}: {one}")));
        lines.extend(got.iter().filter(|one| !want.contains(one)).map(|one| format!("  got  {key}: {one}")));
    }
    lines.join("\n")
}

/// The faulty rules of `crate::schema`'s recording.
#[test]
fn faulty_rules_are_refused_as_the_api_server_refuses_them() {
    let recorded: Value = serde_json::from_str(include_str!("../../../schema/src/go.json")).unwrap();
    let mut wrong = Vec::new();
    for case in recorded["schemas"].as_array().unwrap() {
        let mut faults = Faults::default();
        schema::check(Some(&json!({"openAPIV3Schema": case["schema"]})), false, "", &mut faults);
        let reported = faults.0.iter().map(|cause| format!("{}: {}", cause.field, cause.message));
        // Recorded without what is around the schema.
        let reported = reported.map(|text| text.replace(".openAPIV3Schema", "openAPIV3Schema"));
        let (mut got, mut want) = (reported.collect::<Vec<_>>(), texts(&case["want"]));
        got.sort();
        want.sort();
        if got != want {
            wrong.push(format!("{}\n    got  {got:#?}\n    want {want:#?}", case["schema"]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}
