//! Ends: of many orders at once, for which the service cluster is asked for their own copies and never for all of them again and again; and of an order
//! whose copy is made after it has ended.

mod crowd;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, ListOptions};
use carrick_e2e_stage::stage::place;
use carrick_e2e_stage::world::{ADMIN_AGENT, EmbeddedWorld};
use carrick_plane::faults::{Effect, Match, Rule, Turn};
use serde_json::json;

use super::flows;
use super::lab::Lab;

pub use crowd::many_workspaces;

const ORDERS: usize = 60;

/// How often the agent asked the service cluster for Buckets.
#[derive(Default)]
struct Asked {
    one: AtomicUsize,
    all: AtomicUsize,
}

impl Asked {
    fn counted(world: &EmbeddedWorld) -> Arc<Self> {
        let asked = Arc::new(Self::default());
        let counts = asked.clone();
        // Nothing happens to what is counted.
        let never = Match::any().user(ADMIN_AGENT).filter(move |ask| {
            let count = match ask.verb.as_str() {
                "get" => &counts.one,
                "list" => &counts.all,
                _ => return false,
            };
            if ask.resource == "buckets" {
                count.fetch_add(1, Ordering::Relaxed);
            }
            false
        });
        world.service_plane().faults().add(Rule::new(never, Effect::Cut));
        asked
    }

    fn take(&self) -> (usize, usize) {
        (self.one.swap(0, Ordering::Relaxed), self.all.swap(0, Ordering::Relaxed))
    }
}

/// Orders end while the agent runs, which has deleted their copies itself; then while it does not run, so that it does not know where they were.
pub async fn ask_for_their_own_copies() -> anyhow::Result<String> {
    let mut lab = Lab::open(flows::short()).await?;
    let asked = Asked::counted(&lab.world);
    place_all(&mut lab).await?;
    asked.take();
    cancel_all(&lab).await?;
    gone(&mut lab).await?;
    let (one, all) = asked.take();
    ensure!(all == 0 && one <= 3 * ORDERS, "{one} gets and {all} lists for {ORDERS} orders whose copies it deleted");
    let first = format!("{one} gets and {all} lists");

    place_all(&mut lab).await?;
    lab.kill_agent().await?;
    cancel_all(&lab).await?;
    let buckets = lab.stage.buckets();
    for copy in lab.stage.service.list(&buckets, None, &ListOptions::default()).await? {
        let (namespace, name) = place(&copy);
        lab.stage.service.delete(&buckets, Some(namespace), name, &DeleteOptions::default()).await?;
    }
    asked.take();
    lab.start_agent()?;
    gone(&mut lab).await?;
    let (one, all) = asked.take();
    // One list is that of the watch. Those that wait together share one; here they may come one after the other.
    ensure!(
        all <= 1 + ORDERS && one <= 3 * ORDERS,
        "{one} gets and {all} lists for {ORDERS} orders it knows nothing of"
    );
    lab.close().await?;
    Ok(format!("{ORDERS} orders: {first}; after a restart {one} and {all}"))
}

/// A request to make a copy is answered by nobody, and arrives when its order has ended.
pub async fn a_copy_that_comes_after_its_order() -> anyhow::Result<String> {
    for flow in [flows::short(), flows::short().applied("short_applied")] {
        let mut lab = Lab::open(flow).await?;
        let (faults, buckets) = (lab.world.service_plane().faults().clone(), lab.stage.buckets());
        for again in [false, true] {
            let create = Match::writes().verbs(&["create"]).user(ADMIN_AGENT).resource(&lab.stage.group, "buckets");
            let rule = faults.add(Rule::new(create, Effect::late()).on(Turn::First(1)));
            // Nothing else arrives, so that the order ends without a copy.
            let others = Match::writes().verbs(&["create"]).user(ADMIN_AGENT).resource(&lab.stage.group, "buckets");
            let cut = faults.add(Rule::new(others, Effect::refuse(503)));
            lab.stage.order(&lab.stage.team_a, "one", json!({ "size": 1 })).await?;
            let held = || async {
                ensure!(!faults.held().is_empty(), "no write is held back");
                Ok(())
            };
            lab.stage.eventually("the copy is under way", held).await?;
            lab.stage.cancel(&lab.stage.team_a, "one").await?;
            lab.until("the order is gone", None, |state| state.at("team-a buckets default/one").is_null()).await?;
            faults.remove(rule);
            faults.remove(cut);
            if again {
                // The name is taken by another order meanwhile, which waits for its turn.
                let wait = Match::writes().verbs(&["create"]).user(ADMIN_AGENT).resource(&lab.stage.group, "buckets");
                let wait = faults.add(Rule::new(wait, Effect::refuse(503)));
                lab.stage.order(&lab.stage.team_a, "one", json!({ "size": 2 })).await?;
                let codes = faults.release(&Match::any()).await;
                ensure!(codes.iter().any(|(_, code)| *code == 201), "{codes:?}");
                faults.remove(wait);
                lab.until("the other order is placed", None, |state| state.copy("team-a", "one")["spec"]["size"] == 2)
                    .await?;
                lab.stage.cancel(&lab.stage.team_a, "one").await?;
            } else {
                let codes = faults.release(&Match::any()).await;
                ensure!(codes.iter().any(|(_, code)| *code == 201), "{codes:?}");
            }
            lab.until("nothing is left", None, |state| state.copy("team-a", "one").is_null())
                .await
                .with_context(|| format!("another order: {again}"))?;
            lab.rest().await?;
            let left = lab.stage.service.list(&buckets, None, &ListOptions::default()).await?;
            ensure!(left.is_empty(), "{left:?}");
        }
        lab.close().await?;
    }
    Ok("copies that come late go, and block no name".to_owned())
}

fn names() -> impl Iterator<Item = String> {
    (0..ORDERS).map(|number| format!("one-{number}"))
}

async fn place_all(lab: &mut Lab) -> anyhow::Result<()> {
    for name in names() {
        lab.stage.order(&lab.stage.team_a, &name, json!({ "size": 1 })).await?;
    }
    lab.until("all have copies and are at rest", None, |state| {
        names().all(|name| !state.copy("team-a", &name).is_null())
    })
    .await?;
    lab.rest().await?;
    Ok(())
}

async fn cancel_all(lab: &Lab) -> anyhow::Result<()> {
    for name in names() {
        lab.stage.cancel(&lab.stage.team_a, &name).await?;
    }
    Ok(())
}

async fn gone(lab: &mut Lab) -> anyhow::Result<()> {
    let is_gone = |name: String| format!("team-a buckets default/{name}");
    lab.until("all are gone", None, |state| names().map(is_gone).all(|place| state.at(&place).is_null())).await?;
    Ok(())
}
