//! Connections, bindings and contracts that want the same API: one has it, and the others neither use it nor take anything along when they go.

use carrick_client::Resource;
use serde_json::{Value, json};

use super::world::{
    TEAM, WIDGETS, World, cluster, cluster_bindings, has, is_established, message, widget_crd, widgets, writes_to,
};
use crate::clusters::{BINDER, Cluster, Provider, bindings, crd_kind, exports, secret, secrets, sheriff_crd, sheriffs};

const FINALIZER: &str = "core.kbind.io/syncer";

pub fn managed(binding: &Value) -> bool {
    has(binding, "Ready", "False", "APIManagedByOther")
}

pub fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"] == json!([FINALIZER])
}

/// Creates an object, and returns its copy once it is at rest.
pub async fn kept(world: &World) -> Value {
    world.order("kept", 1).await;
    world.source_is("kept", is_held).await;
    world.provider.get(&widgets(), Some(TEAM), "kept").await.unwrap()
}

/// Connection and binding `west`, whose API has a CRD that another operator has installed.
pub async fn bound_with_a_crd_of_somebody_else() -> World {
    let world = World::start().await;
    let mut theirs = widget_crd();
    theirs["metadata"]["labels"] = json!({"made-by": "another-operator"});
    world.consumer.apply(&crd_kind(), &theirs).await;
    world.store("west", BINDER).await;
    world.connect("west", json!({})).await;
    world.bind("west", "west", json!({})).await;
    world.is_ready(&cluster_bindings(), "west").await;
    world
}

/// Another provider of the same API, and a Connection `east` that leads there.
pub async fn second_provider(world: &World) -> Cluster {
    let other = cluster(&[BINDER]).await;
    other.apply(&crd_kind(), &widget_crd()).await;
    other.until(&crd_kind(), None, WIDGETS, is_established).await;
    world.store_text("east", &other.kubeconfig(BINDER)).await;
    world.connect("east", json!({})).await;
    other
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_binding_of_another_provider_goes_and_objects_stay_held() {
    let world = World::bound().await;
    let other = second_provider(&world).await;
    world.bind("east", "east", json!({})).await;
    world.consumer.until(&cluster_bindings(), None, "east", managed).await;
    let copy = kept(&world).await;
    let sent = world.record();
    // Whoever lets copies stay where they are must not let go of what others hold either.
    let orphan = json!({"metadata": {"annotations": {"core.kbind.io/deletion-policy": "Orphan"}}});
    world.consumer.client.merge_patch(&cluster_bindings(), None, "east", &orphan).await.unwrap();
    world.consumer.delete(&cluster_bindings(), None, "east").await;
    world.consumer.until_gone(&cluster_bindings(), None, "east").await;
    assert_eq!(writes_to(&sent, "/widgets/"), Vec::<String>::new());
    assert_eq!(world.provider.get(&widgets(), Some(TEAM), "kept").await, Some(copy));
    assert!(other.get(&widgets(), Some(TEAM), "kept").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crd_of_somebody_else_serves_one_connection_at_a_time() {
    let world = bound_with_a_crd_of_somebody_else().await;
    let copy = kept(&world).await;
    for again in [true, false] {
        world.store("east", BINDER).await;
        world.connect("east", json!({})).await;
        world.bind("east", "east", json!({})).await;
        let binding = world.consumer.until(&cluster_bindings(), None, "east", managed).await;
        assert!(message(&binding, "Ready").contains("ClusterBinding west of Connection west"), "{binding}");
        if again {
            let sent = world.record();
            world.consumer.delete(&cluster_bindings(), None, "east").await;
            world.consumer.until_gone(&cluster_bindings(), None, "east").await;
            assert_eq!(writes_to(&sent, "/widgets/"), Vec::<String>::new());
            assert_eq!(world.provider.get(&widgets(), Some(TEAM), "kept").await.as_ref(), Some(&copy));
        }
    }
    // The next one has it as soon as the first is gone.
    world.consumer.delete(&cluster_bindings(), None, "west").await;
    world.consumer.until_gone(&cluster_bindings(), None, "west").await;
    world.is_ready(&cluster_bindings(), "east").await;
    world.copy_is("kept", |it| it["metadata"]["uid"] != copy["metadata"]["uid"]).await;
    world.probe("more").await;
}

/// The provider of `world` offers sheriffs under 0.8, and under v2.
async fn offered_twice(world: &mut World) {
    let mut crd = sheriff_crd();
    crd["metadata"]["labels"]["core.kbind.io/exported"] = json!("true");
    let spare = cluster(&[]).await;
    let provider = std::mem::replace(&mut world.provider, spare);
    let old = Provider::on(provider, "c-1").await;
    old.cluster.apply(&crd_kind(), &crd).await;
    old.write_schema(&crd).await;
    // Copies have the names of their objects, as in v2.
    let export = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExport",
        "metadata": {"name": "sheriffs", "namespace": "c-1"}, "spec": {"informerScope": "Cluster", "isolation": "None",
            "resources": [{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}]}});
    old.cluster.apply(&exports(), &export).await;
    let kubeconfig = secret("kube-bind", "old", &old.kubeconfig());
    world.consumer.apply(&secrets(), &kubeconfig).await;
    world.provider = old.cluster;
}

async fn bind_by_0_8(world: &World) {
    let binding = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "metadata": {"name": "sheriffs"},
        "spec": {"kubeconfigSecretRef": {"namespace": "kube-bind", "name": "old", "key": "kubeconfig"}}});
    world.consumer.apply(&bindings(), &binding).await;
}

