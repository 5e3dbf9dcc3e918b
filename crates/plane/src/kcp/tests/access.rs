use super::world::{ADMIN, WIDGETS, WORKSPACES, World, widget};
use serde_json::json;

#[tokio::test]
async fn who_may_enter_which_workspace() {
    let world = World::start().await;
    let alices = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "alice"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    world.workspace("root", "org").await;
    world.at("root:org").create(alices).unwrap();
    let workspace = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "own"}});
    world.enter("alice", "root:org").unwrap().create(workspace.clone()).unwrap();
    world.ready("root:org", "own").await;
    let cases = [
        ("alice", "root", WORKSPACES, true),
        ("alice", "root", "v1/secrets", false),
        ("alice", "root:org:own", "v1/secrets", true),
        ("bob", "root", WORKSPACES, true),
        ("bob", "root:org", WORKSPACES, false),
        ("bob", "root:org:own", "v1/secrets", false),
        (ADMIN, "root:org:own", "v1/secrets", true),
        (ADMIN, "unknown", "v1/secrets", false),
    ];
    for (user, path, what, allowed) in cases {
        let result = world.enter(user, path).unwrap().list(what);
        match result {
            Ok(_) => assert!(allowed, "{user} {path} {what}"),
            Err(status) => assert_eq!((status.code, allowed), (403, false), "{user} {path} {what}: {status}"),
        }
    }
    assert_eq!(world.enter("bob", "root").unwrap().create(workspace).unwrap_err().code, 403);
    assert_eq!(world.enter("bob", "root:nope").err().map(|status| status.code), Some(404));
}

#[tokio::test]
async fn bindings_need_the_permission_to_bind() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    world.workspace("root", "org").await;
    world.export("root:prov", json!([])).await;
    let grant = |name: &str, role: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]})
    };
    world.at("root:org").create(grant("alice", "cluster-admin")).unwrap();
    let alice = world.enter("alice", "root:org").unwrap();
    let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "example"},
        "spec": {"reference": {"export": {"path": "root:prov", "name": "example.io"}}}});
    let refused = alice.create(binding.clone()).unwrap_err();
    assert!(refused.message.ends_with("no permission to bind to export root:prov:example.io"), "{refused}");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "binders"},
        "rules": [{"apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": ["example.io"], "verbs": ["bind"]}]});
    world.at("root:prov").create(role).unwrap();
    world.at("root:prov").create(grant("alice-binds", "binders")).unwrap();
    alice.create(binding).unwrap();
    world.condition("root:org", "example", "Ready", "True").await;
}

#[tokio::test]
async fn a_maximal_permission_policy_limits_even_the_owner_of_a_workspace() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    world.workspace("root", "cons").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:cons", "root:prov", json!([])).await;
    let provider = world.at("root:prov");
    let policy = json!({"spec": {"maximalPermissionPolicy": {"local": {}}}});
    provider.merge("apis.kcp.io/v1alpha2/apiexports", "", "example.io", policy).unwrap();
    let consumer = world.at("root:cons");
    assert_eq!(consumer.list(WIDGETS).unwrap_err().code, 403);
    let rbac = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "policy"},
        "rules": [{"apiGroups": ["example.io"], "resources": ["widgets"], "verbs": ["list"]}]});
    let grant = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "policy"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "policy"},
        "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "apis.kcp.io:binding:system:authenticated"}]});
    provider.create(role).unwrap();
    provider.create(grant).unwrap();
    assert_eq!(consumer.list(WIDGETS).unwrap().len(), 0);
    assert_eq!(consumer.create(widget("w", json!({}))).unwrap_err().code, 403);
}
