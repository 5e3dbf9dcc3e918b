//! Whether a server answers, and when to try again what failed.
//!
//! ```text
//!   answers ──(a request fails on its way)──▶ in doubt ──(a probe fails too)──▶ away
//!      ▲                                          │                              │
//!      └───────────── any answer at all ──────────┴──────────────────────────────┘
//! ```
//!
//! While a server is away only probes are sent to it, a few small ones per second however many callers wait; everything else fails at once with
//! the error of the last probe. Whoever waits for the server is woken by its first answer.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a request waits for a server that is in doubt: one lost connection must not make the following requests fail.
const PATIENCE: Duration = Duration::from_secs(1);
/// The shortest pause between two attempts of all that fail.
const SPACING: Duration = Duration::from_millis(100);
/// The longest wait in line for attempts whose success says nothing about the others.
const LONGEST_LINE: Duration = Duration::from_secs(1);
/// The least time between two successes that make the others try again.
const CALM: Duration = Duration::from_secs(2);
/// Watches that notice within this time that versions went back speak of the same event.
const SAME_REWIND: Duration = Duration::from_mins(1);

/// What is known about one server.
pub(crate) struct Host {
    state: Mutex<HostState>,
    /// Grows with every reason to retry what failed.
    retries: watch::Sender<u64>,
    /// Changes with the belief.
    belief: watch::Sender<Belief>,
    /// Grows whenever the versions of a server of the pool go back.
    rewound: watch::Sender<u64>,
}

struct HostState {
    /// Whether somebody probes the server.
    probing: bool,
    /// Whether credentials were refused last time.
    refused: bool,
    /// Whether somebody looks for new credentials.
    looking: bool,
    /// When the next of those who fail may try again: those who share a cause, and the others.
    turns: [Instant; 2],
    /// When a success last made the others try again.
    sign: Option<Instant>,
    /// The last time that the server's versions went back.
    rewind: Option<(Instant, Rewind)>,
    rewinds: u64,
}

/// A server's versions went back: it was restored from a backup, or replaced by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewind {
    /// When that was noticed.
    pub at: SystemTime,
    /// The newest version that was known.
    pub known: u64,
    /// The version that was found.
    pub found: u64,
    /// How often it has happened so far.
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Belief {
    Answers,
    InDoubt,
    /// With the error of the last probe.
    Away(Arc<str>),
}

impl Default for Host {
    fn default() -> Self {
        let turns = [Instant::now(); 2];
        let state =
            HostState { probing: false, refused: false, looking: false, turns, sign: None, rewind: None, rewinds: 0 };
        let (retries, belief) = (watch::Sender::new(0), watch::Sender::new(Belief::Answers));
        Self { state: Mutex::new(state), retries, belief, rewound: watch::Sender::new(0) }
    }
}

impl Host {
    /// A server of a pool, which is notified if versions go back.
    pub(super) fn of_pool(rewound: watch::Sender<u64>) -> Self {
        Self { rewound, ..Self::default() }
    }

    /// Lets a request pass, unless the server is away: then the problem is returned.
    pub(super) async fn admit(&self) -> Result<(), Arc<str>> {
        let mut belief = self.belief.subscribe();
        if *belief.borrow() == Belief::InDoubt {
            let _ = tokio::time::timeout(PATIENCE, belief.wait_for(|belief| *belief != Belief::InDoubt)).await;
        }
        match &*belief.borrow() {
            Belief::Away(problem) => Err(Arc::clone(problem)),
            Belief::Answers | Belief::InDoubt => Ok(()),
        }
    }

    /// A request got no answer. True if the caller has to begin to probe.
    #[must_use]
    pub(super) fn lost(&self) -> bool {
        let mut state = self.state.lock();
        self.belief.send_if_modified(|belief| {
            let changed = *belief == Belief::Answers;
            if changed {
                *belief = Belief::InDoubt;
            }
            changed
        });
        !std::mem::replace(&mut state.probing, true)
    }

    /// A probe found no answer either.
    pub(super) fn missed(&self, problem: String) {
        let _state = self.state.lock();
        self.belief.send_if_modified(|belief| {
            // An answer to another request says more than a probe that was sent before.
            let changed = *belief != Belief::Answers;
            if changed {
                *belief = Belief::Away(problem.into());
            }
            changed
        });
    }

    /// An answer came. True if it refuses the credentials and the caller has to look for new ones.
    pub(super) fn answered(&self, refused: bool) -> bool {
        let mut state = self.state.lock();
        state.refused = refused;
        let look = refused && !std::mem::replace(&mut state.looking, true);
        let back = self.belief.send_if_modified(|belief| std::mem::replace(belief, Belief::Answers) != Belief::Answers);
        drop(state);
        if back {
            self.signal_retry();
        }
        look
    }

    /// Whether whoever probes may stop; if so, the next loss begins new probes.
    pub(super) fn stop_probing(&self) -> bool {
        let mut state = self.state.lock();
        let stop = *self.belief.borrow() == Belief::Answers;
        state.probing &= !stop;
        stop
    }

