//! Which clusters take part, decided from two kinds of objects alone: the one that lists endpoints, such as a slice, and those that
//! stand for clusters there, such as bindings. No client, no clock: times are given.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Object;
use carrick_client::watch::Event;
use carrick_kcp::PATH_ANNOTATION;

use crate::endpoint::ClusterKey;
use crate::event::{Gone, Lacks};

/// Time since any moment, the same for all calls.
pub(super) type Time = Duration;

/// A change of the fleet, in names only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FleetChange {
    /// An endpoint appeared.
    Up(Arc<str>),
    /// An endpoint is gone; its clusters have left before.
    Down(Arc<str>),
    /// A cluster takes part. FleetChange again, with the new endpoint, when it moves.
    Engaged { cluster: Arc<str>, endpoint: Arc<str>, path: Option<Arc<str>> },
    /// The path of an engaged cluster became known, or changed.
    Path { cluster: Arc<str>, path: Arc<str> },
    /// A cluster got other APIs than before.
    ApisChanged { cluster: Arc<str> },
    /// The consumer of an engaged cluster has not accepted claims.
    ClaimsOpen { cluster: Arc<str>, claims: Arc<str> },
    /// A cluster takes part no more.
    Disengaged { cluster: Arc<str>, why: Gone },
    /// An object that stands for an engaged cluster was seen.
    Met { cluster: Arc<str>, object: Object, stage: Stage },
    /// There is no endpoint to follow.
    Waiting(Lacks),
    /// Everything that existed at the start has been reported.
    Synced,
}

/// How far an object that stands for a cluster has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It counts from now on.
    Added,
    /// It has changed, or was listed again.
    Changed,
    /// It is gone; this was its last state.
    Removed,
}

type UrlsFn = Box<dyn Fn(&Object) -> Vec<String> + Send>;
type CountsFn = Box<dyn Fn(&Object, &str) -> bool + Send>;

/// What tells one kind of provider from another.
pub(super) struct Rules {
    /// The URLs of the endpoints that an object lists.
    pub(super) urls: UrlsFn,
    /// Whether an object at an endpoint makes its cluster take part. Once is enough: later answers do not matter.
    pub(super) counts: CountsFn,
    /// What an object says about the APIs of its cluster.
    pub(super) apis: Box<dyn Fn(&Object) -> String + Send>,
    /// Which claims an object leaves open, as a text; empty if there are none.
    pub(super) open_claims: Box<dyn Fn(&Object) -> String + Send>,
    /// The cluster an object stands for.
    pub(super) key: ClusterKey,
    /// How long clusters stay after their endpoint is gone: it may come back.
    pub(super) grace: Duration,
    /// Whether to report the objects themselves.
    pub(super) meet: bool,
}

/// The state of the fleet.
pub(super) struct Engagement {
    rules: Rules,
    endpoints: BTreeMap<Arc<str>, Endpoint>,
    /// Engaged clusters and the endpoint that serves each.
    clusters: HashMap<Arc<str>, Arc<str>>,
    /// Paths of the clusters that have bindings, where known.
    paths: HashMap<Arc<str>, Arc<str>>,
    slice_synced: bool,
    /// Whether the list of slices that is coming in held the slice.
    slice_listed: bool,
    told_synced: bool,
    /// What was missing when this was last reported; nothing once there was an endpoint.
    lacks: Option<Lacks>,
}

#[derive(Default)]
struct Endpoint {
    /// Bindings that have been ready once, by cluster and name.
    bindings: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Binding>>,
    generation: u64,
    synced: bool,
    /// Not listed any more; when its clusters leave.
    leaves: Option<Time>,
}

struct Binding {
    /// The list that last held the binding.
    generation: u64,
    /// What it says about APIs.
    apis: String,
    /// Which claims it leaves open.
    open_claims: String,
    /// Its last state, if that matters.
    object: Option<Object>,
}

