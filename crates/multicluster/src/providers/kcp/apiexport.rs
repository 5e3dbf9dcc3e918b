//! The fleet of one kcp APIExport: every workspace that binds it.

use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Client, ConnectError, Object};
use carrick_kcp::apis::v1alpha1::ApiExportEndpointSlice;
use carrick_kcp::apis::v1alpha2::{ApiBinding, PermissionClaim};
use carrick_kcp::kinds::{API_BINDING_V2, API_EXPORT_ENDPOINT_SLICE, VersionedObject};
use futures::FutureExt;
use futures::stream::BoxStream;

use super::endpoints::{GRACE, Setup};
use super::engagement::{Rules, Stage};
use crate::cluster::Cluster;
use crate::endpoint::ClusterKey;
use crate::event::FleetEvent;
use crate::provider::Provider;

/// Decides whether a binding makes its workspace take part.
pub(super) type Filter = Arc<dyn Fn(&ApiBinding) -> bool + Send + Sync>;

/// Provider of the workspaces that bind an APIExport. A slice without endpoints, or no slice at all, is a fleet without clusters.
///
/// Clusters have the names of their logical clusters, and are found by workspace path as well. A workspace takes part from the moment its
/// binding is ready first until its last binding is deleted: one that is being deleted still serves finalizers.
#[derive(Clone, Debug)]
pub struct ApiExport {
    setup: Setup,
}

impl ApiExport {
    /// The workspaces behind an APIExportEndpointSlice, given a client of the slice's workspace. A [`kube::Client`] will not do, because
    /// the slice may lead to other hosts: see [`ApiExport::from_config`].
    pub fn new(workspace: Client, slice: impl Into<String>) -> Self {
        let setup = Setup {
            workspace,
            listing: API_EXPORT_ENDPOINT_SLICE.into(),
            name: slice.into(),
            engaged: API_BINDING_V2.into(),
            newest: true,
            rules: Arc::new(|| rules(None)),
            rewrite: None,
            hook: None,
            grace: GRACE,
            may_leave: false,
        };
        Self { setup }
    }

    /// The same, given the configuration of a client of the slice's workspace.
    pub fn from_config(config: kube::Config, slice: impl Into<String>) -> Result<Self, ConnectError> {
        Ok(Self::new(Client::try_from(config)?, slice))
    }

    /// Which bindings make their workspaces take part; those that are ready, unless said otherwise. Once is enough: later answers do not
    /// matter. Bindings to other exports, which are visible if the export claims `apibindings`, never count.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(&ApiBinding) -> bool + Send + Sync + 'static) -> Self {
        let filter: Filter = Arc::new(filter);
        self.setup.rules = Arc::new(move || rules(Some(filter.clone())));
        self
    }

    /// Changes URLs before they are used, for servers that publish addresses that do not lead there from here.
    #[must_use]
    pub fn rewrite_url(mut self, rewrite: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.setup.rewrite = Some(Arc::new(rewrite));
        self
    }

    /// How long workspaces stay after their endpoint has left the slice; five seconds, unless said otherwise.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.setup.grace = grace;
        self
    }

    /// Calls for every binding that counts when it appears, changes and goes. Calls follow one another and delay nothing else.
    #[must_use]
    pub fn hooks<F>(mut self, hook: impl Fn(Cluster, ApiBinding, Stage) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.setup.hook = Some(Arc::new(move |cluster, object, stage| {
            let binding = read(&object).unwrap_or_default();
            hook(cluster, binding, stage).boxed()
        }));
        self
    }

    /// The version in which bindings are watched; the newest that each server has, unless said otherwise. They are handed on in the newest in
    /// any case.
    #[must_use]
    pub fn binding_version(mut self, version: &str) -> Self {
        self.setup.engaged.version = version.into();
        self.setup.newest = false;
        self
    }
}

impl Provider for ApiExport {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        self.setup.events()
    }
}

/// A binding, in whichever version it was watched.
fn read(binding: &Object) -> Result<ApiBinding, serde_json::Error> {
    let object: serde_json::Value = binding.decode()?;
    let version = object["apiVersion"].as_str().and_then(|version| version.rsplit('/').next()).unwrap_or_default();
    let version = version.to_owned();
    ApiBinding::from_version(&version, object)
}

/// How bindings are understood.
pub(super) fn rules(filter: Option<Filter>) -> Rules {
    let counts = move |binding: &Object, url: &str| {
        let Ok(decoded) = read(binding) else { return false };
        let wanted = filter.as_ref().map_or_else(|| decoded.is_ready(), |filter| filter(&decoded));
        wanted && binds_export_of(&decoded, url)
    };
    Rules {
        urls: Box::new(urls),
        counts: Box::new(counts),
        apis: Box::new(bound),
        open_claims: Box::new(open_claims),
        key: ClusterKey::KCP,
        grace: GRACE,
        meet: false,
    }
}

/// If the export claims APIBindings, consumers' bindings to other exports are visible too. Endpoint URLs of another
/// shape than kcp's, and bindings that do not say, are taken as they come.
fn binds_export_of(binding: &ApiBinding, url: &str) -> bool {
    let Some((cluster, export)) = url.split_once("/services/apiexport/").and_then(|(_, rest)| rest.split_once('/'))
    else {
        return true;
    };
    let says = |text: &str, wanted: &str| text.is_empty() || text == wanted;
    says(&binding.spec.reference.export.name, export) && says(&binding.status.api_export_cluster_name, cluster)
}

/// The URLs of a slice; none if it cannot be read.
fn urls(slice: &Object) -> Vec<String> {
    let slice: ApiExportEndpointSlice = slice.decode().unwrap_or_default();
    slice.urls().map(str::to_owned).collect()
}

/// What the export claims and the consumer has not accepted.
fn open_claims(binding: &Object) -> String {
    let binding = read(binding).unwrap_or_default();
    let accepted = |claim: &PermissionClaim| {
        binding.spec.permission_claims.iter().any(|ours| ours.is_accepted() && ours.key() == claim.key())
    };
    let open = binding.status.export_permission_claims.iter().filter(|claim| !accepted(claim));
    let shown = open.map(|PermissionClaim { group, resource, .. }| match group.as_str() {
        "" => resource.clone(),
        group => format!("{resource}.{group}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// What a binding serves, as a text to compare.
fn bound(binding: &Object) -> String {
    let binding = read(binding).unwrap_or_default();
    serde_json::to_string(&binding.status.bound_resources).unwrap_or_default()
}
