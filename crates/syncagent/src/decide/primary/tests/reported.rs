//! What the status of an order says in the agent's name.

use super::*;
use crate::api::WAITS_FOR;
use crate::decide::report::{Unplaced, UnplacedReason, told, unplaced};

const NOW: &str = "2026-01-01T00:00:00Z";

/// Ready as the operator says, with a Secret that is required and has the port of a Service in it.
fn database() -> Rules {
    rules(json!({
        "reads": [{"identifier": "door", "version": "v1", "resource": "services", "object": {"template": {"template": "door"}}}],
        "related": [{"identifier": "creds", "required": true, "origin": "service", "kind": "Secret", "cleanup": true,
            "object": {"template": {"template": "creds"}},
            "mutation": {"spec": [{"template": {"path": "data.port", "template": "{{ .Objects.door.spec.port }}"}}]}}],
        "report": {"status": "has(self.status) && self.status.ready ? 'Available' : 'Provisioning'"},
    }))
}

fn original() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds", "namespace": "c1", "uid": "o"}, "data": {}})
}

fn door(port: &str) -> Value {
    json!({"door": {"spec": {"port": port}}})
}

fn status(model: &Model) -> &Value {
    &model.source.as_ref().unwrap()["status"]
}

/// An order that is placed, ready, and has its Secret.
fn available(rules: &Rules) -> Model {
    let mut model = Model { objects: door("1"), origin: Some(original()), ..Model::with_source(json!({})) };
    model.settle(rules);
    model.copy.as_mut().unwrap()["status"] = json!({"ready": true});
    model.settle(rules);
    model
}

fn listed() -> Value {
    json!({"creds": {"name": "creds", "namespace": "default", "gvk": {"group": "core", "version": "v1", "kind": "Secret"}}})
}

#[test]
fn available_is_said_once_everything_that_is_required_is_there() {
    let rules = database();
    let mut model = Model { objects: json!({"door": null}), ..Model::with_source(json!({})) };
    model.settle(&rules);
    let placed = |message: &str| json!([{"type": "Placed", "status": "True", "reason": "Placed", "message": message, "lastTransitionTime": NOW}]);
    let waits = placed("waits for the related object \"creds\" (secrets), which the provider has not made yet");
    assert_eq!(*status(&model), json!({"status": "Provisioning", "conditions": waits}));
    model.copy.as_mut().unwrap()["status"] = json!({"ready": true});
    model.settle(&rules);
    assert_eq!(
        *status(&model),
        json!({"ready": true, "status": "Provisioning", "conditions": waits}),
        "there is no Secret"
    );
    model.origin = Some(original());
    let plan = model.plan(&rules);
    assert!(plan.is_settled() && plan.problems.is_empty(), "{plan:?}");
    assert!(
        plan.notices[0].contains("\"creds\" waits") && plan.notices[0].contains("finds no door"),
        "{:?}",
        plan.notices
    );
    model.objects = door("1");
    model.settle(&rules);
    assert_eq!(model.destination.as_ref().unwrap()["data"], json!({"port": "1"}));
    let wanted = json!({"ready": true, "status": "Available", "conditions": placed(""), "relatedResources": listed()});
    assert_eq!(*status(&model), wanted);
    model.objects = door("2");
    model.settle(&rules);
    assert_eq!(model.destination.as_ref().unwrap()["data"], json!({"port": "2"}));
}

#[test]
fn an_order_of_which_the_operator_has_not_reported_anything_says_so() {
    let rules = rules(json!({"report": {}}));
    let mut model = Model::with_source(json!({}));
    model.settle(&rules);
    let message = status(&model)["conditions"][0]["message"].as_str().unwrap();
    assert_eq!(message, "waits for the provider, whose operator has not reported anything yet");
    model.copy.as_mut().unwrap()["status"] = json!({"ready": true});
    model.settle(&rules);
    assert_eq!(status(&model)["conditions"][0]["message"], "");
}

#[test]
fn annotations_say_what_an_order_waits_for_until_it_is_there() {
    let secret = json!([{"identifier": "creds", "required": true, "origin": "service", "kind": "Secret", "cleanup": true,
        "object": {"template": {"template": "creds"}}}]);
    let rules = rules(json!({"related": secret, "feedback": "Annotations"}));
    let mut model = Model::with_source(json!({}));
    model.settle(&rules);
    let waits = |model: &Model| model.source.as_ref().unwrap()["metadata"]["annotations"][WAITS_FOR].clone();
    assert_eq!(waits(&model), "the related object \"creds\" (secrets), which the provider has not made yet");
    model.unknown = HashSet::from([0]);
    model.settle(&rules);
    assert!(waits(&model).is_string(), "what is not known takes nothing back");
    model.unknown.clear();
    model.origin = Some(original());
    model.settle(&rules);
    assert_eq!(waits(&model), Value::Null);
}

