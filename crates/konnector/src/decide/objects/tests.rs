//! The laws of objects: a plan that was carried out leaves nothing to do, a crash after any step does no harm, and nothing foreign is touched.

use proptest::prelude::*;

use std::sync::Arc;

use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::existing::Existing;
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::CONTRACT_ANNOTATION;
use carrick_sync::memory::{StatusNote, checksum};
use carrick_sync::{ApiKind, Role};

use super::*;
use crate::decide::model::Model;

const CONTRACT: &str = "c-1";

fn kinds() -> ApiKinds {
    let kind = |namespaced| {
        let text = |text: &str| text.to_owned();
        Arc::new(ApiKind {
            group: text("example.io"),
            version: text("v1"),
            kind: text("Widget"),
            plural: text("widgets"),
            namespaced,
        })
    };
    ApiKinds { consumer: kind(true), provider: kind(true) }
}

struct Case {
    kinds: ApiKinds,
    mode: SyncMode,
    noted: Noted,
    derived: bool,
    existing: Existing,
    owner: Option<OwnerReference>,
}

impl Case {
    fn new() -> Self {
        Self {
            kinds: kinds(),
            mode: SyncMode::Keep,
            noted: Noted::default(),
            derived: false,
            existing: Existing::Leave,
            owner: None,
        }
    }

    fn ask(&self, model: &Model) -> Result<ObjectPlan, ObjectProblem> {
        let (key, copy_key) = (ObjectKey::namespaced("team", "db"), ObjectKey::namespaced("c-1-team", "db"));
        decide(&ObjectView {
            kinds: &self.kinds,
            has_status: true,
            contract: CONTRACT,
            owner: self.owner.as_ref(),
            key: &key,
            copy_key: &copy_key,
            source: model.consumer.as_ref(),
            copy: model.provider.as_ref(),
            cluster: None,
            existing: self.existing,
            derived: self.derived,
            mode: self.mode,
            noted: &self.noted,
        })
    }

    fn settle(&self, model: &mut Model) -> usize {
        model.settle(|model| self.ask(model).unwrap())
    }

    fn crash_after(&self, model: &mut Model, steps: usize) {
        let plan = self.ask(model).unwrap();
        model.carry_out(plan, steps);
    }
}

fn source(spec: &Value) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Widget", "spec": spec, "metadata": {"name": "db", "namespace": "team",
        "annotations": {"kube-bind.io/cluster-namespace": "forged"}}})
}

fn world(spec: &Value) -> Model {
    let mut model = Model::default();
    model.put(Role::Consumer, source(spec));
    model
}

#[test]
fn an_object_gets_a_finalizer_a_copy_and_traces_and_its_status_comes_back() {
    let (case, mut model) = (Case::new(), world(&json!({"size": 1})));
    assert_eq!(case.settle(&mut model), 3, "finalizer, copy, trace");
    let (here, there) = (model.consumer.clone().unwrap(), model.provider.clone().unwrap());
    assert_eq!(here["metadata"]["finalizers"], json!(["kubebind.io/syncer"]));
    assert_eq!(here["metadata"]["annotations"]["kube-bind.io/provider-namespace"], "c-1-team");
    assert_eq!(here["metadata"]["annotations"]["kube-bind.io/provider-uid"], there["metadata"]["uid"]);
    assert_eq!(here["metadata"]["annotations"].get("kube-bind.io/applied-state"), None);
    let mut annotations = there["metadata"]["annotations"].clone();
    assert!(annotations.as_object_mut().unwrap().remove("kube-bind.io/applied-state").is_some());
    let uid = &here["metadata"]["uid"];
    let marks = json!({"kube-bind.io/cluster-namespace": CONTRACT, "kube-bind.io/consumer-namespace": "team", "kube-bind.io/consumer-uid": uid});
    assert_eq!((&there["spec"], annotations), (&json!({"size": 1}), marks));
    model.change(Role::Provider, |copy| copy["status"] = json!({"phase": "Up"}));
    assert_eq!(case.settle(&mut model), 1);
    assert_eq!(model.consumer.unwrap()["status"], json!({"phase": "Up"}));
}

