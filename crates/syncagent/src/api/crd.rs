//! The CustomResourceDefinition of the PublishedResource kind, generated from its types.

use serde_json::{Value, json};

use super::schema::{Described, object};
use super::{GROUP, PublishedResourceSpec, PublishedResourceStatus, VERSION};

/// The CRD document, ready to be applied to a service cluster.
pub fn crd() -> Value {
    let status_of = |condition: &str| format!(".status.conditions[?(@.type==\"{condition}\")].status");
    let column = |name: &str, path: &str| json!({ "name": name, "type": "string", "jsonPath": path });
    let wide = |name: &str, path: &str| json!({ "name": name, "type": "string", "jsonPath": path, "priority": 1 });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("publishedresources.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": "PublishedResource",
                "listKind": "PublishedResourceList",
                "plural": "publishedresources",
                "singular": "publishedresource",
            },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": [
                    column("Kind", ".spec.resource.kind"),
                    wide("Group", ".spec.resource.apiGroup"),
                    column("Schema", ".status.resourceSchemaName"),
                    column("Valid", &status_of("RulesValid")),
                    column("Published", &status_of("SchemaPublished")),
                    column("Exported", &status_of("ExportUpdated")),
                    column("Syncing", &status_of("Syncing")),
                    column("Synced", ".status.objects"),
                    wide("Reason", ".status.conditions[?(@.type==\"ObjectsSynced\")].reason"),
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
                "schema": { "openAPIV3Schema": schema() },
            }],
        },
    })
}

fn schema() -> Value {
    let mut schema =
        object(&[], "Publishes one kind of this cluster in kcp, and says how its objects are synchronized.", None);
    schema["required"] = json!(["spec"]);
    schema["properties"] = json!({
        "apiVersion": { "type": "string", "description": "API group and version of this object." },
        "kind": { "type": "string", "description": "Kind of this object." },
        "metadata": { "type": "object" },
        "spec": PublishedResourceSpec::schema(),
        "status": PublishedResourceStatus::schema(),
    });
    schema
}

#[cfg(test)]
mod tests;
