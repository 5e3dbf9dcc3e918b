//! The task that keeps the catalog up to date.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Error, ListOptions, Object, Resource};
use futures::{FutureExt, StreamExt};
use tokio::sync::watch::Sender;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::build::{Known, Listed, build};
use super::cache::Cache;
use super::kinds::{Kinds, Wanted};
use super::{Catalog, Problem};
use crate::agent::Timing;
use crate::agent::backoff::Backoff;
use crate::agent::health::{Health, Part};
use crate::agent::metrics::Metrics;
use crate::api::{GROUP, PublishedResource, VERSION};
use crate::rules::crd::Crd;

const CRD_OF_PUBLISHED_RESOURCES: &str = "publishedresources.syncagent.kcp.io";

/// PublishedResources as the client knows them.
pub(crate) fn published_resources() -> Resource {
    Resource::cluster_wide(GROUP, VERSION, "PublishedResource", "publishedresources")
}

/// CRDs as the client knows them.
pub(super) fn crds() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

/// What a catalog is made of.
pub(crate) struct Setup {
    /// The service cluster.
    pub local: Client,
    /// Label selector for PublishedResources; empty means all.
    pub selector: String,
    /// Name that marks what the agent owns.
    pub agent_name: String,
    /// How often to look at what no watch reports.
    pub timing: Timing,
}

