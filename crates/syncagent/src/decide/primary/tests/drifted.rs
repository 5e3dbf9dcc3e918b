//! What others change of a copy: reported or set back as the rules say, never against what the server stores, and never for ever.

use carrick_json::merge;
use carrick_sync::drift::DriftedCopy;
use serde_json::{Value, json};

use super::{Model, key, rules};
use crate::api::PAUSE;
use crate::decide::drift::{MOST_REVERTS, WINDOW};
use crate::decide::state::{PrimaryState, checksum, entry_key};
use crate::decide::{Plan, Step};
use crate::rules::Rules;

const POLICIES: [&str; 3] = ["Ignore", "Report", "Revert"];

fn drifting(policy: &str) -> Rules {
    rules(json!({ "drift": { "policy": policy, "fields": [
        { "path": "spec.free", "policy": "Ignore" }, { "path": "spec.firm", "policy": "Revert" },
    ] } }))
}

fn placed(rules: &Rules, spec: Value) -> Model {
    let mut model = Model::with_source(spec);
    model.settle(rules);
    model
}

impl Model {
    /// Somebody else changes the copy.
    fn meddle(&mut self, spec: Value) {
        merge::apply(self.copy.as_mut().unwrap(), &json!({ "spec": spec }));
        self.revision += 1;
        self.copy.as_mut().unwrap()["metadata"]["resourceVersion"] = format!("m{}", self.revision).into();
    }

    fn at_second(&mut self, second: i64) {
        self.now = jiff::Timestamp::from_second(1_800_000_000 + second).unwrap().to_string();
    }

    fn found(&self, rules: &Rules) -> Option<DriftedCopy> {
        self.plan(rules).drift.and_then(|mut all| all.pop())
    }

    fn spec(&self) -> &Value {
        &self.copy.as_ref().unwrap()["spec"]
    }

    /// Executes one plan; returns whether it writes the copy.
    fn step(&mut self, rules: &Rules) -> bool {
        let Plan { steps, strands, .. } = self.plan(rules);
        let all: Vec<Step> = steps.into_iter().chain(strands.into_iter().flatten()).collect();
        let writes =
            all.iter().any(|step| matches!(step, Step::Edit { .. } | Step::Apply { .. } | Step::Replace { .. }));
        for step in all {
            self.execute(step);
        }
        writes
    }

    fn seen(&self) -> Option<&carrick_sync::drift::Seen> {
        let key = key();
        self.state.entry(&entry_key(&key.cluster, &key.namespace, &key.name))?.seen.as_ref()
    }
}

/// Both ways of writing.
fn ways(policy: &str) -> [Rules; 2] {
    [false, true].map(|apply| Rules { apply, ..drifting(policy) })
}

#[test]
fn what_is_ignored_costs_nothing_and_is_not_remembered() {
    for apply in [false, true] {
        let plain = Rules { apply, ..rules(json!({})) };
        let ignoring = Rules { apply, ..rules(json!({ "drift": { "policy": "Ignore" } })) };
        let mut models = [placed(&plain, json!({ "size": 1 })), placed(&ignoring, json!({ "size": 1 }))];
        for model in &mut models {
            model.meddle(json!({ "size": 7 }));
            assert_eq!((model.plan(&ignoring).is_settled(), model.plan(&ignoring).drift), (true, None));
        }
        let data = models.map(|model| model.state.to_data());
        assert_eq!(data[0], data[1]);
        assert!(!data[0].keys().any(|key| key.contains(".seen")));
    }
}

