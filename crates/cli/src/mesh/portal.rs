//! What Platform Mesh's portal shows of a kind: derived from printer columns, required fields and conditions. Pure.

use serde_json::{Value, json};

use super::{CONTENT_FOR, UI, api_version};
use crate::init::offer::Offer;

/// Fields deeper than this have no place in a form; users write them in YAML.
const DEPTH: usize = 3;

/// ContentConfiguration: list, form and details in the portal.
pub fn content_configuration(offer: &Offer) -> Result<Value, serde_json::Error> {
    let content = json!({ "name": offer.plural, "luigiConfigFragment": { "data": { "nodes": nodes(offer) } } });
    Ok(json!({
        "apiVersion": api_version(UI),
        "kind": "ContentConfiguration",
        "metadata": {
            "name": offer.plural,
            "labels": {
                "ui.platform-mesh.io/entity": "core_platform-mesh_io_account",
                CONTENT_FOR: offer.export,
            },
        },
        "spec": { "inlineConfiguration": { "contentType": "json", "content": serde_json::to_string_pretty(&content)? } },
    }))
}

/// A list, and the page of one object below it.
fn nodes(offer: &Offer) -> Value {
    let view = |name: &str| format!("/assets/platform-mesh-portal-ui-wc.js#generic-{name}-view");
    let account = "main.core_platform-mesh_io_account";
    let place = if offer.namespaced { format!("{account}.namespace") } else { account.to_owned() };
    let id = format!("{}_{}", offer.kcp_group.replace('.', "_"), offer.singular);
    let key = format!("{}Id", offer.singular);
    json!([
        {
            "pathSegment": offer.plural,
            "navigationContext": offer.plural,
            "label": plural_label(offer),
            "icon": "product",
            "entityType": place,
            "keepSelectedForChildren": true,
            "url": view("list"),
            "webcomponent": { "selfRegistered": true },
            "context": { "resourceDefinition": resource_definition(offer) },
            "children": [{
                "pathSegment": format!(":{key}"),
                "hideFromNav": true,
                "keepSelectedForChildren": true,
                "defineEntity": { "id": id, "contextKey": key },
                "context": { "resourceId": format!(":{key}") },
            }],
        },
        {
            "entityType": format!("{place}.{id}"),
            "pathSegment": "dashboard",
            "label": offer.kind,
            "url": view("detail"),
            "webcomponent": { "selfRegistered": true },
            "defineEntity": { "id": "dashboard" },
            "compound": { "children": [] },
        },
    ])
}

