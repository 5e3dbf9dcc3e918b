//! The laws of related objects: either way, by whoever selects them, and nothing else.

use carrick_bind_api::claims::Guarded;
use carrick_sync::Role;
use serde_json::json;

use super::*;
use crate::decide::model::Model;

const CLUSTER: &str = "cluster-uid";

fn want(binding: &str, from_provider: bool, selectors: &[Value]) -> RelatedWant {
    let compiled = |selector: &Value| {
        let entry = json!({"resource": "secrets", "selector": selector});
        CompiledSelector::of(&serde_json::from_value(entry).unwrap()).unwrap()
    };
    RelatedWant {
        binding: binding.to_owned(),
        namespace: None,
        apis: Vec::new(),
        from_provider,
        selectors: selectors.iter().map(compiled).collect(),
    }
}

fn labelled() -> Value {
    json!({"labelSelector": {"matchLabels": {"app": "shop"}}})
}

struct Asked<'a> {
    wants: &'a [RelatedWant],
    namespace: &'a str,
    used: Option<bool>,
}

fn ask(model: &Model, asked: &Asked<'_>) -> Option<CorePlan> {
    let text = str::to_owned;
    let (group, version, kind, plural) = (text(""), text("v1"), text("Secret"), text("secrets"));
    let key = ObjectKey::namespaced(asked.namespace, "creds");
    let guarded = Guarded::default();
    decide(&RelatedView {
        kind: &Arc::new(ApiKind { group, version, kind, plural, namespaced: true }),
        key: &key,
        cluster_uid: CLUSTER,
        consumer: model.consumer.as_ref(),
        provider: model.provider.as_ref(),
        wants: asked.wants,
        bars: &|object| guarded.bars(&key, object),
        is_used: &|_| asked.used,
        noted: &Noted::default(),
    })
    .map(|decided| decided.plan)
}

fn open(wants: &[RelatedWant]) -> Asked<'_> {
    Asked { wants, namespace: "default", used: Some(false) }
}

fn settle(model: &mut Model, wants: &[RelatedWant]) -> usize {
    model.settle(|model| ask(model, &open(wants)).unwrap().plan)
}

fn secret(labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"a": "MQ=="}, "stray": true,
        "metadata": {"name": "creds", "namespace": "default", "labels": labels, "annotations": {"own": "1"}}})
}

/// The side that is copied from, and the other one.
fn roles(from_provider: bool) -> [Role; 2] {
    if from_provider { [Role::Provider, Role::Consumer] } else { [Role::Consumer, Role::Provider] }
}

#[test]
fn what_is_selected_is_copied_followed_and_gone_again_in_either_direction() {
    for from_provider in [true, false] {
        let [from, to] = roles(from_provider);
        let wants = [want("b", from_provider, &[labelled()])];
        let mut model = Model::default();
        model.put(from, secret(&json!({"app": "shop"})));
        assert!(settle(&mut model, &wants) > 0);
        let copy = model.slot(to).clone().unwrap();
        assert_eq!((&copy["data"], &copy["type"]), (&json!({"a": "MQ=="}), &json!("Opaque")));
        assert_eq!(copy["metadata"]["labels"], json!({"core.kbind.io/managed": "true"}), "nothing else travels");
        assert_eq!(copy["metadata"]["annotations"]["core.kbind.io/related-binding"], "b");
        assert!(annotation(&copy, "own").is_none() && copy.get("stray").is_none());
        model.change(from, |it| it["data"] = json!({"b": "Mg=="}));
        settle(&mut model, &wants);
        assert_eq!(model.slot(to).clone().unwrap()["data"], json!({"b": "Mg=="}));
        model.change(to, |it| it["data"]["b"] = json!("forged"));
        settle(&mut model, &wants);
        assert_eq!(model.slot(to).clone().unwrap()["data"], json!({"b": "Mg=="}));
        // A Secret does not change its type: it is made again.
        model.change(from, |it| it["type"] = json!("other"));
        settle(&mut model, &wants);
        assert_eq!(model.slot(to).clone().unwrap()["type"], "other");
        let mut gone = model.clone();
        model.change(from, |it| it["metadata"]["labels"] = json!({}));
        settle(&mut model, &wants);
        assert!(model.slot(to).is_none() && model.slot(from).is_some());
        // Its source is gone: the server is asked first.
        *gone.slot(from) = None;
        assert!(ask(&gone, &open(&wants)).unwrap().plan.confirm.is_some());
        settle(&mut gone, &wants);
        assert!(gone.slot(to).is_none());
    }
}

