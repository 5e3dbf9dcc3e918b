//! The YAML files of the demo, and how to create what they describe.

use anyhow::Context;
use carrick_client::{Client, Resource};
use carrick_kcp::kinds::{API_BINDING, API_EXPORT};
use serde_json::Value;

/// The kind the provider serves; for the service cluster.
pub const CRD: &str = include_str!("manifests/crd.yaml");
/// The PublishedResource for it; for the service cluster.
pub const PUBLISHED_RESOURCE: &str = include_str!("manifests/published-resource.yaml");
/// The agent's namespace and permissions on the service cluster.
pub const AGENT_SERVICE: &str = include_str!("manifests/agent-service.yaml");
/// The agent's permissions in the provider's workspace.
pub const AGENT_KCP: &str = include_str!("manifests/agent-kcp.yaml");
/// The export and who may bind it; for the provider's workspace.
pub const API_EXPORT_YAML: &str = include_str!("manifests/api-export.yaml");
/// The binding; for consumers' workspaces.
pub const API_BINDING_YAML: &str = include_str!("manifests/api-binding.yaml");
/// The order; for consumers' workspaces.
pub const HTTP_BIN: &str = include_str!("manifests/httpbin.yaml");

/// The agent's namespace on the service cluster.
pub const AGENT_NAMESPACE: &str = "api-syncagent";
/// The agent's user name on both sides.
pub const AGENT_USER: &str = "api-syncagent";
/// The provider's workspace.
pub const PROVIDER_PATH: &str = "root:providers:httpbin";
/// The APIExport and its endpoint slice.
pub const EXPORT: &str = "orchestrate.platform-mesh.io";
/// The PublishedResource.
pub const PUBLISHED: &str = "httpbins";
/// The APIBinding.
pub const BINDING: &str = "httpbins";
/// Namespace of the consumers' HttpBins.
pub const NAMESPACE: &str = "default";
/// Name of the consumers' HttpBins, the same in all workspaces.
pub const NAME: &str = "demo";
/// The Secret that comes with it.
pub const SECRET: &str = "demo-credentials";

/// HttpBins.
pub fn http_bins() -> Resource {
    Resource::namespaced("orchestrate.platform-mesh.io", "v1alpha1", "HttpBin", "httpbins")
}

/// Secrets.
pub fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

/// CustomResourceDefinitions.
pub fn crds() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

/// PublishedResources.
pub fn published_resources() -> Resource {
    Resource::cluster_wide("syncagent.kcp.io", "v1alpha1", "PublishedResource", "publishedresources")
}

/// APIExports.
pub fn exports() -> Resource {
    API_EXPORT.into()
}

/// APIBindings.
pub fn bindings() -> Resource {
    API_BINDING.into()
}

/// The kinds that occur in the files.
fn kinds() -> [Resource; 8] {
    const RBAC: &str = "rbac.authorization.k8s.io";
    [
        crds(),
        published_resources(),
        exports(),
        bindings(),
        http_bins(),
        Resource::cluster_wide("", "v1", "Namespace", "namespaces"),
        Resource::cluster_wide(RBAC, "v1", "ClusterRole", "clusterroles"),
        Resource::cluster_wide(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings"),
    ]
}

/// Creates all objects of a file.
pub async fn create(client: &Client, yaml: &str) -> anyhow::Result<()> {
    for object in parse(yaml)? {
        create_one(client, &object).await?;
    }
    Ok(())
}

/// Creates one object of a known kind.
pub async fn create_one(client: &Client, object: &Value) -> anyhow::Result<()> {
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    let resource =
        kinds().into_iter().find(|known| *known.kind == *kind && known.api_version() == object["apiVersion"]);
    let resource = resource.with_context(|| format!("{kind} is not a kind of the demo"))?;
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let created = client.create(&resource, namespace, object).await;
    created.with_context(|| format!("cannot create {kind} {name} at {}", client.url()))?;
    Ok(())
}

fn parse(yaml: &str) -> anyhow::Result<Vec<Value>> {
    carrick_json::yaml::values(yaml).context("a file of the demo is not valid YAML")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects() -> Vec<Value> {
        let files = [CRD, PUBLISHED_RESOURCE, AGENT_SERVICE, AGENT_KCP, API_EXPORT_YAML, API_BINDING_YAML, HTTP_BIN];
        files.iter().flat_map(|file| parse(file).unwrap()).collect()
    }

    #[test]
    fn all_files_hold_objects_of_known_kinds() {
        for object in objects() {
            let known =
                kinds().iter().any(|kind| object["kind"] == *kind.kind && object["apiVersion"] == kind.api_version());
            assert!(known, "{object}");
            assert!(object["metadata"]["name"].is_string());
        }
    }

    #[test]
    fn names_in_the_files_are_those_the_steps_look_for() {
        let names = [
            ("PublishedResource", PUBLISHED),
            ("APIExport", EXPORT),
            ("APIBinding", BINDING),
            ("HttpBin", NAME),
            ("Namespace", AGENT_NAMESPACE),
        ];
        for (kind, name) in names {
            let found = objects().iter().any(|object| object["kind"] == kind && object["metadata"]["name"] == name);
            assert!(found, "{kind} {name}");
        }
        let binding = parse(API_BINDING_YAML).unwrap().remove(0);
        assert_eq!(binding["spec"]["reference"]["export"]["path"], PROVIDER_PATH);
        let secret =
            parse(PUBLISHED_RESOURCE).unwrap().remove(0)["spec"]["related"][0]["object"]["template"]["template"]
                .clone();
        assert_eq!(secret.as_str().unwrap().replace("{{ .Object.metadata.name }}", NAME), SECRET);
    }
}
