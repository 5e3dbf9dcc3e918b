//! Two services as platforms define them, and as two providers run them.

use anyhow::Context;
use carrick_client::{Client, ListOptions, Resource};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, condition, place};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::related::encoded;

/// A service.
#[derive(Clone, Copy)]
pub(super) struct Example {
    /// The platform's kind and its plural.
    pub(super) names: (&'static str, &'static str),
    /// The fields of its spec in the platform's schema.
    pub(super) fields: fn() -> Value,
    /// The PublishedResource of a provider, as it is documented.
    file: &'static str,
    /// What the second provider writes instead of a text of the file.
    other: (&'static str, &'static str),
    /// The provider's kind, its plural and the fields of its spec.
    local: (&'static str, &'static str, fn() -> Value),
    /// What an operator makes beside an object.
    beside: fn(&Value) -> Vec<(Resource, Value)>,
    /// Names of the related objects of an order, by its name.
    pub(super) secret: fn(&str) -> String,
}

/// The port by which a database is reached from outside: no two Services of a cluster may have the same.
pub(super) fn node_port(database: &Value) -> u32 {
    let (namespace, name) = place(database);
    namespace.bytes().chain(name.bytes()).fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 2768
        + 30000
}

/// Certificates with two issuers.
pub(super) const CERTIFICATES: Example = Example {
    names: ("Certificate", "certificates"),
    fields: || json!({ "fqdn": { "type": "string" } }),
    file: include_str!("../../../../docs/publishing/platform-mesh/certificates.yaml"),
    other: ("internal-issuer", "external-issuer"),
    local: ("Certificate", "certificates", || {
        let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
        let key = json!({ "type": "object", "properties": { "algorithm": text, "size": number } });
        let issuer = json!({ "type": "object", "required": ["name"], "properties": { "name": text, "kind": text, "group": text } });
        json!({ "required": ["secretName", "issuerRef"], "properties": {
            "commonName": text, "secretName": text, "privateKey": key, "issuerRef": issuer } })
    }),
    beside: |object| {
        let of = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let signed = format!("{} by {}", of("/spec/commonName"), of("/spec/issuerRef/name"));
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": { "name": of("/spec/secretName") },
            "data": { "tls.crt": encoded(&signed), "tls.key": encoded("key") },
        });
        vec![(kinds::secrets(), secret)]
    },
    secret: str::to_owned,
};

/// Databases of two clusters with CloudNativePG.
pub(super) const POSTGRES: Example = Example {
    names: ("Postgres", "postgres"),
    fields: || {
        let text = json!({ "type": "string" });
        json!({ "tier": text, "version": text, "database": text })
    },
    file: include_str!("../../../../docs/publishing/platform-mesh/postgres.yaml"),
    other: ("databases.example.com", "production.example.com"),
    local: ("Cluster", "clusters", || {
        let (text, any) =
            (json!({ "type": "string" }), json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }));
        json!({ "required": ["instances", "storage"], "properties": {
            "instances": { "type": "integer", "minimum": 1 }, "imageName": text, "storage": any, "bootstrap": any, "managed": any } })
    }),
    beside: |object| {
        let name = place(object).1;
        let database = object["spec"]["bootstrap"]["initdb"]["database"].as_str().unwrap_or_default();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth", "metadata": { "name": format!("{name}-app") },
            "data": { "username": encoded("app"), "password": encoded("secret"), "dbname": encoded(database) },
        });
        let ports = json!([{ "port": 5432, "protocol": "TCP", "targetPort": 5432, "nodePort": node_port(object) }]);
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": format!("{name}-nodeport") },
            "spec": { "type": "NodePort", "selector": { "cluster": name }, "ports": ports },
        });
        vec![(kinds::secrets(), secret), (super::services(), service)]
    },
    secret: str::to_owned,
};

