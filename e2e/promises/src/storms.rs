//! Storms: both servers misbehave for a while, by chance, and everything comes right when they are well again.

use std::time::Duration;

use anyhow::Context;
use carrick_e2e_stage::seed::{Choices, replay, seeds};
use carrick_e2e_stage::world::ADMIN_AGENT;
use carrick_plane::faults::{Counts, Effect, Faults, Match, RequestInfo, Rule, RuleId, Turn};
use tokio::task::JoinHandle;

use super::flow::Flow;
use super::lab::Lab;
use super::story::Story;

/// How many storms every flow goes through unless more are asked for.
const STORMS: u64 = 2;

/// For how long a storm lasts at most: an agent that waits longer and longer between attempts would not get through otherwise.
const LONGEST: Duration = Duration::from_secs(2);
/// For how long a watch is silent at most.
const SILENCE: Duration = Duration::from_millis(400);

/// What a server may do to a request.
#[derive(Debug, Clone, Copy)]
enum Mischief {
    Conflict,
    Gone,
    NotFound,
    Throttle,
    Broken,
    Unavailable,
    Cut,
    AppliedThenBroken,
    AppliedThenCut,
    Slow,
    WatchCut,
    WatchExpired,
    WatchStalled,
    Stale,
    Forbidden,
    Late,
}

impl Mischief {
    const ALL: [Self; 16] = [
        Self::Conflict,
        Self::Gone,
        Self::NotFound,
        Self::Throttle,
        Self::Broken,
        Self::Unavailable,
        Self::Cut,
        Self::AppliedThenBroken,
        Self::AppliedThenCut,
        Self::Slow,
        Self::WatchCut,
        Self::WatchExpired,
        Self::WatchStalled,
        Self::Stale,
        Self::Forbidden,
        Self::Late,
    ];

    /// Which of the agent's requests are hit, what happens to them, and how many of a thousand.
    fn rule(self, side: &str, choices: &mut Choices) -> (Match, Effect, u16) {
        let any = || Match::any().user(ADMIN_AGENT);
        let writes = || Match::writes().user(ADMIN_AGENT);
        let reads = || any().verbs(&["get", "list", "watch"]);
        let refuse = |code| Effect::Refuse { code, retry_after: Some(0) };
        match self {
            Self::Conflict => (writes(), refuse(409), 250),
            Self::Gone => (reads(), refuse(410), 150),
            // kcp answers so for whole APIs that it does not serve yet; a service cluster never does it for an object that is there.
            Self::NotFound if side == "kcp" => (any(), refuse(404), 150),
            Self::NotFound => (any().verbs(&["list", "watch"]), refuse(404), 250),
            Self::Throttle => (any(), refuse(429), 250),
            Self::Broken => (any(), refuse(500), 250),
            Self::Unavailable => (any(), refuse(503), 250),
            Self::Cut => (any(), Effect::Cut, 200),
            Self::AppliedThenBroken => (writes(), Effect::apply_then_refuse(500), 300),
            Self::AppliedThenCut => (writes(), Effect::ApplyThenCut, 300),
            Self::Slow => (any(), Effect::Delay(choices.below(80)), 400),
            Self::WatchCut => (any(), Effect::CutWatch(choices.below(3)), 500),
            Self::WatchExpired => (any(), Effect::ExpireWatch(choices.below(3)), 500),
            Self::WatchStalled => (any(), Effect::StallWatch(choices.below(4)), 300),
            Self::Forbidden => (writes(), refuse(403), 200),
            // Not what creates something: that would come to life again when everybody has forgotten it.
            Self::Late => {
                let changes = writes().filter(|ask| ask.verb != "create" && ask.resource != "events");
                (changes, Effect::ApplyLate { millis: Some(50 + choices.below(400)), code: None }, 250)
            }
            // Lists that begin a watch may be old. What is asked for once, such as related objects in a namespace, is read from the store
            // itself, and the agent relies on that.
            Self::Stale => {
                let lists = any().verbs(&["list", "watch"]).filter(|ask| begins_watch(ask) && ask.namespace.is_empty());
                (lists, Effect::Stale(1 + choices.below(30)), 500)
            }
        }
    }
}

/// Plays the flow in a storm, without waiting for one step before the next, and compares the end of each storm with the undisturbed run.
pub async fn storms(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    let figures = in_lab(&mut lab).await?;
    lab.close().await?;
    Ok(figures)
}

/// Storms in a lab that is open.
pub async fn in_lab(lab: &mut Lab) -> anyhow::Result<String> {
    let story = Story::told(lab).await?;
    let seeds = seeds(STORMS);
    let before = count(lab);
    for seed in &seeds {
        storm(lab, &story, *seed).await.with_context(|| replay(*seed))?;
    }
    let faults = count(lab) - before;
    Ok(format!("{} storms with {faults} faults, seeds {seeds:?}", seeds.len()))
}

