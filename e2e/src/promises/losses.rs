//! Servers that show nothing of what is there: no copy is deleted because its source cannot be seen.

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
    let effects = [
        (agent(), Effect::refuse(404)),
        (agent(), Effect::refuse(410)),
        (agent(), Effect::refuse(403)),
        (agent(), Effect::Cut),
        (agent().verbs(&["list", "watch"]).filter(begins_watch), Effect::Stale(LONG_AGO)),
    ];
    let mut size = 1;
    for (requests, effect) in effects {
        for restart in [false, true] {
            let told = || format!("{effect:?}, restart {restart}");
            let kcp = lab.world.kcp_plane().faults().clone();
            let rule = kcp.add(Rule::new(requests.clone(), effect));
            kcp.cut_watches(&agent());
            if restart {
                lab.kill_agent().await?;
                lab.start_agent()?;
            }
            tokio::time::sleep(BLIND).await;
            ensure!(copies(&lab) == before, "{}: copies are gone or others", told());
            kcp.remove(rule);
            size += 1;
            for team in Team::BOTH {
                Change(team, "one", json!({ "spec": { "size": size } })).act(&lab).await?;
            }
            lab.until("both are served again", None, |state| sizes(state) == [size, size]).await.with_context(told)?;
            ensure!(copies(&lab) == before, "{}: copies are gone or others", told());
        }
    }
    lab.close().await?;
    Ok(format!("{} times out of sight", size - 1))
}
