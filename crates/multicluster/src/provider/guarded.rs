//! A provider whose panics end nothing but its current stream.

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Error;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::Provider;
use crate::event::{FleetEvent, Gone};
use crate::guard::{caught, panic_message};
use crate::name::{ClusterName, EndpointId};

/// Pauses before a provider that panicked is asked for another stream: the first one, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// What fails then.
const SOURCE: &str = "the provider";

/// The events of a provider. If its stream panics, that is reported as an outage and another stream is asked for, which reports the whole fleet;
/// what it leaves out has left meanwhile.
pub(crate) fn guarded(provider: Arc<dyn Provider>) -> BoxStream<'static, FleetEvent> {
    let mut guarded = Guarded {
        provider,
        events: None,
        pause: Duration::ZERO,
        pending: VecDeque::new(),
        known: KnownFleet::default(),
        before: None,
    };
    guarded.ask();
    futures::stream::unfold(guarded, |mut guarded| async move {
        let event = guarded.next().await?;
        Some((event, guarded))
    })
    .boxed()
}

struct Guarded {
    provider: Arc<dyn Provider>,
    events: Option<BoxStream<'static, Result<FleetEvent, String>>>,
    /// Before the next stream is asked for.
    pause: Duration,
    pending: VecDeque<FleetEvent>,
    known: KnownFleet,
    /// What was reported before a panic and has not been reported again.
    before: Option<KnownFleet>,
}

/// The clusters and endpoints that a stream has reported.
#[derive(Default)]
struct KnownFleet {
    clusters: HashMap<ClusterName, u64>,
    endpoints: HashSet<EndpointId>,
}

impl Guarded {
    async fn next(&mut self) -> Option<FleetEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let Some(events) = &mut self.events else {
                tokio::time::sleep(self.pause).await;
                self.ask();
                continue;
            };
            match events.next().await? {
                Ok(event) => self.take_in(event),
                Err(message) => self.panicked(&message),
            }
        }
    }

    fn ask(&mut self) {
        match caught(|| self.provider.events()) {
            Ok(events) => {
                let events = AssertUnwindSafe(events).catch_unwind();
                self.events = Some(events.map(|event| event.map_err(|panic| panic_message(&*panic))).boxed());
            }
            Err(message) => self.panicked(&message),
        }
    }

    fn panicked(&mut self, message: &str) {
        self.events = None;
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        let KnownFleet { clusters, endpoints } = std::mem::take(&mut self.known);
        let before = self.before.get_or_insert_default();
        before.clusters.extend(clusters);
        before.endpoints.extend(endpoints);
        let error = Error::Request { request: SOURCE.to_owned(), problem: format!("it panicked: {message}") };
        self.pending.push_back(FleetEvent::Failing { source: SOURCE.into(), error });
    }

    fn take_in(&mut self, event: FleetEvent) {
        match &event {
            FleetEvent::EndpointUp(endpoint) => {
                self.known.endpoints.insert(endpoint.id.clone());
            }
            FleetEvent::EndpointDown(id) => {
                self.known.endpoints.remove(id);
            }
            FleetEvent::Engage(cluster) => {
                self.known.clusters.insert(cluster.name().clone(), cluster.epoch());
            }
            FleetEvent::Disengage { name, .. } => {
                self.known.clusters.remove(name);
            }
            FleetEvent::Synced => self.catch_up(),
            _ => {}
        }
        self.pending.push_back(event);
    }

    /// Everything has been known again: what has not is gone.
    fn catch_up(&mut self) {
        let Some(KnownFleet { clusters, endpoints }) = self.before.take() else { return };
        let gone = clusters.into_iter().filter(|(name, _)| !self.known.clusters.contains_key(name));
        self.pending.extend(gone.map(|(name, epoch)| FleetEvent::Disengage { name, epoch, why: Gone::Removed }));
        let gone = endpoints.into_iter().filter(|id| !self.known.endpoints.contains(id));
        self.pending.extend(gone.map(FleetEvent::EndpointDown));
        self.pending.push_back(FleetEvent::Recovered { source: SOURCE.into() });
        self.pause = Duration::ZERO;
    }
}
