//! Service accounts, client certificates, and granting rights.

use carrick_plane::{Config, Mode};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::client::{Client, MAPS, World, map};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ME: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
}

fn bound(name: &str, role: &str, subject: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": [subject],
    })
}

async fn me(client: &Client) -> (String, Vec<String>) {
    let info = client.post(ME, json!({})).await.expect(201)["status"]["userInfo"].clone();
    let groups = info["groups"].as_array().unwrap().iter().map(|group| group.as_str().unwrap().to_owned()).collect();
    (info["username"].as_str().unwrap().to_owned(), groups)
}

#[tokio::test]
async fn a_requested_token_speaks_for_its_account_until_that_is_gone() {
    let world = World::start().await;
    world.admin.post(ACCOUNTS, account("bot")).await.expect(201);
    let path = format!("{ACCOUNTS}/bot/token");
    let made = world.admin.post(&path, json!({"spec": {}})).await.expect(201);
    assert_eq!((&made["kind"], &made["spec"]["expirationSeconds"]), (&json!("TokenRequest"), &json!(3600)));
    assert!(made["status"]["expirationTimestamp"].is_string());
    let token = made["status"]["token"].as_str().unwrap();
    let bot = world.with_token(Some(token));
    let (name, groups) = me(&bot).await;
    assert_eq!(name, "system:serviceaccount:default:bot");
    assert_eq!(groups, ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
    bot.get(MAPS).await.expect(403);
    let subject = json!({"kind": "ServiceAccount", "name": "bot", "namespace": "default"});
    world.admin.post(&format!("{RBAC}/namespaces/default/rolebindings"), bound("b", "view", subject)).await.expect(201);
    bot.get(MAPS).await.expect(200);
    bot.post(MAPS, map("a", json!({}))).await.expect(403);
    let review = json!({"spec": {"token": token}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let reviewed = world.admin.post(reviews, review.clone()).await.expect(201);
    assert_eq!(reviewed["status"]["user"]["username"], "system:serviceaccount:default:bot");
    world.admin.delete(&format!("{ACCOUNTS}/bot")).await.expect(200);
    bot.get(MAPS).await.expect(401);
    assert_eq!(world.admin.post(reviews, review).await.expect(201)["status"]["authenticated"], false);
    // A new account of the same name is another one.
    world.admin.post(ACCOUNTS, account("bot")).await.expect(201);
    bot.get(MAPS).await.expect(401);
}

#[tokio::test]
async fn token_requests_are_checked() {
    let world = World::start().await;
    let path = format!("{ACCOUNTS}/default/token");
    world.admin.until(&format!("{ACCOUNTS}/default"), |answer| answer.code == 200).await;
    world.admin.post(&path, json!({"spec": {"expirationSeconds": 10}})).await.refused(
        422,
        "TokenRequest.authentication.k8s.io \"default\" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes",
    );
    world.admin.post(&format!("{ACCOUNTS}/none/token"), json!({})).await.expect(404);
    world.admin.get(&path).await.expect(405);
    world.user("bob").post(&path, json!({})).await.expect(403);
    // A token for another audience is refused here.
    let other = world.admin.post(&path, json!({"spec": {"audiences": ["vault"]}})).await.expect(201);
    let other = other["status"]["token"].as_str().unwrap();
    world.with_token(Some(other)).get("/apis").await.expect(401);
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    for (audience, authenticated) in [("vault", true), ("other", false)] {
        let review = json!({"spec": {"token": other, "audiences": [audience]}});
        let status = world.admin.post(reviews, review).await.expect(201)["status"].clone();
        assert_eq!(status["authenticated"], authenticated, "{status}");
    }
    // A token bound to a Secret ends with it.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    world.admin.post(SECRETS, secret).await.expect(201);
    let request = json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}}});
    let token = world.admin.post(&path, request).await.expect(201);
    let bot = world.with_token(token["status"]["token"].as_str());
    bot.get("/apis").await.expect(200);
    world.admin.delete(&format!("{SECRETS}/s")).await.expect(200);
    bot.get("/apis").await.expect(401);
}

