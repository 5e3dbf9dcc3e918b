//! Who a cluster is, as its server says.

use carrick_bind_api::core::identity::{KCP_GROUP, LOGICAL_CLUSTER, SYSTEM_NAMESPACE};
use carrick_client::{Client, Error, Resource};

use crate::agent::resources;
use crate::decide::core::connection::Progress;

fn unread(error: &Error) -> Progress {
    if error.is_forbidden() {
        return Progress::Forbidden(format!("reading provider cluster identity is forbidden by RBAC: {error}"));
    }
    Progress::Unreachable(error.to_string())
}

/// The uid of the LogicalCluster if it is a workspace of kcp, else that of Namespace kube-system. Whether the server knows the former is asked first: a
/// narrow credential gets 403 and not 404 for what is not served.
pub(super) async fn read(client: &Client) -> Result<String, Progress> {
    let served = match client.raw_get(&format!("/apis/{KCP_GROUP}")).await {
        Ok(_) => true,
        Err(error) if error.is_not_found() || error.is_forbidden() => false,
        Err(error) => return Err(unread(&error)),
    };
    let mut missing = "it is not served".to_owned();
    if served {
        let kind = Resource::cluster_wide(KCP_GROUP, "v1alpha1", "LogicalCluster", "logicalclusters");
        match client.get(&kind, None, LOGICAL_CLUSTER).await {
            Ok(Some(found)) => return uid(&found),
            Ok(None) => "it does not exist".clone_into(&mut missing),
            Err(error) => return Err(unread(&error)),
        }
    }
    match client.get(&resources::namespaces(), None, SYSTEM_NAMESPACE).await {
        Ok(Some(found)) => uid(&found),
        Ok(None) => Err(Progress::Unreachable(format!(
            "cannot determine cluster identity (no LogicalCluster: {missing}; no kube-system namespace: it does not exist)"
        ))),
        Err(error) => Err(unread(&error)),
    }
}

fn uid(object: &serde_json::Value) -> Result<String, Progress> {
    let uid = object["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty());
    uid.map(str::to_owned)
        .ok_or_else(|| Progress::Unreachable("the object that names the cluster has no uid".to_owned()))
}
