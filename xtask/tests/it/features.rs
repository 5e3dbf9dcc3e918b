//! Whatever part of the workspace is built, dependencies are built with the same features, so that none is compiled twice.
//! `crates/workspace-hack` is where a feature that only some packages ask for is asked for by all; this test says which are missing there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

type Features = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_dependency_is_compiled_twice_with_other_features() {
    let whole = features(&["--workspace"]);
    let mut missing = Features::new();
    for package in packages() {
        for (dependency, has) in features(&["--package", &package]) {
            let lacks = whole[&dependency].difference(&has).map(|feature| format!("{feature} ({package})"));
            missing.entry(dependency).or_default().extend(lacks);
        }
    }
    missing.retain(|_, lacks| !lacks.is_empty());
    assert!(missing.is_empty(), "ask for these in crates/workspace-hack/Cargo.toml: {missing:#?}");
}

/// The features of every dependency from elsewhere, if these packages are built and tested.
fn features(selection: &[&str]) -> Features {
    let form = ["--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}|{f}"];
    let mut features = Features::new();
    for line in cargo(&[&["tree"], selection, &form].concat()).lines() {
        // What was printed before with the same features is marked.
        let Some((package, enabled)) = line.trim_end_matches(" (*)").split_once('|') else { continue };
        // Packages of the workspace are told with their folder.
        let package = package.trim_end_matches(" (proc-macro)");
        if !package.ends_with(')') {
            let enabled = enabled.split(',').filter(|feature| !feature.is_empty()).map(str::to_owned);
            features.entry(package.to_owned()).or_default().extend(enabled);
        }
    }
    assert!(!features.is_empty(), "cargo tree names no dependency of {selection:?}");
    features
}

/// The packages of the workspace.
fn packages() -> Vec<String> {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.map(|package| package["name"].as_str().unwrap().to_owned()).collect()
}

fn cargo(arguments: &[&str]) -> String {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(env!("CARGO")).current_dir(workspace).args(arguments).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
