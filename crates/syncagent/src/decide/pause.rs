//! Pauses in force: what they forbid for one order, and how people are told. A pause is no failure.
//!
//! ```text
//!           content down   status up   deletion of the order
//!  Spec     no             yes         carried out
//!  Status   yes            no          carried out
//!  All      no             no          waits
//! ```
//!
//! Related objects rest with the direction in which they travel.

use carrick_sync::{Pair, PairProgress, StatusFlow, Transform};
use jiff::Timestamp;
use serde_json::Value;

use super::error::DecideError;
use super::primary::{Copies, PrimaryView};
use crate::api::{Origin, PAUSE};
use crate::rules::Rules;
use crate::rules::metadata::{annotation, is_deleting};
use crate::rules::pause::{Pause, PausedBy, PausedPart};

/// Who has paused something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pauser {
    /// The provider, on the copy.
    Provider,
    /// The consumer, on the order.
    Consumer,
}

/// The pauses that are in force for one order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pauses(Vec<(Pauser, Pause)>);

impl Pauses {
    /// Those of an order and its copy. Without a time that can be read, none of them is over.
    pub fn of(rules: &Rules, source: &Value, copy: Option<&Value>, now: &str) -> Self {
        let now = now.parse().unwrap_or(Timestamp::MIN);
        let on = |object: Option<&Value>, by: Pauser| Some((by, Pause::parse(annotation(object?, PAUSE)?)));
        let consumer = on(Some(source), Pauser::Consumer).filter(|_| rules.pause == PausedBy::Both);
        let both = [on(copy, Pauser::Provider), consumer];
        Self(both.into_iter().flatten().filter(|(_, pause)| !pause.is_over(now)).collect())
    }

    /// Those of everything that is seen of an order. Of several copies none counts: nothing is written then.
    pub fn seen(rules: &Rules, seen: &PrimaryView<'_>) -> Self {
        let copy = match seen.copies {
            Copies::One(copy) => Some(copy),
            Copies::None | Copies::Many(_) => None,
        };
        seen.source.map_or_else(Self::default, |source| Self::of(rules, source, copy, seen.now))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether nothing is written to the service cluster.
    pub fn content(&self) -> bool {
        self.has(|part| part != PausedPart::Status)
    }

    /// Whether nothing comes back.
    pub fn status(&self) -> bool {
        self.has(|part| part != PausedPart::Spec)
    }

    /// Whether a deletion waits.
    pub fn deletion(&self) -> bool {
        self.has(|part| part == PausedPart::All)
    }

    /// Whether related objects of this origin rest.
    pub fn holds(&self, origin: Origin) -> bool {
        match origin {
            Origin::Kcp => self.content(),
            Origin::Service => self.status(),
        }
    }

    /// When the first of them ends by itself.
    pub fn until(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(|(_, pause)| pause.until).min()
    }

    /// What cannot be read, and on which of the two objects.
    pub fn problems(&self) -> impl Iterator<Item = (Pauser, String)> {
        self.0.iter().filter_map(|(by, pause)| {
            let problem = pause.problem.as_ref()?;
            Some((*by, format!("The annotation {PAUSE} cannot be read, so Spec is paused: {problem}")))
        })
    }

    /// What rests, who said so, until when and why, in words: "All by its provider until …".
    pub fn words(&self) -> String {
        let each = self.0.iter().map(|(by, pause)| {
            let who = match by {
                Pauser::Provider => "its provider",
                Pauser::Consumer => "its consumer",
            };
            let until = pause.until.map(|until| format!(" until {until}"));
            let because = pause.because.as_ref().map(|because| format!(" because: {because}"));
            let problem =
                pause.problem.as_ref().map(|problem| format!(" by an annotation that cannot be read ({problem})"));
            let rest: String = [until, because, problem].into_iter().flatten().collect();
            format!("{} by {who}{rest}", pause.part)
        });
        each.collect::<Vec<_>>().join("; ")
    }

    fn has(&self, rests: impl Fn(PausedPart) -> bool) -> bool {
        self.0.iter().any(|(_, pause)| rests(pause.part))
    }
}

/// Brings back the status of a copy whose content rests. Where the status is a field like any other, what is remembered of it would say that
/// the content was written too, so it waits until both are in line.
pub(super) fn bring_back<T: Transform>(
    pair: &Pair<'_, T>,
    status: &mut Vec<super::Step>,
) -> Result<PairProgress, DecideError>
where
    DecideError: From<carrick_sync::PairError<T::Error>>,
{
    if pair.copy.is_none_or(is_deleting) {
        return Ok(PairProgress::Settled);
    }
    if pair.status == StatusFlow::Back {
        pair.bring_back(status)?;
        return Ok(PairProgress::Settled);
    }
    let mut steps = Vec::new();
    pair.keep(&mut steps, status)?;
    if !steps.is_empty() {
        status.clear();
    }
    Ok(PairProgress::Settled)
}
