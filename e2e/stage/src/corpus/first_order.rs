//! The first order that `carrick init` writes for a kind, sent to a server as it is.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, ensure};
use carrick_client::DeleteOptions;
use carrick_json::yaml;
use tokio::process::Command;

use super::files::Text;
use super::is_refusal;
use super::kind::CustomKind;
use crate::stage::{NAMESPACE, Stage, place};
use crate::{binary, kinds};

/// How it went.
pub enum Outcome {
    /// The server took it.
    Taken,
    /// The server refused it, and so does the comment in its file.
    RefusedAsSaid,
    /// The server refuses the CRD itself.
    NoCrd,
}

/// Runs `carrick init` for a CRD in a folder of its own, installs the CRD and sends the order. Nothing of it is left at the end.
pub async fn play(stage: &Stage, crd: &Text, folder: &Path) -> anyhow::Result<Outcome> {
    let kind = CustomKind::of(&crd.value);
    let name = format!("{}.{}", kind.plural, kind.group);
    if let Err(error) = stage.service.create(&kinds::crds(), None, &kind.crd).await {
        ensure!(is_refusal(&error), "the CRD cannot be created: {error}");
        return Ok(Outcome::NoCrd);
    }
    let text = written(crd, &folder.join(&name)).await?;
    let order = yaml::value(&text)?;
    let version = order["apiVersion"].as_str().and_then(|api| api.split_once('/')).context("it has no version")?.1;
    let resource = kind.resource(version);
    // The consumer's API may have another group.
    let mut order = order.clone();
    order["apiVersion"] = format!("{}/{version}", kind.group).into();
    let answer = stage
        .eventually("the order is answered", async || {
            match stage.service.create(&resource, Some(NAMESPACE), &order).await {
                Ok(_) => Ok(None),
                Err(error) if is_refusal(&error) => Ok(Some(error.to_string())),
                Err(error) => Err(error.into()),
            }
        })
        .await?;
    if answer.is_none() {
        stage.service.delete(&resource, Some(NAMESPACE), place(&order).1, &DeleteOptions::default()).await?;
    }
    stage.service.delete(&kinds::crds(), None, &name, &DeleteOptions::default()).await?;
    match (answer, text.contains("refuses it as it is")) {
        (None, false) => Ok(Outcome::Taken),
        (Some(_), true) => Ok(Outcome::RefusedAsSaid),
        (Some(why), false) => anyhow::bail!("the server refuses {order}: {why}"),
        (None, true) => anyhow::bail!("the file says that it is refused, and it is not:\n{text}"),
    }
}

/// The file with the order.
async fn written(crd: &Text, folder: &Path) -> anyhow::Result<String> {
    let mut init = Command::new(binary::carrick().await?)
        .args(["init", "--crd", "-", "--workspace", "root:providers", "--out"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = init.stdin.take().context("no standard input")?;
    let (sent, output) = tokio::join!(
        async move { tokio::io::AsyncWriteExt::write_all(&mut stdin, crd.content.as_bytes()).await },
        init.wait_with_output()
    );
    let output = output?;
    ensure!(output.status.success(), "carrick init: {}", String::from_utf8_lossy(&output.stderr));
    sent?;
    let file = folder.join("consumer-workspace/2-order.yaml");
    std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}
