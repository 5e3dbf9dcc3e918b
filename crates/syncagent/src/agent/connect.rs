//! The way from the kcp kubeconfig to the APIExport: slice, export, and the workspaces they live in.

use std::fmt;
use std::pin::pin;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Error, ListOptions, Resource, Server};
use carrick_kcp::LOGICAL_CLUSTER_NAME;
use carrick_kcp::apis::v1alpha1::{ApiExportEndpointSlice, ExportReference};
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::core::v1alpha1::LogicalCluster;
use carrick_kcp::kinds::{API_EXPORT_ENDPOINT_SLICE, KcpObject, Kind};
use carrick_kcp::url::UrlError;
use futures::StreamExt;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::health::Part;
use super::retry::Backoff;

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
    /// The export has no slice of its own.
    #[error(
        "APIExport {export:?} has no APIExportEndpointSlice in workspace {workspace}; create one whose spec.export.name is \
         {export:?} (kcp does so by itself since 0.28), or name one with --apiexportendpointslice-ref"
    )]
    NoSlice {
        /// Name of the export.
        export: String,
        /// Workspace, as in the URL.
        workspace: String,
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

/// How the command line names the APIExportEndpointSlice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SliceRef {
    /// By its own name.
    Named(String),
    /// By the name of an APIExport in the same workspace, as older agents did.
    OfExport(String),
}

impl From<&str> for SliceRef {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

impl From<String> for SliceRef {
    fn from(name: String) -> Self {
        Self::Named(name)
    }
}

impl fmt::Display for SliceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::OfExport(name) => write!(f, "that of APIExport {name}"),
        }
    }
}

/// Where the agent works in kcp.
#[derive(Debug, Clone)]
pub struct KcpLocations {
    /// Name of the APIExportEndpointSlice.
    pub slice_name: String,
    /// What the slice said about its export.
    pub reference: ExportReference,
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
    slice: &SliceRef,
    once: bool,
    part: &Part,
    stop: &CancellationToken,
) -> Result<Option<KcpLocations>, ConnectError> {
    check_url(kcp)?;
    let (client, mut backoff) = (kcp.client(), Backoff::for_servers());
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
            () = client.pause(backoff.pause()) => {}
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
async fn find(kcp: &Server, slice: &SliceRef) -> Result<KcpLocations, ConnectError> {
    let client = kcp.client();
    let (slice_name, slice) = match slice {
        SliceRef::Named(name) => (name.clone(), get::<ApiExportEndpointSlice>(&client, name).await?),
        SliceRef::OfExport(export) => slice_of(&client, export).await?,
    };
    let slice_workspace = workspace(client).await?;
    let reference = slice.spec.export;
    if reference.name.is_empty() {
        return Err(ConnectError::NoExport { slice: slice_name });
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
    get_export(&export_client, &reference.name).await?;
    let export_workspace = workspace(export_client).await?;
    tracing::info!(
        apiexport = reference.name,
        workspace = export_workspace.path,
        cluster = export_workspace.cluster,
        "Resolved APIExport."
    );
    Ok(KcpLocations {
        slice_name,
        export_name: reference.name.clone(),
        reference,
        slice: slice_workspace,
        export: export_workspace,
    })
}

/// The slice of an export: the one of the same name that kcp makes, else any in the workspace that is for this export.
async fn slice_of(client: &Client, export: &str) -> Result<(String, ApiExportEndpointSlice), ConnectError> {
    get_export(client, export).await?;
    let failed = |source: Error| ConnectError::Request {
        what: format!("APIExportEndpointSlice of APIExport {export:?}"),
        workspace: shown(client),
        hint: hint(&source),
        source: Box::new(source),
    };
    let own = client.get_kcp::<ApiExportEndpointSlice>(export).await.map_err(failed)?;
    if let Some(slice) = own.filter(|slice| slice.spec.export.name == export) {
        return Ok((export.to_owned(), slice));
    }
    // The workspace may be called by its path or by the name of its cluster; a slice for a namesake elsewhere is not meant.
    let here = workspace(client.clone()).await?;
    let is_here = |path: &str| path.is_empty() || path == here.path || path == here.cluster;
    let slices = client.list_kcp::<ApiExportEndpointSlice>(&ListOptions::default()).await.map_err(failed)?;
    let found = slices.into_iter().find(|slice| slice.spec.export.name == export && is_here(&slice.spec.export.path));
    let slice = found.ok_or_else(|| ConnectError::NoSlice { export: export.to_owned(), workspace: shown(client) })?;
    Ok((slice.metadata.name.clone(), slice))
}

/// Waits until the slice is for another export.
pub async fn moved(places: &KcpLocations) -> ExportReference {
    let options = WatchOptions::fields(format!("metadata.name={}", places.slice_name));
    let mut events = pin!(watch(places.slice.client.clone(), API_EXPORT_ENDPOINT_SLICE.into(), options));
    // A slice that is gone, or a watch that fails, is told of by the part that needs its endpoints.
    while let Some(event) = events.next().await {
        if let Event::Listed(slice) | Event::Applied(slice) = event {
            let reference = slice.decode::<ApiExportEndpointSlice>().unwrap_or_default().spec.export;
            let known = &places.reference;
            let moved = reference.name != known.name || reference.path != known.path;
            if moved && !reference.name.is_empty() {
                return reference;
            }
        }
    }
    std::future::pending().await
}

/// Asks a workspace who it is.
async fn workspace(client: Client) -> Result<Workspace, ConnectError> {
    let LogicalCluster { metadata, .. } = get(&client, LOGICAL_CLUSTER_NAME).await?;
    let Some(cluster) = metadata.cluster().filter(|cluster| !cluster.is_empty()).map(str::to_owned) else {
        return Err(ConnectError::NoClusterName { workspace: shown(&client) });
    };
    Ok(Workspace { client, cluster, path: metadata.path().unwrap_or_default().to_owned() })
}

async fn get<K: KcpObject>(client: &Client, name: &str) -> Result<K, ConnectError> {
    existing(client, name, client.get_kcp(name).await)
}

/// The export in the newest version that kcp serves.
async fn get_export(client: &Client, name: &str) -> Result<ApiExport, ConnectError> {
    existing(client, name, client.get_newest(name).await)
}

fn existing<K: KcpObject>(client: &Client, name: &str, found: Result<Option<K>, Error>) -> Result<K, ConnectError> {
    let what = format!("{} {name:?}", K::KIND.kind);
    match found {
        Ok(Some(object)) => Ok(object),
        Ok(None) => Err(ConnectError::Missing {
            what,
            workspace: shown(client),
            url: client.url().to_owned(),
            plural: K::KIND.plural,
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
        None if error.is_untrusted() => {
            "; the CA in the kcp kubeconfig is not the one that has signed its certificate: correct certificate-authority-data"
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
    Resource::from(*kind)
}
