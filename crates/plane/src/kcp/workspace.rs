//! Workspaces: from creation through scheduling to Ready, and their deletion.

use carrick_kcp::condition::{self, Condition, Severity};
use carrick_kcp::core::v1alpha1::{LogicalCluster, LogicalClusterOwner, LogicalClusterPhase as Phase, UserInfo};
use carrick_kcp::hash::b36s224;
use carrick_kcp::names::conditions::{WORKSPACE_CONTENT_DELETED, WORKSPACE_INITIALIZED, WORKSPACE_SCHEDULED};
use carrick_kcp::names::{
    LOGICAL_CLUSTER_FINALIZER, OWNER_ANNOTATION, PATH_ANNOTATION, PHASE_LABEL, REQUIRED_GROUPS_ANNOTATION,
    SHARD_ANNOTATION, TERMINATORS_FINALIZER, TYPE_ANNOTATION, WORKSPACE_CLUSTER_ANNOTATION, WORKSPACE_FINALIZER,
    WORKSPACE_SHARD_ANNOTATION,
};
use carrick_kcp::tenancy::v1alpha1::Workspace;
use carrick_kcp::url::in_workspace;
use serde_json::json;

use super::cluster;
use super::data::{CLUSTERS, Data, ROOT, SELF, now};
use super::shards::Shards;
use super::types;
use crate::store::Key;

/// Reconciles one Workspace, in the same steps that clients of kcp see.
pub fn reconcile(data: &Data, parent: &str, workspace: &str) {
    let read = || data.read::<Workspace>(parent, workspace);
    let Some(found) = read() else { return };
    if found.spec.mount.is_some() {
        return;
    }
    if found.metadata.is_deleting() {
        end(data, parent, &found);
        return;
    }
    if found.metadata.annotation(WORKSPACE_CLUSTER_ANNOTATION).is_none() {
        schedule(data, parent, workspace);
    }
    let Some(found) = read() else { return };
    let Some(cluster) = found.metadata.annotation(WORKSPACE_CLUSTER_ANNOTATION).map(str::to_owned) else { return };
    let path = format!("{}:{workspace}", data.path_of(parent));
    if found.spec.cluster.is_empty() && data.cluster(&cluster).is_none() {
        create_cluster(data, parent, &found, &cluster, &path);
    }
    data.edit_as(parent, workspace, |object: &mut Workspace| {
        object.spec.cluster.clone_from(&cluster);
        object.spec.url = in_workspace(&data.base, &path);
    });
    if matches!(found.status.phase, Phase::Scheduling | Phase::Unset) {
        data.edit_as(parent, workspace, |object: &mut Workspace| {
            condition::set(&mut object.status.conditions, Condition::holds(WORKSPACE_SCHEDULED), &now());
            set_phase(object, Phase::Initializing);
        });
    }
    let Some(cluster) = data.read_cluster(&cluster) else { return };
    data.edit_as(parent, workspace, |object| mirror(object, &cluster));
}

fn schedule(data: &Data, parent: &str, workspace: &str) {
    let scheduled = data.edit_as(parent, workspace, |object| set_phase(object, Phase::Scheduling));
    let mut id = cluster_name();
    while data.cluster(&id).is_some() {
        id = cluster_name();
    }
    let selector = scheduled.and_then(|found: Workspace| found.spec.location?.selector);
    let wanted = selector.as_ref().and_then(|selector| selector.match_labels.get("name"));
    let shard = Shards::name(data.shards.choose(&data.store, wanted.map(String::as_str)));
    data.edit_as(parent, workspace, |object: &mut Workspace| {
        object.metadata.add_finalizer(WORKSPACE_FINALIZER);
        object.metadata.annotate(SHARD_ANNOTATION, shard.as_str());
        object.metadata.annotate(WORKSPACE_SHARD_ANNOTATION, Shards::hash(&shard));
        object.metadata.annotate(WORKSPACE_CLUSTER_ANNOTATION, id.as_str());
    });
}

fn cluster_name() -> String {
    let mut digits = b36s224(&uuid::Uuid::new_v4().to_string());
    digits.truncate(16);
    digits
}

