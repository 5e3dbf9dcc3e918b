//! Rules and kinds that change while an order lives, and an agent that is killed meanwhile or was dead before.

use anyhow::{Context, ensure};
use carrick_e2e_stage::world::EmbeddedWorld;

use super::flows;
use super::kills::sample;
use super::lab::{LONG_CALM, Lab};
use super::state::State;
use super::switch::Moment;

/// The same in all worlds, because names of schemas depend on it.
const GROUP: &str = "upheavals.example.com";

/// Every world sees all upheavals. In the first one the agent is dead while they happen; in the others it is killed at the first write that
/// follows from each of them, at the second, and so on.
pub async fn at_every_write() -> anyhow::Result<String> {
    let (after, writes, places) = undisturbed().await?;
    let mut kills = 0;
    for write in (0..=writes.iter().copied().max().unwrap_or_default()).filter(|write| sample().takes(*write)) {
        let moment = if write % 2 == 0 { Moment::Before } else { Moment::After };
        let mut lab = open().await?;
        lab.audit.allow_only(places.clone());
        for (index, step) in lab.flow.steps.clone().iter().enumerate() {
            let at = format!("step {:?}, killed {moment:?} write {write}", step.name);
            // The first step needs copies to touch.
            if write == 0 && index > 0 {
                lab.kill_agent().await?;
                lab.play(step).await?;
                lab.start_agent()?;
            } else {
                if (1..=writes[index]).contains(&write) {
                    lab.switch.arm(write, moment);
                }
                lab.play(step).await?;
            }
            let reached =
                lab.until("the state is that of the undisturbed run", None, |s| comparable(s) == after[index]);
            let reached = reached.await;
            let late = lab.attend(None).await?;
            let death = reached.with_context(|| {
                let difference = comparable(&lab.eyes.look()).difference(&after[index]);
                format!("{at}; difference: {difference}\nlast writes {:#?}", lab.audit.last(12))
            })?;
            kills += u64::from(death.is_some() || late.is_some());
            lab.switch.reset();
        }
        lab.ready().await?;
        let state = comparable(&lab.rest().await?);
        let last = &after[after.len() - 1];
        ensure!(state == *last, "it did not stay so: {}", state.difference(last));
        lab.close().await?;
    }
    ensure!(kills > 0, "nobody was killed");
    Ok(format!("{kills} kills, writes per upheaval {writes:?}; {}", sample()))
}

type Told = (Vec<State>, Vec<u64>, std::collections::BTreeSet<String>);

async fn undisturbed() -> anyhow::Result<Told> {
    let mut lab = open().await?;
    let (mut after, mut writes) = (Vec::new(), Vec::new());
    for step in lab.flow.steps.clone() {
        lab.switch.reset();
        lab.play(&step).await?;
        lab.until(&format!("{:?} is done", step.name), None, step.done).await.map_err(|error| {
            error.context(format!("it is {}", lab.eyes.look().difference(after.last().unwrap_or(&State::default()))))
        })?;
        after.push(comparable(&lab.rest_for(LONG_CALM).await?));
        writes.push(lab.switch.writes());
    }
    let places = lab.audit.places(&lab);
    lab.close().await?;
    Ok((after, writes, places))
}

async fn open() -> anyhow::Result<Lab> {
    Lab::open_in(EmbeddedWorld::start().await?, flows::upheavals(), Some(GROUP)).await
}

/// Names of entries in memories and certificates differ from world to world.
fn comparable(state: &State) -> State {
    state.without_memories().only(|place| !place.contains("kube-root-ca.crt") && !place.contains(" kcp-system/"))
}
