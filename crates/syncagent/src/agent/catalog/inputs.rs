//! What the watches have reported, and the entries that were built from it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use carrick_client::watch::Event;
use carrick_client::{Client, Error, Object};
use carrick_sync::executor::refusal::is_unserved;
use futures::{StreamExt, stream};
use serde_json::Value;

use super::build::{self, EntryCache, EntryResult, ListedResource};
use super::cache::WatchCache;
use super::definition::{Definition, fetch};
use super::entry::{Catalog, KeptStatus, Problem};
use super::kinds::{KindAnswer, ServedKinds, Wanted};
use crate::agent::health::Part;
use crate::api::{PublishedResource, VERSION};
use crate::rules::AgentDefaults;
use crate::rules::crd::Crd;

const CRD_OF_PUBLISHED_RESOURCES: &str = "publishedresources.syncagent.kcp.io";
/// How many CRDs are asked for at once. Each may take megabytes.
const READS: usize = 4;

/// What both watches have reported so far, and the entries that were built from it.
pub(super) struct Inputs {
    local: Client,
    defaults: AgentDefaults,
    resources: WatchCache<ListedResource>,
    crds: WatchCache<CrdHeader>,
    made: EntryCache,
    kept: KeptStatus,
}

/// What is kept of a CRD.
#[derive(Debug)]
struct CrdHeader {
    uid: Arc<str>,
    generation: i64,
    version: Arc<str>,
    /// The kind it defines; not known before it was read.
    kind: Option<String>,
}

impl Inputs {
    /// Nothing is known yet.
    pub(super) fn new(local: Client, defaults: AgentDefaults) -> Self {
        let (resources, crds) = (WatchCache::default(), WatchCache::default());
        Self { local, defaults, resources, crds, made: EntryCache::default(), kept: KeptStatus::default() }
    }

    /// Whether both watches have listed everything once.
    pub(super) fn is_complete(&self) -> bool {
        self.resources.synced() && self.crds.synced()
    }

    /// How many PublishedResources there are.
    pub(super) fn count(&self) -> usize {
        self.resources.objects().len()
    }

    /// Takes in an event of the watch of PublishedResources.
    pub(super) fn on_pr(&mut self, event: Event, part: &Part) {
        match event {
            Event::Begin => self.resources.begin(),
            Event::Listed(object) | Event::Applied(object) => self.resources.insert(&object.name, listed(&object)),
            Event::Deleted(object) => self.resources.remove(&object.name),
            Event::Synced => {
                self.resources.sync();
                part.works();
            }
            Event::Failing(error) if is_unserved(&error) => part.fails(&format!(
                "the service cluster does not know PublishedResources; install their CRD \
                 ({CRD_OF_PUBLISHED_RESOURCES}, part of the Helm chart)"
            )),
            Event::Failing(error) => part.fails(&local_problem(&error)),
            Event::Recovered if self.resources.synced() => part.works(),
            Event::Recovered | Event::WentBack { .. } => {}
        }
    }

    /// Takes in an event of the watch of CRDs.
    pub(super) fn on_crd(&mut self, event: Event, part: &Part) {
        match event {
            Event::Begin => self.crds.begin(),
            Event::Listed(object) | Event::Applied(object) => {
                let Object { uid, generation, resource_version: version, .. } = &object;
                let known = self.crds.objects().get(&*object.name);
                // The kind is part of the spec, which stays the same within a generation.
                let known = known.filter(|known| known.uid == *uid && known.generation == *generation);
                let kind = known.and_then(|known| known.kind.clone());
                let header = CrdHeader { uid: uid.clone(), generation: *generation, version: version.clone(), kind };
                self.crds.insert(&object.name, header);
            }
            Event::Deleted(object) => self.crds.remove(&object.name),
            Event::Synced => {
                self.crds.sync();
                part.works();
            }
            Event::Failing(error) => part.fails(&local_problem(&error)),
            Event::Recovered if self.crds.synced() => part.works(),
            Event::WentBack { .. } => {
                // A version or a generation may come back with another content: all are read again.
                self.crds.values_mut().for_each(|known| known.kind = None);
                self.made = EntryCache::default();
            }
            Event::Recovered => {}
        }
    }