#[test]
fn what_is_not_known_leaves_the_last_word() {
    let rules = database();
    let mut model = available(&rules);
    let before = status(&model).clone();
    // Its copy is gone from sight, and nobody knows why.
    let origin = model.origin.take();
    model.unknown = HashSet::from([0]);
    model.settle(&rules);
    assert_eq!(*status(&model), before);
    model.unknown.clear();
    model.settle(&rules);
    assert_eq!(status(&model)["status"], "Provisioning");
    assert!(status(&model).get("relatedResources").is_none());
    model.origin = origin;
    model.settle(&rules);
    assert_eq!(*status(&model), before);

    let looking = super::rules(json!({
        "reads": [{"identifier": "door", "version": "v1", "resource": "services", "object": {"template": {"template": "door"}}}],
        "report": {"status": "objects.door == null ? 'Degraded' : 'Available'"},
    }));
    let mut model = Model { objects: door("1"), ..Model::with_source(json!({})) };
    model.settle(&looking);
    (model.objects, model.unread) = (json!({}), BTreeSet::from(["door".to_owned()]));
    model.settle(&looking);
    assert_eq!(status(&model)["status"], "Available", "it cannot be read");
    (model.objects, model.unread) = (json!({"door": null}), BTreeSet::new());
    model.settle(&looking);
    assert_eq!(status(&model)["status"], "Degraded", "it is gone");
}

#[test]
fn a_related_object_is_struck_off_before_it_is_deleted() {
    let rules = database();
    let mut model = available(&rules);
    model.origin.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "now".into();
    let plan = model.plan(&rules);
    let verbs: Vec<_> = plan.strands.iter().flatten().map(Step::verb).collect();
    assert!(verbs.contains(&"write-status") && !verbs.contains(&"delete"), "{verbs:?}");
    plan.strands.into_iter().flatten().for_each(|step| model.execute(step));
    assert!(status(&model).get("relatedResources").is_none() && model.destination.is_some());
    model.settle(&rules);
    assert!(model.destination.is_none(), "then it goes");
}

#[test]
fn an_order_that_goes_says_so_first() {
    let rules = database();
    let mut model = available(&rules);
    model.delete_source();
    let verbs: Vec<_> = model.plan(&rules).steps.iter().map(Step::verb).collect();
    assert_eq!(verbs, ["write-status"]);
    for step in model.plan(&rules).steps {
        model.execute(step);
    }
    assert_eq!(status(&model)["status"], "Deleting");
    assert!(status(&model).get("relatedResources").is_none() && model.copy.is_some() && model.destination.is_some());
    model.settle(&rules);
    assert!(model.source.is_none() && model.copy.is_none() && model.destination.is_none());
}

#[test]
fn an_expression_that_fails_keeps_nothing_else_from_being_done() {
    let rules = rules(json!({"report": {"status": "self.status.nope"}}));
    let mut model = Model::with_source(json!({}));
    model.settle(&rules);
    model.copy.as_mut().unwrap()["status"] = json!({"url": "here"});
    model.settle(&rules);
    assert_eq!((&status(&model)["url"], &status(&model)["status"]), (&json!("here"), &json!("Provisioning")));
    assert!(model.plan(&rules).notices[0].starts_with("spec.report.status failed: "));
}

#[test]
fn conditions_are_completed_if_asked_to() {
    for (how, complete, own) in [("None", false, false), ("Copy", true, false), ("Own", true, true)] {
        let rules = rules(json!({"report": {"conditions": how}}));
        let mut model = Model::with_source(json!({}));
        model.settle(&rules);
        let copy = model.copy.as_mut().unwrap();
        copy["metadata"]["creationTimestamp"] = "2025-05-05T05:05:05Z".into();
        copy["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False", "reason": "R",
            "message": "m", "lastTransitionTime": "2024-04-04T04:04:04Z"}]});
        model.settle(&rules);
        let conditions = status(&model)["conditions"].as_array().unwrap();
        let ready = json!({"type": "Ready", "status": "True", "reason": "Unknown", "message": "", "lastTransitionTime": "2025-05-05T05:05:05Z"});
        assert_eq!(conditions[0] == ready, complete, "{how}");
        assert_eq!(conditions[1]["reason"], "R");
        assert_eq!(conditions.len() == 3, own, "{how}");
    }
}

#[test]
fn what_was_not_placed_says_why_and_what_was_placed_before_stays_what_it_is() {
    let rules = database();
    let report = rules.report.as_ref().unwrap();
    let why = |reason: UnplacedReason| Unplaced { reason, message: "why".to_owned() };
    let new = json!({"metadata": {"name": "a"}});
    for (reason, has_copy, word, condition) in [
        (UnplacedReason::Limit, false, "Failed", "Limit"),
        (UnplacedReason::Rule, false, "Failed", "Rule"),
        (UnplacedReason::Refused, false, "Failed", "Refused"),
        (UnplacedReason::Unreachable, false, "Provisioning", "Unreachable"),
    ] {
        let status = unplaced(report, &new, has_copy, &why(reason), NOW);
        let placed = json!([{"type": "Placed", "status": "False", "reason": condition, "message": "why", "lastTransitionTime": NOW}]);
        assert_eq!(status, json!({"status": word, "conditions": placed}));
        let again = json!({"metadata": {"name": "a"}, "status": status});
        assert_eq!(unplaced(report, &again, has_copy, &why(reason), "2027-01-01T00:00:00Z"), again["status"], "once");
        assert_eq!(told(&again), Some("why"));
    }
    let model = available(&rules);
    let source = model.source.unwrap();
    assert_eq!(told(&source), None);
    let status = unplaced(report, &source, true, &why(UnplacedReason::Rule), "2027-01-01T00:00:00Z");
    assert_eq!((&status["status"], &status["relatedResources"]), (&json!("Available"), &listed()));
    assert_eq!(status["conditions"][0]["lastTransitionTime"], "2027-01-01T00:00:00Z");
}
