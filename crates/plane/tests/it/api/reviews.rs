//! Access reviews, aggregated roles and impersonation, in a service cluster and in kcp.

use serde_json::{Value, json};

use super::client::{Client, World};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";
const WORKSPACES: &str = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
const ALLOWED: [(bool, &str); 2] = [(true, "access granted"), (false, "access denied")];

fn role(name: &str, rules: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, role: &str, subjects: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": subjects})
}

fn user(name: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name})
}

/// Makes a workspace; its cluster.
async fn workspace(world: &World, name: &str) -> String {
    let object = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
        "spec": {"type": {"name": "universal", "path": "root"}}});
    world.admin.post(WORKSPACES, object).await.expect(201);
    let path = format!("{WORKSPACES}/{name}");
    let ready = world.admin.until(&path, |answer| answer.body["status"]["phase"] == "Ready").await.body;
    ready["spec"]["cluster"].as_str().unwrap().to_owned()
}

async fn grant(client: &Client, base: &str, name: &str, rules: Value, subjects: Value) {
    client.post(&format!("{base}{RBAC}/clusterroles"), role(name, rules)).await.expect(201);
    client.post(&format!("{base}{RBAC}/clusterrolebindings"), binding(name, name, subjects)).await.expect(201);
}

async fn review(client: &Client, base: &str, spec: Value) -> Value {
    let path = format!("{base}{REVIEWS}/subjectaccessreviews");
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
    client.post(&path, review).await.expect(201)["status"].clone()
}

fn reads(resource: &str) -> Value {
    json!([{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}])
}

fn reading(subject: Value, resource: &str) -> Value {
    let mut spec = subject;
    spec["resourceAttributes"] = json!({"verb": "get", "resource": resource, "namespace": "default"});
    spec
}

#[tokio::test]
async fn a_service_cluster_says_which_binding_allows_something() {
    let world = World::start().await;
    grant(
        &world.admin,
        "",
        "readers",
        reads("secrets"),
        json!([user("eve"), {"kind": "ServiceAccount", "name": "bot", "namespace": "ops"}]),
    )
    .await;
    let status = review(&world.admin, "", reading(json!({"user": "eve"}), "secrets")).await;
    let reason = "RBAC: allowed by ClusterRoleBinding \"readers\" of ClusterRole \"readers\" to User \"eve\"";
    assert_eq!(status, json!({"allowed": true, "reason": reason}));
    let bot = json!({"user": "system:serviceaccount:ops:bot"});
    let status = review(&world.admin, "", reading(bot, "secrets")).await;
    let reason =
        "RBAC: allowed by ClusterRoleBinding \"readers\" of ClusterRole \"readers\" to ServiceAccount \"bot/ops\"";
    assert_eq!(status, json!({"allowed": true, "reason": reason}));
    assert_eq!(review(&world.admin, "", reading(json!({"user": "eve"}), "pods")).await, json!({"allowed": false}));
    let master = json!({"user": "x", "groups": ["system:masters"]});
    assert_eq!(review(&world.admin, "", reading(master, "pods")).await, json!({"allowed": true}));
    // A role that does not exist is named, in reviews and in refusals.
    let lost = binding("lost", "none", json!([user("bob")]));
    world.admin.post(&format!("{RBAC}/clusterrolebindings"), lost).await.expect(201);
    let why = "RBAC: clusterrole.rbac.authorization.k8s.io \"none\" not found";
    let status = review(&world.admin, "", reading(json!({"user": "bob"}), "pods")).await;
    assert_eq!(status, json!({"allowed": false, "reason": why}));
    let text = "cannot list resource \"secrets\" in API group \"\" at the cluster scope";
    let refused = world.user("bob").get("/api/v1/secrets").await;
    refused.refused(403, &format!("secrets is forbidden: User \"bob\" {text}: {why}"));
    let own = format!("{REVIEWS}/selfsubjectrulesreviews");
    let rules = world.user("bob").post(&own, json!({"spec": {"namespace": "default"}})).await.expect(201);
    assert_eq!(rules["status"]["evaluationError"], "clusterrole.rbac.authorization.k8s.io \"none\" not found");
    assert_eq!((&rules["spec"], &rules["status"]["incomplete"]), (&json!({}), &json!(false)));
}

