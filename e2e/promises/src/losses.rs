//! Servers that show nothing of what is there: nothing is deleted because something else cannot be seen, and nobody is let go too early.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_e2e_stage::world::ADMIN_AGENT;
use carrick_plane::faults::{Effect, Faults, Match, Rule, Turn};
use serde_json::{Value, json};

use super::deed::Beside::{Copy, Order as Consumer};
use super::deed::Deed::{Cancel, Change, Order, Put, Touch};
use super::deed::Team;
use super::flows;
use super::lab::Lab;
use super::state::State;
use super::storms::begins_watch;

/// For how long nothing can be seen.
const BLIND: Duration = Duration::from_millis(800);
/// Far enough back that nothing was there.
const LONG_AGO: u64 = 1_000_000;

/// Either server answers everything with an error, or lists with nothing in them, to an agent that runs and to one that starts.
pub async fn out_of_sight() -> anyhow::Result<String> {
    let mut lab = Lab::open(flows::both_ways()).await?;
    let before = furnish(&mut lab).await?;
    let agent = || Match::any().user(ADMIN_AGENT);
    let lists = || agent().verbs(&["list"]).filter(begins_watch);
    // A service cluster may not serve a whole kind for a while, but never says that one object is not there when it is.
    let unserved = |side: &str| if side == "kcp" { agent() } else { agent().verbs(&["list", "watch"]) };
    let mut size = 1;
    for side in ["kcp", "service"] {
        let effects = [
            vec![(unserved(side), Effect::refuse(404))],
            vec![(agent(), Effect::refuse(410))],
            vec![(agent(), Effect::refuse(403))],
            vec![(agent(), Effect::Cut)],
            // Watches are silent: those that start with such a list would tell the whole past, which no server does.
            vec![(lists(), Effect::Stale(LONG_AGO)), (agent().verbs(&["watch"]), Effect::StallWatch(0))],
        ];
        for effects in effects {
            for restart in [false, true] {
                size += 1;
                let told = format!("{side}: {:?}, restart {restart}", effects[0].1);
                blind(&mut lab, side, &effects, restart, size).await.with_context(|| told.clone())?;
                same(&lab, &before).with_context(|| told.clone())?;
            }
        }
    }
    finish(&mut lab).await?;
    lab.close().await?;
    Ok(format!("{} times out of sight", size - 1))
}

