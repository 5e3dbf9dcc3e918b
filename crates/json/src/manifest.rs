//! The objects in a manifest, as kubectl finds them.
//!
//! ```text
//!   bytes ──▶ text ─┬─▶ JSON, one after the other ────────────────┬─▶ lists taken apart ──▶ objects
//!                   └─▶ pieces between lines of --- ──▶ YAML each ─┘
//! ```
//!
//! What kubectl takes is taken, and means the same. Of what kubectl refuses, flow maps (`{kind: Secret}`) and JSON after `---` are taken, because
//! they are YAML.
//!
//! ```
//! let found = carrick_json::manifest::objects("kind: A\n---\n# nothing\n---\nkind: B\n").unwrap();
//! assert_eq!((found.len(), &found[1]["kind"]), (2, &"B".into()));
//! ```

use serde_json::{Value, json};

use crate::yaml::{self, YamlError};

/// Begins a line between two pieces.
const SEPARATOR: &str = "---";
/// Editors on Windows begin files with it.
const BOM: char = '\u{feff}';

/// Why a text is not a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// A piece of it is not YAML.
    #[error("this is not valid YAML: {0}")]
    Yaml(YamlError),
    /// Something follows `---` on its line.
    #[error("line {0}: only a comment may follow --- on its line; put what comes after it on the next one")]
    Separator(usize),
    /// It begins with `%YAML` or `%TAG`, which kubectl does not take.
    #[error("line {0}: kubectl takes no directives such as %YAML; remove this line")]
    Directive(usize),
    /// A piece of it is YAML, but no map.
    #[error("object {number} is {found}, where apiVersion, kind and metadata should be")]
    NoObject {
        /// Which one.
        number: usize,
        /// What it is instead.
        found: &'static str,
    },
    /// A List has no items that could be taken one by one.
    #[error("object {0} is a List, but its items are not a list of objects")]
    NoItems(usize),
    /// A List is in a List, which kubectl does not take.
    #[error("object {0} is a List in a List; write its items where it is")]
    ListInList(usize),
}

/// The text of a file: UTF-8, or UTF-16 with a mark at its beginning. Bytes that are neither are replaced; mostly they are in comments.
pub fn text(bytes: &[u8]) -> String {
    let units = |read: fn([u8; 2]) -> u16| -> Vec<u16> {
        bytes[2..].chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect()
    };
    match bytes {
        [0xff, 0xfe, ..] => String::from_utf16_lossy(&units(u16::from_le_bytes)),
        [0xfe, 0xff, ..] => String::from_utf16_lossy(&units(u16::from_be_bytes)),
        _ => String::from_utf8_lossy(bytes).trim_start_matches(BOM).to_owned(),
    }
}

/// All objects of a text in YAML or JSON. A list of any kind counts as its items, pieces with nothing in them do not count.
pub fn objects(text: &str) -> Result<Vec<Value>, ManifestError> {
    let values = match json_stream(text) {
        Some(values) => values,
        None => yaml_pieces(text)?,
    };
    let mut objects = Vec::new();
    for value in values.into_iter().filter(|value| !value.is_null()) {
        let number = objects.len() + 1;
        match items(&value) {
            Some(items) => {
                for item in items {
                    let number = objects.len() + 1;
                    if items_of(&item).is_some() {
                        return Err(ManifestError::ListInList(number));
                    }
                    objects.push(item.is_object().then_some(item).ok_or(ManifestError::NoItems(number))?);
                }
            }
            None if value["kind"] == "List" => return Err(ManifestError::NoItems(number)),
            None if value.is_object() => objects.push(value),
            None => return Err(ManifestError::NoObject { number, found: name(&value) }),
        }
    }
    Ok(objects)
}

/// Removes keys with nothing below them, as API servers do with what kubectl creates. What is applied server-side keeps them, and is refused.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The values of a text that is nothing but JSON.
fn json_stream(text: &str) -> Option<Vec<Value>> {
    let text = text.trim_start_matches(BOM);
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    values.ok().filter(|_| text.trim_start().starts_with('{'))
}

/// The values of a text in YAML. Anchors and line ends of one piece mean nothing to the next, and of a piece only the first document counts.
fn yaml_pieces(text: &str) -> Result<Vec<Value>, ManifestError> {
    let mut values = Vec::new();
    let (mut begin, mut before, mut at) = (0, 0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if let Some(rest) = line.trim_start_matches(BOM).strip_prefix(SEPARATOR) {
            if !matches!(rest.trim().chars().next(), None | Some('#')) {
                return Err(ManifestError::Separator(number + 1));
            }
            values.push(piece(&text[begin..at], before)?);
            (begin, before) = (at + line.len(), number + 1);
        }
        at += line.len();
    }
    values.push(piece(&text[begin..], before)?);
    Ok(values)
}

/// The value of one piece, and so many lines are before it.
fn piece(text: &str, before: usize) -> Result<Value, ManifestError> {
    let text = text.trim_start_matches(BOM);
    if text.starts_with('%') {
        return Err(ManifestError::Directive(before + 1));
    }
    yaml::value(text).map_err(|error| {
        let is_template = text.lines().nth(error.line.saturating_sub(1)).is_some_and(|line| line.contains("{{"));
        let hint =
            if is_template { "; a template has to be rendered first, for instance by helm template" } else { "" };
        let message = format!("{}{hint}", error.message);
        ManifestError::Yaml(YamlError { line: error.line + before, message, ..error })
    })
}

/// The items of a list. They need not repeat what the list says about their kind.
fn items(list: &Value) -> Option<Vec<Value>> {
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).filter(|kind| !kind.is_empty());
    let complete = |item: &Value| {
        let mut item = item.clone();
        if let (Some(kind), true, None) = (kind, item.is_object(), item.get("kind")) {
            item["kind"] = json!(kind);
            item["apiVersion"] = list["apiVersion"].clone();
        }
        item
    };
    items_of(list).map(|items| items.iter().map(complete).collect())
}

fn items_of(object: &Value) -> Option<&Vec<Value>> {
    object.get("items")?.as_array()
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::String(_) => "text",
        Value::Number(_) => "a number",
        Value::Bool(_) => "true or false",
        Value::Object(_) | Value::Null => "nothing",
    }
}

#[cfg(test)]
mod tests;
