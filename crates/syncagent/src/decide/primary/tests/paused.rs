//! Orders that are paused: nothing is written that the pause forbids, and its end brings the newest state.

use carrick_json::merge;
use serde_json::{Value, json};

use super::{Model, rules, with_status};
use crate::api::{FINALIZER, PAUSE, PLACED_GENERATION};
use crate::decide::pause::Pauses;
use crate::decide::{Role, Step};
use crate::rules::Rules;
use crate::rules::metadata::annotation;
use crate::rules::tests::{crontab, published};

const SOON: &str = "2026-01-01T00:00:01Z";
const NOW: &str = "2026-01-01T00:00:00Z";

fn set_pause(object: &mut Option<Value>, value: Option<&str>) {
    merge::apply(object.as_mut().unwrap(), &json!({ "metadata": { "annotations": { PAUSE: value } } }));
}

/// An order that was placed, changed since, and whose copy has a new status.
fn changed(rules: &Rules) -> Model {
    let mut model = Model::with_source(json!({ "size": 1 }));
    model.source.as_mut().unwrap()["metadata"]["generation"] = 1.into();
    model.settle(rules);
    model.set_spec(json!({ "size": 2 }));
    model.source.as_mut().unwrap()["metadata"]["generation"] = 2.into();
    model.copy.as_mut().unwrap()["status"] = json!({ "ready": true });
    model
}

impl Model {
    /// The size on the copy, and whether the status has come back.
    fn arrived(&self) -> (i64, bool) {
        let size = self.copy.as_ref().unwrap()["spec"]["size"].as_i64().unwrap();
        (size, self.source.as_ref().unwrap()["status"]["ready"] == true)
    }

    /// On which sides the next plan writes.
    fn writes(&self, rules: &Rules) -> Vec<Role> {
        let plan = self.plan(rules);
        plan.steps.iter().chain(plan.strands.iter().flatten()).filter_map(Step::role).collect()
    }
}

#[test]
fn each_pause_stops_what_it_names_and_its_end_brings_the_newest_state() {
    let rules = rules(json!({ "feedback": "Annotations" }));
    for (value, wanted) in [
        ("Spec", (1, true)),
        ("Status", (2, false)),
        ("All", (1, false)),
        ("no such word", (1, true)),
        (&format!("All; until={SOON}; because=the disks are moved"), (1, false)),
        (&format!("All; until={NOW}"), (2, true)),
    ] {
        let mut model = changed(&rules);
        set_pause(&mut model.copy, Some(value));
        model.settle(&rules);
        assert_eq!(model.arrived(), wanted, "{value}");
        let generation = annotation(model.source.as_ref().unwrap(), PLACED_GENERATION);
        assert_eq!(generation, Some(if wanted.0 == 1 { "1" } else { "2" }), "{value}: what is placed is told as it is");
        assert!(model.writes(&rules).is_empty(), "{value}");
        model.set_spec(json!({ "size": 3 }));
        model.settle(&rules);
        set_pause(&mut model.copy, None);
        model.settle(&rules);
        assert_eq!(model.arrived(), (3, true), "{value}");
    }
}

#[test]
fn an_order_that_is_deleted_waits_only_if_everything_is_paused() {
    let rules = rules(json!({}));
    for (value, waits) in [("Spec", false), ("Status", false), ("All", true), (&format!("All; until={NOW}"), false)] {
        let mut model = changed(&rules);
        set_pause(&mut model.copy, Some(value));
        model.delete_source();
        model.settle(&rules);
        assert_eq!((model.copy.is_some(), model.source.is_some()), (waits, waits), "{value}");
        if waits {
            assert_eq!(model.source.as_ref().unwrap()["metadata"]["finalizers"], json!([FINALIZER]));
            set_pause(&mut model.copy, None);
            model.settle(&rules);
            assert!(model.copy.is_none() && model.source.is_none());
        }
    }
}

#[test]
fn consumers_pause_their_orders_only_where_they_may() {
    let (provider_only, both) = (rules(json!({})), rules(json!({ "pause": "Both" })));
    let mut model = changed(&both);
    set_pause(&mut model.source, Some("All"));
    model.settle(&both);
    assert_eq!(model.arrived(), (1, false));
    model.settle(&provider_only);
    assert_eq!(model.arrived(), (2, true), "the annotation means nothing there");

    let mut model = changed(&both);
    set_pause(&mut model.source, Some("Spec"));
    set_pause(&mut model.copy, Some("Status"));
    model.settle(&both);
    assert_eq!(model.arrived(), (1, false), "what either of them says counts");
    model.delete_source();
    model.settle(&both);
    assert!(model.source.is_none(), "neither of them says All");

    let mut model = Model::with_source(json!({ "size": 1 }));
    set_pause(&mut model.source, Some("Spec"));
    assert!(model.writes(&both).is_empty(), "a new order is neither held nor placed");
    set_pause(&mut model.source, Some("Status"));
    model.settle(&both);
    assert!(model.copy.is_some());
}

