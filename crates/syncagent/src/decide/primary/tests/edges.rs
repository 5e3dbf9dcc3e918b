//! Cases that single planted bugs once slipped through.

use super::*;
use crate::api::APPLIED_STATE;
use crate::decide::state::{StatusNote, checksum, sum};
use crate::rules::metadata::label;

fn verbs(plan: &Plan) -> Vec<&'static str> {
    plan.steps.iter().chain(plan.strands.iter().flatten()).map(Step::verb).collect()
}

fn without_subresource(spec: Value) -> Rules {
    Rules::compile(&published(spec), &crontab(), "agent").unwrap()
}

#[test]
fn a_cluster_scoped_copy_of_a_namespaced_object_has_no_namespace() {
    let mut crd = with_status();
    crd.spec.scope = "Cluster".into();
    let rules = Rules::compile(&published(json!({"projection": {"scope": "Namespaced"}})), &crd, "agent").unwrap();
    let mut model = Model::with_source(json!({}));
    assert!(!verbs(&model.plan(&rules)).contains(&"ensure-namespace"));
    model.settle(&rules);
    assert_eq!(model.copy.unwrap()["metadata"].get("namespace"), None);
}

#[test]
fn a_copy_that_is_being_deleted_is_waited_for_and_not_written() {
    let mut model = Model::with_source(json!({"replicas": 1}));
    model.settle(&rules(json!({})));
    let metadata = &mut model.copy.as_mut().unwrap()["metadata"];
    (metadata["deletionTimestamp"], metadata["finalizers"]) = ("now".into(), json!(["operator"]));
    model.set_spec(json!({"replicas": 2}));
    model.copy.as_mut().unwrap()["status"] = json!({"ready": false});
    let plan = model.plan(&rules(json!({})));
    assert!(plan.is_settled() && plan.next == Next::Soon, "{plan:?}");
}

#[test]
fn a_status_is_not_sent_with_a_version_that_the_finalizer_has_just_outdated() {
    let mut model = Model::with_source(json!({}));
    model.settle(&rules(json!({})));
    model.copy.as_mut().unwrap()["status"] = json!({"ready": true});
    model.source.as_mut().unwrap()["metadata"]["finalizers"] = json!([]);
    let plan = model.plan(&rules(json!({})));
    assert_eq!(verbs(&plan), ["set-finalizers", "report"]);
    assert_eq!(plan.next, Next::Soon);
}

#[test]
fn new_and_adopted_copies_carry_the_mark_of_their_state() {
    let mut model = Model::with_source(json!({"replicas": 1}));
    let mark = |model: &Model| {
        let mark = model.copy.as_ref().unwrap()["metadata"]["annotations"][APPLIED_STATE].clone();
        let mark = carrick_sync::Mark::read(mark.as_str().unwrap());
        (mark.sum, mark.number)
    };
    let last = |model: &Model| sum(model.state.entries().next().unwrap().1.last.as_ref().unwrap().whole().unwrap());
    model.settle(&rules(json!({})));
    assert_eq!(mark(&model), (last(&model), 0));
    model.state = PrimaryState::default();
    model.set_spec(json!({"replicas": 2}));
    model.settle(&rules(json!({})));
    assert_eq!(mark(&model), (last(&model), 1), "written as a whole");
    model.set_spec(json!({"replicas": 3}));
    model.settle(&rules(json!({})));
    assert_eq!(mark(&model), (last(&model), 2), "edited");
}

#[test]
fn a_copy_is_never_deleted_because_a_field_of_it_cannot_change() {
    let mut rules = rules(json!({}));
    rules.local =
        ApiKind { group: String::new(), kind: "ConfigMap".into(), plural: "configmaps".into(), ..rules.local };
    let mut model = Model::with_source(json!({}));
    model.source.as_mut().unwrap()["immutable"] = true.into();
    model.source.as_mut().unwrap()["data"] = json!({"k": "v"});
    model.settle(&rules);
    model.source.as_mut().unwrap()["data"] = json!({"k": "w"});
    let plan = model.plan(&rules);
    assert!(!verbs(&plan).contains(&"delete") && verbs(&plan).contains(&"edit"), "{plan:?}");
}

#[test]
fn a_status_that_was_not_taken_as_it_was_is_sent_again_when_something_changes() {
    let mut model = Model::with_source(json!({}));
    model.settle(&rules(json!({})));
    model.copy.as_mut().unwrap()["status"] = json!({"ready": true, "unknown": 1});
    model.source.as_mut().unwrap()["status"] = json!({"ready": true});
    let entry = model.state.entries().next().unwrap().0.to_owned();
    let (sent, stored) = (checksum(&json!({"ready": true, "unknown": 1})), checksum(&json!({"ready": true})));
    for stored in [Some(stored), None] {
        let note = StatusNote { sent: sent.clone(), stored: stored.clone(), schema: "old".into() };
        model.state.note_status(&entry, Some(note));
        let judged_by = |schema: &str| Rules { schema: schema.into(), ..rules(json!({})) };
        assert!(model.plan(&judged_by("old")).is_settled());
        assert!(!model.plan(&judged_by("new")).is_settled(), "another schema may take it");
        model.source.as_mut().unwrap()["status"] = json!({"meddled": true});
        assert_eq!(model.plan(&judged_by("old")).is_settled(), stored.is_none(), "what was stored is repaired");
        model.source.as_mut().unwrap()["status"] = json!({"ready": true});
    }
}

