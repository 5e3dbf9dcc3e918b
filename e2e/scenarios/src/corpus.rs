//! CRDs of public operators, as their authors wrote them, from the offer to the end of an order.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::ensure;
use carrick_e2e_stage::corpus::first_order::Outcome;
use carrick_e2e_stage::corpus::{self, first_order, life};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::Stage;
use carrick_e2e_stage::world::World;
use futures::StreamExt;

pub(super) async fn kinds_of_public_operators_are_published_ordered_changed_and_deleted(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.create_export().await?;
    stage.bind(&stage.team_a).await?;
    let agent = stage.start_agent()?;
    let lives = corpus::lives(&stage).await?;
    life::bound_at_once(&stage, &lives).await?;
    ensure!(agent.is_running(), "the agent has given up");
    let groups: BTreeSet<&str> = lives.iter().filter_map(|life| Some(life.crd.split_once('.')?.1)).collect();
    println!("corpus: {} kinds of {} groups", lives.len(), groups.len());
    life::clear(&stage, &lives).await?;
    agent.stop().await
}

/// How many CRDs are tried at once.
const AT_ONCE: usize = 4;
/// Kinds for which no order is found that their schema allows, because a rule wants a certain name; the files say so.
const WITHOUT: [&str; 2] = ["baselineadminnetworkpolicies.policy.networking.k8s.io", "drivers.csi.ceph.io"];

pub(super) async fn the_first_orders_that_init_writes_are_valid(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let folder = Scratch::new()?;
    let corpus = corpus::chosen()?;
    let tried = futures::stream::iter(&corpus.crds)
        .map(async |(name, crd)| (name, first_order::play(&stage, crd, folder.path()).await));
    let tried: Vec<_> = tried.buffer_unordered(AT_ONCE).collect().await;
    let (mut taken, mut no_crd, mut failed) = (0, Vec::new(), Vec::new());
    for (name, outcome) in tried {
        match outcome {
            Ok(Outcome::Taken) => taken += 1,
            Ok(Outcome::NoCrd) => no_crd.push(name),
            Ok(Outcome::RefusedAsSaid) if WITHOUT.contains(&name.as_str()) => {}
            Ok(Outcome::RefusedAsSaid) => failed.push(format!("{name}: no valid order was found")),
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
    }
    eprintln!("corpus: {taken} first orders are valid; CRDs that are not valid: {no_crd:?}");
    ensure!(failed.is_empty(), "{} of {} kinds failed:\n{}", failed.len(), corpus.crds.len(), failed.join("\n"));
    Ok(())
}
