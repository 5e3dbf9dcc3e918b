use serde_json::{Value, json};

use super::client::{MAPS, World, map};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn binding(name: &str, kind: &str, role: &str, subject: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "roleRef": {"kind": role.split('/').next(), "name": role.split('/').nth(1), "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [subject],
    })
}

#[tokio::test]
async fn callers_need_a_valid_token_or_are_anonymous() {
    let world = World::start().await;
    world.with_token(Some("wrong")).get(MAPS).await.refused(401, "Unauthorized");
    world.with_token(None).get(MAPS).await.refused(
        403,
        "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"",
    );
    world
        .with_token(None)
        .get("/apis")
        .await
        .refused(403, "forbidden: User \"system:anonymous\" cannot get path \"/apis\"");
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(world.with_token(None).get(path).await.text, "ok");
    }
    assert_eq!(world.with_token(None).get("/version").await.expect(200)["major"], "1");
    world.user("bob").get("/apis").await.expect(200);
}

#[tokio::test]
async fn roles_open_what_they_name_and_nothing_else() {
    let world = World::start().await;
    let bob = world.user("bob");
    for name in ["one", "two"] {
        world.admin.post(MAPS, map(name, json!({}))).await.expect(201);
    }
    bob.get(&format!("{MAPS}/one")).await.expect(403);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"], "verbs": ["get", "list", "watch"]}],
    });
    world.admin.post(&format!("{RBAC}/namespaces/default/roles"), role).await.expect(201);
    let subject = json!({"kind": "Group", "name": "developers"});
    world
        .admin
        .post(&format!("{RBAC}/namespaces/default/rolebindings"), binding("b", "RoleBinding", "Role/r", subject))
        .await
        .expect(201);
    bob.get(&format!("{MAPS}/one")).await.expect(200);
    bob.get(&format!("{MAPS}/two")).await.expect(403);
    bob.get(MAPS).await.expect(403);
    // A list by name is what informers of a single object send.
    bob.get(&format!("{MAPS}?fieldSelector=metadata.name%3Done")).await.expect(200);
    bob.get("/api/v1/namespaces/kube-system/configmaps/one").await.expect(403);
    bob.delete(&format!("{MAPS}/one")).await.expect(403);
}

#[tokio::test]
async fn cluster_roles_aggregate_and_bind_in_a_namespace() {
    let world = World::start().await;
    let bob = world.user("bob");
    let subject = json!({"kind": "User", "name": "bob"});
    world
        .admin
        .post(
            &format!("{RBAC}/namespaces/default/rolebindings"),
            binding("v", "RoleBinding", "ClusterRole/view", subject.clone()),
        )
        .await
        .expect(201);
    bob.get(MAPS).await.expect(200);
    bob.get("/api/v1/namespaces/default/secrets").await.expect(403);
    bob.get("/api/v1/configmaps").await.expect(403);
    world
        .admin
        .post(
            &format!("{RBAC}/clusterrolebindings"),
            binding("a", "ClusterRoleBinding", "ClusterRole/cluster-admin", subject),
        )
        .await
        .expect(201);
    bob.get("/api/v1/secrets").await.expect(200);
    let changed = json!({"roleRef": {"name": "view"}});
    world.admin.patch(&format!("{RBAC}/clusterrolebindings/a"), "merge", changed).await.expect(422);
}

#[tokio::test]
async fn reviews_answer_who_may_do_what() {
    let world = World::start().await;
    let review = |verb: &str, user: Option<&str>| {
        let mut spec = json!({"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "default"}});
        if let Some(user) = user {
            spec["user"] = user.into();
        }
        json!({"spec": spec})
    };
    let own = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(world.admin.post(own, review("create", None)).await.expect(201)["status"]["allowed"], true);
    assert_eq!(world.user("bob").post(own, review("create", None)).await.expect(201)["status"]["allowed"], false);
    let any = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    assert_eq!(world.admin.post(any, review("create", Some("bob"))).await.expect(201)["status"]["allowed"], false);
    world.user("bob").post(any, review("create", Some("bob"))).await.expect(403);
    let me = world.user("bob").post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({})).await.expect(201);
    assert_eq!(me["status"]["userInfo"]["groups"], json!(["developers", "system:authenticated"]));
    world.admin.get(any).await.expect(405);
}

#[tokio::test]
async fn acting_as_somebody_else_needs_permission() {
    let world = World::start().await;
    let headers = [("impersonate-user", "bob")];
    assert_eq!(world.admin.call("GET", MAPS, &headers, Vec::new()).await.code, 403);
    assert_eq!(world.user("bob").call("GET", MAPS, &[("impersonate-user", "admin")], Vec::new()).await.code, 403);
}
