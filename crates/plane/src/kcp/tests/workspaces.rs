use super::world::{ADMIN, WORKSPACES, World, condition, widget};
use futures::StreamExt;
use serde_json::{Value, json};

fn workspace(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_new_workspace_becomes_ready_with_everything_in_it() {
    let world = World::start().await;
    let created = world.at("root").create(workspace("org", json!({}))).unwrap();
    assert_eq!(created["spec"]["type"], json!({"name": "organization", "path": "root"}));
    assert_eq!(created["status"]["phase"], "Scheduling");
    assert!(
        created["metadata"]["annotations"]["experimental.tenancy.kcp.io/owner"]
            .as_str()
            .unwrap()
            .contains("system:kcp:admin")
    );

    let ready = world.ready("root", "org").await;
    let cluster = ready["spec"]["cluster"].as_str().unwrap();
    assert_eq!(cluster.len(), 16);
    assert_eq!(ready["spec"]["URL"], format!("{}/clusters/root:org", world.plane.url()));
    assert_eq!(ready["metadata"]["generation"], 2);
    assert_eq!(ready["metadata"]["labels"]["tenancy.kcp.io/phase"], "Ready");
    assert_eq!(ready["metadata"]["finalizers"], json!(["core.kcp.io/logicalcluster"]));
    assert_eq!(ready["metadata"]["annotations"]["experimental.tenancy.kcp.io/owner"], "{\"username\":\"kcp-admin\"}");
    assert_eq!(ready["metadata"]["annotations"]["internal.tenancy.kcp.io/shard"], "1pfxsevk");
    for kind in ["WorkspaceScheduled", "WorkspaceInitialized"] {
        assert_eq!(condition(&ready, kind)["status"], "True", "{kind}");
    }

    let inside = world.at("root:org");
    let logical = inside.get("core.kcp.io/v1alpha1/logicalclusters", "cluster").unwrap();
    assert_eq!(logical["status"]["phase"], "Ready");
    assert_eq!(logical["status"]["URL"], format!("{}/clusters/{cluster}", world.plane.url()));
    assert_eq!(logical["metadata"]["annotations"]["kcp.io/path"], "root:org");
    assert_eq!(logical["metadata"]["annotations"]["kcp.io/cluster"], cluster);
    assert_eq!(logical["metadata"]["annotations"]["internal.tenancy.kcp.io/type"], "root:organization");
    assert_eq!(logical["spec"]["owner"]["name"], "org");
    let namespaces = inside.names("v1/namespaces");
    assert_eq!(namespaces, [format!("{cluster}//default"), format!("{cluster}//kube-system")]);
    let admin = inside.get("rbac.authorization.k8s.io/v1/clusterrolebindings", "workspace-admin").unwrap();
    assert_eq!(admin["subjects"][0]["name"], ADMIN);
    assert_eq!(world.at(cluster).names("v1/namespaces"), namespaces);
    let bound = ["tenancy.kcp.io", "topology.kcp.io"]
        .map(|export| format!("{cluster}//{}", carrick_kcp::hash::default_binding_name(cluster, "root", export)));
    assert_eq!(inside.names("apis.kcp.io/v1alpha2/apibindings"), bound);
    assert_eq!(logical["spec"]["initializers"], json!(["root:universal", "system:apibindings"]));

    world.workspace("root:org", "team-a").await;
    assert_eq!(world.at(&format!("{cluster}:team-a")).names("v1/namespaces").len(), 2);
}

#[tokio::test]
async fn watchers_see_a_workspace_go_through_its_phases() {
    let world = World::start().await;
    let events = world.at("root").watch(WORKSPACES);
    world.at("root").create(workspace("org", json!({}))).unwrap();
    world.ready("root", "org").await;
    let mut phases: Vec<String> = Vec::new();
    let mut events = Box::pin(events.into_inner());
    while phases.last().is_none_or(|phase| phase != "Ready") {
        let event = events.next().await.unwrap();
        phases.push(event.object["status"]["phase"].as_str().unwrap().to_owned());
    }
    phases.dedup();
    assert_eq!(phases, ["Scheduling", "Initializing", "Ready"]);
}

#[tokio::test]
async fn deleting_a_workspace_leaves_nothing_behind() {
    let world = World::start().await;
    let cluster = world.workspace("root", "doomed").await;
    let child = world.workspace("root:doomed", "child").await;
    let inside = world.at("root:doomed");
    for name in ["a", "b"] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}});
        inside.create(secret).unwrap();
    }
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "namespace": "default", "finalizers": ["example.io/hold"]}});
    inside.create(held).unwrap();
    world.workspace("root", "prov").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:doomed", "root:prov", json!([])).await;
    inside.create(widget("w", json!({}))).unwrap();
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.local.io"},
        "spec": {"group": "local.io", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"}, "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    inside.create(crd).unwrap();
    inside.create(json!({"apiVersion": "local.io/v1", "kind": "Thing", "metadata": {"name": "t"}})).unwrap();
    world.at("root").delete(WORKSPACES, "", "doomed").unwrap();
    let stuck = world
        .until("the workspace tells what remains", || {
            let found = world.at("root").get(WORKSPACES, "doomed").ok()?;
            condition(&found, "WorkspaceContentDeleted")["message"]
                .as_str()
                .is_some_and(|m| m.contains("example.io/hold"))
                .then_some(found)
        })
        .await;
    assert_eq!(stuck["status"]["phase"], "Deleting");
    inside.merge("v1/configmaps", "default", "held", json!({"metadata": {"finalizers": null}})).unwrap();
    world.until("the workspace is gone", || world.at("root").get(WORKSPACES, "doomed").is_err().then_some(())).await;
    world.quiet().await;
    for cluster in [&cluster, &child] {
        assert_eq!(world.api().store.kinds(cluster), [], "{cluster}");
    }
    assert_eq!(world.enter(ADMIN, "root:doomed").err().map(|status| status.code), Some(404));
    assert_eq!(world.at(&cluster).list("v1/secrets").unwrap_err().code, 403);
}

