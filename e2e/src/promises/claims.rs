//! Consumers who take back what they had accepted, at any moment: their orders can still be deleted.

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use serde_json::json;

use super::flows;
use super::lab::Lab;
use super::state::State;
use super::story::Story;
use super::switch::Moment;
use crate::kinds;
use crate::stage::{NAMESPACE, place};

const EVENTS: &[&str] = &["events"];
const EVERYTHING: &[&str] = &["configmaps", "events", "namespaces", "secrets", "logicalclusters"];

/// At every write of a flow with Secrets of either origin the agent dies, or lives on, while the consumer revokes all claims but events and
/// deletes the order.
pub async fn revoked_at_every_write() -> anyhow::Result<String> {
    let mut lab = Lab::open(flows::both_ways()).await?;
    let story = Story::told(&mut lab).await?;
    let mut cases = 0;
    for (index, writes) in story.writes.iter().enumerate() {
        for write in 0..=*writes {
            run(&mut lab, &story, index, write).await.with_context(|| {
                let last = lab.audit.last(15);
                format!("step {:?}, claims revoked at write {write}; last writes {last:#?}", lab.flow.steps[index].name)
            })?;
            cases += 1;
        }
    }
    lab.close().await?;
    Ok(format!("{cases} times revoked"))
}

async fn run(lab: &mut Lab, story: &Story, index: usize, write: u64) -> anyhow::Result<()> {
    lab.play_to(story, index).await?;
    let step = lab.flow.steps[index].clone();
    let team = lab.stage.team_a.clone();
    if write == 0 {
        // Nobody dies: the agent lives through it.
        lab.stage.accept(&team, EVENTS).await?;
        lab.play(&step).await?;
    } else {
        lab.switch.arm(write, if write.is_multiple_of(2) { Moment::Before } else { Moment::After });
        lab.play(&step).await?;
        lab.dies_or(&story.after[index]).await?;
        lab.kill_agent().await?;
        lab.switch.reset();
        lab.stage.accept(&team, EVENTS).await?;
        lab.start_agent()?;
    }
    match lab.delete_source(&team, "one").await {
        Err(error) if error.downcast_ref::<carrick_client::Error>().is_none_or(|e| !e.is_not_found()) => {
            return Err(error);
        }
        _ => {}
    }
    lab.until("the order is gone, with all that the agent can reach", None, is_over)
        .await
        .with_context(|| format!("left: {}", lab.eyes.look().difference(&story.start)))?;
    // The rest is up to the consumer.
    let secrets = kinds::secrets();
    for secret in team.client.list(&secrets, Some(NAMESPACE), &ListOptions::default()).await? {
        if !secret["metadata"]["finalizers"].is_null() {
            let free = json!({ "metadata": { "finalizers": null, "annotations": null } });
            team.client.merge_patch(&secrets, Some(NAMESPACE), place(&secret).1, &free).await?;
        }
    }
    lab.stage.accept(&team, EVERYTHING).await?;
    // An agent tells what was left behind as long as it lives.
    lab.kill_agent().await?;
    lab.start_agent()?;
    lab.clear(&story.start).await?;
    ensure!(lab.agent()?.is_running(), "the agent has ended");
    Ok(())
}

fn is_over(state: &State) -> bool {
    state.at("team-a buckets default/one").is_null()
        && state.copy("team-a", "one").is_null()
        && state.at("service secrets team-a/one-keys").is_null()
        && !state.has("obj-state-team-a")
}
