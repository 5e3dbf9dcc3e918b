//! What statuses say.

use super::*;
use crate::api::ServedFor;

fn published(conditions: &Value) -> PublishedResource {
    let object = json!({
        "metadata": { "name": "a", "generation": 2, "resourceVersion": "7" },
        "status": { "resourceSchemaName": "v1.as.x", "objects": "2/2", "conditions": conditions },
    });
    serde_json::from_value(object).unwrap()
}

const FINE: ObjectsReport =
    ObjectsReport { failing: None, orders: 2, failures: 0, paused: None, drift: None, imports: None };
const ALL: KeptStatus = KeptStatus { conditions: true, counts: true, serving: true };
const NONE: KeptStatus = KeptStatus { conditions: false, counts: false, serving: false };

fn good() -> Report<'static> {
    Report {
        schema_name: Some("v1.as.x"),
        held: None,
        mapping: MappingChoice::default(),
        ignored: None,
        failure: None,
        problem: None,
        exported: Some(Ok(())),
        syncing: Syncing::Current,
        objects: Some(&FINE),
        rights: Some(Ok(())),
        doubts: Some(&[]),
        accept: None,
        rivalry: None,
        refused: false,
        serving: None,
        withdrawal: None,
        rewound: None,
    }
}

#[test]
fn a_status_that_says_it_already_is_left_alone() {
    assert_eq!(patch(&published(&json!([])), &good(), NONE, "now"), None);
    let first = patch(&published(&json!([])), &good(), ALL, "then").unwrap();
    let settled = published(&first["status"]["conditions"]);
    assert_eq!(patch(&settled, &good(), ALL, "now"), None);
    // What is not known changes nothing.
    assert_eq!(patch(&settled, &Report { exported: None, rights: None, doubts: None, ..good() }, ALL, "now"), None);
}

#[test]
fn a_new_schema_name_is_written_without_conditions_where_the_crd_has_none() {
    let report = Report { schema_name: Some("v2.as.x"), ..good() };
    let got = patch(&published(&json!([])), &report, NONE, "now");
    assert_eq!(got, Some(json!({ "status": { "resourceSchemaName": "v2.as.x" } })));
}

#[test]
fn times_change_with_the_answer_and_foreign_conditions_stay() {
    let foreign = json!({ "type": "Theirs", "status": "True" });
    let first = patch(&published(&json!([foreign])), &good(), ALL, "then").unwrap();
    let problem = Problem { reason: "Conflict", message: "no".to_owned() };
    let report = Report { problem: Some(&problem), ..good() };
    let second = patch(&published(&first["status"]["conditions"]), &report, ALL, "now").unwrap();
    assert_eq!(second["metadata"]["resourceVersion"], "7");
    assert_eq!(second["status"].get("resourceSchemaName"), None);
    let conditions = &second["status"]["conditions"];
    assert_eq!(conditions[0], foreign);
    assert_eq!(
        conditions[1],
        json!({
            "type": "RulesValid", "status": "False", "reason": "Conflict", "message": "no",
            "lastTransitionTime": "now", "observedGeneration": 2,
        })
    );
    assert_eq!(conditions[2]["lastTransitionTime"], "then");
}

#[test]
fn a_withdrawal_is_told_from_its_announcement_to_its_end() {
    let told = |withdrawal: Option<Withdrawing>, before: &Value| {
        let patch = patch(&published(before), &Report { withdrawal, ..good() }, ALL, "now").unwrap();
        patch["status"]["conditions"].clone()
    };
    let reason = |conditions: &Value, kind: &str| {
        let all = conditions.as_array().unwrap();
        let found = all.iter().find(|condition| condition["type"] == kind).map(|it| it["reason"].clone());
        found.unwrap_or_default()
    };
    assert_eq!(reason(&told(None, &json!([])), WITHDRAWN), Value::Null);
    let mut before = json!([]);
    for (withdrawal, wanted, exported, syncing) in [
        (Some(Withdrawing::Unclear("soon".to_owned())), "InvalidDate", "Exported", "Running"),
        (Some(Withdrawing::Announced("then".to_owned())), "Announced", "Exported", "Running"),
        (Some(Withdrawing::Releasing), "Releasing", "Exported", "Withdrawn"),
        (Some(Withdrawing::Gone), "Withdrawn", "Withdrawn", "Withdrawn"),
        (None, "Offered", "Exported", "Running"),
    ] {
        before = told(withdrawal, &before);
        let got = [WITHDRAWN, "ExportUpdated", "Syncing"].map(|kind| reason(&before, kind));
        assert_eq!(got, [wanted, exported, syncing]);
    }
}

