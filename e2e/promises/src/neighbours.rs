//! One workspace does what it can to keep an agent busy, and another one places an order meanwhile. What counts is who is served before whom, and how
//! often something is written, not how long it takes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use carrick_client::ListOptions;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::NAMESPACE;
use carrick_e2e_stage::world::{ADMIN_AGENT, EmbeddedWorld};
use carrick_plane::Mode;
use carrick_plane::faults::{Effect, Match, RequestInfo, Rule};
use carrick_syncagent::rules::access::Budget;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::cost::told;
use super::deed::Deed::{Change, Order};
use super::deed::Team::{A, B};
use super::flow::Flow;
use super::flows;
use super::lab::Lab;

/// How often one object may be written in a minute.
const MOST: usize = 20;
/// What somebody who reads of it can set.
const FLAG: &str = "(--max-writes-per-minute)";
/// How many orders the slow workspace has: more than are worked on at once.
const MANY: usize = 60;
/// Longer than all the rest takes, also on a slow machine.
const SLOW: Duration = Duration::from_mins(5);

/// A consumer changes an order all the time, to something else each time. Its copy is written so often and not more, that is reported, others are served
/// meanwhile; the newest change arrives, and the order can be deleted.
pub async fn changes_without_end(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::bare(EmbeddedWorld::start().await?, flow, None).await?;
    lab.budget = Budget { writes: MOST, ..Budget::default() };
    lab.flow.publish(&lab.stage).await?;
    lab.start_agent()?;
    lab.settle().await?;
    // The first minute begins with the first write.
    let began = Instant::now();
    Order(A, "one", json!({ "spec": { "size": 0 } })).act(&lab).await?;
    lab.until("the order is placed", None, |state| !state.copy("team-a", "one").is_null()).await?;

    let last = flood(&mut lab).await?;
    Order(B, "honest", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    lab.until("others are served", None, |state| state.copy("team-b", "honest")["spec"]["size"] == 1).await?;
    Change(B, "honest", json!({ "spec": { "size": 2 } })).act(&lab).await?;
    lab.until("and so are their changes", None, |state| state.copy("team-b", "honest")["spec"]["size"] == 2).await?;
    let written = writes_of_copy(&lab);
    let minutes = usize::try_from(began.elapsed().as_secs() / 60)? + 1;
    ensure!(written <= MOST * minutes, "it was written {written} times: {:#?}", lab.audit.last(40));
    let team = lab.stage.team_a.client.clone();
    lab.stage
        .eventually("its consumer is warned", async || {
            let events: Vec<Value> = team.list(&kinds::events(), Some(NAMESPACE), &ListOptions::default()).await?;
            let warns = |event: &Value| event["message"].as_str().is_some_and(|message| message.contains(FLAG));
            ensure!(events.iter().any(warns), "there is no such event");
            Ok(())
        })
        .await?;

    // What is newest is not lost; the next agent counts from the beginning.
    lab.kill_agent().await?;
    lab.start_agent()?;
    let arrived = |state: &super::state::State| state.copy("team-a", "one")["spec"]["size"] == last;
    lab.until("the newest change arrives", None, |state| arrived(state) && told(state, "True", "")).await?;

    // Whoever changes an order too often can still delete it.
    flood(&mut lab).await?;
    lab.delete_source(&lab.stage.team_a, "one").await?;
    lab.until("the order is gone", None, |state| !state.has("/one")).await?;
    lab.close().await?;
    Ok(format!("{written} writes until it was told"))
}

/// Changes an order until the PublishedResource says that this is too much; returns what was ordered last. Every change is waited for: one that is given up
/// on its way may or may not be the last.
async fn flood(lab: &mut Lab) -> anyhow::Result<i64> {
    let (client, buckets) = (lab.stage.team_a.client.clone(), lab.stage.buckets());
    let enough = AtomicBool::new(false);
    let changes = async {
        let mut size = 0;
        while !enough.load(Ordering::Relaxed) {
            size += 1;
            let patch = json!({ "spec": { "size": size } });
            client.merge_patch(&buckets, Some(NAMESPACE), "one", &patch).await?;
        }
        anyhow::Ok(size)
    };
    let reported = async {
        lab.until("it is reported", None, |state| told(state, "False", FLAG)).await?;
        enough.store(true, Ordering::Relaxed);
        anyhow::Ok(())
    };
    let (size, ()) = futures::try_join!(changes, reported)?;
    Ok(size)
}

/// How often agents have changed the copy of the order.
fn writes_of_copy(lab: &Lab) -> usize {
    let copy = |ask: &RequestInfo| {
        ask.resource == "buckets" && ask.subresource.is_empty() && ask.namespace == lab.stage.team_a.cluster
    };
    let writes = lab.audit.writes();
    writes
        .iter()
        .filter(|write| write.server == Mode::Kube && copy(&write.ask))
        .filter(|write| ["patch", "update"].contains(&write.ask.verb.as_str()))
        .count()
}

/// Every write of a copy of one workspace takes minutes, and it has more orders than may be worked on at once. Another workspace's orders
/// are placed while not one of those was answered.
pub async fn slow() -> anyhow::Result<String> {
    let mut lab = Lab::open(flows::short()).await?;
    let faults = lab.world.service_plane().faults().clone();
    let of_slow = Match::writes().user(ADMIN_AGENT).resource(&lab.stage.group, "buckets");
    let rule = faults.add(Rule::new(of_slow.namespace(&lab.stage.team_a.cluster), Effect::delay(SLOW)));
    let orders = futures::stream::iter(0..MANY).map(async |number| {
        lab.create_source(&lab.stage.team_a, &format!("slow-{number}"), &lab.flow.first.clone()).await
    });
    orders.buffer_unordered(16).try_collect::<Vec<()>>().await?;
    lab.stage
        .eventually("its copies are being written", async || {
            ensure!(faults.hits(rule) >= 4, "{} are", faults.hits(rule));
            Ok(())
        })
        .await?;
    for name in ["one", "two", "three"] {
        Order(B, name, json!({ "spec": { "size": 1 } })).act(&lab).await?;
        lab.until("another workspace is served", None, |state| !state.copy("team-b", name).is_null()).await?;
    }
    let state = lab.eyes.look();
    let placed = (0..MANY).filter(|number| !state.copy("team-a", &format!("slow-{number}")).is_null()).count();
    let under_way = usize::try_from(faults.hits(rule))?;
    ensure!(placed == 0, "{placed} slow orders were placed before");
    let most = Budget::default().in_flight;
    ensure!(under_way <= most, "{under_way} requests are under way, and one workspace may have {most}");
    // Nobody waits for what is under way.
    lab.audit.check(&lab)?;
    Ok(format!("{under_way} slow requests under way"))
}
