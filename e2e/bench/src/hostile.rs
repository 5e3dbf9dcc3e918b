//! What one hostile workspace does to the agent's memory and to an honest one beside it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use tokio::sync::oneshot::error::TryRecvError::Empty;

use super::door;
use super::field::{Field, Servers};
use super::process::Process;
use super::report::{Latency, aligned, mib};
use super::sight::Sight;

/// How often the honest consumer orders something.
const PROBE: Duration = Duration::from_millis(100);
/// How many orders of the honest consumer are measured at least.
const PROBES: usize = 100;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(10);

/// Of how many orders, and of how many KiB each, the attack consists.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Attack {
    orders: usize,
    kib: usize,
}

impl Attack {
    /// `ORDERSxKIB`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('x').and_then(|(orders, kib)| Some((orders.parse().ok()?, kib.parse().ok()?)));
        let (orders, kib) = numbers.ok_or("say ORDERSxKIB, such as 300x1000")?;
        Ok(Self { orders, kib })
    }
}

/// What it did.
#[derive(Debug, Serialize)]
pub struct Figures {
    name: String,
    attack: Attack,
    /// What the honest consumer waits for, alone and beside the hostile one.
    alone: Waits,
    beside: Waits,
    /// The agent's memory at its highest before, after the attack, and after a restart.
    before: u64,
    after: u64,
    restarted: u64,
    /// How many of the hostile orders were placed.
    placed: usize,
}

/// How long an order takes.
#[derive(Debug, Serialize)]
struct Waits {
    /// Until a bare watch of the virtual workspace shows it: the servers' share, which no agent can go below.
    shown: Latency,
    /// Until the agent's copy is there.
    placed: Latency,
}

/// Measures one agent.
pub async fn measure(
    name: &str,
    program: &Path,
    servers: Servers,
    attack: Attack,
    quiet: Duration,
) -> anyhow::Result<Figures> {
    let field = Field::prepare(servers, 2).await?;
    let sight = field.publish(program).await?;
    let agent = field.start(program)?;
    door::quiet(&field.doors(), quiet, PATIENCE).await?;
    let alone = honest(&field, &sight, "alone", std::future::ready(Ok(()))).await?;
    let before = agent.memory()?.1;
    let names: Vec<String> = (0..attack.orders).map(|number| format!("hostile-{number}")).collect();
    let flood = async {
        field.order(&names, &field.teams[1..], attack.kib << 10).await?;
        anyhow::Ok(())
    };
    let beside = honest(&field, &sight, "beside", flood).await?;
    door::quiet(&field.doors(), quiet, PATIENCE).await?;
    let placed = sight.look(|seen| names.iter().filter(|name| seen.copies.contains_key(*name)).count());
    let after = agent.memory()?.1;
    let restarted = restart(&field, program, agent, quiet).await?;
    Ok(Figures { name: name.to_owned(), attack, alone, beside, before, after, restarted, placed })
}

async fn restart(field: &Field, program: &Path, agent: Process, quiet: Duration) -> anyhow::Result<u64> {
    agent.stop().await?;
    let agent = field.start(program)?;
    door::quiet(&field.doors(), quiet, PATIENCE).await?;
    let (_, peak) = agent.memory()?;
    agent.stop().await?;
    Ok(peak)
}

/// Orders of the honest consumer at a steady rate, while something else happens and for as many as are to be measured.
async fn honest(
    field: &Field,
    sight: &Sight,
    prefix: &str,
    meanwhile: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Waits> {
    let (ended, over) = tokio::sync::oneshot::channel();
    let orders = async {
        let mut over = over;
        let mut ticks = tokio::time::interval(PROBE);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut shown, mut waits) = (Vec::new(), Vec::new());
        while waits.len() < PROBES || over.try_recv().is_err_and(|error| error == Empty) {
            ticks.tick().await;
            let name = format!("{prefix}-{}", waits.len());
            field.stage.order(&field.teams[0], &name, json!({ "region": "eu", "size": 1 })).await?;
            let sent = Instant::now();
            let copy = sight.wait("the copy is there", PATIENCE, |seen| seen.copies.get(&name).map(|copy| copy.seen));
            waits.push(copy.await?.saturating_duration_since(sent));
            let source = sight.wait("a watch shows it", PATIENCE, |seen| seen.sources.get(&name).copied()).await?;
            shown.push(source.saturating_duration_since(sent));
        }
        anyhow::Ok((shown, waits))
    };
    let attack = async {
        let result = meanwhile.await;
        // Whoever measures may have failed.
        let _ = ended.send(());
        result
    };
    let ((mut shown, mut placed), ()) = futures::try_join!(orders, attack)?;
    Ok(Waits { shown: Latency::of(&mut shown), placed: Latency::of(&mut placed) })
}

/// All agents in a table.
pub fn table(all: &[Figures]) -> String {
    let head = [
        "agent",
        "hostile orders",
        "of KiB",
        "placed",
        "honest alone: shown by a watch, p50 / p99 ms",
        "placed, p50 / p99 ms",
        "beside: shown by a watch, p50 / p99 ms",
        "placed, p50 / p99 ms",
        "memory before, MiB",
        "at its highest, MiB",
        "restarted: at its highest, MiB",
    ];
    let both = |latency: &Latency| format!("{:.1} / {:.1}", latency.p50, latency.p99);
    let lines: Vec<Vec<String>> = all
        .iter()
        .map(|one| {
            vec![
                one.name.clone(),
                one.attack.orders.to_string(),
                one.attack.kib.to_string(),
                one.placed.to_string(),
                both(&one.alone.shown),
                both(&one.alone.placed),
                both(&one.beside.shown),
                both(&one.beside.placed),
                format!("{:.1}", mib(one.before)),
                format!("{:.1}", mib(one.after)),
                format!("{:.1}", mib(one.restarted)),
            ]
        })
        .collect();
    aligned(&head.map(str::to_owned), &lines)
}
