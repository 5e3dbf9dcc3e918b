//! Rights that are missing: whatever lacks one says who grants it, and with which line.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use carrick_client::Resource;
use serde_json::{Value, json};

use super::faults::sheriff;
use super::process::program;
use super::world::{World, has, message, object};
use crate::clusters::{Cluster, KONNECTOR, Provider, bindings, bundles, secret, secrets, sheriffs};

const LINE: &str = "konnector roles | kubectl apply -f -";

fn cluster_roles() -> Resource {
    Resource::cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles")
}

/// Takes rights out of a role: what its rules become.
async fn change_rules(cluster: &Cluster, role: &str, change: impl Fn(&mut Vec<Value>)) {
    let mut found = cluster.get(&cluster_roles(), None, role).await.unwrap();
    change(found["rules"].as_array_mut().unwrap());
    let rules = json!([{"op": "replace", "path": "/rules", "value": found["rules"]}]);
    cluster.client.json_patch(&cluster_roles(), None, role, &rules).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_may_not_be_written_name_the_line_that_grants_it_and_once() {
    let (mut world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    world.revoke("sheriffs").await;
    for name in ["wyatt", "doc"] {
        world.consumer.apply(&sheriffs(), &sheriff(name)).await;
    }
    let both = |it: &Value| {
        let said = message(it, "ObjectsSynced");
        has(it, "ObjectsSynced", "False", "ObjectsFailing") && said.contains("wyatt") && said.contains("doc")
    };
    let binding = world.consumer.until(&bindings(), None, "sheriffs", both).await;
    let said = message(&binding, "ObjectsSynced");
    assert!(said.contains(KONNECTOR) && said.contains("cannot patch resource"), "{said}");
    assert_eq!(said.matches(LINE).count(), 1, "{said}");
    // The line does what it says.
    world.grant();
    provider.cluster.until(&sheriffs(), None, "c-1-wyatt", |copy| copy["spec"]["intent"] == "x").await;
    provider.cluster.until(&sheriffs(), None, "c-1-doc", |copy| copy["spec"]["intent"] == "x").await;
    world.consumer.until(&bindings(), None, "sheriffs", |it| message(it, "ObjectsSynced").is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_may_not_be_read_names_the_line_that_grants_it() {
    let (mut world, provider) = (World::start().await, Provider::start("c-1").await);
    world.stop_granting().await;
    provider.export("sheriffs").await;
    world.consumer.apply(&secrets(), &secret("elsewhere", "provider", &provider.kubeconfig())).await;
    let mut binding = object("APIServiceBinding", "sheriffs", "provider");
    binding["spec"]["kubeconfigSecretRef"]["namespace"] = json!("elsewhere");
    world.consumer.apply(&bindings(), &binding).await;
    let binding = world.binding("sheriffs", "SecretValid", "False", "KubeconfigSecretInvalid").await;
    let said = message(&binding, "SecretValid");
    assert!(said.contains("resource \"secrets\"") && said.ends_with(LINE), "{said}");
    world.grant();
    world.ready("sheriffs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_may_create_no_binding_names_the_line_that_grants_it() {
    let (mut world, provider) = (World::start().await, Provider::start("c-1").await);
    world.stop_granting().await;
    change_rules(&world.consumer, "kube-bind-konnector", |rules| {
        rules.retain(|rule| !rule["verbs"].to_string().contains("delete"));
    })
    .await;
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bundle("all", "provider").await;
    let fails = |it: &Value| has(it, "Synced", "False", "SyncErrors");
    let bundle = world.consumer.until(&bundles(), None, "all", fails).await;
    let said = message(&bundle, "Synced");
    assert!(said.contains("cannot create resource \"apiservicebindings\"") && said.ends_with(LINE), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_at_the_provider_names_who_grants_it_there() {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    // The copies' kind, which a role of the export grants.
    provider.cluster.delete(&cluster_roles(), None, "kube-binder-exports").await;
    let sheriff =
        json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "wyatt"}, "spec": {"intent": "x"}});
    world.consumer.apply(&sheriffs(), &sheriff).await;
    let binding = world.binding("sheriffs", "ObjectsSynced", "False", "ObjectsFailing").await;
    let said = message(&binding, "ObjectsSynced");
    assert!(said.contains("the provider's kube-bind-backend grants it") && !said.contains("konnector roles"), "{said}");
    // What every contract has, which one line grants again.
    change_rules(&provider.cluster, "kube-binder", |rules| {
        rules.retain(|rule| !rule["resources"].to_string().contains("clusterbindings/status"));
    })
    .await;
    // What else its status says makes the konnector write it.
    let status = json!({"status": {"konnectorVersion": "v0.0.1"}});
    provider
        .cluster
        .client
        .merge_patch_status(&crate::clusters::cluster_bindings(), Some("c-1"), "cluster", &status)
        .await
        .unwrap();
    let binding = world.binding("sheriffs", "Heartbeating", "False", "ClusterBindingUpdateFailed").await;
    let said = message(&binding, "Heartbeating");
    let line = "kubectl create rolebinding kube-binder -n c-1 --clusterrole=kube-binder --serviceaccount=contracts:kube-binder";
    assert!(said.ends_with(line), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_without_any_right_logs_the_line_that_grants_all_it_needs() {
    let world = World::without_konnector().await;
    world.consumer.delete(&cluster_roles(), None, "kube-bind-konnector").await;
    let folder = std::env::temp_dir().join(format!("konnector-rights-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let args = ["--lease-namespace=elsewhere", "--server-address=0"];
    let mut child = program(&world, &folder, &args).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // With the namespace of this very Lease, because roles are printed for that.
    let line = "konnector roles --lease-namespace elsewhere | kubectl apply -f -";
    let says = move |said: &String| said.contains("could not be installed") && said.contains(line);
    let found = tokio::task::spawn_blocking(move || lines.map_while(Result::ok).find(says));
    let found = tokio::time::timeout(std::time::Duration::from_secs(30), found).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(found.unwrap().unwrap().is_some(), "the log does not name the line");
    std::fs::remove_dir_all(folder).unwrap();
}
