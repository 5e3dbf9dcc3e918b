//! The watches of a contract: at one endpoint, or at every one where there are workspaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_bind_api::mapping::ObjectKey;
use carrick_client::watch::WatchOptions;
use carrick_client::{Client, Object};
use carrick_sync::Role;

use super::consumers::Consumers;
use super::hub::Hub;
use super::layout::consumer_namespaces;
use super::store::SeenObject;
use super::watched::{Observes, Watched, follow};
use crate::agent::task::Task;
use crate::agent::workspaces::Workspaces;

/// Follows a watch until it is not needed any more.
pub(super) async fn follow_watch(hub: Arc<Hub>, watched: Arc<Watched>) {
    match (&hub.consumers, watched.id.role) {
        (Consumers::Workspaces(workspaces), Role::Consumer) => {
            let workspaces = Arc::clone(workspaces);
            follow_all(&hub, &watched, &workspaces).await;
        }
        (Consumers::Cluster(consumer), Role::Consumer) => {
            let client = consumer.clone();
            follow_one(hub, watched, Arc::from(""), client).await;
        }
        (_, Role::Provider) => {
            let client = hub.provider.clone();
            follow_one(hub, watched, Arc::from(""), client).await;
        }
    }
}

/// Follows a watch at every endpoint where there are workspaces.
async fn follow_all(hub: &Arc<Hub>, watched: &Arc<Watched>, workspaces: &Workspaces) {
    let mut changes = workspaces.subscribe();
    let mut running: BTreeMap<Arc<str>, Task> = BTreeMap::new();
    loop {
        let endpoints = workspaces.endpoints();
        running.retain(|part, _| {
            let stays = endpoints.iter().any(|(id, _)| id == part);
            if !stays {
                watched.store.close(part);
            }
            stays
        });
        for (part, client) in endpoints {
            running.entry(Arc::clone(&part)).or_insert_with(|| {
                watched.store.open(&part);
                Task::spawn(follow_one(Arc::clone(hub), Arc::clone(watched), part, client))
            });
        }
        if workspaces.has_synced() {
            watched.store.opened();
        }
        hub.tell();
        tokio::select! {
            () = watched.stop.cancelled() => return,
            () = changes.changed() => {}
        }
        // A workspace that can be reached now may have waited for that.
        hub.told_first(watched);
    }
}

async fn follow_one(hub: Arc<Hub>, watched: Arc<Watched>, part: Arc<str>, client: Client) {
    let id = &watched.id;
    // Of namespaces only metadata matters.
    let client = if *id == consumer_namespaces() { client.metadata_only() } else { client };
    let options = WatchOptions { namespace: id.namespace.clone(), ..WatchOptions::default() };
    follow(&*hub, &watched, &part, &client, (&id.resource, &options)).await;
}

impl Observes for Hub {
    fn kept(&self, watched: &Watched, object: Object) -> SeenObject {
        self.bared(&watched.id, object)
    }

    fn reported(&self, watched: &Watched, keys: &[ObjectKey]) {
        self.told(watched, keys);
    }

    fn reported_all(&self, watched: &Watched) {
        self.told_first(watched);
    }

    fn watch_changed(&self) {
        self.tell();
    }
}
