//! Kinds on which nothing acts here: objects are brought into the form of Kubernetes' own types, and checked a little.

use serde_json::{Map, Value};

use crate::go::json_type;
use crate::protobuf::{Count, Field, Form, Message};
use crate::resource::Resource;
use crate::status::Cause;

/// Reads an object as Kubernetes' own type: unknown fields are dropped and reported, empty ones are left out or shown as Go does it.
pub(super) fn read(message: &Message, object: &mut Value, unknown: &mut Vec<String>) -> Result<(), String> {
    let Value::Object(map) = object else { return Ok(()) };
    let place = Place { path: String::new(), plain: String::new() };
    // Metadata is the same for all kinds, and has been read.
    let own: Vec<(&str, Option<Value>)> =
        ["apiVersion", "kind", "metadata"].map(|key| (key, map.remove(key))).into_iter().collect();
    place.read_fields(message, map, unknown)?;
    map.remove("metadata");
    for (key, value) in own {
        if let Some(value) = value {
            map.insert(key.to_owned(), value);
        }
    }
    Ok(())
}

/// The status that Go shows of an object that has none.
pub(super) fn empty_status(message: &Message) -> Option<Value> {
    message.fields.iter().find(|field| field.name == "status" && field.is_shown()).map(zero)
}

/// What is wrong with an object.
pub(super) fn faults(resource: &Resource, object: &Value) -> Vec<Cause> {
    let path = match (&*resource.group, &*resource.plural) {
        ("", "pods") => "spec",
        ("apps", _) | ("batch", "jobs") => "spec.template.spec",
        ("batch", "cronjobs") => "spec.jobTemplate.spec.template.spec",
        _ => return Vec::new(),
    };
    let spec = object.pointer(&format!("/{}", path.replace('.', "/")));
    let containers = spec.and_then(|spec| spec["containers"].as_array());
    if containers.is_some_and(|list| !list.is_empty()) {
        return Vec::new();
    }
    vec![Cause::required(&format!("{path}.containers"), "")]
}

/// Where a value is: with indices, and as Go's decoder says it.
struct Place {
    path: String,
    plain: String,
}

impl Place {
    fn field(&self, name: &str) -> Self {
        let join = |path: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        Self { path: join(&self.path), plain: join(&self.plain) }
    }

    fn item(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), plain: self.plain.clone() }
    }

    fn read_fields(
        &self,
        message: &Message,
        map: &mut Map<String, Value>,
        unknown: &mut Vec<String>,
    ) -> Result<(), String> {
        let fields = fields(message);
        map.retain(|name, _| {
            let known = fields.iter().any(|(_, field)| field.name == name);
            if !known {
                unknown.push(self.field(name).path);
            }
            known
        });
        for (owner, field) in fields {
            let place = self.field(field.name);
            let value = map.remove(field.name).filter(|value| !value.is_null());
            let value = match value {
                Some(value) => Some(place.read_field(owner, field, value, unknown)?),
                None if field.is_shown() && !field.is_optional() => Some(zero(field)),
                None if field.is_shown() => Some(Value::Null),
                None => None,
            };
            let is_kept = |value: &Value| field.is_shown() || field.is_optional() || !is_zero(value);
            if let Some(value) = value.filter(is_kept) {
                map.insert(field.name.to_owned(), value);
            }
        }
        Ok(())
    }

    fn read_field(
        &self,
        owner: &Message,
        field: &Field,
        value: Value,
        unknown: &mut Vec<String>,
    ) -> Result<Value, String> {
        let misfit = |found: &Value, wanted: String| {
            let record = owner.name.rsplit('.').next().unwrap_or(owner.name);
            let found = json_type(found);
            format!("json: cannot unmarshal {found} into Go struct field {record}.{} of type {wanted}", self.plain)
        };
        let wanted = || go_type(field.form);
        match (field.count, value) {
            (Count::One, value) => {
                self.read_one(field.form, value, unknown).map_err(|found| misfit(&found, wanted()))?
            }
            (Count::Many, Value::Array(list)) => {
                let mut items = Vec::with_capacity(list.len());
                for (index, item) in list.into_iter().enumerate() {
                    let read = self.item(index).read_one(field.form, item, unknown);
                    items.push(read.map_err(|found| misfit(&found, wanted()))??);
                }
                Ok(items.into())
            }
            (Count::Map, Value::Object(map)) => {
                let mut items = Map::new();
                for (key, item) in map {
                    let read = self.field(&key).read_one(field.form, item, unknown);
                    items.insert(key, read.map_err(|found| misfit(&found, wanted()))??);
                }
                Ok(items.into())
            }
            (Count::Many, other) => Err(misfit(&other, format!("[]{}", wanted()))),
            (Count::Map, other) => Err(misfit(&other, format!("map[string]{}", wanted()))),
        }
    }

    /// One value; the outer error is a value of the wrong type, the inner one something wrong below it.
    fn read_one(&self, form: Form, value: Value, unknown: &mut Vec<String>) -> Result<Result<Value, String>, Value> {
        Ok(Ok(match (form, value) {
            (Form::Message(message), Value::Null) => return Ok(self.read_message(message.get(), Map::new(), unknown)),
            (Form::Message(message), Value::Object(map)) => {
                return Ok(self.read_message(message.get(), map, unknown));
            }
            // A quantity may be sent as a number.
            (Form::Quantity, Value::Number(number)) => number.to_string().into(),
            (Form::Text, Value::Null) => "".into(),
            (Form::Text | Form::Quantity | Form::Bytes | Form::Time | Form::MicroTime, value @ Value::String(_))
            | (Form::Int32 | Form::Int64 | Form::Double, value @ Value::Number(_))
            | (Form::Flag, value @ Value::Bool(_))
            | (Form::IntOrText, value @ (Value::String(_) | Value::Number(_)))
            | (Form::Texts, value @ Value::Array(_))
            | (Form::Json | Form::SchemaOrSchemas | Form::SchemaOrFlag | Form::SchemaOrTexts, value)
            | (_, value @ Value::Null) => value,
            (_, other) => return Err(other),
        }))
    }

    fn read_message(
        &self,
        message: &Message,
        mut map: Map<String, Value>,
        unknown: &mut Vec<String>,
    ) -> Result<Value, String> {
        self.read_fields(message, &mut map, unknown)?;
        Ok(map.into())
    }
}

