//! Every user tries everything; only what is listed as allowed may succeed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::{Client, World};

/// One thing to try; writes are dry runs, so that every try finds the same world.
struct Try {
    what: &'static str,
    method: &'static str,
    path: String,
    body: Value,
    headers: &'static [(&'static str, &'static str)],
    allowed: &'static [&'static str],
}

fn attempt(what: &'static str, method: &'static str, path: &str, body: Value, allowed: &'static [&'static str]) -> Try {
    Try { what, method, path: path.to_owned(), body, headers: &[], allowed }
}

async fn try_all(world: &World, roles: &BTreeMap<&str, Client>, tries: &[Try]) {
    let mut wrong = Vec::new();
    for attempt in tries {
        for (role, client) in roles {
            let before = world.plane.store().revision();
            let media = if attempt.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
            let mut headers = vec![("content-type", media)];
            headers.extend(attempt.headers);
            let body = if attempt.body.is_null() { Vec::new() } else { attempt.body.to_string().into_bytes() };
            let answer = client.call(attempt.method, &attempt.path, &headers, body).await;
            let expected = if attempt.allowed.contains(role) { 200..=299 } else { 401..=403 };
            if !expected.contains(&answer.code) {
                wrong.push(format!("{role}: {}: {} {}", attempt.what, answer.code, answer.text.trim()));
            }
            assert_eq!(world.plane.store().revision(), before, "{role} changed something: {}", attempt.what);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

const READERS: &[&str] = &["admin", "viewer", "editor", "owner"];
const WRITERS: &[&str] = &["admin", "editor", "owner"];
const OWNERS: &[&str] = &["admin", "owner"];
const ADMIN: &[&str] = &["admin"];
const KNOWN: &[&str] = &["admin", "viewer", "editor", "owner", "nobody", "account", "stranger"];
const PROVIDERS: &[&str] = &["admin", "alice", "agent"];
const WORKSPACE_OWNERS: [(&str, &[&str]); 3] =
    [("prov", &["admin", "alice"]), ("cons", &["admin", "bob"]), ("other", &["admin", "carol"])];

fn grant(kind: &str, name: &str, role: &str, subject: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": [subject],
    })
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"})
}

fn object(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
}

/// Waits until nobody writes any more, so that a change of the revision is somebody's doing.
async fn rest(world: &World) {
    let store = world.plane.store();
    loop {
        let next = store.reached(store.revision() + 1);
        if tokio::time::timeout(std::time::Duration::from_millis(500), next).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn in_a_service_cluster() {
    let mut config = carrick_plane::Config::new(carrick_plane::Mode::Kube);
    config.users =
        ["nobody", "viewer", "editor", "owner"].map(|name| carrick_plane::User::new(name, name, &[])).to_vec();
    let world = World::with(config).await;
    let default = |what: &str| format!("/api/v1/namespaces/default/{what}");
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    for (name, role) in [("viewer", "view"), ("editor", "edit"), ("owner", "admin")] {
        world.admin.post(&bindings, grant("RoleBinding", name, role, user(name))).await.expect(201);
    }
    world.admin.post(&default("serviceaccounts"), object("ServiceAccount", "bot")).await.expect(201);
    world.admin.post(&default("secrets"), object("Secret", "s")).await.expect(201);
    world.admin.post("/api/v1/namespaces", object("Namespace", "other")).await.expect(201);
    world.admin.post("/api/v1/namespaces/other/secrets", object("Secret", "s")).await.expect(201);
    let token = world.admin.post(&default("serviceaccounts/bot/token"), json!({})).await.expect(201);
    let mut roles = BTreeMap::from([
        ("admin", world.admin.clone()),
        ("anonymous", world.with_token(None)),
        ("forger", world.with_token(Some("forged"))),
        ("account", world.with_token(token["status"]["token"].as_str())),
    ]);
    for name in ["nobody", "viewer", "editor", "owner"] {
        roles.insert(name, world.user(name));
    }
    let certificate = world.plane.client_certificate("stranger", &["strangers"]).unwrap();
    roles.insert("stranger", Client::with_certificate(&world.plane, &certificate));
    rest(&world).await;

    let dry = |what: &str| format!("{}?dryRun=All", default(what));
    let mut tries = vec![
        attempt("see the groups", "GET", "/apis", Value::Null, KNOWN),
        attempt("list maps", "GET", &default("configmaps"), Value::Null, READERS),
        attempt(
            "watch maps",
            "GET",
            &format!("{}?watch=1&timeoutSeconds=1", default("configmaps")),
            Value::Null,
            READERS,
        ),
        attempt("list all maps", "GET", "/api/v1/configmaps", Value::Null, ADMIN),
        attempt("read a secret", "GET", &default("secrets/s"), Value::Null, WRITERS),
        attempt("read a foreign secret", "GET", "/api/v1/namespaces/other/secrets/s", Value::Null, ADMIN),
        attempt("make a map", "POST", &dry("configmaps"), object("ConfigMap", "new"), WRITERS),
        attempt(
            "make a foreign map",
            "POST",
            "/api/v1/namespaces/other/configmaps?dryRun=All",
            object("ConfigMap", "new"),
            ADMIN,
        ),
        attempt("delete a secret", "DELETE", &dry("secrets/s"), Value::Null, WRITERS),
        attempt("delete all secrets", "DELETE", &dry("secrets"), Value::Null, WRITERS),
        attempt("change a secret", "PATCH", &dry("secrets/s"), json!({"data": {"a": "YQ=="}}), WRITERS),
        attempt("make a namespace", "POST", "/api/v1/namespaces?dryRun=All", object("Namespace", "new"), ADMIN),
        attempt("delete a namespace", "DELETE", "/api/v1/namespaces/other?dryRun=All", Value::Null, ADMIN),
        attempt(
            "finalize a namespace",
            "PUT",
            "/api/v1/namespaces/other/finalize?dryRun=All",
            object("Namespace", "other"),
            ADMIN,
        ),
        attempt("list roles", "GET", &format!("{RBAC}/namespaces/default/roles"), Value::Null, OWNERS),
        attempt("list cluster roles", "GET", &format!("{RBAC}/clusterroles"), Value::Null, ADMIN),
        attempt(
            "rise in the namespace",
            "POST",
            &format!("{bindings}?dryRun=All"),
            grant("RoleBinding", "up", "cluster-admin", user("nobody")),
            ADMIN,
        ),
        attempt(
            "grant what one has",
            "POST",
            &format!("{bindings}?dryRun=All"),
            grant("RoleBinding", "same", "view", user("nobody")),
            OWNERS,
        ),
        attempt(
            "rise everywhere",
            "POST",
            &format!("{RBAC}/clusterrolebindings?dryRun=All"),
            grant("ClusterRoleBinding", "up", "cluster-admin", user("nobody")),
            ADMIN,
        ),
        attempt(
            "make a CRD",
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All",
            super::client::widget_crd(),
            ADMIN,
        ),
        attempt("take a token", "POST", &default("serviceaccounts/bot/token"), json!({}), WRITERS),
        attempt(
            "check a token",
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            json!({"spec": {"token": "x"}}),
            ADMIN,
        ),
        attempt(
            "ask about others",
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            json!({"spec": {"user": "admin", "resourceAttributes": {"verb": "get", "resource": "secrets"}}}),
            ADMIN,
        ),
        attempt(
            "ask about oneself",
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"}}}),
            KNOWN,
        ),
        attempt(
            "ask for one's rules",
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            json!({"spec": {"namespace": "default"}}),
            KNOWN,
        ),
    ];
    for headers in [&[("impersonate-user", "admin")], &[("impersonate-user", "x")]] {
        let mut other = attempt("be somebody else", "GET", "/apis", Value::Null, ADMIN);
        other.headers = headers;
        tries.push(other);
    }
    let mut masters = attempt("be a master", "GET", "/api/v1/secrets", Value::Null, ADMIN);
    masters.headers = &[("impersonate-user", "x"), ("impersonate-group", "system:masters")];
    tries.push(masters);
    try_all(&world, &roles, &tries).await;
}

/// The provider alice exports widgets and claims maps and secrets, the consumer bob accepts only maps, carol has nothing to
/// do with them.
#[tokio::test]
async fn between_workspaces() {
    let people = ["alice", "bob", "carol", "agent", "nobody"];
    let world = World::kcp(&people).await;
    let mut clusters = BTreeMap::new();
    for (workspace, owner) in [("prov", "alice"), ("cons", "bob"), ("other", "carol")] {
        let made = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": workspace}, "spec": {"type": {"name": "universal", "path": "root"}}});
        world.admin.post("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces", made).await.expect(201);
        let path = format!("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/{workspace}");
        let ready = world.admin.until(&path, |answer| answer.body["status"]["phase"] == "Ready").await.body;
        clusters.insert(workspace, ready["spec"]["cluster"].as_str().unwrap().to_owned());
        let bindings = format!("/clusters/root:{workspace}{RBAC}/clusterrolebindings");
        world
            .admin
            .post(&bindings, grant("ClusterRoleBinding", "owner", "cluster-admin", user(owner)))
            .await
            .expect(201);
    }
    let prov = "/clusters/root:prov/apis/apis.kcp.io";
    let schema = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": "v1.widgets.example.io"},
        "spec": {"group": "example.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]}});
    let alice = world.user("alice");
    alice.post(&format!("{prov}/v1alpha1/apiresourceschemas"), schema).await.expect(201);
    let claims = json!([{"group": "", "resource": "configmaps", "verbs": ["*"]}, {"group": "", "resource": "secrets", "verbs": ["*"]}]);
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "example.io"},
        "spec": {"permissionClaims": claims, "resources": [{"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"crd": {}}}]}});
    alice.post(&format!("{prov}/v1alpha2/apiexports"), export).await.expect(201);
    let content = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "agent"}, "rules": [
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "resourceNames": ["example.io"], "verbs": ["*"]},
        {"nonResourceURLs": ["/"], "verbs": ["access"]}]});
    let bind = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "bind"}, "rules": [
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": ["example.io"], "verbs": ["bind"]}]});
    for (role, who) in [(content, "agent"), (bind, "bob")] {
        let name = role["metadata"]["name"].as_str().unwrap().to_owned();
        alice.post(&format!("/clusters/root:prov{RBAC}/clusterroles"), role).await.expect(201);
        let binding = grant("ClusterRoleBinding", &name, &name, user(who));
        alice.post(&format!("/clusters/root:prov{RBAC}/clusterrolebindings"), binding).await.expect(201);
    }
    let bob = world.user("bob");
    let accepted = json!([{"group": "", "resource": "configmaps", "verbs": ["*"], "state": "Accepted", "selector": {"matchAll": true}}]);
    let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "example"},
        "spec": {"reference": {"export": {"path": "root:prov", "name": "example.io"}}, "permissionClaims": accepted}});
    let bindings = "/apis/apis.kcp.io/v1alpha2/apibindings";
    bob.post(&format!("/clusters/root:cons{bindings}"), binding.clone()).await.expect(201);
    bob.until(&format!("/clusters/root:cons{bindings}/example"), |a| a.body["status"]["phase"] == "Bound").await;
    let mut everybody = BTreeMap::from([
        ("admin", world.admin.clone()),
        ("anonymous", world.with_token(None)),
        ("forger", world.with_token(Some("forged"))),
    ]);
    for name in people {
        everybody.insert(name, world.user(name));
    }
    for (role, workspace) in [("account of prov", "prov"), ("account of cons", "cons")] {
        let path = format!("/clusters/root:{workspace}/api/v1/namespaces/default/serviceaccounts/default/token");
        let token = world.admin.post(&path, json!({})).await.expect(201)["status"]["token"].clone();
        everybody.insert(role, world.with_token(token.as_str()));
    }
    rest(&world).await;

    let mut tries = vec![
        attempt("look into all clusters", "GET", "/clusters/*/api/v1/secrets", Value::Null, &[]),
        attempt("ask without a cluster", "GET", "/api/v1/secrets", Value::Null, &[]),
        attempt(
            "make a workspace in root",
            "POST",
            "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces?dryRun=All",
            json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "mine"}}),
            &["admin"],
        ),
        attempt(
            "delete a workspace",
            "DELETE",
            "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/cons?dryRun=All",
            Value::Null,
            &["admin"],
        ),
        attempt(
            "bind without the right to",
            "POST",
            &format!("/clusters/root:other{bindings}?dryRun=All"),
            binding,
            &["admin"],
        ),
        attempt(
            "bind roles of system:admin",
            "POST",
            &format!("/clusters/system:admin{RBAC}/clusterrolebindings?dryRun=All"),
            grant("ClusterRoleBinding", "up", "cluster-admin", user("nobody")),
            &[],
        ),
    ];
    for (workspace, owners) in WORKSPACE_OWNERS {
        let at = |path: &str| format!("/clusters/root:{workspace}{path}");
        let by_name = |path: &str| format!("/clusters/{}{path}", clusters[workspace]);
        let secrets = "/api/v1/namespaces/default/secrets";
        tries.push(attempt("list secrets", "GET", &at(secrets), Value::Null, owners));
        tries.push(attempt("list secrets by cluster name", "GET", &by_name(secrets), Value::Null, owners));
        tries.push(attempt(
            "make a secret",
            "POST",
            &at(&format!("{secrets}?dryRun=All")),
            object("Secret", "new"),
            owners,
        ));
        tries.push(attempt(
            "take a token",
            "POST",
            &at("/api/v1/namespaces/default/serviceaccounts/default/token"),
            json!({}),
            owners,
        ));
        tries.push(attempt(
            "rise",
            "POST",
            &at(&format!("{RBAC}/clusterrolebindings?dryRun=All")),
            grant("ClusterRoleBinding", "up", "cluster-admin", user("nobody")),
            owners,
        ));
        tries.push(attempt(
            "free the cluster of its owner",
            "DELETE",
            &at("/apis/core.kcp.io/v1alpha1/logicalclusters/cluster?dryRun=All"),
            Value::Null,
            &[],
        ));
    }
    let status = json!({"status": {"phase": "Bound", "identityHash": "x"}});
    tries.push(attempt(
        "forge a binding's status",
        "PATCH",
        &format!("/clusters/root:cons{bindings}/example/status?dryRun=All"),
        status.clone(),
        &[],
    ));
    tries.push(attempt(
        "forge an export's status",
        "PATCH",
        &format!("{prov}/v1alpha2/apiexports/example.io/status?dryRun=All"),
        status,
        &[],
    ));
    // Through the virtual workspace: with the rights on the export's content, and only as far as the consumer agrees.
    let view = format!("/services/apiexport/{}/example.io/clusters", clusters["prov"]);
    let inside = |cluster: &str, path: &str| format!("{view}/{cluster}{path}");
    let (cons, other, home) = (&clusters["cons"], &clusters["other"], &clusters["prov"]);
    let widget = json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "new"}});
    let widgets = "/apis/example.io/v1/namespaces/default/widgets";
    let maps = "/api/v1/namespaces/default/configmaps";
    tries.push(attempt(
        "list widgets of all",
        "GET",
        &inside("*", "/apis/example.io/v1/widgets"),
        Value::Null,
        PROVIDERS,
    ));
    tries.push(attempt("list maps of all", "GET", &inside("*", "/api/v1/configmaps"), Value::Null, PROVIDERS));
    tries.push(attempt("list widgets of the consumer", "GET", &inside(cons, widgets), Value::Null, PROVIDERS));
    tries.push(attempt(
        "make a widget there",
        "POST",
        &inside(cons, &format!("{widgets}?dryRun=All")),
        widget.clone(),
        PROVIDERS,
    ));
    tries.push(attempt(
        "make a map there",
        "POST",
        &inside(cons, &format!("{maps}?dryRun=All")),
        object("ConfigMap", "new"),
        PROVIDERS,
    ));
    tries.push(attempt(
        "list secrets not granted",
        "GET",
        &inside(cons, "/api/v1/namespaces/default/secrets"),
        Value::Null,
        &[],
    ));
    tries.push(attempt(
        "make secrets not granted",
        "POST",
        &inside(cons, "/api/v1/namespaces/default/secrets?dryRun=All"),
        object("Secret", "new"),
        &[],
    ));
    tries.push(attempt(
        "list leases never claimed",
        "GET",
        &inside(cons, "/apis/coordination.k8s.io/v1/leases"),
        Value::Null,
        &[],
    ));
    tries.push(attempt("list maps of a stranger", "GET", &inside(other, maps), Value::Null, &[]));
    tries.push(attempt(
        "make a widget at a stranger's",
        "POST",
        &inside(other, &format!("{widgets}?dryRun=All")),
        widget,
        &[],
    ));
    tries.push(attempt("list maps of the provider through it", "GET", &inside(home, maps), Value::Null, &[]));
    tries.push(attempt(
        "change the binding",
        "PATCH",
        &inside(cons, &format!("{bindings}/example?dryRun=All")),
        json!({"metadata": {"labels": {"a": "b"}}}),
        &[],
    ));
    try_all(&world, &everybody, &tries).await;
    // Claimed but not granted objects do not show up among all either.
    let agent = world.user("agent");
    let secrets = agent.get(&inside("*", "/api/v1/secrets")).await.expect(200);
    assert_eq!(secrets["items"], json!([]));
}
