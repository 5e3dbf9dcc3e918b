//! Values as Go shows them.

use serde_json::Value;

/// A value as Go prints it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            format!("map[{}]", pairs.join(" "))
        }
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

/// A value as a Go literal.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            format!("[]interface {{}}{{{}}}", list.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key:?}:{}", literal(value))).collect();
            format!("map[string]interface {{}}{{{}}}", pairs.join(", "))
        }
        Value::Null => "interface {}(nil)".to_owned(),
        other => other.to_string(),
    }
}

/// The type of a value as Go names it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The type of a value as Go's JSON decoder names it.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