    /// Whether whoever looks for credentials may stop; if so, the next refusal begins a new search.
    pub(super) fn stop_looking(&self, found: bool) -> bool {
        let mut state = self.state.lock();
        let stop = found || !state.refused;
        state.looking &= !stop;
        stop
    }

    /// Nobody probes any more.
    pub(super) fn leave_probing(&self) {
        self.state.lock().probing = false;
    }

    /// Nobody looks for credentials any more.
    pub(super) fn leave_looking(&self) {
        self.state.lock().looking = false;
    }

    /// Something that failed may work now.
    pub(super) fn signal_retry(&self) {
        self.state.lock().turns = [Instant::now(); 2];
        self.retries.send_modify(|retries| *retries += 1);
    }

    /// Changes whenever something that failed may work now.
    pub(crate) fn retries(&self) -> watch::Receiver<u64> {
        self.retries.subscribe()
    }

    /// Something that was refused works now: others that were refused should try again.
    pub(crate) fn signal_success(&self) {
        let mut state = self.state.lock();
        if state.sign.is_none_or(|last| last.elapsed() >= CALM) {
            state.sign = Some(Instant::now());
            drop(state);
            self.signal_retry();
        }
    }

    /// A watch found the server's versions below what it knew. Said once, however many watches find it.
    pub(crate) fn went_back(&self, url: &str, known: u64, found: u64) {
        let mut state = self.state.lock();
        if state.rewind.is_some_and(|(noticed, _)| noticed.elapsed() < SAME_REWIND) {
            return;
        }
        state.rewinds += 1;
        let rewind = Rewind { at: SystemTime::now(), known, found, count: state.rewinds };
        state.rewind = Some((Instant::now(), rewind));
        drop(state);
        tracing::warn!(
            server = url,
            known,
            found,
            "A server has gone back in time: it was restored from a backup or replaced, or a workspace has moved. Everything is listed again."
        );
        self.rewound.send_modify(|rewound| *rewound += 1);
    }

    /// The last time that the server's versions went back.
    pub(crate) fn rewind(&self) -> Option<Rewind> {
        self.state.lock().rewind.map(|(_, rewind)| rewind)
    }

    /// When the next of those that fail may try again, so that they are few together. Those that fail because of the server are
    /// woken by the first success, so their wait may be long.
    pub(crate) fn turn(&self, shared_cause: bool) -> Instant {
        let now = Instant::now();
        let mut state = self.state.lock();
        let next = &mut state.turns[usize::from(shared_cause)];
        let mut turn = now.max(*next);
        if !shared_cause {
            turn = turn.min(now + LONGEST_LINE);
        }
        *next = turn + SPACING;
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_fail_at_once_while_a_server_is_away_and_pass_when_it_answers() {
        let host = Host::default();
        assert!(host.admit().await.is_ok());
        assert!(host.lost(), "the first loss begins the probes");
        assert!(!host.lost(), "the next one finds them under way");
        assert!(!host.stop_probing());
        host.missed("refused".to_owned());
        assert_eq!(host.admit().await.unwrap_err().as_ref(), "refused");
        let mut retries = host.retries();
        assert!(!host.answered(false));
        assert!(retries.has_changed().unwrap() && host.admit().await.is_ok());
        retries.mark_unchanged();
        host.answered(false);
        assert!(!retries.has_changed().unwrap(), "answers as usual are no news");
        assert!(host.stop_probing() && host.lost(), "the next loss begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_in_doubt_is_waited_for_but_not_long() {
        let host = Arc::new(Host::default());
        assert!(host.lost());
        let waiting = tokio::spawn({
            let host = host.clone();
            async move { host.admit().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        host.missed("refused".to_owned());
        assert!(waiting.await.unwrap().is_err());
        host.answered(false);
        assert!(!host.lost(), "the probes have not been told yet");
        assert!(host.admit().await.is_ok(), "patience has an end");
    }

    #[tokio::test(start_paused = true)]
    async fn refused_credentials_are_looked_for_by_one() {
        let host = Host::default();
        assert!(host.answered(true) && !host.answered(true));
        assert!(!host.stop_looking(false) && host.stop_looking(true));
        assert!(host.answered(true), "refused again");
        host.answered(false);
        assert!(host.stop_looking(false), "accepted");
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_fail_take_turns() {
        let host = Host::default();
        let now = Instant::now();
        let turns: Vec<_> = (0..3).map(|_| host.turn(true) - now).collect();
        assert_eq!(turns, [0, 100, 200].map(Duration::from_millis));
        let last = (0..100).map(|_| host.turn(true) - now).last().unwrap();
        assert!(last > Duration::from_secs(9), "{last:?}");
        let last = (0..100).map(|_| host.turn(false) - now).last().unwrap();
        assert_eq!(last, LONGEST_LINE, "nobody tells them when to try again");
        host.signal_retry();
        assert_eq!(host.turn(true), now, "a new reason begins a new line");
    }

    #[tokio::test(start_paused = true)]
    async fn signs_are_given_now_and_then() {
        let host = Host::default();
        let retries = host.retries();
        for _ in 0..10 {
            host.signal_success();
        }
        assert_eq!(*retries.borrow(), 1);
        tokio::time::advance(CALM).await;
        host.signal_success();
        assert_eq!(*retries.borrow(), 2);
    }
}
