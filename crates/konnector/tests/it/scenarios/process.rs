//! The process: its Lease, its probes, the program itself.

use std::time::Duration;

use carrick_client::Resource;
use carrick_konnector::agent::{self, KonnectorError, LeaseConfig};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::world::World;
use crate::clusters::{KONNECTOR, Provider};

fn leases() -> Resource {
    Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases")
}

fn lease(identity: &str) -> LeaseConfig {
    let text = str::to_owned;
    let (name, namespace, identity) = (text("kube-bind"), text("kube-bind"), Some(text(identity)));
    LeaseConfig { name, namespace, identity, duration: Some(Duration::from_secs(3)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_that_loses_its_lease_ends_and_another_one_takes_over() {
    let (mut world, provider) = (World::start().await, Provider::start("c-1").await);
    world.stop_konnector().await;
    provider.export("sheriffs").await;
    let (mut first, mut second) = (world.config(), world.config());
    (first.lease, second.lease) = (Some(lease("first")), Some(lease("second")));
    let first = tokio::spawn(agent::run(first, CancellationToken::new()));
    let held = |by: &'static str| move |lease: &serde_json::Value| lease["spec"]["holderIdentity"] == by;
    world.consumer.until(&leases(), Some("kube-bind"), "kube-bind", held("first")).await;
    // Somebody takes it away.
    let patch = json!({"spec": {"holderIdentity": "thief"}});
    world.consumer.client.merge_patch(&leases(), Some("kube-bind"), "kube-bind", &patch).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), first).await.unwrap().unwrap();
    assert!(matches!(ended, Err(KonnectorError::Lease(_))), "{ended:?}");
    // The thief never renews it.
    let stop = CancellationToken::new();
    let second = tokio::spawn(agent::run(second, stop.clone()));
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    stop.cancel();
    second.await.unwrap().unwrap();
    world.consumer.until(&leases(), Some("kube-bind"), "kube-bind", held("")).await;
}

/// The program with these arguments and the kubeconfig of the konnector.
pub fn program(world: &World, folder: &std::path::Path, args: &[&str]) -> std::process::Command {
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, world.consumer.kubeconfig(KONNECTOR)).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_konnector"));
    command.args(args).arg("--kubeconfig").arg(kubeconfig);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_leads_until_it_is_told_to_stop_and_prints_its_roles() {
    let world = World::without_konnector().await;
    let folder = std::env::temp_dir().join(format!("konnector-program-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let args = ["--lease-namespace=kube-bind", "--server-address=127.0.0.1:0"];
    let mut child = program(&world, &folder, &args).spawn().unwrap();
    let held = |lease: &serde_json::Value| lease["spec"]["holderIdentity"].as_str().is_some_and(|it| !it.is_empty());
    world.consumer.until(&leases(), Some("kube-bind"), "kube-bind", held).await;
    let told = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(told.success());
    let ended = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(ended.code(), Some(0));
    let free = |lease: &serde_json::Value| lease["spec"]["holderIdentity"] == "";
    world.consumer.until(&leases(), Some("kube-bind"), "kube-bind", free).await;

    let mut roles = std::process::Command::new(env!("CARGO_BIN_EXE_konnector"));
    let printed = roles.args(["roles", "--base-only"]).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.starts_with("---\n") && printed.matches("kind: ClusterRole\n").count() == 2, "{printed}");
    let wrong = program(&world, &folder, &["--provider-polling-interval=soon"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("--server-address={}", taken.local_addr().unwrap());
    let wrong = program(&world, &folder, &[&address]).output().unwrap();
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(wrong.status.code() == Some(1) && said.contains("for --server-address: Address already in use"), "{said}");
    assert!(said.contains("choose another address") && said.matches("in use").count() == 1, "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}
