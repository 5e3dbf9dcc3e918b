//! Bad input: a condition with the way out, and nothing else stops.

use serde_json::{Value, json};

use super::world::{World, has, message};
use crate::clusters::{BINDER, Provider, bindings, crd, crd_kind, schemas, secret, secrets, sheriffs};

#[tokio::test(flavor = "multi_thread")]
async fn kubeconfigs_that_cannot_be_used_say_why_and_disturb_nobody() {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("good", &provider).await;
    world.bind("sheriffs", "good").await;
    let good = provider.kubeconfig();
    let token = provider.cluster.token(BINDER);
    let cases = [
        ("garbage", ": no yaml".to_owned(), "cannot be read"),
        ("no-context", good.replace("current-context: plane", ""), "no current-context"),
        ("no-namespace", good.replace("    namespace: c-1\n", ""), "names no namespace"),
        ("plain-http", good.replace("https://", "http://"), "does not begin with https://"),
        (
            "token-file",
            good.replace(&format!("token: {token:?}"), "tokenFile: /etc/passwd"),
            "names a file in tokenFile",
        ),
        ("program", good.replace(&format!("token: {token:?}"), "exec: {command: id}"), "names a program"),
        ("proxy", good.replace("    server:", "    proxy-url: http://127.0.0.1:1\n    server:"), "names a proxy-url"),
    ];
    for (name, kubeconfig, _) in &cases {
        world.consumer.apply(&secrets(), &secret("kube-bind", name, kubeconfig)).await;
        world.bind(name, name).await;
    }
    for (name, _, wanted) in &cases {
        let binding = world.binding(name, "SecretValid", "False", "KubeconfigSecretInvalid").await;
        let said = message(&binding, "SecretValid");
        assert!(said.contains(wanted) && !said.contains(&token), "{name}: {said}");
    }
    let mut without_key = secret("kube-bind", "no-key", "");
    without_key["data"] = json!({"other": ""});
    world.consumer.apply(&secrets(), &without_key).await;
    world.bind("no-key", "no-key").await;
    let binding = world.binding("no-key", "SecretValid", "False", "KubeconfigSecretInvalid").await;
    assert!(message(&binding, "SecretValid").contains("no key"), "{binding}");

    let unreachable = good.replace(provider.cluster.url(), "https://127.0.0.1:1");
    world.consumer.apply(&secrets(), &secret("kube-bind", "unreachable", &unreachable)).await;
    world.bind("unreachable", "unreachable").await;
    world.binding("unreachable", "Heartbeating", "False", "ClusterBindingUpdateFailed").await;
    world.ready("sheriffs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_and_crds_that_cannot_be_used_say_why_and_disturb_nobody() {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    // Somebody's own CRD.
    world.consumer.apply(&crd_kind(), &crd("cowboys", "Cowboy")).await;
    provider.export_crd("cowboys", &crd("cowboys", "Cowboy")).await;
    // A schema of which nothing is served.
    provider.export_crd("outlaws", &crd("outlaws", "Outlaw")).await;
    let at = Some("c-1");
    let mut schema = provider.cluster.get(&schemas(), at, "outlaws.wild.io").await.unwrap();
    schema["spec"]["versions"][0]["served"] = json!(false);
    provider.cluster.client.replace(&schemas(), at, &schema).await.unwrap();
    // A schema that is missing.
    provider.export_crd("horses", &crd("horses", "Horse")).await;
    provider.cluster.delete(&schemas(), at, "horses.wild.io").await;
    // An API without status.
    let mut plain = crd("saloons", "Saloon");
    plain["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources");
    provider.export_crd("saloons", &plain).await;
    for export in ["sheriffs", "cowboys", "outlaws", "horses", "saloons"] {
        world.bind(export, "provider").await;
    }
    for (name, reason, wanted) in [
        ("cowboys", "ForeignCustomResourceDefinition", "belongs to nobody and is left alone"),
        ("outlaws", "BoundSchemaFetchFailed", "the provider must serve one"),
        ("horses", "BoundSchemaFetchFailed", "it does not exist"),
    ] {
        let binding = world.binding(name, "Connected", "False", reason).await;
        assert!(message(&binding, "Connected").contains(wanted), "{binding}");
    }
    world.ready("saloons").await;
    world.ready("sheriffs").await;
    let foreign = world.consumer.get(&crd_kind(), None, "cowboys.wild.io").await.unwrap();
    assert_eq!(foreign["metadata"].get("ownerReferences"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_deleted_while_running_stops_only_what_needs_it() {
    let world = World::start().await;
    let (first, second) = (Provider::start("c-1").await, Provider::start("c-2").await);
    first.export("sheriffs").await;
    second.export_crd("cowboys", &crd("cowboys", "Cowboy")).await;
    world.store("first", &first).await;
    world.store("second", &second).await;
    world.bind("sheriffs", "first").await;
    world.bind("cowboys", "second").await;
    world.ready("sheriffs").await;
    world.ready("cowboys").await;
    world.consumer.delete(&secrets(), Some("kube-bind"), "first").await;
    let binding = world.binding("sheriffs", "SecretValid", "False", "KubeconfigSecretNotFound").await;
    assert!(message(&binding, "SecretValid").contains("create it again"), "{binding}");
    assert!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.is_some());
    world.ready("cowboys").await;
    world.store("first", &first).await;
    world.ready("sheriffs").await;
    let stays = |it: &Value| it["metadata"].get("deletionTimestamp").is_none();
    world.consumer.until(&bindings(), None, "sheriffs", stays).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_name_is_too_long_is_named_and_the_others_go_on() {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    for name in ["a".repeat(251), "wyatt".to_owned()] {
        let sheriff =
            json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": name}, "spec": {"intent": "x"}});
        world.consumer.apply(&sheriffs(), &sheriff).await;
    }
    let binding = world.binding("sheriffs", "ObjectsSynced", "False", "ObjectsFailing").await;
    assert!(message(&binding, "ObjectsSynced").contains("choose a shorter name"), "{binding}");
    assert!(has(&binding, "Ready", "True", ""), "{binding}");
    provider.cluster.until(&sheriffs(), None, "c-1-wyatt", |copy| copy["spec"]["intent"] == "x").await;
    world.consumer.delete(&sheriffs(), None, &"a".repeat(251)).await;
    let fine = |it: &Value| !it["status"]["conditions"].to_string().contains("ObjectsSynced");
    world.consumer.until(&bindings(), None, "sheriffs", fine).await;
}
