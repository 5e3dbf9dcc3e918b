//! What one agent runs with.

use std::collections::BTreeSet;

use carrick_client::Server;

use super::connect::SliceRef;
use super::conversion::ConversionServer;
use super::platform_mesh::consumer::StagingRoot;
use super::timing::Timing;
use crate::rules::access::{Budget, Reserved};
use crate::rules::{Adoption, AfterRestore, AgentDefaults};

/// A part of the agent that can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// Writes the APIExport.
    ApiExport,
    /// Writes APIResourceSchemas.
    ApiResourceSchema,
    /// Synchronizes objects.
    Sync,
}

impl Controller {
    /// The controller of that name on the command line.
    pub fn named(name: &str) -> Option<Self> {
        [Self::ApiExport, Self::ApiResourceSchema, Self::Sync].into_iter().find(|controller| controller.name() == name)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ApiExport => "apiexport",
            Self::ApiResourceSchema => "apiresourceschema",
            Self::Sync => "sync",
        }
    }
}

/// What one agent runs with.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // one per flag
pub struct AgentConfig {
    /// The service cluster.
    pub local: Server,
    /// kcp, at the workspace that holds the slice.
    pub kcp: Server,
    /// Namespace of the agent on the service cluster.
    pub namespace: String,
    /// Name that marks what the agent owns.
    pub agent_name: String,
    /// Which APIExportEndpointSlice to work for.
    pub slice: SliceRef,
    /// Label selector for PublishedResources; empty means all.
    pub selector: String,
    /// Whether to take over what another agent keeps in the same APIExport.
    pub take_over: bool,
    /// What happens to objects in the place of copies where a PublishedResource says nothing about it.
    pub adoption: Adoption,
    /// What happens to orders that have gone back in time where a PublishedResource says nothing about it.
    pub after_restore: AfterRestore,
    /// Whether copies are written by server-side apply.
    pub apply: bool,
    /// Namespaces of the service cluster, beside its own and those of the cluster, that no order leads to.
    pub reserved_namespaces: Vec<String>,
    /// How many related objects one order may have.
    pub budget: Budget,
    /// Where a broker of Platform Mesh has its staging workspaces, if orders come from one.
    pub staging_root: Option<StagingRoot>,
    /// Controllers not to run.
    pub disabled: BTreeSet<Controller>,
    /// Whether to work only while holding a lease.
    pub leader_election: bool,
    /// Where to serve metrics.
    pub metrics_address: Option<String>,
    /// Where to serve probes.
    pub health_address: Option<String>,
    /// Where to serve the dashboard.
    pub dashboard_address: Option<String>,
    /// For whom tokens of the dashboard must be; none takes those for dashboards and those for the service cluster itself.
    pub dashboard_audience: Option<String>,
    /// Where to serve the conversion webhook.
    pub conversion: Option<ConversionServer>,
    /// Name of the Secret with the kubeconfig for kcp, if its token is to be renewed.
    pub renew_token: Option<String>,
    /// Whether to give up when kcp cannot be reached at the start.
    pub exit_on_startup_error: bool,
    /// How often to check what no watch reports.
    pub timing: Timing,
}

impl AgentConfig {
    /// What holds for all PublishedResources.
    pub(super) fn defaults(&self) -> AgentDefaults {
        let agent_name = self.agent_name.clone();
        AgentDefaults {
            agent_name,
            adoption: self.adoption,
            after_restore: self.after_restore,
            apply: self.apply,
            reserved: Reserved::new(&self.namespace, &self.reserved_namespaces),
            budget: self.budget,
        }
    }
}
