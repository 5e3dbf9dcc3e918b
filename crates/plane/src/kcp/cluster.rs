//! LogicalClusters: initialization of new ones, and the clean-up of deleted ones until nothing is left in the store.

use std::collections::BTreeMap;

use carrick_kcp::apis::v1alpha2::{AcceptablePermissionClaim, ApiBinding, ApiExport, ExportReference};
use carrick_kcp::condition::{self, Condition, Severity};
use carrick_kcp::core::v1alpha1::{LogicalCluster, LogicalClusterPhase as Phase};
use carrick_kcp::hash::default_binding_name;
use carrick_kcp::names::conditions::{
    API_BINDINGS_RECONCILED, INITIAL_BINDING_COMPLETED, WORKSPACE_CONTENT_DELETED, WORKSPACE_INITIALIZED,
};
use carrick_kcp::names::{
    BINDING_FINALIZER, BINDINGS_INITIALIZER, LOGICAL_CLUSTER_FINALIZER, PHASE_LABEL, RESOURCE_BINDINGS_ANNOTATION,
    TERMINATORS_FINALIZER,
};
use carrick_kcp::url::in_workspace;
use serde_json::{Map, Value, json};

use super::bound::BoundKind;
use super::data::{CLUSTER_ROLE_BINDINGS, CLUSTERS, CRDS, Data, NAMESPACES, ROOT, SELF, WORKSPACES, now};
use super::hooks::Stage;
use super::object::{child, deleting, finalizers, uid};
use super::types;
use crate::store::{Key, Kind};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
/// The initializer of the type that every ordinary workspace extends.
const UNIVERSAL: &str = "root:universal";

/// Brings one logical cluster up to date, or purges what is left of one that no longer exists.
pub fn reconcile(data: &Data, cluster: &str) {
    if data.cluster(cluster).is_none() {
        purge(data, cluster);
        return;
    }
    let Some(found) = data.read_cluster(cluster) else { return };
    if found.metadata.is_deleting() {
        clean(data, cluster, &found);
        return;
    }
    if orphaned(data, &found) {
        data.delete(&Key::new(&CLUSTERS, cluster, "", SELF));
        return;
    }
    edit(data, cluster, |object| {
        let LogicalCluster { spec, status, .. } = object;
        status.url = in_workspace(&data.base, cluster);
        if matches!(status.phase, Phase::Unset | Phase::Scheduling) {
            if !spec.initializers.is_empty() {
                status.initializers.clone_from(&spec.initializers);
            }
            if !spec.terminators.is_empty() {
                status.terminators.clone_from(&spec.terminators);
            }
            set_phase(object, Phase::Initializing);
        }
        set_locks(data, object, cluster);
    });
    let Some(found) = data.read_cluster(cluster) else { return };
    if found.status.phase == Phase::Initializing {
        initialize(data, cluster, &found);
    }
}

fn edit(data: &Data, cluster: &str, change: impl FnMut(&mut LogicalCluster)) {
    data.edit_as(cluster, SELF, change);
}

/// Whether the Workspace of this cluster is gone, or a new one has taken its name.
fn orphaned(data: &Data, cluster: &LogicalCluster) -> bool {
    let Some(owner) = cluster.spec.owner.as_ref().filter(|owner| !owner.uid.is_empty()) else { return false };
    data.get(&WORKSPACES, &owner.cluster, &owner.name).is_none_or(|found| uid(&found) != owner.uid)
}

fn set_phase(object: &mut LogicalCluster, phase: Phase) {
    let LogicalCluster { metadata, status, .. } = object;
    metadata.set_label(PHASE_LABEL, phase.as_str());
    status.phase = phase;
    for stage in Stage::ALL {
        metadata.labels.retain(|key, _| !key.starts_with(&stage.label_prefix()));
        metadata.labels.extend(stage.hooks(status).iter().map(|hook| stage.label(hook)));
    }
}

/// The condition of a workspace that waits for initializers.
pub fn still_initializing(left: &[String]) -> Condition {
    let message = format!("Initializers still exist: [{}]", left.join(" "));
    Condition::fails(WORKSPACE_INITIALIZED, Severity::Info, "InitializerExists", message)
}