/// Watches PublishedResources and CRDs and sends a new catalog whenever it may have changed.
pub(crate) async fn run(
    Setup { local, selector, agent_name, timing }: Setup,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    catalog: Sender<Arc<Catalog>>,
    stop: CancellationToken,
) {
    let pr_part = health.part("watch of PublishedResources");
    let crd_part = health.part("watch of CustomResourceDefinitions");
    let read_part = health.part("reading of published kinds");
    let select = ListOptions { label_selector: (!selector.is_empty()).then_some(selector), field_selector: None };
    let options = WatchOptions { select, ..WatchOptions::default() };
    let mut pr_events = pin!(watch(local.clone(), published_resources(), options));
    let mut crd_events = pin!(watch(local.clone(), crds(), WatchOptions::default()));
    let mut kinds = Kinds::new(timing);
    let mut shelf = Shelf { local, resources: Cache::default(), crds: Cache::default(), conditions: false };
    let mut backoff = Backoff::for_servers();
    let mut retry: Option<Instant> = None;
    loop {
        let again = async {
            match retry {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            Some(event) = pr_events.next() => shelf.on_pr(event, &pr_part),
            Some(event) = crd_events.next() => shelf.on_crd(event, &crd_part),
            () = kinds.changed() => {}
            () = again => {}
        }
        // What has arrived already is taken along, so that a list of a thousand objects is looked at once.
        while let Some(Some(event)) = pr_events.next().now_or_never() {
            shelf.on_pr(event, &pr_part);
        }
        while let Some(Some(event)) = crd_events.next().now_or_never() {
            shelf.on_crd(event, &crd_part);
        }
        if !(shelf.resources.synced() && shelf.crds.synced()) {
            continue;
        }
        let read = tokio::select! {
            () = stop.cancelled() => return,
            read = shelf.read_missing() => read,
        };
        retry = match read {
            Ok(()) => {
                read_part.works();
                backoff.reset();
                None
            }
            Err(error) => {
                read_part.fails(&local_problem(&error));
                Some(Instant::now() + backoff.pause())
            }
        };
        metrics.set_published_resources(shelf.resources.objects().len());
        kinds.want(&shelf.local, &shelf.without_crd());
        let known = shelf.crds.objects().iter().map(|(name, known)| (name.clone(), known.clone()));
        let known =
            known.filter(|(_, known)| shelf.is_wanted(&known.group, &known.kind)).chain(kinds.as_crds()).collect();
        let mut next = build(&catalog.borrow(), shelf.resources.objects(), &known, &agent_name);
        next.conditions = shelf.conditions;
        catalog.send_replace(Arc::new(next));
    }
}

/// What both watches have told.
struct Shelf {
    local: Client,
    resources: Cache<Listed>,
    crds: Cache<Known>,
    conditions: bool,
}

impl Shelf {
    fn on_pr(&mut self, event: Event, part: &Part) {
        match event {
            Event::Begin => self.resources.begin(),
            Event::Listed(object) | Event::Applied(object) => self.resources.insert(&object.name, listed(&object)),
            Event::Deleted(object) => self.resources.remove(&object.name),
            Event::Synced => {
                self.resources.sync();
                part.works();
            }
            Event::Failing(error) if error.is_not_found() => part.fails(&format!(
                "the service cluster does not know PublishedResources; install their CRD \
                 ({CRD_OF_PUBLISHED_RESOURCES}, part of the Helm chart)"
            )),
            Event::Failing(error) => part.fails(&local_problem(&error)),
            Event::Recovered if self.resources.synced() => part.works(),
            Event::Recovered => {}
        }
    }

    fn on_crd(&mut self, event: Event, part: &Part) {
        match event {
            Event::Begin => self.crds.begin(),
            Event::Listed(object) | Event::Applied(object) => {
                if &*object.name == CRD_OF_PUBLISHED_RESOURCES {
                    self.conditions = has_conditions(&object);
                }
                let known = self.known(&object);
                self.crds.insert(&object.name, known);
            }
            Event::Deleted(object) => self.crds.remove(&object.name),
            Event::Synced => {
                self.crds.sync();
                part.works();
            }
            Event::Failing(error) => part.fails(&local_problem(&error)),
            Event::Recovered if self.crds.synced() => part.works(),
            Event::Recovered => {}
        }
    }

    /// Header of a CRD, and its content if it is published.
    fn known(&self, object: &Object) -> Known {
        let header = object.decode::<Header>().unwrap_or_default();
        let Header { spec: HeaderSpec { group, names } } = header;
        let crd = self.is_wanted(&group, &names.kind).then(|| read(object));
        Known { group, kind: names.kind, resource_version: object.resource_version.to_string(), crd }
    }

    fn is_wanted(&self, group: &str, kind: &str) -> bool {
        self.resources.objects().values().any(|listed| {
            let wanted = listed.pr.as_ref().ok().map(|pr| &pr.spec.resource);
            wanted.is_some_and(|wanted| wanted.api_group == group && wanted.kind == kind)
        })
    }

    /// Published kinds that no CRD defines.
    fn without_crd(&self) -> BTreeSet<Wanted> {
        let wanted = self.resources.objects().values().filter_map(|listed| listed.pr.as_ref().ok());
        let wanted = wanted.map(|pr| (pr.spec.resource.api_group.clone(), pr.spec.resource.kind.clone()));
        let defined = |(group, kind): &Wanted| {
            self.crds.objects().values().any(|known| known.group == *group && known.kind == *kind)
        };
        wanted.filter(|kind| !defined(kind)).collect()
    }

    /// Reads the CRDs that are wanted but were not when the watch told about them, and forgets those nobody wants any more.
    async fn read_missing(&mut self) -> Result<(), Error> {
        let names: Vec<String> = self.crds.objects().keys().cloned().collect();
        for name in names {
            let Some(known) = self.crds.objects().get(&name) else { continue };
            let wanted = self.is_wanted(&known.group, &known.kind);
            if wanted == known.crd.is_some() {
                continue;
            }
            let fetched = if wanted { fetch(&self.local, &name).await? } else { None };
            if let Some(known) = self.crds.get_mut(&name) {
                known.crd = fetched.as_ref().map(read);
                if let Some(object) = fetched {
                    known.resource_version = object.resource_version.to_string();
                }
            }
        }
        Ok(())
    }
}

/// The little that is kept of CRDs nobody publishes.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Header {
    spec: HeaderSpec,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct HeaderSpec {
    group: String,
    names: HeaderNames,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct HeaderNames {
    kind: String,
}

fn read(object: &Object) -> Result<Arc<Crd>, Problem> {
    let crd = Crd::from_text(object.bytes()).map(Arc::new);
    crd.map_err(|error| Problem { reason: "InvalidCRD", message: error.to_string() })
}

fn listed(object: &Object) -> Listed {
    let created = object.value()["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned();
    let pr = object.decode::<PublishedResource>().map(Arc::new).map_err(|error| error.to_string());
    Listed { created, pr }
}

/// Whether the CRD of PublishedResources keeps `status.conditions` instead of dropping them.
fn has_conditions(crd: &Object) -> bool {
    let crd = crd.value();
    let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
    versions.iter().any(|version| {
        version["name"] == VERSION
            && version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["conditions"].is_object()
    })
}

/// Reads one CRD as text: the order of keys in defaults is part of the schema's name, so decoded JSON will not do.
pub(crate) async fn fetch(local: &Client, name: &str) -> Result<Option<Object>, Error> {
    let mut events = pin!(watch(local.clone(), crds(), WatchOptions::fields(format!("metadata.name={name}"))));
    while let Some(event) = events.next().await {
        match event {
            Event::Listed(object) | Event::Applied(object) => return Ok(Some(object)),
            Event::Failing(error) => return Err(error),
            Event::Synced | Event::Deleted(_) => return Ok(None),
            Event::Begin | Event::Recovered => {}
        }
    }
    Ok(None)
}

fn local_problem(error: &Error) -> String {
    let hint = match error.status().map(|status| status.code) {
        Some(401) => "; the credentials for the service cluster are not accepted, renew them",
        Some(403) => "; grant the agent get, list and watch on this kind",
        None if error.is_transient() => "; is the service cluster running, and does the kubeconfig name its address?",
        _ => "",
    };
    format!("{error}{hint}")
}
