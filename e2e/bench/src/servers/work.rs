//! The work that servers are measured by.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{Ask, Client};
use super::contestant::Contestant;
use crate::report::count;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WORKSPACES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspaces";
/// Requests in flight, over two connections.
const IN_FLIGHT: usize = 64;
/// The same while others watch.
const WATCHED_IN_FLIGHT: usize = 16;
/// Watchers share that many connections.
const CONNECTIONS: usize = 10;

/// What was measured of one server.
pub struct Figures {
    /// From the start of the process until it answers.
    pub started: Duration,
    /// Resident memory in bytes at the beginning.
    pub empty: u64,
    /// `ConfigMap`s created.
    pub creations: Rate,
    /// `ConfigMap`s changed.
    pub patches: Rate,
    /// `ConfigMap`s read, one by one.
    pub reads: Rate,
    /// How many of them there were.
    pub written: usize,
    /// Resident memory with them.
    pub memory: u64,
    /// Listed per second, in pages.
    pub paged: f64,
    /// Listed per second, as a watch that begins with what is there.
    pub streamed: f64,
    /// Events that reached watchers.
    pub events: Rate,
    /// Workspaces that became ready per second.
    pub workspaces: Option<f64>,
}

/// How fast something went.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// So many per second.
    pub per_second: f64,
    /// Processor time of the server for each.
    pub each: Duration,
}

/// Creates `ConfigMap`s; tells how many.
pub async fn creations(contestant: &Contestant, time: Duration) -> anyhow::Result<(Rate, usize)> {
    let until = Until::Time(Instant::now() + time);
    run(contestant, until, IN_FLIGHT, |number| Ask::post(MAPS, map(number, "m", "bench"))).await
}

/// Changes `ConfigMap`s in their order, over and over.
pub async fn patches(contestant: &Contestant, time: Duration, written: usize) -> anyhow::Result<Rate> {
    let until = Until::Time(Instant::now() + time);
    let ask = move |number: usize| {
        let patch = json!({ "data": { "number": format!("again {number}") } });
        Ask::patch(format!("{MAPS}/m{}", number % written), patch)
    };
    Ok(run(contestant, until, IN_FLIGHT, ask).await?.0)
}

/// Reads `ConfigMap`s in their order, over and over.
pub async fn reads(contestant: &Contestant, time: Duration, written: usize) -> anyhow::Result<Rate> {
    let until = Until::Time(Instant::now() + time);
    let ask = move |number: usize| Ask::get(format!("{MAPS}/m{}", number % written));
    Ok(run(contestant, until, IN_FLIGHT, ask).await?.0)
}

/// Lists in pages, as kubectl does.
pub async fn paged(contestant: &Contestant, written: usize) -> anyhow::Result<f64> {
    let client = contestant.client()?;
    let (mut token, mut seen, begin) = (String::new(), 0, Instant::now());
    loop {
        let page = client.send(Ask::get(format!("{MAPS}?limit=500&continue={token}"))).await?;
        let page: Value = serde_json::from_slice(&page)?;
        seen += page["items"].as_array().context("no items")?.len();
        match page["metadata"]["continue"].as_str() {
            Some(next) if !next.is_empty() => next.clone_into(&mut token),
            _ => break,
        }
    }
    ensure!(seen >= written, "{seen} objects were listed instead of {written}");
    Ok(count(seen) / begin.elapsed().as_secs_f64())
}

/// Lists as informers do.
pub async fn streamed(contestant: &Contestant, written: usize) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let options = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let body = contestant.client()?.open(Ask::get(format!("{MAPS}?{options}"))).await?;
    until_seen(body, written).await?;
    Ok(count(written) / begin.elapsed().as_secs_f64())
}

