//! A place in an object, as validation names it: `spec.ports[0].name`.

use serde_json::{Value, json};

use crate::evolution::node::{self, Node};

/// One step from a value to a value below.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Field(String),
    Index(usize),
}

/// A place in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place(Vec<Part>);

impl Place {
    /// Reads a field as causes name it. Keys with dots are taken for several fields, and lead nowhere.
    pub(super) fn parse(field: &str) -> Self {
        let mut parts = Vec::new();
        for word in field.split('.').filter(|word| !word.is_empty() && *word != "<nil>") {
            let mut pieces = word.split('[');
            parts.extend(pieces.next().filter(|name| !name.is_empty()).map(|name| Part::Field(name.to_owned())));
            for piece in pieces {
                let piece = piece.trim_end_matches(']');
                let field = || Part::Field(piece.trim_matches(['\'', '"']).to_owned());
                parts.push(piece.parse().map_or_else(|_| field(), Part::Index));
            }
        }
        Self(parts)
    }

    /// Whether it is the whole object.
    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Goes to what is around it; false at the root.
    pub(super) fn up(&mut self) -> bool {
        self.0.pop().is_some()
    }

    /// What a schema says about it.
    pub(super) fn schema<'a>(&self, root: &'a Value) -> Option<Node<'a>> {
        self.0.iter().try_fold(Node::Borrowed(root), |here, part| match part {
            Part::Field(name) => node::down(here, |here| node::child(here, name)),
            Part::Index(_) => node::down(here, |here| Some(node::item(here))),
        })
    }

    /// What an object has there.
    pub(super) fn value<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |here, part| match part {
            Part::Field(name) => here.get(name),
            Part::Index(index) => here.get(index),
        })
    }

    /// An object with another value there.
    pub(super) fn with(&self, object: &Value, value: Value) -> Option<Value> {
        let mut changed = object.clone();
        let mut here = &mut changed;
        for part in &self.0 {
            here = match part {
                Part::Field(name) => {
                    if here.is_null() {
                        *here = json!({});
                    }
                    here.as_object_mut()?.entry(name).or_insert(Value::Null)
                }
                Part::Index(index) => here.get_mut(index)?,
            };
        }
        *here = value;
        Some(changed)
    }

    /// An object with nothing there, if it has something there now.
    pub(super) fn without(&self, object: &Value) -> Option<Value> {
        let mut changed = object.clone();
        let (last, around) = self.0.split_last()?;
        let mut here = &mut changed;
        for part in around {
            here = match part {
                Part::Field(name) => here.get_mut(name)?,
                Part::Index(index) => here.get_mut(index)?,
            };
        }
        match (last, here) {
            (Part::Field(name), Value::Object(map)) => drop(map.remove(name)?),
            (Part::Index(index), Value::Array(list)) if *index < list.len() => drop(list.remove(*index)),
            _ => return None,
        }
        Some(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_changed_and_left() {
        let object = json!({ "spec": { "ports": [{ "name": "a" }, {}] } });
        let place = Place::parse("spec.ports[0].name");
        assert_eq!(place.value(&object), Some(&json!("a")));
        assert_eq!(place.with(&object, json!("b")).unwrap(), json!({ "spec": { "ports": [{ "name": "b" }, {}] } }));
        assert_eq!(place.without(&object).unwrap(), json!({ "spec": { "ports": [{}, {}] } }));
        assert_eq!(
            Place::parse("spec.ports[1]").without(&object).unwrap(),
            json!({ "spec": { "ports": [{ "name": "a" }] } })
        );
        assert_eq!(Place::parse("spec.new.x").with(&object, json!(1)).unwrap()["spec"]["new"], json!({ "x": 1 }));
        assert_eq!(Place::parse("spec.ports.x").with(&object, json!(1)), None);
        let mut place = Place::parse("spec[key]");
        assert!(place.up() && place == Place::parse("spec") && place.up() && place.is_root() && !place.up());
        assert!(Place::parse("<nil>").is_root());
    }

    #[test]
    fn schemas_are_followed() {
        let schema = json!({ "properties": { "a": { "items": { "additionalProperties": { "type": "string" } } } } });
        assert_eq!(Place::parse("a[3].x").schema(&schema).unwrap()["type"], "string");
        assert_eq!(Place::parse("b").schema(&schema), None);
    }
}