#[test]
fn each_condition_tells_its_own_story() {
    let problem = Problem { reason: "InvalidRules", message: "spec.naming.name is wrong".to_owned() };
    let failing = ObjectsReport { failing: Some("1 object cannot".to_owned()), failures: 1, ..FINE };
    let nothing = || Report { schema_name: None, exported: None, syncing: Syncing::NoRules, ..good() };
    let cases = [
        (good(), ["Valid", "Published", "Exported", "Running", "NoneFails"]),
        (Report { objects: Some(&failing), ..good() }, ["Valid", "Published", "Exported", "Running", "ObjectsFail"]),
        (Report { syncing: Syncing::Disabled, ..good() }, ["Valid", "Published", "Exported", "Disabled", "NotSyncing"]),
        (
            Report { syncing: Syncing::SwitchedOff, ..good() },
            ["Valid", "Published", "Exported", "SwitchedOff", "NotSyncing"],
        ),
        (
            Report { problem: Some(&problem), syncing: Syncing::Earlier(1), ..good() },
            ["InvalidRules", "Published", "Exported", "EarlierRules", "NoneFails"],
        ),
        (
            Report { problem: Some(&problem), syncing: Syncing::NoRules, ..good() },
            ["InvalidRules", "Published", "Exported", "InvalidRules", "NotSyncing"],
        ),
        (
            Report { exported: Some(Err("forbidden".to_owned())), ..good() },
            ["Valid", "Published", "UpdateFailed", "Running", "NoneFails"],
        ),
        (
            Report { failure: Some("refused".to_owned()), syncing: Syncing::Current, ..nothing() },
            ["Valid", "PublishingFailed", "NotPublished", "NotPublished", "NotSyncing"],
        ),
        (
            Report { problem: Some(&problem), ..nothing() },
            ["InvalidRules", "InvalidRules", "NotPublished", "InvalidRules", "NotSyncing"],
        ),
    ];
    for (report, wanted) in cases {
        let patch = patch(&published(&json!([])), &report, ALL, "now").unwrap();
        let conditions = patch["status"]["conditions"].as_array().unwrap();
        let reasons: Vec<_> = conditions.iter().map(|condition| condition["reason"].as_str().unwrap()).collect();
        assert_eq!(reasons[..5], wanted);
        assert_eq!(reasons[5..], ["Granted", "Plausible"]);
    }
}

#[test]
fn conditions_are_in_the_same_order_whichever_is_known_first() {
    let partly = [
        Report { exported: None, held: Some("v2"), ..good() },
        Report { rights: None, doubts: None, ..good() },
        Report { rivalry: Some("both"), rights: None, exported: None, ..good() },
    ];
    for first in partly {
        let first = patch(&published(&json!([])), &first, ALL, "now").unwrap();
        let withdrawal = Some(Withdrawing::Announced("then".to_owned()));
        let rewound = Some("kcp went back");
        let mapping = MappingChoice { held: Some("steps".to_owned()), ..MappingChoice::default() };
        let objects = ObjectsReport { drift: Some(Drift::None), imports: Some(ImportsReport::Done), ..FINE };
        let objects = Some(&objects);
        let kept = AcceptReport { holds: true, reason: "Kept", message: String::new() };
        let accept = Some(&kept);
        let said = Report { rivalry: Some("both"), held: Some("v2"), rewound, accept, ..good() };
        let all = Report { mapping, objects, withdrawal, ..said };
        let then = patch(&published(&first["status"]["conditions"]), &all, ALL, "now").unwrap();
        let then = then["status"]["conditions"].as_array().unwrap();
        assert_eq!(then.iter().map(|it| it["type"].as_str().unwrap()).collect::<Vec<_>>(), ORDER);
    }
}

#[test]
fn two_agents_say_the_same_and_the_one_that_stays_out_says_nothing_else() {
    let types = |patch: &Value| -> Vec<String> {
        let all = patch["status"]["conditions"].as_array().unwrap().iter();
        all.map(|it| format!("{} {}", it["type"].as_str().unwrap(), it["status"].as_str().unwrap())).collect()
    };
    let first = patch(&published(&json!([])), &good(), ALL, "then").unwrap();
    let settled = published(&first["status"]["conditions"]);
    let told = patch(&settled, &Report::of_refused(Some("a keeps it")), ALL, "then").unwrap();
    assert_eq!(types(&told).last().unwrap(), "ServedByOne False");
    assert_eq!(types(&told)[..7], types(&first)[..]);
    let settled = published(&told["status"]["conditions"]);
    assert_eq!(patch(&settled, &Report { rivalry: Some("a keeps it"), ..good() }, ALL, "now"), None);
    assert_eq!(patch(&settled, &Report::of_refused(Some("a keeps it")), ALL, "now"), None);
    let alone = patch(&settled, &good(), ALL, "now").unwrap();
    assert_eq!(types(&alone).last().unwrap(), "ServedByOne True");
}

