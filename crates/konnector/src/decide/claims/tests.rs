//! Claimed objects end up on both sides, in either direction, and nothing else does.

use carrick_bind_api::names::{CONTRACT_ANNOTATION, PROVIDER_UID_ANNOTATION};

use super::*;
use crate::decide::model::Model;

const CONTRACT: &str = "c-1";

struct Case {
    kind: Arc<ApiKind>,
    key: ObjectKey,
    provider_key: Option<ObjectKey>,
    /// Whether the selector selects the object of the consumer, and that of the provider.
    selected: [bool; 2],
    mode: SyncMode,
}

impl Case {
    fn new(selected: [bool; 2]) -> Self {
        let text = |text: &str| text.to_owned();
        let kind = ApiKind {
            group: String::new(),
            version: text("v1"),
            kind: text("Secret"),
            plural: text("secrets"),
            namespaced: true,
        };
        Self {
            kind: Arc::new(kind),
            key: ObjectKey::namespaced("team", "s"),
            provider_key: Some(ObjectKey::namespaced("c-1-team", "s")),
            selected,
            mode: SyncMode::Keep,
        }
    }

    fn ask(&self, model: &Model) -> Result<ObjectPlan, ClaimedProblem> {
        let [here, there] = self.selected;
        let side = Side::new;
        decide(&ClaimedView {
            kind: &self.kind,
            contract: CONTRACT,
            key: &self.key,
            cluster: None,
            provider_key: self.provider_key.as_ref(),
            consumer: model.consumer.as_ref().map(|object| side(object, here)),
            provider: model.provider.as_ref().map(|object| side(object, there)),
            mode: self.mode,
            noted: &Noted::default(),
        })
    }

    fn settle(&self, model: &mut Model) -> usize {
        model.settle(|model| self.ask(model).unwrap())
    }
}

fn secret(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data, "metadata": {"name": "s", "namespace": "team"}})
}

#[test]
fn a_secret_of_the_consumer_is_labelled_copied_followed_and_taken_back() {
    for crash in 0..4 {
        let (case, mut model) = (Case::new([true, true]), Model::default());
        model.put(Role::Consumer, secret(&json!({"a": "MQ==", "b": "Mg=="})));
        for _ in 0..crash {
            let plan = case.ask(&model).unwrap();
            model.carry_out(plan, 1);
        }
        case.settle(&mut model);
        let (here, there) = (model.consumer.clone().unwrap(), model.provider.clone().unwrap());
        assert_eq!(here["metadata"]["labels"], json!({"kube-bind.io/owner": "consumer"}));
        assert_eq!(here["metadata"]["annotations"]["kube-bind.io/provider-uid"], there["metadata"]["uid"]);
        assert_eq!(there["metadata"]["labels"], json!({"kube-bind.io/owner": "consumer"}));
        assert!(is_copy(&there, Role::Provider, CONTRACT) && !is_copy(&here, Role::Consumer, CONTRACT));
        model.change(Role::Consumer, |secret| secret["data"] = json!({"a": "Mw=="}));
        case.settle(&mut model);
        assert_eq!(model.provider.as_ref().unwrap()["data"], json!({"a": "Mw=="}));
        // It stays in sync, even if nothing selects it any more.
        let unselected = Case::new([false, false]);
        model.change(Role::Consumer, |secret| secret["data"] = json!({"a": "NA=="}));
        unselected.settle(&mut model);
        assert_eq!(model.provider.as_ref().unwrap()["data"], json!({"a": "NA=="}));
        model.delete(Role::Consumer);
        let plan = case.ask(&model).unwrap();
        assert!(matches!(&plan.confirm, Some(Confirm::Gone(at)) if at.to_string() == "consumer Secret team/s"));
        case.settle(&mut model);
        assert!(model.provider.is_none());
    }
}

