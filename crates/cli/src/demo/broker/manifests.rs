//! The YAML files, and the kinds in them.

use anyhow::Context;
use carrick_client::{Client, Resource};
use carrick_kcp::kinds::{API_BINDING_V2, API_EXPORT_V2, API_RESOURCE_SCHEMA};
use serde_json::{Value, json};

use crate::demo::manifests::{crds, published_resources};

/// For the platform's workspace.
pub const PLATFORM: &str = include_str!("platform.yaml");
/// For the service cluster of a provider.
pub const PROVIDER: &str = include_str!("provider.yaml");
const PUBLISHED_RESOURCE: &str = include_str!("published-resource.yaml");

/// The platform's workspace.
pub const PLATFORM_PATH: &str = "root:platform";
/// The workspace above those that the broker makes.
pub const STAGING_PATH: &str = "root:platform:staging";
/// The export of the platform's API, and of each provider that serves it.
pub const EXPORT: &str = "certificates";
/// The export of AcceptAPIs.
pub const ACCEPT_EXPORT: &str = "acceptapis";
/// Name of the AcceptAPI of a provider, and of the CRD of the platform's API.
pub const ACCEPT: &str = "certificates.platform.example";
/// Namespace and name of the order.
pub const ORDER: (&str, &str) = ("default", "web");

/// What consumers order.
pub fn certificates() -> Resource {
    Resource::namespaced("platform.example", "v1alpha1", "Certificate", "certificates")
}

/// What providers serve.
pub fn signing_requests() -> Resource {
    Resource::namespaced("ca.example", "v1", "SigningRequest", "signingrequests")
}

/// By which providers say what they take.
pub fn accept_apis() -> Resource {
    Resource::cluster_wide("broker.platform-mesh.io", "v1alpha1", "AcceptAPI", "acceptapis")
}

/// APIBindings, as brokers write them.
pub fn bindings() -> Resource {
    API_BINDING_V2.into()
}

/// APIExports, as brokers read them.
pub fn exports() -> Resource {
    API_EXPORT_V2.into()
}

/// Creates all objects of a file.
pub async fn create(client: &Client, yaml: &str) -> anyhow::Result<()> {
    for object in carrick_json::yaml::values(yaml).context("a file of the demo is not valid YAML")? {
        create_one(client, &object).await?;
    }
    Ok(())
}

/// Creates one object of a known kind.
pub async fn create_one(client: &Client, object: &Value) -> anyhow::Result<()> {
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let kinds =
        [exports(), bindings(), crds(), published_resources(), namespaces, certificates(), API_RESOURCE_SCHEMA.into()];
    let kind = kinds.into_iter().find(|it| object["kind"] == *it.kind && object["apiVersion"] == it.api_version());
    let kind = kind.with_context(|| format!("{} is not a kind of the demo", object["kind"]))?;
    let created = client.create(&kind, object["metadata"]["namespace"].as_str(), object).await;
    created
        .with_context(|| format!("cannot create {} {} at {}", kind.kind, object["metadata"]["name"], client.url()))?;
    Ok(())
}

/// A binding of an export, with all that it claims accepted.
pub fn binding(path: &str, name: &str, claims: &[Value]) -> Value {
    let accepted = |claim: &Value| {
        let mut claim = claim.clone();
        claim["selector"] = json!({ "matchAll": true });
        claim["state"] = json!("Accepted");
        claim
    };
    let claims: Vec<Value> = claims.iter().map(accepted).collect();
    json!({
        "apiVersion": API_BINDING_V2.api_version(), "kind": API_BINDING_V2.kind, "metadata": { "name": name },
        "spec": { "reference": { "export": { "path": path, "name": name } }, "permissionClaims": claims },
    })
}

/// The PublishedResource of a provider that takes names with a suffix, with the platform's schema in it.
pub fn published_resource(suffix: &str) -> anyhow::Result<Value> {
    let mut published = carrick_json::yaml::value(PUBLISHED_RESOURCE).context("the PublishedResource is not valid")?;
    let platform = carrick_json::yaml::values(PLATFORM).context("the platform's file is not valid")?;
    let schema = platform.first().map(|schema| schema["spec"]["versions"][0]["schema"].clone());
    let implements = &mut published["spec"]["implements"];
    implements["versions"] = json!([{ "name": "v1alpha1", "schema": { "openAPIV3Schema": schema } }]);
    implements["accept"]["filters"][0]["suffix"] = json!(suffix);
    Ok(published)
}

/// An order.
pub fn order(fqdn: &str) -> Value {
    let (namespace, name) = ORDER;
    json!({
        "apiVersion": certificates().api_version(), "kind": "Certificate",
        "metadata": { "namespace": namespace, "name": name }, "spec": { "fqdn": fqdn },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_publishes_the_schema_of_the_platform() {
        let published = published_resource(".corp").unwrap();
        let implements = &published["spec"]["implements"];
        assert_eq!(implements["accept"]["filters"][0], json!({ "key": "fqdn", "suffix": ".corp" }));
        let schema = &implements["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!(schema["properties"]["spec"]["required"], json!(["fqdn"]));
        assert_eq!(implements["resource"], ACCEPT);
    }
}