#[test]
fn what_the_provider_made_itself_or_another_contract_is_never_touched() {
    for (annotations, words) in [
        (json!({}), "was there before"),
        (json!({"kube-bind.io/cluster-namespace": ""}), "was there before"),
        (json!({"kube-bind.io/cluster-namespace": "c-10"}), "belongs to contract c-10"),
        // What else a forged mark may say.
        (json!({"kube-bind.io/consumer-uid": "Consumer-1"}), "was there before"),
    ] {
        let mut case = Case::new();
        let mut model = world(&json!({}));
        model.put(Role::Provider, json!({"metadata": {"name": "db", "annotations": annotations}}));
        let before = model.provider.clone();
        let problem = case.ask(&model).unwrap_err().to_string();
        assert!(problem.starts_with("provider Widget c-1-team/db ") && problem.contains(words), "{problem}");
        assert_eq!(model.consumer.as_ref().unwrap()["metadata"].get("finalizers"), None, "it has nothing to wait for");
        // Neither does it stop anybody from deleting the object here, or the binding, and it survives both.
        for mode in [SyncMode::Keep, SyncMode::Drain, SyncMode::Release] {
            case.mode = mode;
            let mut model = model.clone();
            model.change(Role::Consumer, |object| object["metadata"]["finalizers"] = json!(["kubebind.io/syncer"]));
            model.delete(Role::Consumer);
            let plan = case.ask(&model).unwrap();
            assert!(plan.steps.iter().all(|step| step.role() != Some(Role::Provider)), "{plan:?}");
            assert!(
                plan.steps
                    .iter()
                    .any(|step| matches!(step, Step::SetFinalizers { finalizers, .. } if finalizers.is_empty()))
            );
            model.consumer = None;
            assert!(case.ask(&model).unwrap().is_settled());
            assert_eq!(model.provider, before);
        }
    }
}

