//! Unbinding on this cluster: which contract a name belongs to, and for 0.8: the konnector deletes the copies on the provider, the CRDs and the objects here, in that order; this waits for it.

use std::fmt::Write as _;
use std::time::Duration;

use carrick_bind_api::conditions::{self, DRAINED};
use carrick_bind_api::kinds::{API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE};
use carrick_bind_api::names::{KEEP_COPIES_ANNOTATION, bound_schema_name};
use carrick_bind_api::v1alpha2::ApiServiceBinding;
use carrick_client::{Client, DeleteOptions, Error, ListOptions, Resource};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::options::{self, Api};
use crate::v2::{self, V2Error};

/// How often it is looked whether the binding is gone.
const POLL: Duration = Duration::from_millis(200);

/// Why a binding stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnbindError {
    /// There is no binding of this name.
    #[error("there is no APIServiceBinding {0}; kubectl get apiservicebindings lists those that there are")]
    Missing(String),
    /// Both contracts have one.
    #[error("there is an APIServiceBinding {0} and a ClusterBinding {0}; say which with --api 0.8 or --api v2")]
    Both(String),
    /// A binding of v2 stays.
    #[error(transparent)]
    V2(#[from] V2Error),
    /// A bundle would bind it again.
    #[error(
        "APIServiceBinding {name} belongs to APIServiceBindingBundle {bundle}, which would create it again; delete the bundle, or let the provider withdraw the export"
    )]
    Bundled {
        /// Name of the binding.
        name: String,
        /// Name of the bundle.
        bundle: String,
    },
    /// Objects would be lost.
    #[error("{what} would be deleted here as well; delete them first, or pass --delete-objects")]
    HasObjects {
        /// How many of which kinds.
        what: String,
    },
    /// Something cannot be read or written here.
    #[error("{what}: {source}")]
    Cluster {
        /// What was read or written.
        what: String,
        /// What the server said.
        source: Error,
    },
    /// The binding cannot be read.
    #[error("APIServiceBinding {name} cannot be read: {problem}")]
    Unreadable {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The konnector does not get on.
    #[error(
        "APIServiceBinding {name} is still there after {seconds} s: {why}; the konnector goes on, run the command again to wait longer"
    )]
    Late {
        /// Its name.
        name: String,
        /// How long it was waited for.
        seconds: u64,
        /// What the konnector says.
        why: String,
    },
}

/// Unbinds; returns what to print.
pub async fn run(client: &Client, request: &options::Unbind) -> Result<String, UnbindError> {
    if request.namespace.is_some() || request.api == Some(Api::V2) {
        return Ok(v2::unbind::run(client, request).await?);
    }
    let name = &request.name;
    let failed = |source| UnbindError::Cluster { what: format!("APIServiceBinding {name}"), source };
    let old = client.get(&resource(), None, name).await.map_err(failed)?;
    let has_new = request.api.is_none() && v2::unbind::is_there(client, request).await?;
    match old {
        Some(_) if has_new => Err(UnbindError::Both(name.clone())),
        Some(found) => unbind(client, request, found).await,
        None if has_new => Ok(v2::unbind::run(client, request).await?),
        None => Err(UnbindError::Missing(name.clone())),
    }
}

