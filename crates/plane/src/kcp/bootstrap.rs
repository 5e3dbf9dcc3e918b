//! What exists before the first request: the root workspace, its types, and the roles that apply everywhere.

use serde::Deserialize;
use serde_json::{Value, json};

use super::binding::FINALIZER;
use super::data::{BINDINGS, CLUSTERS, Data, EXPORTS, ROOT, SCHEMAS, SELF, SHARDS, now};
use super::kinds;
use super::object::{name, text};
use super::shards::Shards;
use crate::store::{Key, Kind};

/// The exports that every new workspace binds to, and whether a policy limits those who bind them: workspaces, and partitions, which are
/// only stored.
const EXPORTED: [(&str, bool); 2] = [("tenancy.kcp.io", true), ("topology.kcp.io", false)];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BootstrapObject {
    cluster: String,
    group: String,
    resource: String,
    api_version: String,
    kind: String,
    objects: Vec<Value>,
}

/// Creates what is missing.
pub fn run(data: &Data) {
    root(data);
    shards(data);
    for (group, limited) in EXPORTED {
        export(data, group, limited);
    }
    let entries: Vec<BootstrapObject> = match serde_saphyr::from_str(include_str!("bootstrap.yaml")) {
        Ok(entries) => entries,
        Err(error) => {
            tracing::error!(%error, "cannot read the objects to start with");
            return;
        }
    };
    for entry in entries {
        let kind = Kind::new(&entry.group, &entry.resource);
        for mut object in entry.objects {
            object["apiVersion"] = entry.api_version.as_str().into();
            object["kind"] = entry.kind.as_str().into();
            if entry.resource == "workspacetypes" {
                object["metadata"]["annotations"] = json!({carrick_kcp::PATH_ANNOTATION: entry.cluster});
            }
            let key = Key::new(&kind, &entry.cluster, "", name(&object));
            if !data.store.has(&key) {
                data.create(&key, object);
            }
        }
    }
}

/// The export of the system kinds of a group. They are served anyway; it exists so that bindings look right.
fn export(data: &Data, group: &str, limited: bool) {
    let ensure = |kind: &Kind, object: Value| {
        let key = Key::new(kind, ROOT, "", name(&object));
        if !data.store.has(&key) {
            data.create(&key, object);
        }
    };
    let mut resources = Vec::new();
    for schema in kinds::schemas(group) {
        let plural = text(&schema, "/spec/names/plural");
        resources.push(json!({"name": plural, "group": group, "schema": name(&schema), "storage": {"crd": {}}}));
        ensure(&SCHEMAS, schema);
    }
    let mut export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": group},
        "spec": {"resources": resources}});
    if limited {
        export["spec"]["maximalPermissionPolicy"] = json!({"local": {}});
    }
    ensure(&EXPORTS, export);
    let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
        "metadata": {"name": group, "finalizers": [FINALIZER]},
        "spec": {"reference": {"export": {"path": ROOT, "name": group}}}});
    ensure(&BINDINGS, binding);
}

/// Writes the addresses of the shards, which change when a plane restarts.
fn shards(data: &Data) {
    for shard in 0..data.shards.count() {
        let (key, url) = (Key::new(&SHARDS, ROOT, "", &Shards::name(shard)), data.shards.url(shard));
        let spec = json!({"baseURL": url, "externalURL": *data.base, "virtualWorkspaceURL": url});
        if data.store.has(&key) {
            data.edit(&key, |object| object["spec"] = spec.clone());
        } else {
            let labels = json!({"name": *key.name, "region": "default"});
            data.create(
                &key,
                json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "Shard", "metadata": {"labels": labels}, "spec": spec}),
            );
        }
    }
}

fn root(data: &Data) {
    let key = Key::new(&CLUSTERS, ROOT, "", SELF);
    if !data.store.has(&key) {
        let ready = json!({"type": "WorkspaceInitialized", "status": "True", "lastTransitionTime": now()});
        data.create(
            &key,
            json!({
                "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
                "metadata": {
                    "annotations": {
                        super::types::TYPE_ANNOTATION: "root:root",
                        "core.kcp.io/shard": ROOT,
                        super::cluster::OWNER_ANNOTATION: "{\"username\":\"system:kcp-bootstrapper\"}",
                    },
                    "finalizers": [super::cluster::FINALIZER],
                    "labels": {super::cluster::PHASE_LABEL: "Ready"},
                },
                "spec": {"directlyDeletable": false},
                "status": {"phase": "Ready", "conditions": [ready]},
            }),
        );
    }
    for namespace in ["default", "kcp-system"] {
        data.ensure_namespace(ROOT, namespace, &Value::Null);
    }
}