async fn bind_by_v2(world: &World) {
    world.store("west", BINDER).await;
    world.connect("west", json!({})).await;
    world.bind("sheriffs", "west", json!({"apis": [{"name": "sheriffs.wild.io"}]})).await;
}

/// An object here with its copy, both at rest.
async fn sheriff(world: &World, finalizer: &str) -> (Value, Value) {
    world.consumer.until(&crd_kind(), None, "sheriffs.wild.io", is_established).await;
    let object = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "wyatt"}, "spec": {"intent": "law"}});
    world.consumer.apply(&sheriffs(), &object).await;
    world.provider.until(&sheriffs(), None, "wyatt", |it| it["spec"]["intent"] == "law").await;
    let up = json!({"status": {"result": "peace"}});
    world.provider.client.merge_patch_status(&sheriffs(), None, "wyatt", &up).await.unwrap();
    let at_rest = |it: &Value| it["status"]["result"] == "peace" && it["metadata"]["finalizers"] == json!([finalizer]);
    world.consumer.until(&sheriffs(), None, "wyatt", at_rest).await;
    let read = async |cluster: &Cluster| cluster.get(&sheriffs(), None, "wyatt").await.unwrap();
    (read(&world.consumer).await, read(&world.provider).await)
}

/// A binding goes, and neither the object of the other contract nor its copy has changed.
async fn goes_alone(world: &World, kind: &Resource, before: (Value, Value)) {
    let sent = world.record();
    world.consumer.delete(kind, None, "sheriffs").await;
    world.consumer.until_gone(kind, None, "sheriffs").await;
    assert_eq!(writes_to(&sent, "/sheriffs/wyatt"), Vec::<String>::new());
    let (source, copy) = before;
    assert_eq!(world.consumer.get(&sheriffs(), None, "wyatt").await, Some(source));
    assert_eq!(world.provider.get(&sheriffs(), None, "wyatt").await, Some(copy));
    assert!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_binding_of_0_8_goes_without_the_copies_of_v2() {
    let mut world = World::start().await;
    offered_twice(&mut world).await;
    bind_by_v2(&world).await;
    world.is_ready(&cluster_bindings(), "sheriffs").await;
    let before = sheriff(&world, FINALIZER).await;
    bind_by_0_8(&world).await;
    let foreign = |it: &Value| has(it, "Connected", "False", "ForeignCustomResourceDefinition");
    world.consumer.until(&bindings(), None, "sheriffs", foreign).await;
    goes_alone(&world, &bindings(), before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_binding_of_v2_goes_without_the_copies_of_0_8() {
    let mut world = World::start().await;
    offered_twice(&mut world).await;
    bind_by_0_8(&world).await;
    let before = sheriff(&world, "kubebind.io/syncer").await;
    bind_by_v2(&world).await;
    world.consumer.until(&cluster_bindings(), None, "sheriffs", managed).await;
    goes_alone(&world, &cluster_bindings(), before).await;
}