async fn storm(lab: &mut Lab, story: &Story, seed: u64) -> anyhow::Result<()> {
    let mut choices = Choices::of(seed);
    let steps = lab.flow.steps.clone();
    // Once in the middle of the flow the sky clears, and once at its end.
    let middle = usize::try_from(choices.below(steps.len() as u64 - 1))?;
    for part in [0..=middle, middle + 1..=steps.len() - 1] {
        let end = *part.end();
        let weather = Weather::rise(lab, &mut choices, seed);
        let told =
            format!("{:?} during {:?}", weather.what, &steps[part.clone()].iter().map(|s| s.name).collect::<Vec<_>>());
        for step in &steps[part] {
            lab.play(step).await.with_context(|| told.clone())?;
            if choices.below(4) == 0 {
                lab.kill_agent().await?;
                lab.start_agent()?;
            }
            if lab.flow.patient {
                lab.until("the step is done", None, step.done).await.with_context(|| told.clone())?;
            }
            tokio::time::sleep(Duration::from_millis(choices.below(150))).await;
        }
        weather.clear(lab);
        // What is remembered about related objects that came and went depends on whether the agent has ever seen them.
        let expected = story.after[end].after_haste();
        lab.until("the storm is made good for", None, |state| state.after_haste() == expected)
            .await
            .map_err(|error| {
                error.context(format!("difference: {}", lab.eyes.look().after_haste().difference(&expected)))
            })
            .with_context(|| format!("{told}; last writes {:#?}", lab.audit.last(15)))?;
    }
    lab.clear(&story.start).await
}

/// Faults on both planes.
struct Weather {
    what: Vec<(Mischief, &'static str)>,
    rules: Vec<(Faults, RuleId)>,
    /// Ends all of it after a while, whether the agent has come through or not.
    passing: JoinHandle<()>,
}

impl Weather {
    fn rise(lab: &Lab, choices: &mut Choices, seed: u64) -> Self {
        let mut what = Vec::new();
        let mut rules = Vec::new();
        for number in 0..3 + choices.below(3) {
            let (Some(mischief), Some(side)) = (choices.one(&Mischief::ALL), choices.one(&["kcp", "service"])) else {
                continue;
            };
            let (requests, effect, per_mille) = mischief.rule(side, choices);
            let turn = Turn::Chance { seed: seed ^ number, per_mille };
            let faults = faults(lab, side).clone();
            let id = faults.add(Rule::new(requests, effect).on(turn));
            what.push((mischief, side));
            rules.push((faults, id));
        }
        let both = ["kcp", "service"].map(|side| faults(lab, side).clone());
        let passing = tokio::spawn({
            let rules = rules.clone();
            async move {
                for _ in 0..LONGEST.as_millis() / SILENCE.as_millis() {
                    tokio::time::sleep(SILENCE).await;
                    // Silent watches end when their time is over.
                    both.iter().map(Faults::resume_watches).for_each(drop);
                }
                rules.iter().map(|(faults, id)| faults.remove(*id)).for_each(drop);
            }
        });
        Self { what, rules, passing }
    }

    /// Ends what has not passed yet.
    fn clear(self, lab: &Lab) {
        self.passing.abort();
        for (faults, id) in &self.rules {
            faults.remove(*id);
        }
        for side in ["kcp", "service"] {
            faults(lab, side).cut_watches(&Match::any().user(ADMIN_AGENT));
        }
    }
}

/// How many faults there were so far.
fn count(lab: &Lab) -> u64 {
    let of = |side| {
        let Counts {
            refused,
            delayed,
            cut,
            applied_then_refused,
            applied_then_cut,
            held_back,
            applied_late: _,
            watches_cut,
            watches_expired,
            watches_stalled,
            stale,
        } = faults(lab, side).counts();
        let watches = watches_cut + watches_expired + watches_stalled;
        refused + delayed + cut + applied_then_refused + applied_then_cut + held_back + watches + stale
    };
    of("kcp") + of("service")
}

/// Whether a list is one that a watch goes on from, not one of the copies of a source or of what is remembered.
pub(super) fn begins_watch(ask: &RequestInfo) -> bool {
    !ask.query.contains("remote-object") && !ask.query.contains("object-state")
}

fn faults<'a>(lab: &'a Lab, side: &str) -> &'a Faults {
    match side {
        "kcp" => lab.world.kcp_plane().faults(),
        _ => lab.world.service_plane().faults(),
    }
}