#[test]
fn objects_are_counted_where_they_are_known_and_the_crd_keeps_it() {
    let failing = ObjectsReport {
        failing: Some("1 object cannot".to_owned()),
        orders: 212,
        failures: 1,
        paused: None,
        drift: None,
        imports: None,
    };
    let told = |report: &Report<'_>, kept| patch(&published(&json!([])), report, kept, "now").unwrap();
    let report = Report { objects: Some(&failing), ..good() };
    assert_eq!(told(&report, ALL)["status"]["objects"], "211/212");
    assert_eq!(told(&report, KeptStatus { counts: false, ..ALL })["status"].get("objects"), None);
    assert_eq!(told(&Report { syncing: Syncing::Disabled, ..report }, ALL)["status"].get("objects"), None);
    let mut counted = published(&json!([]));
    counted.status.objects = "2/2".to_owned();
    assert_eq!(patch(&counted, &good(), ALL, "now").unwrap()["status"].get("objects"), None);
    // After a restart nothing is known at first, and what was told stays.
    let unknown = told(&Report { objects: None, ..good() }, ALL);
    let types = unknown["status"]["conditions"].as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap());
    assert!(!types.collect::<Vec<_>>().contains(&"ObjectsSynced"), "{unknown}");
}

#[test]
fn a_schema_that_is_held_is_told_until_it_is_exported() {
    let held = |conditions: &Value| -> Option<Value> {
        conditions.as_array()?.iter().find(|condition| condition["type"] == SCHEMA_HELD).cloned()
    };
    let first = patch(&published(&json!([])), &good(), ALL, "then").unwrap();
    assert_eq!(held(&first["status"]["conditions"]), None, "it never was");
    let report = Report { held: Some("v2.as.x is held back"), ..good() };
    let told = patch(&published(&first["status"]["conditions"]), &report, ALL, "then").unwrap();
    let condition = held(&told["status"]["conditions"]).unwrap();
    assert_eq!((&condition["status"], &condition["message"]), (&json!("True"), &json!("v2.as.x is held back")));
    let settled = published(&told["status"]["conditions"]);
    assert_eq!(patch(&settled, &report, ALL, "now"), None);
    let done = patch(&settled, &good(), ALL, "now").unwrap();
    assert_eq!(held(&done["status"]["conditions"]).unwrap()["status"], "False");
}

#[test]
fn what_is_missing_and_what_is_doubtful_has_conditions_of_its_own() {
    let doubts = ["spec.naming.name: .Object.x cannot exist".to_owned(), "another".to_owned()];
    let report = Report { rights: Some(Err("the agent may not delete".to_owned())), doubts: Some(&doubts), ..good() };
    let patch = patch(&published(&json!([])), &report, ALL, "now").unwrap();
    let conditions = patch["status"]["conditions"].as_array().unwrap();
    let told: Vec<_> = conditions[5..].iter().map(|it| (it["type"].as_str(), it["status"].as_str())).collect();
    assert_eq!(told, [(Some("RightsGranted"), Some("False")), (Some("RulesPlausible"), Some("False"))]);
    assert_eq!(conditions[5]["message"], "the agent may not delete");
    assert!(conditions[6]["message"].as_str().unwrap().ends_with("cannot exist; another"));
    // They do not keep anything from working.
    assert!(conditions[..5].iter().all(|condition| condition["status"] == "True"));
}

#[test]
fn that_a_server_went_back_is_told_for_a_while_and_then_taken_back() {
    let told = |before: &Value, rewound| {
        let patch = patch(&published(before), &Report { rewound, ..good() }, ALL, "now").unwrap();
        let conditions = patch["status"]["conditions"].as_array().unwrap().clone();
        conditions.into_iter().find(|condition| condition["type"] == SERVERS_IN_TIME)
    };
    assert_eq!(told(&json!([]), None), None, "not worth a word");
    let back = told(&json!([]), Some("kcp went back")).unwrap();
    assert_eq!((&back["status"], &back["message"]), (&json!("False"), &json!("kcp went back")));
    assert_eq!(told(&json!([back]), None).unwrap()["status"], "True");
}

