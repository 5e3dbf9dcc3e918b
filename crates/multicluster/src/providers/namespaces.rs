//! Namespaces as clusters.

use std::collections::VecDeque;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Resource};
use futures::StreamExt;
use futures::stream::BoxStream;

use super::engagements::Engagements;
use super::known_objects::{KnownObjects, ObjectChange};
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::{FleetEvent, Gone};
use crate::name::{ClusterName, EndpointId};
use crate::provider::Provider;

/// The endpoint, and what fails when namespaces cannot be seen.
const SOURCE: &str = "namespaces";

/// Treats every namespace of a cluster as a cluster of its own: to try things out, or where namespaces are the tenants.
///
/// One watch per kind serves them all. The client of each is the whole cluster's, with the namespace as its default.
///
/// ```
/// # use carrick_multicluster::providers::Namespaces;
/// # fn provider(client: kube::Client) -> Namespaces {
/// Namespaces::new(client).labels("tenant=true")
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Namespaces {
    client: Client,
    options: WatchOptions,
}

impl Namespaces {
    /// All namespaces of a cluster.
    pub fn new(client: impl Into<Client>) -> Self {
        Self { client: client.into(), options: WatchOptions::default() }
    }

    /// Only namespaces with these labels.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.options.select.label_selector = Some(selector.into());
        self
    }
}

impl Provider for Namespaces {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let resource = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
        let namespaces = watch(self.client.clone(), resource, self.options.clone()).boxed();
        let id = EndpointId::new(SOURCE);
        let up = FleetEvent::EndpointUp(Endpoint::new(&*id, self.client.clone(), ClusterKey::Namespace));
        let events = Events {
            client: self.client.clone(),
            id,
            namespaces,
            known: KnownObjects::default(),
            engagements: Engagements::default(),
            synced: false,
            pending: VecDeque::from([up]),
        };
        futures::stream::unfold(events, |mut events| async move {
            let event = events.next().await?;
            Some((event, events))
        })
        .boxed()
    }
}

/// What comes next on the stream of the provider.
struct Events {
    client: Client,
    id: EndpointId,
    namespaces: BoxStream<'static, Event>,
    known: KnownObjects,
    engagements: Engagements,
    /// Whether the first list was complete.
    synced: bool,
    pending: VecDeque<FleetEvent>,
}

impl Events {
    async fn next(&mut self) -> Option<FleetEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            match self.namespaces.next().await? {
                Event::Failing(error) => return Some(FleetEvent::Failing { source: SOURCE.into(), error }),
                Event::Recovered => return Some(FleetEvent::Recovered { source: SOURCE.into() }),
                event => {
                    for change in self.known.apply(event) {
                        let event = self.on_change(change);
                        self.pending.extend(event);
                    }
                }
            }
        }
    }

    fn on_change(&mut self, change: ObjectChange) -> Option<FleetEvent> {
        match change {
            ObjectChange::Present(namespace) => {
                let name = ClusterName::new(namespace.name).ok().filter(|name| !self.engagements.is_engaged(name))?;
                let client = self.client.with_default_namespace(&name);
                Some(self.engagements.engage(name, self.id.clone(), client, None))
            }
            ObjectChange::Gone((_, name)) => self.engagements.disengage(&ClusterName::new(name).ok()?, Gone::Removed),
            ObjectChange::Complete => (!std::mem::replace(&mut self.synced, true)).then_some(FleetEvent::Synced),
        }
    }
}
