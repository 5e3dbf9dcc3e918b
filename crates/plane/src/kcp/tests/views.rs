use std::collections::{BTreeMap, BTreeSet};

use crate::api::Event;
use futures::StreamExt;
use serde_json::json;

use super::world::{ADMIN, BINDINGS, WIDGETS, World, widget};

#[tokio::test]
async fn a_provider_sees_its_objects_in_all_workspaces_apart_from_each_other() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    let one = world.workspace("root", "one").await;
    let two = world.workspace("root", "two").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:one", "root:prov", json!([])).await;
    let endpoint = world.endpoint("root:prov").await;
    let all = world.through(&endpoint, "*");
    let mut widgets = all.watch(WIDGETS);
    let mut bindings = all.watch(BINDINGS);
    world.at("root:one").create(widget("same", json!({"size": 1}))).unwrap();
    widgets.expect("ADDED", &one, "same").await;
    bindings.expect("ADDED", &one, "example").await;
    world.bind("root:two", "root:prov", json!([])).await;
    bindings.expect("ADDED", &two, "example").await;
    world.at("root:two").create(widget("same", json!({"size": 2}))).unwrap();
    let seen = widgets.expect("ADDED", &two, "same").await;
    assert_eq!(seen["spec"]["size"], 2);
    let mut expected = [format!("{one}/default/same"), format!("{two}/default/same")];
    expected.sort();
    assert_eq!(all.names(WIDGETS), expected);
    assert_eq!(all.get_in(WIDGETS, "default", "same").unwrap_err().code, 404);

    let inside = world.through(&endpoint, &one);
    inside.merge(&format!("{WIDGETS}:status"), "default", "same", json!({"status": {"url": "here"}})).unwrap();
    assert_eq!(world.at("root:one").get_in(WIDGETS, "default", "same").unwrap()["status"]["url"], "here");
    assert_eq!(world.at("root:two").get_in(WIDGETS, "default", "same").unwrap().get("status"), None);

    world.at("root:two").delete(BINDINGS, "", "example").unwrap();
    widgets.expect("DELETED", &two, "same").await;
    bindings.expect("DELETED", &two, "example").await;
    assert_eq!(all.names(WIDGETS), [format!("{one}/default/same")]);
}

#[tokio::test]
async fn only_names_of_existing_exports_and_clusters_lead_into_a_virtual_workspace() {
    let world = World::start().await;
    let provider = world.workspace("root", "prov").await;
    let foreign = world.workspace("root", "foreign").await;
    world.export("root:prov", json!([])).await;
    let endpoint = format!("/services/apiexport/{provider}/example.io");
    let code = |endpoint: &str, target: &str| world.through_as(ADMIN, endpoint, target).err().map(|status| status.code);
    assert_eq!(code(&endpoint, "root:foreign"), Some(403));
    assert_eq!(code(&endpoint, "*"), None);
    let listed = |user: &str, endpoint: &str, target: &str| {
        world.through_as(user, endpoint, target).unwrap().list(WIDGETS).unwrap_err().code
    };
    for absent in ["/services/apiexport/root:prov/example.io", &format!("/services/apiexport/{provider}/nope")] {
        assert_eq!(listed(ADMIN, absent, "*"), 500);
        // Who may not use an export does not learn that there is none, unless it is needed to look for a binding.
        assert_eq!(listed("alice", absent, "*"), 403);
        assert_eq!(listed("alice", absent, &foreign), 500);
    }
    // Nobody binds yet, and this workspace never does.
    assert_eq!(world.through(&endpoint, "*").list(WIDGETS).unwrap_err().code, 404);
    assert_eq!(world.through(&endpoint, &foreign).list(WIDGETS).unwrap_err().code, 403);
    assert_eq!(world.through(&endpoint, "*").names(BINDINGS).len(), 0);
}

#[tokio::test]
async fn a_virtual_workspace_serves_exported_claimed_and_binding_kinds_only() {
    let world = World::start().await;
    let provider = world.workspace("root", "prov").await;
    world.export("root:prov", json!([{"group": "", "resource": "secrets", "verbs": ["*"]}])).await;
    let endpoint = format!("/services/apiexport/{provider}/example.io");
    let served: Vec<String> = world
        .through(&endpoint, "*")
        .resources()
        .iter()
        .map(|r| crate::status::qualified(&r.group, &r.plural))
        .collect();
    assert_eq!(served, ["widgets.example.io", "secrets", "apibindings.apis.kcp.io"]);
}

#[tokio::test]
async fn content_of_an_export_needs_permission_in_its_workspace() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    world.workspace("root", "cons").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:cons", "root:prov", json!([])).await;
    let endpoint = world.endpoint("root:prov").await;
    let alice = world.through_as("alice", &endpoint, "*").unwrap();
    assert_eq!(alice.list(WIDGETS).unwrap_err().code, 403);
    let provider = world.at("root:prov");
    let rbac = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "content"},
        "rules": [{"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "resourceNames": ["example.io"], "verbs": ["list"]}]});
    provider.create(role).unwrap();
    let grant = |role: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": role.replace(':', "-")},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": "alice"}]})
    };
    provider.create(grant("content")).unwrap();
    assert_eq!(alice.list(WIDGETS).unwrap_err().code, 403, "access to the workspace is needed as well");
    provider.create(grant("system:kcp:workspace:access")).unwrap();
    assert_eq!(alice.list(WIDGETS).unwrap().len(), 0);
    assert_eq!(alice.get(BINDINGS, "example").unwrap_err().code, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wildcard_watch_sees_every_object_of_many_workspaces_once() {
    const WORKSPACES: usize = 20;
    const WIDGETS_EACH: usize = 5;
    let world = World::start().await;
    world.workspace("root", "prov").await;
    world.workspace("root", "first").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:first", "root:prov", json!([])).await;
    let endpoint = world.endpoint("root:prov").await;
    let events = world.through(&endpoint, "*").watch(WIDGETS).into_inner();
    let one = async |n: usize| {
        let name = format!("c{n}");
        let cluster = world.workspace("root", &name).await;
        world.bind(&format!("root:{name}"), "root:prov", json!([])).await;
        for w in 0..WIDGETS_EACH {
            world.at(&cluster).create(widget(&format!("w{w}"), json!({"size": n}))).unwrap();
        }
        (n, cluster)
    };
    let clusters: BTreeMap<String, usize> = futures::future::join_all((0..WORKSPACES).map(one))
        .await
        .into_iter()
        .map(|(n, cluster)| (cluster, n))
        .collect();
    let seen: Vec<Event> = events.take(WORKSPACES * WIDGETS_EACH).collect().await;
    let mut names = BTreeSet::new();
    for event in &seen {
        let cluster = event.object["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap();
        assert_eq!((event.kind.word(), &event.object["spec"]["size"]), ("ADDED", &json!(clusters[cluster])));
        names.insert((cluster.to_owned(), event.object["metadata"]["name"].to_string()));
    }
    assert_eq!(names.len(), WORKSPACES * WIDGETS_EACH);
}
