//! Answers without what may differ between kcp and the plane.

use serde_json::{Map, Value};

/// An answer of a virtual workspace, or of a workspace, in the form in which it is compared.
pub fn comparable(mut answer: Value, from_view: bool) -> Value {
    strip(&mut answer);
    // The plane does not warn of rules that an unchanged part of an object has been breaking all along.
    if let Some(Value::Array(warnings)) = answer.get_mut("warnings") {
        warnings.retain(|warning| !warning.to_string().contains("must be set"));
    }
    if from_view {
        // Virtual workspaces walk through a Go map.
        for key in ["resources", "groups"] {
            if let Some(Value::Array(list)) = answer.pointer_mut(&format!("/body/{key}")) {
                list.sort_by_cached_key(|item| item["name"].to_string());
            }
        }
    }
    answer
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // Hashes of random names.
            if let Some(hash) = map.get_mut("storageVersionHash") {
                *hash = "HASH".into();
            }
            if let Some(address) = map.get_mut("serverAddress") {
                *address = "SERVER".into();
            }
            // The plane does not store reviews, so nobody owns their fields.
            let is_review = map.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("Review"));
            if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
                // Left over where the only label was a forged one.
                metadata.retain(|key, value| key != "labels" || !value.as_object().is_some_and(Map::is_empty));
                // Only controllers write the slice of an export.
                if metadata.get("ownerReferences").is_some_and(|owners| owners[0]["kind"] == "APIExport") {
                    metadata.remove("managedFields");
                }
                // kcp 0.32, which the plane follows, has set these since; kcp 0.31, with which it is compared too, has not.
                if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                    annotations.remove("core.kcp.io/shard");
                    // For the cache between kcp's shards.
                    annotations.remove("internal.kcp.io/replicate");
                }
                if let Some(Value::Object(labels)) = metadata.get_mut("labels")
                    && let Some(hash) = labels.get_mut("internal.apis.kcp.io/export")
                    && !hash.as_str().is_some_and(|hash| hash.starts_with('{'))
                {
                    // Of an export that is none of the two, from the random name of a workspace.
                    *hash = "HASH".into();
                }
                if is_review {
                    metadata.remove("managedFields");
                }
            }
            if map.get("kind").is_some_and(|kind| kind == "LogicalCluster")
                && let Some(Value::Object(spec)) = map.get_mut("spec")
            {
                spec.remove("createdBy");
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        // The workspaces of a comparison have its number in their names.
        Value::String(text) if text.starts_with("flow-") && text.len() > 12 => text.replace_range(5..11, "ID"),
        _ => {}
    }
}
