//! From a watch into its store.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Client;
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_sync::Role;
use carrick_sync::executor::refusal::is_unserved;
use futures::{FutureExt, StreamExt};

use super::consumers::Consumers;
use super::hub::{Hub, Watched};
use super::layout::consumer_namespaces;
use crate::agent::task::Task;
use crate::agent::workspaces::Workspaces;

/// How long to wait after a panic, so that one that comes back does not keep a core busy.
const AFTER_PANIC: Duration = Duration::from_secs(5);

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

/// Follows a watch at one endpoint; a defect does not end it for good.
async fn follow_one(hub: Arc<Hub>, watched: Arc<Watched>, part: Arc<str>, client: Client) {
    while AssertUnwindSafe(follow(&hub, &watched, &part, &client)).catch_unwind().await.is_err() {
        tracing::error!(watch = %watched.id, "The konnector panicked over a watch and begins it anew; please report that.");
        tokio::select! {
            () = watched.stop.cancelled() => return,
            () = tokio::time::sleep(AFTER_PANIC) => {}
        }
    }
}

async fn follow(hub: &Hub, watched: &Watched, part: &Arc<str>, client: &Client) {
    let id = &watched.id;
    // Of namespaces only metadata matters.
    let client = if *id == consumer_namespaces() { client.metadata_only() } else { client.clone() };
    let options = WatchOptions { namespace: id.namespace.clone(), ..WatchOptions::default() };
    let mut events = pin!(watch(client, id.resource.clone(), options));
    let mut listed = Vec::new();
    loop {
        let event = tokio::select! {
            () = watched.stop.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            None => return,
            Some(Event::Begin) => listed.clear(),
            Some(Event::Listed(object)) => listed.push(hub.bared(id, object)),
            Some(Event::Synced) => {
                let changed = watched.store.replace(part, std::mem::take(&mut listed));
                hub.told(watched, &changed);
                if watched.store.mark_synced(part) {
                    hub.told_first(watched);
                }
                hub.tell();
            }
            Some(Event::Applied(object)) => {
                let key = watched.store.key_of(&object);
                if watched.store.put(part, &hub.bared(id, object)) {
                    hub.told(watched, &[key]);
                }
            }
            Some(Event::Deleted(object)) => {
                if watched.store.remove(&object) {
                    hub.told(watched, &[watched.store.key_of(&object)]);
                }
            }
            Some(Event::Failing(error)) => {
                tracing::warn!(watch = %id, %error, "A watch does not work.");
                watched.store.fail(part, &error);
                if is_unserved(&error) {
                    // A binding that ends may go on without this kind.
                    hub.told_first(watched);
                }
                hub.tell();
            }
            Some(Event::WentBack { .. }) => watched.store.went_back(part),
            Some(Event::Recovered) => {
                watched.store.recover(part);
                hub.tell();
            }
        }
    }
}
