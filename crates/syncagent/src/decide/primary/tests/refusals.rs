//! What the provider does not want, and what consumers are told.

use super::*;
use crate::api::{FINALIZER, PLACED_GENERATION, REFUSAL, WITHDRAWAL};
use crate::decide::Refusal;
use crate::rules::Duty;

fn refused(model: &Model, rules: &Rules) -> Option<String> {
    match model.try_plan(rules) {
        Err(DecideError::Refused(why)) => Some(why.to_string()),
        other => other.map(|_| None).unwrap(),
    }
}

fn admitting(expression: &str) -> Rules {
    let pr = published(json!({"admission": [{"expression": expression, "message": "no"}], "feedback": "Annotations"}));
    Rules::compile(&pr, &with_status(), "agent").unwrap().admitting(&pr, &with_status()).unwrap()
}

#[test]
fn above_the_limit_nothing_is_written_and_what_is_placed_stays() {
    let limited = rules(json!({"limits": {"objectsPerWorkspace": 2}}));
    let mut model = Model { ahead: 2, ..Model::with_source(json!({"image": "a"})) };
    assert_eq!(refused(&model, &limited), Some(Refusal::Limit(2).to_string()));
    model.ahead = 1;
    model.settle(&limited);
    assert!(model.copy.is_some());
    // The limit is lowered, and its spec changes.
    let none = rules(json!({"limits": {"objectsPerWorkspace": 0}}));
    model.ahead = 7;
    model.source.as_mut().unwrap()["spec"]["image"] = json!("b");
    model.settle(&none);
    assert_eq!(model.copy.as_ref().unwrap()["spec"]["image"], "b");
    // And it can end.
    model.source.as_mut().unwrap()["metadata"]["deletionTimestamp"] = json!("now");
    model.settle(&none);
    assert!(model.copy.is_none() && model.source.is_none());
}

#[test]
fn what_breaks_a_rule_is_not_placed_and_its_change_is_not_carried_over() {
    let strict = admitting("self.spec.replicas <= 3");
    let mut model = Model::with_source(json!({"replicas": 4}));
    model.source.as_mut().unwrap()["metadata"]["generation"] = json!(1);
    assert_eq!(refused(&model, &strict).as_deref(), Some("no"));
    model.source.as_mut().unwrap()["spec"]["replicas"] = json!(3);
    model.settle(&strict);
    assert_eq!(model.copy.as_ref().unwrap()["spec"]["replicas"], 3);
    let annotations = |model: &Model| model.source.as_ref().unwrap()["metadata"]["annotations"].clone();
    assert_eq!(annotations(&model)[PLACED_GENERATION], "1");
    assert_eq!(annotations(&model)[REFUSAL], Value::Null);
    model.source.as_mut().unwrap()["spec"]["replicas"] = json!(5);
    assert_eq!(refused(&model, &strict).as_deref(), Some("no"));
    // A rule that is made later does not disturb what is in line: its status still comes back.
    model.source.as_mut().unwrap()["spec"]["replicas"] = json!(3);
    model.copy.as_mut().unwrap()["status"] = json!({"phase": "fine"});
    let stricter = admitting("self.spec.replicas <= 1");
    model.source.as_mut().unwrap()["metadata"]["labels"] = json!({"a": "b"});
    model.settle(&stricter);
    assert_eq!(model.source.as_ref().unwrap()["status"]["phase"], "fine");
    assert_eq!(model.copy.as_ref().unwrap()["metadata"]["labels"]["a"], "b");
    // The same where copies are written by server-side apply.
    let applying = Rules { apply: true, ..admitting("self.spec.replicas <= 1") };
    model.settle(&applying);
    model.source.as_mut().unwrap()["metadata"]["labels"] = json!({"a": "c"});
    model.settle(&applying);
    model.source.as_mut().unwrap()["spec"]["replicas"] = json!(2);
    assert_eq!(refused(&model, &applying).as_deref(), Some("no"));
}

#[test]
fn what_is_withdrawn_is_told_so_before_it_is_released() {
    let mut model = Model::with_source(json!({"image": "a"}));
    model.settle(&rules(json!({})));
    let ending = Rules { duty: Duty::Release, withdrawal: Some("today".to_owned()), ..rules(json!({})) };
    model.settle(&ending);
    let metadata = &model.source.as_ref().unwrap()["metadata"];
    assert_eq!(metadata["annotations"][WITHDRAWAL], "today");
    assert!(!metadata["finalizers"].as_array().is_some_and(|all| all.contains(&json!(FINALIZER))), "{metadata}");
    assert!(model.copy.is_some());
}

