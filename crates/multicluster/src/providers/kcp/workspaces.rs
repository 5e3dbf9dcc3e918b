//! Workspaces at their begin and end: what initializers and terminators work on.

use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Client, ConnectError, Error};
use carrick_kcp::LOGICAL_CLUSTER_NAME;
use carrick_kcp::core::v1alpha1::LogicalCluster;
use carrick_kcp::kinds::{LOGICAL_CLUSTER, WORKSPACE_TYPE};
use carrick_kcp::tenancy::v1alpha1::WorkspaceType;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use thiserror::Error;

use super::endpoints::{GRACE, Setup};
use super::engagement::Rules;
use crate::cluster::Cluster;
use crate::endpoint::ClusterKey;
use crate::event::FleetEvent;
use crate::provider::Provider;

const INITIALIZING: &str = "/services/initializingworkspaces/";
const TERMINATING: &str = "/services/terminatingworkspaces/";

/// How often a patch is tried again because somebody else changed the list at the same time.
const ATTEMPTS: usize = 10;

/// Why an initializer or terminator was not removed.
#[derive(Debug, Error)]
pub enum HookError {
    /// The cluster comes from another provider.
    #[error("cluster {cluster} is not one of {provider}; its endpoint is {endpoint}")]
    WrongProvider {
        /// The cluster.
        cluster: String,
        /// What it should come from.
        provider: &'static str,
        /// Where it comes from.
        endpoint: String,
    },
    /// The server refused or could not be reached.
    #[error(transparent)]
    Server(#[from] Error),
}

/// Provider of new workspaces of a type, for as long as they wait for the initializer of the type.
///
/// The type must have `spec.initializer: true`. When everything is prepared, [`remove_initializer`] lets the workspace go on.
#[derive(Clone, Debug)]
pub struct InitializingWorkspaces {
    setup: Setup,
}

/// Provider of workspaces of a type that are being deleted, for as long as they wait for the terminator of the type.
///
/// The type must have `spec.terminator: true`. When everything is cleaned up, [`remove_terminator`] lets the workspace go.
#[derive(Clone, Debug)]
pub struct TerminatingWorkspaces {
    setup: Setup,
}

macro_rules! flavour {
    ($provider:ident, $service:ident) => {
        impl $provider {
            /// The workspaces of a type, given a client of the workspace where the type is. A [`kube::Client`] will not do, because
            /// the type may lead to other hosts: see `from_config`.
            pub fn new(workspace: Client, workspace_type: impl Into<String>) -> Self {
                Self { setup: setup(workspace, workspace_type.into(), $service) }
            }

            /// The same, given the configuration of a client of the workspace where the type is.
            pub fn from_config(config: kube::Config, workspace_type: impl Into<String>) -> Result<Self, ConnectError> {
                Ok(Self::new(Client::try_from(config)?, workspace_type))
            }

            /// Changes URLs before they are used, for servers that publish addresses that do not lead there from here.
            #[must_use]
            pub fn rewrite_url(mut self, rewrite: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
                self.setup.rewrite = Some(Arc::new(rewrite));
                self
            }

            /// How long workspaces stay after their endpoint is gone; five seconds, unless said otherwise.
            #[must_use]
            pub fn grace(mut self, grace: Duration) -> Self {
                self.setup.grace = grace;
                self
            }
        }

        impl Provider for $provider {
            fn events(&self) -> BoxStream<'static, FleetEvent> {
                self.setup.events()
            }
        }
    };
}

flavour!(InitializingWorkspaces, INITIALIZING);
flavour!(TerminatingWorkspaces, TERMINATING);

/// Says that a workspace is prepared as far as the initializer is concerned that its provider stands for. The cluster leaves the fleet:
/// [`Cluster::gone`] has fired when this returns. Nothing happens if it was said before.
pub async fn remove_initializer(cluster: &Cluster) -> Result<(), HookError> {
    remove(cluster, INITIALIZING, "initializers", "InitializingWorkspaces").await
}

/// Says that a workspace is cleaned up as far as the terminator is concerned that its provider stands for. The cluster leaves the fleet:
/// [`Cluster::gone`] has fired when this returns. Nothing happens if it was said before.
pub async fn remove_terminator(cluster: &Cluster) -> Result<(), HookError> {
    remove(cluster, TERMINATING, "terminators", "TerminatingWorkspaces").await
}

