//! What is wrong with an object, in Kubernetes' words.

use serde_json::{Map, Value};

/// One entry of `details.causes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Machine readable reason such as `FieldValueRequired`.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// The field that the cause refers to; may be empty.
    pub field: String,
    /// The type that a violated rule reports in place of the value, as Kubernetes does up to 1.34; later versions, and kcp, show the value
    /// if it is a scalar.
    pub named_type: Option<(&'static str, Option<String>)>,
}

impl Cause {
    /// A cause about one field.
    pub fn new(reason: &str, field: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into(), field: field.to_owned(), named_type: None }
    }

    /// The message with the value, or nothing, in place of its type.
    #[must_use]
    pub fn without_type(mut self) -> Self {
        if let Some((kind, value)) = self.named_type.take() {
            let shown = value.map_or_else(String::new, |value| format!("{value}: "));
            let typed = format!("Invalid value: {kind:?}: ");
            self.message = self.message.replacen(&typed, &format!("Invalid value: {shown}"), 1);
        }
        self
    }

    /// `Required value`, with an optional explanation.
    pub fn required(field: &str, detail: &str) -> Self {
        Self::new("FieldValueRequired", field, with_detail("Required value", detail))
    }

    /// `Invalid value: <value>: <detail>`.
    pub fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, with_detail(&format!("Invalid value: {value}"), detail))
    }

    /// The same for a value that is shown in a form of its own.
    pub fn invalid_text(field: &str, shown: &str, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, with_detail(&format!("Invalid value: {shown}"), detail))
    }

    /// `Forbidden: <detail>`.
    pub fn forbidden(field: &str, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, with_detail("Forbidden", detail))
    }

    /// `Too long: may not be more than 10 bytes`.
    pub fn too_long(field: &str, limit: usize) -> Self {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {limit} {bytes}"))
    }

    /// `Too many: 5: must have at most 4 items`.
    pub fn too_many(field: &str, found: u64, most: u64) -> Self {
        let items = if most == 1 { "item" } else { "items" };
        Self::new("FieldValueTooMany", field, format!("Too many: {found}: must have at most {most} {items}"))
    }

    /// `Unsupported value: "x": supported values: "a", "b"`.
    pub fn unsupported(field: &str, value: &Value, supported: &[Value]) -> Self {
        let list: Vec<String> = supported.iter().map(ToString::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", list.join(", "));
        Self::new("FieldValueNotSupported", field, message)
    }

    /// The field and the message.
    pub fn text(&self) -> String {
        if self.field.is_empty() { self.message.clone() } else { format!("{}: {}", self.field, self.message) }
    }

    /// The cause as the API writes it.
    pub fn value(&self) -> Value {
        let mut map = Map::new();
        map.insert("reason".into(), self.reason.clone().into());
        map.insert("message".into(), self.message.clone().into());
        if !self.field.is_empty() {
            map.insert("field".into(), self.field.clone().into());
        }
        Value::Object(map)
    }
}

fn with_detail(text: &str, detail: &str) -> String {
    if detail.is_empty() { text.to_owned() } else { format!("{text}: {detail}") }
}
