//! The provider's operator: it knows nothing about kcp and serves every HttpBin in its cluster.
//!
//! ```text
//!  HttpBin ──watch──▶ operator ──┬─ Endpoint   answers at status.url
//!     ▲                          └─ Secret     <name>-credentials, owned by the HttpBin
//!     └───── status ─────────────┘
//! ```

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object, Resource};
use data_encoding::BASE64;
use futures::StreamExt;
use serde_json::{Value, json};

use super::endpoint::{Credentials, Endpoint};
use super::manifests::{http_bins, secrets};

const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);
const USERNAME: &str = "httpbin";

/// Serves all HttpBins until dropped.
pub async fn run(client: Client) {
    let mut operator = Operator { client: client.clone(), resource: http_bins(), endpoints: HashMap::new() };
    let mut events = pin!(watch(client, http_bins(), WatchOptions::default()));
    let mut listed = HashSet::new();
    while let Some(event) = events.next().await {
        match event {
            Event::Begin => listed.clear(),
            Event::Listed(object) => {
                listed.insert(Arc::clone(&object.uid));
                operator.serve(&object).await;
            }
            Event::Synced => operator.endpoints.retain(|uid, _| listed.contains(uid)),
            Event::Applied(object) => operator.serve(&object).await,
            Event::Deleted(object) => {
                operator.endpoints.remove(&object.uid);
            }
            Event::Failing(error) => tracing::warn!(%error, "the operator cannot watch HttpBins"),
            Event::Recovered => tracing::info!("the operator watches HttpBins again"),
            // The list that follows says what there is.
            Event::WentBack { .. } => {}
        }
    }
}

/// Why an HttpBin is not served yet.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    /// No port, or no permission to listen.
    #[error("cannot start an endpoint: {0}")]
    Endpoint(#[from] std::io::Error),
    /// The API server refused or could not be reached.
    #[error(transparent)]
    Api(#[from] carrick_client::Error),
}

struct Operator {
    client: Client,
    resource: Resource,
    /// By the UID of the HttpBin: a new object with an old name is a different one.
    endpoints: HashMap<Arc<str>, Endpoint>,
}

impl Operator {
    /// Reconciles one HttpBin, retrying for a while.
    async fn serve(&mut self, object: &Object) {
        if object.is_deleting() {
            return;
        }
        for _ in 0..ATTEMPTS {
            match self.try_serve(object).await {
                Ok(()) => return,
                // Deleted in between.
                Err(ServeError::Api(error)) if error.is_not_found() => return,
                Err(error) => tracing::warn!(?object, %error, "cannot serve an HttpBin, trying again"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_serve(&mut self, object: &Object) -> Result<(), ServeError> {
        let bin = object.value();
        let region = bin["spec"]["region"].as_str().unwrap_or_default();
        if !self.endpoints.contains_key(&object.uid) {
            let password = uuid::Uuid::new_v4().simple().to_string();
            let credentials = Credentials { username: USERNAME.into(), password };
            let endpoint = Endpoint::start(region, credentials.clone()).await?;
            self.write_secret(object, &endpoint.url(), &credentials).await?;
            self.endpoints.insert(Arc::clone(&object.uid), endpoint);
        }
        let Some(endpoint) = self.endpoints.get(&object.uid) else { return Ok(()) };
        endpoint.set_region(region);
        if let Some(status) = new_status(&bin, &endpoint.url(), &jiff::Timestamp::now().to_string()) {
            let patch = json!({"status": status});
            self.client.merge_patch_status(&self.resource, Some(&object.namespace), &object.name, &patch).await?;
        }
        Ok(())
    }

    /// Replaces the Secret: the password of an old endpoint is useless.
    async fn write_secret(&self, object: &Object, url: &str, credentials: &Credentials) -> Result<(), ServeError> {
        let name = format!("{}-credentials", object.name);
        let data = json!({
            "url": BASE64.encode(url.as_bytes()),
            "username": BASE64.encode(credentials.username.as_bytes()),
            "password": BASE64.encode(credentials.password.as_bytes()),
        });
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": name,
                "namespace": &*object.namespace,
                // Deletes the Secret together with its HttpBin, and tells the agent which HttpBin it belongs to.
                "ownerReferences": [{
                    "apiVersion": self.resource.api_version(),
                    "kind": &*self.resource.kind,
                    "name": &*object.name,
                    "uid": &*object.uid,
                    "controller": true,
                }],
            },
            "data": data,
        });
        match self.client.create(&secrets(), Some(&object.namespace), &secret).await {
            Err(error) if error.is_already_exists() => {
                let patch =
                    json!({"data": data, "metadata": {"ownerReferences": secret["metadata"]["ownerReferences"]}});
                self.client.merge_patch(&secrets(), Some(&object.namespace), &name, &patch).await?;
                Ok(())
            }
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    }
}

/// The status to write, or nothing if the object has it already.
fn new_status(bin: &Value, url: &str, now: &str) -> Option<Value> {
    let generation = &bin["metadata"]["generation"];
    let old = &bin["status"]["conditions"][0];
    if bin["status"]["url"] == url && bin["status"]["ready"] == true && old["observedGeneration"] == *generation {
        return None;
    }
    let since = if old["status"] == "True" { old["lastTransitionTime"].clone() } else { now.into() };
    Some(json!({
        "url": url,
        "ready": true,
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "Serving",
            "message": format!("answers in region {}", bin["spec"]["region"].as_str().unwrap_or_default()),
            "observedGeneration": generation,
            "lastTransitionTime": since,
        }],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_written_once_per_generation() {
        let mut bin = json!({"metadata": {"generation": 1}, "spec": {"region": "a"}});
        let first = new_status(&bin, "http://x", "t1").unwrap();
        assert_eq!(first["conditions"][0]["message"], "answers in region a");
        bin["status"] = first;
        assert_eq!(new_status(&bin, "http://x", "t2"), None);
        bin["metadata"]["generation"] = 2.into();
        let second = new_status(&bin, "http://x", "t3").unwrap();
        assert_eq!(second["conditions"][0]["lastTransitionTime"], "t1");
        assert!(new_status(&bin, "http://y", "t4").is_some());
    }
}
