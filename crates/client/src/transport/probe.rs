//! Probes: asking a server that does not answer, and looking for credentials that it accepts.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::Uri;
use tokio::time::Instant;

use super::host::Host;

/// A connection pool, as far as probes need it.
pub(super) trait Probed: Send {
    /// Asks for a URL, whatever is known about its server; any answer will do.
    fn ask(&self, url: Uri) -> impl Future<Output = Result<(), String>> + Send;

    /// Looks for other credentials, unless somebody did within this interval.
    fn renew(&self, interval: Duration) -> impl Future<Output = ()> + Send;

    /// Asks the credentials plugin for other credentials, if there is one.
    fn renew_by_plugin(&self) -> impl Future<Output = ()> + Send;

    /// Which set of credentials is in use.
    fn credentials(&self) -> u64;
}

/// The pause between two probes: the first one, doubled each time up to the longest.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(1);
/// How many probes may be under way at once: one that hangs must not keep the next one from being answered.
const AT_ONCE: usize = 4;
/// How long a probe may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two searches for credentials while the known ones are refused.
const LOOK: Duration = Duration::from_secs(1);
/// After how many searches a plugin is asked for other credentials.
const LOOKS_PER_PLUGIN: u32 = 4;

/// Probes a server until it answers, whatever it answers, or until nobody uses the pool any more.
pub(super) async fn until_answered<P: Probed>(pool: impl Fn() -> Option<P>, host: Arc<Host>, url: Uri) {
    let mut end = CutOff { host: &host, leave: Some(Host::leave_probing) };
    let (mut due, mut pause) = (Instant::now(), FIRST);
    let mut running = FuturesUnordered::new();
    while !host.stop_probing() {
        tokio::select! {
            () = tokio::time::sleep_until(due), if running.len() < AT_ONCE => {
                let Some(pool) = pool() else { return };
                running.push(ask(pool, url.clone()));
                due = Instant::now() + pause;
                pause = (pause * 2).min(LONGEST);
            }
            Some(answer) = running.next() => match answer {
                // What an answer means is noted where it is received.
                Ok(()) => {}
                Err(problem) => host.missed(problem),
            },
        }
    }
    end.leave = None;
}

async fn ask(pool: impl Probed, url: Uri) -> Result<(), String> {
    let answer = tokio::time::timeout(TIMEOUT, pool.ask(url)).await;
    answer.map_err(|_| format!("no answer within {} s", TIMEOUT.as_secs()))?
}

/// Looks for new credentials until there are some, the old ones are accepted after all, or nobody uses the pool any more.
pub(super) async fn until_renewed<P: Probed>(pool: impl Fn() -> Option<P>, host: Arc<Host>) {
    let mut end = CutOff { host: &host, leave: Some(Host::leave_looking) };
    for look in 1_u32.. {
        tokio::time::sleep(LOOK).await;
        let Some(pool) = pool() else { return };
        let before = pool.credentials();
        pool.renew(LOOK / 2).await;
        if look % LOOKS_PER_PLUGIN == 0 {
            pool.renew_by_plugin().await;
        }
        if host.stop_looking(pool.credentials() != before) {
            end.leave = None;
            return;
        }
    }
}

/// Lets another task begin, should the runtime end before this one is done.
struct CutOff<'a> {
    host: &'a Host,
    leave: Option<fn(&Host)>,
}

impl Drop for CutOff<'_> {
    fn drop(&mut self) {
        if let Some(leave) = self.leave {
            leave(self.host);
        }
    }
}
