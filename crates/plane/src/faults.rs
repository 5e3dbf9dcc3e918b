//! Fault injection for tests of clients: errors, delays, lost responses, late writes, broken and silent watches, stale reads.
//!
//! ```no_run
//! # async fn test(plane: carrick_plane::Plane) {
//! use carrick_plane::faults::{Effect, Match, Rule, Turn};
//!
//! let faults = plane.faults();
//! // The second creation of a Secret succeeds, but the client gets no response.
//! let secrets = Match::any().verbs(&["create"]).resource("", "secrets");
//! let rule = faults.add(Rule::new(secrets, Effect::ApplyThenCut).on(Turn::Nth(2)));
//! // One write in twenty fails; the same seed fails the same ones.
//! faults.add(Rule::new(Match::writes(), Effect::refuse(503)).on(Turn::Chance { seed: 42, per_mille: 50 }));
//! // Records all requests from now on.
//! let recording = faults.record();
//! // ... run the client under test ...
//! assert_eq!(faults.hits(rule), 1);
//! faults.clear();
//! recording.clear();
//! // ... let it rest ...
//! assert!(recording.writes().is_empty());
//! # }
//! ```
//!
//! ```text
//!   request ─▶ RequestInfo ─▶ every matching rule ─▶ FaultPlan ─▶ delay, refuse, cut │ do it │ lose the response
//!                                                              ├▶ late: lose the response, hold it back │ do it when the time has come
//!                                                              └▶ watches: cut, expire, stall after n events
//! ```
//!
//! Rules are evaluated in the order in which they were added. Delays add up; of effects that exclude each other, the first one counts.
//! Health checks are never hit. A whole endpoint is stopped and started with [`Endpoint`](crate::Endpoint). Over HTTP the same is offered
//! by the control endpoint, see [`Config::control`](crate::Config::control).

mod late;
mod record;
mod rule;
mod sample;
mod watches;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;

use crate::auth::rbac;
use crate::caller::Caller;
use crate::request::Attributes;
use crate::status::{Status, qualified};

pub(crate) use late::Job;
pub use record::{Record, Recording};
pub use rule::{Effect, Match, Predicate, RequestInfo, Rule, Turn};
pub use sample::Sample;
pub(crate) use watches::{OpenWatch, WatchCommand};

use late::HeldRequests;
use rule::RuleCounters;
use watches::Watches;

/// A rule that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RuleId(pub(crate) u64);

/// Called with every request and its response.
pub type Observer = Arc<dyn Fn(&Record) + Send + Sync>;

enum Listener {
    Recording(Weak<Mutex<Vec<Record>>>),
    Observer(Observer),
}

/// The fault layer of a plane; clones are the same layer.
#[derive(Clone, Default)]
pub struct Faults {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    rules: Mutex<BTreeMap<RuleId, (Rule, RuleCounters)>>,
    next: AtomicU64,
    counts: Mutex<Counts>,
    watches: Arc<Watches>,
    late: Arc<HeldRequests>,
    listeners: Mutex<Vec<Listener>>,
    in_flight: watch::Sender<usize>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// The faults injected so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Requests refused with an error, without executing them.
    pub refused: u64,
    /// Requests delayed.
    pub delayed: u64,
    /// Requests cut off, without executing them.
    pub cut: u64,
    /// Requests executed but answered with an error.
    pub applied_then_refused: u64,
    /// Requests executed whose response was cut off.
    pub applied_then_cut: u64,
    /// Writes that were held back after their client had been sent away.
    pub held_back: u64,
    /// Writes that were held back and executed later.
    pub applied_late: u64,
    /// Watches broken off.
    pub watches_cut: u64,
    /// Watches ended with 410.
    pub watches_expired: u64,
    /// Watches that fell silent.
    pub watches_stalled: u64,
    /// Reads of an older state.
    pub stale: u64,
}

/// Held while a request is being answered, or until its client is gone.
pub(crate) struct InFlight(Arc<Inner>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|count| *count -= 1);
    }
}

/// What to do with one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultPlan {
    pub(crate) ask: RequestInfo,
    pub(crate) effects: Vec<Effect>,
}

