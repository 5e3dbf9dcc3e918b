//! Deploy: the kubeconfig of a provider, and a konnector that uses it.

pub mod answer;
mod bound;
mod error;

use std::fmt::Write as _;

use carrick_bind_api::install::{self, HostAliases, Install, MANAGER, ProviderAccess};
use carrick_bind_api::names::{BINDING_RESPONSE_KEY, KONNECTOR_NAMESPACE, KUBECONFIG_KEY, PROVIDER_KUBECONFIG_LABEL};
use carrick_client::{Client, ListOptions, Resource};
use serde_json::Value;

pub use error::DeployError;

use crate::options::Deploy;

/// Deploys, or says what would be written; returns what to print.
pub async fn run(client: &Client, request: &Deploy) -> Result<String, DeployError> {
    let text = match (&request.file, &request.secret) {
        (Some(file), _) => answer::of_file(file)?,
        (None, Some(secret)) => of_secret(client, secret, request.secret_key.as_deref()).await?,
        (None, None) => return Err(DeployError::NoAnswer),
    };
    let provider = answer::read(&text)?;
    let image = request.konnector_image.as_deref();
    let secret = request.provider_kubeconfig_secret_name.as_deref();
    let aliases = HostAliases::all(&request.konnector_host_alias);
    let planned = plan(client, &provider, secret, request.skip_konnector, image, &aliases).await?;
    let Plan { objects, secret, left } = planned;
    let (roles, warnings) =
        if objects.iter().any(is_konnector) { bound::roles(client).await? } else { (Vec::new(), Vec::new()) };
    let objects = [objects, roles].concat();
    for warning in warnings {
        eprintln!("note: {}", carrick_process::printable::one_line(&warning));
    }
    let is_stored = objects.iter().all(|object| object["kind"] != "Secret");
    let mut said = left.map_or_else(String::new, |why| format!("konnector left as it is: {why}\n"));
    if request.dry_run {
        // Not a part of what is piped into kubectl.
        eprint!("{}", carrick_process::printable::printable(&said));
        return yaml(&objects);
    }
    for object in &objects {
        let name = write(client, object).await?;
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        let _ = writeln!(said, "{kind}/{name} written");
    }
    if is_stored {
        let _ = writeln!(said, "secret/{secret} has this kubeconfig already");
    }
    Ok(said)
}

/// Whether an object is what runs as the konnector.
fn is_konnector(object: &Value) -> bool {
    object["kind"] == "Deployment"
}

/// Objects as YAML documents.
pub(crate) fn yaml(objects: &[Value]) -> Result<String, DeployError> {
    let mut text = String::new();
    for object in objects {
        let yaml = serde_saphyr::to_string(object).map_err(|error| DeployError::Print(error.to_string()))?;
        // Writing to a String cannot fail.
        let _ = write!(text, "---\n{}\n", yaml.trim_end());
    }
    Ok(text)
}

/// What a consumer gets: the Secret with a provider's kubeconfig, and a konnector unless there is a good one.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// What is written, in this order.
    pub(crate) objects: Vec<Value>,
    /// The name of the Secret; empty if the server makes one up.
    pub(crate) secret: String,
    /// Why the konnector is left alone, if it is.
    pub(crate) left: Option<String>,
}

/// Plans what a consumer gets.
pub(crate) async fn plan(
    client: &Client,
    provider: &ProviderAccess,
    name: Option<&str>,
    skip_konnector: bool,
    image: Option<&str>,
    aliases: &HostAliases,
) -> Result<Plan, DeployError> {
    let known = list(client, &secrets(), KONNECTOR_NAMESPACE).await?;
    let stored = install::stored(provider, &known, name, |text| answer::of_kubeconfig(text).ok())?;
    let mut objects = vec![install::namespace()];
    objects.extend(stored.object);
    let (konnector, left) = if skip_konnector {
        let why = "none is installed, so --konnector-host-alias is not used";
        (Vec::new(), (!aliases.is_empty()).then(|| why.to_owned()))
    } else {
        konnector(client, image, aliases).await?
    };
    objects.extend(konnector);
    Ok(Plan { objects, secret: stored.name, left })
}

/// What a konnector consists of, or why the one that is there is left alone.
pub(crate) async fn konnector(
    client: &Client,
    image: Option<&str>,
    aliases: &HostAliases,
) -> Result<(Vec<Value>, Option<String>), DeployError> {
    let deployment = client.get(&deployments(), Some(KONNECTOR_NAMESPACE), install::NAME).await;
    let deployment = deployment.map_err(|source| DeployError::Server { what: "the konnector".to_owned(), source })?;
    Ok(match install::decide(deployment.as_ref(), image) {
        Install::Apply(image) => (install::konnector(&image, aliases), None),
        Install::Leave(why) if aliases.is_empty() => (Vec::new(), Some(why)),
        Install::Leave(why) => {
            (Vec::new(), Some(format!("{why}; it keeps its host aliases, unless you pass --konnector-image as well")))
        }
    })
}

/// Waits until kube-bind's kind of this plural is served.
pub(crate) async fn served(client: &Client, plural: &str, longest: std::time::Duration) -> Result<(), DeployError> {
    let deadline = tokio::time::Instant::now() + longest;
    loop {
        match client.raw_get("/apis/kube-bind.io/v1alpha2").await {
            Ok(found) => {
                let all = found["resources"].as_array();
                if all.is_some_and(|all| all.iter().any(|resource| resource["name"] == plural)) {
                    return Ok(());
                }
            }
            Err(error) if error.is_not_found() || error.is_transient() => {}
            Err(source) => return Err(DeployError::Server { what: format!("waiting for {plural}"), source }),
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(DeployError::NoKonnector { plural: plural.to_owned(), seconds: longest.as_secs() });
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
}

/// Deployments.
fn deployments() -> Resource {
    Resource::namespaced("apps", "v1", "Deployment", "deployments")
}

/// The kind of one of the objects that are written.
fn resource(object: &Value) -> Resource {
    let kind = object["kind"].as_str().unwrap_or_default();
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plural = format!("{}s", kind.to_lowercase());
    let is_namespaced = object["metadata"]["namespace"].is_string();
    let make = if is_namespaced { Resource::namespaced } else { Resource::cluster_wide };
    make(group, version, kind, &plural)
}

pub(crate) fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

/// The answer in a Secret of this cluster.
pub(crate) async fn of_secret(client: &Client, shown: &str, key: Option<&str>) -> Result<String, DeployError> {
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
pub(crate) async fn write(client: &Client, object: &Value) -> Result<String, DeployError> {
    let resource = resource(object);
    let (namespace, name) = (object["metadata"]["namespace"].as_str(), object["metadata"]["name"].as_str());
    let written = match name {
        Some(_) => client.apply_as(&resource, namespace, object, MANAGER).await,
        None => client.create(&resource, namespace, object).await,
    };
    let what = format!("{} {}", resource.kind, name.unwrap_or_default());
    let written = written.map_err(|source| DeployError::Server { what, source })?;
    Ok(written["metadata"]["name"].as_str().unwrap_or_default().to_owned())
}
