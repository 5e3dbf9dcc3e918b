//! CRDs of public operators, as their authors wrote them, from the offer to the end of an order.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::ensure;

use crate::corpus::{self, life};
use crate::stage::Stage;
use crate::world::World;

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
