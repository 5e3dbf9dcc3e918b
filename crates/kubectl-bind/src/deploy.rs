//! Deploy: the kubeconfig of a provider, and a konnector that uses it.

pub mod answer;
mod error;
pub mod install;
mod manifests;
pub mod secret;

use std::fmt::Write as _;

use carrick_bind_api::names::{BINDING_RESPONSE_KEY, KONNECTOR_NAMESPACE, KUBECONFIG_KEY, PROVIDER_KUBECONFIG_LABEL};
use carrick_client::{Client, ListOptions, Resource};
use serde_json::Value;

pub use error::DeployError;

use crate::options::Deploy;
use install::Install;

/// Who writes.
const MANAGER: &str = "kubectl-bind";

/// Deploys, or says what would be written; returns what to print.
pub async fn run(client: &Client, request: &Deploy) -> Result<String, DeployError> {
    let text = match (&request.file, &request.secret) {
        (Some(file), _) => answer::of_file(file)?,
        (None, Some(secret)) => of_secret(client, secret, request.secret_key.as_deref()).await?,
        (None, None) => return Err(DeployError::NoAnswer),
    };
    let provider = answer::read(&text)?;
    let known = list(client, &secrets(), KONNECTOR_NAMESPACE).await?;
    let stored = secret::plan(&provider, &known, request.provider_kubeconfig_secret_name.as_deref())?;
    let mut said = String::new();
    let mut objects = vec![manifests::namespace()];
    objects.extend(stored.object.clone());
    if !request.skip_konnector {
        let deployment = client.get(&manifests::deployments(), Some(KONNECTOR_NAMESPACE), manifests::NAME).await;
        let deployment =
            deployment.map_err(|source| DeployError::Server { what: "the konnector".to_owned(), source })?;
        match install::decide(deployment.as_ref(), request.konnector_image.as_deref()) {
            Install::Apply(image) => objects.extend(manifests::konnector(&image)),
            // Writing to a String cannot fail.
            Install::Leave(why) => drop(writeln!(said, "konnector left as it is: {why}")),
        }
    }
    if request.dry_run {
        let mut text = String::new();
        for object in &objects {
            let yaml = serde_saphyr::to_string(object).map_err(|error| DeployError::Print(error.to_string()))?;
            let _ = write!(text, "---\n{}\n", yaml.trim_end());
        }
        // Not a part of what is piped into kubectl.
        eprint!("{said}");
        return Ok(text);
    }
    for object in &objects {
        let name = write(client, object).await?;
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        let _ = writeln!(said, "{kind}/{name} written");
    }
    if stored.object.is_none() {
        let _ = writeln!(said, "secret/{} has this kubeconfig already", stored.name);
    }
    Ok(said)
}

fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

/// The answer in a Secret of this cluster.
async fn of_secret(client: &Client, shown: &str, key: Option<&str>) -> Result<String, DeployError> {
    let (namespace, name) = shown.split_once('/').ok_or_else(|| DeployError::SecretName(shown.to_owned()))?;
    let found = client.get(&secrets(), Some(namespace), name).await;
    let found = found.map_err(|source| DeployError::Server { what: format!("secret {shown}"), source })?;
    let keys = key.map_or(vec![BINDING_RESPONSE_KEY, KUBECONFIG_KEY], |key| vec![key]);
    let has = |key: &str| found.as_ref().is_some_and(|secret| secret["data"][key].is_string());
    let key = keys.iter().find(|key| has(key)).unwrap_or(&keys[0]);
    let at = carrick_bind_api::v1alpha2::SecretKeyReference::new(namespace, name, *key);
    Ok(carrick_bind_api::secret::text(found.as_ref(), &at)?)
}

async fn list(client: &Client, resource: &Resource, namespace: &str) -> Result<Vec<Value>, DeployError> {
    let options = ListOptions::labels(format!("{PROVIDER_KUBECONFIG_LABEL}=true"));
    let found = client.list(resource, Some(namespace), &options).await;
    found.map_err(|source| DeployError::Server { what: format!("secrets of namespace {namespace}"), source })
}

/// Writes an object; returns its name.
async fn write(client: &Client, object: &Value) -> Result<String, DeployError> {
    let resource = manifests::resource(object);
    let (namespace, name) = (object["metadata"]["namespace"].as_str(), object["metadata"]["name"].as_str());
    let written = match name {
        Some(_) => client.apply_as(&resource, namespace, object, MANAGER).await,
        None => client.create(&resource, namespace, object).await,
    };
    let what = format!("{} {}", resource.kind, name.unwrap_or_default());
    let written = written.map_err(|source| DeployError::Server { what, source })?;
    Ok(written["metadata"]["name"].as_str().unwrap_or_default().to_owned())
}
