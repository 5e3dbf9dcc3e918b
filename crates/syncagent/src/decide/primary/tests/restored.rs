//! Orders that have gone back in time.

use serde_json::{Value, json};

use super::{Model, rules};
use crate::api::{AFTER_RESTORE, PLACED_GENERATION, REMOTE_GENERATION};
use crate::decide::{DecideError, Setback, Step};
use crate::rules::metadata::annotation;

/// An order whose generation counts what is done to it.
fn ordered(size: i64) -> Model {
    let mut model = Model::with_source(json!({ "size": size }));
    model.source.as_mut().unwrap()["metadata"]["generation"] = 1.into();
    model
}

impl Model {
    fn edit(&mut self, size: i64) {
        let source = self.source.as_mut().unwrap();
        source["spec"]["size"] = size.into();
        let generation = source["metadata"]["generation"].as_i64().unwrap() + 1;
        source["metadata"]["generation"] = generation.into();
    }

    fn annotate(&mut self, key: &str, value: &str) {
        self.source.as_mut().unwrap()["metadata"]["annotations"][key] = value.into();
    }

    fn said(&self) -> Option<String> {
        annotation(self.source.as_ref().unwrap(), AFTER_RESTORE).map(str::to_owned)
    }

    /// The size on the copy, and the generation that it was made for.
    fn placed(&self) -> (Option<i64>, Option<&str>) {
        let copy = self.copy.as_ref();
        (copy.and_then(|copy| copy["spec"]["size"].as_i64()), copy.and_then(|copy| annotation(copy, REMOTE_GENERATION)))
    }

    /// Follows plans until the order is held, and returns why.
    fn hold(&mut self, rules: &crate::rules::Rules) -> Setback {
        for _ in 0..3 {
            match self.try_plan(rules) {
                Err(DecideError::Held(setback)) => return setback,
                Err(error) => panic!("{error}"),
                Ok(plan) => {
                    let only_annotated = |step: &Step| matches!(step, Step::Patch { at, .. } if at.side.is_consumer());
                    assert!(plan.steps.iter().all(only_annotated) && plan.strands.is_empty(), "{plan:?}");
                    plan.steps.into_iter().for_each(|step| self.execute(step));
                }
            }
        }
        panic!("it is not held");
    }
}

/// A model with a copy of its third generation, and the order as it was at its second.
fn gone_back(rules: &crate::rules::Rules) -> Model {
    let mut model = ordered(1);
    model.settle(rules);
    model.edit(2);
    model.settle(rules);
    let snapshot: Value = model.source.clone().unwrap();
    model.edit(3);
    model.settle(rules);
    assert_eq!(model.placed(), (Some(3), Some("3")));
    model.source = Some(snapshot);
    model
}

#[test]
fn an_older_order_is_held_until_somebody_decides_and_whatever_becomes_of_it_meanwhile() {
    let rules = rules(json!({}));
    let mut model = gone_back(&rules);
    assert_eq!(model.hold(&rules), Setback::Older { done: 3, now: 2 });
    assert_eq!((model.placed(), model.said().as_deref()), ((Some(3), Some("3")), Some("Hold")));
    // Edits do not let it slip through, not even beyond the generation that was carried out.
    for size in 10..14 {
        model.edit(size);
        model.hold(&rules);
        assert_eq!(model.placed(), (Some(3), Some("3")));
    }
    model.annotate(AFTER_RESTORE, "Follow");
    model.settle(&rules);
    assert_eq!((model.placed(), model.said()), ((Some(13), Some("6")), None));
    model.edit(20);
    model.settle(&rules);
    assert_eq!(model.placed(), (Some(20), Some("7")));
}

#[test]
fn an_older_order_that_is_let_go_on_counts_on_from_there() {
    let rules = rules(json!({}));
    let mut model = gone_back(&rules);
    model.hold(&rules);
    model.annotate(AFTER_RESTORE, "Follow");
    model.settle(&rules);
    assert_eq!((model.placed(), model.said()), ((Some(2), Some("2")), None));
    model.edit(9);
    model.settle(&rules);
    assert_eq!(model.placed(), (Some(9), Some("3")));
}

