//! CRDs of kinds whose provider has none to show: made from discovery and OpenAPI documents.
//!
//! What another schema describes (`$ref`) becomes an object of any content: documents of several group versions share names, and a konnector that
//! guesses wrong would prune what consumers write. The API server of the provider validates it in any case.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Groups that come with every API server.
const BUILTIN: [&str; 6] = ["", "apps", "batch", "extensions", "policy", "autoscaling"];
/// What OpenAPI documents say and CRDs do not.
const ONLY_OPENAPI: [&str; 5] = [
    "x-kubernetes-group-version-kind",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-selectable-fields",
    "x-kubernetes-unions",
];

/// Whether a group comes with every API server, so that it is no offer.
///
/// ```
/// use carrick_bind_api::core::synthesize::is_builtin;
///
/// assert!(is_builtin("apps") && is_builtin("storage.k8s.io"));
/// assert!(!is_builtin("example.io") && !is_builtin("apis.kcp.io"));
/// ```
pub fn is_builtin(group: &str) -> bool {
    BUILTIN.contains(&group) || group.ends_with(".k8s.io")
}

/// One group of an API server, as far as it could be read.
#[derive(Clone, Debug, Default)]
pub struct DiscoveredGroup {
    /// Its name.
    pub name: String,
    /// The version that the server prefers.
    pub preferred: String,
    /// By version: what `/apis/<group>/<version>` says, and the OpenAPI document of it.
    pub versions: BTreeMap<String, (Value, Value)>,
}

/// The CRDs that a group stands for. A resource without a schema, or that nobody can list, watch and create, is left out, and so are subresources.
pub fn crds(group: &DiscoveredGroup) -> Vec<Value> {
    let mut found: BTreeMap<String, Vec<(&str, &Value, Value)>> = BTreeMap::new();
    for (version, (resources, document)) in &group.versions {
        for resource in resources["resources"].as_array().into_iter().flatten() {
            let Some(plural) = resource["name"].as_str().filter(|name| !name.contains('/')) else { continue };
            let kind = resource["kind"].as_str().unwrap_or_default();
            if !is_servable(resource) {
                continue;
            }
            if let Some(schema) = schema_of(document, &group.name, version, kind) {
                let has_status = has_subresource(resources, plural, "status");
                let version_object = json!({"name": version, "served": true, "storage": false,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": if has_status { json!({"status": {}}) } else { json!({}) }});
                found.entry(plural.to_owned()).or_default().push((version, resource, version_object));
            }
        }
    }
    found.into_iter().filter_map(|(plural, versions)| crd(group, &plural, versions)).collect()
}

fn crd(group: &DiscoveredGroup, plural: &str, mut versions: Vec<(&str, &Value, Value)>) -> Option<Value> {
    let stored = versions.iter().position(|(name, ..)| *name == group.preferred).unwrap_or(versions.len() - 1);
    versions[stored].2["storage"] = json!(true);
    let resource = versions.get(stored)?.1;
    let kind = resource["kind"].as_str()?;
    let singular = resource["singularName"].as_str().filter(|name| !name.is_empty());
    let singular = singular.map_or_else(|| kind.to_lowercase(), str::to_owned);
    let scope = if resource["namespaced"] == true { "Namespaced" } else { "Cluster" };
    let versions: Vec<Value> = versions.into_iter().map(|(_, _, version)| version).collect();
    Some(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", group.name)},
        "spec": {"group": group.name, "scope": scope, "versions": versions,
            "names": {"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")}}}))
}

/// Whether objects of a resource can be served by a konnector: listed, watched and created.
pub fn is_servable(resource: &Value) -> bool {
    let verbs = resource["verbs"].as_array().map(Vec::as_slice).unwrap_or_default();
    ["list", "watch", "create"].iter().all(|verb| verbs.iter().any(|there| there == verb))
}

fn has_subresource(resources: &Value, plural: &str, name: &str) -> bool {
    let wanted = format!("{plural}/{name}");
    resources["resources"].as_array().into_iter().flatten().any(|resource| resource["name"] == wanted.as_str())
}