impl Example {
    /// The platform's schema.
    pub(super) fn schema(&self) -> Value {
        let text = json!({ "type": "string" });
        let condition = json!({ "type": "object", "required": ["type", "status", "reason", "message", "lastTransitionTime"], "properties": {
            "type": text, "status": text, "reason": text, "message": text,
            "lastTransitionTime": { "type": "string", "format": "date-time" }, "observedGeneration": { "type": "integer" } } });
        let gvk = json!({ "type": "object", "required": ["group", "version", "kind"],
            "properties": { "group": text, "version": text, "kind": text } });
        let entry = json!({ "type": "object", "required": ["name", "gvk"],
            "properties": { "name": text, "namespace": text, "gvk": gvk } });
        let status = json!({ "type": "object", "properties": {
            "status": text, "conditions": { "type": "array", "items": condition },
            "relatedResources": { "type": "object", "additionalProperties": entry } } });
        let fields = (self.fields)();
        let required: Vec<&String> = fields.as_object().into_iter().flatten().map(|(name, _)| name).collect();
        let spec = json!({ "type": "object", "required": required, "properties": fields });
        json!({ "type": "object", "required": ["spec"], "properties": { "spec": spec, "status": status } })
    }

    /// The provider's kind.
    pub(super) fn local(&self, provider: &Stage) -> Resource {
        Resource::namespaced(&provider.group, "v1", self.local.0, self.local.1)
    }

    /// Installs the provider's kind and publishes it for the platform's.
    pub(super) async fn publish(&self, provider: &Stage, platform_group: &str, second: bool) -> anyhow::Result<()> {
        let (kind, plural, fields) = self.local;
        let mut spec = fields();
        spec["type"] = json!("object");
        let condition =
            json!({ "type": "object", "properties": { "type": { "type": "string" }, "status": { "type": "string" } } });
        let status =
            json!({ "type": "object", "properties": { "conditions": { "type": "array", "items": condition } } });
        let schema = json!({ "type": "object", "properties": { "spec": spec, "status": status } });
        let version = json!({ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": schema } });
        let names = json!({ "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") });
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{}", provider.group) },
            "spec": { "group": provider.group, "scope": "Namespaced", "names": names, "versions": [version] },
        });
        provider.install_crd(&crd).await?;
        provider.create_export().await?;
        anyhow::ensure!(self.file.lines().count() <= 40, "{} lines for a provider", self.file.lines().count());
        let text = if second { self.file.replace(self.other.0, self.other.1) } else { self.file.to_owned() };
        let pr: Value = serde_saphyr::from_str(&text)?;
        let mut spec = pr["spec"].clone();
        // What carrick provider up --implements writes.
        let (kind, plural) = self.names;
        let implements = spec["implements"].as_object_mut().context("it implements nothing")?;
        implements.insert("resource".to_owned(), json!(format!("{plural}.{platform_group}")));
        implements.insert("kind".to_owned(), json!(kind));
        let version = json!({ "name": "v1alpha1", "schema": { "openAPIV3Schema": self.schema() } });
        implements.insert("versions".to_owned(), json!([version]));
        provider.publish(self.local.0, spec).await?;
        Ok(())
    }

    /// An operator that makes what is beside each object, and then says that it is ready.
    pub(super) fn operate(&self, provider: &Stage) -> JoinHandle<()> {
        let (kind, client, example) = (self.local(provider), provider.service.clone(), *self);
        let interval = provider.world.pace().glance * 10;
        tokio::spawn(async move {
            loop {
                // Whoever loses a race tries again.
                for object in client.list(&kind, None, &ListOptions::default()).await.unwrap_or_default() {
                    let _ = example.serve(&client, &kind, &object).await;
                }
                tokio::time::sleep(interval).await;
            }
        })
    }

    async fn serve(&self, client: &Client, kind: &Resource, object: &Value) -> anyhow::Result<()> {
        if object["metadata"]["deletionTimestamp"].is_string() {
            return Ok(());
        }
        let (namespace, name) = place(object);
        for (resource, wanted) in (self.beside)(object) {
            let beside = wanted["metadata"]["name"].as_str().unwrap_or_default();
            match client.get(&resource, Some(namespace), beside).await? {
                None => drop(client.create(&resource, Some(namespace), &wanted).await?),
                Some(now) if now.get("data") != wanted.get("data") => {
                    client.merge_patch(&resource, Some(namespace), beside, &json!({ "data": wanted["data"] })).await?;
                }
                Some(_) => {}
            }
        }
        if condition(object, "Ready")["status"] != "True" {
            let status = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
            client.merge_patch_status(kind, Some(namespace), name, &status).await?;
        }
        Ok(())
    }
}
