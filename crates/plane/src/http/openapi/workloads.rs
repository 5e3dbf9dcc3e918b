//! Schemas of workload kinds, made from the table of their messages. They have types but no descriptions.

use serde_json::{Map, Value, json};

use super::reference::reference;
use crate::protobuf::{Count, Field, Form, named};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// The schema of a kind such as `apps.Deployment`; what it refers to is added to `schemas`.
pub(super) fn schema(message: &str, schemas: &mut Map<String, Value>) -> Option<Value> {
    let message = named(message)?;
    let mut properties = Map::new();
    add(&message.fields, &mut properties, schemas);
    Some(json!({"type": "object", "properties": properties}))
}

fn add(fields: &[Field], properties: &mut Map<String, Value>, schemas: &mut Map<String, Value>) {
    for field in fields {
        if let (true, Form::Message(inner)) = (field.inline, field.form) {
            add(&inner.get().fields, properties, schemas);
            continue;
        }
        let one = form(field.form, schemas);
        let schema = match field.count {
            Count::One => one,
            Count::Many => json!({"type": "array", "items": one}),
            Count::Map => json!({"type": "object", "additionalProperties": one}),
        };
        properties.insert(field.name.to_owned(), schema);
    }
}

fn form(form: Form, schemas: &mut Map<String, Value>) -> Value {
    match form {
        Form::Text => json!({"type": "string"}),
        Form::Int64 => json!({"type": "integer", "format": "int64"}),
        Form::Int32 => json!({"type": "integer", "format": "int32"}),
        Form::Double => json!({"type": "number", "format": "double"}),
        Form::Flag => json!({"type": "boolean"}),
        Form::Time | Form::MicroTime => json!({"type": "string", "format": "date-time"}),
        Form::Bytes => json!({"type": "string", "format": "byte"}),
        Form::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Form::Quantity => refer(QUANTITY, schemas, quantity),
        Form::IntOrText => refer(INT_OR_STRING, schemas, int_or_string),
        Form::Message(message) => {
            let message = message.get().name;
            let name = name(message);
            if !schemas.contains_key(&name) {
                // Inserted before it is complete, in case it refers to itself.
                schemas.insert(name.clone(), Value::Null);
                let schema = schema(message, schemas).unwrap_or_else(|| json!({"type": "object"}));
                schemas.insert(name.clone(), schema);
            }
            json!({"$ref": reference(&name)})
        }
        Form::Json | Form::SchemaOrSchemas | Form::SchemaOrFlag | Form::SchemaOrTexts => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
    }
}

fn refer(name: &str, schemas: &mut Map<String, Value>, make: fn() -> Value) -> Value {
    schemas.entry(name).or_insert_with(make);
    json!({"$ref": reference(name)})
}

fn quantity() -> Value {
    json!({
        "description": "Quantity is a fixed-point representation of a number.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    })
}

fn int_or_string() -> Value {
    json!({
        "description": "IntOrString is a type that can hold an int32 or a string.", "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    })
}

/// `core.PodSpec` as Kubernetes names it in documents.
fn name(message: &str) -> String {
    match message.split_once('.') {
        Some(("meta", kind)) => format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"),
        Some((package, kind)) => format!("io.k8s.api.{package}.v1.{kind}"),
        None => message.to_owned(),
    }
}