fn create_cluster(data: &Data, parent: &str, workspace: &Workspace, cluster: &str, path: &str) {
    let kind = workspace.spec.type_.clone().unwrap_or_default();
    let types = types::find(data, parent, &kind.path, &kind.name).map(|found| types::closure(data, found));
    let types = types.unwrap_or_default();
    let creator = creator(workspace).unwrap_or_default();
    let mut object = LogicalCluster::new(SELF);
    let metadata = &mut object.metadata;
    let shard = workspace.metadata.annotation(SHARD_ANNOTATION).unwrap_or(ROOT);
    metadata.annotate(SHARD_ANNOTATION, shard);
    metadata.annotate(OWNER_ANNOTATION, by_name(&creator));
    metadata.annotate(TYPE_ANNOTATION, format!("{}:{}", kind.path, kind.name));
    metadata.annotate(PATH_ANNOTATION, path);
    if let Some(groups) = workspace.metadata.annotation(REQUIRED_GROUPS_ANNOTATION) {
        metadata.annotate(REQUIRED_GROUPS_ANNOTATION, groups);
    }
    metadata.set_label(PHASE_LABEL, Phase::Scheduling.as_str());
    metadata.add_finalizer(LOGICAL_CLUSTER_FINALIZER);
    object.spec.initializers = types::initializers(&types);
    object.spec.terminators = types::terminators(&types);
    if !object.spec.terminators.is_empty() {
        metadata.add_finalizer(TERMINATORS_FINALIZER);
    }
    object.spec.owner = Some(LogicalClusterOwner::of(workspace, parent));
    object.spec.created_by = Some(creator);
    object.status.phase = Phase::Scheduling;
    data.create_as(cluster, &object);
}

/// The user who created a workspace, as admission noted them.
fn creator(workspace: &Workspace) -> Option<UserInfo> {
    serde_json::from_str(workspace.metadata.annotation(OWNER_ANNOTATION)?).ok()
}

/// What is left of the note once a workspace is ready.
fn by_name(creator: &UserInfo) -> String {
    json!({"username": creator.username}).to_string()
}

fn set_phase(workspace: &mut Workspace, phase: Phase) {
    workspace.metadata.set_label(PHASE_LABEL, phase.as_str());
    workspace.status.phase = phase;
}

/// Copies phase and conditions from the logical cluster.
fn mirror(workspace: &mut Workspace, cluster: &LogicalCluster) {
    let phase = &cluster.status.phase;
    workspace.status.initializers.clone_from(&cluster.status.initializers);
    workspace.status.terminators.clone_from(&cluster.status.terminators);
    if *phase == Phase::Ready {
        condition::set(&mut workspace.status.conditions, Condition::holds(WORKSPACE_INITIALIZED), &now());
        if let Some(creator) = creator(workspace) {
            workspace.metadata.annotate(OWNER_ANNOTATION, by_name(&creator));
        }
    } else if !cluster.status.initializers.is_empty() {
        let waiting = cluster::still_initializing(&cluster.status.initializers);
        condition::set(&mut workspace.status.conditions, waiting, &now());
    }
    if !matches!(phase, Phase::Unset | Phase::Scheduling) {
        set_phase(workspace, phase.clone());
    }
}

/// Deletes the logical cluster, then releases the Workspace.
fn end(data: &Data, parent: &str, workspace: &Workspace) {
    let metadata = &workspace.metadata;
    let cluster = metadata.annotation(WORKSPACE_CLUSTER_ANNOTATION).unwrap_or_default();
    let is_ours = |inner: &LogicalCluster| inner.spec.owner.as_ref().is_some_and(|owner| owner.uid == metadata.uid);
    match data.read_cluster(cluster).filter(is_ours) {
        Some(found) => {
            data.delete(&Key::new(&CLUSTERS, cluster, "", SELF));
            let remains = condition::find(&found.status.conditions, WORKSPACE_CONTENT_DELETED);
            let terminating = !found.status.terminators.is_empty();
            data.edit_as(parent, &metadata.name, |object| {
                set_phase(object, if terminating { Phase::Terminating } else { Phase::Deleting });
                if let Some(Condition { type_, reason, message, .. }) = remains {
                    let verdict = Condition::fails(type_, Severity::Info, reason, message);
                    condition::set(&mut object.status.conditions, verdict, &now());
                }
            });
        }
        None if metadata.has_finalizer(WORKSPACE_FINALIZER) => {
            data.edit_as(parent, &metadata.name, |object: &mut Workspace| {
                object.metadata.remove_finalizer(WORKSPACE_FINALIZER);
            });
        }
        None => {}
    }
}
