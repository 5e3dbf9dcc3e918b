//! The agent crashes, restarts and sleeps through things.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::Agent;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, changes, condition, shown};
use carrick_e2e_stage::world::World;
use carrick_syncagent::api;
use serde_json::{Value, json};

pub(super) async fn a_crash_between_any_two_steps_of_the_user_is_made_good(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let (a, b) = (&stage.team_a, &stage.team_b);
    let mut agent = stage.start_agent()?;
    // The first order waits until the API is there; from then on, nobody waits for anybody.
    stage.order(a, "bucket", json!({ "region": "eu", "size": 1 })).await?;
    again(&stage, &mut agent)?;
    stage.order(b, "bucket", json!({ "size": 7 })).await?;
    again(&stage, &mut agent)?;
    stage.reorder(a, "bucket", json!({ "size": 2 })).await?;
    again(&stage, &mut agent)?;
    stage.reorder(a, "bucket", json!({ "owner": "me", "region": null })).await?;
    again(&stage, &mut agent)?;
    stage.order(a, "short-lived", json!({ "size": 1 })).await?;
    again(&stage, &mut agent)?;
    stage.reorder(a, "bucket", json!({ "size": 1 })).await?;
    again(&stage, &mut agent)?;
    stage.cancel(a, "short-lived").await?;
    again(&stage, &mut agent)?;
    let expected = json!({ "owner": "me", "size": 1 });
    let copy = stage.copy_is("the last word arrives", a, "bucket", |copy| copy["spec"] == expected).await?;
    stage.copy_is("team-b is served", b, "bucket", |copy| copy["spec"] == json!({ "size": 7 })).await?;
    stage.all_gone(a, "short-lived").await?;

    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    again(&stage, &mut agent)?;
    stage.reorder(a, "bucket", json!({ "size": 3 })).await?;
    again(&stage, &mut agent)?;
    stage.copy_is("the change arrives", a, "bucket", |copy| copy["spec"]["size"] == 3).await?;
    stage.source_is("the status returns", a, "bucket", |s| s["status"] == json!({ "url": "here" })).await?;

    stage.cancel(a, "bucket").await?;
    again(&stage, &mut agent)?;
    stage.cancel(b, "bucket").await?;
    again(&stage, &mut agent)?;
    stage.all_gone(a, "bucket").await?;
    stage.all_gone(b, "bucket").await?;
    agent.stop().await
}

/// Crashes the agent, wherever it is, and starts another.
fn again(stage: &Stage, agent: &mut Agent) -> anyhow::Result<()> {
    std::mem::replace(agent, stage.start_agent()?).crash();
    Ok(())
}

/// What can be seen from outside while an order is placed, changed and removed.
#[derive(Debug, Clone, Copy)]
enum Sight {
    Held,
    Placed,
    Remembered,
    Changed,
    Reported,
    Removing,
    Released,
}

impl Sight {
    async fn is_there(self, stage: &Stage, name: &str) -> anyhow::Result<bool> {
        let team = &stage.team_a;
        let (source, copy) = (stage.source(team, name).await?, stage.copy(team, name).await?);
        let held = |source: &Value| source["metadata"]["finalizers"] == json!([api::FINALIZER]);
        Ok(match self {
            Self::Held => source.is_some_and(|source| held(&source)),
            Self::Placed => copy.is_some(),
            Self::Remembered => stage.remembered_of(team, name).await?.is_some(),
            Self::Changed => copy.is_some_and(|copy| copy["spec"]["size"] == 2),
            Self::Reported => source.is_some_and(|source| source["status"]["url"] == "here"),
            Self::Removing => copy.is_none(),
            Self::Released => source.is_none(),
        })
    }

    /// Lets the agent work until this can be seen, then crashes it at once and starts another.
    async fn crash(self, stage: &Stage, agent: &mut Agent, name: &str) -> anyhow::Result<()> {
        stage
            .eventually(&format!("{name} is {self:?}"), async || {
                ensure!(self.is_there(stage, name).await?, "it is not");
                Ok(())
            })
            .await?;
        again(stage, agent)
    }
}

