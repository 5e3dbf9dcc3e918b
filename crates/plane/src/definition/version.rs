//! What a version has besides its schema: warnings, subresources, columns and fields to select by.

use serde_json::Value;

use super::faults::Faults;
use super::path::Path;
use super::structural;
use super::value::{is_true, text};

const TYPES: &str = "must be one of boolean,date,integer,number,string";
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// The most fields that objects can be selected by.
const MOST: usize = 8;

/// What is wrong with the warning of a version.
pub(super) fn check_warning(version: &Value, place: &str, faults: &mut Faults) {
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    let place = format!("{place}.deprecationWarning");
    // A warning is shown as JSON, not as a text.
    let shown = super::shown::plain(&warning.into());
    let mut fault = |why: &str| faults.shown(&place, &shown, why);
    if !is_true(&version["deprecated"]) {
        return fault("can only be set for deprecated versions");
    }
    if warning.len() > 256 {
        fault("must be <= 256 characters long");
    }
    if warning.is_empty() {
        fault("must not be an empty string");
    }
    let hidden = |letter: char| letter.is_control() || (letter.is_whitespace() && letter != ' ');
    if let Some((index, _)) = warning.char_indices().find(|(_, letter)| hidden(*letter)) {
        fault(&format!("must only contain printable UTF-8 characters; non-printable character found at index {index}"));
    }
}

/// What is wrong with subresources.
pub(super) fn check_subresources(subresources: &Value, place: &str, faults: &mut Faults) {
    let scale = &subresources["scale"];
    if !scale.is_object() {
        return;
    }
    for (key, below, why) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ] {
        let (path, place) = (text(scale, key), format!("{place}.scale.{key}"));
        if path.is_empty() {
            if key != "labelSelectorPath" {
                faults.required(&place, "");
            }
        } else if is_simple(path, &place, faults) && !below.iter().any(|start| path.starts_with(start)) {
            // The path of the selector is shown as JSON, not as a text.
            if key == "labelSelectorPath" {
                faults.shown(&place, &super::shown::plain(&path.into()), why);
            } else {
                faults.invalid(&place, &path.into(), why);
            }
        }
    }
}

fn is_simple(path: &str, place: &str, faults: &mut Faults) -> bool {
    let fine = path.starts_with('.');
    if !fine {
        faults.invalid(place, &path.into(), "must be a simple json path starting with .");
    }
    fine
}

/// What is wrong with the columns of tables.
pub(super) fn check_columns(columns: &Value, place: &str, faults: &mut Faults) {
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let place = |key: &str| format!("{place}.additionalPrinterColumns[{index}].{key}");
        if text(column, "name").is_empty() {
            faults.required(&place("name"), "");
        }
        match text(column, "type") {
            "" => faults.required(&place("type"), TYPES),
            "boolean" | "date" | "integer" | "number" | "string" => {}
            other => faults.invalid(&place("type"), &other.into(), TYPES),
        }
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            faults.invalid(&place("format"), &format.into(), &format!("must be one of {}", FORMATS.join(",")));
        }
        match text(column, "jsonPath") {
            "" => faults.required(&place("JSONPath"), ""),
            path => {
                is_simple(path, &place("JSONPath"), faults);
            }
        }
    }
}

/// What is wrong with the fields that objects can be selected by.
pub(super) fn check_selectable(fields: &Value, schema: &Value, place: &str, faults: &mut Faults) {
    let mut seen: Vec<String> = Vec::new();
    for (index, field) in fields.as_array().into_iter().flatten().enumerate() {
        let (path, spot) = (text(field, "jsonPath"), format!("{place}[{index}].jsonPath"));
        if path.is_empty() {
            faults.required(&spot, "");
            continue;
        }
        let found = match Path::parse(path, schema, false) {
            Ok(found) => found,
            Err(why) => {
                faults.invalid(&spot, &path.into(), &format!("is an invalid path: {why}"));
                continue;
            }
        };
        if found.root == "metadata" {
            faults.invalid(&spot, &path.into(), "must not point to fields in metadata");
        }
        if !matches!(structural::kind(found.schema), "string" | "boolean" | "integer") {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            faults.invalid(&spot, &path.into(), why);
        }
        if seen.contains(&found.text) {
            faults.duplicate(&spot, &path.into());
        } else {
            seen.push(found.text);
        }
    }
    if seen.len() > MOST {
        faults.too_many(place, seen.len(), MOST);
    }
}
