//! What upstream's own suite demands (`test/e2e` of v2.0.0-rc4), one scenario for each of its tests and under its name: here on planes, in
//! `real::upstream` between real API servers.

use std::time::Duration;

use carrick_client::Resource;
use serde_json::{Value, json};

use super::related::{config_maps, entry, is_copied, object, secret};
use super::world::{
    Ground, TEAM, WIDGETS, World, bindings, cluster_bindings, connections, crd, has, is_established, leases, widget,
    widget_crd, widgets,
};
use crate::clusters::{BINDER, crd_kind, namespaces, secret as kubeconfig_secret, secrets};

/// Plays every demand on a ground; nothing is played if there is none.
macro_rules! play {
    ($ground:expr) => {
        $crate::core::upstream::play! { $ground;
            slim_core_happy_case
            slim_core_namespaced_binding
            slim_core_policies
            slim_core_open_api_source
            slim_core_kcp_like_provider
            slim_core_related_resources
            slim_core_related_config_maps
            slim_core_related_reverse_direction
            slim_core_related_named_selector
            slim_core_related_cleanup_on_unbind
            slim_core_stop_on_disengage
        }
    };
    ($ground:expr; $($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let ground: Option<$crate::core::world::Ground> = $ground;
            let Some(ground) = ground else { return };
            Box::pin($crate::core::upstream::$name(&ground)).await;
        }
    )*};
}
pub(crate) use play;

mod on_planes {
    super::play!(Some(crate::core::world::Ground::Planes));
}

const CONFLICT: &str = "core.kbind.io/conflict";

/// Upstream waits this long to see that nothing happens; here an object that is placed later shows it, too.
const NEVER: Duration = Duration::from_secs(1);

async fn related(ground: &Ground, entries: Value) -> World {
    let world = World::bound_on(ground).await;
    world.bind("west", "west", json!({ "relatedResources": entries })).await;
    world
}

async fn never(world: &World, probe: &str) {
    world.probe(probe).await;
    tokio::time::sleep(NEVER).await;
}

