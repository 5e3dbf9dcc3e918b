//! What exists before the first request: the root workspace, its types, and the roles that apply everywhere.

use serde::Deserialize;
use serde_json::{Value, json};

use super::binding::FINALIZER;
use super::data::{BINDINGS, CLUSTERS, Data, EXPORTS, ROOT, SCHEMAS, SELF, now};
use super::kinds;
use super::object::{name, text};
use crate::store::{Key, Kind};

/// The export of workspaces.
const TENANCY: &str = "tenancy.kcp.io";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
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
    tenancy(data);
    let entries: Vec<Entry> = match serde_saphyr::from_str(include_str!("bootstrap.yaml")) {
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

/// The export behind workspaces and their types; every new workspace binds to it. They are served anyway, so this is for
/// those who look at bindings.
fn tenancy(data: &Data) {
    let ensure = |kind: &Kind, object: Value| {
        let key = Key::new(kind, ROOT, "", name(&object));
        if !data.store.has(&key) {
            data.create(&key, object);
        }
    };
    let mut resources = Vec::new();
    for schema in kinds::schemas(TENANCY) {
        let plural = text(&schema, "/spec/names/plural");
        resources.push(json!({"name": plural, "group": TENANCY, "schema": name(&schema), "storage": {"crd": {}}}));
        ensure(&SCHEMAS, schema);
    }
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": TENANCY},
        "spec": {"resources": resources, "maximalPermissionPolicy": {"local": {}}}});
    ensure(&EXPORTS, export);
    let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
        "metadata": {"name": TENANCY, "finalizers": [FINALIZER]},
        "spec": {"reference": {"export": {"path": ROOT, "name": TENANCY}}}});
    ensure(&BINDINGS, binding);
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
