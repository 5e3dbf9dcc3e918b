//! A provider whose panics end nothing.

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Error;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::Provider;
use crate::event::{FleetEvent, Gone};
use crate::guard::{caught, words};
use crate::name::{ClusterName, EndpointId};

/// Pauses before a provider that panicked is asked anew: the first one, doubled from try to try up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// What fails then.
const SOURCE: &str = "the provider";

/// The events of a provider. One that panics is told as failing and asked anew: its next stream tells the whole fleet, and what that leaves
/// out has left meanwhile.
pub(crate) fn steady(provider: Arc<dyn Provider>) -> BoxStream<'static, FleetEvent> {
    let mut steady = Steady {
        provider,
        events: None,
        pause: Duration::ZERO,
        ready: VecDeque::new(),
        told: Told::default(),
        before: None,
    };
    steady.ask();
    futures::stream::unfold(steady, |mut steady| async move {
        let event = steady.next().await?;
        Some((event, steady))
    })
    .boxed()
}

struct Steady {
    provider: Arc<dyn Provider>,
    events: Option<BoxStream<'static, Result<FleetEvent, String>>>,
    /// Before the next question.
    pause: Duration,
    ready: VecDeque<FleetEvent>,
    told: Told,
    /// What was told before a panic and has not been told again.
    before: Option<Told>,
}

/// Who takes part, as far as was told.
#[derive(Default)]
struct Told {
    clusters: HashMap<ClusterName, u64>,
    endpoints: HashSet<EndpointId>,
}

impl Steady {
    async fn next(&mut self) -> Option<FleetEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
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
                self.events = Some(events.map(|event| event.map_err(|panic| words(&*panic))).boxed());
            }
            Err(message) => self.panicked(&message),
        }
    }

    fn panicked(&mut self, message: &str) {
        self.events = None;
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        let Told { clusters, endpoints } = std::mem::take(&mut self.told);
        let before = self.before.get_or_insert_default();
        before.clusters.extend(clusters);
        before.endpoints.extend(endpoints);
        let error = Error::Request { request: SOURCE.to_owned(), problem: format!("it panicked: {message}") };
        self.ready.push_back(FleetEvent::Failing { source: SOURCE.into(), error });
    }

    fn take_in(&mut self, event: FleetEvent) {
        match &event {
            FleetEvent::EndpointUp(endpoint) => {
                self.told.endpoints.insert(endpoint.id.clone());
            }
            FleetEvent::EndpointDown(id) => {
                self.told.endpoints.remove(id);
            }
            FleetEvent::Engage(cluster) => {
                self.told.clusters.insert(cluster.name().clone(), cluster.epoch());
            }
            FleetEvent::Disengage { name, .. } => {
                self.told.clusters.remove(name);
            }
            FleetEvent::Synced => self.catch_up(),
            _ => {}
        }
        self.ready.push_back(event);
    }

    /// Everything has been told again: what has not is gone.
    fn catch_up(&mut self) {
        let Some(Told { clusters, endpoints }) = self.before.take() else { return };
        let gone = clusters.into_iter().filter(|(name, _)| !self.told.clusters.contains_key(name));
        self.ready.extend(gone.map(|(name, epoch)| FleetEvent::Disengage { name, epoch, why: Gone::Removed }));
        let gone = endpoints.into_iter().filter(|id| !self.told.endpoints.contains(id));
        self.ready.extend(gone.map(FleetEvent::EndpointDown));
        self.ready.push_back(FleetEvent::Recovered { source: SOURCE.into() });
        self.pause = Duration::ZERO;
    }
}
