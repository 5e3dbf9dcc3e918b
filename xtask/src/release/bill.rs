//! The software bill of materials of a program, in CycloneDX's format, from what cargo knows.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::tools;

/// The bill of one program, built for a target.
pub fn of(program: &str, version: &str, target: &str) -> anyhow::Result<Value> {
    let arguments = ["metadata", "--format-version=1", "--locked", "--filter-platform", target];
    let output = tools::cargo().args(arguments).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    make(&serde_json::from_slice(&output.stdout)?, program, version)
}

/// From the answer of `cargo metadata`. Pure.
fn make(metadata: &Value, program: &str, version: &str) -> anyhow::Result<Value> {
    let packages: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).map(|package| (text(&package["id"]), package)).collect();
    let needs: BTreeMap<&str, Vec<&str>> = list(&metadata["resolve"]["nodes"])
        .map(|node| {
            // Of what tests and build scripts need, nothing is in the program.
            let normal = |dependency: &&Value| list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null());
            (text(&node["id"]), list(&node["deps"]).filter(normal).map(|dependency| text(&dependency["pkg"])).collect())
        })
        .collect();
    let makes = |package: &&Value| {
        list(&package["targets"])
            .any(|target| target["name"] == program && list(&target["kind"]).any(|kind| kind == "bin"))
    };
    let root = packages.values().copied().find(makes).with_context(|| format!("no package makes {program}"))?;
    let (mut inside, mut open) = (BTreeSet::new(), vec![text(&root["id"])]);
    while let Some(id) = open.pop() {
        if inside.insert(id) {
            open.extend(needs.get(id).into_iter().flatten());
        }
    }
    let name = |id: &str| packages.get(id).map(|package| address(package)).unwrap_or_default();
    let components: Vec<Value> =
        inside.iter().filter(|id| **id != root["id"]).map(|id| component(packages[id])).collect();
    let dependencies: Vec<Value> = inside
        .iter()
        .map(|id| {
            let mut on: Vec<String> = needs.get(id).into_iter().flatten().map(|id| name(id)).collect();
            on.sort();
            on.dedup();
            json!({ "ref": name(id), "dependsOn": on })
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": address(root), "name": program, "version": version,
            "licenses": [{ "expression": root["license"] }],
        }},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Value) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": address(package),
        "name": package["name"],
        "version": package["version"],
        "purl": address(package),
    });
    if let Some(license) = package["license"].as_str() {
        // An older way to say OR.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    component
}

/// The package URL.
fn address(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_the_program_is_listed() {
        let package = |name: &str, kind: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "targets": [{ "name": name, "kind": [kind] }] });
        let needs = |on: &str, kind: Value| json!({ "pkg": on, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("app", "bin"), package("used", "lib"), package("tests-only", "lib"), package("other", "lib")],
            "resolve": { "nodes": [
                { "id": "app", "deps": [needs("used", Value::Null), needs("tests-only", json!("dev"))] },
                { "id": "used", "deps": [] },
                { "id": "other", "deps": [] },
            ]},
        });
        let bill = make(&metadata, "app", "1.0.0+abc").unwrap();
        let names: Vec<&str> = list(&bill["components"]).map(|component| text(&component["name"])).collect();
        assert_eq!(names, ["used"]);
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["metadata"]["component"]["version"], "1.0.0+abc");
        assert_eq!(
            bill["dependencies"][0],
            json!({ "ref": "pkg:cargo/app@1.0.0", "dependsOn": ["pkg:cargo/used@1.0.0"] })
        );
        assert!(make(&metadata, "missing", "1").is_err());
    }
}
