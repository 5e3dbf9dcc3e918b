//! Fills in defaults.

use serde_json::Value;

use super::{Schema, Type};

impl Schema {
    /// Sets every absent field that has a default, also below defaults just set.
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
                            // An explicit null counts as absent unless null is a value here.
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

    /// Drops nulls where null is no value: such a field counts as absent when it has a default.
    pub fn drop_nulls(&self, value: &mut Value) {
        match value {
            Value::Object(map) if self.kind == Type::Object => {
                map.retain(|name, found| {
                    let child = self.properties.get(name);
                    !(found.is_null() && child.is_some_and(|child| !child.nullable && child.default.is_some()))
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
