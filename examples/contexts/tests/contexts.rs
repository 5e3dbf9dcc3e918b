//! The example in memory, and on two embedded planes that are the contexts of one kubeconfig.

use std::time::Duration;

use anyhow::Context as _;
use carrick_multicluster::Fleet;
use carrick_multicluster::providers::KubeconfigFiles;
use carrick_multicluster::testing::FakeFleet;
use carrick_plane::{Config, Mode, Plane};
use example_contexts::{NAME, controller};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

fn namespace() -> anyhow::Result<Namespace> {
    let labels = json!({"example.com/cluster-info": "true"});
    Ok(serde_json::from_value(json!({"metadata": {"name": "shop", "labels": labels}}))?)
}

fn run(fleet: impl Into<Fleet>) -> tokio::task::JoinHandle<()> {
    let reports = controller(&fleet.into());
    tokio::spawn(reports.for_each(|report| async move {
        if let Err(error) = report {
            eprintln!("{error}");
        }
    }))
}

/// Waits until something is there.
async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> anyhow::Result<T> {
    let found = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), found).await.with_context(|| format!("waited in vain for {what}"))
}

#[tokio::test]
async fn every_cluster_tells_its_name_in_memory() -> anyhow::Result<()> {
    let fleet = FakeFleet::new(["eu", "us"])?;
    let controller = run(fleet.clone());
    for cluster in ["eu", "us"] {
        fleet.put(cluster, &namespace()?)?;
        let map = async || fleet.get::<ConfigMap>(cluster, Some("shop"), NAME);
        let found = eventually("the ConfigMap", map).await?;
        assert_eq!(found.data.unwrap_or_default()["cluster"], cluster);
    }
    assert!(fleet.delete::<ConfigMap>("eu", Some("shop"), NAME));
    eventually("the ConfigMap to come back", async || fleet.get::<ConfigMap>("eu", Some("shop"), NAME)).await?;
    controller.abort();
    Ok(())
}

#[tokio::test]
async fn every_context_of_a_kubeconfig_tells_its_name() -> anyhow::Result<()> {
    let mut planes = Vec::new();
    let mut both = Kubeconfig::default();
    for context in ["eu", "us"] {
        let plane = Plane::start(Config::new(Mode::Kube)).await?;
        let mut kubeconfig = Kubeconfig::from_yaml(&plane.kubeconfig("admin", None)?)?;
        let inner = kubeconfig.contexts[0].context.as_mut().context("the plane's kubeconfig has no context")?;
        context.clone_into(&mut inner.cluster);
        inner.user = Some(context.to_owned());
        context.clone_into(&mut kubeconfig.contexts[0].name);
        context.clone_into(&mut kubeconfig.clusters[0].name);
        context.clone_into(&mut kubeconfig.auth_infos[0].name);
        kubeconfig.current_context = Some(context.to_owned());
        both = both.merge(kubeconfig)?;
        planes.push(plane);
    }
    let path = std::env::temp_dir().join(format!("example-contexts-{}.kubeconfig", std::process::id()));
    std::fs::write(&path, serde_json::to_string(&both)?)?;
    let clusters = KubeconfigFiles::new([path.clone()]).names(|_, context| Some(context.to_owned()));
    let controller = run(clusters);
    for context in ["eu", "us"] {
        let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
        let client = Client::try_from(kube::Config::from_custom_kubeconfig(both.clone(), &options).await?)?;
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace()?).await?;
        let maps = Api::<ConfigMap>::namespaced(client, "shop");
        let first = eventually("the ConfigMap", async || maps.get_opt(NAME).await.ok().flatten()).await?;
        assert_eq!(first.data.clone().unwrap_or_default()["cluster"], context);
        maps.delete(NAME, &DeleteParams::default()).await?;
        let is_new = |map: &ConfigMap| map.uid() != first.uid();
        eventually("another one", async || maps.get_opt(NAME).await.ok().flatten().filter(is_new)).await?;
    }
    controller.abort();
    std::fs::remove_file(path)?;
    Ok(())
}