/// Processes the initializers that are ours; a workspace with none left is ready.
fn initialize(data: &Data, cluster: &str, found: &LogicalCluster) {
    let mut done = Vec::new();
    grant_owner(data, cluster, found.spec.created_by.as_ref().map_or("", |creator| &creator.username));
    for initializer in &found.status.initializers {
        let finished = match initializer.as_str() {
            UNIVERSAL => {
                for namespace in ["default", "kube-system"] {
                    data.ensure_namespace(cluster, namespace, &json!({"bootstrap.kcp.io/create-only": "true"}));
                }
                true
            }
            BINDINGS_INITIALIZER => default_bindings(data, cluster, found),
            _ => false,
        };
        if finished {
            done.push(initializer);
        }
    }
    edit(data, cluster, |object| {
        let status = &mut object.status;
        status.initializers.retain(|initializer| !done.contains(&initializer));
        let (verdict, phase) = if status.initializers.is_empty() {
            (Condition::holds(WORKSPACE_INITIALIZED), Phase::Ready)
        } else {
            (still_initializing(&status.initializers), Phase::Initializing)
        };
        condition::set(&mut status.conditions, verdict, &now());
        if phase == Phase::Ready {
            condition::set(&mut status.conditions, Condition::holds(API_BINDINGS_RECONCILED), &now());
        }
        set_phase(object, phase);
    });
}

/// Makes a user the administrator of a cluster.
pub fn grant_owner(data: &Data, cluster: &str, user: &str) {
    let key = Key::new(&CLUSTER_ROLE_BINDINGS, cluster, "", "workspace-admin");
    if !user.is_empty() && !data.store.has(&key) {
        data.create(
            &key,
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {},
                "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"apiGroup": RBAC_GROUP, "kind": "User", "name": user}],
            }),
        );
    }
}

/// Creates the bindings that the workspace's type asks for; true once all are complete.
fn default_bindings(data: &Data, cluster: &str, found: &LogicalCluster) -> bool {
    let types = types::of_cluster(data, &found.metadata).map(|kind| types::closure(data, kind)).unwrap_or_default();
    let mut complete = true;
    for kind in &types {
        for wanted in &kind.object.spec.default_api_bindings {
            let path = if wanted.path.is_empty() { &kind.path } else { &wanted.path };
            let home = data.resolve(path);
            let Some(offer) = home.and_then(|home| data.read(&home, &wanted.export)) else {
                complete = false;
                continue;
            };
            let name = default_binding_name(cluster, path, &wanted.export);
            data.create_as(cluster, &default_binding(&name, path, &offer));
            complete &= data
                .read::<ApiBinding>(cluster, &name)
                .is_some_and(|binding| condition::is_true(&binding.status.conditions, INITIAL_BINDING_COMPLETED));
        }
    }
    complete
}

/// A binding that accepts all that an export claims.
fn default_binding(name: &str, path: &str, export: &ApiExport) -> ApiBinding {
    let mut binding = ApiBinding::to_export(name, ExportReference::new(path, &export.metadata.name));
    binding.metadata.add_finalizer(BINDING_FINALIZER);
    let claims = &export.spec.permission_claims;
    binding.spec.permission_claims = claims.iter().map(AcceptablePermissionClaim::accept).collect();
    binding
}

/// Records which resource belongs to which binding or CRD.
fn set_locks(data: &Data, object: &mut LogicalCluster, cluster: &str) {
    let mut locks = Map::new();
    for (key, _) in data.store.list(&CRDS, Some(cluster), None).1 {
        locks.insert(key.name.to_string(), json!({"c": true}));
    }
    for (key, found) in data.bindings.in_cluster(&data.store, cluster) {
        for BoundKind { kind, .. } in &*found.kinds {
            locks.insert(format!("{}.{}", kind.resource, kind.group), json!({"n": &*key.name}));
        }
    }
    object.metadata.annotate(RESOURCE_BINDINGS_ANNOTATION, Value::Object(locks).to_string());
}

