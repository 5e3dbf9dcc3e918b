//! Related Secrets and ConfigMaps travel either way, by whoever selects them, and nothing else does.

use std::time::Duration;

use carrick_client::Resource;
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::{Value, json};

use super::world::{TEAM, World, bindings, cluster_bindings, has, message};
use crate::clusters::{BINDER, Cluster, KONNECTOR, secrets};

pub fn config_maps() -> Resource {
    Resource::namespaced("", "v1", "ConfigMap", "configmaps")
}

pub fn object(kind: &str, namespace: &str, name: &str, value: &str, app: &str) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "data": {"a": value},
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}}});
    if kind == "Secret" {
        object["type"] = json!("Opaque");
    }
    object
}

pub fn secret(namespace: &str, name: &str, value: &str) -> Value {
    object("Secret", namespace, name, value, "widget")
}

/// An entry that selects by the label `app: widget`.
pub fn entry(resource: &str, direction: &str) -> Value {
    json!({"resource": resource, "direction": direction, "selector": {"labelSelector": {"matchLabels": {"app": "widget"}}}})
}

async fn relates(entries: &[Value]) -> World {
    let world = World::bound().await;
    world.bind("west", "west", json!({ "relatedResources": entries })).await;
    world
}

pub async fn is_copied(cluster: &Cluster, kind: &Resource, at: (&str, &str), value: &str) -> Value {
    cluster.until(kind, Some(at.0), at.1, |it| it["data"]["a"] == value).await
}

