//! A kcp of several shards: workspaces are spread, each shard shows its own, and shards can go down and come back.

use std::collections::BTreeMap;

use carrick_plane::{Config, Mode, User};
use serde_json::{Value, json};

use super::client::{Client, World};

const WORKSPACES: &str = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
const BINDINGS: &str = "/apis/apis.kcp.io/v1alpha2/apibindings";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn sharded(shards: usize) -> World {
    let mut config = Config::new(Mode::Kcp);
    config.shards = shards;
    config.users = vec![User::new("master", "admin", &["system:masters"])];
    World::with(config).await
}

async fn workspace(world: &World, name: &str, shard: Option<&str>) -> Value {
    let mut object = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
        "spec": {"type": {"name": "universal", "path": "root"}}});
    if let Some(shard) = shard {
        object["spec"]["location"] = json!({"selector": {"matchLabels": {"name": shard}}});
    }
    world.admin.post(WORKSPACES, object).await.expect(201);
    world.admin.until(&format!("{WORKSPACES}/{name}"), |answer| answer.body["status"]["phase"] == "Ready").await.body
}

fn cluster(workspace: &Value) -> String {
    workspace["spec"]["cluster"].as_str().unwrap().to_owned()
}

/// An export in a provider's workspace, bound in the others.
async fn exported(world: &World, provider: &str, consumers: &[&str]) {
    let apis = format!("/clusters/root:{provider}/apis/apis.kcp.io");
    let schema = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": "v1.widgets.example.io"},
        "spec": {"group": "example.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]}});
    world.admin.post(&format!("{apis}/v1alpha1/apiresourceschemas"), schema).await.expect(201);
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "example.io"},
        "spec": {"resources": [{"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"crd": {}}}]}});
    world.admin.post(&format!("{apis}/v1alpha2/apiexports"), export).await.expect(201);
    for consumer in consumers {
        let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "example"},
            "spec": {"reference": {"export": {"path": format!("root:{provider}"), "name": "example.io"}}}});
        let path = format!("/clusters/root:{consumer}{BINDINGS}");
        world.admin.post(&path, binding).await.expect(201);
        world.admin.until(&format!("{path}/example"), |answer| answer.body["status"]["phase"] == "Bound").await;
        let widget =
            json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": format!("of-{consumer}")}});
        let widgets = format!("/clusters/root:{consumer}/apis/example.io/v1/namespaces/default/widgets");
        world.admin.post(&widgets, widget).await.expect(201);
    }
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn workspaces_are_spread_and_each_shard_shows_its_own() {
    let world = sharded(3).await;
    let mut homes: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..5 {
        let made = workspace(&world, &format!("w{number}"), None).await;
        *homes.entry(made["metadata"]["annotations"]["core.kcp.io/shard"].as_str().unwrap().to_owned()).or_default() +=
            1;
    }
    // Together with the root workspace there are two on each.
    let expected = [("root", 1), ("shard-1", 2), ("shard-2", 2)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(homes, BTreeMap::from(expected));
    let made = workspace(&world, "chosen", Some("shard-2")).await;
    assert_eq!(made["metadata"]["annotations"]["core.kcp.io/shard"], "shard-2");
    let client =
        |number: usize| Client::at(world.plane.endpoints()[number].url(), world.plane.ca_pem(), Some("master".into()));
    let path = format!("/clusters/{}{MAPS}", cluster(&made));
    client(0).get(&path).await.expect(200);
    client(1).get(&path).await.expect(404);
    client(2).get(&path).await.expect(404);
    client(3).get(&path).await.expect(200);
    client(1).get(&format!("/clusters/root{MAPS}")).await.expect(200);
    client(2).get(&format!("/clusters/root{MAPS}")).await.expect(404);
}

#[tokio::test]
async fn an_export_has_one_url_per_shard_with_consumers_and_each_serves_its_own() {
    let world = sharded(3).await;
    workspace(&world, "prov", Some("root")).await;
    let one = cluster(&workspace(&world, "one", Some("shard-1")).await);
    let two = cluster(&workspace(&world, "two", Some("shard-2")).await);
    exported(&world, "prov", &["one", "two"]).await;
    let slice = "/clusters/root:prov/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/example.io";
    let slice =
        world.admin.until(slice, |a| a.body["status"]["endpoints"].as_array().is_some_and(|l| l.len() == 2)).await;
    let urls: Vec<&str> =
        slice.body["status"]["endpoints"].as_array().unwrap().iter().map(|one| one["url"].as_str().unwrap()).collect();
    let endpoints = world.plane.endpoints();
    assert!(urls[0].starts_with(endpoints[2].url()) && urls[1].starts_with(endpoints[3].url()), "{urls:?}");
    let widgets = "/apis/example.io/v1/widgets";
    for (url, own, foreign, name) in [(urls[0], &one, &two, "of-one"), (urls[1], &two, &one, "of-two")] {
        let client = Client::at(url, world.plane.ca_pem(), Some("master".into()));
        assert_eq!(names(&client.get(&format!("/clusters/*{widgets}")).await.expect(200)), [name]);
        assert_eq!(names(&client.get(&format!("/clusters/{own}{widgets}")).await.expect(200)), [name]);
        client.get(&format!("/clusters/{foreign}{widgets}")).await.expect(404);
        let mut watch = client.watch(&format!("/clusters/*{widgets}?watch=1")).await;
        assert_eq!(watch.event().await, ("ADDED".to_owned(), name.to_owned()));
    }
}

#[tokio::test]
async fn a_shard_that_is_down_affects_only_its_own_workspaces() {
    let world = sharded(2).await;
    let near = cluster(&workspace(&world, "near", Some("root")).await);
    let far = cluster(&workspace(&world, "far", Some("shard-1")).await);
    exported(&world, "near", &["far"]).await;
    let shard = &world.plane.endpoints()[2];
    assert_eq!((shard.number(), shard.shard()), (2, Some(1)));
    let maps = |cluster: &str| format!("/clusters/{cluster}{MAPS}");
    let mut watch = world.admin.watch(&format!("{}?watch=1", maps(&far))).await;
    let mut safe = world.admin.watch(&format!("{}?watch=1&fieldSelector=metadata.name%3Dlater", maps(&near))).await;
    let slice = "/clusters/root:near/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/example.io";
    let before = world.admin.until(slice, |a| a.body["status"]["endpoints"].is_array()).await.body;
    shard.stop().await;
    while watch.next().await.is_some() {}
    world.admin.get(&maps(&far)).await.expect(503);
    world.admin.get(&maps("root:far")).await.expect(503);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}});
    world.admin.post(&maps(&near), map.clone()).await.expect(201);
    assert_eq!(safe.event().await.1, "later");
    // The list of endpoints is about bindings, not about health.
    assert_eq!(world.admin.get(slice).await.expect(200)["status"], before["status"]);
    shard.start().await.unwrap();
    world.admin.post(&maps(&far), map).await.expect(201);
    let url = before["status"]["endpoints"][0]["url"].as_str().unwrap();
    let client = Client::at(url, world.plane.ca_pem(), Some("master".into()));
    assert_eq!(names(&client.get("/clusters/*/apis/example.io/v1/widgets").await.expect(200)), ["of-far"]);
}

