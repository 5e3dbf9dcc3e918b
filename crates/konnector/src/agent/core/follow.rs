//! The watches of a Connection, and what they wake.

use std::sync::Arc;

use carrick_bind_api::core::related::RESOURCES;
use carrick_bind_api::mapping::ObjectKey;
use carrick_client::Object;
use carrick_client::watch::WatchOptions;
use carrick_multicluster::ClusterName;
use carrick_sync::Role;

use super::hub::{Hub, WorkKey};
use crate::agent::objects::store::SeenObject;
use crate::agent::objects::watched::{self, Observes, Watched};

/// Follows a watch until it is not needed any more.
pub(super) async fn follow(hub: Arc<Hub>, watched: Arc<Watched>) {
    let (id, part) = (&watched.id, Arc::from(""));
    let client = if id.role == Role::Consumer { &hub.consumer } else { &hub.provider };
    let options = WatchOptions { namespace: id.namespace.clone(), ..WatchOptions::default() };
    watched::follow(&*hub, &watched, &part, client, (&id.resource, &options)).await;
}

impl Observes for Hub {
    fn kept(&self, watched: &Watched, object: Object) -> SeenObject {
        self.bared(watched, object)
    }

    fn reported(&self, watched: &Watched, keys: &[ObjectKey]) {
        let wanted = self.wanted();
        for (name, _) in wanted.iter().filter(|(_, api)| api.is_seen_by(&watched.id)) {
            let Ok(lane) = ClusterName::new(name.as_str()) else { continue };
            for object in keys {
                self.queue.add(WorkKey { lane: lane.clone(), object: object.clone() });
            }
        }
        if watched.id.role == Role::Consumer && !watched.id.resource.group.is_empty() {
            // What the provider has may be waiting for somebody to use its API here.
            let is_there = |key: &WorkKey| keys.iter().any(|object| object.namespace == key.object.namespace);
            for (plural, _) in RESOURCES {
                self.problems_of(plural)
                    .into_iter()
                    .filter(|(key, _)| is_there(key))
                    .for_each(|(key, _)| self.queue.add(key));
            }
            self.notify();
        }
    }

    fn reported_all(&self, watched: &Watched) {
        let wanted = self.wanted();
        for (name, api) in wanted.iter().filter(|(_, api)| api.is_seen_by(&watched.id) || api.is_related()) {
            self.look_at(name, api);
        }
        self.notify();
    }

    fn watch_changed(&self) {
        self.notify();
    }
}