#[tokio::test]
async fn workspace_types_limit_what_can_be_created_where() {
    let world = World::start().await;
    world.at("root").create(workspace("org", json!({}))).unwrap();
    world.ready("root", "org").await;
    world.workspace("root", "plain").await;
    let cases = [
        ("root", json!({"type": {"name": "nope"}}), "workspace type \"nope\" cannot be resolved"),
        (
            "root:plain",
            json!({"type": {"name": "organization"}}),
            "workspace type root:organization only allows [root:root] parent workspaces, but parent type root:universal only implements [root:universal]",
        ),
        ("root", json!({"type": {"name": "home"}}), "workspace type root:home cannot have any parent"),
        ("root", json!({"cluster": "mine"}), "spec.Cluster"),
    ];
    for (parent, spec, message) in cases {
        let refused = world.at(parent).create(workspace("x", spec.clone())).unwrap_err();
        assert_eq!(refused.code, 403, "{spec}");
        assert!(refused.message.contains(message), "{spec}: {}", refused.message);
    }
    assert_eq!(world.at("root").create(workspace("not.a.label", json!({}))).unwrap_err().code, 422);
    let team = world.at("root:org").create(workspace("team", json!({"type": {"name": "team"}}))).unwrap();
    assert_eq!(team["spec"]["type"]["path"], "root");
}

#[tokio::test]
async fn a_type_of_ones_own_holds_workspaces_until_its_initializer_is_done_and_binds_its_exports() {
    let world = World::start().await;
    let provider = world.workspace("root", "prov").await;
    world.export("root:prov", json!([])).await;
    let kind = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "special"},
        "spec": {"initializer": true, "extend": {"with": [{"name": "universal", "path": "root"}]},
            "defaultAPIBindings": [{"path": "root:prov", "export": "example.io"}]}});
    world.at("root:prov").create(kind).unwrap();
    world.at("root:prov").create(workspace("w", json!({"type": {"name": "special"}}))).unwrap();
    let waiting = format!("{provider}:special");
    let cluster = world
        .until("only the type's own initializer is left", || {
            let found = world.at("root:prov").get(WORKSPACES, "w").ok()?;
            (found["status"]["initializers"] == json!([waiting]))
                .then(|| found["spec"]["cluster"].as_str().unwrap().to_owned())
        })
        .await;
    let inside = world.at(&cluster);
    assert_eq!(inside.names("apis.kcp.io/v1alpha1/apibindings").len(), 3);
    inside
        .merge("core.kcp.io/v1alpha1/logicalclusters:status", "", "cluster", json!({"status": {"initializers": null}}))
        .unwrap();
    world.ready("root:prov", "w").await;
    assert_eq!(inside.names("example.io/v1/widgets").len(), 0);
}

#[tokio::test]
async fn logical_clusters_can_neither_be_created_nor_deleted_by_users() {
    let world = World::start().await;
    world.workspace("root", "a").await;
    let refused = world.at("root:a").delete("core.kcp.io/v1alpha1/logicalclusters", "", "cluster").unwrap_err();
    assert_eq!((refused.code, refused.message.contains("LogicalCluster cannot be deleted")), (403, true));
    let object = json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": {"name": "other"}});
    assert_eq!(world.at("root:a").create(object).unwrap_err().code, 422);
}