/// Deletes the content of a cluster step by step: everything but RBAC first, RBAC last, so that its users can watch.
fn clean(data: &Data, cluster: &str, found: &LogicalCluster) {
    if cluster == ROOT || !found.metadata.has_finalizer(LOGICAL_CLUSTER_FINALIZER) {
        return;
    }
    if !found.status.terminators.is_empty() {
        edit(data, cluster, |object| set_phase(object, Phase::Terminating));
        return;
    }
    edit(data, cluster, |object| {
        object.metadata.remove_finalizer(TERMINATORS_FINALIZER);
        set_phase(object, Phase::Deleting);
    });
    // Namespaces first: no new default objects are created in one that is being deleted.
    for (namespace, _) in data.list(&NAMESPACES, Some(cluster)) {
        begin_namespace(data, &namespace);
    }
    let others = |kind: &Kind| *kind != *CLUSTERS && *kind != *NAMESPACES && *kind.group != *RBAC_GROUP;
    let kinds = data.store.kinds(cluster);
    for kind in kinds.iter().filter(|kind| others(kind)) {
        for (content, _) in data.list(kind, Some(cluster)) {
            data.delete(&content);
        }
    }
    let mut left = remaining(data, cluster, &others);
    if left.is_empty() {
        for (namespace, _) in data.list(&NAMESPACES, Some(cluster)) {
            remove(data, &namespace);
        }
        left = remaining(data, cluster, &|kind| *kind != *CLUSTERS && *kind.group != *RBAC_GROUP);
    }
    if left.is_empty() {
        for kind in data.store.kinds(cluster).iter().filter(|kind| *kind.group == *RBAC_GROUP) {
            for (content, _) in data.list(kind, Some(cluster)) {
                remove(data, &content);
            }
        }
        edit(data, cluster, |object| object.metadata.remove_finalizer(LOGICAL_CLUSTER_FINALIZER));
        return;
    }
    let message = describe(data, cluster, &left);
    let verdict = Condition::fails(WORKSPACE_CONTENT_DELETED, Severity::Info, "SomeResourcesRemain", message);
    edit(data, cluster, |object| condition::set(&mut object.status.conditions, verdict.clone(), &now()));
}

fn begin_namespace(data: &Data, key: &Key) {
    data.edit(key, |namespace| {
        if !deleting(namespace) {
            child(namespace, &["metadata"]).insert("deletionTimestamp".to_owned(), now().into());
            child(namespace, &["status"]).insert("phase".to_owned(), "Terminating".into());
        }
    });
}

/// Removes an object regardless of its finalizers.
fn remove(data: &Data, key: &Key) {
    if let Err(error) = data.store.commit(key, crate::store::Expect::Any, None) {
        tracing::debug!(resource = %key.kind.resource, name = %key.name, %error, "already removed");
    }
}

fn remaining(data: &Data, cluster: &str, wanted: &dyn Fn(&Kind) -> bool) -> Vec<(Kind, usize)> {
    let kinds = data.store.kinds(cluster).into_iter().filter(|kind| wanted(kind));
    kinds
        .map(|kind| {
            let count = data.store.list(&kind, Some(cluster), None).1.len();
            (kind, count)
        })
        .filter(|(_, count)| *count > 0)
        .collect()
}

fn describe(data: &Data, cluster: &str, left: &[(Kind, usize)]) -> String {
    let mut held: BTreeMap<String, usize> = BTreeMap::new();
    for (kind, _) in left {
        for (_, object) in data.list(kind, Some(cluster)) {
            for finalizer in finalizers(&object) {
                *held.entry(finalizer).or_default() += 1;
            }
        }
    }
    let counts: Vec<String> = left
        .iter()
        .map(|(kind, count)| format!("{}.{} has {count} resource instances", kind.resource, kind.group))
        .collect();
    let held: Vec<String> = held.iter().map(|(f, count)| format!("{f} in {count} resource instances")).collect();
    let message = format!("Some resources are remaining: {}", counts.join(", "));
    if held.is_empty() {
        return message;
    }
    format!("{message}; Some content in the logical cluster has finalizers remaining: {}", held.join(", "))
}

/// Removes everything that was written to a cluster after its deletion.
fn purge(data: &Data, cluster: &str) {
    if cluster.is_empty() || cluster.starts_with("system:") {
        return;
    }
    for kind in data.store.kinds(cluster) {
        for (content, _) in data.list(&kind, Some(cluster)) {
            remove(data, &content);
        }
    }
}