#[test]
fn the_annotation_crosses_in_neither_direction() {
    let rules = rules(json!({ "pause": "Both" }));
    let mut model = Model::with_source(json!({ "size": 1 }));
    set_pause(&mut model.source, Some("Status"));
    model.settle(&rules);
    assert_eq!(annotation(model.copy.as_ref().unwrap(), PAUSE), None);
    set_pause(&mut model.copy, Some("Spec"));
    model.settle(&rules);
    assert_eq!(annotation(model.source.as_ref().unwrap(), PAUSE), Some("Status"));
    assert_eq!(annotation(model.copy.as_ref().unwrap(), PAUSE), Some("Spec"), "and it stays where it is");
}

#[test]
fn nothing_is_repaired_on_a_copy_that_rests() {
    let rules = rules(json!({}));
    let mut model = changed(&rules);
    set_pause(&mut model.copy, Some("Spec"));
    model.copy.as_mut().unwrap()["metadata"]["annotations"][crate::api::REMOTE_UID] = Value::Null;
    model.state = crate::decide::state::PrimaryState::default();
    model.settle(&rules);
    assert_eq!(model.arrived(), (1, true), "also if nothing is remembered");
}

#[test]
fn a_status_that_is_a_field_does_not_carry_a_change_past_the_pause() {
    let rules = Rules::compile(&published(json!({})), &crontab(), "agent").unwrap();
    assert!(!rules.has_status() && super::rules(json!({})).has_status() && !with_status().spec.versions.is_empty());
    let mut model = changed(&rules);
    set_pause(&mut model.copy, Some("Spec"));
    model.settle(&rules);
    assert_eq!(model.arrived(), (1, false), "what would be remembered says that the change has arrived");
    set_pause(&mut model.copy, None);
    model.settle(&rules);
    assert_eq!(model.arrived(), (2, true));
}

#[test]
fn related_objects_rest_with_the_direction_in_which_they_travel() {
    for (origin, rests) in [("service", "Status"), ("kcp", "Spec")] {
        let rules = rules(json!({ "related": [{ "identifier": "creds", "origin": origin, "kind": "Secret",
            "object": { "template": { "template": "creds" } } }] }));
        for value in ["Spec", "Status", "All"] {
            let mut model = changed(&rules);
            set_pause(&mut model.copy, Some(value));
            let secret =
                json!({ "metadata": { "name": "creds", "namespace": "default", "uid": "o" }, "data": { "a": "b" } });
            let from = if origin == "kcp" { &mut model.destination } else { &mut model.origin };
            *from = Some(secret);
            model.settle(&rules);
            let there = if origin == "kcp" { &model.origin } else { &model.destination };
            assert_eq!(there.is_none(), value == "All" || value == rests, "{origin} {value}");
            set_pause(&mut model.copy, None);
            model.settle(&rules);
            let there = if origin == "kcp" { &model.origin } else { &model.destination };
            assert!(there.is_some(), "{origin} {value}");
        }
    }
}

#[test]
fn a_pause_is_put_into_words() {
    let rules = rules(json!({ "pause": "Both" }));
    let on = |value: &str| Some(json!({ "metadata": { "annotations": { PAUSE: value } } }));
    for (source, copy, words) in [
        (
            "rubbish",
            "",
            "Spec by its consumer by an annotation that cannot be read (\"rubbish\" is none of Spec, Status and All; write one of them)",
        ),
        (
            "",
            "All; until=2026-01-01T00:00:01Z; because=ticket 7",
            "All by its provider until 2026-01-01T00:00:01Z because: ticket 7",
        ),
        ("Status", "Spec", "Spec by its provider; Status by its consumer"),
    ] {
        let object = |value: &str| if value.is_empty() { Some(json!({})) } else { on(value) };
        let pauses = Pauses::of(&rules, &object(source).unwrap(), object(copy).as_ref(), NOW);
        assert_eq!(pauses.words(), words);
    }
}
