//! What is not ours is neither written nor deleted, whatever providers answer.

use carrick_client::Resource;
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::{Value, json};

use super::world::{
    TEAM, WIDGETS, World, cluster, cluster_bindings, connections, crd, has, message, widget, widget_crd, widgets,
};
use crate::clusters::{BINDER, crd_kind, namespaces};

const CONFLICT: &str = "core.kbind.io/conflict";

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_had_before_is_left_alone_until_the_binding_adopts_it() {
    let world = World::start().await;
    world.provider.apply(&widgets(), &widget("theirs", 9)).await;
    let before = world.provider.get(&widgets(), Some(TEAM), "theirs").await;
    world.store("west", BINDER).await;
    world.connect("west", json!({})).await;
    world.bind("west", "west", json!({})).await;
    world.is_ready(&cluster_bindings(), "west").await;
    world.order_here("theirs", 1).await;
    world.source_is("theirs", |it| it["metadata"]["annotations"][CONFLICT] == "ForeignObjectExists").await;
    let counted = |it: &Value| it["status"]["boundAPIs"][0]["conflictCount"] == 1;
    let binding = world.consumer.until(&cluster_bindings(), None, "west", counted).await;
    assert!(has(&binding, "Conflicts", "True", "ForeignObjectExists") && has(&binding, "Ready", "True", "AsExpected"));
    let events = carrick_client::Resource::namespaced("", "v1", "Event", "events");
    let uid = world.consumer.get(&widgets(), Some(TEAM), "theirs").await.unwrap()["metadata"]["uid"].clone();
    let event = format!("theirs.foreignobjectexists-{}", uid.as_str().unwrap());
    let event = world.consumer.until(&events, Some(TEAM), &event, |_| true).await;
    let words =
        "provider object team/theirs already exists and is foreign-unmanaged; not overwriting (conflictPolicy: Fail)";
    assert_eq!((&event["message"], &event["source"]["component"]), (&json!(words), &json!("kbind-konnector")));
    world.probe("b").await;
    assert_eq!(world.provider.get(&widgets(), Some(TEAM), "theirs").await, before);
    // Deleting ours leaves theirs.
    world.consumer.delete(&widgets(), Some(TEAM), "theirs").await;
    world.consumer.until_gone(&widgets(), Some(TEAM), "theirs").await;
    world.probe("c").await;
    assert_eq!(world.provider.get(&widgets(), Some(TEAM), "theirs").await, before);
    world.order_here("theirs", 2).await;
    world.source_is("theirs", |it| it["metadata"]["annotations"][CONFLICT].is_string()).await;
    world.bind("west", "west", json!({"conflictPolicy": "Adopt"})).await;
    let copy = world.copy_is("theirs", |it| it["spec"]["size"] == 2).await;
    assert_eq!(copy["metadata"]["labels"]["core.kbind.io/managed"], "true");
    world.source_is("theirs", |it| it["metadata"]["annotations"].get(CONFLICT).is_none()).await;
    world.consumer.until(&cluster_bindings(), None, "west", |it| has(it, "Conflicts", "False", "AsExpected")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_behind_the_kubeconfig_is_refused_and_gets_nothing() {
    let world = World::bound().await;
    world.probe("a").await;
    let other = cluster(&[BINDER]).await;
    other.apply(&crd_kind(), &widget_crd()).await;
    world.store_text("west", &other.kubeconfig(BINDER)).await;
    let changed = |it: &Value| has(it, "Connected", "False", "ClusterIdentityChanged");
    let connection = world.consumer.until(&connections(), None, "west", changed).await;
    let uid = other.get(&namespaces(), None, "kube-system").await.unwrap()["metadata"]["uid"].clone();
    let words = format!("kubeconfig now points at cluster {}, but ", uid.as_str().unwrap());
    assert!(message(&connection, "Connected").starts_with(&words), "{connection}");
    assert_ne!(connection["status"]["remoteClusterUID"], uid, "what was pinned stays");
    assert!(has(&connection, "Ready", "False", "ClusterIdentityChanged"));
    world.order_here("b", 1).await;
    world.consumer.delete(&widgets(), Some(TEAM), "a").await;
    world.consumer.until(&cluster_bindings(), None, "west", |it| has(it, "Ready", "False", "Pending")).await;
    assert!(other.get(&widgets(), Some(TEAM), "b").await.is_none());
    assert!(world.consumer.get(&widgets(), Some(TEAM), "a").await.is_some(), "it waits for its copy");
    // The right one again: everything goes on.
    world.store("west", BINDER).await;
    world.copy_is("b", |_| true).await;
    world.provider.until_gone(&widgets(), Some(TEAM), "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_a_short_and_a_refused_discovery_delete_nothing() {
    let world = World::start().await;
    world.offer(&crd("gadgets", "Gadget", "example.io", "Namespaced")).await;
    // kcp's own, which a workspace offers like any other.
    world.offer(&crd("things", "Thing", "apis.kcp.io", "Cluster")).await;
    world.store("west", BINDER).await;
    world.connect("west", json!({"autoBind": true})).await;
    let binding = world.is_ready(&cluster_bindings(), "west").await;
    let listed = |it: &Value| it["spec"]["apis"] == json!([{"name": "gadgets.example.io"}, {"name": WIDGETS}]);
    assert!(listed(&binding), "kcp's groups are not bound without being asked for: {binding}");
    assert_eq!(binding["metadata"]["labels"]["core.kbind.io/managed"], "true");
    assert_eq!(binding["metadata"]["ownerReferences"][0]["kind"], "Connection");
    let exported = world.is_ready(&connections(), "west").await["status"]["exportedAPIs"].clone();
    assert_eq!(exported.as_array().unwrap().len(), 3, "{exported}");
    world.order("a", 1).await;

    // Nothing has the label any more.
    let unlabelled = json!({"metadata": {"labels": {"core.kbind.io/exported": null}}});
    for name in [WIDGETS, "gadgets.example.io", "things.apis.kcp.io"] {
        world.provider.client.merge_patch(&crd_kind(), None, name, &unlabelled).await.unwrap();
    }
    let empty = |it: &Value| it["status"]["exportedAPIs"].as_array().is_none_or(Vec::is_empty);
    world.consumer.until(&connections(), None, "west", empty).await;
    let noted = |it: &Value| it["metadata"]["annotations"]["core.kbind.io/gone-since"].is_string();
    let binding = world.consumer.until(&cluster_bindings(), None, "west", noted).await;
    assert!(listed(&binding) && binding["metadata"].get("deletionTimestamp").is_none(), "{binding}");
    world.consumer.until(&cluster_bindings(), None, "west", |it| has(it, "Ready", "False", "APINotExported")).await;
    let still_there = async |what: &str| {
        assert!(world.consumer.get(&crd_kind(), None, WIDGETS).await.is_some(), "{what}: the API");
        assert!(world.consumer.get(&widgets(), Some(TEAM), "a").await.is_some(), "{what}: the object");
        assert!(world.provider.get(&widgets(), Some(TEAM), "a").await.is_some(), "{what}: the copy");
    };
    still_there("empty").await;

    // One comes back: a short answer.
    world.offer(&widget_crd()).await;
    let one = |it: &Value| it["status"]["exportedAPIs"].as_array().is_some_and(|all| all.len() == 1);
    world.consumer.until(&connections(), None, "west", one).await;
    world.probe("b").await;
    assert!(listed(&world.consumer.get(&cluster_bindings(), None, "west").await.unwrap()));
    assert!(world.consumer.get(&crd_kind(), None, "gadgets.example.io").await.is_some());
    still_there("short").await;

    // The provider refuses to say what it offers.
    let faults = world.provider.plane().faults();
    let asked = || Match::any().user(BINDER).resource("apiextensions.k8s.io", "customresourcedefinitions");
    let rule = faults.add(Rule::new(asked(), Effect::refuse(403)));
    faults.cut_watches(&asked());
    let denied =
        |it: &Value| has(it, "PermissionDenied", "True", "Forbidden") && has(it, "Ready", "False", "Forbidden");
    let connection = world.consumer.until(&connections(), None, "west", denied).await;
    assert!(one(&connection), "what was offered stays known: {connection}");
    still_there("refused").await;
    faults.remove(rule);
    world.is_ready(&connections(), "west").await;
    world.probe("c").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crds_of_somebody_else_are_neither_overwritten_nor_deleted() {
    let world = World::start().await;
    let mut theirs = widget_crd();
    theirs["metadata"]["labels"] = json!({"made-by": "another-operator"});
    theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["colour"] =
        json!({"type": "string"});
    world.consumer.apply(&crd_kind(), &theirs).await;
    world.consumer.until(&crd_kind(), None, WIDGETS, super::world::is_established).await;
    let before = world.consumer.get(&crd_kind(), None, WIDGETS).await.unwrap();
    world.store("west", BINDER).await;
    world.connect("west", json!({})).await;
    world.bind("west", "west", json!({})).await;
    let foreign = |it: &Value| has(it, "Ready", "False", "ForeignCRD");
    let binding = world.consumer.until(&cluster_bindings(), None, "west", foreign).await;
    assert!(message(&binding, "Ready").contains("installed by somebody else"), "{binding}");
    assert_eq!(world.consumer.get(&crd_kind(), None, WIDGETS).await.unwrap(), before);

    // One that serves the same is used, and not marked.
    let mut same = theirs.clone();
    same["spec"] = widget_crd()["spec"].clone();
    world.consumer.apply(&crd_kind(), &same).await;
    world.is_ready(&cluster_bindings(), "west").await;
    world.order("a", 1).await;
    world.consumer.delete(&cluster_bindings(), None, "west").await;
    world.consumer.until_gone(&cluster_bindings(), None, "west").await;
    let crd = world.consumer.get(&crd_kind(), None, WIDGETS).await.unwrap();
    assert_eq!(crd["metadata"]["uid"], before["metadata"]["uid"], "it is still there");
    assert_eq!(crd["metadata"]["labels"], json!({"made-by": "another-operator"}));
    assert!(world.consumer.get(&widgets(), Some(TEAM), "a").await.is_some(), "and so is the object");
    assert!(world.provider.get(&widgets(), Some(TEAM), "a").await.is_none(), "its copy is not");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_another_contract_has_installed_is_left_to_it() {
    let world = World::bound().await;
    // Another Connection to the same provider wants the same API.
    world.store("east", BINDER).await;
    world.connect("east", json!({})).await;
    world.bind("east", "east", json!({})).await;
    let managed = |it: &Value| has(it, "Ready", "False", "APIManagedByOther");
    let binding = world.consumer.until(&cluster_bindings(), None, "east", managed).await;
    assert!(message(&binding, "Ready").contains("Connection west"), "{binding}");
    // An API of kube-bind 0.8, whose binding owns its CRD.
    let old = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "metadata": {"name": "old"},
        "spec": {"kubeconfigSecretRef": {"namespace": "kube-bind", "name": "none", "key": "kubeconfig"}}});
    let owner = world.consumer.apply(&crate::clusters::bindings(), &old).await;
    let mut gadgets = crd("gadgets", "Gadget", "example.io", "Namespaced");
    world.offer(&gadgets).await;
    gadgets["metadata"] = json!({"name": "gadgets.example.io", "ownerReferences": [{"apiVersion": "kube-bind.io/v1alpha2",
        "kind": "APIServiceBinding", "name": "old", "uid": owner["metadata"]["uid"], "controller": true}]});
    world.consumer.apply(&crd_kind(), &gadgets).await;
    world.bind("gadgets", "west", json!({"apis": [{"name": "gadgets.example.io"}]})).await;
    let binding = world.consumer.until(&cluster_bindings(), None, "gadgets", managed).await;
    assert!(message(&binding, "Ready").contains("APIServiceBinding old"), "{binding}");
    assert!(!has(&binding, "Synced", "True", "AsExpected"));
    // Both go without taking anything along, not even for a moment.
    world.order("kept", 1).await;
    let is_held = |it: &Value| it["metadata"]["finalizers"] == json!(["core.kbind.io/syncer"]);
    world.source_is("kept", is_held).await;
    let copy = world.provider.get(&widgets(), Some(TEAM), "kept").await;
    let sent = world.record();
    for name in ["east", "gadgets"] {
        world.consumer.delete(&cluster_bindings(), None, name).await;
        world.consumer.until_gone(&cluster_bindings(), None, name).await;
    }
    assert_eq!(world.provider.get(&widgets(), Some(TEAM), "kept").await, copy);
    assert!(is_held(&world.consumer.get(&widgets(), Some(TEAM), "kept").await.unwrap()));
    assert_eq!(super::world::writes_to(&sent, "/widgets/"), Vec::<String>::new());
    for name in [WIDGETS, "gadgets.example.io"] {
        assert!(world.consumer.get(&crd_kind(), None, name).await.is_some(), "{name}");
    }
    world.probe("a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_outside_the_konnectors_namespaces_is_not_used() {
    let world = World::start().await;
    let kubeconfig = world.provider.kubeconfig(BINDER);
    let secret = crate::clusters::secret("elsewhere", "west", &kubeconfig);
    world.consumer.apply(&crate::clusters::secrets(), &secret).await;
    world.connect("west", json!({"kubeconfigSecretRef": {"namespace": "elsewhere"}})).await;
    let refused = |it: &Value| has(it, "SecretValid", "False", "SecretNotFound");
    let connection = world.consumer.until(&connections(), None, "west", refused).await;
    assert!(message(&connection, "SecretValid").contains("--secrets-anywhere"), "{connection}");
    let left = world.consumer.get(&crate::clusters::secrets(), Some("elsewhere"), "west").await.unwrap();
    assert!(left["metadata"].get("finalizers").is_none(), "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_bind_0_8_leaves_what_v2_has_installed_and_carries_no_kubeconfig_of_a_connection() {
    let world = World::bound().await;
    world.offer(&crate::clusters::sheriff_crd()).await;
    let label = json!({"metadata": {"labels": {"core.kbind.io/exported": "true"}}});
    world.provider.client.merge_patch(&crd_kind(), None, "sheriffs.wild.io", &label).await.unwrap();
    world.bind("sheriffs", "west", json!({"apis": [{"name": "sheriffs.wild.io"}]})).await;
    world.is_ready(&cluster_bindings(), "sheriffs").await;
    let pulled = world.consumer.until(&crd_kind(), None, "sheriffs.wild.io", super::world::is_established).await;
    // A provider of 0.8 offers an API of the same name, and another one for which it claims all Secrets with a label.
    let old = crate::clusters::Provider::start("c-1").await;
    old.export("sheriffs").await;
    let claims =
        json!([{"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "shop"}}}}]);
    old.export_claiming("outlaws", &crate::clusters::crd("outlaws", "Outlaw"), &claims).await;
    let secret = crate::clusters::secret("kube-bind", "old", &old.kubeconfig());
    world.consumer.apply(&crate::clusters::secrets(), &secret).await;
    for name in ["sheriffs", "outlaws"] {
        let binding = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "metadata": {"name": name},
            "spec": {"kubeconfigSecretRef": {"namespace": "kube-bind", "name": "old", "key": "kubeconfig"}}});
        world.consumer.apply(&crate::clusters::bindings(), &binding).await;
    }
    let foreign = |it: &Value| has(it, "Connected", "False", "ForeignCustomResourceDefinition");
    world.consumer.until(&crate::clusters::bindings(), None, "sheriffs", foreign).await;
    let after = world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.unwrap();
    assert_eq!((&after["metadata"]["uid"], &after["spec"]), (&pulled["metadata"]["uid"], &pulled["spec"]));
    assert!(after["metadata"].get("ownerReferences").is_none(), "{after}");
    world.is_ready(&cluster_bindings(), "sheriffs").await;
    // The Secret of the Connection is labelled as the claim wants it, and so is another one.
    let ready = |it: &Value| {
        let mut conditions = it["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
    };
    world.consumer.until(&crate::clusters::bindings(), None, "outlaws", ready).await;
    let labelled = json!({"metadata": {"labels": {"app": "shop"}}});
    let secrets = crate::clusters::secrets();
    world.consumer.client.merge_patch(&secrets, Some("kbind"), "west", &labelled).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let namespaces = Resource::namespaced("kube-bind.io", "v1alpha2", "APIServiceNamespace", "apiservicenamespaces");
    let asked = old.cluster.client.list(&namespaces, None, &carrick_client::ListOptions::default()).await.unwrap();
    assert!(asked.iter().all(|it| it["metadata"]["name"] != "kbind"), "{asked:?}");
    let unmarked = world.consumer.get(&secrets, Some("kbind"), "west").await.unwrap();
    assert_eq!(unmarked["metadata"]["labels"], json!({"app": "shop"}), "it is not chosen to be copied");
}
