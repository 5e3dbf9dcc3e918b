//! Two agents that need the same object, stopped and started in any order: it goes when both are done with it.

use anyhow::{Context, ensure};
use carrick_e2e_stage::seed::{Choices, replay, seeds};
use carrick_e2e_stage::two::{Two, deed};
use carrick_e2e_stage::world::EmbeddedWorld;
use carrick_plane::{Key, Kind};
use futures::StreamExt;
use std::sync::Arc;

/// How many sequences unless more are asked for.
const SEQUENCES: u64 = 3;

/// A Gadget is the primary of agent A and a related object of agent B. Either of them is down now and then, while the Gadget and the order
/// that names it are deleted.
pub async fn share_an_object() -> anyhow::Result<String> {
    let seeds = seeds(SEQUENCES);
    let mut told = Vec::new();
    for seed in &seeds {
        told.push(sequence(*seed).await.with_context(|| replay(*seed))?);
    }
    Ok(format!("{told:?}"))
}

async fn sequence(seed: u64) -> anyhow::Result<String> {
    let world = Arc::new(EmbeddedWorld::start().await?);
    let two = Two::set(world.clone()).await?;
    let mut agents = [Some(two.a.start_agent()?), Some(two.b.start_agent()?)];
    two.accept().await?;
    two.order("gadget").await?;

    // Whoever sees the Gadget go looks whether a copy of it is left.
    let (kcp, service) = (world.kcp_plane().store().clone(), world.service_plane().store().clone());
    let kind = Kind::new(&two.gadgets.group, &two.gadgets.plural);
    let mut changes = kcp.watch(kcp.revision())?;
    let places = [two.a_namespace(), two.team().cluster.clone()];
    let witness = tokio::spawn(async move {
        while let Some(change) = changes.next().await {
            if change.key.kind.resource == kind.resource && change.after.is_none() {
                let left = places.iter().filter(|namespace| service.has(&Key::new(&kind, "", namespace, "gadget")));
                return left.cloned().collect::<Vec<_>>();
            }
        }
        Vec::new()
    });

    let mut choices = Choices::of(seed);
    let mut deeds = vec!["delete", "cancel"];
    let mut story = Vec::new();
    while !deeds.is_empty() {
        let number = usize::try_from(choices.below(4))?;
        if let Some(agent) = agents.get_mut(number) {
            story.push(format!("{} {}", if agent.is_some() { "stop" } else { "start" }, ["A", "B"][number]));
            *agent = match agent.take() {
                Some(agent) => {
                    agent.stop().await?;
                    None
                }
                None => Some(if number == 0 { two.a.start_agent()? } else { two.b.start_agent()? }),
            };
        } else {
            let chosen = deeds.remove(usize::try_from(choices.below(deeds.len() as u64))?);
            story.push(chosen.to_owned());
            deed(&two, chosen).await?;
        }
        if choices.below(2) == 0 {
            two.b.at_rest().await?;
        }
    }
    let told = story.join(", ");
    let start = |agent: Option<_>, stage: &carrick_e2e_stage::stage::Stage| match agent {
        Some(agent) => Ok(agent),
        None => stage.start_agent(),
    };
    let [a, b] = agents;
    let (a, b) = (start(a, &two.a)?, start(b, &two.b)?);
    two.ended("gadget").await.with_context(|| told.clone())?;
    let left = tokio::time::timeout(std::time::Duration::from_mins(1), witness).await.context("nobody saw it go")??;
    ensure!(left.is_empty(), "{told}: the Gadget went while copies were left in {left:?}");
    a.stop().await?;
    b.stop().await?;
    Ok(told)
}