/// A kcp of two shards, whose versions are far apart.
async fn apart() -> World {
    let mut config = Config::new(Mode::Kcp);
    (config.shards, config.shard_versions) = (2, vec![1_000_000]);
    config.users = vec![User::new("master", "admin", &["system:masters"])];
    World::with(config).await
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn shards_count_for_themselves_and_a_cluster_that_moves_gets_other_versions() {
    let world = apart().await;
    workspace(&world, "provider", Some("root")).await;
    let team = cluster(&workspace(&world, "team", Some("root")).await);
    workspace(&world, "other", Some("shard-1")).await;
    exported(&world, "provider", &["team", "other"]).await;
    let widgets = "/clusters/root:team/apis/example.io/v1/namespaces/default/widgets";
    let before = world.admin.get(&format!("{widgets}/of-team")).await.expect(200);
    assert!(version(&before) > 1_000_000, "{before}");
    // Writes are checked against the version that is shown.
    let mut edited = before.clone();
    edited["spec"] = json!({"size": 1});
    let before = world.admin.put(&format!("{widgets}/of-team"), edited.clone()).await.expect(200);
    world.admin.put(&format!("{widgets}/of-team"), edited).await.expect(409);

    let view = |shard: usize| {
        let (url, ca) = (world.plane.endpoints()[shard + 1].url(), world.plane.ca_pem());
        Client::at(url, ca, world.plane.token("admin"))
    };
    let home = world.admin.get("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/provider").await.expect(200);
    let all = format!("/services/apiexport/{}/example.io/clusters/*/apis/example.io/v1/widgets", cluster(&home));
    let (from, to) = (view(0), view(1));
    let since = async |client: &Client| version(&client.get(&all).await.expect(200));
    let mut left = from.watch(&format!("{all}?watch=1&resourceVersion={}", since(&from).await)).await;
    let mut right = to.watch(&format!("{all}?watch=1&resourceVersion={}", since(&to).await)).await;
    assert!(world.plane.move_cluster(&team, 1) && !world.plane.move_cluster(&team, 1));
    assert_eq!(left.event().await, ("DELETED".into(), "of-team".into()));
    let arrived = right.next().await.unwrap();
    assert_eq!(
        (&arrived["type"], &arrived["object"]["metadata"]["uid"]),
        (&json!("ADDED"), &before["metadata"]["uid"])
    );
    assert!(version(&arrived["object"]) < 1_000_000);
    assert_eq!((names(&from.get(&all).await.expect(200)).len(), names(&to.get(&all).await.expect(200)).len()), (0, 2));
    let after = world.admin.get(&format!("{widgets}/of-team")).await.expect(200);
    assert_eq!((&after["spec"], &after["metadata"]["uid"]), (&before["spec"], &before["metadata"]["uid"]));
    // Its APIs and controllers work there.
    let widget = json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "new"}});
    world.admin.post(widgets, widget).await.expect(201);
    assert_eq!(right.event().await, ("ADDED".into(), "new".into()));
    assert!(world.plane.move_cluster(&team, 0));
    let back = world.admin.get(&format!("{widgets}/new")).await.expect(200);
    assert!(version(&back) > 1_000_000);
    let mut gone = [right.event().await.1, right.event().await.1];
    gone.sort();
    assert_eq!(gone, ["new", "of-team"]);
}
