//! At rest nothing is written: not by time passing, not by watches that begin anew, not by a restart.

use anyhow::{Context, ensure};
use carrick_plane::faults::Match;

use super::flow::Flow;
use super::lab::{Lab, PERIOD};
use crate::world::ADMIN_AGENT;

/// After every step of the flow the agent is left alone for ten periods, then its watches are cut, then it is started anew.
pub async fn ten_periods(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    let mut looks = 0;
    for step in lab.flow.steps.clone() {
        lab.play(&step).await?;
        lab.until(&format!("{:?} is done", step.name), None, step.done).await?;
        lab.rest_for(PERIOD * 8).await?;
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

/// Nothing at all is written for ten periods, events included.
async fn silence(lab: &Lab) -> anyhow::Result<()> {
    let before = (lab.audit.writes().len(), lab.eyes.revisions());
    tokio::time::sleep(PERIOD * 10).await;
    let after = (lab.audit.writes().len(), lab.eyes.revisions());
    ensure!(before == after, "not quiet: {:#?}", lab.audit.last(after.0 - before.0));
    Ok(())
}
