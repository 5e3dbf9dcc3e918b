//! The agent is killed before and after every single write, and a new one makes good for it.

use anyhow::{Context, ensure};
use carrick_plane::faults::Sample;

use super::flow::Flow;
use super::lab::{LONG_CALM, Lab, PATIENCE};
use super::meddling::Meddling;
use super::state::State;
use super::story::Story;
use super::switch::Moment;

const MOMENTS: [Moment; 2] = [Moment::Before, Moment::After];

/// All writes up to the last, each with both moments, of which a sample is tried.
pub fn strikes(last: u64) -> impl Iterator<Item = (u64, Moment)> {
    let all = (1..=last).flat_map(|write| MOMENTS.map(|moment| (write, moment)));
    (0..).zip(all).filter(|(case, _)| sample().takes(*case)).map(|(_, strike)| strike)
}

/// How much of what could be tried is tried today.
pub fn sample() -> Sample {
    Sample::one_in(4)
}

/// Every pass through the flow kills one agent in each step, at the first write of the step in the first pass, at the second one in the
/// second pass, and so on.
pub async fn every_write(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    let story = Story::told(&mut lab).await?;
    let (mut killed, mut missed) = (0, 0);
    for (write, moment) in strikes(story.writes.iter().copied().max().unwrap_or_default()) {
        for (index, step) in lab.flow.steps.clone().iter().enumerate() {
            let at = format!("step {:?}, killed {moment:?} write {write}", step.name);
            if write <= story.writes[index] {
                lab.switch.arm(write, moment);
            }
            lab.play(step).await?;
            let mut death = lab.becomes("the state is that of the undisturbed run", &story.after[index]).await;
            // The kill may be the very write that made the state complete.
            if death.is_ok()
                && let Some(late) = lab.attend(None).await?
            {
                death = lab.becomes("the state stays that of the undisturbed run", &story.after[index]).await;
                death = death.map(|_| Some(late));
            }
            match death.with_context(|| format!("{at}; last writes {:#?}", lab.audit.last(12)))? {
                Some(_) => killed += 1,
                None if write <= story.writes[index] => missed += 1,
                None => {}
            }
            lab.switch.reset();
        }
        lab.clear(&story.start).await.with_context(|| format!("after kills {moment:?} write {write}"))?;
    }
    ensure!(killed > 0 && missed <= 1 + killed / 5, "only {killed} kills, {missed} were armed in vain");
    lab.close().await?;
    Ok(format!("{killed} kills, {missed} armed in vain, writes per step {:?}; {}", story.writes, sample()))
}

/// One agent is killed in each run, and while it is dead somebody meddles with the order.
pub async fn every_write_and_meddling(flow: Flow, meddling: Meddling) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    let story = Story::told(&mut lab).await?;
    let (mut cases, mut missed) = (0, 0);
    let mut at_rest: Vec<Ends> = Vec::new();
    let mut strike = 0;
    for index in 0..lab.flow.steps.len() {
        let expected = match rested(&mut lab, &story, index, meddling).await? {
            Some(ends) => {
                at_rest.push(ends.clone());
                ends
            }
            None if index + 1 < lab.flow.steps.len() => continue,
            // An order under way to its end can be replaced by a new one, which may still find what was made for the old one.
            None if meddling == Meddling::RecreatesSource => {
                let both = || at_rest.iter().flat_map(|ends| ends.copied.iter().chain(&ends.bare)).cloned().collect();
                Ends { copied: both(), bare: both() }
            }
            // All other meddling does not stop an order from ending.
            None => Ends::of(vec![story.after[index].clone(), without_namespace(&story.after[index], meddling)]),
        };
        for write in 1..=story.writes[index] {
            for moment in MOMENTS {
                strike += 1;
                if !sample().takes(strike) {
                    continue;
                }
                let case = Case { index, write, moment, meddling };
                let came_about = case.run(&mut lab, &story, &expected).await?;
                meddling.undo(&mut lab).await.with_context(|| format!("after {case:?}"))?;
                *if came_about { &mut cases } else { &mut missed } += 1;
                lab.clear(&story.start).await.with_context(|| format!("after {case:?}"))?;
            }
        }
    }
    lab.close().await?;
    Ok(format!("{cases} cases, {missed} in vain; {}", sample()))
}

/// What meddling may come to, if the order has a copy by then and if it has none.
#[derive(Clone)]
struct Ends {
    copied: Vec<State>,
    bare: Vec<State>,
}

impl Ends {
    fn of(states: Vec<State>) -> Self {
        Self { copied: states.clone(), bare: states }
    }
}

/// What tells that a new source is refused: the source itself, and what its provider is told.
fn refused(state: &State) -> State {
    state.only(|place| place.contains(" publishedresources ") || place == "team-a buckets default/one")
}