/// The schema of a kind in a document, as a CRD has it.
fn schema_of(document: &Value, group: &str, version: &str, kind: &str) -> Option<Value> {
    let is_meant = |mark: &Value| mark["group"] == group && mark["version"] == version && mark["kind"] == kind;
    let models = document.pointer("/components/schemas")?.as_object()?;
    let model = models.values().find(|model| {
        model["x-kubernetes-group-version-kind"].as_array().is_some_and(|marks| marks.iter().any(is_meant))
    })?;
    let mut model = model.clone();
    if let Some(properties) = model.get_mut("properties").and_then(Value::as_object_mut) {
        for field in ["apiVersion", "kind", "metadata"] {
            properties.remove(field);
        }
    }
    model["type"] = json!("object");
    if let Some(required) = model.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|field| !["apiVersion", "kind", "metadata"].iter().any(|name| field == name));
    }
    let mut schema = structural(&model);
    if schema["required"].as_array().is_some_and(Vec::is_empty)
        && let Some(fields) = schema.as_object_mut()
    {
        fields.remove("required");
    }
    Some(schema)
}

/// A schema that a CRD may have.
fn structural(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return anything(None) };
    let refers =
        fields.contains_key("$ref") || fields.get("allOf").is_some_and(|all| all.to_string().contains("\"$ref\""));
    let is_typed = fields.contains_key("type")
        || fields.get("x-kubernetes-int-or-string") == Some(&json!(true))
        || fields.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
    if refers || !is_typed {
        return anything(fields.get("description"));
    }
    let mut out = Map::new();
    for (key, value) in fields.iter().filter(|(key, _)| !ONLY_OPENAPI.contains(&key.as_str())) {
        let converted = match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), structural(schema))).collect()
            }
            ("additionalProperties", Value::Object(_)) | ("items", _) => structural(value),
            _ => value.clone(),
        };
        out.insert(key.clone(), converted);
    }
    if out.get("type") == Some(&json!("array")) && !out.contains_key("items") {
        out.insert("items".to_owned(), anything(None));
    }
    Value::Object(out)
}

fn anything(description: Option<&Value>) -> Value {
    let mut out = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    if let Some(description) = description {
        out["description"] = description.clone();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> DiscoveredGroup {
        let resources = json!({"resources": [
            {"name": "widgets", "kind": "Widget", "namespaced": true, "singularName": "widget", "verbs": ["list", "watch", "create"]},
            {"name": "widgets/status", "kind": "Widget", "namespaced": true},
            {"name": "ghosts", "kind": "Ghost", "namespaced": false}]});
        let document = |version: &str| {
            json!({"components": {"schemas": {"io.example.Widget": {"type": "object", "required": ["metadata"],
                "x-kubernetes-group-version-kind": [{"group": "example.io", "version": version, "kind": "Widget"}],
                "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
                    "metadata": {"$ref": "#/components/schemas/ObjectMeta"},
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "default": 1, "x-kubernetes-patch-strategy": "merge"},
                        "port": {"x-kubernetes-int-or-string": true},
                        "selector": {"allOf": [{"$ref": "#/x"}], "description": "which"},
                        "any": {}, "list": {"type": "array"},
                        "map": {"type": "object", "additionalProperties": {"$ref": "#/x"}}}}}}}}})
        };
        let versions = ["v1", "v1beta1"].map(|version| (version.to_owned(), (resources.clone(), document(version))));
        DiscoveredGroup {
            name: "example.io".to_owned(),
            preferred: "v1".to_owned(),
            versions: BTreeMap::from(versions),
        }
    }

    #[test]
    fn a_kind_with_a_schema_becomes_a_crd_and_what_is_not_described_takes_anything() {
        let all = crds(&group());
        let [crd] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(crd["metadata"]["name"], "widgets.example.io");
        let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
        assert_eq!((&crd["spec"]["scope"], &crd["spec"]["names"]), (&json!("Namespaced"), &names));
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let stored: Vec<(&str, bool)> =
            versions.iter().map(|it| (it["name"].as_str().unwrap(), it["storage"] == true)).collect();
        assert_eq!(stored, [("v1", true), ("v1beta1", false)]);
        assert_eq!(versions[0]["subresources"], json!({"status": {}}));
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let mut which = any.clone();
        which["description"] = json!("which");
        let spec = json!({"type": "object", "properties": {"size": {"type": "integer", "default": 1},
            "port": {"x-kubernetes-int-or-string": true}, "selector": which, "any": any,
            "list": {"type": "array", "items": any}, "map": {"type": "object", "additionalProperties": any}}});
        assert_eq!(versions[0]["schema"]["openAPIV3Schema"], json!({"type": "object", "properties": {"spec": spec}}));
    }

    #[test]
    fn only_what_can_be_listed_watched_and_created_is_servable() {
        assert!(is_servable(&json!({"verbs": ["create", "list", "watch", "delete"]})));
        assert!(!is_servable(&json!({"verbs": ["create"]})) && !is_servable(&json!({})));
    }
}
