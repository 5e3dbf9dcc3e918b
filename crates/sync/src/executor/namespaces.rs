//! Namespaces that copies need, made where they are missing.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::{Client, Resource};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::OnceCell;

use crate::Side;
use crate::executor::error::{StepError, Target, Verb};
use crate::executor::refusal::{Access, Fallback, follows};

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

    /// Forgets one that may have been deleted since it was last seen; all others are as known as before.
    pub fn forget(&self, client: &Client, name: &str) {
        self.0.lock().remove(&(client.url().to_owned(), name.to_owned()));
    }
}

/// Makes sure that a namespace exists. Consumers' namespaces mostly do, those for copies mostly do not.
async fn make_namespace(client: &Client, side: Side, name: &str) -> Result<(), StepError> {
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let fail = |verb, source| StepError::Write { verb, at: Target::Namespace(name.to_owned()), source };
    let exists = async || client.get(&namespaces, None, name).await.map(|found| found.is_some());
    if side.is_consumer() && exists().await.map_err(|source| fail(Verb::Get, source))? {
        return Ok(());
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    match client.create(&namespaces, None, &namespace).await {
        Err(source) => match follows(&source, Access::Create, side.role).fallback {
            Some(Fallback::SeeWhetherItExists) if exists().await.unwrap_or(false) => Ok(()),
            // Whoever owns a namespace, copies may live in it.
            Some(Fallback::ReadOwner) => Ok(()),
            _ => Err(fail(Verb::Create, source)),
        },
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_missing_makes_no_other_one_unknown() {
        let kubeconfig = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]}";
        let client = carrick_client::Server::from_kubeconfig_yaml(kubeconfig).unwrap().client();
        let namespaces = Namespaces::default();
        for name in ["one", "two"] {
            let known = namespaces.0.lock().entry((client.url().to_owned(), name.to_owned())).or_default().clone();
            known.set(()).unwrap();
        }
        namespaces.forget(&client, "one");
        let known: Vec<String> = namespaces.0.lock().keys().map(|(_, name)| name.clone()).collect();
        assert_eq!(known, ["two"]);
    }
}