#[test]
fn whoever_applies_the_newest_version_again_needs_nobody() {
    let rules = rules(json!({"feedback": "Annotations"}));
    // After it was held, and before.
    for held in [true, false] {
        let mut model = gone_back(&rules);
        // The third change comes back as the fourth, and must still count.
        model.source.as_mut().unwrap()["metadata"]["generation"] = 1.into();
        if held {
            model.hold(&rules);
        }
        model.edit(3);
        model.settle(&rules);
        assert_eq!((model.placed(), model.said()), ((Some(3), Some("2")), None));
        assert_eq!(annotation(model.source.as_ref().unwrap(), PLACED_GENERATION), Some("2"));
        model.edit(4);
        model.settle(&rules);
        assert_eq!(model.placed(), (Some(4), Some("3")));
    }
}

#[test]
fn a_provider_may_follow_at_once() {
    let follow = rules(json!({"afterRestore": "Follow"}));
    let mut model = gone_back(&follow);
    model.settle(&follow);
    assert_eq!((model.placed(), model.said()), ((Some(2), Some("2")), None));
    // Also for what is held already.
    let hold = rules(json!({"afterRestore": "Hold"}));
    let mut model = gone_back(&hold);
    model.hold(&hold);
    model.settle(&follow);
    assert_eq!((model.placed(), model.said()), ((Some(2), Some("2")), None));
}

#[test]
fn an_order_that_ended_and_comes_back_gets_no_copy_until_somebody_decides() {
    let rules = rules(json!({}));
    let mut model = ordered(1);
    model.settle(&rules);
    let snapshot = model.source.clone();
    model.delete_source();
    while model.source.is_some() {
        model.plan(&rules).steps.into_iter().for_each(|step| model.execute(step));
    }
    assert!(model.copy.is_none() && model.state.is_empty());
    (model.source, model.ended) = (snapshot, true);
    assert_eq!(model.hold(&rules), Setback::Returned);
    assert_eq!((model.placed(), model.said().as_deref()), ((None, None), Some("Hold")));
    // Whoever does not want it deletes it again.
    let mut deleted = Model { source: model.source.clone(), ended: true, ..Model::default() };
    deleted.delete_source();
    deleted.plan(&rules).steps.into_iter().for_each(|step| deleted.execute(step));
    assert!(deleted.source.is_none());
    // Wherever the agent dies on the way.
    for count in 0.. {
        let mut model = Model { source: model.source.clone(), ended: true, ..Model::default() };
        model.annotate(AFTER_RESTORE, "Follow");
        let enough = model.crash_after(&rules, count);
        model.settle(&rules);
        assert_eq!((model.placed(), model.said()), ((Some(1), Some("1")), None), "after {count} steps");
        // Drift is repaired as for any other order.
        model.copy = None;
        model.settle(&rules);
        assert_eq!(model.placed(), (Some(1), Some("1")));
        if !enough {
            break;
        }
    }
}

#[test]
fn what_is_deleted_while_it_is_held_goes_with_its_copy() {
    let rules = rules(json!({}));
    let mut model = gone_back(&rules);
    model.hold(&rules);
    model.delete_source();
    model.settle(&rules);
    assert!(model.source.is_none() && model.copy.is_none());
}

#[test]
fn a_restored_service_cluster_gets_what_was_ordered() {
    let rules = rules(json!({}));
    let mut model = ordered(1);
    model.settle(&rules);
    let (copy, state) = (model.copy.clone(), model.state.clone());
    model.edit(2);
    model.settle(&rules);
    // The copy and what is remembered go back together.
    (model.copy, model.state) = (copy, state);
    model.settle(&rules);
    assert_eq!(model.placed(), (Some(2), Some("2")));
    // What was made since is made again.
    (model.copy, model.state) = (None, crate::decide::state::PrimaryState::default());
    model.settle(&rules);
    assert_eq!((model.placed(), model.said()), ((Some(2), Some("2")), None));
}

#[test]
fn copies_of_older_agents_are_neither_held_nor_written() {
    let rules = rules(json!({}));
    let mut model = gone_back(&rules);
    let annotations = model.copy.as_mut().unwrap()["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.remove(REMOTE_GENERATION);
    model.edit(3);
    assert!(model.plan(&rules).is_settled(), "its absence is no reason to write");
    model.edit(4);
    model.settle(&rules);
    assert_eq!(model.placed(), (Some(4), Some("4")));
}
