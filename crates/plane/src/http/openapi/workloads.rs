//! Schemas of workload kinds, made from the table of their messages. They have types but no descriptions.

use serde_json::{Map, Value, json};

use crate::http::protobuf::{Field, Form, named};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// The schema of a kind such as `apps.Deployment`; what it refers to is added to `schemas`.
pub(super) fn schema(message: &str, schemas: &mut Map<String, Value>) -> Option<Value> {
    let fields = named(message)?;
    let mut properties = Map::new();
    add(fields, &mut properties, schemas);
    Some(json!({"type": "object", "properties": properties}))
}

fn add(fields: &[Field], properties: &mut Map<String, Value>, schemas: &mut Map<String, Value>) {
    for field in fields {
        if let (true, Form::Named(inner)) = (field.inline, &field.form) {
            add(named(inner).unwrap_or_default(), properties, schemas);
            continue;
        }
        let one = form(&field.form, schemas);
        let schema = if field.repeated { json!({"type": "array", "items": one}) } else { one };
        properties.insert(field.name.to_owned(), schema);
    }
}

fn form(form: &Form, schemas: &mut Map<String, Value>) -> Value {
    match form {
        Form::Text | Form::ItemText => json!({"type": "string"}),
        Form::Number => json!({"type": "integer", "format": "int64"}),
        Form::Int32 => json!({"type": "integer", "format": "int32"}),
        Form::Flag => json!({"type": "boolean"}),
        Form::Time | Form::MicroTime => json!({"type": "string", "format": "date-time"}),
        Form::Bytes => json!({"type": "string", "format": "byte"}),
        Form::Map | Form::BytesMap => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Form::QuantityMap => {
            json!({"type": "object", "additionalProperties": refer(QUANTITY, schemas, quantity)})
        }
        Form::Quantity => refer(QUANTITY, schemas, quantity),
        Form::IntOrText => refer(INT_OR_STRING, schemas, int_or_string),
        Form::Named(message) => {
            let name = name(message);
            if !schemas.contains_key(&name) {
                // Inserted before it is complete, in case it refers to itself.
                schemas.insert(name.clone(), Value::Null);
                let schema = schema(message, schemas).unwrap_or_else(|| json!({"type": "object"}));
                schemas.insert(name.clone(), schema);
            }
            json!({"$ref": super::reference(&name)})
        }
        Form::ListMap | Form::Json | Form::Message(_) | Form::Unknown => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
    }
}

fn refer(name: &str, schemas: &mut Map<String, Value>, make: fn() -> Value) -> Value {
    schemas.entry(name).or_insert_with(make);
    json!({"$ref": super::reference(name)})
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
