//! From a login to an object and its status, and back.

use carrick_bind_api::kinds;
use serde_json::{Value, json};

use super::world::{World, crd_kind, of, sheriffs, until, words};

/// Somebody logs in, binds, uses what was bound, and lets go of it.
pub async fn from_a_login_to_an_object_and_its_status(world: &World) {
    assert!(world.login().await);
    let templates = world.run(&["templates"]).await;
    assert!(templates.status.success() && words(&templates).contains("sheriffs.wild.io"), "{}", words(&templates));
    let done = world.run(&["apiservice", "law", "--template-name", "sheriffs", "--skip-konnector"]).await;
    assert!(done.status.success(), "{}", words(&done));

    let sheriff = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "wyatt", "namespace": "default"},
        "spec": {"town": "Tombstone"}});
    until("the kind is served", async || world.consumer.create(&sheriffs(), Some("default"), &sheriff).await.ok())
        .await;
    let copy = until("the copy", async || {
        let all = world.provider.list(&sheriffs(), None, &carrick_client::ListOptions::default()).await.ok()?;
        all.into_iter().find(|copy| copy["spec"]["town"] == "Tombstone")
    })
    .await;
    let (namespace, name) = (copy["metadata"]["namespace"].as_str(), copy["metadata"]["name"].as_str().unwrap());
    assert_ne!(namespace, Some("default"), "every consumer has namespaces of its own");
    let status = json!({"status": {"result": "peace"}});
    world.provider.merge_patch_status(&sheriffs(), namespace, name, &status).await.unwrap();
    until("its status", async || {
        let object: Value = world.consumer.get(&sheriffs(), Some("default"), "wyatt").await.ok()??;
        (object["status"]["result"] == "peace").then_some(())
    })
    .await;

    // Binding again changes nothing.
    let again = world.run(&["apiservice", "law", "--template-name", "sheriffs", "--skip-konnector"]).await;
    assert!(again.status.success(), "{}", words(&again));

    // Unbinding: objects are not lost by accident, and nothing is left.
    let refused = world.run(&["unbind", "law"]).await;
    assert!(!refused.status.success());
    assert_eq!(
        words(&refused),
        "error: 1 sheriffs.wild.io would be deleted here as well; delete them first, or pass --delete-objects\n"
    );
    let shown = world.run(&["unbind", "law", "--dry-run"]).await;
    assert!(words(&shown).starts_with("customresourcedefinition/sheriffs.wild.io goes, and 1 objects with it\n"));
    let bindings = of(kinds::API_SERVICE_BINDING);
    let there = world.consumer.get(&bindings, None, "law").await.unwrap().unwrap();
    assert!(there["metadata"].get("deletionTimestamp").is_none(), "{there}");
    let done = world.run(&["unbind", "law", "--delete-objects"]).await;
    assert!(done.status.success() && words(&done).ends_with("apiservicebinding/law is gone\n"), "{}", words(&done));
    assert_eq!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.unwrap(), None);
    assert_eq!(world.provider.get(&sheriffs(), namespace, name).await.unwrap(), None);
    let missing = world.run(&["unbind", "law"]).await;
    assert!(!missing.status.success() && words(&missing).contains("there is no APIServiceBinding law"));
}

/// Somebody binds a service that claims Secrets, and does nothing else.
pub async fn one_command(world: &World) {
    assert!(world.login().await);
    let shown = world.run(&["apiservice", "law", "--template-name", "claiming", "--dry-run"]).await;
    assert!(words(&shown).contains("kube-bind-konnector-law"), "{}", words(&shown));
    let done = world.run(&["apiservice", "law", "--template-name", "claiming"]).await;
    assert!(done.status.success(), "{}", words(&done));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("sheriffs.wild.io") && said.contains("secrets (with labels"), "{said}");
    let bindings = of(kinds::API_SERVICE_BINDING);
    until("the binding is ready", async || {
        let binding = world.consumer.get(&bindings, None, "law").await.ok()??;
        let mut conditions = binding["status"]["conditions"].as_array()?.iter();
        let synced = conditions.clone().any(|it| it["type"] == "InformersSynced" && it["status"] == "True");
        conditions.any(|it| it["type"] == "Ready" && it["status"] == "True" && synced).then_some(())
    })
    .await;
    let secrets = carrick_client::Resource::namespaced("", "v1", "Secret", "secrets");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "badge", "labels": {"app": "law"}}, "data": {"a": "MQ=="}});
    world.consumer.create(&secrets, Some("default"), &secret).await.unwrap();
    until("the claimed Secret", async || {
        let all = world.provider.list(&secrets, None, &carrick_client::ListOptions::default()).await.ok()?;
        all.into_iter().find(|copy| copy["metadata"]["name"] == "badge")
    })
    .await;
}
