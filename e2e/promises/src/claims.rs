//! Consumers who take back what they had accepted, at any moment: their orders can still be deleted.

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, place};
use carrick_e2e_stage::world::ADMIN_AGENT;
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::json;

use super::flows;
use super::kills::sample;
use super::lab::Lab;
use super::state::State;
use super::story::Story;
use super::switch::Moment;

const EVENTS: &[&str] = &["events"];
const EVERYTHING: &[&str] = &["configmaps", "events", "namespaces", "secrets", "logicalclusters"];

/// At every write of a flow with Secrets of either origin the agent dies, or lives on, while the consumer revokes all claims but events and
/// deletes the order.
pub async fn revoked_at_every_write() -> anyhow::Result<String> {
    let mut lab = Lab::open(flows::both_ways()).await?;
    let story = Story::told(&mut lab).await?;
    let (mut cases, mut seen) = (0, 0);
    for (index, writes) in story.writes.iter().enumerate() {
        for write in 0..=*writes {
            seen += 1;
            if !sample().takes(seen) {
                continue;
            }
            run(&mut lab, &story, index, write).await.with_context(|| {
                let last = lab.audit.last(15);
                format!("step {:?}, claims revoked at write {write}; last writes {last:#?}", lab.flow.steps[index].name)
            })?;
            cases += 1;
        }
    }
    lab.close().await?;
    Ok(format!("{cases} times revoked; {}", sample()))
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

/// kcp refuses for a while to delete a related object although the binding accepts the claim for it, as it does when a policy is being
/// replaced or its cache lags: the order waits, and nothing is left behind.
pub async fn refused_while_accepted() -> anyhow::Result<String> {
    let mut lab = Lab::open(flows::secret_up()).await?;
    let story = Story::told(&mut lab).await?;
    let last = lab.flow.steps.len() - 1;
    lab.play_to(&story, last).await?;
    let faults = lab.world.kcp_plane().faults().clone();
    let deletes = Match::any().user(ADMIN_AGENT).verbs(&["delete"]).filter(|ask| ask.resource == "secrets");
    let rule = faults.add(Rule::new(deletes, Effect::refuse(403)));
    lab.delete_source(&lab.stage.team_a, "one").await?;
    let order = "team-a buckets default/one";
    // Five attempts take longer than the grace period.
    let tried = |state: &State| faults.hits(rule) >= 5 || state.at(order).is_null();
    lab.until("the deletion was refused again and again", None, tried).await?;
    ensure!(!lab.eyes.look().at(order).is_null(), "the order is gone, and the Secret was left behind");
    faults.remove(rule);
    let expected = story.after[last].without_memories();
    lab.until("all is as it should be", None, |state| state.without_memories() == expected)
        .await
        .with_context(|| format!("left: {}", lab.eyes.look().without_memories().difference(&expected)))?;
    lab.close().await?;
    Ok("refused five times, and nothing left behind".to_owned())
}

fn is_over(state: &State) -> bool {
    state.at("team-a buckets default/one").is_null()
        && state.copy("team-a", "one").is_null()
        && state.at("service secrets team-a/one-keys").is_null()
        && !state.has("obj-state-team-a")
}