/// Creates `ConfigMap`s while many watch, until everybody has seen every one of them.
pub async fn watchers(contestant: &Contestant, watchers: usize, writes: usize) -> anyhow::Result<Rate> {
    let connections: Vec<Client> = (0..CONNECTIONS).map(|_| contestant.client()).collect::<Result<_, _>>()?;
    let mut readers = JoinSet::new();
    for number in 0..watchers {
        let ask = Ask::get(format!("{MAPS}?watch=1&labelSelector=app%3Dwatched"));
        readers.spawn(until_seen(connections[number % CONNECTIONS].open(ask).await?, writes));
    }
    let (begin, before) = (Instant::now(), contestant.processor_time()?);
    let ask = |number| Ask::post(MAPS, map(number, "w", "watched"));
    run(contestant, Until::Number(writes), WATCHED_IN_FLIGHT, ask).await?;
    while let Some(seen) = readers.join_next().await {
        seen??;
    }
    let spent = contestant.processor_time()?.saturating_sub(before);
    Ok(rate(watchers * writes, begin.elapsed(), spent))
}

/// Makes workspaces until all of them are ready.
pub async fn workspaces(contestant: &Contestant, number: usize) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let ask = |number| {
        let workspace = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": format!("w{number}") },
            "spec": { "type": { "name": "universal", "path": "root" } } });
        Ask::post(WORKSPACES, workspace)
    };
    let client = contestant.client()?;
    run(contestant, Until::Number(number), WATCHED_IN_FLIGHT, ask).await?;
    let ready = format!("{WORKSPACES}?labelSelector=tenancy.kcp.io%2Fphase%3DReady");
    loop {
        let list: Value = serde_json::from_slice(&client.send(Ask::get(&ready)).await?)?;
        if list["items"].as_array().context("no items")?.len() >= number {
            return Ok(count(number) / begin.elapsed().as_secs_f64());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn map(number: usize, prefix: &str, app: &str) -> Value {
    let data = json!({ "number": number.to_string(), "text": "some configuration of the usual size ".repeat(5) });
    let metadata = json!({ "name": format!("{prefix}{number}"), "labels": { "app": app } });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
}

/// Reads a watch until it has shown that many events.
async fn until_seen(mut body: Incoming, events: usize) -> anyhow::Result<()> {
    let mut seen = 0;
    while seen < events {
        let frame = body.frame().await.context("the watch has ended")??;
        seen += frame.data_ref().map_or(0, |data| data.split(|byte| *byte == b'\n').count() - 1);
    }
    Ok(())
}

/// When enough was sent.
#[derive(Clone, Copy)]
enum Until {
    /// At a point in time.
    Time(Instant),
    /// After that many.
    Number(usize),
}

/// Sends requests, so many at a time, each with a number of its own from 0 on; tells how many were answered.
async fn run(
    contestant: &Contestant,
    until: Until,
    in_flight: usize,
    ask: impl Fn(usize) -> Ask + Clone + Send + 'static,
) -> anyhow::Result<(Rate, usize)> {
    let clients = [contestant.client()?, contestant.client()?];
    let next = Arc::new(AtomicUsize::new(0));
    let (begin, before) = (Instant::now(), contestant.processor_time()?);
    let mut tasks = JoinSet::new();
    for number in 0..in_flight {
        let (client, next, ask) = (clients[number % 2].clone(), next.clone(), ask.clone());
        tasks.spawn(async move {
            let mut answered = 0;
            loop {
                // The clock is looked at first, so that every number that was taken is also sent.
                if matches!(until, Until::Time(end) if Instant::now() >= end) {
                    break;
                }
                let number = next.fetch_add(1, Ordering::Relaxed);
                if matches!(until, Until::Number(all) if number >= all) {
                    break;
                }
                client.send(ask(number)).await?;
                answered += 1;
            }
            anyhow::Ok(answered)
        });
    }
    let mut answered = 0;
    while let Some(done) = tasks.join_next().await {
        answered += done??;
    }
    let spent = contestant.processor_time()?.saturating_sub(before);
    Ok((rate(answered, begin.elapsed(), spent), answered))
}

fn rate(number: usize, time: Duration, spent: Duration) -> Rate {
    let number = count(number);
    Rate { per_second: number / time.as_secs_f64(), each: spent.div_f64(number.max(1.0)) }
}