/// The server once does not serve the kind of a related object that is there. That says nothing about the object, and nobody reports it later.
pub async fn unserved_once() -> anyhow::Result<String> {
    let mut lab = Lab::open(flows::both_ways()).await?;
    let keys = json!({ "data": { "password": data_encoding::BASE64.encode(b"keys") } });
    Put(Consumer(Team::A), "secrets", "one-keys", keys).act(&lab).await?;
    let faults = lab.world.kcp_plane().faults().clone();
    let asked = Match::any().user(ADMIN_AGENT).verbs(&["get"]).filter(|ask| ask.name == "one-keys");
    let rule = faults.add(Rule::new(asked, Effect::refuse(404)).on(Turn::First(1)));
    Order(Team::A, "one", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    lab.until("the Secret travels", None, |state| !state.at("service secrets team-a/one-keys").is_null()).await?;
    ensure!(faults.remove(rule) == 1, "the agent did not ask");
    Cancel(Team::A, "one").act(&lab).await?;
    lab.until("the order is gone", None, |state| state.at("team-a buckets default/one").is_null()).await?;
    lab.close().await?;
    Ok("one request".to_owned())
}

async fn blind(lab: &mut Lab, side: &str, effects: &[(Match, Effect)], restart: bool, size: i64) -> anyhow::Result<()> {
    let before = lab.eyes.inventory();
    let plane = if side == "kcp" { lab.world.kcp_plane() } else { lab.world.service_plane() };
    let faults: Faults = plane.faults().clone();
    let rules: Vec<_> = effects.iter().map(|(wanted, effect)| faults.add(Rule::new(wanted.clone(), *effect))).collect();
    faults.cut_watches(&Match::any().user(ADMIN_AGENT));
    if restart {
        lab.kill_agent().await?;
        lab.start_agent()?;
    }
    tokio::time::sleep(BLIND).await;
    same(lab, &before)?;
    for rule in rules {
        faults.remove(rule);
    }
    faults.cut_watches(&Match::any().user(ADMIN_AGENT));
    for team in Team::BOTH {
        Change(team, "one", json!({ "spec": { "size": size } })).act(lab).await?;
    }
    lab.until("both are served again", None, |state| sizes(state) == [size, size]).await?;
    Ok(())
}

/// Orders of both teams with Secrets in both directions, and one order on its way out whose copy the operator holds. Tells what is there.
pub(super) async fn furnish(lab: &mut Lab) -> anyhow::Result<BTreeMap<String, String>> {
    let secret = |text: &str| json!({ "data": { "password": data_encoding::BASE64.encode(text.as_bytes()) } });
    for team in Team::BOTH {
        Put(Consumer(team), "secrets", "one-keys", secret("keys")).act(lab).await?;
        Order(team, "one", json!({ "spec": { "size": 1 } })).act(lab).await?;
    }
    Order(Team::A, "two", json!({ "spec": { "size": 1 } })).act(lab).await?;
    Put(Consumer(Team::A), "secrets", "two-keys", secret("keys")).act(lab).await?;
    let placed = |state: &State| sizes(state) == [1, 1] && !state.copy("team-a", "two").is_null();
    lab.until("the orders are placed", None, placed).await?;
    for team in Team::BOTH {
        Put(Copy(team), "secrets", "one-credentials", secret("credentials")).act(lab).await?;
    }
    let hold = json!({ "metadata": { "finalizers": ["example.com/backup"] } });
    Touch(Team::A, "two", hold).act(lab).await?;
    lab.until("their Secrets are there", None, |state| {
        ["team-a", "team-b"].iter().all(|team| {
            !state.at(&format!("{team} secrets default/one-credentials")).is_null()
                && !state.at(&format!("service secrets {team}/one-keys")).is_null()
        }) && !state.at("service secrets team-a/two-keys").is_null()
    })
    .await?;
    Cancel(Team::A, "two").act(lab).await?;
    lab.until("one order waits for its copy", None, |state| {
        !state.copy("team-a", "two")["metadata"]["deletionTimestamp"].is_null()
    })
    .await?;
    lab.rest().await?;
    Ok(lab.eyes.inventory())
}

/// The operator lets the copy go, and the order on its way out comes to its end, and nothing else.
pub(super) async fn finish(lab: &mut Lab) -> anyhow::Result<()> {
    let before = lab.eyes.inventory();
    Touch(Team::A, "two", json!({ "metadata": { "finalizers": null } })).act(lab).await?;
    lab.until("the order on its way out is gone", None, |state| {
        state.at("team-a buckets default/two").is_null() && state.copy("team-a", "two").is_null()
    })
    .await?;
    lab.rest().await?;
    let after = lab.eyes.inventory();
    let gone: Vec<_> = before.iter().filter(|(place, uid)| after.get(*place) != Some(*uid)).map(|(p, _)| p).collect();
    ensure!(gone.iter().all(|place| place.contains("/two")), "more than that is gone: {gone:?}");
    Ok(())
}

/// All that was there is there, and nothing else.
fn same(lab: &Lab, before: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let now = lab.eyes.inventory();
    let differs = |place: &&String| now.get(*place) != before.get(*place);
    let changed: Vec<&String> = before.keys().chain(now.keys()).filter(differs).collect();
    ensure!(changed.is_empty(), "gone, new or made anew: {changed:?}; last writes {:#?}", lab.audit.last(12));
    Ok(())
}

/// The sizes of both teams' copies.
pub(super) fn sizes(state: &State) -> [i64; 2] {
    ["team-a", "team-b"].map(|team| {
        let copy: &Value = state.copy(team, "one");
        copy["spec"]["size"].as_i64().unwrap_or_default()
    })
}
