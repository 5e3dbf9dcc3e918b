//! Fills in defaults.

use serde_json::Value;

use crate::node::{Schema, Type};

impl Schema {
    /// Sets every absent field that has a default, including fields inside defaults that were just set.
    pub fn apply_defaults(&self, value: &mut Value) {
        if !self.has_defaults {
            return;
        }
        match value {
            Value::Object(map) => {
                for (name, child) in &self.properties {
                    if let Some(default) = &child.default {
                        let absent = match map.get(name) {
                            None => true,
                            // An explicit null counts as absent unless null is allowed here.
                            Some(found) => found.is_null() && !child.nullable,
                        };
                        if absent {
                            map.insert(name.clone(), default.clone());
                        }
                    }
                }
                for (name, found) in map.iter_mut() {
                    if let Some(child) = self.properties.get(name).or(self.additional.as_deref()) {
                        child.apply_defaults(found);
                    }
                }
            }
            Value::Array(list) => {
                if let Some(items) = &self.items {
                    for item in list {
                        items.apply_defaults(item);
                    }
                }
            }
            _ => {}
        }
    }

    /// Drops nulls where null is not allowed: such a field counts as absent, whether it has a default or not.
    pub fn drop_nulls(&self, value: &mut Value) {
        match value {
            Value::Object(map) if self.kind == Type::Object => {
                map.retain(|name, found| {
                    let child = self.properties.get(name).or(self.additional.as_deref());
                    !(found.is_null() && child.is_some_and(|child| !child.nullable))
                });
                for (name, found) in map.iter_mut() {
                    if let Some(child) = self.properties.get(name).or(self.additional.as_deref()) {
                        child.drop_nulls(found);
                    }
                }
            }
            Value::Array(list) => {
                if let Some(items) = &self.items {
                    for item in list {
                        items.drop_nulls(item);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Schema;

    #[test]
    fn null_counts_as_absent_where_it_is_not_allowed() {
        let schema = Schema::compile(&json!({ "type": "object", "properties": {
            "plain": { "type": "array", "items": { "type": "string" } },
            "filled": { "type": "string", "default": "x" },
            "nullable": { "type": "string", "nullable": true },
            "map": { "type": "object", "additionalProperties": { "type": "string" } },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        }}))
        .expect("compiles");
        let mut object =
            json!({ "plain": null, "filled": null, "nullable": null, "map": { "a": null }, "free": { "a": null } });
        schema.drop_nulls(&mut object);
        schema.apply_defaults(&mut object);
        assert_eq!(object, json!({ "filled": "x", "nullable": null, "map": {}, "free": { "a": null } }));
    }
}
