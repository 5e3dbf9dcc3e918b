//! Claimed objects, selected by label, name and reference, in both directions.

use std::sync::Arc;

use carrick_bind_api::v1alpha2::InformerScope;
use carrick_client::DeleteOptions;
use carrick_konnector::agent::objects::{SyncMode, Wanted};
use serde_json::{Value, json};

use super::world::{
    BINDING, Shape, World, namespaces, owner, requests, secret, secrets, service_namespaces, until, writes,
};

fn by_label() -> Value {
    json!({"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "shop"}}}})
}

fn by_name() -> Value {
    json!({"group": "", "resource": "secrets", "selector": {"namedResources": [{"name": "named", "namespace": "team"}]}})
}

fn by_reference() -> Value {
    json!({"group": "", "resource": "secrets", "selector": {"references": [
        {"group": "example.io", "resource": "widgets", "jsonPath": {"name": "spec.secrets.#.name", "namespace": "metadata.namespace"}}]}})
}

async fn world(claims: &[Value], informers: InformerScope) -> World {
    let mut world = World::at_rest(Shape::namespaced(informers)).await;
    world.want(SyncMode::Keep, claims);
    world.start();
    world.until_told("all is known", |told| told.informers_synced.is_ok()).await;
    world
}

/// A namespace that is assigned, without any widget, and into which the provider may write.
async fn assigned(world: &World) {
    let open = json!({"metadata": {"labels": {"kube-bind.io/provider-writes": "true"}}});
    world.here.merge_patch(&namespaces(), None, "team", &open).await.unwrap();
    let object =
        json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceNamespace", "metadata": {"name": "team"}});
    world.there.create(&service_namespaces(), Some("c-1"), &object).await.unwrap();
    until("it is assigned", async || world.there.get(&namespaces(), None, "c-1-team").await.unwrap().is_some()).await;
}

async fn create_here(world: &World, object: Value) {
    world.here.create(&secrets(), Some("team"), &object).await.unwrap();
}

async fn create_there(world: &World, object: Value) {
    world.there.create(&secrets(), Some("c-1-team"), &object).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_the_consumer_are_selected_by_label_and_name_and_nothing_else_travels() {
    for informers in [InformerScope::Cluster, InformerScope::Namespaced] {
        let world = world(&[by_label(), by_name()], informers).await;
        // An owner label alone selects nothing.
        create_here(&world, secret("labelled", &json!({"a": "MQ=="}), &json!({"kube-bind.io/owner": "consumer"})))
            .await;
        create_here(&world, secret("shop", &json!({"a": "MQ==", "b": "Mg=="}), &json!({"app": "shop"}))).await;
        create_here(&world, secret("named", &json!({"a": "MQ=="}), &json!({}))).await;
        for name in ["shop", "named"] {
            until("it is copied", async || world.secret_there(name).await.is_some()).await;
            until("the source is labelled", async || {
                owner(&world.secret_here(name).await.unwrap()) == Some("consumer")
            })
            .await;
        }
        let patch = json!({"data": {"a": "Mw==", "b": null}});
        world.here.merge_patch(&secrets(), Some("team"), "shop", &patch).await.unwrap();
        until("it is followed", async || world.secret_there("shop").await.unwrap()["data"] == json!({"a": "Mw=="}))
            .await;
        assert_eq!(owner(&world.secret_there("shop").await.unwrap()), Some("consumer"));
        world.here.delete(&secrets(), Some("team"), "shop", &DeleteOptions::default()).await.unwrap();
        until("it is taken back", async || world.secret_there("shop").await.is_none()).await;
        world.calm().await;
        assert_eq!(world.secret_there("labelled").await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_the_provider_come_here_and_go_with_their_source() {
    for informers in [InformerScope::Cluster, InformerScope::Namespaced] {
        let world = world(&[by_label()], informers).await;
        assigned(&world).await;
        create_there(&world, secret("creds", &json!({"a": "MQ=="}), &json!({"app": "shop"}))).await;
        create_there(&world, secret("other", &json!({}), &json!({"kube-bind.io/owner": "provider"}))).await;
        until("it is copied", async || world.secret_here("creds").await.is_some()).await;
        let copy = world.secret_here("creds").await.unwrap();
        assert_eq!((owner(&copy), &copy["data"]), (Some("provider"), &json!({"a": "MQ=="})));
        assert_eq!(copy["metadata"]["annotations"]["kube-bind.io/provider-namespace"], "c-1-team");
        world.there.merge_patch(&secrets(), Some("c-1-team"), "creds", &json!({"data": {"a": "Mg=="}})).await.unwrap();
        until("it is followed", async || world.secret_here("creds").await.unwrap()["data"] == json!({"a": "Mg=="}))
            .await;
        world.there.delete(&secrets(), Some("c-1-team"), "creds", &DeleteOptions::default()).await.unwrap();
        until("it is taken back", async || world.secret_here("creds").await.is_none()).await;
        world.calm().await;
        assert_eq!(world.secret_here("other").await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_selects_as_soon_as_it_is_made() {
    let world = world(&[by_reference()], InformerScope::Namespaced).await;
    create_here(&world, secret("one", &json!({"a": "MQ=="}), &json!({}))).await;
    create_here(&world, secret("two", &json!({"a": "Mg=="}), &json!({}))).await;
    world.calm().await;
    let recordings = world.record();
    world.order("db", &json!({"secrets": [{"name": "one"}]})).await;
    until("the named one is copied", async || world.secret_there("one").await.is_some()).await;
    assert_eq!(world.secret_there("one").await.unwrap()["data"], json!({"a": "MQ=="}));
    assert_eq!(world.secret_there("two").await, None);
    // What nobody claims is kept without its content, which is read once it is claimed.
    let reads = requests(&recordings).into_iter().filter(|request| request.starts_with("get "));
    assert_eq!(reads.collect::<Vec<_>>(), ["get /api/v1/namespaces/team/secrets/one"]);
    world.change("db", &json!({"spec": {"secrets": [{"name": "one"}, {"name": "two"}]}})).await;
    until("so is the other", async || world.secret_there("two").await.is_some()).await;
    // The provider's own one of the name that a widget refers to.
    world.change("db", &json!({"spec": {"secrets": [{"name": "one"}, {"name": "two"}, {"name": "three"}]}})).await;
    create_there(&world, secret("three", &json!({"a": "Mw=="}), &json!({}))).await;
    until("it comes here", async || world.secret_here("three").await.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_pulls_and_overwrites_nothing() {
    let world = world(&[by_label()], InformerScope::Cluster).await;
    assigned(&world).await;
    for (name, owner) in [("a", "consumer"), ("b", "provider"), ("c", "")] {
        create_here(&world, secret(name, &json!({"key": "c2VjcmV0"}), &json!({}))).await;
        create_there(
            &world,
            secret(name, &json!({"key": "YmFpdA=="}), &json!({"app": "shop", "kube-bind.io/owner": owner})),
        )
        .await;
    }
    // A forged copy of an object that is not selected is removed, and pulls nothing.
    create_here(&world, secret("d", &json!({"key": "c2VjcmV0"}), &json!({}))).await;
    let uid = world.secret_here("d").await.unwrap()["metadata"]["uid"].clone();
    let mut forged =
        secret("d", &json!({"key": "YmFpdA=="}), &json!({"app": "shop", "kube-bind.io/owner": "consumer"}));
    forged["metadata"]["annotations"] =
        json!({"kube-bind.io/cluster-namespace": "c-1", "kube-bind.io/consumer-uid": uid});
    create_there(&world, forged).await;
    world.until_told("there are conflicts", |told| told.conflicts.len() == 3).await;
    assert!(world.told().unwrap().conflicts[0].starts_with("secrets team/a: both clusters had one"));
    world.calm().await;
    for name in ["a", "b", "c"] {
        assert_eq!(world.secret_here(name).await.unwrap()["data"], json!({"key": "c2VjcmV0"}));
        assert_eq!(world.secret_there(name).await.unwrap()["data"], json!({"key": "YmFpdA=="}));
    }
    assert_eq!(world.secret_here("d").await.unwrap()["data"], json!({"key": "c2VjcmV0"}));
    assert!(world.secret_there("d").await.is_none_or(|it| it["data"] == json!({"key": "YmFpdA=="})));
    // Nothing that was said about it quotes a Secret.
    let told = format!("{:?}", world.told());
    assert!(!told.contains("c2VjcmV0") && !told.contains("YmFpdA=="), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_an_operator_derives_from_a_copy_with_all_its_annotations_is_the_providers() {
    let mut world = world(&[by_label()], InformerScope::Cluster).await;
    world.order("db", &json!({})).await;
    world.until_copied("db", &json!({})).await;
    let mut creds = secret("creds", &json!({"a": "MQ=="}), &json!({"app": "shop"}));
    creds["metadata"]["annotations"] = world.copy("db").await.unwrap()["metadata"]["annotations"].clone();
    create_there(&world, creds).await;
    until("it comes here", async || world.secret_here("creds").await.is_some()).await;
    assert_eq!(owner(&world.secret_here("creds").await.unwrap()), Some("provider"));
    world.want(SyncMode::Drain, &[by_label()]);
    world.until_told("nothing is left", |told| told.drained).await;
    assert!(world.secret_here("creds").await.is_none() && world.secret_there("creds").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_other_contracts_are_left_alone_on_both_sides() {
    let world = world(&[by_label()], InformerScope::Cluster).await;
    assigned(&world).await;
    let mut theirs = secret("theirs", &json!({"a": "MQ=="}), &json!({"app": "shop", "kube-bind.io/owner": "consumer"}));
    theirs["metadata"]["annotations"] =
        json!({"kube-bind.io/cluster-namespace": "c-2", "kube-bind.io/consumer-uid": "x"});
    create_there(&world, theirs).await;
    create_here(&world, secret("theirs", &json!({"a": "Mg=="}), &json!({"app": "shop"}))).await;
    let mut copy = secret("copy", &json!({"a": "MQ=="}), &json!({"app": "shop", "kube-bind.io/owner": "provider"}));
    copy["metadata"]["annotations"] =
        json!({"kube-bind.io/cluster-namespace": "c-2", "kube-bind.io/provider-uid": "x"});
    create_here(&world, copy).await;
    world.until_told("both are told", |told| told.conflicts.len() == 2).await;
    world.calm().await;
    assert_eq!(world.secret_there("theirs").await.unwrap()["data"], json!({"a": "MQ=="}));
    assert_eq!(world.secret_there("copy").await, None, "a Secret of one provider does not go to another");
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_end_with_their_binding_but_not_while_another_needs_the_object() {
    let mut world = world(&[by_label()], InformerScope::Cluster).await;
    create_here(&world, secret("mine", &json!({"a": "MQ=="}), &json!({"app": "shop"}))).await;
    until("it is copied", async || world.secret_there("mine").await.is_some()).await;
    let open = json!({"metadata": {"labels": {"kube-bind.io/provider-writes": "c-1"}}});
    world.here.merge_patch(&namespaces(), None, "team", &open).await.unwrap();
    create_there(&world, secret("theirs", &json!({"a": "MQ=="}), &json!({"app": "shop"}))).await;
    until("it is copied", async || world.secret_here("theirs").await.is_some()).await;
    let mut other = world.binding(SyncMode::Keep, &[by_label()]);
    other.sync.apis.clear();
    let mut both = Wanted::default();
    both.bindings.insert(BINDING.to_owned(), world.binding(SyncMode::Drain, &[by_label()]));
    both.bindings.insert("other".to_owned(), other);
    world.wanted.send_replace(Arc::new(both));
    world.until_told("the first is done", |told| told.drained).await;
    world.calm().await;
    assert!(world.secret_there("mine").await.is_some() && world.secret_here("theirs").await.is_some());
    world.want(SyncMode::Drain, &[by_label()]);
    world.until_told("the last is done", |told| told.drained).await;
    until("copies are gone", async || {
        world.secret_there("mine").await.is_none() && world.secret_here("theirs").await.is_none()
    })
    .await;
    assert!(world.secret_here("mine").await.is_some() && world.secret_there("theirs").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_konnector_writes_no_claimed_object() {
    let mut world = world(&[by_label(), by_reference()], InformerScope::Namespaced).await;
    create_here(&world, secret("mine", &json!({"a": "MQ=="}), &json!({"app": "shop"}))).await;
    create_here(&world, secret("named", &json!({"a": "MQ=="}), &json!({}))).await;
    world.order("db", &json!({"secrets": [{"name": "named"}]})).await;
    for name in ["mine", "named"] {
        until("it is copied", async || world.secret_there(name).await.is_some()).await;
    }
    create_there(&world, secret("theirs", &json!({"a": "MQ=="}), &json!({"app": "shop"}))).await;
    until("it is copied", async || world.secret_here("theirs").await.is_some()).await;
    world.calm().await;
    let recordings = world.record();
    world.kill();
    world.start();
    world.until_told("all is known", |told| told.informers_synced.is_ok()).await;
    world.calm().await;
    assert_eq!(writes(&recordings), Vec::<String>::new());
}