    /// Reads the CRDs that new entries are to be built from, one after the other.
    pub(super) async fn read_missing(&mut self) -> Result<(), Error> {
        let resources = self.resources.objects();
        self.made.retain(|name| resources.contains_key(name));
        let local = self.local.clone();
        let mut reads = stream::iter(self.missing())
            .map(|name| {
                let local = &local;
                async move { (fetch(local, &name).await, name) }
            })
            .buffered(READS);
        while let Some((object, name)) = reads.next().await {
            match object? {
                Some(object) => self.take(&name, &object),
                // The watch is about to report that.
                None => self.crds.remove(&name),
            }
        }
        Ok(())
    }

    /// Names of CRDs that have to be read.
    fn missing(&self) -> Vec<String> {
        let mut wanted: BTreeMap<(&str, &str), Vec<&Arc<PublishedResource>>> = BTreeMap::new();
        let mut groups = HashSet::new();
        for pr in self.readable() {
            let resource = &pr.spec.resource;
            wanted.entry((&resource.api_group, &resource.kind)).or_default().push(pr);
            groups.insert(resource.api_group.as_str());
        }
        let missing = self.crds.objects().iter().filter(|(name, header)| match &header.kind {
            None => *name == CRD_OF_PUBLISHED_RESOURCES || groups.contains(group_of(name)),
            Some(kind) => {
                let prs = wanted.get(&(group_of(name), kind.as_str())).into_iter().flatten();
                prs.into_iter().any(|pr| !self.made.is_current(pr, &header.version))
            }
        });
        missing.map(|(name, _)| name.clone()).collect()
    }

    /// Builds the entries for a CRD.
    fn take(&mut self, name: &str, object: &Object) {
        if name == CRD_OF_PUBLISHED_RESOURCES {
            self.kept = kept(object);
        }
        let kind = object.decode::<Kind>().unwrap_or_default().spec.names.kind;
        let version = object.resource_version.clone();
        let concerned: Vec<_> = {
            let concerned = self.readable().filter(|pr| {
                let wanted = &pr.spec.resource;
                wanted.kind == kind && wanted.api_group == group_of(name) && !self.made.is_current(pr, &version)
            });
            concerned.cloned().collect()
        };
        if !concerned.is_empty() {
            let crd = Crd::from_text(&object.bytes());
            let definition = Definition::Crd(name.to_owned());
            for pr in concerned {
                self.made.make(&pr, &version, &crd, &definition, &self.defaults);
            }
        }
        let (uid, generation) = (object.uid.clone(), object.generation);
        if let Some(known) = self.crds.get_mut(name) {
            *known = CrdHeader { uid, generation, version, kind: Some(kind) };
        }
    }

    /// Published kinds that no CRD defines.
    pub(super) fn without_crd(&self) -> BTreeSet<Wanted> {
        let defined = self.defined();
        let wanted = self.readable().map(|pr| &pr.spec.resource);
        let wanted = wanted.filter(|wanted| !defined.contains_key(&(&*wanted.api_group, &*wanted.kind)));
        wanted.map(|wanted| (wanted.api_group.clone(), wanted.kind.clone())).collect()
    }

    /// The catalog of what is known now.
    pub(super) fn catalog(&mut self, previous: &Catalog, kinds: &ServedKinds) -> Catalog {
        self.take_served(kinds);
        let defined = self.defined();
        let outcomes = self.resources.objects().iter().map(|(name, listed)| {
            let outcome = match &listed.pr {
                Err(problem) => Err(build::unreadable(problem)),
                Ok(pr) => self.outcome(pr, &defined, kinds),
            };
            (name.as_str(), outcome)
        });
        let outcomes = outcomes.collect();
        let mut catalog = build::build(previous, self.resources.objects(), &outcomes);
        catalog.kept = self.kept;
        catalog
    }