#[test]
fn a_status_as_a_field_is_written_only_over_the_version_that_was_seen() {
    let rules = without_subresource(json!({}));
    let mut model = Model::with_source(json!({}));
    model.settle(&rules);
    model.copy.as_mut().unwrap()["status"] = json!({"ready": true});
    let version = model.source.as_ref().unwrap()["metadata"]["resourceVersion"].clone();
    let plan = model.plan(&rules);
    let patch = plan.strands.iter().flatten().find_map(|step| match step {
        Step::Patch { patch, .. } => Some(patch),
        _ => None,
    });
    assert_eq!(patch.unwrap()["metadata"]["resourceVersion"], version);
}

#[test]
fn a_status_as_a_field_that_changes_again_at_once_is_not_set_back() {
    let rules = without_subresource(json!({}));
    let mut model = Model::with_source(json!({}));
    model.settle(&rules);
    model.copy.as_mut().unwrap()["status"] = json!({"step": 1});
    model.plan(&rules).strands.into_iter().flatten().for_each(|step| model.execute(step));
    model.copy.as_mut().unwrap()["status"] = json!({"step": 2});
    model.settle(&rules);
    assert_eq!(model.copy.unwrap()["status"], json!({"step": 2}));
    assert_eq!(model.source.unwrap()["status"], json!({"step": 2}));
}

#[test]
fn a_status_that_the_consumer_wrote_as_a_field_does_not_come_back_to_him() {
    let rules = without_subresource(json!({"mutation": {"status": [
        {"regex": {"path": "status.by", "replacement": "the service"}},
    ]}}));
    let mut model = Model::with_source(json!({}));
    model.source.as_mut().unwrap()["status"] = json!({"by": "me"});
    model.settle(&rules);
    assert_eq!(model.copy.unwrap()["status"], json!({"by": "me"}));
    assert_eq!(model.source.unwrap()["status"], json!({"by": "me"}));
}

#[test]
fn a_status_that_is_null_is_none() {
    let mut model = Model::with_source(json!({}));
    model.settle(&rules(json!({})));
    model.source.as_mut().unwrap()["status"] = json!({"ready": true});
    model.copy.as_mut().unwrap()["status"] = Value::Null;
    let plan = model.plan(&rules(json!({})));
    let Some(Step::WriteStatus { object, .. }) = plan.strands.iter().flatten().next() else { panic!("{plan:?}") };
    assert_eq!(object.get("status"), None);
}

#[test]
fn another_version_of_the_kind_in_kcp_does_not_change_the_copy() {
    let mut model = Model::with_source(json!({"replicas": 1}));
    model.settle(&rules(json!({})));
    model.source.as_mut().unwrap()["apiVersion"] = "example.com/v2".into();
    assert!(model.plan(&rules(json!({}))).is_settled());
    model.set_spec(json!({"replicas": 2}));
    let plan = model.plan(&rules(json!({})));
    let edits = plan.steps.iter().find_map(|step| if let Step::Edit { edits, .. } = step { Some(edits) } else { None });
    assert!(edits.unwrap().iter().all(|edit| edit.path[0] != "apiVersion"), "{edits:?}");
}

#[test]
fn a_copy_that_is_handed_over_becomes_what_its_new_source_says_and_comes_to_rest() {
    for (apply, replicas) in [(false, 1), (false, 5), (true, 1), (true, 5)] {
        let with = |spec: Value| Rules { apply, ..rules(spec) };
        let mut model = Model::with_source(json!({"replicas": 1}));
        model.source.as_mut().unwrap()["metadata"]["labels"] = json!({"team": "old", "both": "1"});
        model.settle(&with(json!({})));
        model.copy.as_mut().unwrap()["spec"]["replicas"] = replicas.into();
        model.copy.as_mut().unwrap()["metadata"]["labels"]["operator"] = "1".into();
        model.source.as_mut().unwrap()["metadata"]["uid"] = "another".into();
        model.source.as_mut().unwrap()["metadata"]["labels"] = json!({"new": "1", "both": "1"});
        model.settle(&with(json!({"adoption": "TakeOver"})));
        model.settle(&with(json!({})));
        let copy = model.copy.unwrap();
        assert_eq!(copy["spec"], json!({"replicas": 1}), "{apply} {replicas}");
        assert_eq!(copy["metadata"]["annotations"][REMOTE_UID], "another", "{apply} {replicas}");
        let labels = ["team", "both", "new", "operator"].map(|key| label(&copy, key).is_some());
        assert_eq!(labels, [false, true, true, true], "{apply} {replicas}: the labels of the earlier one go with it");
    }
}

