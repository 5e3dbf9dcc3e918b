//! LogicalClusters: initialization of new ones, and the clean-up of deleted ones until nothing is left in the store.

use std::collections::BTreeMap;

use carrick_kcp::hash::default_binding_name;
use carrick_kcp::url::in_workspace;
use serde_json::{Map, Value, json};

use super::binding;
use super::condition::{self, Condition, Severity};
use super::data::{
    BINDINGS, CLUSTER_ROLE_BINDINGS, CLUSTERS, CRDS, Data, EXPORTS, NAMESPACES, ROOT, SELF, WORKSPACES, now,
};
use super::hooks::Stage;
use super::object::{
    annotate, child, deleting, finalizers, items, name, remove_finalizer, set_label, strings, text, uid,
};
use super::types;
use crate::store::{Key, Kind};

/// Holds a LogicalCluster until its content is gone.
pub const FINALIZER: &str = "core.kcp.io/logicalcluster-deletion";
/// Holds a LogicalCluster until its terminators are done.
pub const TERMINATORS_FINALIZER: &str = "kcp.io/has-terminators";
/// The initializer that creates default bindings.
pub const BINDINGS_INITIALIZER: &str = "system:apibindings";
/// Label with the phase, on Workspaces and LogicalClusters.
pub const PHASE_LABEL: &str = "tenancy.kcp.io/phase";
/// Annotation with the creator, as JSON.
pub const OWNER_ANNOTATION: &str = "experimental.tenancy.kcp.io/owner";
/// Condition that reports the progress of deleting the content.
pub const CONTENT_DELETED: &str = "WorkspaceContentDeleted";
const LOCKS_ANNOTATION: &str = "internal.apis.kcp.io/resource-bindings";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
/// The initializer of the type that every ordinary workspace extends.
const UNIVERSAL: &str = "root:universal";

/// Brings one logical cluster up to date, or purges what is left of one that no longer exists.
pub fn reconcile(data: &Data, cluster: &str) {
    let key = Key::new(&CLUSTERS, cluster, "", SELF);
    let Some(found) = data.cluster(cluster) else {
        purge(data, cluster);
        return;
    };
    if deleting(&found) {
        clean(data, &key, &found);
        return;
    }
    if orphaned(data, &found) {
        data.delete(&key);
        return;
    }
    data.edit(&key, |object| {
        let status = child(object, &["status"]);
        status.insert("URL".to_owned(), in_workspace(&data.base, cluster).into());
        if matches!(text(object, "/status/phase"), "" | "Scheduling") {
            for field in ["initializers", "terminators"] {
                let list = strings(object, &format!("/spec/{field}"));
                if !list.is_empty() {
                    child(object, &["status"]).insert(field.to_owned(), list.into());
                }
            }
            set_phase(object, "Initializing");
        }
        set_locks(data, object, cluster);
    });
    let Some(found) = data.cluster(cluster) else { return };
    if text(&found, "/status/phase") == "Initializing" {
        initialize(data, &key, &found);
    }
}

/// Whether the Workspace of this cluster is gone, or a new one has taken its name.
fn orphaned(data: &Data, cluster: &Value) -> bool {
    let owner = |field: &str| text(cluster, &format!("/spec/owner/{field}"));
    !owner("uid").is_empty()
        && data.get(&WORKSPACES, owner("cluster"), owner("name")).is_none_or(|found| uid(&found) != owner("uid"))
}

fn set_phase(object: &mut Value, phase: &str) {
    child(object, &["status"]).insert("phase".to_owned(), phase.into());
    set_label(object, PHASE_LABEL, phase);
    for stage in Stage::ALL {
        let hooks = strings(object, &format!("/status/{}", stage.field()));
        let labels = child(object, &["metadata", "labels"]);
        labels.retain(|key, _| !key.starts_with(&stage.label_prefix()));
        labels.extend(hooks.iter().map(|hook| stage.label(hook)).map(|(key, value)| (key, value.into())));
    }
}

/// The condition of a workspace that waits for initializers.
pub fn still_initializing(left: &[String]) -> Condition {
    let message = format!("Initializers still exist: [{}]", left.join(" "));
    Condition::no("WorkspaceInitialized", Severity::Info, "InitializerExists", message)
}

