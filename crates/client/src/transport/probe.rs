//! Asking a server that does not answer, and looking for credentials that it accepts.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::{Request, Uri};
use kube::client::Body;
use tokio::time::Instant;

use super::host::Host;
use super::{Shared, Transport};

/// The pause between two probes: the first one, doubled from probe to probe up to the longest.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(1);
/// How many probes may be under way at once: one that hangs must not keep the next one from being answered.
const AT_ONCE: usize = 4;
/// How long a probe may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two looks for credentials while those known are refused.
const LOOK: Duration = Duration::from_secs(1);
/// How many looks go by before a plugin is asked for others.
const LOOKS_PER_PLUGIN: u32 = 4;

/// Probes a server until it answers, whatever it answers, or until nobody uses the pool any more.
pub(super) async fn until_answered(pool: Weak<Shared>, host: Arc<Host>, url: Uri) {
    let mut end = CutOff { host: &host, leave: Some(Host::leave_probing) };
    let (mut due, mut pause) = (Instant::now(), FIRST);
    let mut running = FuturesUnordered::new();
    while !host.stop_probing() {
        tokio::select! {
            () = tokio::time::sleep_until(due), if running.len() < AT_ONCE => {
                let Some(shared) = pool.upgrade() else { return };
                running.push(ask(Transport { shared }, url.clone()));
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

async fn ask(transport: Transport, url: Uri) -> Result<(), String> {
    let request = Request::get(url).body(Body::empty()).map_err(|error| error.to_string())?;
    let answer = tokio::time::timeout(TIMEOUT, transport.probe(request)).await;
    let answer = answer.map_err(|_| format!("no answer within {} s", TIMEOUT.as_secs()))?;
    // Whoever refuses to tell its version answers all the same.
    answer.map(drop).map_err(|error| crate::error::chain(&*error))
}

/// Looks for new credentials until there are some, the old ones are accepted after all, or nobody uses the pool any more.
pub(super) async fn until_renewed(pool: Weak<Shared>, host: Arc<Host>) {
    let mut end = CutOff { host: &host, leave: Some(Host::leave_looking) };
    for look in 1_u32.. {
        tokio::time::sleep(LOOK).await;
        let Some(shared) = pool.upgrade() else { return };
        let transport = Transport { shared };
        let before = transport.credentials();
        transport.renew(LOOK / 2).await;
        if look % LOOKS_PER_PLUGIN == 0 {
            transport.renew_by_plugin().await;
        }
        if host.stop_looking(transport.credentials() != before) {
            end.leave = None;
            return;
        }
    }
}

/// Makes room for a successor, should the runtime end before the work is done.
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
