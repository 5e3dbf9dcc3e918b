//! Removes and reports fields a schema does not know.

use serde_json::Value;

use crate::node::Schema;

/// The fields of `metadata`.
pub const META_FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Paths of the keys of `metadata` that Kubernetes does not know; they are removed.
pub fn unknown_metadata(object: &mut Value, path: &str, unknown: &mut Vec<String>) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|key, _| {
            let known = META_FIELDS.contains(&key.as_str());
            if !known {
                unknown.push(join(&join(path, "metadata"), key));
            }
            known
        });
        let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
        for (index, owner) in owners.into_iter().flatten().enumerate() {
            let Value::Object(owner) = owner else { continue };
            owner.retain(|key, _| {
                let known = OWNER_FIELDS.contains(&key.as_str());
                if !known {
                    unknown.push(format!("{}[{index}].{key}", join(&join(path, "metadata"), "ownerReferences")));
                }
                known
            });
        }
    }
}

/// The fields of an owner.
const OWNER_FIELDS: [&str; 6] = ["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"];

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl Schema {
    /// Removes unknown fields of a whole object and adds their paths to `unknown`.
    pub fn prune(&self, object: &mut Value, unknown: &mut Vec<String>) {
        self.prune_node(object, "", true, false, unknown);
    }

    /// `kept` says that this is an item of a list that keeps unknown fields: the list's items keep them too.
    fn prune_node(&self, value: &mut Value, path: &str, root: bool, kept: bool, unknown: &mut Vec<String>) {
        let kept = kept || self.preserve;
        match value {
            Value::Object(map) => {
                let whole = root || self.embedded;
                let more = self.open || self.additional.is_some();
                let named = |key: &str| whole && matches!(key, "apiVersion" | "kind" | "metadata");
                map.retain(|key, _| {
                    let known = self.properties.contains_key(key) || more || kept || named(key);
                    if !known {
                        unknown.push(join(path, key));
                    }
                    known
                });
                for (key, found) in map.iter_mut() {
                    if named(key) {
                        continue;
                    }
                    match self.properties.get(key).or(self.additional.as_deref()) {
                        Some(child) => child.prune_node(found, &join(path, key), false, false, unknown),
                        // `additionalProperties: true` says nothing about the values, so they have no fields.
                        None if self.open => forget(found, &join(path, key), unknown),
                        None => {}
                    }
                }
                if self.embedded && !root {
                    unknown_metadata(value, path, unknown);
                }
            }
            Value::Array(list) => {
                if let Some(items) = &self.items {
                    for (index, item) in list.iter_mut().enumerate() {
                        items.prune_node(item, &format!("{path}[{index}]"), false, kept, unknown);
                    }
                } else if !kept {
                    list.iter_mut().enumerate().for_each(|(index, item)| {
                        forget(item, &format!("{path}[{index}]"), unknown);
                    });
                }
            }
            _ => {}
        }
    }
}

/// Drops all fields of objects where the schema knows of none.
fn forget(value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => unknown.extend(std::mem::take(map).into_iter().map(|(key, _)| join(path, &key))),
        Value::Array(list) => {
            for (index, item) in list.iter_mut().enumerate() {
                forget(item, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Schema;

    #[test]
    fn a_list_that_keeps_unknown_fields_keeps_those_of_its_items() {
        let schema = Schema::compile(&json!({ "type": "object", "properties": {
            "list": {
                "type": "array", "x-kubernetes-preserve-unknown-fields": true,
                "items": { "type": "object", "properties": { "known": { "type": "object" } } },
            },
            "nested": {
                "type": "array", "x-kubernetes-preserve-unknown-fields": true,
                "items": { "type": "array", "items": { "type": "object" } },
            },
            "open": { "type": "object", "additionalProperties": true },
            "plain": { "type": "array", "items": { "type": "object" } },
        }}))
        .expect("compiles");
        let mut object = json!({
            "list": [{ "a": 1, "known": { "b": 2 } }, "text"],
            "nested": [[{ "c": 3 }]],
            "open": { "d": { "e": 4 }, "f": [{ "g": 5 }], "h": 6 },
            "plain": [{ "i": 7 }],
        });
        let mut unknown = Vec::new();
        schema.prune(&mut object, &mut unknown);
        assert_eq!(
            object,
            json!({
                "list": [{ "a": 1, "known": {} }, "text"],
                "nested": [[{ "c": 3 }]],
                "open": { "d": {}, "f": [{}], "h": 6 },
                "plain": [{}],
            })
        );
        assert_eq!(unknown, ["list[0].known.b", "open.d.e", "open.f[0].g", "plain[0].i"]);
    }

    #[test]
    fn objects_in_a_list_where_none_belongs_lose_their_fields() {
        let schema = Schema::compile(&json!({ "type": "object", "properties": {
            "text": { "type": "string" },
            "free": { "x-kubernetes-preserve-unknown-fields": true },
        }}))
        .expect("compiles");
        let mut object = json!({ "text": [{ "k": 1 }, [{ "l": 2 }]], "free": [{ "k": 1 }] });
        let mut unknown = Vec::new();
        schema.prune(&mut object, &mut unknown);
        assert_eq!(unknown, ["text[0].k", "text[1][0].l"]);
        assert_eq!(object, json!({ "text": [{}, [{}]], "free": [{ "k": 1 }] }));
    }
}
