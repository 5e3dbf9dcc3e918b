//! At rest nothing is written: not by time passing, not by watches that begin anew, not by a restart.

use std::time::Instant;

use anyhow::{Context, ensure};
use carrick_e2e_stage::world::{ADMIN_AGENT, EmbeddedWorld};
use carrick_plane::Mode;
use carrick_plane::faults::Match;

use super::audit::Write;
use super::flow::Flow;
use super::flows;
use super::lab::{Lab, PERIOD};

/// For how many periods nothing may be written before the agent is left alone: events wait for servers that are at their limit, a second each.
const SETTLED: u32 = 16;

/// After every step of the flow the agent is left alone for ten periods, then its watches are cut, then it is started anew.
pub async fn ten_periods(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    let mut looks = 0;
    for step in lab.flow.steps.clone() {
        lab.play(&step).await?;
        lab.until(&format!("{:?} is done", step.name), None, step.done).await?;
        lab.rest_for(PERIOD * SETTLED).await?;
        let told = |what: &str| format!("{what} after {:?}", step.name);
        silence(&lab).await.with_context(|| told("left alone"))?;
        for plane in [lab.world.kcp_plane(), lab.world.service_plane()] {
            plane.faults().cut_watches(&Match::any().user(ADMIN_AGENT));
        }
        lab.ready().await?;
        silence(&lab).await.with_context(|| told("with new watches"))?;
        lab.kill_agent().await?;
        lab.start_agent()?;
        lab.ready().await?;
        silence(&lab).await.with_context(|| told("started anew"))?;
        looks += 3;
    }
    lab.close().await?;
    Ok(format!("{looks} times ten periods of {PERIOD:?} without a write"))
}

/// An agent notes in the APIExport that it works. At rest this is all it writes, no more often than it says, and nothing else of the export changes.
pub async fn but_for_the_heartbeat() -> anyhow::Result<String> {
    let flow = flows::secret_up();
    let mut lab = Lab::bare(EmbeddedWorld::start().await?, flow, None).await?;
    lab.timing.heartbeat = PERIOD * 4;
    lab.timing.heartbeat_old = PERIOD * 40;
    lab.flow.publish(&lab.stage).await?;
    lab.start_agent()?;
    let begun = lab.flow.steps[..2].to_vec();
    for step in begun {
        lab.play(&step).await?;
        lab.until(&format!("{:?} is done", step.name), None, step.done).await?;
    }
    lab.ready().await?;
    // Events are written on the side, and the last of them may come late.
    let mut quiet = 0;
    let others = |lab: &Lab| lab.audit.writes().iter().filter(|write| !is_heartbeat(lab, write)).count();
    let mut before = others(&lab);
    while quiet < SETTLED {
        tokio::time::sleep(PERIOD).await;
        let now = others(&lab);
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
    let state = lab.eyes.look();
    let started = Instant::now();
    let (writes, revisions) = between_beats(&lab).await;
    tokio::time::sleep(PERIOD * 40).await;
    let (after, (kcp, service)) = between_beats(&lab).await;
    let (beats, elapsed) = (after - writes, started.elapsed());
    ensure!(others(&lab) == before, "not quiet: {:#?}", lab.audit.last(beats));
    let most = elapsed.as_millis() / lab.timing.heartbeat.as_millis() + 1;
    ensure!((2..=most).contains(&(beats as u128)), "{beats} heartbeats in {elapsed:?}, where {most} would do");
    let after = lab.eyes.look();
    ensure!(after == state, "something else has changed: {}", after.difference(&state));
    ensure!((kcp - revisions.0, service - revisions.1) == (beats as u64, 0), "somebody else wrote too");
    lab.close().await?;
    Ok(format!("{beats} heartbeats in {elapsed:.1?} and nothing else"))
}

/// The writes that were seen and the servers' revisions, read at a moment at which no heartbeat is on its way: one that is seen but not yet stored would be taken for somebody else's.
async fn between_beats(lab: &Lab) -> (usize, (u64, u64)) {
    let read = || (lab.audit.writes().len(), lab.eyes.revisions());
    loop {
        let before = read();
        tokio::time::sleep(PERIOD).await;
        if read() == before {
            return before;
        }
    }
}

/// Whether a write is the note in the APIExport that the agent works.
fn is_heartbeat(lab: &Lab, write: &Write) -> bool {
    let ask = &write.ask;
    write.server == Mode::Kcp
        && (ask.verb.as_str(), ask.resource.as_str(), ask.name.as_str())
            == ("patch", "apiexports", lab.stage.export_name())
}

/// Nothing at all is written for ten periods, events included.
async fn silence(lab: &Lab) -> anyhow::Result<()> {
    let before = (lab.audit.writes().len(), lab.eyes.revisions());
    tokio::time::sleep(PERIOD * 10).await;
    let after = (lab.audit.writes().len(), lab.eyes.revisions());
    ensure!(before == after, "not quiet: {:#?}", lab.audit.last(after.0 - before.0));
    Ok(())
}
