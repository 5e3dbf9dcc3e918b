//! The Secrets that somebody names, each by a watch of its own: no other one is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use carrick_bind_api::v1alpha2::SecretKeyReference;
use carrick_client::Client;
use carrick_client::watch::WatchOptions;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::cache::Cache;
use super::notifier::Notifier;
use super::resources;
use crate::decide::Seen;

/// A watch that can be ended.
type Watched = (Arc<Cache>, CancellationToken);

/// The Secrets that somebody names.
pub struct Secrets {
    client: Client,
    notifier: Notifier,
    watched: Mutex<BTreeMap<(String, String), Watched>>,
    stop: CancellationToken,
}

impl Secrets {
    /// None yet.
    pub fn new(client: Client, notifier: &Notifier, stop: &CancellationToken) -> Self {
        Self { client, notifier: notifier.clone(), watched: Mutex::default(), stop: stop.clone() }
    }

    /// Watches the Secrets of these kubeconfigs and no others.
    pub fn watch(&self, kubeconfigs: &[SecretKeyReference]) {
        let wanted: BTreeSet<_> = kubeconfigs.iter().map(|at| (at.namespace.clone(), at.name.clone())).collect();
        let mut secrets = self.watched.lock();
        secrets.retain(|key, (_, stop)| {
            let stays = wanted.contains(key);
            if !stays {
                stop.cancel();
            }
            stays
        });
        for (namespace, name) in wanted {
            secrets.entry((namespace.clone(), name.clone())).or_insert_with(|| {
                let cache = Cache::new(format!("Secret {namespace}/{name}"), &self.notifier);
                let options = WatchOptions {
                    namespace: Some(namespace),
                    ..WatchOptions::fields(format!("metadata.name={name}"))
                };
                let (client, stop) = (self.client.clone(), self.stop.child_token());
                tokio::spawn(Arc::clone(&cache).follow(client, resources::secrets(), options, stop.clone()));
                (cache, stop)
            });
        }
    }

    /// The Secret of a kubeconfig.
    pub fn get(&self, at: &SecretKeyReference) -> Seen<Value> {
        let key = (at.namespace.clone(), at.name.clone());
        let Some(cache) = self.watched.lock().get(&key).map(|(cache, _)| Arc::clone(cache)) else {
            return Seen::Unknown("nobody watches it".to_owned());
        };
        match cache.get(&at.namespace, &at.name) {
            Seen::Present(object) => Seen::Present(object.value()),
            Seen::Absent => Seen::Absent,
            Seen::Unknown(why) => Seen::Unknown(why),
        }
    }

    /// Whether the Secret of a kubeconfig has not been read yet, for no bad reason.
    pub fn is_pending(&self, at: &SecretKeyReference) -> bool {
        let secrets = self.watched.lock();
        let cache = secrets.get(&(at.namespace.clone(), at.name.clone())).map(|(cache, _)| cache);
        cache.is_none_or(|cache| cache.is_pending())
    }
}
