//! The agent as a component of the Open Component Model: which chart and which images belong together. Platform Mesh installs providers from that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::chart;

/// What is a component.
pub const AGENT: &str = "api-syncagent";
/// Where OCM looks for it in an archive. JSON is YAML, too.
const FILE: &str = "component-descriptor.yaml";

/// Writes the descriptor into a folder.
pub fn write(folder: &Path, commit: &str) -> anyhow::Result<PathBuf> {
    let rendered = chart::rendered(AGENT)?;
    let descriptor = descriptor(&chart::version(AGENT)?, &chart::images(&rendered), commit)?;
    let file = folder.join(FILE);
    fs::write(&file, serde_json::to_string_pretty(&descriptor)? + "\n")
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// The descriptor. Resources are called as in the mesh's own component of the agent, so that a ManagedProvider takes this one by its name alone. Pure.
fn descriptor(version: &str, images: &BTreeSet<&str>, commit: &str) -> anyhow::Result<Value> {
    let home = env!("CARGO_PKG_REPOSITORY");
    let name = home.strip_prefix("https://").context("the repository has no https address")?;
    let is_agent = |image: &&&str| image.contains(&format!("/{AGENT}:"));
    let agent = images.iter().find(is_agent).context("the chart does not install the agent")?;
    let (registry, _) = agent.rsplit_once('/').context("the agent's image has no registry")?;
    let mut resources = vec![
        resource("chart", "helmChart", version, &format!("{registry}/charts/{AGENT}:{version}")),
        resource("image", "ociImage", version, agent),
    ];
    for image in images.iter().filter(|image| *image != agent) {
        let tag = image.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/'));
        let tag = tag.with_context(|| format!("image {image} has no tag"))?;
        let (place, _) = image.rsplit_once(':').unwrap_or((image, ""));
        resources.push(resource(place.rsplit('/').next().unwrap_or(place), "ociImage", tag, image));
    }
    let names: BTreeSet<&str> = resources.iter().filter_map(|one| one["name"].as_str()).collect();
    ensure!(names.len() == resources.len(), "two images of the chart have one name: {images:?}");
    Ok(json!({
        "meta": { "schemaVersion": "v2" },
        "component": {
            "name": format!("{name}/{AGENT}"),
            "version": version,
            "provider": "carrick",
            "repositoryContexts": [],
            "sources": [{
                "name": "source",
                "type": "git",
                "version": version,
                "access": { "type": "gitHub", "repoUrl": name, "commit": commit },
            }],
            "componentReferences": [],
            "resources": resources,
        },
    }))
}

fn resource(name: &str, kind: &str, version: &str, reference: &str) -> Value {
    json!({
        "name": name,
        "type": kind,
        "version": version,
        "relation": "external",
        "access": { "type": "ociArtifact", "imageReference": reference },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn a_component_has_the_chart_and_all_images_that_it_installs() {
        let images = ["r.example:5000/a/api-syncagent:1.2.0", "r.example:5000/a/carrick:1.2.0"].into();
        let made = descriptor("1.2.0", &images, COMMIT).unwrap();
        let component = &made["component"];
        assert_eq!(component["name"], "github.com/carrick/carrick/api-syncagent");
        assert_eq!(component["sources"][0]["access"]["commit"], COMMIT);
        let listed: Vec<(&str, &str, &str)> = component["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                let text = |pointer: &str| one.pointer(pointer).unwrap().as_str().unwrap();
                (text("/name"), text("/type"), text("/access/imageReference"))
            })
            .collect();
        let wanted = [
            ("chart", "helmChart", "r.example:5000/a/charts/api-syncagent:1.2.0"),
            ("image", "ociImage", "r.example:5000/a/api-syncagent:1.2.0"),
            ("carrick", "ociImage", "r.example:5000/a/carrick:1.2.0"),
        ];
        assert_eq!(listed, wanted);
        assert!(descriptor("1", &["r/other:1"].into(), COMMIT).is_err());
        assert!(descriptor("1", &["r/api-syncagent:1", "r/a/tool:1", "r/b/tool:1"].into(), COMMIT).is_err());
    }

    #[test]
    fn the_descriptor_of_this_chart_can_be_written() {
        let folder = std::env::temp_dir().join(format!("carrick-component-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let written = fs::read(write(&folder, COMMIT).unwrap()).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let made: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(made["meta"]["schemaVersion"], "v2");
        for field in
            ["name", "version", "provider", "repositoryContexts", "sources", "componentReferences", "resources"]
        {
            assert!(made["component"].get(field).is_some(), "OCM requires {field}");
        }
        assert_eq!(made["component"]["version"], chart::version(AGENT).unwrap());
    }
}