#[tokio::test]
async fn token_secrets_are_filled_and_deleted_with_their_account() {
    let world = World::start().await;
    world.admin.post(ACCOUNTS, account("bot")).await.expect(201);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "bot"}},
    });
    world.admin.post(SECRETS, secret.clone()).await.expect(201);
    let path = format!("{SECRETS}/t");
    let filled = world.admin.until(&path, |answer| answer.body["data"]["token"].is_string()).await.body;
    let text = |key: &str| {
        String::from_utf8(BASE64.decode(filled["data"][key].as_str().unwrap().as_bytes()).unwrap()).unwrap()
    };
    assert_eq!((text("namespace").as_str(), text("ca.crt").as_str()), ("default", world.plane.ca_pem()));
    let bot = world.with_token(Some(&text("token")));
    assert_eq!(me(&bot).await.0, "system:serviceaccount:default:bot");
    world.admin.delete(&path).await.expect(200);
    bot.get("/apis").await.expect(401);
    world.admin.post(SECRETS, secret).await.expect(201);
    world.admin.until(&path, |answer| answer.body["data"]["token"].is_string()).await;
    world.admin.delete(&format!("{ACCOUNTS}/bot")).await.expect(200);
    world.admin.until(&path, |answer| answer.code == 404).await;
}

#[tokio::test]
async fn certificates_name_users_and_groups() {
    let world = World::start().await;
    let carol = world.plane.client_certificate("carol", &["writers"]).unwrap();
    let carol = Client::with_certificate(&world.plane, &carol);
    assert_eq!(me(&carol).await, ("carol".into(), vec!["writers".into(), "system:authenticated".into()]));
    carol.get(MAPS).await.expect(403);
    let root = world.plane.client_certificate("root", &["system:masters"]).unwrap();
    Client::with_certificate(&world.plane, &root).get(MAPS).await.expect(200);
    // Another authority is trusted only if it was configured.
    let other = World::start().await;
    let stranger = other.plane.client_certificate("root", &["system:masters"]).unwrap();
    let refused = Client::with_certificate(&world.plane, &stranger).try_send("GET", MAPS, &[], Vec::new()).await;
    assert!(refused.is_err());
    let file = std::env::temp_dir().join(format!("carrick-ca-{}", uuid::Uuid::new_v4()));
    std::fs::write(&file, other.plane.ca_pem()).unwrap();
    let mut config = Config::new(Mode::Kube);
    config.client_ca = Some(file.clone());
    let trusting = World::with(config).await;
    std::fs::remove_file(file).unwrap();
    assert_eq!(me(&Client::with_certificate(&trusting.plane, &stranger)).await.0, "root");
}

#[tokio::test]
async fn nobody_grants_more_than_they_have() {
    let world = World::start().await;
    let bob = world.user("bob");
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let roles = format!("{RBAC}/namespaces/default/roles");
    let user = json!({"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"});
    world.admin.post(&bindings, bound("bob", "admin", user.clone())).await.expect(201);
    let role = |name: &str, resource: &str, verbs: &[&str]| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": verbs}],
        })
    };
    bob.post(&roles, role("fine", "secrets", &["get", "list"])).await.expect(201);
    bob.post(&roles, role("much", "nodes", &["get", "delete"])).await.refused(
        403,
        "roles.rbac.authorization.k8s.io \"much\" is forbidden: user \"bob\" (groups=[\"developers\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\"]}\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"delete\"]}",
    );
    bob.patch(
        &format!("{roles}/fine"),
        "merge",
        json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
    )
    .await
    .expect(403);
    bob.patch(&format!("{roles}/fine"), "merge", json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    bob.post(&bindings, bound("up", "cluster-admin", user.clone())).await.expect(403);
    bob.post(&bindings, bound("down", "view", user.clone())).await.expect(201);
    bob.post(&bindings, bound("nothing", "no-such-role", user.clone())).await.expect(404);
    bob.post(&format!("{RBAC}/clusterroles"), json!({"metadata": {"name": "x"}, "rules": []})).await.expect(403);
    // With the verbs `escalate` and `bind` it is allowed.
    let cluster_role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "grant"},
        "rules": [
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]},
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "resourceNames": ["cluster-admin"], "verbs": ["bind"]},
        ],
    });
    world.admin.post(&roles, cluster_role).await.expect(201);
    let mut grant = bound("grant", "grant", user.clone());
    grant["roleRef"]["kind"] = "Role".into();
    world.admin.post(&bindings, grant).await.expect(201);
    bob.post(&roles, role("much", "nodes", &["get", "delete"])).await.expect(201);
    bob.post(&bindings, bound("up", "cluster-admin", user)).await.expect(201);
}