/// What comes later is copied: everything before was decided.
async fn is_past(world: &World, name: &str) {
    world.provider.apply(&secrets(), &secret("default", name, "MQ==")).await;
    is_copied(&world.consumer, &secrets(), ("default", name), "MQ==").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selected_object_is_copied_followed_and_gone_when_it_is_selected_no_more_either_way() {
    for (resource, kind, from_provider) in [
        (secrets(), "Secret", true),
        (config_maps(), "ConfigMap", true),
        (secrets(), "Secret", false),
        (config_maps(), "ConfigMap", false),
    ] {
        let direction = if from_provider { "FromProvider" } else { "FromConsumer" };
        let world = relates(&[entry(&resource.plural, direction)]).await;
        let (from, to) =
            if from_provider { (&world.provider, &world.consumer) } else { (&world.consumer, &world.provider) };
        let at = ("default", "creds");
        from.apply(&resource, &object(kind, at.0, at.1, "MQ==", "widget")).await;
        let copy = is_copied(to, &resource, at, "MQ==").await;
        let binding = world.consumer.get(&cluster_bindings(), None, "west").await.unwrap();
        let marks = &copy["metadata"]["annotations"];
        assert_eq!(marks["core.kbind.io/related-binding"], binding["metadata"]["uid"]);
        assert_eq!(copy["metadata"]["labels"], json!({"core.kbind.io/managed": "true"}));
        from.apply(&resource, &object(kind, at.0, at.1, "Mg==", "widget")).await;
        is_copied(to, &resource, at, "Mg==").await;
        // What somebody changes of it is brought back, and what somebody deletes comes back.
        to.client.merge_patch(&resource, Some(at.0), at.1, &json!({"data": {"a": "Mw=="}})).await.unwrap();
        is_copied(to, &resource, at, "Mg==").await;
        to.delete(&resource, Some(at.0), at.1).await;
        is_copied(to, &resource, at, "Mg==").await;
        let other = json!({"metadata": {"labels": {"app": "other"}}});
        from.client.merge_patch(&resource, Some(at.0), at.1, &other).await.unwrap();
        to.until_gone(&resource, Some(at.0), at.1).await;
        assert!(from.get(&resource, Some(at.0), at.1).await.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_other_side_had_before_is_left_alone_and_reported() {
    let world = World::bound().await;
    let theirs = object("Secret", "default", "creds", "Zm9yZWlnbg==", "none");
    let before = world.consumer.apply(&secrets(), &theirs).await;
    world.provider.apply(&secrets(), &secret("default", "creds", "MQ==")).await;
    world.bind("west", "west", json!({"relatedResources": [entry("secrets", "FromProvider")]})).await;
    let refused = |it: &Value| has(it, "RelatedSynced", "False", "ForeignObjectExists");
    let binding = world.consumer.until(&cluster_bindings(), None, "west", refused).await;
    assert!(message(&binding, "RelatedSynced").contains("default/creds"), "{binding}");
    assert!(!binding.to_string().contains("MQ=="), "nothing of its content is shown");
    is_past(&world, "later").await;
    assert_eq!(world.consumer.get(&secrets(), Some("default"), "creds").await.unwrap(), before);
    world.consumer.delete(&secrets(), Some("default"), "creds").await;
    is_copied(&world.consumer, &secrets(), ("default", "creds"), "MQ==").await;
    world.consumer.until(&cluster_bindings(), None, "west", |it| !refused(it)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_by_name_and_by_label_stand_beside_each_other_and_one_that_is_removed_cleans_up() {
    let by_name = json!({"resource": "secrets", "direction": "FromProvider", "selector": {"names": ["named"]}});
    let mut world =
        relates(&[by_name.clone(), entry("secrets", "FromProvider"), entry("configmaps", "FromConsumer")]).await;
    world.provider.apply(&secrets(), &object("Secret", "default", "named", "MQ==", "none")).await;
    world.provider.apply(&secrets(), &object("Secret", "default", "unnamed", "MQ==", "none")).await;
    world.provider.apply(&secrets(), &secret("default", "labelled", "MQ==")).await;
    world.consumer.apply(&config_maps(), &object("ConfigMap", "team", "settings", "1", "widget")).await;
    for name in ["named", "labelled"] {
        is_copied(&world.consumer, &secrets(), ("default", name), "MQ==").await;
    }
    is_copied(&world.provider, &config_maps(), ("team", "settings"), "1").await;
    assert!(world.consumer.get(&secrets(), Some("default"), "unnamed").await.is_none());
    // Entries are removed while nobody runs.
    world.stop_konnector().await;
    world.bind("west", "west", json!({"relatedResources": [by_name]})).await;
    world.start_konnector();
    world.provider.until_gone(&config_maps(), Some("team"), "settings").await;
    world.consumer.until_gone(&secrets(), Some("default"), "labelled").await;
    assert!(world.consumer.get(&secrets(), Some("default"), "named").await.is_some());
    let recorded = |it: &Value| it["metadata"]["annotations"]["core.kbind.io/related-kinds"] == "FromProvider/secrets";
    world.consumer.until(&cluster_bindings(), None, "west", recorded).await;
    assert!(world.consumer.get(&config_maps(), Some("team"), "settings").await.is_some(), "the source stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn unbinding_takes_related_copies_along_and_leaves_their_sources() {
    let world = relates(&[entry("secrets", "FromProvider"), entry("configmaps", "FromConsumer")]).await;
    world.provider.apply(&secrets(), &secret("default", "creds", "MQ==")).await;
    world.consumer.apply(&config_maps(), &object("ConfigMap", "default", "settings", "1", "widget")).await;
    is_copied(&world.consumer, &secrets(), ("default", "creds"), "MQ==").await;
    is_copied(&world.provider, &config_maps(), ("default", "settings"), "1").await;
    // One copy is held: the binding waits for it, and says so.
    let hold = json!({"metadata": {"finalizers": ["example.io/held"]}});
    world.provider.client.merge_patch(&config_maps(), Some("default"), "settings", &hold).await.unwrap();
    world.consumer.delete(&cluster_bindings(), None, "west").await;
    let waits = |it: &Value| message(it, "Ready").contains("related copies");
    world.consumer.until(&cluster_bindings(), None, "west", waits).await;
    world.consumer.until_gone(&secrets(), Some("default"), "creds").await;
    let release = json!({"metadata": {"finalizers": null}});
    world.provider.client.merge_patch(&config_maps(), Some("default"), "settings", &release).await.unwrap();
    world.consumer.until_gone(&cluster_bindings(), None, "west").await;
    assert!(world.provider.get(&config_maps(), Some("default"), "settings").await.is_none());
    assert!(world.provider.get(&secrets(), Some("default"), "creds").await.is_some());
    assert!(world.consumer.get(&config_maps(), Some("default"), "settings").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_whose_type_has_changed_is_copied_anew() {
    let mut world = relates(&[entry("secrets", "FromProvider")]).await;
    world.provider.apply(&secrets(), &secret("default", "creds", "MQ==")).await;
    let before = is_copied(&world.consumer, &secrets(), ("default", "creds"), "MQ==").await;
    // Nobody sees that it was away.
    world.stop_konnector().await;
    world.provider.delete(&secrets(), Some("default"), "creds").await;
    let mut other = secret("default", "creds", "Mg==");
    other["type"] = json!("example.io/other");
    world.provider.apply(&secrets(), &other).await;
    world.start_konnector();
    let after = is_copied(&world.consumer, &secrets(), ("default", "creds"), "Mg==").await;
    assert_eq!(after["type"], "example.io/other");
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_is_for_its_namespace_and_no_other() {
    let world = World::start().await;
    world.store("west", BINDER).await;
    world.connect("west", json!({})).await;
    let binding = json!({"apiVersion": "core.kbind.io/v1alpha1", "kind": "Binding", "metadata": {"name": "widgets", "namespace": TEAM},
        "spec": {"connectionRef": {"name": "west"}, "apis": [{"name": super::world::WIDGETS}],
            "relatedResources": [entry("secrets", "FromProvider")]}});
    world.consumer.apply(&bindings(), &binding).await;
    world.provider.apply(&secrets(), &secret("default", "creds", "MQ==")).await;
    world.provider.apply(&secrets(), &secret(TEAM, "creds", "MQ==")).await;
    is_copied(&world.consumer, &secrets(), (TEAM, "creds"), "MQ==").await;
    assert!(world.consumer.get(&secrets(), Some("default"), "creds").await.is_none());
    let watched = world.provider.plane().faults().open_watches();
    let all: Vec<_> = watched.iter().filter(|it| it.user == BINDER && it.resource == "secrets").collect();
    assert!(!all.is_empty() && all.iter().all(|it| it.path.contains("/namespaces/team/")), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_provider_writes_no_credentials_and_only_where_its_api_is_used() {
    let everything = json!({"resource": "secrets", "direction": "FromProvider"});
    let world = relates(&[everything, entry("secrets", "FromProvider")]).await;
    // Whoever provides another Connection, whose Secret does not exist yet, must not be this provider.
    world.connect("east", json!({})).await;
    let token = "kubernetes.io/service-account-token";
    let mut forged = secret("default", "token", "MQ==");
    forged["type"] = json!(token);
    forged["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "admin"});
    for found in [
        forged,
        secret("kube-system", "creds", "MQ=="),
        secret("kube-bind", "creds", "MQ=="),
        secret("kbind", "east", "MQ=="),
        secret("monitoring", "creds", "MQ=="),
    ] {
        world.provider.apply(&secrets(), &found).await;
    }
    is_past(&world, "later").await;
    let says = |it: &Value| message(it, "RelatedSynced").contains("monitoring/creds: providers write only where");
    world.consumer.until(&cluster_bindings(), None, "west", says).await;
    for (namespace, name) in [
        ("default", "token"),
        ("kube-system", "creds"),
        ("kube-bind", "creds"),
        ("kbind", "east"),
        ("monitoring", "creds"),
    ] {
        assert!(world.consumer.get(&secrets(), Some(namespace), name).await.is_none(), "{namespace}/{name}");
    }
    // Somebody uses the API there.
    let mut order = super::world::widget("a", 1);
    order["metadata"]["namespace"] = json!("monitoring");
    world.consumer.apply(&super::world::widgets(), &order).await;
    is_copied(&world.consumer, &secrets(), ("monitoring", "creds"), "MQ==").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_credentials_and_no_copies_of_one_provider_go_to_another() {
    let world = relates(&[entry("secrets", "FromProvider")]).await;
    world.provider.apply(&secrets(), &secret("default", "from-west", "MQ==")).await;
    is_copied(&world.consumer, &secrets(), ("default", "from-west"), "MQ==").await;
    let east = super::world::cluster(&[BINDER]).await;
    east.apply(&crate::clusters::crd_kind(), &super::world::crd("gadgets", "Gadget", "example.io", "Namespaced")).await;
    world.store_text("east", &east.kubeconfig(BINDER)).await;
    world.connect("east", json!({})).await;
    let everything = json!({"resource": "secrets", "direction": "FromConsumer"});
    let spec = json!({"apis": [{"name": "gadgets.example.io"}], "relatedResources": [everything]});
    let mut token = secret("default", "token", "MQ==");
    token["type"] = json!("kubernetes.io/service-account-token");
    token["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "admin"});
    world.consumer.apply(&secrets(), &token).await;
    world.consumer.apply(&secrets(), &secret("kube-system", "creds", "MQ==")).await;
    world.consumer.apply(&secrets(), &secret("default", "own", "MQ==")).await;
    world.bind("east", "east", spec).await;
    is_copied(&east, &secrets(), ("default", "own"), "MQ==").await;
    world.consumer.apply(&secrets(), &secret("default", "later", "MQ==")).await;
    is_copied(&east, &secrets(), ("default", "later"), "MQ==").await;
    let all = east.client.list(&secrets(), None, &carrick_client::ListOptions::default()).await.unwrap();
    let mut names: Vec<_> =
        all.iter().map(|it| format!("{}/{}", it["metadata"]["namespace"], it["metadata"]["name"])).collect();
    names.sort();
    assert_eq!(names, ["\"default\"/\"later\"", "\"default\"/\"own\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_rest_nothing_is_asked_for_them_and_a_restart_writes_nothing() {
    let mut world = relates(&[entry("secrets", "FromProvider"), entry("configmaps", "FromConsumer")]).await;
    world.provider.apply(&secrets(), &secret("default", "creds", "MQ==")).await;
    world.provider.apply(&secrets(), &object("Secret", "default", "other", "MQ==", "none")).await;
    // One that is in the way, and one where nobody uses the API.
    world.consumer.apply(&secrets(), &object("Secret", "default", "foreign", "Zg==", "none")).await;
    world.provider.apply(&secrets(), &secret("default", "foreign", "MQ==")).await;
    world.provider.apply(&secrets(), &secret("unused", "creds", "MQ==")).await;
    world.consumer.apply(&config_maps(), &object("ConfigMap", "shop", "settings", "1", "widget")).await;
    is_copied(&world.consumer, &secrets(), ("default", "creds"), "MQ==").await;
    is_copied(&world.provider, &config_maps(), ("shop", "settings"), "1").await;
    let told = |it: &Value| {
        message(it, "RelatedSynced").contains("unused") && message(it, "RelatedSynced").contains("foreign")
    };
    world.consumer.until(&cluster_bindings(), None, "west", told).await;
    let sent = |recordings: &[carrick_plane::faults::Recording; 2], only_writes: bool| -> Vec<String> {
        let all = recordings.iter().flat_map(|it| if only_writes { it.writes() } else { it.records() });
        let ours = all.filter(|it| [KONNECTOR, BINDER].contains(&it.ask.user.as_str()));
        let other = ours.filter(|it| it.ask.verb != "watch" && !it.ask.path.contains("/leases"));
        other.map(|it| format!("{} {}", it.ask.verb, it.ask.path)).collect()
    };
    tokio::time::sleep(Duration::from_millis(500)).await;
    let quiet = world.record();
    // Secrets of others change, as they do all day.
    for value in ["Mg==", "Mw=="] {
        world.consumer.apply(&secrets(), &object("Secret", "default", "unrelated", value, "none")).await;
        world.provider.apply(&secrets(), &object("Secret", "default", "unrelated", value, "none")).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(sent(&quiet, false), Vec::<String>::new(), "at rest");
    world.stop_konnector().await;
    let restart = world.record();
    world.start_konnector();
    is_past(&world, "later").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let is_old = |it: &String| ["creds", "settings", "foreign", "clusterbindings"].iter().any(|name| it.contains(name));
    let old: Vec<String> = sent(&restart, true).into_iter().filter(is_old).collect();
    assert_eq!(old, Vec::<String>::new(), "after a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_is_named_and_deletes_nothing() {
    let world = relates(&[entry("secrets", "FromProvider")]).await;
    world.provider.apply(&secrets(), &secret("default", "creds", "MQ==")).await;
    is_copied(&world.consumer, &secrets(), ("default", "creds"), "MQ==").await;
    let faults = world.provider.plane().faults();
    let asked = || Match::any().user(BINDER).resource("", "secrets");
    let rule = faults.add(Rule::new(asked(), Effect::refuse(403)));
    faults.cut_watches(&asked());
    let says = |it: &Value| has(it, "RelatedSynced", "False", "Pending") && has(it, "Ready", "True", "AsExpected");
    let binding = world.consumer.until(&cluster_bindings(), None, "west", says).await;
    assert!(message(&binding, "RelatedSynced").contains("secrets of the provider"), "{binding}");
    world.probe("a").await;
    assert!(world.consumer.get(&secrets(), Some("default"), "creds").await.is_some());
    faults.remove(rule);
    world.consumer.until(&cluster_bindings(), None, "west", |it| !says(it)).await;
    is_past(&world, "later").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_makes_no_sense_keeps_its_copies() {
    let world = relates(&[entry("secrets", "FromProvider")]).await;
    world.provider.apply(&secrets(), &secret("default", "creds", "MQ==")).await;
    is_copied(&world.consumer, &secrets(), ("default", "creds"), "MQ==").await;
    let mut wrong = entry("secrets", "FromProvider");
    wrong["selector"]["labelSelector"] = json!({"matchExpressions": [{"key": "app", "operator": "Near"}]});
    world.bind("west", "west", json!({ "relatedResources": [wrong] })).await;
    let says = |it: &Value| message(it, "RelatedSynced").contains("Near");
    world.consumer.until(&cluster_bindings(), None, "west", says).await;
    world.probe("a").await;
    assert!(world.consumer.get(&secrets(), Some("default"), "creds").await.is_some());
    world.bind("west", "west", json!({ "relatedResources": [entry("secrets", "FromProvider")] })).await;
    world.consumer.until(&cluster_bindings(), None, "west", |it| !says(it)).await;
    is_past(&world, "later").await;
}
