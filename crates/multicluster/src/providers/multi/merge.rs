//! The events of several providers as those of one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::{FleetEvent, Gone};
use crate::name::{ClusterName, EndpointId};

/// What all providers have reported so far.
#[derive(Default)]
pub(super) struct Merge {
    parts: HashMap<u64, Part>,
    begun: bool,
    told_synced: bool,
}

/// What one provider has reported.
struct Part {
    name: Arc<str>,
    endpoints: BTreeSet<EndpointId>,
    /// By their own names: the provider's epoch and ours.
    clusters: BTreeMap<ClusterName, (u64, u64)>,
    failing: BTreeSet<Arc<str>>,
    /// Whether the whole is complete only with this part: those that come later do not count.
    awaited: bool,
}

impl Merge {
    pub(super) fn add(&mut self, id: u64, name: &str) {
        let part = Part {
            name: name.into(),
            endpoints: BTreeSet::new(),
            clusters: BTreeMap::new(),
            failing: BTreeSet::new(),
            awaited: !self.begun,
        };
        self.parts.insert(id, part);
    }

    /// All providers of the start have been added.
    pub(super) fn begin(&mut self) -> Option<FleetEvent> {
        self.begun = true;
        self.synced()
    }

    pub(super) fn remove(&mut self, id: u64) -> Vec<FleetEvent> {
        let Some(part) = self.parts.remove(&id) else { return Vec::new() };
        let mut events = Vec::new();
        for (name, (_, epoch)) in &part.clusters {
            events.push(FleetEvent::Disengage { name: part.cluster(name), epoch: *epoch, why: Gone::Removed });
        }
        events.extend(part.endpoints.iter().map(|id| FleetEvent::EndpointDown(part.endpoint(id))));
        events.extend(part.failing.iter().map(|source| FleetEvent::Recovered { source: part.prefixed(source) }));
        events.extend(self.synced());
        events
    }

    pub(super) fn on_event(&mut self, id: u64, event: FleetEvent) -> Vec<FleetEvent> {
        let Some(part) = self.parts.get_mut(&id) else { return Vec::new() };
        let event = match event {
            FleetEvent::EndpointUp(endpoint) => {
                part.endpoints.insert(endpoint.id.clone());
                let id = part.endpoint(&endpoint.id);
                FleetEvent::EndpointUp(Endpoint { id, client: endpoint.client, key: part.key(endpoint.key) })
            }
            FleetEvent::EndpointDown(id) => {
                part.endpoints.remove(&id);
                FleetEvent::EndpointDown(part.endpoint(&id))
            }
            FleetEvent::Engage(cluster) => {
                let client = cluster.json_client().clone();
                let engaged = Cluster::new(part.cluster(cluster.name()), part.endpoint(cluster.endpoint()), client);
                let path = cluster.path().map(|path| part.prefixed(&path));
                part.clusters.insert(cluster.name().clone(), (cluster.epoch(), engaged.epoch()));
                FleetEvent::Engage(path.into_iter().fold(engaged, Cluster::with_path))
            }
            FleetEvent::Disengage { name, epoch, why } => {
                let Some((_, ours)) = part.clusters.get(&name).filter(|(theirs, _)| *theirs == epoch).copied() else {
                    return Vec::new();
                };
                part.clusters.remove(&name);
                FleetEvent::Disengage { name: part.cluster(&name), epoch: ours, why }
            }
            FleetEvent::Path { name, path } => {
                FleetEvent::Path { name: part.cluster(&name), path: part.prefixed(&path) }
            }
            FleetEvent::ApisChanged { name } => FleetEvent::ApisChanged { name: part.cluster(&name) },
            FleetEvent::ClaimsOpen { name, claims } => FleetEvent::ClaimsOpen { name: part.cluster(&name), claims },
            FleetEvent::Synced => {
                part.awaited = false;
                return self.synced().into_iter().collect();
            }
            FleetEvent::Waiting { source, lacks } => FleetEvent::Waiting { source: part.prefixed(&source), lacks },
            FleetEvent::Failing { source, error } => {
                part.failing.insert(source.clone());
                FleetEvent::Failing { source: part.prefixed(&source), error }
            }
            FleetEvent::Recovered { source } => {
                part.failing.remove(&source);
                FleetEvent::Recovered { source: part.prefixed(&source) }
            }
        };
        vec![event]
    }

