//! Home workspaces: every user's own logical cluster, created when its owner first asks for `workspaces/~` in the root.

use carrick_kcp::core::v1alpha1::{LogicalCluster, LogicalClusterPhase};
use carrick_kcp::hash::home_cluster;
use carrick_kcp::names::{LOGICAL_CLUSTER_FINALIZER, OWNER_ANNOTATION, PATH_ANNOTATION, PHASE_LABEL, TYPE_ANNOTATION};
use carrick_kcp::tenancy::v1alpha1::Workspace;
use serde_json::{Value, json};

use super::authorize;
use super::cluster;
use super::data::{Data, ROOT, SELF};
use super::types;
use crate::auth::rbac;
use crate::caller::Caller;
use crate::request::Attributes;
use crate::status::Status;

/// The type of home workspaces, in the root.
const TYPE: &str = "home";

/// Whether a request asks for the caller's own home.
pub fn is_asked_for(cluster: &str, asked: &Attributes) -> bool {
    cluster == ROOT
        && asked.verb == "get"
        && asked.group == "tenancy.kcp.io"
        && asked.resource == "workspaces"
        && asked.name == "~"
}

/// The home of a caller, as a Workspace that is not stored. The first request creates it; until it is ready, callers are asked to wait.
pub fn of(data: &Data, caller: &Caller) -> Result<Value, Status> {
    let cluster = home_cluster(&caller.user);
    let Some(found) = data.read_cluster(&cluster) else {
        may_have_one(data, caller)?;
        create(data, &cluster, &caller.user);
        return Err(Status::wait_a_second("Creating the home workspace\n"));
    };
    if matches!(found.status.phase, LogicalClusterPhase::Scheduling | LogicalClusterPhase::Initializing) {
        return Err(Status::wait_a_second("Creating the home workspace\n"));
    }
    let mut home = Workspace::new(SELF);
    home.metadata.creation_timestamp = found.metadata.creation_timestamp;
    home.spec.cluster = cluster;
    home.spec.url = found.status.url;
    home.status.phase = found.status.phase;
    home.status.conditions = found.status.conditions;
    home.status.initializers = found.status.initializers;
    // Whatever was read can be written.
    Ok(serde_json::to_value(home).unwrap_or_default())
}

fn may_have_one(data: &Data, caller: &Caller) -> Result<(), Status> {
    let create = Attributes {
        verb: "create".into(),
        group: "tenancy.kcp.io".into(),
        resource: "workspaces".into(),
        name: "~".into(),
        ..Attributes::default()
    };
    authorize::chain(data, caller, ROOT, &create)
        .map_err(|_| rbac::refusal(caller, &create, ": workspace access not permitted"))
}

fn create(data: &Data, cluster: &str, user: &str) {
    let types = types::find(data, ROOT, ROOT, TYPE).map(|found| types::closure(data, found)).unwrap_or_default();
    cluster::grant_owner(data, cluster, user);
    let mut object = LogicalCluster::new(SELF);
    object.metadata.annotate(OWNER_ANNOTATION, json!({"username": user}).to_string());
    object.metadata.annotate(TYPE_ANNOTATION, format!("{ROOT}:{TYPE}"));
    object.metadata.annotate(PATH_ANNOTATION, format!("user:{user}"));
    object.metadata.add_finalizer(LOGICAL_CLUSTER_FINALIZER);
    object.metadata.set_label(PHASE_LABEL, LogicalClusterPhase::Scheduling.as_str());
    object.spec.initializers = types::initializers(&types);
    object.status.phase = LogicalClusterPhase::Scheduling;
    data.create_as(cluster, &object);
}