pub(super) async fn a_crash_at_any_visible_step_of_the_agent_is_made_good(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let mut agent = stage.start_agent()?;
    for sight in [
        Sight::Held,
        Sight::Placed,
        Sight::Remembered,
        Sight::Changed,
        Sight::Reported,
        Sight::Removing,
        Sight::Released,
    ] {
        let name = format!("bucket-{sight:?}").to_lowercase();
        stage.order(team, &name, json!({ "size": 1 })).await?;
        if matches!(sight, Sight::Held | Sight::Placed | Sight::Remembered) {
            sight.crash(&stage, &mut agent, &name).await?;
        }
        stage.copy_is("the copy is there", team, &name, |copy| copy["spec"]["size"] == 1).await?;

        stage.reorder(team, &name, json!({ "size": 2 })).await?;
        if let Sight::Changed = sight {
            sight.crash(&stage, &mut agent, &name).await?;
            // Back to what it was while the agent may not have noted the change yet.
            stage.reorder(team, &name, json!({ "size": 1 })).await?;
            stage.copy_is("the way back arrives", team, &name, |copy| copy["spec"]["size"] == 1).await?;
            stage.reorder(team, &name, json!({ "size": 2 })).await?;
        }
        let copy = stage.copy_is("the change arrives", team, &name, |copy| copy["spec"]["size"] == 2).await?;

        stage.operator_reports(&copy, json!({ "url": "here" })).await?;
        if let Sight::Reported = sight {
            sight.crash(&stage, &mut agent, &name).await?;
        }
        stage.source_is("the status returns", team, &name, |s| s["status"]["url"] == "here").await?;

        stage.cancel(team, &name).await?;
        if matches!(sight, Sight::Removing | Sight::Released) {
            sight.crash(&stage, &mut agent, &name).await?;
        }
        stage.all_gone(team, &name).await?;
    }
    agent.stop().await
}

pub(super) async fn what_happens_while_the_agent_is_down_is_caught_up_with(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let agent = stage.start_agent()?;
    for name in ["changed", "reported", "cancelled", "lost"] {
        stage.order(team, name, json!({ "size": 1 })).await?;
        stage.copy_is("the copy is there", team, name, |_| true).await?;
    }
    stage.at_rest().await?;
    agent.stop().await?;

    stage.reorder(team, "changed", json!({ "size": 2 })).await?;
    let reported = stage.copy(team, "reported").await?.context("the copy is gone")?;
    stage.operator_reports(&reported, json!({ "url": "here" })).await?;
    stage.cancel(team, "cancelled").await?;
    stage.order(team, "new", json!({ "size": 5 })).await?;
    let lost = stage.copy(team, "lost").await?.context("the copy is gone")?;
    let (namespace, name) = carrick_e2e_stage::stage::place(&lost);
    stage.service.delete(&stage.buckets(), Some(namespace), name, &carrick_client::DeleteOptions::default()).await?;

    let agent = stage.start_agent()?;
    stage.copy_is("the change arrives", team, "changed", |copy| copy["spec"]["size"] == 2).await?;
    stage.source_is("the status returns", team, "reported", |s| s["status"]["url"] == "here").await?;
    stage.all_gone(team, "cancelled").await?;
    stage.copy_is("the new order is placed", team, "new", |copy| copy["spec"]["size"] == 5).await?;
    let back = stage.copy_is("the lost copy is back", team, "lost", |copy| copy["spec"]["size"] == 1).await?;
    ensure!(back["metadata"]["uid"] != lost["metadata"]["uid"], "{}", shown(&back));
    agent.stop().await
}

pub(super) async fn a_restart_at_rest_writes_nothing(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    for team in [&stage.team_a, &stage.team_b] {
        for name in ["one", "two", "three"] {
            stage.order(team, name, json!({ "region": "eu", "size": 1 })).await?;
            let copy = stage.copy_is("the copy is there", team, name, |_| true).await?;
            stage.operator_reports(&copy, json!({ "url": name, "count": 3 })).await?;
            stage.source_is("the status returns", team, name, |s| s["status"]["url"] == name).await?;
        }
    }
    // That no object fails is told a second or more after the last one was served; on a slow machine that is later than rest.
    let (kind, name) = (kinds::published_resources(), stage.published_name("Bucket"));
    let told = |published: &Value| condition(published, "ObjectsSynced")["status"] == "True";
    stage.object("it is told that no object fails", (&stage.service, &kind, None, &name), told).await?;
    let before = stage.at_rest().await?;
    agent.stop().await?;
    let stopped = stage.at_rest().await?;
    ensure!(before == stopped, "stopping wrote: {:?}", changes(&before, &stopped));

    let agent = stage.start_agent()?;
    // A new order that is served shows that the agent is at work again.
    for team in [&stage.team_a, &stage.team_b] {
        stage.order(team, "probe", json!({ "size": 1 })).await?;
        let copy = stage.copy_is("the probe is placed", team, "probe", |_| true).await?;
        stage.operator_reports(&copy, json!({ "url": "probe" })).await?;
        stage.source_is("the probe's status returns", team, "probe", |s| s["status"]["url"] == "probe").await?;
        stage.cancel(team, "probe").await?;
        stage.all_gone(team, "probe").await?;
    }
    let mut after = stage.at_rest().await?;
    // Of the probes nothing is left but the note that they have ended.
    let is_probe = |name: &str| name.contains("/probe") || name.contains("/ended-orders-");
    after.retain(|name, _| before.contains_key(name) || !is_probe(name));
    ensure!(before == after, "the restart wrote: {:?}", changes(&before, &after));
    agent.stop().await
}
