//! Clusters whose kubeconfigs are in Secrets.

use std::fmt;

use carrick_client::{Client, InlineKubeconfig};
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
/// Whoever may write such a Secret must not thereby become master of this program. So a kubeconfig has to lead to an `https` server with credentials
/// that are in it; one that names programs, files, plugins or proxies, or skips checks, is reported as failing with the reason
/// ([`RefusedKubeconfig`](carrick_client::RefusedKubeconfig)). [`KubeconfigSecrets::trust_authors`] lifts this.
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
    trusted: bool,
}

impl KubeconfigSecrets {
    /// The labelled Secrets of a namespace.
    pub fn new(hub: impl Into<Client>, namespace: &str) -> Self {
        Self {
            hub: hub.into(),
            namespace: namespace.to_owned(),
            labels: "sigs.k8s.io/multicluster-runtime-kubeconfig=true".to_owned(),
            key: "kubeconfig".to_owned(),
            trusted: false,
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

    /// Takes kubeconfigs with all that kubeconfigs can do: run programs, read files, use proxies. Only for Secrets whose authors may do all that on
    /// this machine anyway.
    #[must_use]
    pub fn trust_authors(mut self) -> Self {
        self.trusted = true;
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
        let (key, trusted) = (self.key.clone(), self.trusted);
        let secrets = FromObjects::new_with(self.hub.clone(), &secrets(), move |secret: DynamicObject, _| {
            let kubeconfig = if trusted { decode(&secret, &key) } else { kubeconfig(&secret, &key) };
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

/// The kubeconfig under a key of a Secret, if it is safe to use whoever has written it.
pub(super) fn kubeconfig(secret: &DynamicObject, key: &str) -> Result<String, String> {
    let text = decode(secret, key)?;
    InlineKubeconfig::parse(&text).map(InlineKubeconfig::into_text).map_err(|refused| format!("key {key:?}: {refused}"))
}

/// The text under a key of a Secret. Errors say nothing of the content.
fn decode(secret: &DynamicObject, key: &str) -> Result<String, String> {
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

    #[test]
    fn kubeconfigs_of_strangers_run_nothing() {
        let text = |user: &str| {
            format!(
                "{{current-context: a, contexts: [{{name: a, context: {{cluster: b, user: c}}}}], \
                 clusters: [{{name: b, cluster: {{server: 'https://h'}}}}], users: [{{name: c, user: {{{user}}}}}]}}"
            )
        };
        let read = |user: &str| {
            let data = json!({"data": {"k": BASE64.encode(text(user).as_bytes())}});
            kubeconfig(&DynamicObject::new("s", &secrets()).data(data), "k")
        };
        assert!(read("token: t").is_ok());
        let refused = read("exec: {command: sh}").unwrap_err();
        assert!(refused.starts_with("key \"k\": the kubeconfig names a program to run"), "{refused}");
    }
}
