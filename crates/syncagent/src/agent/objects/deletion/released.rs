//! Released: PublishedResources of which this agent holds no object any more, so that their kinds may leave the export.

use std::sync::Arc;
use std::time::Duration;

use carrick_client::Object;
use carrick_kcp::apis::v1alpha1::ApiExportEndpointSlice;
use carrick_multicluster::{Informer, Key, WatchState};
use carrick_sync::executor::refusal::is_unserved;
use tokio::sync::watch;

use crate::agent::objects::context::{Context, Released};
use crate::agent::objects::shared::Shared;
use crate::decide::is_held_by;
use crate::rules::Duty;

/// How long to wait until the endpoint slice is read again, if it lists endpoints that are not connected yet, or cannot be read.
const PAUSE: Duration = Duration::from_secs(10);

/// Notes whether a PublishedResource holds nothing.
pub(in crate::agent::objects) fn note(released: &watch::Sender<Released>, name: &str, holds_nothing: bool) {
    released.send_if_modified(|all| if holds_nothing { all.insert(name.to_owned()) } else { all.remove(name) });
}

/// Forgets PublishedResources that do not exist any more.
pub(in crate::agent::objects) fn keep_only(released: &watch::Sender<Released>, exists: impl Fn(&str) -> bool) {
    released.send_if_modified(|all| {
        let before = all.len();
        all.retain(|name| exists(name));
        all.len() != before
    });
}

/// Follows the release of all objects of a PublishedResource.
pub(in crate::agent::objects) async fn follow(shared: Arc<Shared>, sources: Informer<Object>) {
    let (name, mut rules) = (shared.rules().name.clone(), shared.rules_changes());
    loop {
        let releases = rules.borrow_and_update().duty == Duty::Release;
        if !releases {
            note(&shared.context.released, &name, false);
        }
        tokio::select! {
            changed = rules.changed() => if changed.is_err() { return },
            () = nothing_held(&shared, &sources), if releases => {
                note(&shared.context.released, &name, true);
                if rules.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Waits until no object is held, at no endpoint. An agent that has no endpoint holds nothing only if the slice lists none: it may not have connected yet.
async fn nothing_held(shared: &Shared, sources: &Informer<Object>) {
    let mut changes = sources.health_changes();
    loop {
        changes.borrow_and_update();
        let health = sources.health();
        let is_known = |store: &carrick_multicluster::FleetStore<Object>| {
            health.iter().all(|(endpoint, watch)| match &watch.state {
                WatchState::Failing { error, .. } if is_unserved(error) => true,
                _ => store.is_synced(endpoint),
            })
        };
        let held = first_held(shared);
        if held.is_none() && is_known(&shared.sources) && (!health.is_empty() || lists_no_endpoint(shared).await) {
            return;
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { std::future::pending::<()>().await },
            () = shared.sources.wait_until(|store| match &held {
                Some(held) => !is_held(shared, store.lookup(held).as_ref()),
                None => is_known(store) && !health.is_empty(),
            }) => {}
            () = tokio::time::sleep(PAUSE), if health.is_empty() => {}
        }
    }
}

/// Whether the endpoint slice says that no consumer can be reached at all: nobody has bound the export.
async fn lists_no_endpoint(shared: &Shared) -> bool {
    let Context { slice_workspace, slice, .. } = &*shared.context;
    let found = slice_workspace.get_kcp::<ApiExportEndpointSlice>(slice).await;
    found.is_ok_and(|found| found.is_some_and(|slice| slice.status.endpoints.is_empty()))
}

fn first_held(shared: &Shared) -> Option<Key> {
    let all = shared.sources.list_all().into_iter();
    all.filter(|(_, object)| is_held(shared, Some(object))).map(|(key, _)| key).next()
}

fn is_held(shared: &Shared, object: Option<&Arc<Object>>) -> bool {
    object.is_some_and(|object| is_held_by(&object.value(), shared.rules().agent_name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_resource_that_holds_nothing_is_forgotten_with_it() {
        let released = watch::Sender::default();
        for name in ["a", "b"] {
            note(&released, name, true);
        }
        let mut changes = released.subscribe();
        changes.mark_unchanged();
        keep_only(&released, |name| name != "a");
        assert!(changes.has_changed().unwrap() && changes.borrow_and_update().iter().eq(["b"]));
        keep_only(&released, |name| name != "a");
        assert!(!changes.has_changed().unwrap(), "nobody is woken for nothing");
    }
}
