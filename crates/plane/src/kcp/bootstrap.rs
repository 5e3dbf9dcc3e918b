//! What exists before the first request: the root workspace, its types, and the roles that apply everywhere.

use carrick_kcp::apis::v1alpha2::{
    ApiBinding, ApiExport, ExportReference, LocalPolicy, MaximalPermissionPolicy, ResourceSchema,
};
use carrick_kcp::condition::{self, Condition};
use carrick_kcp::core::v1alpha1::{LogicalCluster, LogicalClusterPhase, Shard};
use carrick_kcp::names::conditions::WORKSPACE_INITIALIZED;
use carrick_kcp::names::{
    BINDING_FINALIZER, LOGICAL_CLUSTER_FINALIZER, OWNER_ANNOTATION, PHASE_LABEL, SHARD_ANNOTATION, TYPE_ANNOTATION,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::data::{Data, ROOT, SCHEMAS, SELF, now};
use super::kinds;
use super::object::name;
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
    let mut export = ApiExport::new(group);
    for schema in kinds::schemas(group) {
        let key = Key::new(&SCHEMAS, ROOT, "", name(&schema));
        export.spec.resources.push(ResourceSchema::of(&key.name));
        if !data.store.has(&key) {
            data.create(&key, schema);
        }
    }
    if limited {
        let mut policy = MaximalPermissionPolicy::default();
        policy.local = Some(LocalPolicy::default());
        export.spec.maximal_permission_policy = Some(policy);
    }
    data.create_as(ROOT, &export);
    let mut binding = ApiBinding::to_export(group, ExportReference::new(ROOT, group));
    binding.metadata.add_finalizer(BINDING_FINALIZER);
    data.create_as(ROOT, &binding);
}

/// Writes the addresses of the shards, which change when a plane restarts.
fn shards(data: &Data) {
    for number in 0..data.shards.count() {
        let (name, url) = (Shards::name(number), data.shards.url(number));
        let mut shard = Shard::new(&name);
        shard.metadata.set_label("name", &name);
        shard.metadata.set_label("region", "default");
        url.clone_into(&mut shard.spec.base_url);
        shard.spec.external_url = data.base.to_string();
        data.shards.virtual_url(number).clone_into(&mut shard.spec.virtual_workspace_url);
        data.create_as(ROOT, &shard);
        data.edit_as(ROOT, &name, |known: &mut Shard| known.spec.clone_from(&shard.spec));
    }
}

fn root(data: &Data) {
    let mut root = LogicalCluster::new(SELF);
    root.metadata.annotate(TYPE_ANNOTATION, "root:root");
    root.metadata.annotate(SHARD_ANNOTATION, ROOT);
    root.metadata.annotate(OWNER_ANNOTATION, "{\"username\":\"system:kcp-bootstrapper\"}");
    root.metadata.add_finalizer(LOGICAL_CLUSTER_FINALIZER);
    root.metadata.set_label(PHASE_LABEL, LogicalClusterPhase::Ready.as_str());
    root.status.phase = LogicalClusterPhase::Ready;
    condition::set(&mut root.status.conditions, Condition::holds(WORKSPACE_INITIALIZED), &now());
    data.create_as(ROOT, &root);
    for namespace in ["default", "kcp-system"] {
        data.ensure_namespace(ROOT, namespace, &Value::Null);
    }
}