impl FaultPlan {
    /// How long to wait first.
    pub(crate) fn delay(&self) -> Duration {
        let delays = self.effects.iter().filter_map(|effect| match effect {
            Effect::Delay(millis) => Some(*millis),
            _ => None,
        });
        Duration::from_millis(delays.fold(0, u64::saturating_add))
    }

    /// The effect on the request as a whole, if there is one.
    pub(crate) fn outcome(&self) -> Option<Effect> {
        let whole = |effect: &&Effect| {
            !effect.is_for_watches() && !effect.is_for_reads() && !matches!(effect, Effect::Delay(_))
        };
        self.effects.iter().find(whole).copied()
    }

    /// The effect on a watch, if there is one.
    pub(crate) fn on_watch(&self) -> Option<Effect> {
        self.effects.iter().find(|effect| effect.is_for_watches()).copied()
    }

    /// How many revisions back a read should look.
    pub(crate) fn behind(&self) -> Option<u64> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Stale(behind) => Some(*behind),
            _ => None,
        })
    }
}

impl Faults {
    /// Adds a rule.
    pub fn add(&self, rule: Rule) -> RuleId {
        let id = RuleId(self.inner.next.fetch_add(1, Ordering::Relaxed));
        self.inner.rules.lock().insert(id, (rule, RuleCounters::default()));
        id
    }

    /// Removes a rule; returns how often it applied.
    pub fn remove(&self, id: RuleId) -> u64 {
        let removed = self.inner.rules.lock().remove(&id);
        removed.map_or(0, |(_, progress)| progress.hits)
    }

    /// Removes all rules and resumes silent watches.
    pub fn clear(&self) {
        self.inner.rules.lock().clear();
        self.resume_watches();
    }

    /// Writes that are held back now, in the order of their arrival.
    pub fn held(&self) -> Vec<RequestInfo> {
        self.inner.late.held()
    }

    /// Executes all matching writes that are held back, in the order of their arrival, as if they had just arrived; returns the status
    /// codes of the responses that nobody receives.
    pub async fn release(&self, wanted: &Match) -> Vec<(RequestInfo, u16)> {
        self.inner.late.release_all(|ask| wanted.fits(ask)).await
    }

    /// Forgets all writes that are held back.
    pub fn forget_held(&self) {
        self.inner.late.forget();
    }

    /// How often a rule has applied; zero for a rule that was removed.
    pub fn hits(&self, id: RuleId) -> u64 {
        self.inner.rules.lock().get(&id).map_or(0, |(_, progress)| progress.hits)
    }

    /// Something about every rule: its id, the rule itself, and how many requests it has hit.
    pub(crate) fn rules<T>(&self, report: impl Fn(RuleId, &Rule, u64) -> T) -> Vec<T> {
        self.inner.rules.lock().iter().map(|(id, (rule, progress))| report(*id, rule, progress.hits)).collect()
    }

    /// The faults injected so far.
    pub fn counts(&self) -> Counts {
        *self.inner.counts.lock()
    }

    /// Records every request from now on, until the recording is dropped.
    pub fn record(&self) -> Recording {
        let recording = Recording::default();
        self.listen(Listener::Recording(Arc::downgrade(&recording.records)));
        recording
    }

    /// Calls a function with every request and its response, for the lifetime of the plane; it must be quick.
    pub fn observe(&self, observer: impl Fn(&Record) + Send + Sync + 'static) {
        self.listen(Listener::Observer(Arc::new(observer)));
    }

    /// Breaks all matching watches that are open now; returns how many.
    pub fn cut_watches(&self, wanted: &Match) -> usize {
        self.inner.watches.report(wanted, WatchCommand::Cut)
    }

    /// Silences all matching watches that are open now; returns how many.
    pub fn stall_watches(&self, wanted: &Match) -> usize {
        self.inner.watches.report(wanted, WatchCommand::Stall)
    }

    /// Resumes all silent watches: they send what they held back, or end if that is too much.
    pub fn resume_watches(&self) -> usize {
        self.inner.watches.report(&Match::any(), WatchCommand::Go)
    }

    /// The watches that are open now.
    pub fn open_watches(&self) -> Vec<RequestInfo> {
        self.inner.watches.open()
    }

