//! What the agent would do, told without doing it.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::Server;
use carrick_syncagent::agent::AgentConfig;
use carrick_syncagent::agent::explain::{Explained, Question, Report, explain};
use serde_json::json;

use crate::stage::{NAMESPACE, Stage};
use crate::world::{User, World};

pub(super) async fn what_would_be_done_is_told_without_doing_it(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let agent = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is placed", team, "bucket", |copy| copy["spec"]["size"] == 1).await?;
    agent.stop().await?;
    let published = stage.published_name("Bucket");
    stage
        .eventually("everything is in line", async || {
            let report = ask(&stage, Question::default()).await?;
            let bucket = object(&report, "bucket")?;
            let plan = bucket.plan.as_ref().context("no plan")?;
            ensure!(report.export_changes.is_empty() && plan.steps.is_empty(), "{report}");
            ensure!(plan.why.starts_with("in line with service Bucket "), "{report}");
            ensure!(bucket.workspace.as_ref() == Some(&team.path), "{report}");
            Ok(())
        })
        .await?;

    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.order(team, "second", json!({ "size": 3 })).await?;
    let report = ask(&stage, Question { published_resource: Some(published), ..Question::default() }).await?;
    let changed = object(&report, "bucket")?.plan.as_ref().context("no plan")?;
    ensure!(changed.why.starts_with("not in line with service Bucket "), "{report}");
    ensure!(changed.steps.iter().any(|step| step.ends_with(": spec.size = 2")), "{report}");
    let second = object(&report, "second")?.plan.as_ref().context("no plan")?;
    ensure!(second.why == "it has no copy yet", "{report}");
    let held = format!("hold kcp Bucket {NAMESPACE}/second with the finalizer syncagent.kcp.io/cleanup");
    ensure!(second.steps.iter().any(|step| step.starts_with(&held)), "{report}");

    // Only what was asked for is told, and what does not exist is said so.
    let question = Question { object: Some(format!("{NAMESPACE}/second")), ..Question::default() };
    let one = ask(&stage, question).await?;
    ensure!(object(&one, "bucket").is_err() && object(&one, "second").is_ok(), "{one}");
    let nowhere = Question { object: Some("default/nothing".to_owned()), ..Question::default() };
    ensure!(ask(&stage, nowhere).await.is_err_and(|error| error.to_string().contains("no object default/nothing")));
    let unknown = Question { published_resource: Some("unheard-of".to_owned()), ..Question::default() };
    ensure!(ask(&stage, unknown).await.is_err_and(|error| error.to_string().contains("there are")));

    // Nothing of it has happened.
    let source = stage.source(team, "second").await?.context("the second bucket is gone")?;
    ensure!(source["metadata"]["finalizers"].is_null(), "{source}");
    ensure!(stage.copy(team, "second").await?.is_none(), "a copy was made");
    let copy = stage.copy(team, "bucket").await?.context("the copy is gone")?;
    ensure!(copy["spec"]["size"] == 1, "{copy}");
    Ok(())
}

async fn ask(stage: &Stage, question: Question) -> anyhow::Result<Report> {
    let config = AgentConfig {
        local: Server::from_kubeconfig_yaml(&stage.world.service_kubeconfig(User::default()))?,
        kcp: Server::from_kubeconfig_yaml(&stage.world.kcp_kubeconfig(User::default(), &stage.provider.path))?,
        namespace: stage.agent_namespace(),
        agent_name: stage.agent_name(),
        slice: stage.export_name().into(),
        selector: stage.selector(),
        disabled: std::collections::BTreeSet::new(),
        leader_election: false,
        metrics_address: None,
        health_address: None,
        dashboard_address: None,
        exit_on_startup_error: true,
        timing: carrick_syncagent::agent::Timing::default(),
    };
    Ok(explain(config, &question).await?)
}

fn object<'a>(report: &'a Report, name: &str) -> anyhow::Result<&'a Explained> {
    let wanted = format!("{NAMESPACE}/{name}");
    let mut objects = report.published_resources.iter().flat_map(|published| &published.objects);
    objects.find(|object| object.object == wanted).with_context(|| format!("{wanted} is not in {report}"))
}
