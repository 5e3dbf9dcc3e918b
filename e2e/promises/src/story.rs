//! A flow as it goes when nobody disturbs it.

use super::flow::Step;
use super::lab::{LONG_CALM, Lab};
use super::state::State;

/// What an undisturbed run looks like.
pub struct Story {
    /// Before the first step.
    pub start: State,
    /// After each step.
    pub after: Vec<State>,
    /// How many writes the agent sent in each step.
    pub writes: Vec<u64>,
}

impl Story {
    /// Plays the flow once undisturbed.
    pub async fn told(lab: &mut Lab) -> anyhow::Result<Self> {
        let start = lab.rest().await?;
        let mut story = Self { start, after: Vec::new(), writes: Vec::new() };
        for step in lab.flow.steps.clone() {
            lab.switch.reset();
            lab.play(&step).await?;
            lab.until(&format!("{:?} is done", step.name), None, step.done).await.map_err(|error| {
                let seen = lab.eyes.look().difference(story.after.last().unwrap_or(&story.start));
                error.context(format!("since the last step only this has changed: {seen}"))
            })?;
            story.after.push(lab.rest_for(LONG_CALM).await?);
            story.writes.push(lab.switch.writes());
        }
        lab.clear(&story.start).await?;
        lab.audit.allow_only(lab.audit.places(lab));
        Ok(story)
    }
}

impl Lab {
    /// Does what a step says, without waiting for what it leads to.
    pub async fn play(&mut self, step: &Step) -> anyhow::Result<()> {
        for deed in &step.deeds {
            if let Some((team, name)) = deed.needs_copy() {
                let cluster = if team == super::deed::Team::A { "team-a" } else { "team-b" };
                self.until(&format!("{name} has a copy"), None, |state| !state.copy(cluster, name).is_null()).await?;
            }
            deed.act(self).await.map_err(|error| error.context(format!("{:?}: {deed:?}", step.name)))?;
        }
        Ok(())
    }
}
