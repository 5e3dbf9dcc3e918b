//! `carrick dev` on a service cluster that was there before.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::{Stage, place};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{binary, fixtures, kinds};
use serde_json::{Value, json};
use tokio::process::Command;

/// How long it may take to clean up; without a controller that removes namespaces, they are waited for in vain.
const GRACE: Duration = Duration::from_mins(1);

pub(super) async fn a_cluster_lent_to_it_gets_its_files_and_is_left_as_it_was(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let (group, name) = (&stage.group, stage.published_name("Bucket"));
    let folder = Scratch::new()?;
    let published = json!({
        "apiVersion": "syncagent.kcp.io/v1alpha1", "kind": "PublishedResource", "metadata": { "name": name },
        "spec": { "resource": { "apiGroup": group, "kind": "Bucket", "versions": ["v1"] } },
    });
    let order = |region: &str| {
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Bucket",
            "metadata": { "name": "bucket" }, "spec": { "region": region },
        })
    };
    let write = |name: &str, object: &Value| folder.write(name, &object.to_string());
    let crd = write("crd.json", &fixtures::crd(group, "Bucket"))?;
    let (pr, sample) = (write("pr.json", &published)?, write("order.json", &order("eu"))?);
    let kubeconfig = folder.write("service.kubeconfig", &stage.world.service_kubeconfig(User::Admin))?;
    let log = folder.path().join("log");
    let mut dev = Command::new(binary::carrick().await?)
        .arg("dev")
        .arg("--crd")
        .arg(crd)
        .arg("--published-resource")
        .arg(pr)
        .arg("--object")
        .arg(&sample)
        // Other scenarios have agents on the same cluster, each with a selector of its own.
        .arg("--beside-other-agents")
        .arg("--service-kubeconfig")
        .arg(kubeconfig)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&log)?)
        .stderr(std::fs::File::create(folder.path().join("errors"))?)
        .kill_on_drop(true)
        .spawn()
        .context("cannot start carrick dev")?;

    let copies = async || stage.service.list(&stage.buckets(), None, &ListOptions::default()).await;
    let copy_is = async |region: &str| {
        let look = async || {
            let copies = copies().await?;
            let copy = copies.first().filter(|copy| copy["spec"]["region"] == region);
            copy.cloned().with_context(|| format!("copies: {copies:?}"))
        };
        stage.eventually(&format!("the copy says {region}"), look).await
    };
    let told = async |text: &str| {
        let look = async || {
            let log = std::fs::read_to_string(&log)?;
            ensure!(log.contains(text), "{log}");
            Ok(())
        };
        stage.eventually(&format!("it says {text:?}"), look).await
    };
    copy_is("eu").await?;
    std::fs::write(&sample, order("us").to_string())?;
    let copy = copy_is("us").await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    told("copy generation 2 → status is back").await?;
    std::fs::write(&sample, json!({ "kind": "Bucket" }).to_string())?;
    told("order.json: object 1 has no apiVersion").await?;

    let id = dev.id().context("it has ended by itself")?;
    let sent = Command::new("kill").args(["-INT", &id.to_string()]).status().await?;
    ensure!(sent.success(), "cannot send SIGINT: {sent}");
    let ended = tokio::time::timeout(GRACE, dev.wait()).await.context("it does not end")??;
    let words = std::fs::read_to_string(&log)? + &std::fs::read_to_string(folder.path().join("errors"))?;
    ensure!(ended.success() && words.contains("Nothing is left behind."), "{ended}: {words}");
    stage.gone("the PublishedResource is gone", (&stage.service, &kinds::published_resources(), None, &name)).await?;
    let crd = format!("buckets.{group}");
    stage.gone("the CRD is gone", (&stage.service, &kinds::crds(), None, &crd)).await?;
    let (namespace, _) = place(&copy);
    let kept = stage.service.get(&kinds::namespaces(), None, namespace).await?;
    let kept = kept.filter(|namespace| namespace["metadata"]["deletionTimestamp"].is_null());
    ensure!(kept.is_none(), "the namespace of copies is left: {kept:?}");
    Ok(())
}