/// Processes the initializers that are ours; a workspace with none left is ready.
fn initialize(data: &Data, key: &Key, found: &Value) {
    let cluster = &*key.cluster;
    let mut done = Vec::new();
    grant_owner(data, cluster, text(found, "/spec/createdBy/username"));
    for initializer in strings(found, "/status/initializers") {
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
    data.edit(key, |object| {
        let mut left = strings(object, "/status/initializers");
        left.retain(|initializer| !done.contains(initializer));
        if left.is_empty() {
            child(object, &["status"]).remove("initializers");
            condition::set(object, &Condition::yes("WorkspaceInitialized"), &now());
            set_phase(object, "Ready");
        } else {
            let waiting = still_initializing(&left);
            child(object, &["status"]).insert("initializers".to_owned(), left.into());
            condition::set(object, &waiting, &now());
            set_phase(object, "Initializing");
        }
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
fn default_bindings(data: &Data, cluster: &str, found: &Value) -> bool {
    let types = types::of_cluster(data, found).map(|kind| types::closure(data, kind)).unwrap_or_default();
    let mut complete = true;
    for kind in &types {
        for wanted in items(&kind.object, "/spec/defaultAPIBindings") {
            let (path, export) = (text(wanted, "/path"), text(wanted, "/export"));
            let path = if path.is_empty() { kind.path.as_str() } else { path };
            let Some((_, offer)) = data.referenced(&EXPORTS, path, cluster, export) else {
                complete = false;
                continue;
            };
            let key = Key::new(&BINDINGS, cluster, "", &default_binding_name(cluster, path, export));
            if !data.store.has(&key) {
                data.create(&key, default_binding(path, &offer));
            }
            complete &= data
                .get(&BINDINGS, cluster, &key.name)
                .is_some_and(|binding| condition::holds(&binding, "InitialBindingCompleted"));
        }
    }
    complete
}

fn default_binding(path: &str, export: &Value) -> Value {
    let claims: Vec<Value> = items(export, "/spec/permissionClaims")
        .iter()
        .map(|claim| {
            let selector = claim.get("defaultSelector").cloned().unwrap_or_else(|| json!({"matchAll": true}));
            json!({"group": text(claim, "/group"), "resource": text(claim, "/resource"), "verbs": claim["verbs"],
                "identityHash": text(claim, "/identityHash"), "selector": selector, "state": "Accepted"})
        })
        .collect();
    let mut object = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
        "metadata": {"finalizers": [binding::FINALIZER]},
        "spec": {"reference": {"export": {"path": path, "name": name(export)}}},
    });
    if !claims.is_empty() {
        object["spec"]["permissionClaims"] = claims.into();
    }
    object
}

/// Records which resource belongs to which binding or CRD.
fn set_locks(data: &Data, object: &mut Value, cluster: &str) {
    let mut locks = Map::new();
    for (_, crd) in data.list(&CRDS, Some(cluster)) {
        locks.insert(name(&crd).to_owned(), json!({"c": true}));
    }
    for (key, found) in data.list(&BINDINGS, Some(cluster)) {
        for kind in binding::kinds(&found) {
            locks.insert(format!("{}.{}", kind.resource, kind.group), json!({"n": &*key.name}));
        }
    }
    annotate(object, LOCKS_ANNOTATION, Value::Object(locks).to_string());
}

/// Deletes the content of a cluster step by step: everything but RBAC first, RBAC last, so that its users can watch.
fn clean(data: &Data, key: &Key, found: &Value) {
    let cluster = &*key.cluster;
    if cluster == ROOT || !finalizers(found).iter().any(|finalizer| finalizer == FINALIZER) {
        return;
    }
    if !items(found, "/status/terminators").is_empty() {
        data.edit(key, |object| set_phase(object, "Terminating"));
        return;
    }
    data.edit(key, |object| {
        remove_finalizer(object, TERMINATORS_FINALIZER);
        set_phase(object, "Deleting");
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
        data.edit(key, |object| remove_finalizer(object, FINALIZER));
        return;
    }
    let message = describe(data, cluster, &left);
    let verdict = Condition::no(CONTENT_DELETED, Severity::Info, "SomeResourcesRemain", message);
    data.edit(key, |object| condition::set(object, &verdict, &now()));
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
