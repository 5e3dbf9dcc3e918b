//! The fleet of one kcp APIExport: every workspace that binds it.
//!
//! ```text
//!   APIExportEndpointSlice ──▶ endpoint URLs, one per shard
//!                                   │ watch <url>/clusters/* for APIBindings
//!                                   ▼
//!   first Ready binding of a cluster ──▶ Engaged        last one gone ──▶ Disengaged
//! ```

mod engagement;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Error, Resource};
use carrick_kcp::kinds::{API_BINDING, API_EXPORT_ENDPOINT_SLICE, Kind};
use carrick_kcp::url::in_endpoint;
use futures::StreamExt;
use futures::stream::{AbortHandle, BoxStream, SelectAll, abortable};

use crate::cluster::Cluster;
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::FleetEvent;
use crate::name::{ClusterName, EndpointId};
use crate::provider::Provider;
use engagement::{Engagement, Told};

/// Provider of the clusters that bind an APIExport.
#[derive(Clone, Debug)]
pub struct ApiExport {
    workspace: Client,
    slice: String,
}

impl ApiExport {
    /// The clusters behind an APIExportEndpointSlice, given a client of the slice's workspace.
    pub fn new(workspace: Client, slice: impl Into<String>) -> Self {
        Self { workspace, slice: slice.into() }
    }
}

impl Provider for ApiExport {
    /// A slice without endpoints, or no slice at all, is a fleet without clusters.
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let events = futures::stream::unfold(Watches::new(self), |mut watches| async move {
            let event = watches.next().await?;
            Some((event, watches))
        });
        events.boxed()
    }
}

/// Where a watch event came from.
#[derive(Clone)]
enum Source {
    Slice,
    Endpoint(Arc<str>),
}

struct Watches {
    workspace: Client,
    watches: SelectAll<BoxStream<'static, (Source, Event)>>,
    endpoints: HashMap<Arc<str>, AbortHandle>,
    /// The epoch under which each cluster is engaged.
    epochs: HashMap<Arc<str>, u64>,
    engagement: Engagement,
    ready: VecDeque<FleetEvent>,
}

impl Watches {
    fn new(provider: &ApiExport) -> Self {
        let options = WatchOptions::fields(format!("metadata.name={}", provider.slice));
        let slice = watch(provider.workspace.clone(), resource(API_EXPORT_ENDPOINT_SLICE), options);
        let mut watches = SelectAll::new();
        watches.push(slice.map(|event| (Source::Slice, event)).boxed());
        Self {
            workspace: provider.workspace.clone(),
            watches,
            endpoints: HashMap::new(),
            epochs: HashMap::new(),
            engagement: Engagement::default(),
            ready: VecDeque::new(),
        }
    }

    async fn next(&mut self) -> Option<FleetEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let (source, event) = self.watches.next().await?;
            let told = match (source, event) {
                (source, Event::Failing(error)) => {
                    self.ready.push_back(FleetEvent::Failing { source: self.url_of(source), error });
                    continue;
                }
                (source, Event::Recovered) => {
                    self.ready.push_back(FleetEvent::Recovered { source: self.url_of(source) });
                    continue;
                }
                (Source::Slice, event) => self.engagement.on_slice(event),
                (Source::Endpoint(url), event) => self.engagement.on_binding(&url, event),
            };
            for told in told {
                match self.tell(told) {
                    Ok(event) => self.ready.extend(event),
                    Err((source, error)) => self.ready.push_back(FleetEvent::Failing { source, error }),
                }
            }
        }
    }

    /// Turns names into clients, and follows endpoints with watches of their bindings.
    fn tell(&mut self, told: Told) -> Result<Option<FleetEvent>, (Arc<str>, Error)> {
        Ok(Some(match told {
            Told::Up(url) => {
                let client = self.client(&url, "*")?;
                let source = Source::Endpoint(url.clone());
                let bindings = watch(client.clone(), resource(API_BINDING), WatchOptions::default());
                let (bindings, handle) = abortable(bindings.map(move |event| (source.clone(), event)));
                self.watches.push(bindings.boxed());
                self.endpoints.insert(url.clone(), handle);
                FleetEvent::EndpointUp(Endpoint::new(url, client, ClusterKey::KCP))
            }
            Told::Down(url) => {
                let Some(handle) = self.endpoints.remove(&url) else { return Ok(None) };
                handle.abort();
                FleetEvent::EndpointDown(url.into())
            }
            Told::Engaged { cluster, endpoint, path } => {
                let Ok(name) = ClusterName::new(cluster.clone()) else { return Ok(None) };
                let client = self.client(&endpoint, &name)?;
                let mut engaged = Cluster::new(name, EndpointId::new(endpoint), client);
                if let Some(path) = path {
                    engaged = engaged.with_path(path);
                }
                self.epochs.insert(cluster, engaged.epoch());
                FleetEvent::Engage(engaged)
            }
            Told::Path { cluster, path } => {
                let Ok(name) = ClusterName::new(cluster) else { return Ok(None) };
                FleetEvent::Path { name, path }
            }
            Told::ApisChanged { cluster } => {
                let Ok(name) = ClusterName::new(cluster) else { return Ok(None) };
                FleetEvent::ApisChanged { name }
            }
            Told::Disengaged { cluster, why } => {
                let Some(epoch) = self.epochs.remove(&cluster) else { return Ok(None) };
                let Ok(name) = ClusterName::new(cluster) else { return Ok(None) };
                FleetEvent::Disengage { name, epoch, why }
            }
            Told::Synced => FleetEvent::Synced,
        }))
    }

    fn client(&self, endpoint: &Arc<str>, cluster: &str) -> Result<Client, (Arc<str>, Error)> {
        self.workspace.at_url(&in_endpoint(endpoint, cluster)).map_err(|problem| {
            let request = format!("requests to {endpoint}");
            (endpoint.clone(), Error::Request { request, problem: problem.to_string() })
        })
    }

    fn url_of(&self, source: Source) -> Arc<str> {
        match source {
            Source::Slice => self.workspace.url().into(),
            Source::Endpoint(url) => url,
        }
    }
}

fn resource(kind: Kind) -> Resource {
    Resource::cluster_wide(kind.group, kind.version, kind.kind, kind.plural)
}
