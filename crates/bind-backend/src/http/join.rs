//! What joins a consumer's cluster: the credentials, a konnector and a bundle are written there.

use std::time::Duration;

use carrick_bind_api::crds;
use carrick_bind_api::install::{self, HostAliases, Install, OtherProvider, ProviderAccess};
use carrick_bind_api::kinds::API_SERVICE_BINDING_BUNDLE;
use carrick_bind_api::names::{KONNECTOR_NAMESPACE, KUBECONFIG_KEY, PROVIDER_KUBECONFIG_LABEL};
use carrick_client::{Client, Error, InlineKubeconfig, ListOptions, RefusedKubeconfig};
use serde_json::{Value, json};

use crate::agent::resources;

/// How long a server may take to serve a kind whose CRD was created.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

/// Why a cluster was not joined. No message holds a word of a kubeconfig.
#[derive(Debug, thiserror::Error)]
pub(super) enum JoinError {
    /// Our own kubeconfig is not safe to use.
    #[error("the kubeconfig is refused: {0}")]
    Kubeconfig(#[from] RefusedKubeconfig),
    /// Our own kubeconfig names no contract.
    #[error("the kubeconfig is refused: its context names no namespace")]
    NoContract,
    /// The Secret of this name is for another provider.
    #[error(transparent)]
    OtherProvider(#[from] OtherProvider),
    /// The server refuses.
    #[error("{what}: {source}")]
    Server { what: String, source: Error },
    /// The CRD of bundles is there, and the server does not serve them.
    #[error("{plural}.kube-bind.io is not served after {seconds} s", plural = API_SERVICE_BINDING_BUNDLE.plural, seconds = SERVED_WITHIN.as_secs())]
    NotServed,
}

/// Writes Secret `kubeconfig-<name>`, a konnector unless there is a good one, and a bundle of this name. Whether the konnector's pods know these
/// names now.
pub(super) async fn join(
    client: &Client,
    kubeconfig: String,
    name: &str,
    aliases: &HostAliases,
) -> Result<bool, JoinError> {
    let provider = access(kubeconfig)?;
    let secret = format!("kubeconfig-{name}");
    let planned = planned(client, &provider, &secret, aliases).await?;
    for object in &planned {
        write(client, object).await?;
    }
    let is_installed = planned.iter().any(|object| object["kind"] == "Deployment");
    // The konnector installs the CRD of bundles later than this, unless it is there already.
    if let Some(crd) = crds::of(API_SERVICE_BINDING_BUNDLE)
        && let Err(source) = client.create(&resources::crds(), None, &crd).await
        && !source.is_already_exists()
    {
        return Err(JoinError::Server { what: "CRD of bundles".to_owned(), source });
    }
    served(client).await?;
    let at = json!({"namespace": KONNECTOR_NAMESPACE, "name": secret, "key": KUBECONFIG_KEY});
    let bundle = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": API_SERVICE_BINDING_BUNDLE.kind,
        "metadata": {"name": name}, "spec": {"kubeconfigSecretRef": at}});
    write(client, &bundle).await?;
    Ok(aliases.is_empty() || is_installed)
}

/// A kubeconfig, if it is safe to use.
fn access(text: String) -> Result<ProviderAccess, JoinError> {
    let kubeconfig = InlineKubeconfig::parse(&text)?;
    let contract = kubeconfig.namespace().ok_or(JoinError::NoContract)?.to_owned();
    Ok(ProviderAccess { server: kubeconfig.server().to_owned(), contract, text })
}

/// What is written before the bundle, in this order.
async fn planned(
    client: &Client,
    provider: &ProviderAccess,
    secret: &str,
    aliases: &HostAliases,
) -> Result<Vec<Value>, JoinError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        |source| JoinError::Server { what, source }
    };
    let at = Some(KONNECTOR_NAMESPACE);
    let labelled = ListOptions::labels(format!("{PROVIDER_KUBECONFIG_LABEL}=true"));
    let known = client.list(&resources::secrets(), at, &labelled).await.map_err(failed("secrets"))?;
    let stored = install::stored(provider, &known, Some(secret), |text| access(text).ok())?;
    let there = client.get(&resources::deployments(), at, install::NAME).await.map_err(failed("the konnector"))?;
    let mut objects = vec![install::namespace()];
    objects.extend(stored.object);
    if let Install::Apply(image) = install::decide(there.as_ref(), None) {
        objects.extend(install::konnector(&image, aliases));
    }
    Ok(objects)
}

async fn write(client: &Client, object: &Value) -> Result<(), JoinError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, metadata) = (text(&object["kind"]), &object["metadata"]);
    let what = format!("{kind} {}", text(&metadata["name"]));
    let written = match resources::of_object(object) {
        Some(resource) => client.apply_as(&resource, metadata["namespace"].as_str(), object, install::MANAGER).await,
        None => Err(Error::Request { request: "a write".to_owned(), problem: format!("kind {kind} is not known") }),
    };
    written.map(drop).map_err(|source| JoinError::Server { what, source })
}

/// Waits until bundles are served.
async fn served(client: &Client) -> Result<(), JoinError> {
    let is_served = async || match client.raw_get("/apis/kube-bind.io/v1alpha2").await {
        Ok(found) => {
            let all = found["resources"].as_array();
            Ok(all.is_some_and(|all| all.iter().any(|one| one["name"] == API_SERVICE_BINDING_BUNDLE.plural)))
        }
        Err(error) if error.is_not_found() || error.is_transient() => Ok(false),
        Err(source) => Err(JoinError::Server { what: "waiting for bundles".to_owned(), source }),
    };
    let deadline = tokio::time::Instant::now() + SERVED_WITHIN;
    while !is_served().await? {
        if tokio::time::Instant::now() >= deadline {
            return Err(JoinError::NotServed);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}
