//! Servers that show nothing of what is there: no copy is deleted because its source cannot be seen.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::json;

use super::deed::Deed::{Change, Order};
use super::deed::Team;
use super::flows;
use super::lab::Lab;
use super::shards::{copies, sizes};
use super::storms::begins_watch;
use crate::world::ADMIN_AGENT;

/// For how long nothing can be seen.
const BLIND: Duration = Duration::from_millis(800);
/// Far enough back that nothing was there.
const LONG_AGO: u64 = 1_000_000;

/// kcp answers everything with an error, or lists with nothing in them, to an agent that runs and to one that starts.
pub async fn out_of_sight() -> anyhow::Result<String> {
    let mut lab = Lab::open(flows::plain()).await?;
    for team in Team::BOTH {
        Order(team, "one", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    }
    lab.until("both orders are placed", None, |state| sizes(state) == [1, 1]).await?;
    lab.rest().await?;
    let before = copies(&lab);
    let agent = || Match::any().user(ADMIN_AGENT);
    let lists = || agent().verbs(&["list"]).filter(begins_watch);
    let effects = [
        vec![(agent(), Effect::refuse(404))],
        vec![(agent(), Effect::refuse(410))],
        vec![(agent(), Effect::refuse(403))],
        vec![(agent(), Effect::Cut)],
        // Watches are silent: those that start with such a list would tell the whole past, which no server does.
        vec![(lists(), Effect::Stale(LONG_AGO)), (agent().verbs(&["watch"]), Effect::StallWatch(0))],
    ];
    let mut size = 1;
    for effects in effects {
        for restart in [false, true] {
            let told = || format!("{:?}, restart {restart}", effects[0].1);
            let kcp = lab.world.kcp_plane().faults().clone();
            let add = |(requests, effect): &(Match, Effect)| kcp.add(Rule::new(requests.clone(), *effect));
            let rules: Vec<_> = effects.iter().map(add).collect();
            kcp.cut_watches(&agent());
            if restart {
                lab.kill_agent().await?;
                lab.start_agent()?;
            }
            tokio::time::sleep(BLIND).await;
            same(&lab, &before).with_context(told)?;
            for rule in rules {
                kcp.remove(rule);
            }
            kcp.cut_watches(&agent());
            size += 1;
            for team in Team::BOTH {
                Change(team, "one", json!({ "spec": { "size": size } })).act(&lab).await?;
            }
            lab.until("both are served again", None, |state| sizes(state) == [size, size]).await.with_context(told)?;
            same(&lab, &before).with_context(told)?;
        }
    }
    lab.close().await?;
    Ok(format!("{} times out of sight", size - 1))
}

/// All copies are there, and no others.
fn same(lab: &Lab, before: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let now = copies(lab);
    ensure!(now == *before, "copies are gone or others: {now:?} instead of {before:?}");
    Ok(())
}