impl Engagement {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            endpoints: BTreeMap::new(),
            clusters: HashMap::new(),
            paths: HashMap::new(),
            slice_synced: false,
            slice_listed: false,
            told_synced: false,
            lacks: None,
        }
    }

    /// Whether an endpoint is listed, and not just kept for a while.
    pub(super) fn is_listed(&self, url: &str) -> bool {
        self.endpoints.get(url).is_some_and(|endpoint| endpoint.leaves.is_none())
    }

    /// When something is due.
    pub(super) fn next_look(&self) -> Option<Time> {
        self.endpoints.values().filter_map(|endpoint| endpoint.leaves).min()
    }

    /// Lets go of the endpoints that did not come back in time.
    pub(super) fn on_time(&mut self, now: Time) -> Vec<FleetChange> {
        let due = self.endpoints.iter().filter(|(_, endpoint)| endpoint.leaves.is_some_and(|at| at <= now));
        let due: Vec<Arc<str>> = due.map(|(url, _)| url.clone()).collect();
        due.into_iter().flat_map(|url| self.drop_endpoint(&url)).collect()
    }

    /// Takes in an event of the watch of the slice.
    pub(super) fn on_slice(&mut self, event: Event, now: Time) -> Vec<FleetChange> {
        match event {
            Event::Begin => {
                self.slice_listed = false;
                Vec::new()
            }
            Event::Listed(slice) => {
                self.slice_listed = true;
                self.set_endpoints(&self.urls(&slice), now)
            }
            Event::Applied(slice) => {
                let changes = self.set_endpoints(&self.urls(&slice), now);
                self.with_lacks(changes, Lacks::Endpoints)
            }
            Event::Deleted(_) => {
                let changes = self.set_endpoints(&BTreeSet::new(), now);
                self.with_lacks(changes, Lacks::Object)
            }
            Event::Synced => {
                self.slice_synced = true;
                let changes = if self.slice_listed { Vec::new() } else { self.set_endpoints(&BTreeSet::new(), now) };
                let lacks = if self.slice_listed { Lacks::Endpoints } else { Lacks::Object };
                let mut changes = self.with_lacks(changes, lacks);
                changes.extend(self.synced());
                changes
            }
            Event::Failing(_) | Event::Recovered | Event::WentBack { .. } => Vec::new(),
        }
    }

    /// The same changes, and that there is nothing to follow if that is so now and was not reported.
    fn with_lacks(&mut self, mut changes: Vec<FleetChange>, lacks: Lacks) -> Vec<FleetChange> {
        let nothing = self.endpoints.values().all(|endpoint| endpoint.leaves.is_some());
        let lacks = nothing.then_some(lacks);
        if lacks != self.lacks {
            changes.extend(lacks.map(FleetChange::Waiting));
            self.lacks = lacks;
        }
        changes
    }

    /// Takes in an event of the watch of the bindings of an endpoint.
    pub(super) fn on_binding(&mut self, url: &Arc<str>, event: Event) -> Vec<FleetChange> {
        let Some(endpoint) = self.endpoints.get_mut(url) else { return Vec::new() };
        match event {
            Event::Begin => {
                endpoint.generation += 1;
                Vec::new()
            }
            Event::Listed(binding) | Event::Applied(binding) => {
                let Some(cluster) = self.rules.key.of(&binding).map(|name| name.to_arc()) else { return Vec::new() };
                let names = endpoint.bindings.entry(cluster.clone()).or_default();
                // A binding that counted once stays, whatever becomes of its conditions.
                let known = names.get(&binding.name).map(|known| (known.apis.clone(), known.open_claims.clone()));
                if known.is_none() && !(self.rules.counts)(&binding, url) {
                    if names.is_empty() {
                        endpoint.bindings.remove(&cluster);
                        return Vec::new();
                    }
                    return self.learn_path(&cluster, &binding);
                }
                let apis = (self.rules.apis)(&binding);
                let changed = known.as_ref().is_some_and(|(known, _)| *known != apis);
                let open_claims = (self.rules.open_claims)(&binding);
                let claims = (known.as_ref().map_or("", |(_, known)| known) != open_claims && !open_claims.is_empty())
                    .then(|| FleetChange::ClaimsOpen { cluster: cluster.clone(), claims: open_claims.as_str().into() });
                let object = self.rules.meet.then(|| binding.clone());
                let (name, generation) = (binding.name.clone(), endpoint.generation);
                names.insert(name, Binding { generation, apis, open_claims, object });
                let mut reported = self.learn_path(&cluster, &binding);
                if changed {
                    reported.push(FleetChange::ApisChanged { cluster: cluster.clone() });
                } else if known.is_none() {
                    reported.extend(self.engage(&cluster, url));
                }
                reported.extend(claims);
                let stage = if known.is_none() { Stage::Added } else { Stage::Changed };
                reported.extend(self.meet(&cluster, Some(binding), stage));
                reported
            }
            Event::Deleted(binding) => {
                let Some(cluster) = self.rules.key.of(&binding).map(|name| name.to_arc()) else { return Vec::new() };
                let Some(names) = endpoint.bindings.get_mut(&cluster) else { return Vec::new() };
                let known = names.remove(&binding.name).is_some();
                let last = names.is_empty();
                if last {
                    endpoint.bindings.remove(&cluster);
                }
                let mut reported: Vec<FleetChange> =
                    self.meet(&cluster, Some(binding).filter(|_| known), Stage::Removed).into_iter().collect();
                if last {
                    reported.extend(self.leave(&cluster, url, Gone::Removed));
                    reported.extend(self.drop_if_done(url));
                }
                reported
            }
            Event::Synced => {
                endpoint.synced = true;
                let (mut gone, mut removed) = (Vec::new(), Vec::new());
                let generation = endpoint.generation;
                endpoint.bindings.retain(|cluster, names| {
                    let old = names.extract_if(.., |_, binding| binding.generation != generation);
                    removed.extend(old.map(|(_, binding)| (cluster.clone(), binding.object)));
                    if names.is_empty() {
                        gone.push(cluster.clone());
                    }
                    !names.is_empty()
                });
                let mut events = Vec::new();
                for (cluster, object) in removed {
                    events.extend(self.meet(&cluster, object, Stage::Removed));
                }
                events.extend(gone.iter().flat_map(|cluster| self.leave(cluster, url, Gone::Removed)));
                events.extend(self.drop_if_done(url));
                events.extend(self.synced());
                events
            }
            Event::Failing(_) | Event::Recovered | Event::WentBack { .. } => Vec::new(),
        }
    }

    fn set_endpoints(&mut self, urls: &BTreeSet<Arc<str>>, now: Time) -> Vec<FleetChange> {
        let mut events = Vec::new();
        for url in urls {
            if let Some(endpoint) = self.endpoints.get_mut(url) {
                endpoint.leaves = None;
            } else {
                self.endpoints.insert(url.clone(), Endpoint::default());
                events.push(FleetChange::Up(url.clone()));
            }
        }
        for (_, endpoint) in self.endpoints.iter_mut().filter(|(url, _)| !urls.contains(*url)) {
            endpoint.leaves.get_or_insert(now.saturating_add(self.rules.grace));
        }
        let gone: Vec<Arc<str>> = self.endpoints.keys().filter(|url| !urls.contains(*url)).cloned().collect();
        events.extend(gone.iter().flat_map(|url| self.drop_if_done(url)));
        events.extend(self.on_time(now));
        events.extend(self.synced());
        events
    }

    /// Lets go of an endpoint that is not listed any more and has no clusters: there is nothing to wait for.
    fn drop_if_done(&mut self, url: &Arc<str>) -> Vec<FleetChange> {
        let done = |endpoint: &Endpoint| endpoint.leaves.is_some() && endpoint.bindings.is_empty();
        if self.endpoints.get(url).is_some_and(done) { self.drop_endpoint(url) } else { Vec::new() }
    }

    fn drop_endpoint(&mut self, url: &Arc<str>) -> Vec<FleetChange> {
        let clusters = self.endpoints.remove(url).map(|endpoint| endpoint.bindings).unwrap_or_default();
        let mut events = Vec::new();
        for cluster in clusters.keys() {
            events.extend(self.leave(cluster, url, Gone::EndpointDown));
        }
        events.push(FleetChange::Down(url.clone()));
        events.extend(self.synced());
        events
    }

    /// The endpoint URLs of a slice, without trailing slashes.
    fn urls(&self, slice: &Object) -> BTreeSet<Arc<str>> {
        let urls = (self.rules.urls)(slice);
        urls.iter().map(|url| url.trim_end_matches('/')).filter(|url| !url.is_empty()).map(Arc::from).collect()
    }

    fn meet(&self, cluster: &Arc<str>, object: Option<Object>, stage: Stage) -> Option<FleetChange> {
        let object = object.filter(|_| self.rules.meet && self.clusters.contains_key(cluster))?;
        Some(FleetChange::Met { cluster: cluster.clone(), object, stage })
    }

    /// A cluster has a binding at an endpoint; the latest endpoint wins, because that is where a moved cluster is now.
    fn engage(&mut self, cluster: &Arc<str>, url: &Arc<str>) -> Vec<FleetChange> {
        if self.clusters.insert(cluster.clone(), url.clone()).as_ref() == Some(url) {
            return Vec::new();
        }
        let path = self.paths.get(cluster).cloned();
        vec![FleetChange::Engaged { cluster: cluster.clone(), endpoint: url.clone(), path }]
    }

    /// A cluster has no binding at an endpoint any more.
    fn leave(&mut self, cluster: &Arc<str>, url: &Arc<str>, why: Gone) -> Vec<FleetChange> {
        if self.clusters.get(cluster) != Some(url) {
            return Vec::new();
        }
        let other = self.endpoints.iter().find(|(_, endpoint)| endpoint.bindings.contains_key(cluster));
        if let Some(other) = other.map(|(url, _)| url.clone()) {
            return self.engage(cluster, &other);
        }
        self.clusters.remove(cluster);
        self.paths.remove(cluster);
        vec![FleetChange::Disengaged { cluster: cluster.clone(), why }]
    }

    /// Bindings carry the path of their workspace, though not always from the start.
    fn learn_path(&mut self, cluster: &Arc<str>, binding: &Object) -> Vec<FleetChange> {
        let Some(path) = binding.annotation(PATH_ANNOTATION).filter(|path| !path.is_empty()) else { return Vec::new() };
        let (cluster, path): (Arc<str>, Arc<str>) = (cluster.clone(), path.into());
        let known = self.paths.insert(cluster.clone(), path.clone());
        if known.as_ref() == Some(&path) || !self.clusters.contains_key(&cluster) {
            return Vec::new();
        }
        vec![FleetChange::Path { cluster, path }]
    }

    fn synced(&mut self) -> Option<FleetChange> {
        let complete =
            self.slice_synced && self.endpoints.values().all(|endpoint| endpoint.synced || endpoint.leaves.is_some());
        (complete && !std::mem::replace(&mut self.told_synced, true)).then_some(FleetChange::Synced)
    }
}

#[cfg(test)]
mod tests;