#[test]
fn the_finalizer_stays_until_the_copy_is_really_gone() {
    let (case, mut model) = (Case::new(), world(&json!({})));
    case.settle(&mut model);
    model.change(Role::Provider, |copy| copy["metadata"]["finalizers"] = json!(["provider.io/slow"]));
    model.delete(Role::Consumer);
    case.settle(&mut model);
    assert!(model.provider.as_ref().unwrap()["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(model.consumer.as_ref().unwrap()["metadata"]["finalizers"], json!(["kubebind.io/syncer"]));
    model.change(Role::Provider, |copy| copy["metadata"]["finalizers"] = json!([]));
    let plan = case.ask(&model).unwrap();
    assert_eq!(plan.steps[0], Step::ConfirmNoCopy, "a cache may be wrong");
    case.settle(&mut model);
    assert!(model.consumer.is_none() && model.provider.is_none());
}

#[test]
fn a_copy_without_a_source_goes_once_that_is_certain() {
    let (mut case, mut model) = (Case::new(), world(&json!({})));
    case.settle(&mut model);
    model.consumer = None;
    for (mode, steps, confirmed) in
        [(SyncMode::Release, 0, false), (SyncMode::Drain, 1, false), (SyncMode::Keep, 1, true)]
    {
        case.mode = mode;
        let plan = case.ask(&model).unwrap();
        assert_eq!((plan.steps.len(), plan.confirm.is_some()), (steps, confirmed), "{mode:?}");
    }
    let plan = case.ask(&model).unwrap();
    assert!(
        matches!(&plan.confirm, Some(Confirm::Gone(at)) if at.to_string() == "consumer Widget team/db"),
        "{plan:?}"
    );
    case.settle(&mut model);
    assert!(model.provider.is_none());
}

#[test]
fn what_is_derived_from_another_copy_is_the_providers() {
    let (mut case, mut model) = (Case::new(), world(&json!({})));
    case.settle(&mut model);
    case.derived = true;
    assert!(matches!(case.ask(&model), Err(ObjectProblem::Foreign { .. })));
    model.consumer = None;
    for mode in [SyncMode::Keep, SyncMode::Drain, SyncMode::Release] {
        case.mode = mode;
        assert!(case.ask(&model).unwrap().is_settled(), "{mode:?}");
    }
}

#[test]
fn a_binding_that_goes_takes_its_copies_along_or_leaves_them() {
    for (mode, leaves) in [(SyncMode::Drain, false), (SyncMode::Release, true)] {
        let (mut case, mut model) = (Case::new(), world(&json!({"size": 1})));
        case.settle(&mut model);
        case.mode = mode;
        case.settle(&mut model);
        assert_eq!(model.provider.is_some(), leaves, "{mode:?}");
        let here = model.consumer.as_ref().unwrap();
        assert_eq!((&here["metadata"]["finalizers"], &here["spec"]), (&json!([]), &json!({"size": 1})), "{mode:?}");
        // Whatever happens then is nobody's business any more.
        model.change(Role::Consumer, |object| object["spec"] = json!({"size": 2}));
        assert!(case.ask(&model).unwrap().is_settled());
    }
}

#[test]
fn what_somebody_changes_of_the_copy_is_restored_unless_the_server_insists() {
    let (mut case, mut model) = (Case::new(), world(&json!({"size": 1})));
    case.settle(&mut model);
    model.change(Role::Provider, |copy| copy["spec"] = json!({"size": 7, "node": "a"}));
    assert_eq!(case.settle(&mut model), 1);
    assert_eq!(model.provider.as_ref().unwrap()["spec"], json!({"size": 1, "node": "a"}));
    model.change(Role::Provider, |copy| copy["metadata"]["annotations"]["kube-bind.io/consumer-uid"] = json!("other"));
    assert_eq!(case.settle(&mut model), 1);
    let copy = model.provider.clone().unwrap();
    assert_eq!(
        copy["metadata"]["annotations"]["kube-bind.io/consumer-uid"],
        model.consumer.as_ref().unwrap()["metadata"]["uid"]
    );
    model.change(Role::Provider, |copy| copy["spec"]["size"] = json!(7));
    case.noted.altered = Some(content_sum(model.provider.as_ref().unwrap()));
    assert!(case.ask(&model).unwrap().is_settled());
}

#[test]
fn a_copy_of_another_konnector_is_taken_over_whole() {
    let (case, mut model) = (Case::new(), world(&json!({"size": 2})));
    let marks = json!({"kube-bind.io/cluster-namespace": CONTRACT});
    model.put(Role::Provider, json!({"metadata": {"name": "db", "annotations": marks}, "spec": {"size": 1}}));
    let plan = case.ask(&model).unwrap();
    let first =
        plan.steps.iter().find_map(|step| if let Step::Apply { first, .. } = step { Some(*first) } else { None });
    assert_eq!(first, Some(true), "fields that it has written otherwise are ours from now on");
    case.settle(&mut model);
    assert_eq!(model.provider.unwrap()["spec"], json!({"size": 2}));
}

#[test]
fn cluster_scoped_copies_belong_to_their_contract_with_every_write() {
    let (mut case, mut model) = (Case::new(), world(&json!({"size": 1})));
    let mut owner = OwnerReference::default();
    CONTRACT.clone_into(&mut owner.name);
    case.owner = Some(owner);
    case.settle(&mut model);
    model.change(Role::Consumer, |object| object["spec"]["size"] = json!(2));
    case.settle(&mut model);
    assert_eq!(model.provider.unwrap()["metadata"]["ownerReferences"], json!([{"name": CONTRACT}]));
}

#[test]
fn a_status_that_the_server_does_not_store_as_sent_is_sent_once() {
    let (mut case, mut model) = (Case::new(), world(&json!({})));
    case.settle(&mut model);
    model.change(Role::Provider, |copy| copy["status"] = json!({"phase": "Up", "unknown": 1}));
    model.change(Role::Consumer, |object| object["status"] = json!({"phase": "Up"}));
    assert_eq!(case.ask(&model).unwrap().steps.len(), 1);
    let sum = |status: Value| checksum(&status);
    let (sent, stored) = (sum(json!({"phase": "Up", "unknown": 1})), Some(sum(json!({"phase": "Up"}))));
    case.noted.status = Some(StatusNote { sent, stored, schema: String::new() });
    assert!(case.ask(&model).unwrap().is_settled());
}

/// Objects with few fields, so that they have some in common.
fn spec() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!([1, 2])), Just(json!({}))];
    let tree = leaf.prop_recursive(3, 12, 3, |inner| {
        prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|fields| json!(fields))
    });
    prop::collection::btree_map("[abc]", tree, 0..4).prop_map(|fields| json!(fields))
}

proptest! {
    #[test]
    fn a_plan_that_was_carried_out_leaves_nothing_to_do_and_fields_that_went_are_gone([first, second] in [spec(), spec()]) {
        let (case, mut model) = (Case::new(), world(&first));
        case.settle(&mut model);
        model.change(Role::Consumer, |object| object["spec"] = second.clone());
        case.settle(&mut model);
        prop_assert_eq!(&model.provider.as_ref().unwrap()["spec"], &second);
    }

    #[test]
    fn a_crash_after_any_step_heals([first, second, third] in [spec(), spec(), spec()], at in 0usize..5, ends in 0usize..3) {
        let (mut case, mut model) = (Case::new(), world(&first));
        case.crash_after(&mut model, at);
        model.change(Role::Consumer, |object| object["spec"] = second.clone());
        case.crash_after(&mut model, at / 2);
        case.settle(&mut model);
        model.change(Role::Provider, |copy| copy["status"] = json!({"ready": true}));
        model.change(Role::Consumer, |object| object["spec"] = third.clone());
        case.crash_after(&mut model, at);
        case.settle(&mut model);
        prop_assert_eq!(&model.provider.as_ref().unwrap()["spec"], &third);
        prop_assert_eq!(&model.consumer.as_ref().unwrap()["status"], &json!({"ready": true}));
        case.mode = [SyncMode::Keep, SyncMode::Drain, SyncMode::Release][ends];
        model.delete(Role::Consumer);
        case.crash_after(&mut model, at);
        case.settle(&mut model);
        prop_assert_eq!((model.consumer.is_none(), model.provider.is_none()), (true, case.mode != SyncMode::Release));
    }
}

