//! The models: what is published, what people do, what may go wrong, and the defects that each has to find.

use std::time::Instant;

use carrick_syncagent::rules::Rules;
use carrick_syncagent::rules::crd::Crd;
use serde_json::{Value, json};

use super::drift::{Chances, DriftDefect, DriftWorld};
use super::order::{Act, Faults, OrderWorld};
use super::planted::Planted;
use super::{Counterexample, Explored, explore};

fn rules(spec: &Value, apply: bool) -> Rules {
    let crd = json!({
        "metadata": {"name": "crontabs.example.com", "generation": 1},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab", "listKind": "CronTabList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let mut published = json!({"metadata": {"name": "publish-crontabs"}, "spec": spec});
    published["spec"]["resource"] = json!({"apiGroup": "example.com", "kind": "CronTab"});
    let published = serde_json::from_value(published).unwrap();
    Rules { apply, ..Rules::compile(&published, &Crd::from_json(&crd).unwrap(), "agent").unwrap() }
}

/// A model: what is published, what people do, and what may go wrong.
struct Model {
    rules: fn() -> Rules,
    script: &'static [Act],
    faults: Faults,
}

impl Model {
    fn explore(&self, planted: Planted) -> Result<Explored, Counterexample> {
        explore(OrderWorld::new((self.rules)(), self.script, self.faults, planted))
    }

    /// Explores it as it is, and with each of the defects that it has to find.
    fn keeps_its_promises(&self, defects: &[Planted]) {
        let begun = Instant::now();
        match self.explore(Planted::Nothing) {
            Ok(explored) => println!("{explored:?} in {:.1} s", begun.elapsed().as_secs_f32()),
            Err(found) => panic!("{}:\n  {}", found.wrong, found.story.join("\n  ")),
        }
        for defect in defects {
            let Err(found) = self.explore(*defect) else { panic!("{defect:?} is not found") };
            println!("{defect:?} is found: {}, in {} moves", found.wrong, found.story.len());
        }
    }
}

fn plain() -> Rules {
    rules(&json!({}), false)
}

fn applied() -> Rules {
    rules(&json!({}), true)
}

fn with_secret() -> Rules {
    let related = json!([{"identifier": "creds", "origin": "service", "kind": "Secret", "object": {"template": {"template": "creds"}},
        "cleanupPolicy": "MatchOrigin"}]);
    rules(&json!({ "related": related }), false)
}

fn with_feedback() -> Rules {
    rules(&json!({"feedback": "Annotations"}), false)
}

#[test]
fn no_late_or_lost_write_harms_an_order_that_goes_there_and_back() {
    let script = &[Act::Order(1), Act::Change(2), Act::Change(1), Act::Cancel];
    let faults = Faults { late: 1, lost: 1, restarts: 1, secrets: 0 };
    let defects = [Planted::MarkWithoutNumber, Planted::IntentionForgotten, Planted::SecretOverlooked];
    Model { rules: plain, script, faults }.keeps_its_promises(&defects);
}

#[test]
fn nor_one_whose_copy_is_written_by_server_side_apply() {
    let script = &[Act::Order(1), Act::Change(2), Act::Change(1), Act::Cancel];
    let faults = Faults { late: 1, lost: 1, restarts: 1, secrets: 0 };
    Model { rules: applied, script, faults }.keeps_its_promises(&[]);
}

#[test]
fn a_copy_that_lost_a_label_of_its_link_is_followed_and_gets_it_back() {
    let script = &[Act::Order(1), Act::Unlink, Act::Change(2), Act::Cancel];
    let faults = Faults { late: 1, lost: 0, restarts: 1, secrets: 0 };
    Model { rules: plain, script, faults }.keeps_its_promises(&[Planted::LinkOverlooked]);
}

#[test]
fn nothing_is_left_of_what_was_ordered_in_between() {
    let script = &[Act::Order(1), Act::Change(2), Act::Change(3)];
    let faults = Faults { late: 2, lost: 0, restarts: 1, secrets: 0 };
    Model { rules: plain, script, faults }.keeps_its_promises(&[Planted::IntentionReplaced]);
}

#[test]
fn no_order_is_harmed_whose_state_was_lost() {
    let script = &[Act::Order(1), Act::Change(2), Act::Change(1)];
    let faults = Faults { late: 1, lost: 0, restarts: 1, secrets: 1 };
    Model { rules: plain, script, faults }.keeps_its_promises(&[Planted::IntentionOmitted]);
}

#[test]
fn an_order_made_anew_has_nothing_to_do_with_the_old_one() {
    let script = &[Act::Order(1), Act::Cancel, Act::Order(2), Act::Cancel];
    let faults = Faults { late: 1, lost: 1, restarts: 1, secrets: 0 };
    Model { rules: plain, script, faults }.keeps_its_promises(&[Planted::UnguardedForget]);
}

#[test]
fn a_status_comes_back_whatever_happens_on_the_way() {
    let script = &[Act::Order(1), Act::Report(1), Act::Change(2), Act::Report(2), Act::Cancel];
    let faults = Faults { late: 1, lost: 0, restarts: 1, secrets: 0 };
    Model { rules: plain, script, faults }.keeps_its_promises(&[]);
}

#[test]
fn what_consumers_read_on_an_order_never_goes_back() {
    let script = &[Act::Order(1), Act::Change(2), Act::Cancel];
    let faults = Faults { late: 1, lost: 1, restarts: 1, secrets: 0 };
    Model { rules: with_feedback, script, faults }.keeps_its_promises(&[Planted::UnguardedPatch]);
}

#[test]
fn a_related_copy_that_is_needed_again_stays() {
    let script = &[Act::MakeOriginal(1), Act::Order(1), Act::RemoveOriginal, Act::MakeOriginal(2)];
    let faults = Faults { late: 1, lost: 0, restarts: 0, secrets: 0 };
    let defects = [Planted::UnguardedPatch, Planted::DeletedByUid];
    Model { rules: with_secret, script, faults }.keeps_its_promises(&defects);
}

/// Explores drift under a policy as it is, and with each of the defects that it has to find.
fn drift_keeps_its_promises(policy: &str, apply: bool, chances: Chances, defects: &[DriftDefect]) {
    let world = |defect: DriftDefect| {
        let rules = rules(&json!({ "drift": { "policy": policy } }), apply);
        DriftWorld::new(rules, policy == "Revert", chances, defect)
    };
    let begun = Instant::now();
    match explore(world(DriftDefect::Nothing)) {
        Ok(explored) => println!("{explored:?} in {:.1} s", begun.elapsed().as_secs_f32()),
        Err(found) => panic!("{}:\n  {}", found.wrong, found.story.join("\n  ")),
    }
    for defect in defects {
        let Err(found) = explore(world(*defect)) else { panic!("{defect:?} is not found") };
        println!("{defect:?} is found: {}, in {} moves", found.wrong, found.story.len());
    }
}

#[test]
fn drift_is_set_back_never_against_what_the_server_stores_and_never_for_ever() {
    let chances = Chances { edits: 4, changes: 0, pauses: 0, restarts: 1, secrets: 0, windows: 1 };
    let defects = [DriftDefect::AgainstWhatWasSent, DriftDefect::Uncounted, DriftDefect::CountedAfterwards];
    for apply in [false, true] {
        drift_keeps_its_promises("Revert", apply, chances, &defects);
    }
}

#[test]
fn drift_is_set_back_also_after_the_memory_was_lost() {
    let chances = Chances { edits: 2, changes: 0, pauses: 0, restarts: 1, secrets: 1, windows: 0 };
    for apply in [false, true] {
        drift_keeps_its_promises("Revert", apply, chances, &[]);
    }
}

#[test]
fn a_copy_that_rests_is_not_set_back() {
    let chances = Chances { edits: 1, changes: 1, pauses: 1, restarts: 0, secrets: 1, windows: 0 };
    for apply in [false, true] {
        drift_keeps_its_promises("Revert", apply, chances, &[DriftDefect::PauseOverlooked]);
    }
}

#[test]
fn drift_that_is_only_reported_is_reported_and_stays() {
    let chances = Chances { edits: 2, changes: 1, pauses: 0, restarts: 1, secrets: 0, windows: 0 };
    for apply in [false, true] {
        drift_keeps_its_promises("Report", apply, chances, &[]);
    }
}
