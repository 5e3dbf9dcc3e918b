//! The laws of v2's objects: a plan that was carried out leaves nothing to do, a crash after any step does no harm, nothing foreign is touched.

use carrick_sync::Role;
use carrick_sync::object::set;

use super::*;
use crate::decide::model::Model;

const CLUSTER: &str = "cluster-uid";

fn ask_as(model: &Model, coverage: Coverage) -> CorePlan {
    let text = str::to_owned;
    let kind = ApiKind {
        group: text("example.io"),
        version: text("v1"),
        kind: text("Widget"),
        plural: text("widgets"),
        namespaced: true,
    };
    decide(&CoreView {
        kind: &Arc::new(kind),
        key: &ObjectKey::namespaced("team", "db"),
        has_status: true,
        cluster_uid: CLUSTER,
        source: model.consumer.as_ref(),
        copy: model.provider.as_ref(),
        coverage,
        noted: &Noted::default(),
    })
}

fn owner(copy: &Value, source: &str) -> CopyOwner {
    Marks { cluster: CLUSTER, key: CONSUMER_OBJECT_UID_ANNOTATION, value: source }.owner(copy)
}

const KEEP: Coverage = Coverage::Keep { adopt: false };
const ADOPT: Coverage = Coverage::Keep { adopt: true };

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Widget", "spec": spec, "data": {"left": "behind"},
        "metadata": {"name": "db", "namespace": "team", "labels": {"own": "1"}, "annotations": {"own": "1"}}})
}

fn model() -> Model {
    let mut model = Model::default();
    model.put(Role::Consumer, object(&json!({"size": 1})));
    model
}

fn settle(model: &mut Model, coverage: Coverage) -> usize {
    model.settle(|model| ask_as(model, coverage).plan)
}

#[test]
fn only_spec_and_two_marks_travel_and_the_status_comes_back() {
    let mut model = model();
    assert!(settle(&mut model, KEEP) > 0);
    let (source, copy) = (model.consumer.clone().unwrap(), model.provider.clone().unwrap());
    assert_eq!((&copy["spec"], copy.get("data")), (&json!({"size": 1}), None));
    assert_eq!(copy["metadata"]["labels"], json!({"core.kbind.io/managed": "true"}));
    assert_eq!(owner(&copy, uid(&source)), CopyOwner::Ours);
    assert!(annotation(&copy, "own").is_none());
    assert_eq!(source["metadata"]["finalizers"], json!(["core.kbind.io/syncer"]));
    model.change(Role::Provider, |copy| copy["status"] = json!({"phase": "Up"}));
    settle(&mut model, KEEP);
    assert_eq!(model.consumer.clone().unwrap()["status"], json!({"phase": "Up"}));
    model.change(Role::Consumer, |source| source["spec"] = json!({"count": 2}));
    settle(&mut model, KEEP);
    assert_eq!(model.provider.clone().unwrap()["spec"], json!({"count": 2}));
    model.change(Role::Provider, |copy| copy["spec"]["count"] = json!(9));
    settle(&mut model, KEEP);
    assert_eq!(model.provider.unwrap()["spec"], json!({"count": 2}), "what somebody changed is brought back");
}

#[test]
fn a_crash_after_any_step_of_any_life_heals() {
    for steps in 0..4 {
        let mut model = model();
        model.carry_out(ask_as(&model, KEEP).plan, steps);
        settle(&mut model, KEEP);
        assert_eq!(model.provider.as_ref().unwrap()["spec"]["size"], 1);
        model.delete(Role::Consumer);
        model.carry_out(ask_as(&model, KEEP).plan, steps);
        settle(&mut model, KEEP);
        assert!(model.consumer.is_none() && model.provider.is_none());
    }
}

#[test]
fn what_the_provider_had_before_is_left_alone_or_adopted_and_other_copies_are_always_left() {
    let mut model = model();
    model.put(Role::Provider, object(&json!({"theirs": true})));
    let theirs = model.provider.clone();
    let plan = ask_as(&model, KEEP);
    assert_eq!(plan.conflict.as_ref().unwrap().reason, "ForeignObjectExists");
    settle(&mut model, KEEP);
    assert_eq!(model.provider, theirs);
    let marked = model.consumer.clone().unwrap();
    assert_eq!(annotation(&marked, CONFLICT_ANNOTATION), Some("ForeignObjectExists"));
    assert!(ask_as(&model, KEEP).conflict.is_some(), "it stays one, without another write");
    settle(&mut model, ADOPT);
    let copy = model.provider.clone().unwrap();
    assert_eq!((owner(&copy, uid(&marked)), &copy["spec"]["size"]), (CopyOwner::Ours, &json!(1)));
    assert!(annotation(&model.consumer.clone().unwrap(), CONFLICT_ANNOTATION).is_none());

    for (cluster, object) in [("other", uid(&marked)), (CLUSTER, "other"), ("other", "other")] {
        let mut model = model.clone();
        model.change(Role::Provider, |copy| {
            set(copy, "annotations", CONSUMER_CLUSTER_UID, cluster);
            set(copy, "annotations", CONSUMER_OBJECT_UID_ANNOTATION, object);
        });
        let before = model.provider.clone();
        assert_eq!(ask_as(&model, ADOPT).conflict.unwrap().reason, "OwnedByAnother");
        settle(&mut model, ADOPT);
        assert_eq!(model.provider, before);
        // Nor is it deleted: the source is let go.
        model.delete(Role::Consumer);
        let steps = ask_as(&model, ADOPT).plan.steps;
        assert!(matches!(steps.as_slice(), [Step::ConfirmNoCopy, Step::SetFinalizers { .. }]), "{steps:?}");
    }
}

#[test]
fn deletion_takes_the_copy_along_unless_it_is_an_orphan() {
    let mut model = model();
    settle(&mut model, KEEP);
    let mut orphan = model.clone();
    orphan.change(Role::Consumer, |it| set(it, "annotations", DELETION_POLICY_ANNOTATION, ORPHAN));
    orphan.delete(Role::Consumer);
    settle(&mut orphan, Coverage::Nothing);
    assert!(orphan.consumer.is_none() && orphan.provider.is_some());
    settle(&mut orphan, KEEP);
    assert!(orphan.provider.is_some(), "a copy without a source is left alone");
    model.delete(Role::Consumer);
    settle(&mut model, Coverage::Nothing);
    assert!(model.consumer.is_none() && model.provider.is_none());
}

#[test]
fn a_binding_that_goes_drains_or_releases_and_the_object_stays() {
    for (coverage, left) in [(Coverage::Drain, false), (Coverage::Release, true)] {
        let mut model = model();
        settle(&mut model, KEEP);
        settle(&mut model, coverage);
        assert_eq!(model.provider.is_some(), left);
        let source = model.consumer.unwrap();
        assert!(!is_held_by(&WORDS, &source, HOLDER), "{source}");
    }
    let mut model = model();
    settle(&mut model, KEEP);
    model.change(Role::Consumer, |it| it["spec"]["size"] = json!(2));
    assert_eq!(settle(&mut model, Coverage::Nothing), 0, "nobody wants it synced");
}
