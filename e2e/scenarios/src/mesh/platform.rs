//! What a platform has in its workspace: an APIExport with APIs of its own.

use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, Workspace};
use carrick_kcp::kinds::{API_BINDING_V2, API_EXPORT_V2, API_RESOURCE_SCHEMA};
use serde_json::{Value, json};

use super::broker::names::GROUP;

/// Name of the export.
pub(super) const EXPORT: &str = "platform-apis";

/// Name of the export of AcceptAPIs.
pub(super) const ACCEPT: &str = "acceptapis";

/// A kind: prefix of the name of its schema, kind, plural and schema.
pub(super) type Kind<'a> = (&'a str, &'a str, &'a str, Value);

/// The API group of a platform.
pub(super) fn group(stage: &Stage) -> String {
    format!("platform.{}", stage.group)
}

/// Exports kinds from the platform's workspace.
pub(super) async fn export_of(stage: &Stage, platform: &Workspace, all: &[Kind<'_>]) -> anyhow::Result<()> {
    for kind in all {
        schema(stage, platform, kind).await?;
    }
    let resources: Vec<Value> = all.iter().map(|kind| entry(stage, kind)).collect();
    let claims = json!([
        { "group": "", "resource": "secrets", "verbs": ["*"] },
        { "group": "", "resource": "namespaces", "verbs": ["*"] },
    ]);
    let export = json!({
        "apiVersion": API_EXPORT_V2.api_version(), "kind": API_EXPORT_V2.kind,
        "metadata": { "name": EXPORT }, "spec": { "resources": resources, "permissionClaims": claims },
    });
    platform.client.create(&kinds::kcp(&API_EXPORT_V2), None, &export).await?;
    Ok(())
}

/// Exports AcceptAPIs, by which providers say what they take.
pub(super) async fn export_accept_apis(platform: &Workspace) -> anyhow::Result<()> {
    let text = json!({ "type": "string", "minLength": 1 });
    let gvr = json!({ "type": "object", "required": ["group", "version", "resource"],
        "properties": { "group": text, "version": text, "resource": text } });
    let implied =
        json!([{ "rule": "!self.startsWith('spec.')", "message": "Key must not start with 'spec.' as it is implied" }]);
    let key = json!({ "type": "string", "minLength": 1, "maxLength": 256, "x-kubernetes-validations": implied });
    let number = json!({ "type": "integer" });
    let boundary = json!({ "type": "object", "properties": { "min": number, "max": number } });
    let filter = json!({ "type": "object", "required": ["key"], "properties": {
        "key": key, "suffix": { "type": "string" }, "boundary": boundary,
        "valueIn": { "type": "array", "items": { "type": "string" } } } });
    let spec = json!({ "type": "object", "required": ["gvr", "apiExportName"], "properties": {
        "gvr": gvr, "apiExportName": text, "filters": { "type": "array", "maxItems": 64, "items": filter } } });
    let status = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({ "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "type": "object", "properties": { "spec": spec, "status": status } } });
    let name = format!("v1.{ACCEPT}.{GROUP}");
    let schema = json!({
        "apiVersion": API_RESOURCE_SCHEMA.api_version(), "kind": API_RESOURCE_SCHEMA.kind, "metadata": { "name": name },
        "spec": {
            "group": GROUP, "scope": "Cluster", "versions": [version],
            "names": { "kind": "AcceptAPI", "listKind": "AcceptAPIList", "plural": ACCEPT, "singular": "acceptapi" },
        },
    });
    platform.client.create(&kinds::kcp(&API_RESOURCE_SCHEMA), None, &schema).await?;
    let resource = json!({ "name": ACCEPT, "group": GROUP, "schema": name, "storage": { "crd": {} } });
    let export = json!({
        "apiVersion": API_EXPORT_V2.api_version(), "kind": API_EXPORT_V2.kind,
        "metadata": { "name": ACCEPT }, "spec": { "resources": [resource] },
    });
    platform.client.create(&kinds::kcp(&API_EXPORT_V2), None, &export).await?;
    Ok(())
}

/// Binds an export of the platform in a workspace and accepts claims, by the plurals they are about; waits until it is bound.
pub(super) async fn bind(
    stage: &Stage,
    team: &Workspace,
    (platform, export): (&Workspace, &str),
    claims: &[&str],
) -> anyhow::Result<()> {
    let accept = |resource: &&str| {
        json!({
            "group": "", "resource": resource, "verbs": ["*"], "selector": { "matchAll": true }, "state": "Accepted",
        })
    };
    let claims: Vec<Value> = claims.iter().map(accept).collect();
    let object = json!({
        "apiVersion": API_BINDING_V2.api_version(), "kind": API_BINDING_V2.kind, "metadata": { "name": export },
        "spec": { "reference": { "export": { "path": platform.path, "name": export } }, "permissionClaims": claims },
    });
    let bindings = kinds::kcp(&API_BINDING_V2);
    stage
        .eventually(&format!("{} can bind {export}", team.path), async || {
            match team.client.create(&bindings, None, &object).await {
                Err(error) if !error.is_already_exists() => Err(error.into()),
                _ => Ok(()),
            }
        })
        .await?;
    let bound = |binding: &Value| binding["status"]["phase"] == "Bound";
    stage.object("it is bound", (&team.client, &bindings, None, export), bound).await?;
    Ok(())
}

/// Exports another schema of the only kind.
pub(super) async fn new_schema(stage: &Stage, platform: &Workspace, kind: Kind<'_>) -> anyhow::Result<()> {
    schema(stage, platform, &kind).await?;
    let patch = json!({ "spec": { "resources": [entry(stage, &kind)] } });
    platform.client.merge_patch(&kinds::kcp(&API_EXPORT_V2), None, EXPORT, &patch).await?;
    Ok(())
}

fn entry(stage: &Stage, (prefix, _, plural, _): &Kind<'_>) -> Value {
    let group = group(stage);
    json!({ "name": plural, "group": group, "schema": format!("{prefix}.{plural}.{group}"), "storage": { "crd": {} } })
}

async fn schema(stage: &Stage, platform: &Workspace, (prefix, kind, plural, schema): &Kind<'_>) -> anyhow::Result<()> {
    let group = group(stage);
    let version = json!({ "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} }, "schema": schema });
    let object = json!({
        "apiVersion": API_RESOURCE_SCHEMA.api_version(), "kind": API_RESOURCE_SCHEMA.kind,
        "metadata": { "name": format!("{prefix}.{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "versions": [version],
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase() },
        },
    });
    platform.client.create(&kinds::kcp(&API_RESOURCE_SCHEMA), None, &object).await?;
    Ok(())
}