#[test]
fn a_finalizer_that_a_consumer_sets_is_no_place() {
    let limited = rules(json!({"limits": {"objectsPerWorkspace": 2}}));
    let mut model = Model { ahead: 2, ..Model::with_source(json!({"image": "a"})) };
    let metadata = &mut model.source.as_mut().unwrap()["metadata"];
    metadata["finalizers"] = json!([FINALIZER]);
    metadata["annotations"] = json!({ HELD_BY: "agent" });
    assert_eq!(refused(&model, &limited), Some(Refusal::Limit(2).to_string()));
    // What was placed keeps its place, also while it has no copy.
    model.ahead = 0;
    model.settle(&limited);
    (model.copy, model.ahead) = (None, 2);
    assert_eq!(refused(&model, &limited), None);
}

#[test]
fn a_change_of_labels_must_keep_the_rules_with_either_memory() {
    for apply in [false, true] {
        let labelled = |expression: &str| Rules { apply, ..admitting(expression) };
        let rules = labelled(
            "!has(self.metadata.labels) || !('tier' in self.metadata.labels) || self.metadata.labels['tier'] != 'gold'",
        );
        let mut model = Model::with_source(json!({"replicas": 4}));
        model.settle(&rules);
        let label = |model: &mut Model, tier: &str| {
            model.source.as_mut().unwrap()["metadata"]["labels"] = json!({ "tier": tier });
        };
        label(&mut model, "silver");
        model.settle(&rules);
        assert_eq!(model.copy.as_ref().unwrap()["metadata"]["labels"]["tier"], "silver");
        label(&mut model, "gold");
        assert_eq!(refused(&model, &rules).as_deref(), Some("no"), "apply {apply}");
        // And so must the removal of a field.
        let needing = labelled("has(self.spec.image)");
        let mut model = Model::with_source(json!({"replicas": 4, "image": "a"}));
        model.settle(&needing);
        model.source.as_mut().unwrap()["spec"] = json!({"replicas": 4});
        assert_eq!(refused(&model, &needing).as_deref(), Some("no"), "apply {apply}");
    }
}

#[test]
fn a_mark_that_something_removes_costs_one_more_apply_and_holds_up_no_status() {
    let applying = Rules { apply: true, ..rules(json!({})) };
    let mut model = Model::with_source(json!({"image": "a"}));
    let strip = |model: &mut Model| {
        if let Some(annotations) = model.copy.as_mut().and_then(|copy| copy["metadata"]["annotations"].as_object_mut())
        {
            annotations.remove(WORDS.applied_state);
        }
    };
    for image in ["a", "b", "c"] {
        model.source.as_mut().unwrap()["spec"]["image"] = json!(image);
        let mut applies = 0;
        for _ in 0..8 {
            let plan = model.plan(&applying);
            applies += plan.steps.iter().filter(|step| matches!(step, Step::Apply { .. })).count();
            plan.steps.into_iter().chain(plan.strands.into_iter().flatten()).for_each(|step| model.execute(step));
            strip(&mut model);
        }
        assert!(applies <= 2, "{applies} applies");
        assert_eq!(model.copy.as_ref().unwrap()["spec"]["image"], image);
        model.copy.as_mut().unwrap()["status"] = json!({ "phase": image });
        let plan = model.plan(&applying);
        plan.steps.into_iter().chain(plan.strands.into_iter().flatten()).for_each(|step| model.execute(step));
        assert_eq!(model.source.as_ref().unwrap()["status"]["phase"], image);
    }
}

#[test]
fn what_changes_while_apply_is_switched_off_keeps_what_is_the_operators_and_removes_what_was_ours() {
    let applying = Rules { apply: true, ..rules(json!({})) };
    let mut model = Model::with_source(json!({"image": "a", "replicas": 1}));
    model.source.as_mut().unwrap()["metadata"]["labels"] = json!({"ours": "1"});
    model.settle(&applying);
    // From now on its fields are owned by an apply.
    model.source.as_mut().unwrap()["spec"]["image"] = json!("b");
    model.settle(&applying);
    let copy = model.copy.as_mut().unwrap();
    copy["spec"]["owner"] = json!("operator");
    copy["metadata"]["labels"]["theirs"] = json!("2");
    // While no agent runs, the order changes.
    let source = model.source.as_mut().unwrap();
    source["metadata"]["labels"] = json!({});
    source["spec"] = json!({"image": "c"});
    let remembering = rules(json!({}));
    model.settle(&remembering);
    let copy = model.copy.as_ref().unwrap();
    assert_eq!(copy["spec"], json!({"image": "c", "owner": "operator"}));
    assert_eq!((&copy["metadata"]["labels"]["theirs"], copy["metadata"]["labels"].get("ours")), (&json!("2"), None));
    // And the memory is that of states from now on.
    assert!(model.state.entries().all(|(_, entry)| entry.last.as_ref().is_some_and(|last| last.whole().is_some())));
}
