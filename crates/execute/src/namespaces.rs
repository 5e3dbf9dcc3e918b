//! Namespaces that copies need, made where they are missing.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::{Client, Resource};
use carrick_sync::Side;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::OnceCell;

use crate::error::StepError;

/// Namespaces that are known to exist, by the URL of their server, so that they are not asked for again and again.
#[derive(Debug, Default)]
pub struct Namespaces(Mutex<HashMap<(String, String), EnsuredNamespace>>);

/// Whether a namespace is known to exist; whoever asks while another task finds out waits for that.
type EnsuredNamespace = Arc<OnceCell<()>>;

impl Namespaces {
    /// Makes sure that a namespace exists.
    pub async fn ensure(&self, client: &Client, side: Side, name: &str) -> Result<(), StepError> {
        let known = self.0.lock().entry((client.url().to_owned(), name.to_owned())).or_default().clone();
        // Of many objects for one namespace only the first one asks.
        known.get_or_try_init(|| make_namespace(client, side, name)).await.copied()
    }

    /// Forgets all of them: one was deleted since it was last seen.
    pub fn forget(&self) {
        self.0.lock().clear();
    }
}

/// Makes sure that a namespace exists. Consumers' namespaces mostly do, those for copies mostly do not.
async fn make_namespace(client: &Client, side: Side, name: &str) -> Result<(), StepError> {
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let fail = |verb, source| StepError::Write { verb, at: format!("namespace {name}"), source };
    let exists = async || client.get(&namespaces, None, name).await.map(|found| found.is_some());
    if side.is_consumer() && exists().await.map_err(|source| fail("get", source))? {
        return Ok(());
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    match client.create(&namespaces, None, &namespace).await {
        // Who may not create namespaces may have been given this one.
        Err(source) if source.is_forbidden() && exists().await.unwrap_or(false) => Ok(()),
        Err(source) if !source.is_already_exists() => Err(fail("create", source)),
        _ => Ok(()),
    }
}