#[test]
fn an_operators_change_survives_the_loss_of_the_memory() {
    let mut model = Model::with_source(json!({"replicas": 1, "image": "a"}));
    model.settle(&rules(json!({})));
    model.copy.as_mut().unwrap()["spec"]["image"] = "local".into();
    model.state = PrimaryState::default();
    model.settle(&rules(json!({})));
    assert_eq!(model.copy.unwrap()["spec"]["image"], "local");
}

#[test]
fn what_is_applied_holds_no_status_and_is_remembered_as_applied() {
    let applying = Rules { apply: true, ..rules(json!({})) };
    let mut model = Model::with_source(json!({"replicas": 1}));
    model.settle(&rules(json!({})));
    model.copy.as_mut().unwrap()["status"] = json!({"ready": true});
    model.settle(&rules(json!({})));
    model.set_spec(json!({"replicas": 2}));
    let plan = model.plan(&applying);
    let object =
        plan.steps.iter().find_map(|step| if let Step::Apply { object, .. } = step { Some(object) } else { None });
    assert_eq!(object.unwrap().get("status"), None, "{plan:?}");
    model.settle(&applying);
    assert!(model.state.entries().all(|(_, entry)| entry.is_applied()), "{:?}", model.state);
}

#[test]
fn related_objects_wait_until_both_primaries_agree() {
    let mut model = Model::with_source(json!({}));
    model.origin = Some(json!({"metadata": {"name": "creds", "namespace": "c1", "uid": "o"}, "data": {"k": "v"}}));
    model.settle(&secret_rules());
    model.set_spec(json!({"replicas": 2}));
    model.origin.as_mut().unwrap()["data"] = json!({"k": "w"});
    assert!(model.plan(&secret_rules()).strands.is_empty());
    model.settle(&secret_rules());
    assert_eq!(model.destination.unwrap()["data"], json!({"k": "w"}));
}

#[test]
fn a_change_waits_for_all_that_is_remembered() {
    let mut model = Model::with_source(json!({"replicas": 1}));
    model.settle(&rules(json!({})));
    model.state = model.state.sums();
    assert!(model.plan(&rules(json!({}))).is_settled(), "checksums tell that nothing has changed");
    model.set_spec(json!({"replicas": 2}));
    let plan = model.plan(&rules(json!({})));
    assert!(plan.needs_memory && plan.is_settled(), "{plan:?}");
}

#[test]
fn a_related_object_named_like_its_primary_is_distinguished_by_checksums_too() {
    let rules = rules(json!({"related": [{"identifier": "twin", "origin": "kcp", "kind": "Secret",
        "object": {"template": {"template": "my-cron"}}}]}));
    let mut model = Model::with_source(json!({}));
    model.settle(&rules);
    model.state = model.state.sums();
    model.destination =
        Some(json!({"metadata": {"name": "my-cron", "namespace": "default", "uid": "o"}, "data": {"k": "v"}}));
    let plan = model.plan(&rules);
    let [Step::Track { records }] = plan.steps.as_slice() else { panic!("{plan:?}") };
    assert_ne!(records[0].0, entry_key("c1", "default", "my-cron"));
}

#[test]
fn what_a_crash_leaves_unrecorded_is_recorded_by_the_next_write_that_is_needed_anyway() {
    for apply in [false, true] {
        let rules = Rules { apply, ..rules(json!({})) };
        let mut model = Model::with_source(json!({"replicas": 1}));
        let created = model.plan(&rules).steps.iter().position(|step| matches!(step, Step::Create { .. })).unwrap();
        model.crash_after(&rules, created + 1);
        assert_eq!(model.state, PrimaryState::default(), "nothing is remembered");
        let verbs: Vec<_> = model.plan(&rules).steps.iter().map(Step::verb).collect();
        // What may still be on its way to the copy is kept out first, unless the server does that.
        let needed = if apply { &["remember"][..] } else { &["edit", "remember"] };
        assert_eq!(verbs, needed, "apply {apply}: nothing is written only for that");
        model.settle(&rules);
        let note = model.state.entries().next().unwrap().1.copy.clone().unwrap();
        // Whether the agent made it is not inferred: what was adopted says so itself, and all else that bears the link goes with its order.
        assert_eq!((note.uid.as_str(), note.how), ("u", None), "apply {apply}");
        model.delete_source();
        model.settle(&rules);
        assert!(model.copy.is_none() && model.source.is_none(), "apply {apply}");
    }
}
