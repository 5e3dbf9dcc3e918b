//! The bootstrap policy: roles and bindings that are stored when a plane starts.

use crate::api::{Api, WriteOptions};
use crate::auth::policy;
use crate::caller::Caller;
use crate::resource::groups::RBAC;
use crate::status::Status;

/// Stores the bootstrap policy in a cluster; what exists is left alone.
pub(super) fn install(api: &Api, cluster: &str) -> Result<(), Status> {
    for object in policy::objects(api.release) {
        let plural = if object["kind"] == "ClusterRole" { "clusterroles" } else { "clusterrolebindings" };
        let Some(scope) = api.scope(cluster, RBAC, plural) else { continue };
        match api.create(&Caller::system(), &scope, object, &WriteOptions::default()) {
            Err(status) if status.reason != "AlreadyExists" => return Err(status),
            _ => {}
        }
    }
    Ok(())
}
