//! The way from the kcp kubeconfig to the APIExport: slice, export, and the workspaces they live in.

use carrick_client::{Client, Error, Resource, Server};
use carrick_kcp::apis::ExportReference;
use carrick_kcp::kinds::{API_EXPORT, API_EXPORT_ENDPOINT_SLICE, Kind, LOGICAL_CLUSTER};
use carrick_kcp::url::UrlError;
use carrick_kcp::{CLUSTER_ANNOTATION, LOGICAL_CLUSTER_NAME, PATH_ANNOTATION};
use serde_json::Value;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::health::Part;

/// Why the agent does not know where to work.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The kcp kubeconfig points at the server, not at a workspace.
    #[error(
        "failed to check kcp kubeconfig: kcp kubeconfig does not point to a specific workspace: its server is {url}; \
         it must end in /clusters/<workspace>, for example {url}/clusters/root:my-org"
    )]
    NoWorkspace {
        /// Server URL of the kubeconfig.
        url: String,
    },
    /// kcp did not answer, or refused.
    #[error("cannot get {what} in workspace {workspace}: {source}{hint}")]
    Request {
        /// Kind and name of the object asked for.
        what: String,
        /// Workspace, as in the URL.
        workspace: String,
        /// What went wrong.
        source: Box<Error>,
        /// The way out.
        hint: &'static str,
    },
    /// An object is not there.
    #[error(
        "{what} does not exist in workspace {workspace}, or that workspace does not; \
         see what does with `kubectl --server {url} get {plural}`"
    )]
    Missing {
        /// Kind and name of the object asked for.
        what: String,
        /// Workspace, as in the URL.
        workspace: String,
        /// URL of the workspace.
        url: String,
        /// Plural of the kind.
        plural: &'static str,
    },
    /// The slice names no export.
    #[error("APIExportEndpointSlice {slice:?} names no APIExport; set its spec.export.name")]
    NoExport {
        /// Name of the slice.
        slice: String,
    },
    /// A LogicalCluster does not say which one it is.
    #[error("the LogicalCluster of workspace {workspace} has no annotation kcp.io/cluster; is this a kcp server?")]
    NoClusterName {
        /// Workspace, as in the URL.
        workspace: String,
    },
    /// The URL of the export's workspace cannot be made.
    #[error("cannot reach the workspace {path:?} of APIExport {export:?}: {problem}")]
    Path {
        /// `spec.export.path` of the slice.
        path: String,
        /// Name of the export.
        export: String,
        /// What is wrong.
        problem: String,
    },
}

/// Where the agent works in kcp.
#[derive(Debug, Clone)]
pub struct Places {
    /// The workspace that holds the APIExportEndpointSlice.
    pub slice: Workspace,
    /// The workspace that holds the APIExport and its schemas.
    pub export: Workspace,
    /// Name of the APIExport.
    pub export_name: String,
}

/// One workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Client of that workspace.
    pub client: Client,
    /// Name of its logical cluster.
    pub cluster: String,
    /// Its path; empty if kcp does not tell.
    pub path: String,
}

/// Finds slice and export, trying again until both are there; `None` if told to stop before.
pub async fn connect(
    kcp: &Server,
    slice: &str,
    once: bool,
    part: &Part,
    stop: &CancellationToken,
) -> Result<Option<Places>, ConnectError> {
    check_url(kcp)?;
    let mut backoff = Backoff::for_servers();
    loop {
        let found = tokio::select! {
            () = stop.cancelled() => return Ok(None),
            found = find(kcp, slice) => found,
        };
        match found {
            Ok(places) => {
                part.works();
                return Ok(Some(places));
            }
            Err(error) if once => return Err(error),
            Err(error) => part.fails(&error),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(None),
            () = tokio::time::sleep(backoff.pause()) => {}
        }
    }
}

fn check_url(kcp: &Server) -> Result<(), ConnectError> {
    match carrick_kcp::url::workspace(kcp.url()) {
        Err(UrlError::NoCluster(_)) => Err(ConnectError::NoWorkspace { url: kcp.url().to_owned() }),
        Ok(_) | Err(UrlError::ManyClusters(_)) => Ok(()),
    }
}

/// One attempt.
async fn find(kcp: &Server, slice_name: &str) -> Result<Places, ConnectError> {
    let client = kcp.client();
    let slice = get(&client, &API_EXPORT_ENDPOINT_SLICE, slice_name).await?;
    let slice_workspace = workspace(client).await?;
    let reference: ExportReference = serde_json::from_value(slice["spec"]["export"].clone()).unwrap_or_default();
    if reference.name.is_empty() {
        return Err(ConnectError::NoExport { slice: slice_name.to_owned() });
    }
    tracing::info!(
        apiexportendpointslice = slice_name,
        workspace = slice_workspace.path,
        cluster = slice_workspace.cluster,
        "Resolved APIExportEndpointSlice."
    );
    let path_error =
        |problem: String| ConnectError::Path { path: reference.path.clone(), export: reference.name.clone(), problem };
    let export_client = if reference.path.is_empty() {
        slice_workspace.client.clone()
    } else {
        let url = carrick_kcp::url::retarget(kcp.url(), &reference.path).map_err(|e| path_error(e.to_string()))?;
        kcp.at_url(&url).map_err(|e| path_error(e.to_string()))?
    };
    get(&export_client, &API_EXPORT, &reference.name).await?;
    let export_workspace = workspace(export_client).await?;
    tracing::info!(
        apiexport = reference.name,
        workspace = export_workspace.path,
        cluster = export_workspace.cluster,
        "Resolved APIExport."
    );
    Ok(Places { slice: slice_workspace, export: export_workspace, export_name: reference.name })
}

/// Asks a workspace who it is.
async fn workspace(client: Client) -> Result<Workspace, ConnectError> {
    let object = get(&client, &LOGICAL_CLUSTER, LOGICAL_CLUSTER_NAME).await?;
    let annotation = |key: &str| object["metadata"]["annotations"][key].as_str().unwrap_or_default().to_owned();
    let cluster = annotation(CLUSTER_ANNOTATION);
    if cluster.is_empty() {
        return Err(ConnectError::NoClusterName { workspace: shown(&client) });
    }
    let path = annotation(PATH_ANNOTATION);
    Ok(Workspace { client, cluster, path })
}

async fn get(client: &Client, kind: &'static Kind, name: &str) -> Result<Value, ConnectError> {
    let what = format!("{} {name:?}", kind.kind);
    match client.get(&resource(kind), None, name).await {
        Ok(Some(object)) => Ok(object),
        Ok(None) => Err(ConnectError::Missing {
            what,
            workspace: shown(client),
            url: client.url().to_owned(),
            plural: kind.plural,
        }),
        Err(source) => {
            let hint = hint(&source);
            Err(ConnectError::Request { what, workspace: shown(client), source: Box::new(source), hint })
        }
    }
}

fn hint(error: &Error) -> &'static str {
    match error.status().map(|status| status.code) {
        Some(401) => "; the credentials in the kcp kubeconfig are not accepted, renew them",
        Some(403) => {
            "; either the workspace or the object does not exist, or the user of the kcp kubeconfig may not see it"
        }
        None if error.is_transient() => "; is kcp running, and does the kcp kubeconfig name its address?",
        _ => "",
    }
}

fn shown(client: &Client) -> String {
    carrick_kcp::url::workspace(client.url()).unwrap_or(client.url()).to_owned()
}

/// A kcp kind as the client wants it; all of them are cluster-wide.
pub(crate) fn resource(kind: &Kind) -> Resource {
    Resource::cluster_wide(kind.group, kind.version, kind.kind, kind.plural)
}