#[tokio::test]
async fn reviews_are_checked() {
    let world = World::start().await;
    let path = format!("{REVIEWS}/subjectaccessreviews");
    let nothing = world.admin.post(&path, json!({"spec": {}})).await.expect(422);
    let causes: Vec<&str> =
        nothing["details"]["causes"].as_array().unwrap().iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    assert_eq!(causes, ["spec.resourceAttributes", "spec.user"]);
    let local = format!("{REVIEWS}/namespaces/default/localsubjectaccessreviews");
    let elsewhere =
        json!({"spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "other"}}});
    let refused = world.admin.post(&local, elsewhere).await.expect(422);
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.resourceAttributes.namespace");
    let rules = world.admin.post(&format!("{REVIEWS}/selfsubjectrulesreviews"), json!({"spec": {}})).await;
    rules.refused(400, "no namespace on request");
}

#[tokio::test]
async fn a_workspace_answers_for_those_who_may_enter_it() {
    let world = World::kcp(&[]).await;
    workspace(&world, "here").await;
    let there = workspace(&world, "there").await;
    let base = "/clusters/root:here";
    let enter = json!([{"nonResourceURLs": ["/"], "verbs": ["access"]}]);
    let stranger = format!("system:kcp:serviceaccount:{there}:default:bot");
    let bot = json!({"kind": "ServiceAccount", "name": "bot", "namespace": "default"});
    grant(&world.admin, base, "enter", enter, json!([user("eve"), user(&stranger)])).await;
    grant(&world.admin, base, "readers", reads("secrets"), json!([user("eve"), user("dan"), bot, user(&stranger)]))
        .await;
    let extra = |cluster: &str| json!({"authentication.kcp.io/cluster-name": [cluster]});
    let account = "system:serviceaccount:default:bot";
    let cases = [
        (json!({"user": "eve"}), "secrets", true),
        (json!({"user": "eve"}), "configmaps", false),
        // Without access to the workspace, rights there mean nothing.
        (json!({"user": "dan"}), "secrets", false),
        // A service account without a cluster is one of this workspace.
        (json!({"user": account}), "secrets", true),
        (json!({"user": account, "extra": extra(&there)}), "secrets", true),
        (json!({"user": account, "extra": extra("elsewhere")}), "secrets", false),
        (json!({"user": "x", "groups": ["system:kcp:admin"]}), "configmaps", true),
        // Everybody with a scope for another cluster is a stranger here.
        (
            json!({"user": "eve", "extra": {"authentication.kcp.io/scopes": [format!("cluster:{there}")]}}),
            "secrets",
            false,
        ),
    ];
    for (subject, resource, allowed) in cases {
        let status = review(&world.admin, base, reading(subject.clone(), resource)).await;
        let (allowed, reason) = ALLOWED[usize::from(!allowed)];
        assert_eq!(status, json!({"allowed": allowed, "reason": reason}), "{subject} {resource}");
    }
    let master = json!({"user": "x", "groups": ["system:masters"]});
    assert_eq!(review(&world.admin, base, reading(master, "pods")).await, json!({"allowed": true}));
    let mut forged = reading(json!({"user": "x", "groups": ["system:kcp:admin"]}), "apibindings");
    forged["resourceAttributes"]["group"] = "apis.kcp.io".into();
    forged["resourceAttributes"]["subresource"] = "status".into();
    let status = review(&world.admin, base, forged).await;
    assert_eq!(status, json!({"allowed": false, "denied": true, "reason": "access denied"}));
}

#[tokio::test]
async fn aggregated_roles_store_their_rules() {
    for (world, base) in [(World::start().await, ""), (World::kcp(&[]).await, "/clusters/root")] {
        let roles = format!("{base}{RBAC}/clusterroles");
        let labelled = |name: &str, rules: Value, value: &str| {
            let mut role = role(name, rules);
            role["metadata"]["labels"] = json!({"into": value});
            role
        };
        world.admin.post(&roles, labelled("b", reads("secrets"), "all")).await.expect(201);
        let mut all = labelled("all", json!([]), "none");
        all["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"into": "all"}}]});
        world.admin.post(&roles, all).await.expect(201);
        let path = format!("{roles}/all");
        let stored = world.admin.until(&path, |answer| answer.body["rules"] == reads("secrets")).await.body;
        let managers: Vec<&Value> =
            stored["metadata"]["managedFields"].as_array().unwrap().iter().map(|entry| &entry["manager"]).collect();
        assert!(managers.contains(&&json!("clusterrole-aggregation-controller")), "{managers:?}");
        world.admin.post(&roles, labelled("a", reads("pods"), "all")).await.expect(201);
        let both = json!([reads("pods")[0], reads("secrets")[0]]);
        world.admin.until(&path, |answer| answer.body["rules"] == both).await;
        // What somebody writes by hand does not stay.
        world.admin.patch(&path, "merge", json!({"rules": []})).await.expect(200);
        world.admin.until(&path, |answer| answer.body["rules"] == both).await;
        world
            .admin
            .patch(&format!("{roles}/b"), "merge", json!({"metadata": {"labels": {"into": "no"}}}))
            .await
            .expect(200);
        world.admin.until(&path, |answer| answer.body["rules"] == reads("pods")).await;
        world.admin.delete(&format!("{roles}/a")).await.expect(200);
        let empty = |rules: &Value| rules.as_array().is_none_or(Vec::is_empty);
        world.admin.until(&path, |answer| answer.code == 200 && empty(&answer.body["rules"])).await;
    }
}

#[tokio::test]
async fn roles_for_namespaces_have_their_rules_from_the_start() {
    let world = World::start().await;
    let mut counts = Vec::new();
    for name in ["view", "edit", "admin"] {
        let role = world.admin.get(&format!("{RBAC}/clusterroles/{name}")).await.expect(200);
        counts.push(role["rules"].as_array().unwrap().len());
    }
    assert!(counts[0] > 5 && counts[0] < counts[1] && counts[1] < counts[2], "{counts:?}");
}

#[tokio::test]
async fn administrators_of_a_workspace_act_as_others_there_and_nowhere_else() {
    let world = World::kcp(&["alice", "bob"]).await;
    workspace(&world, "here").await;
    workspace(&world, "there").await;
    for (place, who) in [("here", "alice"), ("here", "bob"), ("there", "bob")] {
        let path = format!("/clusters/root:{place}{RBAC}/clusterrolebindings");
        world.admin.post(&path, binding(who, "cluster-admin", json!([user(who)]))).await.expect(201);
    }
    let alice = world.user("alice");
    let secrets = |place: &str| format!("/clusters/root:{place}/api/v1/secrets");
    let as_bob = [("impersonate-user", "bob")];
    alice.call("GET", &secrets("here"), &as_bob, Vec::new()).await.expect(200);
    alice.call("GET", &secrets("there"), &as_bob, Vec::new()).await.expect(403);
    // Bob's rights end at the workspace, even when alice acts as him.
    let path = format!("/clusters/root:here{REVIEWS}/selfsubjectrulesreviews");
    let me = "/clusters/root:here/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let json_as_bob = [("content-type", "application/json"), as_bob[0]];
    alice
        .call("POST", &path, &json_as_bob, json!({"spec": {"namespace": "default"}}).to_string().into())
        .await
        .expect(201);
    let info = alice.call("POST", me, &json_as_bob, json!({}).to_string().into()).await.expect(201);
    let scopes = &info["status"]["userInfo"]["extra"]["authentication.kcp.io/scopes"];
    assert!(scopes[0].as_str().is_some_and(|scope| scope.starts_with("cluster:")), "{info}");
    let special = [("impersonate-user", "bob"), ("impersonate-group", "system:kcp:admin")];
    let refused = alice.call("GET", &secrets("here"), &special, Vec::new()).await;
    refused.refused(403, "forbidden: impersonation is not allowed for the requestor");
    world.user("bob").call("GET", &secrets("there"), &[("impersonate-user", "alice")], Vec::new()).await.expect(403);
}

/// A provider with an export that claims reviews, and a consumer who agrees; the clusters of both.
async fn exported(world: &World) -> (String, String) {
    let (provider, consumer) = (workspace(world, "prov").await, workspace(world, "cons").await);
    let apis = "/clusters/root:prov/apis/apis.kcp.io";
    let schema = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": "v1.widgets.example.io"},
        "spec": {"group": "example.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]}});
    world.admin.post(&format!("{apis}/v1alpha1/apiresourceschemas"), schema).await.expect(201);
    let claim = json!({"group": "authorization.k8s.io", "resource": "subjectaccessreviews", "verbs": ["create"]});
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "example.io"},
        "spec": {"permissionClaims": [claim], "resources": [
            {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"crd": {}}}]}});
    world.admin.post(&format!("{apis}/v1alpha2/apiexports"), export).await.expect(201);
    let mut accepted = claim;
    accepted["state"] = "Accepted".into();
    accepted["selector"] = json!({"matchAll": true});
    let object = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "example"},
        "spec": {"reference": {"export": {"path": "root:prov", "name": "example.io"}}, "permissionClaims": [accepted]}});
    let bindings = "/clusters/root:cons/apis/apis.kcp.io/v1alpha2/apibindings";
    world.admin.post(bindings, object).await.expect(201);
    world.admin.until(&format!("{bindings}/example"), |answer| answer.body["status"]["phase"] == "Bound").await;
    (provider, consumer)
}

