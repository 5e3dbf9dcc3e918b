//! kube-bind v2 from a kubeconfig to an object and its status, and back.

use carrick_bind_api::core::CLUSTER_BINDING;
use serde_json::json;

use super::on_planes;
use super::world::{World, crd_kind, of, sheriffs, until, words};

/// The provider offers Sheriffs to v2 as well.
pub async fn label(world: &World) {
    let labels = json!({"metadata": {"labels": {"core.kbind.io/exported": "true"}}});
    world.provider.merge_patch(&crd_kind(), None, "sheriffs.wild.io", &labels).await.unwrap();
}

/// Runs a command that has to succeed; what it says.
pub async fn done(world: &World, args: &[&str]) -> String {
    let output = world.run(args).await;
    assert!(output.status.success(), "{args:?}: {}", words(&output));
    words(&output)
}

/// Runs a command that has to fail; what it says.
pub async fn refused(world: &World, args: &[&str]) -> String {
    let output = world.run(args).await;
    assert!(!output.status.success(), "{args:?}: {}", words(&output));
    words(&output)
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_kubeconfig_to_an_object_and_its_status_without_a_backend() {
    let (world, _planes) = on_planes().await;
    from_a_kubeconfig(&world).await;
}

/// Somebody connects, binds, uses what was bound, and lets go of it; no backend is asked for anything.
pub async fn from_a_kubeconfig(world: &World) {
    label(world).await;
    let (file, cluster_bindings) = (world.provider_file(), of(CLUSTER_BINDING));
    let connect = ["connect", "west", "-f", &file, "--source", "crd", "--skip-konnector"];

    // Nothing is written that was not asked for.
    let shown = done(world, &[&connect[..], &["--dry-run"]].concat()).await;
    assert!(shown.contains("kind: Connection") && shown.contains("name: clusterbindings.core.kbind.io"), "{shown}");
    assert_eq!(world.consumer.get(&crd_kind(), None, "connections.core.kbind.io").await.unwrap(), None);
    assert!(refused(world, &["bind", "west", "sheriffs.wild.io"]).await.contains("there is no Connection west"));

    let said = done(world, &connect).await;
    assert!(said.ends_with("connection/west is ready and offers: sheriffs.wild.io\n"), "{said}");
    let said = done(world, &connect).await;
    assert!(said.ends_with("offers: sheriffs.wild.io\n"), "twice is as good as once: {said}");
    let said = refused(world, &["connect", "west", "--secret", "kube-bind/other"]).await;
    assert!(said.starts_with("error: "), "{said}");
    let said = refused(world, &["bind", "west", "deputies.wild.io"]).await;
    assert_eq!(said, "error: Connection west offers no deputies.wild.io; it offers: sheriffs.wild.io\n");

    let said = done(world, &["bind", "west", "sheriffs.wild.io"]).await;
    assert!(said.contains("clusterbinding/west is ready: sheriffs.wild.io"), "{said}");
    let sheriff = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "wyatt", "namespace": "default"},
        "spec": {"town": "Tombstone"}});
    until("the kind is served", async || world.consumer.create(&sheriffs(), Some("default"), &sheriff).await.ok())
        .await;
    until("the copy", async || world.provider.get(&sheriffs(), Some("default"), "wyatt").await.ok()?).await;
    let status = json!({"status": {"result": "peace"}});
    world.provider.merge_patch_status(&sheriffs(), Some("default"), "wyatt", &status).await.unwrap();
    until("its status", async || {
        let object = world.consumer.get(&sheriffs(), Some("default"), "wyatt").await.ok()??;
        (object["status"]["result"] == "peace").then_some(())
    })
    .await;

    // What there is, and what is wrong with it.
    let own =
        json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "doc", "namespace": "default"}});
    world.provider.create(&sheriffs(), Some("default"), &own).await.unwrap();
    world.consumer.create(&sheriffs(), Some("default"), &own).await.unwrap();
    until("the conflict", async || {
        let said = words(&world.run(&["status"]).await);
        let mut lines = said.lines();
        let is = lines.any(|it| it.starts_with("ClusterBinding") && it.contains("True") && it.contains("1 object(s)"));
        (is && said.contains("Connection")).then_some(())
    })
    .await;

    // In a namespace, and out of it again: what is here stays.
    done(world, &["bind", "west", "sheriffs.wild.io", "-n", "default", "--name", "mine"]).await;
    let said = done(world, &["unbind", "mine", "--namespace", "default"]).await;
    assert!(said.ends_with("binding/mine in namespace default is gone\n"), "{said}");

    // It is still bound by the Connection that has its copies, whatever it names.
    let other = json!({"spec": {"connectionRef": {"name": "east"}}});
    world.consumer.merge_patch(&cluster_bindings, None, "west", &other).await.unwrap();
    let said = refused(world, &["unbind", "west"]).await;
    assert!(said.starts_with("error: 2 sheriffs.wild.io would be deleted here as well"), "{said}");
    let said = done(world, &["unbind", "west", "--dry-run"]).await;
    assert!(said.starts_with("customresourcedefinition/sheriffs.wild.io goes, and 2 objects with it\n"), "{said}");
    let said = done(world, &["unbind", "west", "--delete-objects"]).await;
    assert!(said.ends_with("clusterbinding/west is gone\n"), "{said}");
    assert_eq!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.unwrap(), None);
    assert_eq!(world.provider.get(&sheriffs(), Some("default"), "wyatt").await.unwrap(), None);
    assert!(world.provider.get(&sheriffs(), Some("default"), "doc").await.unwrap().is_some(), "it was the provider's");
    assert!(refused(world, &["unbind", "west"]).await.contains("there is no APIServiceBinding west"));
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_stay_if_somebody_says_so_and_so_does_the_api() {
    let (world, _planes) = on_planes().await;
    label(&world).await;
    let file = world.provider_file();
    done(&world, &["connect", "west", "-f", &file, "--source", "crd", "--skip-konnector"]).await;
    done(&world, &["bind", "west", "sheriffs.wild.io"]).await;
    let sheriff =
        json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "wyatt", "namespace": "default"}});
    until("the kind is served", async || world.consumer.create(&sheriffs(), Some("default"), &sheriff).await.ok())
        .await;
    until("the copy", async || world.provider.get(&sheriffs(), Some("default"), "wyatt").await.ok()?).await;
    done(&world, &["unbind", "west", "--keep-copies"]).await;
    for client in [&world.consumer, &world.provider] {
        assert!(client.get(&sheriffs(), Some("default"), "wyatt").await.unwrap().is_some());
    }
}
