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
use futures::stream::{AbortHandle, BoxStream, SelectAll, abortable};
use futures::{Stream, StreamExt};

use crate::fleet::FleetEvent;
use engagement::Engagement;

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

    /// Watches the fleet. The stream ends only when it is dropped.
    ///
    /// A slice without endpoints, or no slice at all, is a fleet without clusters.
    pub fn events(&self) -> impl Stream<Item = FleetEvent> + Send + 'static {
        futures::stream::unfold(Fleet::new(self), |mut fleet| async move {
            let event = fleet.next().await?;
            Some((event, fleet))
        })
    }
}

/// Where a watch event came from.
#[derive(Clone)]
enum Source {
    Slice,
    Endpoint(Arc<str>),
}

struct Fleet {
    workspace: Client,
    watches: SelectAll<BoxStream<'static, (Source, Event)>>,
    endpoints: HashMap<Arc<str>, AbortHandle>,
    engagement: Engagement,
    ready: VecDeque<FleetEvent>,
}

impl Fleet {
    fn new(provider: &ApiExport) -> Self {
        let options = WatchOptions::fields(format!("metadata.name={}", provider.slice));
        let slice = watch(provider.workspace.clone(), resource(API_EXPORT_ENDPOINT_SLICE), options);
        let mut watches = SelectAll::new();
        watches.push(slice.map(|event| (Source::Slice, event)).boxed());
        Self {
            workspace: provider.workspace.clone(),
            watches,
            endpoints: HashMap::new(),
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
            let events = match (source, event) {
                (source, Event::Failing(error)) => vec![FleetEvent::Failing { source: self.url_of(source), error }],
                (source, Event::Recovered) => vec![FleetEvent::Recovered { source: self.url_of(source) }],
                (Source::Slice, event) => self.engagement.on_slice(event),
                (Source::Endpoint(url), event) => self.engagement.on_binding(&url, event),
            };
            for event in events {
                self.ready.push_back(event.clone());
                self.follow(&event);
            }
        }
    }

    /// Opens and closes the watches of endpoints.
    fn follow(&mut self, event: &FleetEvent) {
        match event {
            FleetEvent::EndpointUp { url } => match self.workspace.at_url(&in_endpoint(url, "*")) {
                Ok(client) => {
                    let source = Source::Endpoint(url.clone());
                    let bindings = watch(client, resource(API_BINDING), WatchOptions::default());
                    let (bindings, handle) = abortable(bindings.map(move |event| (source.clone(), event)));
                    self.watches.push(bindings.boxed());
                    self.endpoints.insert(url.clone(), handle);
                }
                Err(problem) => {
                    let error = Error::Request { request: format!("watch of {url}"), problem: problem.to_string() };
                    self.ready.push_back(FleetEvent::Failing { source: url.clone(), error });
                }
            },
            FleetEvent::EndpointDown { url } => {
                if let Some(handle) = self.endpoints.remove(url) {
                    handle.abort();
                }
            }
            _ => {}
        }
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
