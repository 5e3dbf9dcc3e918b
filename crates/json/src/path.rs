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
mod error;
mod find;
mod found;
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
pub use found::{Found, Kind};

use crate::go;

/// What is at `path`, with gjson's syntax: keys and indexes joined by dots, `\` escapes, `*` and `?`, `#`, `#.x`,
/// `#(query)`, `#(query)#`, `|`, `@modifiers`, `{a,b}` and `[a,b]` multipaths, `!` literals.
pub fn get(json: &Value, path: &str) -> Found<'static> {
    text::get(&go::to_text(json), path).into_owned()
}

/// Sets the value at `path`, see [`text::set`].
#[allow(clippy::needless_pass_by_value)] // callers have no more use for it
pub fn set(json: &mut Value, path: &str, value: Value) -> Result<(), PathError> {
    let raw = match &value {
        Value::String(text) => text::quoted(text),
        other => go::to_text(other),
    };
    replace(json, &text::set(&go::to_text(json), path, &raw)?)
}

/// Deletes the value at `path`, see [`text::delete`].
pub fn delete(json: &mut Value, path: &str) -> Result<(), PathError> {
    replace(json, &text::delete(&go::to_text(json), path)?)
}

fn replace(json: &mut Value, text: &str) -> Result<(), PathError> {
    *json = crate::from_str(text).map_err(|error| Problem::TooDeep(error.to_string()).anywhere())?;
    Ok(())
}