async fn remove(cluster: &Cluster, service: &str, field: &str, provider: &'static str) -> Result<(), HookError> {
    let Some((_, hook)) = cluster.endpoint().split_once(service) else {
        let (cluster, endpoint) = (cluster.name().to_string(), cluster.endpoint().to_string());
        return Err(HookError::WrongProvider { cluster, provider, endpoint });
    };
    let hook = hook.trim_end_matches('/').replace("%3A", ":");
    let (client, kind) = (cluster.json_client(), LOGICAL_CLUSTER.into());
    for attempt in 1.. {
        let Some(object) = client.get_kcp(LOGICAL_CLUSTER_NAME).await? else { break };
        let Some(patch) = without(&object, field, &hook) else { break };
        match client.merge_patch_status(&kind, None, LOGICAL_CLUSTER_NAME, &patch).await {
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => {}
            Err(error) if error.is_not_found() => break,
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    // The server will say so too, but nothing shall be begun in the meantime.
    cluster.gone().cancel();
    Ok(())
}

/// The patch that removes a hook from a list of the status, if it is there. Others remove theirs at the same time, hence the version.
fn without(object: &LogicalCluster, field: &str, hook: &str) -> Option<Value> {
    let status = &object.status;
    let list = if field == "initializers" { &status.initializers } else { &status.terminators };
    let rest: Vec<&String> = list.iter().filter(|entry| *entry != hook).collect();
    if rest.len() == list.len() {
        return None;
    }
    Some(json!({
        "metadata": { "resourceVersion": object.metadata.resource_version },
        "status": { field: rest },
    }))
}

fn setup(workspace: Client, workspace_type: String, service: &'static str) -> Setup {
    Setup {
        workspace,
        listing: WORKSPACE_TYPE.into(),
        name: workspace_type,
        engaged: LOGICAL_CLUSTER.into(),
        newest: false,
        rules: Arc::new(move || rules(service)),
        rewrite: None,
        hook: None,
        grace: GRACE,
        may_leave: true,
    }
}

fn rules(service: &'static str) -> Rules {
    Rules {
        urls: Box::new(move |kind| urls(&kind.decode().unwrap_or_default(), service)),
        // The server shows only those that wait.
        counts: Box::new(|_, _| true),
        apis: Box::new(|_| String::new()),
        open_claims: Box::new(|_| String::new()),
        key: ClusterKey::KCP,
        grace: GRACE,
        meet: false,
    }
}

/// The URLs of one service in `status.virtualWorkspaces[].url` of a WorkspaceType.
fn urls(kind: &WorkspaceType, service: &str) -> Vec<String> {
    let urls = kind.status.virtual_workspaces.iter().map(|entry| &entry.url);
    urls.filter(|url| url.contains(service)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use carrick_kcp::tenancy::v1alpha1::VirtualWorkspace;

    use super::*;

    #[test]
    fn each_provider_takes_the_urls_of_its_service() {
        let mut kind = WorkspaceType::new("t");
        kind.status.virtual_workspaces = vec![
            VirtualWorkspace::new("initializing", "https://a/services/initializingworkspaces/root:t"),
            VirtualWorkspace::new("terminating", "https://a/services/terminatingworkspaces/root:t"),
            VirtualWorkspace::new("", "https://b/services/initializingworkspaces/root:t"),
        ];
        assert_eq!(urls(&kind, INITIALIZING).len(), 2);
        assert_eq!(urls(&kind, TERMINATING), ["https://a/services/terminatingworkspaces/root:t"]);
        assert!(urls(&WorkspaceType::default(), INITIALIZING).is_empty());
    }

    #[test]
    fn only_the_own_hook_is_removed_and_only_once() {
        let object = |list: &[&str]| {
            let mut cluster = LogicalCluster::default();
            cluster.metadata.resource_version = "7".to_owned();
            cluster.status.initializers = list.iter().map(|hook| (*hook).to_owned()).collect();
            cluster
        };
        let patch = without(&object(&["root:other", "abc:mine"]), "initializers", "abc:mine").unwrap();
        assert_eq!(patch, json!({"metadata": {"resourceVersion": "7"}, "status": {"initializers": ["root:other"]}}));
        assert_eq!(without(&object(&["root:other"]), "initializers", "abc:mine"), None);
        assert_eq!(without(&LogicalCluster::default(), "initializers", "abc:mine"), None);
    }
}