#[test]
fn agents_of_two_exports_name_each_other_and_one_of_them_writes_the_rest() {
    let of = |export: &str| ServedFor {
        export: format!("root:{export}|e"),
        uid: export.to_owned(),
        agent: format!("agent-{export}"),
        renewed: String::new(),
    };
    let both = vec![of("a"), of("b")];
    let first = patch(&published(&json!([])), &good(), ALL, "then").unwrap();
    let mut settled = published(&first["status"]["conditions"]);
    let told = |pr: &PublishedResource, defers: bool, kept| {
        let write = defers.then(|| both.clone());
        let serving = Some(Serving { write, several: both.clone(), defers, next: None });
        let objects = ObjectsReport { orders: 7, ..FINE };
        patch(pr, &Report { serving, objects: Some(&objects), ..good() }, kept, "now")
    };
    let second = told(&settled, true, ALL).unwrap();
    assert_eq!(second["status"]["servedFor"], json!(both));
    assert_eq!(second["status"].get("objects"), None, "the other agent counts");
    assert_eq!(second["metadata"]["resourceVersion"], "7");
    let conditions = &second["status"]["conditions"];
    let last = conditions.as_array().unwrap().last().unwrap();
    assert_eq!((&last["type"], &last["reason"]), (&json!(SERVED_BY_ONE), &json!("SeveralExports")));
    assert!(last["message"].as_str().unwrap().contains("kubectl label publishedresource a syncagent.kcp.io/export="));
    // The other one says the same, and all the rest.
    settled = published(conditions);
    assert_eq!(told(&settled, false, ALL).unwrap(), json!({ "status": { "objects": "7/7" } }));
    // A CRD that does not keep it is not written to again and again.
    assert_eq!(told(&settled, true, KeptStatus { serving: false, ..ALL }), None);
}

#[test]
fn drift_and_pauses_are_told_without_being_failures() {
    let told = |objects: &ObjectsReport, before: &Value| {
        let report = Report { objects: Some(objects), ..good() };
        let patched = patch(&published(before), &report, ALL, "now").unwrap();
        let conditions = patched["status"]["conditions"].as_array().unwrap().clone();
        let of = |kind: &str| conditions.iter().find(|it| it["type"] == kind).cloned().unwrap_or_default();
        [of("ObjectsSynced"), of("DriftFree")]
            .map(|it| (it["status"].clone(), it["reason"].clone(), it["message"].clone()))
    };
    let words = |status: &str, reason: &str, message: &str| (json!(status), json!(reason), json!(message));
    let paused = ObjectsReport { paused: Some("1 object is paused".to_owned()), ..FINE };
    let [synced, drift] = told(&paused, &json!([]));
    assert_eq!(synced, words("True", "NoneFails", "No object fails. 1 object is paused."));
    assert_eq!(drift.0, Value::Null, "nobody asked for it");
    let drifted = ObjectsReport { drift: Some(Drift::Some("1 copy was changed".to_owned())), ..FINE };
    assert_eq!(told(&drifted, &json!([]))[1], words("False", "Drifted", "1 copy was changed."));
    let none = ObjectsReport { drift: Some(Drift::None), ..FINE };
    assert_eq!(told(&none, &json!([]))[1].1, json!("NoDrift"));
    let before = json!([{ "type": "DriftFree", "status": "False", "reason": "Drifted", "message": "m" }]);
    assert_eq!(told(&FINE, &before)[1].1, json!("Ignored"), "what was said is taken back");
}

#[test]
fn objects_that_are_not_imported_are_named_and_that_is_taken_back() {
    let told = |objects: &ObjectsReport, before: &Value| {
        let report = Report { objects: Some(objects), ..good() };
        let patched = patch(&published(before), &report, ALL, "now").unwrap();
        let conditions = patched["status"]["conditions"].as_array().unwrap().clone();
        conditions.into_iter().find(|it| it["type"] == OBJECTS_IMPORTED)
    };
    assert_eq!(told(&FINE, &json!([])), None, "nobody asked for it");
    let refused = ObjectsReport { imports: Some(ImportsReport::Refused("1 object is not".to_owned())), ..FINE };
    let first = told(&refused, &json!([])).unwrap();
    assert_eq!((&first["status"], &first["message"]), (&json!("False"), &json!("1 object is not.")));
    let done = ObjectsReport { imports: Some(ImportsReport::Done), ..FINE };
    assert_eq!(told(&done, &json!([first])).unwrap()["reason"], "Imported");
    assert_eq!(told(&FINE, &json!([first])).unwrap()["reason"], "Off", "spec.import is gone");
}