    fn outcome(
        &self,
        pr: &Arc<PublishedResource>,
        defined: &BTreeMap<(&str, &str), &CrdHeader>,
        kinds: &ServedKinds,
    ) -> EntryResult {
        let wanted = &pr.spec.resource;
        let version = match defined.get(&(&*wanted.api_group, &*wanted.kind)) {
            Some(header) => &*header.version,
            None => match kinds.answer(&wanted.api_group, &wanted.kind) {
                Some(KindAnswer::Served(described)) => &described.version,
                Some(KindAnswer::Absent) => return Err(build::not_found(pr)),
                Some(KindAnswer::Failed(problem) | KindAnswer::Unanswered(problem)) => {
                    let message = format!("failed to discover resource defined in PublishedResource: {problem}");
                    return Err(Problem { reason: "DiscoveryFailed", message });
                }
                Some(KindAnswer::HasCrd) | None => return Err(build::pending(pr)),
            },
        };
        self.made.get(pr, version).unwrap_or_else(|| Err(build::pending(pr)))
    }

    /// Builds the entries for kinds without a CRD.
    fn take_served(&mut self, kinds: &ServedKinds) {
        let defined = self.defined();
        let mut changed = Vec::new();
        for pr in self.readable() {
            let wanted = &pr.spec.resource;
            if let Some(KindAnswer::Served(described)) = kinds.answer(&wanted.api_group, &wanted.kind)
                && !defined.contains_key(&(&*wanted.api_group, &*wanted.kind))
                && !self.made.is_current(pr, &described.version)
            {
                changed.push((Arc::clone(pr), described));
            }
        }
        drop(defined);
        for (pr, described) in changed {
            let (crd, definition) = (Crd::from_text(&described.text), Definition::Served(described.text.clone()));
            self.made.make(&pr, &described.version, &crd, &definition, &self.defaults);
        }
    }

    /// CRDs that were read, by the kind they define; of two for one kind, the first by name.
    fn defined(&self) -> BTreeMap<(&str, &str), &CrdHeader> {
        let mut defined = BTreeMap::new();
        for (name, header) in self.crds.objects() {
            if let Some(kind) = &header.kind {
                defined.entry((group_of(name), kind.as_str())).or_insert(header);
            }
        }
        defined
    }

    /// PublishedResources that can be read.
    fn readable(&self) -> impl Iterator<Item = &Arc<PublishedResource>> {
        self.resources.objects().values().filter_map(|listed| listed.pr.as_ref().ok())
    }
}

/// The group in the name of a CRD, which is always `<plural>.<group>`.
fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

/// The few fields that are read of a CRD that nobody publishes.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Kind {
    spec: KindSpec,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct KindSpec {
    names: KindNames,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct KindNames {
    kind: String,
}

fn listed(object: &Object) -> ListedResource {
    let created = object.value()["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned();
    let pr = object.decode::<PublishedResource>().map(Arc::new).map_err(|error| error.to_string());
    ListedResource { created, pr }
}

/// What the CRD of PublishedResources keeps of a status instead of dropping it.
fn kept(crd: &Object) -> KeptStatus {
    let crd = crd.value();
    let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let version = versions.iter().find(|version| version["name"] == VERSION).unwrap_or(&Value::Null);
    let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    let keeps = |field: &str| status[field].is_object();
    KeptStatus { conditions: keeps("conditions"), counts: keeps("objects"), serving: keeps("servedFor") }
}

/// What is wrong with the service cluster, in words.
pub(super) fn local_problem(error: &Error) -> String {
    let hint = match error.status().map(|status| status.code) {
        Some(401) => "; the credentials for the service cluster are not accepted, renew them",
        Some(403) => "; grant the agent get, list and watch on this kind",
        None if error.is_untrusted() => {
            "; the CA in the kubeconfig is not the one that has signed the service cluster's certificate: correct certificate-authority-data"
        }
        None if error.is_transient() => "; is the service cluster running, and does the kubeconfig name its address?",
        _ => "",
    };
    format!("{error}{hint}")
}
