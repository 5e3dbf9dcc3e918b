//! String formats that are not checked.

use serde_json::Value;

use super::schema::children;
use super::structural::kind;
use super::value::text;

/// The formats that are checked, without dashes.
const KNOWN: &str = "bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13 creditcard ssn hexcolor rgbcolor byte password date duration datetime";

/// Warnings about formats of a CRD, beyond those that it had before.
pub(crate) fn warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(unknown).unwrap_or_default();
    let new = unknown(crd).into_iter().filter(|format| !before.contains(format));
    new.map(|format| format!("unrecognized format {format:?}")).collect()
}

fn unknown(crd: &Value) -> Vec<String> {
    let versions = crd["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let schemas: Vec<&Value> = versions.iter().map(|version| &version["schema"]["openAPIV3Schema"]).collect();
    let shared = schemas.iter().all(|schema| Some(schema) == schemas.first());
    let mut found = Vec::new();
    for schema in schemas.into_iter().take(if shared { 1 } else { usize::MAX }) {
        collect(schema, &mut found);
    }
    found
}

fn collect(schema: &Value, found: &mut Vec<String>) {
    let format = text(schema, "format");
    let plain = format.replace('-', "");
    if kind(schema) == "string" && !format.is_empty() && !KNOWN.split(' ').any(|known| known == plain) {
        found.push(format.to_owned());
    }
    children(schema).for_each(|child| collect(child, found));
}
