//! Workspaces: from creation through scheduling to Ready, and their deletion.

use serde_json::{Value, json};

use carrick_kcp::hash::b36s224;
use carrick_kcp::url::in_workspace;

use super::cluster::{self, OWNER_ANNOTATION, PHASE_LABEL};
use super::condition::{self, Condition, Severity};
use super::data::{CLUSTERS, Data, ROOT, SELF, WORKSPACES, now};
use super::object::{
    add_finalizer, annotate, annotation, child, deleting, finalizers, items, name, remove_finalizer, set_label,
    strings, text, uid,
};
use super::shards::{NAME_ANNOTATION, Shards};
use super::types;
use crate::store::Key;

/// Holds a Workspace until its logical cluster is gone.
pub const FINALIZER: &str = "core.kcp.io/logicalcluster";
/// Annotation of a Workspace with the name chosen for its logical cluster.
const CLUSTER_ANNOTATION: &str = "internal.tenancy.kcp.io/cluster";
const SHARD_ANNOTATION: &str = "internal.tenancy.kcp.io/shard";
const REQUIRED_GROUPS: &str = "authorization.kcp.io/required-groups";

/// Reconciles one Workspace, in the same steps that clients of kcp see.
pub fn reconcile(data: &Data, parent: &str, workspace: &str) {
    let key = Key::new(&WORKSPACES, parent, "", workspace);
    let Some(found) = data.get(&WORKSPACES, parent, workspace) else { return };
    if found.pointer("/spec/mount").is_some() {
        return;
    }
    if deleting(&found) {
        end(data, &key, &found);
        return;
    }
    if annotation(&found, CLUSTER_ANNOTATION).is_none() {
        schedule(data, &key);
    }
    let Some(found) = data.get(&WORKSPACES, parent, workspace) else { return };
    let Some(cluster) = annotation(&found, CLUSTER_ANNOTATION).map(str::to_owned) else { return };
    let path = format!("{}:{workspace}", data.path_of(parent));
    if text(&found, "/spec/cluster").is_empty() && data.cluster(&cluster).is_none() {
        create_cluster(data, parent, &found, &cluster, &path);
    }
    data.edit(&key, |object| {
        let spec = child(object, &["spec"]);
        spec.insert("cluster".to_owned(), cluster.as_str().into());
        spec.insert("URL".to_owned(), in_workspace(&data.base, &path).into());
    });
    if text(&found, "/status/phase") == "Scheduling" || text(&found, "/status/phase").is_empty() {
        data.edit(&key, |object| {
            condition::set(object, &Condition::yes("WorkspaceScheduled"), &now());
            set_phase(object, "Initializing");
        });
    }
    let Some(cluster) = data.cluster(&cluster) else { return };
    data.edit(&key, |object| mirror(object, &cluster));
}

fn schedule(data: &Data, key: &Key) {
    data.edit(key, |object| set_phase(object, "Scheduling"));
    let mut id = cluster_name();
    while data.cluster(&id).is_some() {
        id = cluster_name();
    }
    let found = data.get(&WORKSPACES, &key.cluster, &key.name);
    let wanted = found.as_deref().map(|found| text(found, "/spec/location/selector/matchLabels/name"));
    let shard = Shards::name(data.shards.choose(&data.store, wanted));
    data.edit(key, |object| {
        add_finalizer(object, FINALIZER);
        annotate(object, NAME_ANNOTATION, shard.as_str());
        annotate(object, SHARD_ANNOTATION, Shards::hash(&shard));
        annotate(object, CLUSTER_ANNOTATION, id.as_str());
    });
}

fn cluster_name() -> String {
    let mut digits = b36s224(&uuid::Uuid::new_v4().to_string());
    digits.truncate(16);
    digits
}