pub async fn slim_core_happy_case(ground: &Ground) {
    let world = World::bound_on(ground).await;
    let connection = world.is_ready(&connections(), "west").await;
    let status = &connection["status"];
    assert!(status["remoteClusterUID"].is_string() && status["localClusterUID"].is_string());
    assert!(status["exportedAPIs"].as_array().unwrap().iter().any(|api| api["name"] == WIDGETS));
    // The Lease is renewed.
    let uid = status["localClusterUID"].as_str().unwrap();
    let at = format!("consumer-{uid}");
    let held =
        |it: &Value| it["spec"]["holderIdentity"] == uid && it["metadata"]["labels"]["core.kbind.io/managed"] == "true";
    let first = world.provider.until(&leases(), Some("kbind"), &at, held).await["spec"]["renewTime"].clone();
    // The CRD is pulled and labelled.
    let pulled = world.consumer.get(&crd_kind(), None, WIDGETS).await.unwrap();
    assert_eq!(pulled["metadata"]["labels"]["core.kbind.io/managed"], "true");
    // Spec up, with label, two annotations and the finalizer; status down; update.
    let copy = world.order("a", 1).await;
    let source = world.source_is("a", |it| it["metadata"]["finalizers"] == json!(["core.kbind.io/syncer"])).await;
    let marks = &copy["metadata"]["annotations"];
    assert_eq!(copy["metadata"]["labels"]["core.kbind.io/managed"], "true");
    assert_eq!(
        (&marks["core.kbind.io/consumer-cluster-uid"], &marks["core.kbind.io/consumer-object-uid"]),
        (&json!(uid), &source["metadata"]["uid"])
    );
    let phase = json!({"status": {"phase": "Up"}});
    world.provider.client.merge_patch_status(&widgets(), Some(TEAM), "a", &phase).await.unwrap();
    world.source_is("a", |it| it["status"]["phase"] == "Up").await;
    world.consumer.client.merge_patch(&widgets(), Some(TEAM), "a", &json!({"spec": {"size": 2}})).await.unwrap();
    world.copy_is("a", |it| it["spec"]["size"] == 2).await;
    // A foreign object is untouched, and that is counted.
    let theirs = world.provider.apply(&widgets(), &widget("theirs", 9)).await;
    world.order_here("theirs", 1).await;
    world.source_is("theirs", |it| it["metadata"]["annotations"][CONFLICT].is_string()).await;
    let counted = |it: &Value| {
        it["status"]["boundAPIs"][0]["conflictCount"] == 1 && has(it, "Conflicts", "True", "ForeignObjectExists")
    };
    world.consumer.until(&cluster_bindings(), None, "west", counted).await;
    never(&world, "b").await;
    assert_eq!(world.provider.get(&widgets(), Some(TEAM), "theirs").await.unwrap(), theirs);
    // Deletion on both sides; deleting the object in conflict leaves the foreign one.
    for name in ["a", "theirs"] {
        world.consumer.delete(&widgets(), Some(TEAM), name).await;
        world.consumer.until_gone(&widgets(), Some(TEAM), name).await;
    }
    assert!(world.provider.get(&widgets(), Some(TEAM), "a").await.is_none());
    assert_eq!(world.provider.get(&widgets(), Some(TEAM), "theirs").await.unwrap(), theirs);
    // A CRD that is labelled later is found.
    let mut gadgets = crd("gadgets", "Gadget", "example.io", "Namespaced");
    let labels = gadgets["metadata"]["labels"].take();
    world.offer(&gadgets).await;
    world.bind("gadgets", "west", json!({"apis": [{"name": "gadgets.example.io"}]})).await;
    world.consumer.until(&cluster_bindings(), None, "gadgets", |it| has(it, "Ready", "False", "APINotExported")).await;
    let labelled = json!({"metadata": {"labels": labels}});
    world.provider.client.merge_patch(&crd_kind(), None, "gadgets.example.io", &labelled).await.unwrap();
    world.is_ready(&cluster_bindings(), "gadgets").await;
    // Adopt overwrites and marks.
    world.bind("west", "west", json!({"conflictPolicy": "Adopt"})).await;
    world.order("theirs", 3).await;
    let copy = world.provider.get(&widgets(), Some(TEAM), "theirs").await.unwrap();
    assert_eq!(copy["metadata"]["labels"]["core.kbind.io/managed"], "true");
    // A Connection before its Secret, which is held until the last Connection goes.
    world.connect("late", json!({})).await;
    world.consumer.until(&connections(), None, "late", |it| has(it, "Ready", "False", "SecretNotFound")).await;
    world.store("late", BINDER).await;
    world.is_ready(&connections(), "late").await;
    world.connect("other", json!({"kubeconfigSecretRef": {"name": "late"}})).await;
    world.is_ready(&connections(), "other").await;
    world.consumer.delete(&secrets(), Some("kbind"), "late").await;
    world.consumer.delete(&connections(), None, "late").await;
    world.consumer.until_gone(&connections(), None, "late").await;
    assert!(world.consumer.get(&secrets(), Some("kbind"), "late").await.is_some());
    world.consumer.delete(&connections(), None, "other").await;
    world.consumer.until_gone(&secrets(), Some("kbind"), "late").await;
    world.provider.until(&leases(), Some("kbind"), &at, |it| it["spec"]["renewTime"] != first).await;
    // Unbinding: copy, CRD and binding go.
    world.consumer.delete(&cluster_bindings(), None, "west").await;
    world.consumer.until_gone(&cluster_bindings(), None, "west").await;
    assert!(world.provider.get(&widgets(), Some(TEAM), "theirs").await.is_none());
    assert!(world.consumer.get(&crd_kind(), None, WIDGETS).await.is_none());
}

pub async fn slim_core_namespaced_binding(ground: &Ground) {
    let world = World::start_on(ground).await;
    world.store("west", BINDER).await;
    world.connect("west", json!({})).await;
    let binding = json!({"apiVersion": "core.kbind.io/v1alpha1", "kind": "Binding", "metadata": {"name": "widgets", "namespace": TEAM},
        "spec": {"connectionRef": {"name": "west"}, "apis": [{"name": WIDGETS}]}});
    world.consumer.apply(&bindings(), &binding).await;
    world.consumer.until(&bindings(), Some(TEAM), "widgets", |it| has(it, "Ready", "True", "AsExpected")).await;
    world.consumer.until(&crd_kind(), None, WIDGETS, is_established).await;
    let mut outside = widget("outside", 1);
    outside["metadata"]["namespace"] = json!("elsewhere");
    world.consumer.apply(&widgets(), &outside).await;
    world.order("inside", 1).await;
    never(&world, "probe").await;
    assert!(world.provider.get(&widgets(), Some("elsewhere"), "outside").await.is_none());
}