fn plural_label(offer: &Offer) -> String {
    let mut letters = offer.plural.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn resource_definition(offer: &Offer) -> Value {
    let name = json!({ "label": "Name", "property": "metadata.name" });
    let columns: Vec<Value> = std::iter::once(name).chain(offer.columns.iter().map(column)).collect();
    let mut form = vec![json!({ "label": "Name", "property": "metadata.name", "required": true })];
    fields(&offer.schema["properties"]["spec"], "spec", true, DEPTH, &mut form);
    let mut definition = json!({
        "group": offer.kcp_group,
        "version": offer.version,
        "kind": offer.kind,
        "plural": offer.plural,
        "singular": offer.singular,
        "scope": if offer.namespaced { "Namespaced" } else { "Cluster" },
        "ui": {
            "listView": { "fields": columns },
            "detailView": { "fields": columns },
            "createView": { "fields": form },
        },
    });
    if offer.schema.pointer("/properties/status/properties/conditions").is_some() {
        definition["readyCondition"] = json!({
            "jsonPathExpression": "status.conditions[?(@.type=='Ready' && @.status=='True')]",
            "property": ["status.conditions.status", "status.conditions.type"],
        });
    }
    definition
}

/// A printer column as a column of the list.
fn column(column: &Value) -> Value {
    let path = column["jsonPath"].as_str().unwrap_or_default().trim_start_matches('.');
    match path.split_once("[?(@.") {
        None => json!({ "label": column["name"], "property": path }),
        // `list[?(@.key=="x")].field`: the portal fetches both fields and then evaluates the expression.
        Some((list, rest)) => {
            let key = rest.split(['=', '!', '<', '>', ' ']).next().unwrap_or_default();
            let field = rest.rsplit_once("].").map(|(_, field)| field).unwrap_or_default();
            json!({
                "label": column["name"],
                "jsonPathExpression": path.replace('"', "'"),
                "property": [format!("{list}.{key}"), format!("{list}.{field}")],
            })
        }
    }
}

/// The required fields of the form, then the optional ones at the top level. Only scalar values have a field in a form.
fn fields(schema: &Value, path: &str, must: bool, depth: usize, form: &mut Vec<Value>) {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let all: Vec<(&String, &Value)> = schema["properties"].as_object().into_iter().flatten().collect();
    let (first, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(name, _)| required.contains(&name.as_str()));
    for (name, property) in first {
        let path = format!("{path}.{name}");
        if property["type"] == "object" {
            if depth > 0 {
                fields(property, &path, must, depth - 1, form);
            }
        } else if let Some(field) = field(name, &path, property, must) {
            form.push(field);
        }
    }
    if depth == DEPTH {
        form.extend(
            rest.into_iter().filter_map(|(name, property)| field(name, &format!("{path}.{name}"), property, false)),
        );
    }
}

fn field(name: &str, path: &str, property: &Value, required: bool) -> Option<Value> {
    if !["string", "integer", "number", "boolean"].contains(&property["type"].as_str().unwrap_or_default()) {
        return None;
    }
    let mut field = json!({ "label": label(name), "property": path });
    if required && property.get("default").is_none() {
        field["required"] = json!(true);
    }
    if let Some(choices) = property["enum"].as_array() {
        field["values"] = json!(choices);
    }
    Some(field)
}

/// `storageClass` is shown as `Storage class`.
fn label(name: &str) -> String {
    let mut label = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !label.is_empty() {
            label.push(' ');
        }
        if label.is_empty() {
            label.extend(letter.to_uppercase());
        } else {
            label.extend(letter.to_lowercase());
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::offer::Choices;
    use crate::init::offer::tests::bucket;

    fn offer() -> Offer {
        Offer::new(&bucket(), Choices::default()).unwrap()
    }

    #[test]
    fn columns_become_a_list_required_fields_a_form_and_conditions_readiness() {
        let definition = resource_definition(&offer());
        assert_eq!(
            definition["ui"]["listView"]["fields"],
            json!([
                { "label": "Name", "property": "metadata.name" },
                { "label": "Region", "property": "spec.region" },
                { "label": "Ready", "jsonPathExpression": "status.conditions[?(@.type=='Ready')].status",
                  "property": ["status.conditions.type", "status.conditions.status"] },
                { "label": "Age", "property": "metadata.creationTimestamp" },
            ])
        );
        assert_eq!(
            definition["ui"]["createView"]["fields"],
            json!([
                { "label": "Name", "property": "metadata.name", "required": true },
                { "label": "Name", "property": "spec.owner.name", "required": true },
                { "label": "Size", "property": "spec.size", "required": true },
                { "label": "Region", "property": "spec.region", "values": ["eu", "us"] },
            ])
        );
        assert!(definition["readyCondition"]["jsonPathExpression"].as_str().unwrap().contains("@.type=='Ready'"));
    }

    #[test]
    fn the_content_is_json_and_belongs_to_the_export() {
        let content = content_configuration(&offer()).unwrap();
        assert_eq!(content["metadata"]["labels"][CONTENT_FOR], "example.com");
        let text = content["spec"]["inlineConfiguration"]["content"].as_str().unwrap();
        let parsed: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parsed["luigiConfigFragment"]["data"]["nodes"][0]["pathSegment"], "buckets");
    }

    #[test]
    fn names_of_fields_become_words() {
        for (name, wanted) in [("size", "Size"), ("storageClass", "Storage class")] {
            assert_eq!(label(name), wanted);
        }
    }
}