#[tokio::test]
async fn a_provider_reviews_access_in_the_consumers_workspace() {
    let world = World::kcp(&["alice"]).await;
    let (provider, consumer) = exported(&world).await;
    let path = "/clusters/root:cons";
    let enter = json!([{"nonResourceURLs": ["/"], "verbs": ["access"]}, reads("secrets")[0]]);
    grant(&world.admin, path, "eve", enter, json!([user("eve")])).await;
    let view = format!("/services/apiexport/{provider}/example.io/clusters/{consumer}");
    for (who, (allowed, reason)) in ["eve", "dan"].into_iter().zip(ALLOWED) {
        let status = review(&world.admin, &view, reading(json!({"user": who}), "secrets")).await;
        assert_eq!(status, json!({"allowed": allowed, "reason": reason}), "{who}");
    }
    let spec = json!({"spec": reading(json!({"user": "eve"}), "secrets")});
    world.user("alice").post(&format!("{view}{REVIEWS}/subjectaccessreviews"), spec).await.expect(403);
}

#[tokio::test]
async fn whoever_reads_bindings_sees_the_schemas_behind_them() {
    let world = World::kcp(&["alice", "bob"]).await;
    let (provider, consumer) = exported(&world).await;
    let rules = json!([{"nonResourceURLs": ["/"], "verbs": ["access"]}, {"apiGroups": ["apis.kcp.io"], "resources": ["apibindings"], "verbs": ["get"]}]);
    grant(&world.admin, "/clusters/root:cons", "readers", rules, json!([user("alice")])).await;
    let alice = world.user("alice");
    for target in [consumer.as_str(), "*"] {
        let schemas = format!(
            "/services/apiresourceschema/{consumer}/clusters/{target}/apis/apis.kcp.io/v1alpha1/apiresourceschemas"
        );
        let list = alice.get(&schemas).await.expect(200);
        let names: Vec<&Value> =
            list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
        assert!(names.contains(&&json!("v1.widgets.example.io")), "{names:?}");
        let one = alice.get(&format!("{schemas}/v1.widgets.example.io")).await.expect(200);
        assert_eq!(one["metadata"]["annotations"]["kcp.io/cluster"], *provider);
        alice.get(&format!("{schemas}/v1.other.example.io")).await.expect(404);
        alice.delete(&format!("{schemas}/v1.widgets.example.io")).await.expect(403);
        world.user("bob").get(&schemas).await.expect(403);
        let group = alice
            .get(&format!("/services/apiresourceschema/{consumer}/clusters/{target}/apis/apis.kcp.io/v1alpha1"))
            .await;
        let group = group.expect(200);
        assert_eq!(group["resources"][0]["verbs"], json!(["get", "list", "watch"]), "{group}");
    }
    let elsewhere = format!("/services/apiresourceschema/{consumer}/clusters/{provider}/apis");
    alice.get(&elsewhere).await.expect(403);
}
