//! What a node of a schema says, read the way the API server reads it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::evolution::definition::texts;

/// The declared type of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None: anything.
    Any,
    /// A map or a struct.
    Object,
    /// A list.
    Array,
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A whole number or a text.
    IntOrString,
}

impl Kind {
    /// The type of a node.
    pub(crate) fn of(schema: &Value) -> Self {
        if schema["x-kubernetes-int-or-string"] == true {
            return Self::IntOrString;
        }
        match schema["type"].as_str() {
            Some("object") => Self::Object,
            Some("array") => Self::Array,
            Some("string") => Self::String,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            _ => Self::Any,
        }
    }

    /// Its name in sentences.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntOrString => "int-or-string",
        }
    }
}

/// Whether a flag of a node is set.
pub(crate) fn flag(schema: &Value, name: &str) -> bool {
    schema[name] == true
}

/// Whether a node keeps fields that it does not know.
pub(crate) fn keeps_unknown(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-preserve-unknown-fields")
}

/// A node where anything is kept as it is.
static ANYTHING: LazyLock<Value> =
    LazyLock::new(|| json!({"x-kubernetes-preserve-unknown-fields": true, "nullable": true}));

/// A node of which nothing is said: objects there lose their fields.
static UNSAID: LazyLock<Value> = LazyLock::new(|| json!({"nullable": true}));

/// A node, borrowed wherever it stands in a schema: whole kinds are walked thousands of times, and most of what is below a node is never used.
pub(crate) type Node<'a> = Cow<'a, Value>;

/// The node of a field; `None` where such a field is dropped.
pub(crate) fn child<'a>(schema: &'a Value, name: &str) -> Option<Node<'a>> {
    schema["properties"].get(name).map(Cow::Borrowed).or_else(|| rest(schema))
}

/// The node of all fields that a schema does not name; `None` where they are dropped.
pub(crate) fn rest(schema: &Value) -> Option<Node<'_>> {
    match schema.get("additionalProperties") {
        Some(node @ Value::Object(_)) => Some(Cow::Borrowed(node)),
        Some(Value::Bool(true)) => Some(Cow::Borrowed(&*UNSAID)),
        _ => keeps_unknown(schema).then(|| Cow::Borrowed(&*ANYTHING)),
    }
}

/// The node of the items of a list. A list that keeps unknown fields keeps those of its items.
pub(crate) fn item(schema: &Value) -> Node<'_> {
    match schema.get("items").filter(|items| items.is_object()) {
        Some(items) if keeps_unknown(schema) => {
            let mut items = items.clone();
            items["x-kubernetes-preserve-unknown-fields"] = Value::Bool(true);
            Cow::Owned(items)
        }
        Some(items) => Cow::Borrowed(items),
        None if keeps_unknown(schema) => Cow::Borrowed(&*ANYTHING),
        None => Cow::Borrowed(&*UNSAID),
    }
}

/// The node that a step from another one leads to, if it leads anywhere.
pub(crate) fn down<'a>(here: Node<'a>, step: impl for<'b> FnOnce(&'b Value) -> Option<Node<'b>>) -> Option<Node<'a>> {
    match here {
        Cow::Borrowed(here) => step(here),
        Cow::Owned(here) => step(&here).map(|below| Cow::Owned(below.into_owned())),
    }
}

/// Names of all fields that one of two nodes names.
pub(crate) fn fields(old: &Value, new: &Value) -> BTreeSet<String> {
    let names = |schema: &Value| schema["properties"].as_object().map(|map| map.keys().cloned().collect::<Vec<_>>());
    [names(old), names(new)].into_iter().flatten().flatten().collect()
}

/// Names of the fields that must be there.
pub(crate) fn required(schema: &Value) -> BTreeSet<String> {
    texts(&schema["required"]).into_iter().collect()
}

/// The root of a whole object: its apiVersion, kind and metadata are kept whatever the schema says about them.
pub(crate) fn whole(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if !schema.is_object() {
        return schema;
    }
    let text = json!({"type": "string"});
    for name in ["apiVersion", "kind"] {
        if schema["properties"].get(name).is_none() {
            schema["properties"][name] = text.clone();
        }
    }
    let mut metadata = schema["properties"].get("metadata").cloned().unwrap_or_else(|| json!({"type": "object"}));
    if metadata.is_object() {
        metadata["x-kubernetes-preserve-unknown-fields"] = Value::Bool(true);
        for name in ["name", "namespace", "generateName"] {
            if metadata["properties"].get(name).is_none() {
                metadata["properties"][name] = text.clone();
            }
        }
    }
    schema["properties"]["metadata"] = metadata;
    schema
}

/// A schema without texts for people.
pub(crate) fn without_texts(schema: &Value) -> Value {
    strip(schema, false)
}

/// `named` says that the keys of this map are names of fields, which may well be called description.
fn strip(value: &Value, named: bool) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| named || !TEXTS.contains(&key.as_str()));
            let below = |key: &str, value: &Value| match key {
                _ if named => strip(value, false),
                "default" | "enum" => value.clone(),
                "properties" => strip(value, true),
                _ => strip(value, false),
            };
            Value::Object(kept.map(|(key, value)| (key.clone(), below(key, value))).collect())
        }
        Value::Array(list) => list.iter().map(|item| strip(item, false)).collect(),
        other => other.clone(),
    }
}

const TEXTS: [&str; 5] = ["description", "title", "example", "externalDocs", "$schema"];

/// How many texts for people differ between two schemas.
pub(crate) fn texts_changed(old: &Value, new: &Value) -> usize {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut count = 0;
            for (key, value) in new {
                let before = old.get(key);
                if TEXTS.contains(&key.as_str()) && (value.is_string() || before.is_some_and(Value::is_string)) {
                    count += usize::from(before.is_some_and(|before| before != value));
                } else if let Some(before) = before {
                    count += texts_changed(before, value);
                }
            }
            count
        }
        _ => 0,
    }
}
