//! What exists before the first request: the root workspace, its types, and the roles that apply everywhere.

use serde::Deserialize;
use serde_json::{Value, json};

use super::data::{CLUSTERS, Data, ROOT, SELF, now};
use super::object::name;
use crate::store::{Key, Kind};

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
            if data.store.get(&key).is_none() {
                data.create(&key, object);
            }
        }
    }
}

fn root(data: &Data) {
    let key = Key::new(&CLUSTERS, ROOT, "", SELF);
    if data.store.get(&key).is_none() {
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
