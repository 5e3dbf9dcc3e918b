//! Paths into JSON: reading as gjson 1.18 does, writing as sjson 1.2.5 does.
//!
//! ```text
//!   answer ─────▶ text::get ──▶ find ──┬─▶ component  one key, index, wildcard
//!                    ▲                 ├─▶ query      #(name=="x")
//!   get (Value) ─────┘                 ├─▶ modifier   @keys, @pretty, …
//!   set, delete ───▶ text::set ──┐     └─▶ multipath  {a,b} and [a,b]
//!   (Value)          text::delete└─▶ write ──▶ find, to know the place
//! ```
//!
//! There is one evaluator, and it works on text: then numbers, the order of keys, duplicate keys and whitespace are
//! kept without effort, and results are those of gjson to the byte. The functions on [`Value`] write the value as text
//! first.

mod answer;
mod component;
mod encode;
mod error;
mod find;
mod found;
mod kind;
mod limits;
mod modifier;
mod multipath;
mod pretty;
mod query;
pub mod reference;
mod scan;
pub mod text;
mod wildcard;
mod write;

use serde_json::Value;

pub use answer::answer;
pub use error::{PathError, Problem};
pub use found::Found;
pub use kind::Kind;

use crate::go;

/// What is at `path`, with gjson's syntax: keys and indexes joined by dots, `\` escapes, `*` and `?`, `#`, `#.x`,
/// `#(query)`, `#(query)#`, `|`, `@modifiers`, `{a,b}` and `[a,b]` multipaths, `!` literals.
///
/// ```
/// use carrick_json::path;
/// use serde_json::json;
///
/// let pod = json!({"containers": [{"name": "web", "ports": [80, 443]}, {"name": "db", "ports": [5432]}]});
/// assert_eq!(path::get(&pod, "containers.#").int(), 2);
/// assert_eq!(path::get(&pod, r#"containers.#(name=="web").ports.1"#).int(), 443);
/// assert_eq!(path::get(&pod, "containers.#.ports|@flatten").into_value(), json!([80, 443, 5432]));
/// ```
pub fn get(json: &Value, path: &str) -> Found<'static> {
    text::get(&go::to_text(json), path).into_owned()
}

/// Sets the value at `path`, see [`text::set`].
///
/// ```
/// use carrick_json::path;
/// use serde_json::json;
///
/// let mut object = json!({"list": [1]});
/// path::set(&mut object, "list.-1", json!(2))?;
/// path::set(&mut object, "a.b", json!("new"))?;
/// assert_eq!(object, json!({"a": {"b": "new"}, "list": [1, 2]}));
/// # Ok::<(), path::PathError>(())
/// ```
#[allow(clippy::needless_pass_by_value)] // callers have no more use for it
pub fn set(json: &mut Value, path: &str, value: Value) -> Result<(), PathError> {
    let raw = match &value {
        Value::String(text) => encode::quoted(text),
        other => go::to_text(other),
    };
    replace(json, &text::set(&go::to_text(json), path, &raw)?)
}

/// Deletes the value at `path`, see [`text::delete`].
///
/// ```
/// use carrick_json::path;
/// use serde_json::json;
///
/// let mut object = json!({"a": {"b": 1, "c": 2}});
/// path::delete(&mut object, "a.b")?;
/// assert_eq!(object, json!({"a": {"c": 2}}));
/// let error = path::delete(&mut object, "a.*").unwrap_err();
/// assert_eq!(error.to_string(), "cannot delete value from a complex path");
/// # Ok::<(), path::PathError>(())
/// ```
pub fn delete(json: &mut Value, path: &str) -> Result<(), PathError> {
    replace(json, &text::delete(&go::to_text(json), path)?)
}

fn replace(json: &mut Value, text: &str) -> Result<(), PathError> {
    *json = crate::from_str(text).map_err(|error| Problem::TooDeep(error.to_string()).anywhere())?;
    Ok(())
}