    fn synced(&mut self) -> Option<FleetEvent> {
        let complete = self.begun && !self.parts.values().any(|part| part.awaited);
        (complete && !std::mem::replace(&mut self.told_synced, true)).then_some(FleetEvent::Synced)
    }
}

impl Part {
    fn prefixed(&self, text: &str) -> Arc<str> {
        format!("{}#{text}", self.name).into()
    }

    fn endpoint(&self, id: &EndpointId) -> EndpointId {
        self.prefixed(id).into()
    }

    fn cluster(&self, name: &ClusterName) -> ClusterName {
        // Nothing with a `#` in it is empty.
        ClusterName::new(self.prefixed(name)).unwrap_or_else(|_| name.clone())
    }

    fn key(&self, key: ClusterKey) -> ClusterKey {
        let prefix = format!("{}#", self.name);
        match key {
            ClusterKey::Fixed(name) => ClusterKey::Fixed(self.cluster(&name)),
            key => ClusterKey::with(move |object| ClusterName::new(format!("{prefix}{}", key.of(object)?)).ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::engagements::describe;
    use super::*;
    use crate::testing::unreachable_client;
    use carrick_client::{Error, Object};
    use serde_json::json;

    fn cluster(name: &str) -> Cluster {
        Cluster::new(name.parse().unwrap(), "e".into(), unreachable_client())
    }

    fn run(merge: &mut Merge, id: u64, event: FleetEvent) -> Vec<String> {
        merge.on_event(id, event).iter().map(describe).collect()
    }

    #[test]
    fn the_whole_is_complete_when_all_parts_of_the_start_are() {
        let mut merge = Merge::default();
        merge.add(1, "a");
        merge.add(2, "b");
        assert!(merge.begin().is_none());
        merge.add(3, "late");
        assert_eq!(run(&mut merge, 1, FleetEvent::Synced), Vec::<String>::new());
        assert_eq!(merge.remove(2).iter().map(describe).collect::<Vec<_>>(), ["synced"]);
        assert_eq!(run(&mut merge, 3, FleetEvent::Synced), Vec::<String>::new());
    }

    #[tokio::test]
    async fn epochs_are_followed() {
        let mut merge = Merge::default();
        merge.add(1, "a");
        let (old, new) = (cluster("x"), cluster("x"));
        let leaves = |cluster: &Cluster| FleetEvent::Disengage {
            name: cluster.name().clone(),
            epoch: cluster.epoch(),
            why: Gone::Removed,
        };
        assert_eq!(run(&mut merge, 1, FleetEvent::Engage(old.clone())), ["engage a#x at a#e"]);
        let FleetEvent::Engage(engaged) = &merge.on_event(1, FleetEvent::Engage(new.clone()))[0] else {
            panic!("not engaged");
        };
        assert_eq!(run(&mut merge, 1, leaves(&old)), Vec::<String>::new());
        let FleetEvent::Disengage { name, epoch, .. } = &merge.on_event(1, leaves(&new))[0] else {
            panic!("not disengaged");
        };
        assert_eq!((name, *epoch), (engaged.name(), engaged.epoch()));
        assert_eq!(run(&mut merge, 7, leaves(&new)), Vec::<String>::new());
    }

    #[tokio::test]
    async fn keys_paths_and_outages_are_prefixed_and_end_with_their_provider() {
        let mut merge = Merge::default();
        merge.add(1, "a");
        let endpoint = Endpoint::new("e", unreachable_client(), ClusterKey::KCP);
        let FleetEvent::EndpointUp(up) = &merge.on_event(1, FleetEvent::EndpointUp(endpoint))[0] else {
            panic!("not up");
        };
        let object = json!({"metadata": {"name": "n", "annotations": {"kcp.io/cluster": "x"}}});
        assert_eq!(up.key.of(&Object::from_value(&object).unwrap()).unwrap(), "a#x");
        let reported = run(&mut merge, 1, FleetEvent::Engage(cluster("x").with_path("root:x")));
        assert_eq!(reported, ["engage a#x at a#e path a#root:x"]);
        let error = Error::Transport { request: "r".into(), problem: "p".into() };
        assert_eq!(run(&mut merge, 1, FleetEvent::Failing { source: "s".into(), error }), ["failing a#s"]);
        let reported: Vec<String> = merge.remove(1).iter().map(describe).collect();
        assert_eq!(reported, ["disengage a#x", "down a#e", "recovered a#s"]);
    }
}