fn create_cluster(data: &Data, parent: &str, workspace: &Value, cluster: &str, path: &str) {
    let (type_path, type_name) = (text(workspace, "/spec/type/path"), text(workspace, "/spec/type/name"));
    let types = types::find(data, parent, type_path, type_name).map(|found| types::closure(data, found));
    let types = types.unwrap_or_default();
    let owner: Value = annotation(workspace, OWNER_ANNOTATION)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_else(|| json!({"username": ""}));
    let (initializers, terminators) = (types::initializers(&types), types::terminators(&types));
    let mut object = json!({
        "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
        "metadata": {
            "annotations": {
                NAME_ANNOTATION: annotation(workspace, NAME_ANNOTATION).unwrap_or(ROOT),
                OWNER_ANNOTATION: json!({"username": text(&owner, "/username")}).to_string(),
                types::TYPE_ANNOTATION: format!("{type_path}:{type_name}"),
                carrick_kcp::PATH_ANNOTATION: path,
            },
            "finalizers": [cluster::FINALIZER],
            "labels": {PHASE_LABEL: "Scheduling"},
        },
        "spec": {
            "createdBy": owner, "directlyDeletable": false,
            "owner": {"apiVersion": "tenancy.kcp.io/v1alpha1", "resource": "workspaces", "cluster": parent,
                "name": name(workspace), "uid": uid(workspace)},
        },
        "status": {"phase": "Scheduling"},
    });
    if !terminators.is_empty() {
        add_finalizer(&mut object, cluster::TERMINATORS_FINALIZER);
    }
    if let Some(groups) = annotation(workspace, REQUIRED_GROUPS) {
        annotate(&mut object, REQUIRED_GROUPS, groups);
    }
    for (field, list) in [("initializers", initializers), ("terminators", terminators)] {
        if !list.is_empty() {
            object["spec"][field] = list.into();
        }
    }
    data.create(&Key::new(&CLUSTERS, cluster, "", SELF), object);
}

fn set_phase(workspace: &mut Value, phase: &str) {
    child(workspace, &["status"]).insert("phase".to_owned(), phase.into());
    set_label(workspace, PHASE_LABEL, phase);
}

/// Copies phase and conditions from the logical cluster.
fn mirror(workspace: &mut Value, cluster: &Value) {
    let left = strings(cluster, "/status/initializers");
    let phase = text(cluster, "/status/phase");
    for field in ["initializers", "terminators"] {
        let list = strings(cluster, &format!("/status/{field}"));
        let status = child(workspace, &["status"]);
        if list.is_empty() {
            status.remove(field);
        } else {
            status.insert(field.to_owned(), list.into());
        }
    }
    if phase == "Ready" {
        condition::set(workspace, &Condition::yes("WorkspaceInitialized"), &now());
        let owner = annotation(workspace, OWNER_ANNOTATION).and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(owner) = owner {
            annotate(workspace, OWNER_ANNOTATION, json!({"username": text(&owner, "/username")}).to_string());
        }
    } else if !left.is_empty() {
        condition::set(workspace, &cluster::still_initializing(&left), &now());
    }
    if !matches!(phase, "" | "Scheduling") {
        set_phase(workspace, phase);
    }
}

/// Deletes the logical cluster, then releases the Workspace.
fn end(data: &Data, key: &Key, workspace: &Value) {
    let cluster = annotation(workspace, CLUSTER_ANNOTATION).unwrap_or_default();
    let inner = Key::new(&CLUSTERS, cluster, "", SELF);
    match data.cluster(cluster).filter(|inner| text(inner, "/spec/owner/uid") == uid(workspace)) {
        Some(found) => {
            data.delete(&inner);
            let remains = condition::find(&found, cluster::CONTENT_DELETED).cloned();
            let terminating = !items(&found, "/status/terminators").is_empty();
            data.edit(key, |object| {
                set_phase(object, if terminating { "Terminating" } else { "Deleting" });
                if let Some(remains) = &remains {
                    let message = text(remains, "/message");
                    let verdict =
                        Condition::no(cluster::CONTENT_DELETED, Severity::Info, text(remains, "/reason"), message);
                    condition::set(object, &verdict, &now());
                }
            });
        }
        None if finalizers(workspace).iter().any(|finalizer| finalizer == FINALIZER) => {
            data.edit(key, |object| remove_finalizer(object, FINALIZER));
        }
        None => {}
    }
}
