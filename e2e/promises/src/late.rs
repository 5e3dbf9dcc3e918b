//! Writes that reach a server long after their agent has died: they cannot undo what came later.

use anyhow::{Context, ensure};
use carrick_plane::faults::{Match, RequestInfo};

use super::flow::Flow;
use super::kills::sample;
use super::lab::{LONG_CALM, Lab};
use super::story::Story;
use super::switch::Moment;

/// In each run one write is held back and its agent dies of it. Another agent does the work, and then the late write arrives: at once after
/// the step, and in another run only after the next one.
pub async fn every_write(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    let story = Story::told(&mut lab).await?;
    let (mut arrived, mut refused, mut missed) = (0, 0, 0);
    let mut case = 0;
    for (index, writes) in story.writes.iter().enumerate() {
        for write in 1..=*writes {
            // A step later the source has changed again, which is when a late write does harm.
            let later = (index + 1).min(lab.flow.steps.len() - 1);
            for release in if later == index { vec![index] } else { vec![index, later] } {
                case += 1;
                if !sample().takes(case) {
                    continue;
                }
                match run(&mut lab, &story, index, write, release).await? {
                    Some(codes) => {
                        arrived += codes.len();
                        refused += codes.iter().filter(|code| **code >= 400).count();
                    }
                    None => missed += 1,
                }
                lab.clear(&story.start).await.with_context(|| format!("after step {index}, late write {write}"))?;
            }
        }
    }
    ensure!(arrived > 0 && missed <= 1 + arrived / 5, "only {arrived} late writes, {missed} did not come about");
    lab.close().await?;
    Ok(format!("{arrived} late writes, {refused} of them refused, {missed} did not come about; {}", sample()))
}

/// The codes by which late writes were answered; none if there was none.
async fn run(
    lab: &mut Lab,
    story: &Story,
    index: usize,
    write: u64,
    release: usize,
) -> anyhow::Result<Option<Vec<u16>>> {
    for (step, after) in lab.flow.steps.clone().iter().zip(&story.after).take(index) {
        lab.play(step).await?;
        lab.becomes("the step is done", after).await.with_context(|| format!("step {:?}", step.name))?;
    }
    let step = lab.flow.steps[index].clone();
    lab.switch.arm(write, Moment::Late);
    lab.play(&step).await?;
    let death = lab.becomes("the step is done by another agent", &story.after[index]).await;
    let death = death.with_context(|| format!("step {:?}, write {write} is held back", step.name))?;
    let late = lab.attend(None).await?;
    lab.switch.reset();
    let Some(death) = death.or(late) else { return Ok(None) };
    let planes = [lab.world.kcp_plane().faults().clone(), lab.world.service_plane().faults().clone()];
    let held: Vec<RequestInfo> = planes.iter().flat_map(carrick_plane::Faults::held).collect();
    // What creates something that is gone by then makes something that nobody asked for; no server can know that.
    let creates = held.iter().any(|ask| ask.verb == "create");
    let release = if creates { index } else { release };
    if release > index {
        let next = lab.flow.steps[release].clone();
        lab.play(&next).await?;
        lab.becomes("the next step is done", &story.after[release]).await?;
    }
    lab.ready().await?;
    let mut codes = Vec::new();
    for faults in &planes {
        codes.extend(faults.release(&Match::any()).await.into_iter().map(|(_, code)| code));
    }
    let told = || format!("{} of step {:?} arrived {} steps later: {codes:?}", death.write, step.name, release - index);
    let expected = &story.after[release];
    lab.becomes("the late write is made good for", expected).await.with_context(told)?;
    let state = lab.rest_for(LONG_CALM / 2).await?;
    ensure!(state == *expected, "{}: it did not stay so: {}", told(), state.difference(expected));
    Ok(Some(codes))
}