    /// Completes when no request is being answered: whatever was sent before is stored by then, or will never be. Open watches do not count.
    pub async fn idle(&self) {
        // The sender is part of this.
        let _ = self.inner.in_flight.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Counts a request as being answered.
    pub(crate) fn begin(&self) -> InFlight {
        self.inner.in_flight.send_modify(|count| *count += 1);
        InFlight(self.inner.clone())
    }

    fn listen(&self, listener: Listener) {
        self.inner.listeners.lock().push(listener);
    }

    /// Decides about one request.
    pub(crate) fn plan(&self, ask: RequestInfo) -> FaultPlan {
        let mut plan = FaultPlan { ask, effects: Vec::new() };
        for (rule, progress) in self.inner.rules.lock().values_mut() {
            // Of effects that exclude each other the first one counts; later rules do not even count the request.
            let taken = if rule.effect.is_for_watches() {
                plan.on_watch().is_some()
            } else if rule.effect.is_for_reads() {
                plan.behind().is_some()
            } else {
                !matches!(rule.effect, Effect::Delay(_)) && plan.outcome().is_some()
            };
            if !taken && progress.hit(rule, &plan.ask) {
                plan.effects.push(rule.effect);
            }
        }
        plan
    }

    /// Holds a write back.
    pub(crate) fn hold(&self, ask: RequestInfo, job: Job, duration: Option<Duration>) {
        self.count(|counts| counts.held_back += 1);
        self.inner.late.hold(ask, job, duration);
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.inner.counts.lock());
    }

    /// Notifies listeners of a response; code zero means that there was none.
    pub(crate) fn answered(&self, plan: FaultPlan, code: u16) {
        let mut listeners = self.inner.listeners.lock();
        if listeners.is_empty() {
            return;
        }
        let record = Record { ask: plan.ask, code, effects: plan.effects };
        listeners.retain(|listener| match listener {
            Listener::Recording(records) => records.upgrade().is_some_and(|records| {
                records.lock().push(record.clone());
                true
            }),
            Listener::Observer(observer) => {
                observer(&record);
                true
            }
        });
    }

    /// Registers an open watch.
    pub(crate) fn open_watch(&self, ask: RequestInfo) -> OpenWatch {
        self.inner.watches.register(ask)
    }
}

/// The error for a caller without rights.
fn forbidden(ask: &RequestInfo) -> Status {
    let caller = Caller { user: ask.user.clone(), ..Caller::default() };
    let attributes = Attributes {
        verb: ask.verb.clone(),
        group: ask.group.clone(),
        resource: ask.resource.clone(),
        subresource: ask.subresource.clone(),
        namespace: ask.namespace.clone(),
        name: ask.name.clone(),
        path: ask.path.clone(),
        ..Attributes::default()
    };
    rbac::refusal(&caller, &attributes, "")
}

/// The error for a refused request, worded as a server in trouble would word it.
pub(crate) fn refusal(code: u16, retry_after: Option<u64>, ask: &RequestInfo) -> Status {
    let (reason, message) = match code {
        400 => ("BadRequest", "the server could not understand the request".to_owned()),
        401 => ("Unauthorized", "Unauthorized".to_owned()),
        403 => return forbidden(ask),
        404 => ("NotFound", format!("{} \"{}\" not found", qualified(&ask.group, &ask.resource), ask.name)),
        409 if ask.verb == "create" => {
            ("AlreadyExists", format!("{} \"{}\" already exists", qualified(&ask.group, &ask.resource), ask.name))
        }
        409 => return Status::stale(&ask.group, &ask.resource, &ask.name),
        410 => ("Expired", "The resourceVersion for the provided list is too old.".to_owned()),
        422 => {
            let what = qualified(&ask.group, &ask.resource);
            ("Invalid", format!("{what} \"{}\" is invalid: spec: Forbidden: refused on purpose", ask.name))
        }
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later".to_owned(),
        ),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request".to_owned()),
        504 => ("Timeout", "Timeout: request did not complete within the allotted duration".to_owned()),
        _ => ("InternalError", "Internal error occurred: failed on purpose".to_owned()),
    };
    let mut status = Status::new(code, reason, message);
    let seconds = retry_after.or(matches!(code, 429 | 503).then_some(1));
    if let Some(seconds) = seconds {
        status.details = serde_json::json!({"retryAfterSeconds": seconds});
    }
    status
}