/// Whether the copy of an old source is as it was, unless it was on its way out.
fn is_kept(state: &State, copy: &serde_json::Value) -> bool {
    copy.is_null() || !copy["metadata"]["deletionTimestamp"].is_null() || state.copy("team-a", "one") == copy
}

/// The same state without what goes with the namespace of team A's copies, if that is what somebody deletes.
fn without_namespace(state: &State, meddling: Meddling) -> State {
    let goes =
        |place: &str| place.starts_with("service ") && (place.contains(" team-a/") || place.ends_with(" /team-a"));
    state.only(|place| meddling != Meddling::DeletesNamespace || !goes(place))
}

/// What comes of meddling while the agent is down and nothing is under way.
async fn rested(lab: &mut Lab, story: &Story, index: usize, meddling: Meddling) -> anyhow::Result<Option<Ends>> {
    let before = lab.play_to(story, index).await?;
    let step = lab.flow.steps[index].clone();
    lab.play(&step).await?;
    lab.becomes("the step is done", &story.after[index]).await?;
    lab.kill_agent().await?;
    let meddled = meddling.act(lab, "one", &before).await?;
    lab.start_agent()?;
    lab.ready().await?;
    let state = lab.rest_for(LONG_CALM).await?;
    meddling.undo(lab).await.with_context(|| format!("after {meddling:?} at rest"))?;
    // A new source that finds no copy of the old one is served like any other.
    let bare = if meddling == Meddling::RecreatesSource { lab.eyes.look() } else { state.clone() };
    lab.clear(&story.start).await.with_context(|| format!("after {meddling:?} at rest after {:?}", step.name))?;
    Ok(meddled.then_some(Ends { copied: vec![state], bare: vec![bare] }))
}

/// One kill with meddling.
#[derive(Debug)]
struct Case {
    index: usize,
    write: u64,
    moment: Moment,
    meddling: Meddling,
}

impl Case {
    /// False if the kill or the meddling did not come about.
    async fn run(&self, lab: &mut Lab, story: &Story, expected: &Ends) -> anyhow::Result<bool> {
        let Self { index, write, moment, meddling } = *self;
        let before = lab.play_to(story, index).await?;
        let step = lab.flow.steps[index].clone();
        lab.switch.arm(write, moment);
        lab.play(&step).await?;
        lab.dies_or(&story.after[index]).await?;
        let Some(death) = lab.attend(Some((meddling, &before))).await? else {
            lab.switch.reset();
            return Ok(false);
        };
        let at =
            || format!("step {:?}, killed {moment:?} write {write}, {}, then {meddling:?}", step.name, death.write);
        let expected = if death.copy.is_null() { &expected.bare } else { &expected.copied };
        let mut ends: Vec<&State> = if death.meddled { expected.iter().collect() } else { vec![&story.after[index]] };
        if meddling == Meddling::EditsCopy && !death.remembered {
            // A copy that the agent has no memory of is written as a whole, the operator's change included.
            ends.push(&story.after[index]);
        }
        let good = |state: &State| {
            ends.iter().any(|end| match meddling {
                // How far the agent had come decides what else is left of the old order; its copy stays as it was.
                Meddling::RecreatesSource if !death.copy.is_null() => refused(end) == refused(state),
                Meddling::RecreatesSource => end.without_memories() == state.without_memories(),
                _ => *end == state,
            }) && (meddling != Meddling::RecreatesSource || !death.meddled || is_kept(state, &death.copy))
        };
        let settled = async {
            lab.until("the state is that of the same meddling at rest", None, good).await?;
            lab.ready().await?;
            let state = lab.rest().await?;
            ensure!(good(&state), "it did not stay so");
            Ok(())
        };
        if let Err(error) = settled.await {
            let difference = lab.eyes.look().difference(ends[0]);
            let writes = lab.audit.last(12);
            return Err(error.context(format!("{}; difference: {difference}\nlast writes {writes:#?}", at())));
        }
        Ok(death.meddled)
    }
}

impl Lab {
    /// Plays all steps before one; returns the order as it is then.
    pub async fn play_to(&mut self, story: &Story, index: usize) -> anyhow::Result<serde_json::Value> {
        for (step, after) in self.flow.steps.clone()[..index].iter().zip(&story.after) {
            self.play(step).await?;
            self.becomes("the step is done", after).await.with_context(|| format!("step {:?}", step.name))?;
        }
        let before = self.stage.team_a.client.get(&self.source_kind(), self.source_namespace(), "one").await?;
        Ok(before.unwrap_or_default())
    }

    /// Waits until the agent is dead, or the state is reached without that.
    pub async fn dies_or(&self, expected: &State) -> anyhow::Result<()> {
        let wait = async {
            loop {
                let revisions = self.eyes.revisions();
                if self.switch.is_dead() || self.eyes.look() == *expected {
                    return;
                }
                tokio::select! {
                    () = self.eyes.changed(revisions) => {}
                    () = self.switch.killed() => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.context("neither killed nor done in time")
    }
}
