//! The work that every agent is given, one phase after the other.

use std::path::Path;
use std::time::{Duration, Instant};

use carrick_client::Client;
use serde_json::json;

use super::door::{self, Asked, sum};
use super::field::Field;
use super::process::{Process, own_memory};
use super::report::{CatchUp, Idle, Latency, Requests, Restart, Rested};
use super::sight::{Seen, Sight};

/// How long anything may take that slow agents take minutes for.
const PATIENCE: Duration = Duration::from_mins(30);
/// How long one object may take when nothing else is to be done.
const ONE: Duration = Duration::from_mins(2);
/// How often a consumer orders something while others' orders wait.
const PROBE: Duration = Duration::from_millis(100);

/// One agent at work on a field.
pub struct Trial<'a> {
    /// The agent's program.
    pub program: &'a Path,
    /// Where it works.
    pub field: &'a Field,
    /// What becomes visible.
    pub sight: &'a Sight,
    /// For how long nothing may be asked before an agent counts as being at rest.
    pub quiet: Duration,
    /// How many bytes the spec of an object takes beyond a few fields.
    pub bytes: usize,
}

impl Trial<'_> {
    /// Objects are there before the agent starts; ends when all are placed and the agent rests.
    pub async fn catch_up(&self, objects: usize) -> anyhow::Result<(Process, CatchUp)> {
        let names: Vec<String> = (0..objects).map(|i| format!("order-{i}")).collect();
        self.field.order(&names, &self.field.teams, self.bytes).await?;
        let before = self.sight.look(Seen::placed);
        self.forget_requests();
        let started = Instant::now();
        let agent = self.field.start(self.program)?;
        self.placed("the first is placed", before + 1).await?;
        let first = started.elapsed();
        self.placed("all are placed", before + objects).await?;
        let all = started.elapsed();
        self.rest().await?;
        let (memory, peak) = agent.memory()?;
        let counted = CatchUp {
            objects,
            workspaces: self.field.teams.len(),
            seconds: all.as_secs_f64(),
            first_seconds: first.as_secs_f64(),
            processor_ms: Some(agent.processor_time()?.as_secs_f64() * 1e3),
            memory: Some(memory),
            peak: Some(peak),
            servers_memory: own_memory(),
            requests: self.requests(),
        };
        Ok((agent, counted))
    }

    /// The agent starts anew on objects that are all placed; ends when it rests.
    pub async fn restart(&self, agent: Process) -> anyhow::Result<(Process, Restart)> {
        agent.stop().await?;
        self.forget_requests();
        let started = Instant::now();
        let agent = self.field.start(self.program)?;
        let last = self.rest().await?;
        let (memory, peak) = agent.memory()?;
        let requests = self.requests();
        let writes = sum_both(&requests, |asked| asked.is_write() && !asked.is_routine());
        let restart = Restart {
            seconds: last.duration_since(started).as_secs_f64(),
            writes,
            processor_ms: agent.processor_time()?.as_secs_f64() * 1e3,
            memory,
            peak,
            requests,
        };
        Ok((agent, restart))
    }

    /// Orders at a steady rate; an operator answers each copy with a status at once.
    pub async fn rested(&self, rate: f64, duration: Duration) -> anyhow::Result<Rested> {
        let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / rate));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut copies, mut statuses) = (Vec::new(), Vec::new());
        let started = Instant::now();
        while started.elapsed() < duration {
            ticks.tick().await;
            let name = format!("steady-{}", copies.len());
            let sent = self.order_one(&name, copies.len()).await?;
            let copy = self.sight.wait("the copy is there", ONE, |seen| seen.copies.get(&name).cloned()).await?;
            copies.push(copy.seen.saturating_duration_since(sent));
            let status = json!({ "status": { "token": name } });
            let kind = self.field.stage.buckets();
            let sent = Instant::now();
            let client: &Client = &self.field.stage.service;
            client.merge_patch_status(&kind, Some(&copy.namespace), &copy.name, &status).await?;
            let back = self.sight.wait("the status is back", ONE, |seen| {
                seen.statuses.get(&name).filter(|(token, _)| *token == name).map(|(_, seen)| *seen)
            });
            statuses.push(back.await?.saturating_duration_since(sent));
        }
        Ok(Rested { copy: Latency::of(&mut copies), status: Latency::of(&mut statuses) })
    }

    /// What an agent asks and uses when there is nothing to do.
    pub async fn idle(&self, agent: &Process, duration: Duration) -> anyhow::Result<Idle> {
        self.rest().await?;
        self.forget_requests();
        let before = agent.processor_time()?;
        tokio::time::sleep(duration).await;
        let used = agent.processor_time()?.saturating_sub(before);
        let (memory, peak) = agent.memory()?;
        let requests = self.requests();
        let all = sum_both(&requests, |_| true);
        Ok(Idle { seconds: duration.as_secs(), requests: all, processor_ms: used.as_secs_f64() * 1e3, memory, peak })
    }

    /// One consumer orders again and again while many orders of others wait.
    pub async fn crowded(&self, agent: Process, backlog: usize) -> anyhow::Result<(Process, Latency)> {
        agent.stop().await?;
        let names: Vec<String> = (0..backlog).map(|i| format!("crowd-{i}")).collect();
        let (alone, others) = self.field.teams.split_at(1);
        let others = if others.is_empty() { alone } else { others };
        self.field.order(&names, others, self.bytes).await?;
        let before = self.sight.look(Seen::placed);
        let agent = self.field.start(self.program)?;
        self.placed("the first of the crowd is placed", before + 1).await?;
        let mut ticks = tokio::time::interval(PROBE);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut orders = Vec::new();
        while self.sight.look(|seen| names.iter().filter(|name| !seen.copies.contains_key(*name)).count()) > 0 {
            ticks.tick().await;
            let name = format!("alone-{}", orders.len());
            let sent = self.order_one(&name, 0).await?;
            orders.push((name, sent));
        }
        let mut waits = Vec::new();
        for (name, sent) in orders {
            let seen =
                self.sight.wait("the copy is there", PATIENCE, |seen| seen.copies.get(&name).map(|copy| copy.seen));
            waits.push(seen.await?.saturating_duration_since(sent));
        }
        Ok((agent, Latency::of(&mut waits)))
    }

    /// Orders one object; returns when the order was acknowledged.
    async fn order_one(&self, name: &str, turn: usize) -> anyhow::Result<Instant> {
        let team = &self.field.teams[turn % self.field.teams.len()];
        self.field.stage.order(team, name, json!({ "region": "eu", "size": 1 })).await?;
        Ok(Instant::now())
    }

    async fn placed(&self, what: &str, count: usize) -> anyhow::Result<()> {
        self.sight.wait(what, PATIENCE, |seen| (seen.placed() >= count).then_some(())).await
    }

    async fn rest(&self) -> anyhow::Result<Instant> {
        door::quiet(&self.field.doors(), self.quiet, PATIENCE).await
    }

    fn forget_requests(&self) {
        self.requests();
    }

    fn requests(&self) -> Requests {
        Requests { kcp: self.field.kcp.take(), service: self.field.service.take() }
    }
}

fn sum_both(requests: &Requests, fits: impl Fn(&Asked) -> bool) -> u64 {
    sum(&requests.kcp, &fits) + sum(&requests.service, &fits)
}
