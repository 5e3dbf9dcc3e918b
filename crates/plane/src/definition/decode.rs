//! Decodes a CRD as Kubernetes' own types do: wrong types are refused, unknown fields are dropped.

use data_encoding::BASE64;
use serde_json::{Map, Value, json};

use super::fields::{Field, FieldPresence, Kind, PROPS, Record, SPEC};

/// Decodes the spec of a CRD; the paths of unknown fields are added to `unknown`.
pub(crate) fn decode(crd: &mut Value, unknown: &mut Vec<String>) -> Result<(), String> {
    let Some(map) = crd.as_object_mut() else { return Ok(()) };
    let fields: Vec<String> = map.keys().cloned().collect();
    for field in fields {
        if !matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "spec" | "status") {
            map.remove(&field);
            unknown.push(field);
        }
    }
    if map.get("status").is_some_and(|status| !status.is_object()) {
        map.remove("status");
    }
    let spec = map.get("spec").cloned().unwrap_or(Value::Null);
    let holder =
        FieldLocation { record: "CustomResourceDefinition", place: "spec".to_owned(), path: "spec".to_owned() };
    let mut reader = Reader { unknown, silent: None, misfit: None };
    let spec = reader.read(spec, Kind::Record(&SPEC), &holder)?;
    if let Some(why) = reader.misfit {
        return Err(why);
    }
    map.insert("spec".to_owned(), if spec.is_null() { Value::Object(Map::new()) } else { spec });
    Ok(())
}

/// Removes empty fields, and adds those that are always present.
pub(crate) fn tidy(crd: &mut Value) {
    if let Some(spec) = crd.get_mut("spec") {
        settle(spec, Kind::Record(&SPEC));
        if let Some(Value::Object(conversion)) = spec.get_mut("conversion")
            && conversion.get("webhook").is_some_and(|webhook| {
                webhook.get("clientConfig").is_none() && webhook["conversionReviewVersions"].is_null()
            })
        {
            conversion.remove("webhook");
        }
    }
}

/// Where a value was found.
struct FieldLocation {
    /// The type that has the field.
    record: &'static str,
    /// The names of the fields down to it.
    place: String,
    /// The same with keys and indices.
    path: String,
}

impl FieldLocation {
    fn at(&self, suffix: &str) -> Self {
        Self { record: self.record, place: self.place.clone(), path: format!("{}{suffix}", self.path) }
    }

    fn field(&self, record: &'static Record, field: &Field) -> Self {
        let below = |text: &str| format!("{text}.{}", field.key);
        Self { record: record.name, place: below(&self.place), path: below(&self.path) }
    }
}

struct Reader<'a> {
    unknown: &'a mut Vec<String>,
    /// Inside fields with a decoder of their own, errors name the outermost of them, and unknown fields are not reported.
    silent: Option<String>,
    /// The first value of a wrong type. Decoding continues, because a more serious error may follow.
    misfit: Option<String>,
}

