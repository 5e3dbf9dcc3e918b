//! CRDs of the size and shape of the largest public ones, made up.
//!
//! Those of Elastic, Kyverno, Argo, Kubeflow and the Prometheus operator have one or two versions, 1 500 to 7 000 schemas up to twenty
//! levels deep, and descriptions of 150 characters on each. What is made here has the same proportions at any size.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value, json};

/// JSON of one schema with its description and its share of what is around it, in bytes: as measured in the largest public CRDs.
const SCHEMA: usize = 230;
/// How many fields an object has.
const FIELDS: usize = 9;
const WORDS: [&str; 12] = [
    "selector",
    "endpoint",
    "template",
    "container",
    "volume",
    "affinity",
    "the",
    "of",
    "that",
    "is",
    "optional",
    "when",
];

/// A CRD whose JSON takes about so many KiB.
pub fn crd(group: &str, number: usize, kib: usize) -> Value {
    let kind = format!("Large{number}");
    let singular = kind.to_lowercase();
    let mut left = (kib * 1024 / SCHEMA).max(3);
    // Two thirds of it are a spec, as they are in most.
    let mut status = left / 3;
    left -= status;
    let spec = object(&mut left, 0, number);
    let status = object(&mut status, 0, number + 1);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{singular}s.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "plural": format!("{singular}s"), "singular": singular, "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec, "status": status } } },
            }],
        },
    })
}

/// An object with fields, of which some are objects again, until so many schemas are made.
fn object(left: &mut usize, depth: usize, seed: usize) -> Value {
    *left = left.saturating_sub(1);
    let mut properties = Map::new();
    // What is left is shared among the nested objects of this level, so that the tree gets deep before it gets broad.
    let nested = if depth < 14 { 3 } else { 0 };
    for i in 0..FIELDS - nested {
        if *left == 0 {
            break;
        }
        *left -= 1;
        properties.insert(format!("{}{i}", WORDS[(seed + i) % 6]), leaf(seed + i + depth));
    }
    for i in 0..nested {
        let mut share = left.div_ceil(nested - i);
        if share < 2 {
            continue;
        }
        let before = share;
        let name = format!("{}Of{}{i}", WORDS[(seed + i) % 6], WORDS[(seed + depth) % 6]);
        let inner = object(&mut share, depth + 1, seed + i);
        let value = if i == 1 { json!({ "type": "array", "items": inner }) } else { inner };
        properties.insert(name, value);
        *left -= before - share;
    }
    json!({ "type": "object", "description": text(seed + depth, 150), "properties": properties })
}

fn leaf(seed: usize) -> Value {
    let description = text(seed, 150);
    match seed % 5 {
        0 => json!({ "type": "integer", "format": "int32", "description": description, "minimum": 0 }),
        1 => json!({ "type": "boolean", "description": description, "default": false }),
        2 => json!({ "type": "string", "description": description, "enum": ["Always", "IfNotPresent", "Never"] }),
        3 => {
            json!({ "description": description, "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] })
        }
        _ => json!({ "type": "string", "description": description, "maxLength": 253 }),
    }
}

fn text(seed: usize, length: usize) -> String {
    let mut text = String::new();
    let mut at = seed;
    while text.len() < length {
        text.push_str(WORDS[at % WORDS.len()]);
        text.push(' ');
        at = at * 7 + 3;
        at %= 1_000_003;
    }
    text
}

/// The CRDs in a folder, one to a file, in YAML or JSON.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let text = fs::read_to_string(file)?;
        let crd: Value = if text.trim_start().starts_with('{') {
            serde_json::from_str(&text)?
        } else {
            serde_saphyr::from_str(&text)?
        };
        anyhow::Ok(crd)
    };
    files.iter().map(|file| read(file).with_context(|| format!("cannot read {}", file.display()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(schema: &Value) -> usize {
        let inner = schema["properties"].as_object().into_iter().flatten().map(|(_, inner)| depth(inner)).max();
        inner.unwrap_or(0).max(schema.get("items").map_or(0, depth)) + 1
    }

    #[test]
    fn made_up_crds_have_the_size_that_is_asked_for_and_are_deep() {
        for kib in [20, 100, 1100] {
            let crd = crd("example.com", 7, kib);
            let size = crd.to_string().len() / 1024;
            assert!(size > kib * 8 / 10 && size < kib * 12 / 10, "{size} instead of {kib} KiB");
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert!(depth(schema) > 4, "{}", depth(schema));
        }
    }
}