#[tokio::test]
async fn a_terminator_holds_a_deleted_workspace_until_it_is_done() {
    let world = World::start().await;
    let home = world.workspace("root", "home").await;
    let kind = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "guarded"},
        "spec": {"terminator": true, "extend": {"with": [{"name": "universal", "path": "root"}]}}});
    let place = world.at("root:home");
    place.create(kind).unwrap();
    place.create(workspace("w", json!({"type": {"name": "guarded"}}))).unwrap();
    let ready = world.ready("root:home", "w").await;
    let inside = world.at(ready["spec"]["cluster"].as_str().unwrap());
    place.delete(WORKSPACES, "", "w").unwrap();
    let waiting = world
        .until("the workspace waits for its terminator", || {
            let found = place.get(WORKSPACES, "w").ok()?;
            (found["status"]["phase"] == "Terminating").then_some(found)
        })
        .await;
    assert_eq!(waiting["status"]["terminators"], json!([format!("{home}:guarded")]));
    assert_eq!(inside.names("v1/namespaces").len(), 2);
    let logical = "core.kcp.io/v1alpha1/logicalclusters:status";
    let grown = json!({"status": {"terminators": [format!("{home}:guarded"), "other"]}});
    assert_eq!(inside.merge(logical, "", "cluster", grown).unwrap_err().code, 403);
    inside.merge(logical, "", "cluster", json!({"status": {"terminators": null}})).unwrap();
    world.until("the workspace is gone", || place.get(WORKSPACES, "w").is_err().then_some(())).await;
}

#[tokio::test]
async fn an_initializer_finds_its_workspaces_and_reports_when_it_is_done() {
    let world = World::start().await;
    let home = world.workspace("root", "home").await;
    let kind = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "prepared"},
        "spec": {"initializer": true, "extend": {"with": [{"name": "universal", "path": "root"}]}}});
    world.at("root:home").create(kind).unwrap();
    let kinds = "tenancy.kcp.io/v1alpha1/workspacetypes";
    let endpoint = world
        .until("the type has its URL", || {
            let found = world.at("root:home").get(kinds, "prepared").unwrap();
            found["status"]["virtualWorkspaces"][0]["url"].as_str().map(str::to_owned)
        })
        .await;
    let logical = "core.kcp.io/v1alpha1/logicalclusters";
    let mut events = world.through(&endpoint, "*").watch(logical);
    world.at("root:home").create(workspace("w", json!({"type": {"name": "prepared"}}))).unwrap();
    let cluster = world
        .until("the workspace has a cluster", || {
            world.at("root:home").get(WORKSPACES, "w").unwrap()["spec"]["cluster"].as_str().map(str::to_owned)
        })
        .await;
    events.expect("ADDED", &cluster, "cluster").await;
    let alice = world.through_as("alice", &endpoint, "*").unwrap();
    assert_eq!(alice.list(logical).unwrap_err().code, 403);
    assert_eq!(world.through(&endpoint, &home).list("v1/namespaces").unwrap_err().code, 403);

    let inside = world.through(&endpoint, &cluster);
    let note = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prepared"}});
    inside.create(note).unwrap();
    let status = format!("{logical}:status");
    let foreign = json!({"status": {"initializers": ["other"]}});
    assert_eq!(inside.merge(&status, "", "cluster", foreign).unwrap_err().code, 403);
    world
        .until("only one initializer is left", || {
            let found = world.at(&cluster).get(logical, "cluster").unwrap();
            (found["status"]["initializers"] == json!([format!("{home}:prepared")])).then_some(())
        })
        .await;
    inside.merge(&status, "", "cluster", json!({"status": {"initializers": null}})).unwrap();
    events.expect("DELETED", &cluster, "cluster").await;
    world.ready("root:home", "w").await;
    assert_eq!(inside.list("v1/namespaces").unwrap_err().code, 403);
    assert!(world.at(&cluster).get("v1/namespaces", "prepared").is_ok());
}

#[tokio::test]
async fn a_mount_is_kept_as_it_is_like_in_a_kcp_without_that_feature() {
    let world = World::start().await;
    let mount = json!({"ref": {"apiVersion": "v1", "kind": "ConfigMap", "name": "m", "namespace": "default"}});
    world.at("root").create(workspace("mounted", json!({"mount": mount}))).unwrap();
    world.workspace("root", "other").await;
    let found = world.at("root").get(WORKSPACES, "mounted").unwrap();
    assert_eq!(found["spec"], json!({"mount": mount}));
    assert_eq!(found["status"], json!({"phase": "Scheduling"}));
    assert_eq!(found["metadata"]["finalizers"], Value::Null);
}

#[tokio::test]
async fn partitions_are_stored_and_shards_are_known_to_the_root_alone() {
    let world = World::start().await;
    world.workspace("root", "org").await;
    let partition = json!({"apiVersion": "topology.kcp.io/v1alpha1", "kind": "Partition", "metadata": {"name": "here"},
        "spec": {"selector": {"matchLabels": {"region": "here"}}}});
    let inside = world.at("root:org");
    inside.create(partition).unwrap();
    assert_eq!(inside.names("topology.kcp.io/v1alpha1/partitions").len(), 1);
    let shard = world.at("root").get("core.kcp.io/v1alpha1/shards", "root").unwrap();
    assert_eq!(shard["spec"]["externalURL"], world.plane.url());
    let org = world.api().extension().unwrap().resolve("root:org").unwrap();
    assert!(world.api().resources(&org).iter().all(|resource| *resource.plural != *"shards"));
}