impl Reader<'_> {
    fn complaint(&self, value: &Value, kind: Kind, holder: &FieldLocation) -> String {
        let found = match (value, kind) {
            (Value::Number(number), Kind::Int32 | Kind::Int64) => format!("number {number}"),
            (Value::Bool(_), _) => "bool".to_owned(),
            (Value::Number(_), _) => "number".to_owned(),
            (Value::String(_), _) => "string".to_owned(),
            (Value::Array(_), _) => "array".to_owned(),
            _ => "object".to_owned(),
        };
        let (record, place) = match &self.silent {
            Some(place) => (PROPS.name, place),
            None => (holder.record, &holder.place),
        };
        format!("json: cannot unmarshal {found} into Go struct field {record}.{place} of type {}", kind.name())
    }

    fn read(&mut self, value: Value, kind: Kind, holder: &FieldLocation) -> Result<Value, String> {
        if value.is_null() {
            return Ok(Value::Null);
        }
        let int32 = |number: i64| i32::try_from(number).is_ok();
        match (kind, value) {
            (Kind::Bytes, Value::String(text)) => match BASE64.decode(text.as_bytes()) {
                Ok(_) => Ok(text.into()),
                Err(error) => Err(format!("illegal base64 data at input byte {}", error.position)),
            },
            (Kind::Text | Kind::Named(_), value @ Value::String(_))
            | (Kind::Flag | Kind::SchemaOrFlag, value @ Value::Bool(_))
            | (Kind::Float, value @ Value::Number(_))
            | (Kind::Any, value) => Ok(value),
            (Kind::Int64, value) if value.is_i64() => Ok(value),
            (Kind::Int32, value) if value.as_i64().is_some_and(int32) => Ok(value),
            (Kind::Record(record), Value::Object(map)) => self.record(map, record, holder),
            (Kind::Schema, Value::Object(map)) => self.record(map, &PROPS, holder),
            (Kind::List(kind), Value::Array(list)) => self.list(list, *kind, holder),
            (Kind::Map(kind), Value::Object(map)) => self.map(map, *kind, holder),
            (Kind::SchemaOrFlag | Kind::SchemaOrList | Kind::SchemaOrTexts, value) => self.schema(value, kind, holder),
            (kind, value) => {
                let why = self.complaint(&value, kind, holder);
                self.misfit.get_or_insert(why);
                Ok(Value::Null)
            }
        }
    }

    fn record(
        &mut self,
        mut map: Map<String, Value>,
        record: &'static Record,
        holder: &FieldLocation,
    ) -> Result<Value, String> {
        let mut read = Map::new();
        let keys: Vec<String> = map.keys().cloned().collect();
        for key in keys {
            let value = map.remove(&key).unwrap_or(Value::Null);
            let Some(field) = record.fields.iter().find(|field| field.key == key) else {
                if self.silent.is_none() {
                    self.unknown.push(format!("{}.{key}", holder.path));
                }
                continue;
            };
            let value = self.read(value, field.kind, &holder.field(record, field))?;
            if !value.is_null() {
                read.insert(key, value);
            }
        }
        Ok(read.into())
    }

    fn list(&mut self, list: Vec<Value>, kind: Kind, holder: &FieldLocation) -> Result<Value, String> {
        let items = list.into_iter().enumerate().map(|(index, item)| {
            let item = self.read(item, kind, &holder.at(&format!("[{index}]")))?;
            Ok(if item.is_null() { empty(kind) } else { item })
        });
        items.collect::<Result<Vec<_>, String>>().map(Value::Array)
    }

    fn map(&mut self, map: Map<String, Value>, kind: Kind, holder: &FieldLocation) -> Result<Value, String> {
        let entries = map.into_iter().map(|(key, value)| {
            let value = self.read(value, kind, &holder.at(&format!(".{key}")))?;
            Ok((key, if value.is_null() { empty(kind) } else { value }))
        });
        entries.collect::<Result<Map<_, _>, String>>().map(Value::Object)
    }

    /// A field that may be a schema or something else.
    fn schema(&mut self, value: Value, kind: Kind, holder: &FieldLocation) -> Result<Value, String> {
        let outermost = self.silent.is_none();
        if outermost {
            self.silent = Some(holder.place.clone());
        }
        let before = self.misfit.take();
        let read = match (kind, value) {
            (_, value @ Value::Object(_)) => self.read(value, Kind::Schema, holder),
            (Kind::SchemaOrList, value @ Value::Array(_)) => self.read(value, Kind::List(&Kind::Schema), holder),
            (Kind::SchemaOrTexts, value @ Value::Array(_)) => self.read(value, Kind::List(&Kind::Text), holder),
            (Kind::SchemaOrFlag, _) => Err("boolean or JSON schema expected".to_owned()),
            // Any other value is ignored without an error.
            _ => Ok(Value::Array(Vec::new())),
        };
        if outermost {
            self.silent = None;
        }
        match std::mem::replace(&mut self.misfit, before) {
            Some(why) if read.is_ok() => Err(why),
            _ => read,
        }
    }
}

/// The value of a field that was not given.
pub(super) fn empty(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Named(_) => "".into(),
        Kind::Flag => false.into(),
        Kind::Int32 | Kind::Int64 | Kind::Float => 0.into(),
        Kind::Record(_) | Kind::Schema => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn settle(value: &mut Value, kind: Kind) {
    match (kind, value) {
        (kind @ (Kind::Record(_) | Kind::Schema), Value::Object(map)) => {
            for field in kind.record().map_or(&[][..], |record| record.fields) {
                if let Some(found) = map.get_mut(field.key) {
                    settle(found, field.kind);
                }
                match (field.need, map.get(field.key)) {
                    (FieldPresence::Always, None) => {
                        let mut value = empty(field.kind);
                        settle(&mut value, field.kind);
                        map.insert(field.key.to_owned(), value);
                    }
                    (FieldPresence::Filled, Some(found)) if is_empty(found) => {
                        map.remove(field.key);
                    }
                    _ => {}
                }
            }
        }
        (Kind::List(kind), Value::Array(list)) => list.iter_mut().for_each(|item| settle(item, *kind)),
        (Kind::Map(kind), Value::Object(map)) => map.values_mut().for_each(|item| settle(item, *kind)),
        (Kind::SchemaOrFlag | Kind::SchemaOrList | Kind::SchemaOrTexts, value @ Value::Object(_)) => {
            settle(value, Kind::Schema);
        }
        (Kind::SchemaOrList | Kind::SchemaOrTexts, value) if *value == json!([]) => *value = Value::Null,
        (Kind::SchemaOrList, Value::Array(list)) => {
            for item in list {
                settle(item, Kind::Schema);
            }
        }
        _ => {}
    }
}
