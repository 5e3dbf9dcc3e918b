//! The agent's own page: what it shows, and what it must not.

use std::sync::Arc;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::related::{credentials, encoded, secret};
use crate::agent::{Agent, Setup};
use crate::stage::{NAMESPACE, Stage, place};
use crate::world::World;
use crate::{fixtures, kinds};

pub(super) async fn it_shows_counts_and_journeys_and_no_content(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "related": [credentials()] })).await?;
    stage.bind(&stage.team_a).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "owner": "planted-in-the-spec" })).await?;
    let copy = stage.copy_is("the copy is placed", team, "bucket", |_| true).await?;
    let (namespace, copy_name) = place(&copy);
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(copy_name, "planted-password")).await?;
    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), "bucket-credentials");
    stage.object("the Secret has arrived", at, |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "planted-in-the-status" })).await?;

    let name = stage.published_name("Bucket");
    stage
        .eventually("the page knows the whole journey", async || {
            let now = get(&agent, "/state.json").await?;
            ensure!(now["agent"]["ready"] == true && now["agent"]["export"] == stage.export_name(), "{now:#}");
            let published = now["publishedResources"].as_array().context("nothing is published")?;
            let bucket = published.iter().find(|it| it["name"] == name.as_str()).context("the Bucket is missing")?;
            ensure!(bucket["sources"] == 1.0 && bucket["copies"] == 1.0, "{bucket:#}");
            let workspaces = json!([{ "cluster": team.cluster, "path": team.path, "objects": 1 }]);
            ensure!(now["workspaces"] == workspaces, "{now:#}");
            let found = get(&agent, "/find.json?q=default%2Fbuck").await?;
            let journey = &found["found"][0];
            ensure!(journey["object"] == "default/bucket" && journey["held"] == true, "{found:#}");
            ensure!(journey["copy"]["place"] == format!("{namespace}/{copy_name}"), "{found:#}");
            ensure!(
                journey["hasStatus"] == true && journey["related"].as_array().is_some_and(|it| it.len() == 1),
                "{found:#}"
            );
            Ok(())
        })
        .await?;
    ensure!(get(&agent, "/find.json?q=nothing-like-it").await?["found"] == json!([]), "something was found");

    let everything =
        [agent.dashboard("/").await?, agent.dashboard("/state.json").await?, agent.dashboard("/find.json?q=").await?];
    ensure!(everything[0].contains("text/html") && everything[0].contains("<title>api-syncagent</title>"), "no page");
    for planted in ["planted-password", &encoded("planted-password"), "planted-in-the-spec", "planted-in-the-status"] {
        ensure!(!everything.iter().any(|page| page.contains(planted)), "{planted} is shown");
    }
    ensure!(agent.dashboard("/metrics").await?.starts_with("HTTP/1.1 404"), "only its own pages are served");
    agent.stop().await
}

async fn get(agent: &Agent, path: &str) -> anyhow::Result<Value> {
    let answer = agent.dashboard(path).await?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    serde_json::from_str(body).with_context(|| format!("no JSON: {answer}"))
}