/// Unbinds an APIServiceBinding.
async fn unbind(client: &Client, request: &options::Unbind, found: Value) -> Result<String, UnbindError> {
    let name = &request.name;
    let kind = resource();
    let failed = |source| UnbindError::Cluster { what: format!("APIServiceBinding {name}"), source };
    let unreadable =
        |error: serde_json::Error| UnbindError::Unreadable { name: name.clone(), problem: error.to_string() };
    let binding: ApiServiceBinding = serde_json::from_value(found).map_err(unreadable)?;
    if let Some(bundle) = bundle(&binding) {
        return Err(UnbindError::Bundled { name: name.clone(), bundle });
    }
    let objects = objects(client, &binding).await?;
    let some: Vec<_> = objects.iter().filter(|(_, count)| *count > 0).collect();
    let mut said = String::new();
    for (crd, count) in &objects {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(said, "customresourcedefinition/{crd} goes, and {count} objects with it");
    }
    if request.dry_run {
        let copies = if request.keep_copies { "stay" } else { "go" };
        let _ = writeln!(said, "the copies on the provider {copies}\napiservicebinding/{name} goes");
        return Ok(said);
    }
    if !some.is_empty() && !request.delete_objects && !binding.metadata.is_deleting() {
        let what = some.iter().map(|(crd, count)| format!("{count} {crd}")).collect::<Vec<_>>().join(", ");
        return Err(UnbindError::HasObjects { what });
    }
    if request.keep_copies {
        let patch = json!({"metadata": {"annotations": {KEEP_COPIES_ANNOTATION: "true"}}});
        client.merge_patch(&kind, None, name, &patch).await.map_err(failed)?;
    }
    let options = DeleteOptions { uid: Some(binding.metadata.uid.clone()), ..DeleteOptions::default() };
    match client.delete(&kind, None, name, &options).await {
        Err(error) if !error.is_not_found() => return Err(failed(error)),
        _ => {}
    }
    gone(client, &binding, request.timeout).await?;
    let _ = writeln!(said, "apiservicebinding/{name} is gone");
    Ok(said)
}

pub(crate) fn resource() -> Resource {
    let kind = API_SERVICE_BINDING;
    Resource::cluster_wide(kind.group, kind.version, kind.kind, kind.plural)
}

/// The bundle that a binding belongs to.
pub(crate) fn bundle(binding: &ApiServiceBinding) -> Option<String> {
    let mut owners = binding.metadata.owner_references.iter();
    let owner = owners.find(|owner| owner.controller && owner.kind == API_SERVICE_BINDING_BUNDLE.kind);
    owner.filter(|_| !binding.metadata.is_deleting()).map(|owner| owner.name.clone())
}

/// How many objects each CRD of a binding has here. CRDs of others are not counted: they stay.
async fn objects(client: &Client, binding: &ApiServiceBinding) -> Result<Vec<(String, usize)>, UnbindError> {
    let crds =
        Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    let mut all = Vec::new();
    for bound in &binding.status.bound_schemas {
        let name = bound_schema_name(&bound.group, &bound.resource);
        let failed = |source| UnbindError::Cluster { what: format!("CustomResourceDefinition {name}"), source };
        let Some(crd) = client.get(&crds, None, &name).await.map_err(failed)? else { continue };
        let mut owners = crd["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        if !owners.any(|owner| owner["uid"] == binding.metadata.uid.as_str()) {
            continue;
        }
        let mut versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let Some(version) = versions.find(|version| version["served"] == true) else { continue };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&crd["spec"]["names"]["kind"]);
        let resource = Resource::namespaced(&bound.group, &text(&version["name"]), &kind, &bound.resource);
        let list = client.metadata_only().list_compact(&resource, None, &ListOptions::default()).await;
        let count = match list {
            Err(error) if error.is_not_found() => 0,
            list => list.map_err(failed)?.len(),
        };
        all.push((name, count));
    }
    Ok(all)
}

/// Waits until a binding is gone, or another one has its name.
async fn gone(client: &Client, binding: &ApiServiceBinding, longest: Duration) -> Result<(), UnbindError> {
    let (name, deadline) = (&binding.metadata.name, Instant::now() + longest);
    loop {
        let found = match client.get(&resource(), None, name).await {
            Err(error) if error.is_transient() => Some(Value::Null),
            found => {
                found.map_err(|source| UnbindError::Cluster { what: format!("APIServiceBinding {name}"), source })?
            }
        };
        let Some(found) = found else { return Ok(()) };
        if found["metadata"]["uid"].as_str().is_some_and(|uid| uid != binding.metadata.uid) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let binding: ApiServiceBinding = serde_json::from_value(found).unwrap_or_default();
            let says = conditions::find(&binding.status.conditions, DRAINED).map(|it| it.message.clone());
            let why = says.unwrap_or_else(|| "no konnector has said anything; is one running?".to_owned());
            return Err(UnbindError::Late { name: name.clone(), seconds: longest.as_secs(), why });
        }
        tokio::time::sleep(POLL).await;
    }
}
