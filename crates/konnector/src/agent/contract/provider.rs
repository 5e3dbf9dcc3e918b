//! What there is on the provider, in the contract namespace.

use std::sync::Arc;

use carrick_bind_api::kinds::{API_SERVICE_EXPORT, API_SERVICE_EXPORT_REQUEST, BOUND_SCHEMA, CLUSTER_BINDING};
use carrick_client::watch::WatchOptions;
use carrick_client::{Client, Resource};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::cache::Cache;
use crate::agent::notifier::Notifier;
use crate::agent::resources;
use crate::decide::Seen;

/// What there is on the provider, in the contract namespace.
pub(super) struct Provider {
    client: Client,
    contract: String,
    /// Rings whenever something there changes.
    pub notifier: Notifier,
    pub cluster_bindings: Arc<Cache>,
    pub exports: Arc<Cache>,
    pub requests: Arc<Cache>,
    pub schemas: Arc<Cache>,
    /// The Secret with our credentials, as soon as its name is known.
    secret: Option<(String, Arc<Cache>, CancellationToken)>,
    stop: CancellationToken,
}

impl Provider {
    /// Begins to watch.
    pub fn start(client: Client, contract: &str, stop: CancellationToken) -> Self {
        let notifier = Notifier::default();
        let follow = |what: &str, resource: Resource| {
            let cache = Cache::new(format!("{what} of contract namespace {contract}"), &notifier);
            let options = WatchOptions { namespace: Some(contract.to_owned()), ..WatchOptions::default() };
            tokio::spawn(Arc::clone(&cache).follow(client.clone(), resource, options, stop.clone()));
            cache
        };
        Self {
            cluster_bindings: follow("ClusterBindings", resources::of(CLUSTER_BINDING)),
            exports: follow("APIServiceExports", resources::of(API_SERVICE_EXPORT)),
            requests: follow("APIServiceExportRequests", resources::of(API_SERVICE_EXPORT_REQUEST)),
            schemas: follow("BoundSchemas", resources::of(BOUND_SCHEMA)),
            secret: None,
            contract: contract.to_owned(),
            notifier,
            client,
            stop,
        }
    }

    /// The Secret of this name. It is watched from the first call on.
    pub fn secret(&mut self, name: &str) -> Seen<Value> {
        if self.secret.as_ref().is_none_or(|(known, ..)| known != name) {
            if let Some((_, _, stop)) = self.secret.take() {
                stop.cancel();
            }
            let namespace = Some(self.contract.clone());
            let options = WatchOptions { namespace, ..WatchOptions::fields(format!("metadata.name={name}")) };
            let cache = Cache::new(format!("Secret {}/{name} of the provider", self.contract), &self.notifier);
            let stop = self.stop.child_token();
            let following = Arc::clone(&cache).follow(self.client.clone(), resources::secrets(), options, stop.clone());
            tokio::spawn(following);
            self.secret = Some((name.to_owned(), cache, stop));
        }
        let Some((_, cache, _)) = &self.secret else { return Seen::Unknown(String::new()) };
        match cache.get(&self.contract, name) {
            Seen::Present(object) => Seen::Present(object.value()),
            Seen::Absent => Seen::Absent,
            Seen::Unknown(why) => Seen::Unknown(why),
        }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