#[test]
fn entries_and_bindings_do_not_delete_each_others_copies_and_what_nobody_wants_goes() {
    let mut model = Model::default();
    model.put(Role::Provider, secret(&json!({"app": "shop"})));
    let both = [want("b", true, &[json!({"names": ["other"]}), labelled()]), want("c", true, &[labelled()])];
    settle(&mut model, &both);
    let copy = model.consumer.clone().unwrap();
    assert_eq!(annotation(&copy, RELATED_BINDING_ANNOTATION), Some("b"));
    // One of the two removes its entries: the other one goes on with a copy of its own.
    let second = [want("b", true, &[]), want("c", true, &[labelled()])];
    settle(&mut model, &second);
    assert_eq!(annotation(model.consumer.as_ref().unwrap(), RELATED_BINDING_ANNOTATION), Some("c"));
    settle(&mut model, &[want("c", true, &[])]);
    assert!(model.consumer.is_none() && model.provider.is_some());
}

#[test]
fn what_is_not_ours_is_left_alone() {
    for from_provider in [true, false] {
        let [from, to] = roles(from_provider);
        for marks in [
            json!({}),
            json!({"core.kbind.io/related-binding": "else", "core.kbind.io/consumer-cluster-uid": CLUSTER}),
            json!({"core.kbind.io/related-binding": "b", "core.kbind.io/consumer-cluster-uid": "else"}),
        ] {
            let mut model = Model::default();
            model.put(from, secret(&json!({"app": "shop"})));
            let mut theirs = secret(&json!({}));
            theirs["metadata"]["annotations"] = marks;
            model.put(to, theirs);
            let before = model.slot(to).clone();
            let wants = [want("b", from_provider, &[labelled()])];
            assert_eq!(ask(&model, &open(&wants)).unwrap().conflict.unwrap().reason, FOREIGN_OBJECT_EXISTS);
            settle(&mut model, &wants);
            settle(&mut model, &[want("b", from_provider, &[])]);
            assert_eq!(*model.slot(to), before);
        }
    }
}

#[test]
fn a_copy_is_no_source_for_anybody() {
    // A copy of this provider, or of another one, does not go to a provider; another consumer's does not come here.
    for from_provider in [true, false] {
        let [from, _] = roles(from_provider);
        let mut model = Model::default();
        let mut copy = secret(&json!({"app": "shop"}));
        copy["metadata"]["annotations"] =
            json!({"core.kbind.io/related-binding": "else", "core.kbind.io/consumer-cluster-uid": "else"});
        model.put(from, copy);
        assert_eq!(settle(&mut model, &[want("b", from_provider, &[json!({})])]), 0);
    }
    // Both directions of the same objects come to rest.
    let both = [want("b", true, &[json!({})]), want("b", false, &[json!({})])];
    let mut model = Model::default();
    model.put(Role::Consumer, secret(&json!({})));
    settle(&mut model, &both);
    *model.slot(Role::Consumer) = None;
    settle(&mut model, &both);
    assert!(model.provider.is_none(), "it was the copy");
}

#[test]
fn a_provider_writes_where_its_api_is_used_and_credentials_stay() {
    let mut model = Model::default();
    model.put(Role::Provider, secret(&json!({"app": "shop"})));
    let wants = [want("b", true, &[labelled()])];
    let at = |namespace, used| ask(&model, &Asked { wants: &wants, namespace, used });
    assert!(at("team", None).is_none(), "nobody knows yet");
    let refused = at("team", Some(false)).unwrap();
    assert!(refused.plan.is_settled() && refused.conflict.unwrap().message.contains("somebody uses their API"));
    assert!(!at("team", Some(true)).unwrap().plan.is_settled());
    assert!(!at("default", Some(false)).unwrap().plan.is_settled());
    for namespace in ["kube-system", "kube-bind"] {
        let barred = at(namespace, Some(true)).unwrap();
        assert!(barred.plan.is_settled() && barred.conflict.is_some(), "{namespace}");
    }
    for from_provider in [true, false] {
        let mut model = Model::default();
        let mut token = secret(&json!({"app": "shop"}));
        token["type"] = json!("kubernetes.io/service-account-token");
        model.put(roles(from_provider)[0], token);
        assert_eq!(settle(&mut model, &[want("b", from_provider, &[labelled()])]), 0);
        let everything = [want("b", from_provider, &[json!({})])];
        assert!(ask(&model, &open(&everything)).unwrap().conflict.is_none(), "nobody has asked for it by name");
    }
}
