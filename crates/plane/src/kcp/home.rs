//! Home workspaces: every user's own logical cluster, created when its owner first asks for `workspaces/~` in the root.

use carrick_kcp::hash::home_cluster;
use serde_json::{Value, json};

use super::authorize;
use super::cluster::{self, OWNER_ANNOTATION, PHASE_LABEL};
use super::data::{CLUSTERS, Data, ROOT, SELF};
use super::object::text;
use super::types;
use crate::api::Caller;
use crate::auth::rbac;
use crate::extension::Attributes;
use crate::status::Status;
use crate::store::Key;

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
    let Some(found) = data.cluster(&cluster) else {
        may_have_one(data, caller)?;
        create(data, &cluster, &caller.user);
        return Err(Status::wait_a_second("Creating the home workspace\n"));
    };
    if matches!(text(&found, "/status/phase"), "Scheduling" | "Initializing") {
        return Err(Status::wait_a_second("Creating the home workspace\n"));
    }
    let mut status = json!({"phase": found["status"]["phase"], "conditions": found["status"]["conditions"]});
    if let Some(initializers) = found.pointer("/status/initializers") {
        status["initializers"] = initializers.clone();
    }
    Ok(json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
        "metadata": {"name": SELF, "creationTimestamp": found["metadata"]["creationTimestamp"]},
        "spec": {"cluster": cluster, "URL": found["status"]["URL"]},
        "status": status,
    }))
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
    let object = json!({
        "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
        "metadata": {
            "annotations": {
                OWNER_ANNOTATION: json!({"username": user}).to_string(),
                types::TYPE_ANNOTATION: format!("{ROOT}:{TYPE}"),
                carrick_kcp::PATH_ANNOTATION: format!("user:{user}"),
            },
            "finalizers": [cluster::FINALIZER],
            "labels": {PHASE_LABEL: "Scheduling"},
        },
        "spec": {"directlyDeletable": false, "initializers": types::initializers(&types)},
        "status": {"phase": "Scheduling"},
    });
    data.create(&Key::new(&CLUSTERS, cluster, "", SELF), object);
}
