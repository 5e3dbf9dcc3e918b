//! Clusters whose kubeconfigs are in Secrets.

use std::fmt;

use carrick_client::Client;
use data_encoding::BASE64;
use futures::stream::BoxStream;
use kube::core::{ApiResource, DynamicObject};

use super::from_objects::FromObjects;
use crate::event::FleetEvent;
use crate::provider::Provider;

/// Every labelled Secret of a namespace holds the kubeconfig of a cluster, which is called like the Secret.
///
/// Label and key are those of multicluster-runtime: `sigs.k8s.io/multicluster-runtime-kubeconfig=true` and `kubeconfig`.
///
/// ```
/// # use carrick_multicluster::providers::KubeconfigSecrets;
/// # fn provider(hub: kube::Client) -> KubeconfigSecrets {
/// KubeconfigSecrets::new(hub, "fleet").labels("fleet=production").key("config")
/// # }
/// ```
#[derive(Clone)]
pub struct KubeconfigSecrets {
    hub: Client,
    namespace: String,
    labels: String,
    key: String,
}

impl KubeconfigSecrets {
    /// The labelled Secrets of a namespace.
    pub fn new(hub: impl Into<Client>, namespace: &str) -> Self {
        Self {
            hub: hub.into(),
            namespace: namespace.to_owned(),
            labels: "sigs.k8s.io/multicluster-runtime-kubeconfig=true".to_owned(),
            key: "kubeconfig".to_owned(),
        }
    }

    /// Another label selector.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = selector.into();
        self
    }

    /// Another key in the Secret's data.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }
}

impl fmt::Debug for KubeconfigSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeconfigSecrets").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Provider for KubeconfigSecrets {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let key = self.key.clone();
        let secrets = FromObjects::new_with(self.hub.clone(), &secrets(), move |secret: DynamicObject, _| {
            let kubeconfig = decode(&secret, &key);
            async move { kubeconfig.map_err(Into::into) }
        });
        secrets.namespace(&self.namespace).labels(self.labels.clone()).bare_names().events()
    }
}

pub(super) fn secrets() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
    }
}

/// The text under a key of a Secret. Errors say nothing of the content.
pub(super) fn decode(secret: &DynamicObject, key: &str) -> Result<String, String> {
    let Some(data) = secret.data["data"][key].as_str() else { return Err(format!("it has no key {key:?}")) };
    let bytes = BASE64.decode(data.as_bytes()).map_err(|_| format!("key {key:?} is not base64"))?;
    String::from_utf8(bytes).map_err(|_| format!("key {key:?} is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_of_secrets_are_decoded() {
        let cases = [
            (json!({"k": "YWJj"}), Ok("abc")),
            (json!({"other": "YWJj"}), Err("it has no key \"k\"")),
            (json!({"k": "%"}), Err("key \"k\" is not base64")),
            (json!({"k": "/w=="}), Err("key \"k\" is not text")),
        ];
        for (data, wanted) in cases {
            let secret = DynamicObject::new("s", &secrets()).data(json!({"data": data}));
            assert_eq!(decode(&secret, "k").as_deref().map_err(String::as_str), wanted);
        }
    }
}