/// The provider has a widget of its own.
fn account() -> Model {
    let mut model = Model::default();
    let theirs = json!({"apiVersion": "example.io/v1", "kind": "Widget", "spec": {"size": 1}, "status": {"phase": "Up"},
        "metadata": {"name": "db", "namespace": "c-1-team", "labels": {"a": "b"}}});
    model.put(Role::Provider, theirs);
    model
}

fn with(existing: Existing) -> Case {
    Case { existing, ..Case::new() }
}

#[test]
fn what_is_shown_has_content_and_status_and_costs_the_account_nothing() {
    let (case, mut model) = (with(Existing::Show), account());
    let before = model.provider.clone();
    assert_eq!(case.settle(&mut model), 2, "mirror and status");
    let mirror = model.consumer.clone().unwrap();
    assert!(is_mirror(&mirror, CONTRACT) && !is_mirror(&mirror, "c-2"));
    assert_eq!((&mirror["spec"], &mirror["status"]), (&json!({"size": 1}), &json!({"phase": "Up"})));
    model.change(Role::Consumer, |mirror| mirror["spec"] = json!({"size": 9}));
    assert_eq!(case.settle(&mut model), 1);
    assert_eq!(model.provider, before);
    assert_eq!(model.consumer.as_ref().unwrap()["spec"], json!({"size": 1}));
    // Without a word for it, and with the binding, the mirror goes; the account's object stays.
    let mut drained = with(Existing::Show);
    drained.mode = SyncMode::Drain;
    for end in [Case::new(), drained] {
        let mut model = model.clone();
        end.settle(&mut model);
        assert_eq!((model.consumer, &model.provider), (None, &before));
    }
    model.delete(Role::Provider);
    case.settle(&mut model);
    assert_eq!(model.consumer, None);
}

#[test]
fn what_is_adopted_becomes_an_ordinary_copy_whenever_the_konnector_dies() {
    for crash in 0..4 {
        let (case, mut model) = (with(Existing::Adopt), account());
        let uid = model.provider.as_ref().unwrap()["metadata"]["uid"].clone();
        for _ in 0..crash {
            case.crash_after(&mut model, 1);
        }
        case.settle(&mut model);
        let (here, there) = (model.consumer.clone().unwrap(), model.provider.clone().unwrap());
        assert_eq!(there["metadata"]["uid"], uid);
        assert_eq!(copies::ownership(&there, CONTRACT), Ownership::Ours);
        assert_eq!(there["metadata"]["annotations"]["kube-bind.io/consumer-uid"], here["metadata"]["uid"]);
        assert_eq!(here["status"], json!({"phase": "Up"}));
        assert_eq!(Case::new().settle(&mut model), 0, "nothing depends on the annotation any more");
        model.change(Role::Consumer, |here| here["spec"] = json!({"size": 2}));
        case.settle(&mut model);
        assert_eq!(model.provider.as_ref().unwrap()["spec"], json!({"size": 2}));
    }
}

#[test]
fn what_both_sides_have_is_neither_shown_nor_adopted() {
    for existing in [Existing::Show, Existing::Adopt] {
        let mut model = account();
        model.put(Role::Consumer, source(&json!({})));
        assert!(matches!(with(existing).ask(&model), Err(ObjectProblem::Foreign { .. })));
        // Neither is what another contract has made.
        let mut other = account();
        other.change(Role::Provider, |there| there["metadata"]["annotations"] = json!({CONTRACT_ANNOTATION: "c-2"}));
        assert!(with(existing).ask(&other).unwrap().is_settled());
        // Nor what is about to go.
        let mut going = account();
        going.change(Role::Provider, |there| there["metadata"]["finalizers"] = json!(["x"]));
        going.delete(Role::Provider);
        assert!(with(existing).ask(&going).unwrap().is_settled());
    }
}
