//! From an OpenAPI model to the schema of a CRD.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Models, OpenApiError, known};
use crate::rules::crd::{Schema, SchemaOrBool, SchemaOrMany};

/// Converts one kind; models it refers to become part of its schema.
pub(super) struct Converter<'a> {
    models: &'a Models,
    /// Path of the kind's own metadata, which every kind has and schemas leave out.
    metadata: String,
    /// References that are being followed.
    following: Vec<&'a str>,
}

impl<'a> Converter<'a> {
    pub(super) fn new(models: &'a Models, kind: &str) -> Self {
        Self { models, metadata: format!("{kind}.metadata"), following: Vec::new() }
    }

    /// The schema of the kind's model.
    pub(super) fn convert(mut self, model: &'a Value) -> Result<Schema, OpenApiError> {
        let name = self.metadata.trim_end_matches(".metadata").to_owned();
        self.model(model, &name, "")
    }

    /// The schema of anything below a model. `path` is the model's name with the fields that lead here.
    fn part(&mut self, part: &'a Value, path: &str) -> Result<Schema, OpenApiError> {
        let description = text(part, "description");
        match reference(part) {
            Some(name) => self.reference(name, description),
            None => self.model(part, path, description),
        }
    }

    fn reference(&mut self, name: &'a str, description: &str) -> Result<Schema, OpenApiError> {
        if name == known::SKIPPED {
            return Ok(Schema::default());
        }
        if self.following.contains(&name) {
            return Err(OpenApiError::Recursive(name.to_owned()));
        }
        if let Some(known) = known::schema(name) {
            return Ok(Schema { description: description.to_owned(), ..known });
        }
        let model = self.models.get(name).ok_or_else(|| OpenApiError::NoReference(name.to_owned()))?;
        self.following.push(name);
        let schema = match reference(model) {
            Some(next) => self.reference(next, description),
            None => self.model(model, name, description),
        };
        self.following.pop();
        schema
    }

    /// The schema of a model that is not a reference. `given` is the description of the field that holds it.
    fn model(&mut self, model: &'a Value, path: &str, given: &str) -> Result<Schema, OpenApiError> {
        let mut schema = match model["type"].as_str() {
            None if model.get("properties").is_none() => arbitrary(model),
            None => self.object(model, path)?,
            Some("object") if model.get("properties").is_some() => self.object(model, path)?,
            Some("object") => self.map(model, path)?,
            Some("array") => self.array(model, path)?,
            Some(primitive) => Schema {
                type_: primitive.to_owned(),
                format: text(model, "format").to_owned(),
                default: known::default(path),
                ..Schema::default()
            },
        };
        // Items of lists and values of maps are converted before the list or map itself.
        let held = match schema.type_.as_str() {
            "array" => text(&model["items"], "description"),
            "object" => text(&model["additionalProperties"], "description"),
            _ => "",
        };
        let candidates = [given, held, text(model, "description")];
        let description = candidates.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        description.clone_into(&mut schema.description);
        Ok(schema)
    }

    fn object(&mut self, model: &'a Value, path: &str) -> Result<Schema, OpenApiError> {
        let mut schema =
            Schema { type_: "object".to_owned(), required: texts(&model["required"]), ..Schema::default() };
        for (name, field) in model["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            let converted = if path == self.metadata {
                Schema { type_: "object".to_owned(), ..Schema::default() }
            } else {
                self.part(field, &path)?
            };
            schema.properties.insert(name.clone(), converted);
        }
        if let Some(key) = model["x-kubernetes-patch-merge-key"].as_str() {
            schema.x_list_map_keys = vec![key.to_owned()];
        }
        schema.x_list_type = model["x-kubernetes-list-type"].as_str().map(str::to_owned);
        Ok(schema)
    }

    fn map(&mut self, model: &'a Value, path: &str) -> Result<Schema, OpenApiError> {
        let held = match &model["additionalProperties"] {
            held @ Value::Object(_) => self.part(held, path)?,
            _ => Schema { description: text(model, "description").to_owned(), ..arbitrary(model) },
        };
        let additional_properties = Some(SchemaOrBool::Schema(Box::new(held)));
        Ok(Schema { type_: "object".to_owned(), additional_properties, ..Schema::default() })
    }

    fn array(&mut self, model: &'a Value, path: &str) -> Result<Schema, OpenApiError> {
        let items = model.get("items").filter(|items| items.is_object());
        let items = items.ok_or_else(|| OpenApiError::NoItems(path.to_owned()))?;
        let mut schema = Schema { type_: "array".to_owned(), ..Schema::default() };
        let strategy = model["x-kubernetes-patch-strategy"].as_str();
        schema.x_list_type = match (model["x-kubernetes-list-type"].as_str(), strategy) {
            (Some(list_type), _) => Some(list_type.to_owned()),
            (None, Some(strategy)) if !strategy.is_empty() => Some(self.list_type(items, strategy).to_owned()),
            _ => None,
        };
        if let Some(keys) = model.get("x-kubernetes-list-map-keys") {
            schema.x_list_map_keys = texts(keys);
        } else if let Some(key) = model["x-kubernetes-patch-merge-key"].as_str() {
            schema.x_list_map_keys = vec![key.to_owned()];
            if strategy.is_none() {
                schema.x_list_type = Some("map".to_owned());
            }
        }
        let mut held = self.part(items, path)?;
        if !held.properties.is_empty() && !schema.x_list_map_keys.is_empty() {
            // Keys are required, unless they have a default.
            let mut required: BTreeSet<String> = held.required.iter().chain(&schema.x_list_map_keys).cloned().collect();
            required.retain(|key| held.properties.get(key).is_none_or(|field| field.default.is_none()));
            held.required = required.into_iter().collect();
        }
        schema.items = Some(SchemaOrMany::One(Box::new(held)));
        Ok(schema)
    }

    /// What a patch strategy says about a list.
    fn list_type(&self, items: &Value, strategy: &str) -> &'static str {
        if !(strategy == "merge" || strategy.starts_with("merge,") || strategy.ends_with(",merge")) {
            return "atomic";
        }
        let items = reference(items).map_or(Some(items), |name| self.models.get(name));
        if items.is_some_and(|items| items.get("properties").is_some()) { "map" } else { "set" }
    }
}

/// The schema of something that OpenAPI does not describe.
fn arbitrary(model: &Value) -> Schema {
    Schema {
        x_embedded_resource: true,
        x_preserve_unknown_fields: model["x-kubernetes-preserve-unknown-fields"].as_bool(),
        ..Schema::default()
    }
}

/// Name of the model that a schema refers to. OpenAPI v3 wraps references that come with a default.
fn reference(schema: &Value) -> Option<&str> {
    let wrapped = schema["allOf"].as_array().filter(|all| all.len() == 1).map(|all| &all[0]);
    let target = schema["$ref"].as_str().or_else(|| wrapped?["$ref"].as_str())?;
    target.rsplit('/').next()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
