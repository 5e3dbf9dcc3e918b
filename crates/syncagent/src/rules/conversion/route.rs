//! A way from one version to another: rules, one after the other.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::step::{self, ConversionStep};
use crate::api::CONVERSION_PREFIX;
use crate::rules::mutation::MutationError;

/// A way from one version to another.
#[derive(Debug, Clone, Default)]
pub struct Route(pub(super) Vec<Arc<Rule>>);

/// One compiled rule.
#[derive(Debug)]
pub struct Rule {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) steps: Vec<ConversionStep>,
    pub(super) preserve: Vec<String>,
}

impl Route {
    /// Whether objects stay as they are.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An object at the end of the way. Of its metadata, only labels and annotations can differ.
    pub fn apply(&self, object: &Value) -> Result<Value, MutationError> {
        let mut converted = object.clone();
        for rule in &self.0 {
            converted = rule.apply(&converted)?;
        }
        let mut metadata = object["metadata"].clone();
        if let Value::Object(map) = &mut metadata {
            for key in ["labels", "annotations"] {
                map.remove(key);
                map.extend(converted["metadata"].get(key).map(|value| (key.to_owned(), value.clone())));
            }
            converted["metadata"] = metadata;
        }
        Ok(converted)
    }
}

impl Rule {
    fn apply(&self, before: &Value) -> Result<Value, MutationError> {
        let mut object = before.clone();
        self.set_aside(&mut object);
        for step in &self.steps {
            step.apply(&mut object, before)?;
        }
        self.bring_back(&mut object);
        let group = before["apiVersion"].as_str().and_then(|text| text.rsplit_once('/')).map(|(group, _)| group);
        object["apiVersion"] = group.map_or_else(|| self.to.clone(), |group| format!("{group}/{}", self.to)).into();
        Ok(object)
    }

    /// Moves what the other version has no place for to an annotation.
    fn set_aside(&self, object: &mut Value) {
        let mut kept = Map::new();
        for path in &self.preserve {
            let found = carrick_json::path::get(object, path);
            if found.exists() {
                kept.insert(path.clone(), found.into_value());
                step::remove(object, path);
            }
        }
        // The annotation may be there from an earlier time, and from another hand.
        let annotation = format!("{CONVERSION_PREFIX}{}", self.from);
        let annotations = (!kept.is_empty()).then(|| Value::Object(kept).to_string());
        annotate(object, &annotation, annotations);
    }

    /// Puts back what was set aside when the object left this version.
    fn bring_back(&self, object: &mut Value) {
        let annotation = format!("{CONVERSION_PREFIX}{}", self.to);
        let Some(text) = object["metadata"]["annotations"][&annotation].as_str().map(str::to_owned) else { return };
        annotate(object, &annotation, None);
        // Whoever has written something else there gets it back as nothing.
        let Ok(Value::Object(kept)) = serde_json::from_str(&text) else { return };
        for (path, value) in kept {
            if !path.starts_with("metadata") && !carrick_json::path::get(object, &path).exists() {
                // Without its surroundings, a value has no place any more.
                let _ = carrick_json::path::set(object, &path, value);
            }
        }
    }
}

/// Sets or removes an annotation.
fn annotate(object: &mut Value, name: &str, text: Option<String>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    match text {
        Some(text) => {
            let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = annotations {
                map.insert(name.to_owned(), text.into());
            }
        }
        None => {
            if let Some(Value::Object(map)) = metadata.get_mut("annotations")
                && map.remove(name).is_some()
                && map.is_empty()
            {
                metadata.remove("annotations");
            }
        }
    }
}