/// All fields of a message in JSON, each with the message that it belongs to.
fn fields(message: &Message) -> Vec<(&Message, &Field)> {
    let mut all = Vec::new();
    for field in &message.fields {
        match field.form {
            Form::Message(inner) if field.inline => all.extend(fields(inner.get())),
            _ => all.push((message, field)),
        }
    }
    all
}

/// What Go shows of a field that nobody has set.
fn zero(field: &Field) -> Value {
    match (field.count, field.form) {
        (Count::One, Form::Text | Form::Bytes) => "".into(),
        (Count::One, Form::Int32 | Form::Int64 | Form::Double | Form::IntOrText) => 0.into(),
        (Count::One, Form::Flag) => false.into(),
        (Count::One, Form::Quantity) => "0".into(),
        (Count::One, Form::Message(message)) => {
            let shown = fields(message.get()).into_iter().filter(|(_, field)| field.is_shown());
            let value = |field: &Field| if field.is_optional() { Value::Null } else { zero(field) };
            shown.map(|(_, field)| (field.name.to_owned(), value(field))).collect::<Map<_, _>>().into()
        }
        _ => Value::Null,
    }
}

/// Whether Go leaves a value out where it may.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) => false,
    }
}

fn go_type(form: Form) -> String {
    match form {
        Form::Text | Form::Bytes => "string".into(),
        Form::Int32 => "int32".into(),
        Form::Int64 => "int64".into(),
        Form::Flag => "bool".into(),
        Form::Double => "float64".into(),
        Form::Time => "v1.Time".into(),
        Form::MicroTime => "v1.MicroTime".into(),
        Form::Quantity => "resource.Quantity".into(),
        Form::IntOrText => "intstr.IntOrString".into(),
        Form::Texts => "[]string".into(),
        Form::Message(message) => {
            let name = message.get().name;
            format!("v1.{}", name.rsplit('.').next().unwrap_or(name))
        }
        Form::Json | Form::SchemaOrSchemas | Form::SchemaOrFlag | Form::SchemaOrTexts => "interface {}".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protobuf::named;

    fn read_as(message: &str, mut object: Value) -> (Value, Vec<String>) {
        let mut unknown = Vec::new();
        read(named(message).unwrap(), &mut object, &mut unknown).unwrap();
        (object, unknown)
    }

    #[test]
    fn what_go_always_shows_is_filled_in() {
        let (node, unknown) = read_as("core.Node", json!({"metadata": {"name": "a"}}));
        assert!(unknown.is_empty());
        assert_eq!(node["spec"], json!({}));
        assert_eq!(node["status"]["daemonEndpoints"], json!({"kubeletEndpoint": {"Port": 0}}));
        assert_eq!(node["status"]["nodeInfo"]["kernelVersion"], "");
        assert_eq!(node["metadata"], json!({"name": "a"}));
        let (deployment, _) = read_as(
            "apps.Deployment",
            json!({"spec": {"replicas": 0, "paused": false, "template": {"metadata": {"creationTimestamp": null},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 2}}, "args": []}],
                    "volumes": [{"name": "v", "emptyDir": {}}]}}}}),
        );
        assert_eq!(
            deployment,
            json!({"status": {}, "spec": {"replicas": 0, "selector": null, "strategy": {}, "template": {"metadata": {},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}],
                    "volumes": [{"name": "v", "emptyDir": {}}]}}}})
        );
    }

    #[test]
    fn unknown_fields_are_told_and_dropped() {
        let pod = json!({"spec": {"odd": 1, "containers": [{"name": "a"}, {"name": "b", "images": "x"}]}, "extra": {}});
        let (pod, mut unknown) = read_as("core.Pod", pod);
        unknown.sort();
        assert_eq!(unknown, ["extra", "spec.containers[1].images", "spec.odd"]);
        assert_eq!(pod["spec"]["containers"][1], json!({"name": "b", "resources": {}}));
    }

    #[test]
    fn wrong_types_are_refused_in_the_words_of_go() {
        let refused =
            |message: &str, mut object: Value| read(named(message).unwrap(), &mut object, &mut Vec::new()).unwrap_err();
        assert_eq!(
            refused("core.Pod", json!({"spec": {"containers": "x"}})),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container"
        );
        assert_eq!(
            refused("core.Pod", json!({"spec": {"containers": [{"name": 1}]}})),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string"
        );
    }
}