pub async fn slim_core_policies(ground: &Ground) {
    let world = World::bound_on(ground).await;
    // Orphan.
    world.order("a", 1).await;
    let orphan = json!({"metadata": {"annotations": {"core.kbind.io/deletion-policy": "Orphan"}}});
    world.consumer.client.merge_patch(&widgets(), Some(TEAM), "a", &orphan).await.unwrap();
    world.consumer.delete(&widgets(), Some(TEAM), "a").await;
    world.consumer.until_gone(&widgets(), Some(TEAM), "a").await;
    never(&world, "b").await;
    assert!(world.provider.get(&widgets(), Some(TEAM), "a").await.is_some());
    // A printer column follows.
    let mut changed = widget_crd();
    changed["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]);
    world.offer(&changed).await;
    let follows = |it: &Value| it["spec"]["versions"][0]["additionalPrinterColumns"][0]["name"] == "Size";
    world.consumer.until(&crd_kind(), None, WIDGETS, follows).await;
    // autoBind's ClusterBinding has label, owner and the API.
    let gadgets = "gadgets.example.io";
    world.offer(&crd("gadgets", "Gadget", "example.io", "Namespaced")).await;
    world.store("auto", BINDER).await;
    world.connect("auto", json!({"autoBind": true})).await;
    let lists =
        |it: &Value| it["spec"]["apis"].as_array().is_some_and(|all| all.iter().any(|api| api["name"] == gadgets));
    let automatic = world.consumer.until(&cluster_bindings(), None, "auto", lists).await;
    assert_eq!(automatic["metadata"]["labels"]["core.kbind.io/managed"], "true");
    assert_eq!(automatic["metadata"]["ownerReferences"][0]["name"], "auto");
    // All installs CRDs without a binding.
    world.offer(&crd("tools", "Tool", "example.io", "Namespaced")).await;
    world.store("all", BINDER).await;
    world.connect("all", json!({"schema": {"pullPolicy": "All"}})).await;
    world.consumer.until(&crd_kind(), None, "tools.example.io", is_established).await;
    // A user without rights.
    let strict = world.ground.strict_cluster(&["nobody"]).await;
    let text = strict.kubeconfig("nobody");
    world.consumer.apply(&secrets(), &kubeconfig_secret("kbind", "strict", &text)).await;
    world.connect("strict", json!({})).await;
    let denied =
        |it: &Value| has(it, "PermissionDenied", "True", "Forbidden") && has(it, "Ready", "False", "Forbidden");
    world.consumer.until(&connections(), None, "strict", denied).await;
}

/// A provider whose CRDs have no label.
async fn unlabelled(ground: &Ground, source: &str) -> World {
    let mut world = World::without_konnector_on(ground).await;
    world.install().await;
    let mut offered = widget_crd();
    offered["metadata"]["labels"] = json!({});
    world.offer(&offered).await;
    world.start_konnector();
    world.store("west", BINDER).await;
    world.connect("west", json!({"schema": {"source": source}})).await;
    world.bind("west", "west", json!({})).await;
    world
}

pub async fn slim_core_open_api_source(ground: &Ground) {
    let world = unlabelled(ground, "OpenAPI").await;
    let connection = world.is_ready(&connections(), "west").await;
    assert_eq!(connection["status"]["activeSchemaSource"], "OpenAPI");
    world.is_ready(&cluster_bindings(), "west").await;
    let pulled = world.consumer.until(&crd_kind(), None, WIDGETS, is_established).await;
    assert_eq!(pulled["metadata"]["labels"]["core.kbind.io/managed"], "true");
    world.order("a", 1).await;
}

pub async fn slim_core_kcp_like_provider(ground: &Ground) {
    let mut world = World::without_konnector_on(ground).await;
    world.install().await;
    let mut logical = crd("logicalclusters", "LogicalCluster", "core.kcp.io", "Cluster");
    logical["metadata"]["labels"] = json!({});
    logical["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved"});
    logical["spec"]["versions"][0]["name"] = json!("v1alpha1");
    world.offer(&logical).await;
    world.offer(&widget_crd()).await;
    let kind = Resource::cluster_wide("core.kcp.io", "v1alpha1", "LogicalCluster", "logicalclusters");
    let cluster =
        json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": {"name": "cluster"}});
    let cluster = world.provider.apply(&kind, &cluster).await;
    world.start_konnector();
    world.store("west", BINDER).await;
    world.connect("west", json!({"schema": {"source": "OpenAPI"}})).await;
    world.bind("west", "west", json!({})).await;
    let connection = world.is_ready(&connections(), "west").await;
    assert_eq!(connection["status"]["remoteClusterUID"], cluster["metadata"]["uid"]);
    let local = world.consumer.get(&namespaces(), None, "kube-system").await.unwrap();
    assert_eq!(connection["status"]["localClusterUID"], local["metadata"]["uid"]);
    assert_eq!(connection["status"]["activeSchemaSource"], "OpenAPI");
    world.is_ready(&cluster_bindings(), "west").await;
    world.order("a", 1).await;
}