#[test]
fn a_changed_field_is_reported_once_with_who_changed_it() {
    for rules in ways("Report") {
        let mut model = placed(&rules, json!({ "size": 1, "free": 1 }));
        assert_eq!(model.found(&rules).unwrap().fields.len(), 0);
        model.meddle(json!({ "size": 7, "free": 7, "added": 1 }));
        model.managed = json!([{ "manager": "kubectl-edit", "operation": "Update", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": { "f:spec": { "f:size": {} } } }]);
        let found = model.found(&rules).unwrap();
        assert!(found.news && !found.contested && found.reverted.is_empty());
        assert_eq!(found.fields.into_iter().collect::<Vec<_>>(), [("spec.size".into(), "kubectl-edit".into())]);
        model.settle(&rules);
        assert_eq!(model.spec(), &json!({ "size": 7, "free": 7, "added": 1 }), "it stays");

        // A restart reports the same, and asks nobody: there is nothing to write.
        model.managed = Value::Null;
        let plan = model.plan(&rules);
        assert!(plan.is_settled());
        let found = &plan.drift.unwrap()[0];
        assert!(!found.news && found.fields["spec.size"] == "kubectl-edit");
        // Another value is no news, another field is.
        model.meddle(json!({ "size": 8 }));
        assert!(model.plan(&rules).is_settled());
        model.set_spec(json!({ "size": 8, "free": 1 }));
        model.settle(&rules);
        assert_eq!(model.found(&rules).unwrap().fields.len(), 0, "the order has changed the same field");
        model.meddle(json!({ "size": 9 }));
        model.settle(&rules);
        model.meddle(json!({ "size": 8 }));
        model.settle(&rules);
        assert!(model.found(&rules).unwrap().fields.is_empty() && model.seen().unwrap().drift.is_empty());
    }
}

#[test]
fn a_removed_field_and_a_label_drift_too() {
    let rules = drifting("Report");
    let mut model = Model::with_source(json!({ "deep": { "a": 1, "b": 2 } }));
    model.source.as_mut().unwrap()["metadata"]["labels"] = json!({ "example.com/tier": "gold" });
    model.settle(&rules);
    merge::apply(
        model.copy.as_mut().unwrap(),
        &json!({ "spec": { "deep": null }, "metadata": { "labels": { "example.com/tier": "lead" } } }),
    );
    let fields: Vec<String> = model.found(&rules).unwrap().fields.into_keys().collect();
    assert_eq!(fields, ["metadata.labels[example.com/tier]", "spec.deep.a", "spec.deep.b"]);
}

#[test]
fn a_change_of_another_field_does_not_hide_drift() {
    let rules = drifting("Report");
    let mut model = placed(&rules, json!({ "size": 1, "region": "eu" }));
    model.meddle(json!({ "size": 7 }));
    model.settle(&rules);
    model.set_spec(json!({ "size": 1, "region": "us" }));
    model.settle(&rules);
    assert_eq!(model.spec(), &json!({ "size": 7, "region": "us" }));
    let found = model.found(&rules).unwrap();
    assert!(found.fields.contains_key("spec.size") && !found.news, "{found:?}");
}

/// A server that stores some values in another form, and has a default.
fn normalise(model: &mut Model) {
    let Some(copy) = &mut model.copy else { return };
    if copy["spec"]["cpu"] == "1000m" {
        copy["spec"]["cpu"] = "1".into();
    }
    copy["spec"]["class"] = "standard".into();
}

#[test]
fn what_a_server_makes_of_a_value_is_no_drift() {
    for policy in ["Report", "Revert"] {
        for rules in ways(policy) {
            let mut model = Model::with_source(json!({ "cpu": "1000m", "size": 1 }));
            for size in 1..4 {
                model.set_spec(json!({ "cpu": "1000m", "size": size }));
                for _ in 0..6 {
                    for step in model.plan(&rules).steps {
                        // The server answers with what it has stored.
                        let writes = matches!(step, Step::Create { .. } | Step::Edit { .. } | Step::Apply { .. });
                        model.execute(step);
                        if writes {
                            normalise(&mut model);
                        }
                    }
                    for step in model.plan(&rules).strands.into_iter().flatten() {
                        model.execute(step);
                    }
                }
                let plan = model.plan(&rules);
                assert!(plan.is_settled(), "{:?}", plan.steps);
                assert_eq!(plan.drift.unwrap()[0].fields.len(), 0, "{policy} {size}");
            }
        }
    }
}

#[test]
fn what_is_not_known_is_recorded_and_not_reported() {
    for rules in ways("Revert") {
        let ignoring = Rules { apply: rules.apply, ..super::rules(json!({})) };
        let mut model = placed(&ignoring, json!({ "size": 1 }));
        model.meddle(json!({ "size": 7 }));
        model.settle(&rules);
        assert_eq!(model.spec()["size"], 7, "nobody knows whose it is");
        assert_eq!(model.found(&rules).unwrap().fields.len(), 0);
        model.meddle(json!({ "size": 8 }));
        model.settle(&rules);
        assert_eq!(model.spec()["size"], 1, "from then on it is known");
    }
}

#[test]
fn what_is_set_back_is_set_back_alone() {
    for rules in ways("Report") {
        let mut model = placed(&rules, json!({ "size": 1, "firm": 1, "free": 1 }));
        model.meddle(json!({ "size": 7, "firm": 7, "free": 7, "added": 7 }));
        model.at_second(0);
        let found = model.found(&rules).unwrap();
        assert_eq!(found.reverted.keys().collect::<Vec<_>>(), ["spec.firm"]);
        model.settle(&rules);
        assert_eq!(model.spec(), &json!({ "size": 7, "firm": 1, "free": 7, "added": 7 }));
        assert_eq!(model.found(&rules).unwrap().fields.keys().collect::<Vec<_>>(), ["spec.size"]);
    }
}

#[test]
fn no_fight_lasts() {
    for rules in ways("Revert") {
        let mut model = placed(&rules, json!({ "size": 1 }));
        let mut reverts = Vec::new();
        for second in 0..2 * WINDOW {
            model.at_second(second);
            model.meddle(json!({ "size": 7 }));
            reverts.extend(model.step(&rules).then_some(second));
        }
        assert_eq!(reverts.len(), 2 * MOST_REVERTS, "{reverts:?}");
        for (i, second) in reverts.iter().enumerate().skip(MOST_REVERTS) {
            assert!(second - reverts[i - MOST_REVERTS] >= WINDOW, "{reverts:?}");
        }
        let found = model.found(&rules).unwrap();
        assert!(found.contested && !found.news && found.fields.contains_key("spec.size"));
        assert!(model.plan(&rules).is_settled(), "it is reported, not written");
        // The order can still change it.
        model.set_spec(json!({ "size": 2 }));
        model.settle(&rules);
        assert_eq!(model.spec()["size"], 2);
    }
}

#[test]
fn a_revert_that_does_not_arrive_counts_once() {
    let rules = drifting("Revert");
    let mut model = placed(&rules, json!({ "size": 1 }));
    model.at_second(0);
    model.meddle(json!({ "size": 7 }));
    for _ in 0..10 {
        // The agent dies, or the server does not answer, after the intention was recorded.
        let note = model.plan(&rules).steps.into_iter().find(|step| matches!(step, Step::RememberSeen { .. }));
        if let Some(step) = note {
            model.execute(step);
        }
        assert_eq!(model.seen().unwrap().reverts.len(), 1);
    }
    model.settle(&rules);
    assert_eq!(model.spec()["size"], 1);
}

#[test]
fn a_copy_that_rests_or_goes_is_not_set_back() {
    let rules = drifting("Revert");
    for (patch, reported) in [
        (json!({ "metadata": { "annotations": { PAUSE: "Spec" } } }), true),
        (json!({ "metadata": { "deletionTimestamp": "now", "finalizers": ["operator"] } }), false),
    ] {
        let mut model = placed(&rules, json!({ "size": 1 }));
        merge::apply(model.copy.as_mut().unwrap(), &patch);
        model.meddle(json!({ "size": 7 }));
        assert_eq!(model.found(&rules).is_some_and(|found| !found.fields.is_empty()), reported);
        model.step(&rules);
        model.step(&rules);
        assert_eq!(model.spec()["size"], 7);
    }
}

#[test]
fn a_crash_after_any_step_neither_reverts_what_stays_nor_forgets_what_drifted() {
    for policy in POLICIES {
        for rules in ways(policy) {
            for at in 0..8 {
                let mut model = placed(&rules, json!({ "size": 1, "region": "eu" }));
                model.at_second(0);
                model.meddle(json!({ "size": 7 }));
                model.crash_after(&rules, at);
                model.settle(&rules);
                model.set_spec(json!({ "size": 1, "region": "us" }));
                model.crash_after(&rules, at);
                model.settle(&rules);
                let wanted = if policy == "Revert" || rules.apply { 1 } else { 7 };
                assert_eq!(model.spec(), &json!({ "size": wanted, "region": "us" }), "{policy} {at}");
            }
        }
    }
}

#[test]
fn a_lost_state_writes_the_copy_once_and_no_more() {
    let rules = drifting("Revert");
    let mut model = placed(&rules, json!({ "size": 1 }));
    model.state = PrimaryState::default();
    model.settle(&rules);
    assert!(model.seen().is_some() && model.plan(&rules).is_settled());
}

#[test]
fn a_status_that_is_a_field_does_not_hide_drift() {
    let published = crate::rules::tests::published(json!({ "drift": { "policy": "Report" } }));
    let rules = Rules::compile(&published, &crate::rules::tests::crontab(), "agent").unwrap();
    let mut model = placed(&rules, json!({ "size": 1 }));
    model.meddle(json!({ "size": 7 }));
    model.settle(&rules);
    model.copy.as_mut().unwrap()["status"] = json!({ "ready": true });
    model.settle(&rules);
    assert_eq!(model.source.as_ref().unwrap()["status"]["ready"], true);
    assert_eq!(model.found(&rules).unwrap().fields.keys().collect::<Vec<_>>(), ["spec.size"]);
}

#[test]
fn copies_of_related_objects_from_kcp_are_watched_too() {
    for (policy, data) in [("Report", "bWVkZGxlZA=="), ("Revert", "dmFsdWU=")] {
        let rules = rules(json!({ "related": [{ "identifier": "creds", "origin": "kcp", "kind": "Secret",
            "object": { "template": { "template": "creds" } }, "drift": { "policy": policy } }] }));
        let mut model = placed(&rules, json!({ "size": 1 }));
        model.destination = Some(
            json!({ "metadata": { "name": "creds", "namespace": "default", "uid": "o", "resourceVersion": "5" }, "data": { "a": "dmFsdWU=" } }),
        );
        model.settle(&rules);
        model.at_second(0);
        merge::apply(model.origin.as_mut().unwrap(), &json!({ "data": { "a": "bWVkZGxlZA==" } }));
        let found = model.found(&rules).unwrap();
        assert_eq!(found.fields.len() + found.reverted.len(), 1, "{found:?}");
        model.settle(&rules);
        assert_eq!(model.origin.as_ref().unwrap()["data"]["a"], data, "{policy}");
    }
    let from_service = json!({ "related": [{ "identifier": "creds", "origin": "service", "kind": "Secret",
        "object": { "template": { "template": "creds" } }, "drift": { "policy": "Report" } }] });
    let error =
        Rules::compile(&crate::rules::tests::published(from_service), &super::with_status(), "agent").unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("spec.related[0].drift is only for related objects whose origin is kcp"), "{text}");
}

#[test]
fn what_was_edited_before_it_was_noted_and_is_as_ordered_again_is_never_contested() {
    for rules in ways("Revert") {
        let mut model = placed(&rules, json!({ "size": 1, "region": "eu" }));
        // Somebody edited the size before what the server stored was noted, and an apply has written it since.
        let (key, mut seen) = (key(), model.seen().unwrap().clone());
        seen.altered.insert("spec.size".to_owned(), checksum(&json!(7)));
        model.state.note_seen(&entry_key(&key.cluster, &key.namespace, &key.name), seen);
        assert!(model.plan(&rules).is_settled());
        assert_eq!(model.found(&rules).unwrap().fields.len(), 0);

        model.meddle(json!({ "region": "us" }));
        let found = model.found(&rules).unwrap();
        assert_eq!(
            (found.reverted.into_keys().collect::<Vec<_>>(), found.contested),
            (vec!["spec.region".into()], false)
        );
        model.settle(&rules);
        assert_eq!(model.spec(), &json!({ "size": 1, "region": "eu" }));
        if rules.apply {
            assert!(model.seen().unwrap().altered.is_empty(), "the apply has written it, and that counts as stored");
            model.meddle(json!({ "size": 7 }));
            model.settle(&rules);
            assert_eq!(model.spec()["size"], 1);
        }
    }
}

#[test]
fn a_copy_that_rests_is_measured_against_what_it_was_last_written_for() {
    let rules = drifting("Report");
    let managed = json!([{ "manager": "kubectl-edit", "operation": "Update", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": { "f:spec": { "f:size": {}, "f:region": {} } } }]);
    let pause = |model: &mut Model, value: Option<&str>| {
        merge::apply(model.copy.as_mut().unwrap(), &json!({ "metadata": { "annotations": { PAUSE: value } } }));
    };
    let named = |model: &Model| model.found(&rules).map(|found| found.fields.into_keys().collect::<Vec<_>>());
    for order_first in [true, false] {
        let mut model = placed(&rules, json!({ "size": 1, "region": "eu", "tier": "a" }));
        model.managed = managed.clone();
        pause(&mut model, Some("Spec"));
        model.settle(&rules);
        if order_first {
            model.set_spec(json!({ "size": 1, "region": "us", "tier": "b" }));
            model.settle(&rules);
            assert_eq!(named(&model).unwrap_or_default(), [""; 0], "what has not arrived is nobody's drift");
        }
        model.meddle(json!({ "size": 7, "region": "us" }));
        if !order_first {
            model.settle(&rules);
            model.set_spec(json!({ "size": 1, "region": "us", "tier": "b" }));
        }
        assert_eq!(named(&model).unwrap(), ["spec.size"], "the region is what is ordered now");
        model.settle(&rules);
        // After a restart all that is known comes from the state Secret.
        assert_eq!((named(&model).unwrap(), model.found(&rules).unwrap().news), (vec!["spec.size".to_owned()], false));
        assert_eq!(model.spec(), &json!({ "size": 7, "region": "us", "tier": "a" }));

        pause(&mut model, None);
        model.settle(&rules);
        assert_eq!(model.spec(), &json!({ "size": 7, "region": "us", "tier": "b" }));
        assert_eq!(named(&model).unwrap(), ["spec.size"]);
    }
}