#[test]
fn a_secret_of_the_provider_is_copied_followed_and_taken_back() {
    for crash in 0..3 {
        let (case, mut model) = (Case::new([true, true]), Model::default());
        model.put(Role::Provider, secret(&json!({"a": "MQ=="})));
        let own = model.provider.clone();
        for _ in 0..crash {
            let plan = case.ask(&model).unwrap();
            model.carry_out(plan, 1);
        }
        case.settle(&mut model);
        assert_eq!(model.provider, own, "the provider's object is not written");
        let copy = model.consumer.clone().unwrap();
        assert!(is_copy(&copy, Role::Consumer, CONTRACT) && copy["data"] == json!({"a": "MQ=="}));
        model.change(Role::Provider, |secret| secret["data"] = json!({"b": "Mg=="}));
        case.settle(&mut model);
        assert_eq!(model.consumer.as_ref().unwrap()["data"], json!({"b": "Mg=="}));
        model.delete(Role::Provider);
        let plan = case.ask(&model).unwrap();
        assert!(matches!(&plan.confirm, Some(Confirm::Gone(at)) if at.to_string() == "provider Secret c-1-team/s"));
        case.settle(&mut model);
        assert!(model.consumer.is_none());
    }
}

#[test]
fn what_is_not_selected_or_not_ours_is_not_written() {
    let conflict = |case: &Case, model: &Model| case.ask(model).unwrap_err().to_string();
    for labels in [json!({}), json!({"kube-bind.io/owner": "consumer"}), json!({"kube-bind.io/owner": "provider"})] {
        let mut model = Model::default();
        model.put(Role::Consumer, secret(&json!({"a": "MQ=="})));
        assert!(Case::new([false, false]).ask(&model).unwrap().is_settled());
        let mut bait = secret(&json!({}));
        bait["metadata"]["labels"] = labels;
        model.put(Role::Provider, bait);
        assert!(Case::new([false, false]).ask(&model).unwrap().is_settled());
        let words = conflict(&Case::new([false, true]), &model);
        assert!(words.starts_with("both clusters had one of this name before"), "{words}");
    }
    let mut model = Model::default();
    model.put(Role::Consumer, secret(&json!({})));
    let mut theirs = secret(&json!({}));
    theirs["metadata"]["annotations"] = json!({CONTRACT_ANNOTATION: "c-2", CONSUMER_UID_ANNOTATION: "x"});
    model.put(Role::Provider, theirs);
    assert!(conflict(&Case::new([true, true]), &model).contains("belongs to contract c-2"));
}

#[test]
fn a_namespace_is_asked_for_and_what_is_not_mapped_any_more_stays() {
    let mut case = Case::new([true, true]);
    case.provider_key = None;
    let mut model = Model::default();
    model.put(Role::Consumer, secret(&json!({})));
    assert_eq!(case.ask(&model), Err(ClaimedProblem::NamespacePending("team".to_owned())));
    let mut copy = secret(&json!({}));
    copy["metadata"]["labels"] = json!({OWNER_LABEL: "provider"});
    copy["metadata"]["annotations"] = json!({PROVIDER_UID_ANNOTATION: "p", CONTRACT_ANNOTATION: CONTRACT});
    let mut model = Model::default();
    model.put(Role::Consumer, copy);
    assert!(case.ask(&model).unwrap().is_settled());
}

#[test]
fn what_cannot_be_changed_is_made_anew() {
    let (case, mut model) = (Case::new([true, false]), Model::default());
    model.put(Role::Consumer, secret(&json!({"a": "MQ=="})));
    case.settle(&mut model);
    let before = model.provider.as_ref().unwrap()["metadata"]["uid"].clone();
    model.change(Role::Provider, |copy| copy["immutable"] = json!(true));
    model.change(Role::Consumer, |secret| secret["data"] = json!({"a": "Mg=="}));
    case.settle(&mut model);
    let copy = model.provider.unwrap();
    assert!(copy["metadata"]["uid"] != before && copy["data"] == json!({"a": "Mg=="}));
}

#[test]
fn a_binding_that_goes_takes_copies_along_on_both_sides_and_leaves_sources() {
    for source in [Role::Consumer, Role::Provider] {
        let (mut case, mut model) = (Case::new([true, true]), Model::default());
        model.put(source, secret(&json!({})));
        case.settle(&mut model);
        case.mode = SyncMode::Release;
        assert!(case.ask(&model).unwrap().is_settled());
        case.mode = SyncMode::Drain;
        case.settle(&mut model);
        assert_eq!(
            (model.consumer.is_some(), model.provider.is_some()),
            (source == Role::Consumer, source == Role::Provider)
        );
    }
}