/// A provider's object comes, goes when its label does, and a foreign one of its name is left.
async fn comes_and_goes(ground: &Ground, kind: &Resource, name: &str) {
    let world = related(ground, json!([entry(&kind.plural, "FromProvider")])).await;
    world.provider.apply(kind, &object(&kind.kind, "default", name, "MQ==", "widget")).await;
    let copy = is_copied(&world.consumer, kind, ("default", name), "MQ==").await;
    assert_eq!(copy["metadata"]["labels"]["core.kbind.io/managed"], "true");
    assert!(copy["metadata"]["annotations"]["core.kbind.io/related-binding"].is_string());
    let unlabelled = json!({"metadata": {"labels": {"app": null}}});
    world.provider.client.merge_patch(kind, Some("default"), name, &unlabelled).await.unwrap();
    world.consumer.until_gone(kind, Some("default"), name).await;
    let before = world.consumer.apply(kind, &object(&kind.kind, "default", "foreign", "Zg==", "none")).await;
    world.provider.apply(kind, &object(&kind.kind, "default", "foreign", "MQ==", "widget")).await;
    never(&world, "probe").await;
    assert_eq!(world.consumer.get(kind, Some("default"), "foreign").await.unwrap(), before);
}

pub async fn slim_core_related_resources(ground: &Ground) {
    comes_and_goes(ground, &secrets(), "widget-creds").await;
}

pub async fn slim_core_related_config_maps(ground: &Ground) {
    comes_and_goes(ground, &config_maps(), "widget-config").await;
}

pub async fn slim_core_related_reverse_direction(ground: &Ground) {
    let world = related(ground, json!([entry("secrets", "FromConsumer")])).await;
    world.consumer.apply(&secrets(), &secret("default", "consumer-creds", "MQ==")).await;
    let copy = is_copied(&world.provider, &secrets(), ("default", "consumer-creds"), "MQ==").await;
    assert_eq!(copy["metadata"]["labels"]["core.kbind.io/managed"], "true");
    assert!(copy["metadata"]["annotations"]["core.kbind.io/related-binding"].is_string());
    let unlabelled = json!({"metadata": {"labels": {"app": null}}});
    world.consumer.client.merge_patch(&secrets(), Some("default"), "consumer-creds", &unlabelled).await.unwrap();
    world.provider.until_gone(&secrets(), Some("default"), "consumer-creds").await;
}

pub async fn slim_core_related_named_selector(ground: &Ground) {
    let world = related(
        ground,
        json!([{"resource": "configmaps", "direction": "FromProvider", "selector": {"names": ["wanted"]}}]),
    )
    .await;
    for name in ["unwanted", "wanted"] {
        world.provider.apply(&config_maps(), &object("ConfigMap", "default", name, "v", "none")).await;
    }
    is_copied(&world.consumer, &config_maps(), ("default", "wanted"), "v").await;
    never(&world, "probe").await;
    assert!(world.consumer.get(&config_maps(), Some("default"), "unwanted").await.is_none());
}

pub async fn slim_core_related_cleanup_on_unbind(ground: &Ground) {
    let world = related(ground, json!([entry("secrets", "FromProvider")])).await;
    world.provider.apply(&secrets(), &secret("default", "widget-creds", "MQ==")).await;
    is_copied(&world.consumer, &secrets(), ("default", "widget-creds"), "MQ==").await;
    world.consumer.delete(&cluster_bindings(), None, "west").await;
    world.consumer.until_gone(&secrets(), Some("default"), "widget-creds").await;
    world.consumer.until_gone(&cluster_bindings(), None, "west").await;
}

/// Waits until nobody watches the provider's objects; only planes say who does.
async fn until_unwatched(world: &World) {
    let Ground::Planes = world.ground else { return };
    let is_ours = |it: &carrick_plane::faults::RequestInfo| it.user == BINDER && it.resource == "widgets";
    let unwatched = async {
        while world.provider.plane().faults().open_watches().iter().any(is_ours) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), unwatched).await.expect("its watches end");
}

pub async fn slim_core_stop_on_disengage(ground: &Ground) {
    let world = World::bound_on(ground).await;
    world.order("w1", 1).await;
    world.store_text("west", "not-a-kubeconfig").await;
    world.consumer.until(&connections(), None, "west", |it| has(it, "Ready", "False", "SecretNotFound")).await;
    // What is ordered meanwhile waits. Upstream gives its konnector a moment to stop, too.
    until_unwatched(&world).await;
    world.order_here("meanwhile", 1).await;
    tokio::time::sleep(NEVER).await;
    assert!(world.provider.get(&widgets(), Some(TEAM), "meanwhile").await.is_none());
    world.store("west", BINDER).await;
    world.is_ready(&cluster_bindings(), "west").await;
    world.order("w2", 2).await;
    world.copy_is("meanwhile", |copy| copy["spec"]["size"] == 1).await;
}
