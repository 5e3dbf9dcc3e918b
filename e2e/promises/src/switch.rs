//! The switch that kills an agent at a given write.
//!
//! A killed agent is one that sends nothing any more. So from the moment of the kill on, the planes cut everything it sends; that the process
//! itself goes a moment later makes no difference to anybody.

use std::sync::Arc;

use carrick_e2e_stage::world::ADMIN_AGENT;
use carrick_plane::Plane;
use carrick_plane::faults::{Effect, Match, RequestInfo, Rule};
use parking_lot::Mutex;
use tokio::sync::watch;

/// When an agent is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The write does not reach the store.
    Before,
    /// The write is done, and its answer does not reach the agent.
    After,
    /// The write is held back until it is released.
    Late,
}

/// Kills the agent at a write, on whichever plane that is.
pub struct Switch {
    plan: Mutex<Plan>,
    dead: watch::Sender<bool>,
}

#[derive(Default)]
struct Plan {
    /// Which write, counted from one, and the moment.
    at: Option<(u64, Moment)>,
    /// Writes since the switch was armed.
    seen: u64,
    /// The write at which the agent was killed.
    victim: Option<String>,
    /// That write, as long as it is still to be held back.
    late: Option<String>,
}

impl Switch {
    /// A switch on both planes, not armed.
    pub fn install(planes: [&Plane; 2]) -> Arc<Self> {
        let switch = Arc::new(Self { plan: Mutex::default(), dead: watch::Sender::new(false) });
        for plane in planes {
            let (first, second, third) = (switch.clone(), switch.clone(), switch.clone());
            let name = plane.mode();
            let counts = Match::any().filter(move |ask| first.counts(ask, &format!("{name:?}")) == Some(Moment::After));
            plane.faults().add(Rule::new(counts, Effect::ApplyThenCut));
            let late = Match::any().filter(move |ask| third.is_late(ask, &format!("{name:?}")));
            plane.faults().add(Rule::new(late, Effect::late()));
            let over = Match::any().user(ADMIN_AGENT).filter(move |_| second.is_dead());
            plane.faults().add(Rule::new(over, Effect::Cut));
        }
        switch
    }

    /// Kills the agent at its n-th write from now on.
    pub fn arm(&self, write: u64, moment: Moment) {
        *self.plan.lock() = Plan { at: Some((write, moment)), ..Plan::default() };
    }

    /// How many writes were counted since the switch was armed or reset.
    pub fn writes(&self) -> u64 {
        self.plan.lock().seen
    }

    /// Lets the next agent live; tells at which write the last one was killed, if it was.
    pub fn reset(&self) -> Option<String> {
        let plan = std::mem::take(&mut *self.plan.lock());
        self.dead.send_replace(false);
        plan.victim
    }

    /// Whether the agent is dead.
    pub fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// Completes when the agent is dead.
    pub async fn killed(&self) {
        // The sender is part of this.
        let _ = self.dead.subscribe().wait_for(|dead| *dead).await;
    }

    /// Counts a write. Tells the moment if the agent dies of it.
    fn counts(&self, ask: &RequestInfo, plane: &str) -> Option<Moment> {
        if self.is_dead() || !is_counted(ask) {
            return None;
        }
        let mut plan = self.plan.lock();
        plan.seen += 1;
        let (_, moment) = plan.at.filter(|(write, _)| *write == plan.seen)?;
        plan.victim = Some(described(ask, plane));
        plan.late = (moment == Moment::Late).then(|| described(ask, plane));
        self.dead.send_replace(true);
        Some(moment)
    }

    /// Whether this is the write that was counted just now and is to be held back.
    fn is_late(&self, ask: &RequestInfo, plane: &str) -> bool {
        self.plan.lock().late.take_if(|late| *late == described(ask, plane)).is_some()
    }
}

/// Whether a request is one of the agent's writes. Events are written on the side and leases are not work.
pub fn is_counted(ask: &RequestInfo) -> bool {
    ask.user == ADMIN_AGENT && ask.is_write() && !["events", "leases"].contains(&ask.resource.as_str())
}

/// A request in a few words.
pub fn described(ask: &RequestInfo, plane: &str) -> String {
    let subresource = if ask.subresource.is_empty() { String::new() } else { format!("/{}", ask.subresource) };
    format!("{plane}: {} {}{subresource} {}/{}", ask.verb, ask.resource, ask.namespace, ask.name)
}
