//! Namespaces that pose as clusters.

use std::collections::VecDeque;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Resource};
use futures::StreamExt;
use futures::stream::BoxStream;

use super::roll::{Entry, Roll};
use super::teller::Teller;
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::{FleetEvent, Gone};
use crate::name::{ClusterName, EndpointId};
use crate::provider::Provider;

/// The endpoint, and what fails when namespaces cannot be seen.
const SOURCE: &str = "namespaces";

/// Every namespace of a cluster poses as a cluster of its own: to try things out, or where namespaces are the tenants.
///
/// One watch per kind serves them all. The client of each is the whole cluster's, with the namespace as its default.
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
        let state = State {
            client: self.client.clone(),
            id,
            namespaces,
            roll: Roll::default(),
            teller: Teller::default(),
            synced: false,
            ready: VecDeque::from([up]),
        };
        futures::stream::unfold(state, |mut state| async move {
            let event = state.next().await?;
            Some((event, state))
        })
        .boxed()
    }
}

struct State {
    client: Client,
    id: EndpointId,
    namespaces: BoxStream<'static, Event>,
    roll: Roll,
    teller: Teller,
    synced: bool,
    ready: VecDeque<FleetEvent>,
}

impl State {
    async fn next(&mut self) -> Option<FleetEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match self.namespaces.next().await? {
                Event::Failing(error) => return Some(FleetEvent::Failing { source: SOURCE.into(), error }),
                Event::Recovered => return Some(FleetEvent::Recovered { source: SOURCE.into() }),
                event => {
                    for entry in self.roll.take_in(event) {
                        let event = self.tell(entry);
                        self.ready.extend(event);
                    }
                }
            }
        }
    }

    fn tell(&mut self, entry: Entry) -> Option<FleetEvent> {
        match entry {
            Entry::Present(namespace) => {
                let name = ClusterName::new(namespace.name).ok().filter(|name| !self.teller.is_engaged(name))?;
                let client = self.client.with_default_namespace(&name);
                Some(self.teller.engage(name, self.id.clone(), client, None))
            }
            Entry::Gone((_, name)) => self.teller.disengage(&ClusterName::new(name).ok()?, Gone::Removed),
            Entry::Complete => (!std::mem::replace(&mut self.synced, true)).then_some(FleetEvent::Synced),
        }
    }
}
