//! The agent as a component of the Open Component Model: which chart and which images belong together. Platform Mesh installs providers from that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::chart;

/// What is a component.
pub const AGENT: &str = "api-syncagent";
/// Where OCM looks for it in an archive. JSON is YAML, too.
const FILE: &str = "component-descriptor.yaml";

/// The digest under which a registry has the manifest of a resource, as whoever has pushed it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceDigest {
    /// Name of the resource.
    resource: String,
    /// SHA-256, in hexadecimal digits.
    sha256: String,
}

impl FromStr for ResourceDigest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (resource, sha256) = text.split_once("=sha256:").unwrap_or_default();
        let is_hex = |letter: u8| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter);
        if resource.is_empty() || sha256.len() != 64 || !sha256.bytes().all(is_hex) {
            return Err("write it as <resource>=sha256:<64 digits>".to_owned());
        }
        Ok(Self { resource: resource.to_owned(), sha256: sha256.to_owned() })
    }
}

/// Writes the descriptor into a folder.
pub fn write(folder: &Path, commit: &str, digests: &[ResourceDigest]) -> anyhow::Result<PathBuf> {
    let rendered = chart::rendered(AGENT)?;
    let mut descriptor = descriptor(&chart::version(AGENT)?, &chart::images(&rendered), commit)?;
    pin(&mut descriptor, digests)?;
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

/// Adds digests to resources, so that whoever takes the component gets these very bytes.
fn pin(descriptor: &mut Value, digests: &[ResourceDigest]) -> anyhow::Result<()> {
    let resources = descriptor["component"]["resources"].as_array_mut().context("the descriptor has no resources")?;
    for digest in digests {
        let names: Vec<String> = resources.iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect();
        let found = resources.iter_mut().find(|one| one["name"] == digest.resource.as_str());
        let found = found.with_context(|| {
            format!("the component has no resource {} to give a digest but {}", digest.resource, names.join(", "))
        })?;
        ensure!(found["digest"].is_null(), "resource {} is given two digests", digest.resource);
        found["digest"] = json!({
            "hashAlgorithm": "SHA-256", "normalisationAlgorithm": "ociArtifactDigest/v1", "value": digest.sha256,
        });
    }
    Ok(())
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
    fn digests_belong_to_resources_that_are_there_and_to_each_once() {
        let made = || descriptor("1.2.0", &["r/api-syncagent:1.2.0", "r/carrick:1.2.0"].into(), COMMIT).unwrap();
        let sha256 = "0123456789abcdef".repeat(4);
        let digest = |resource: &str| format!("{resource}=sha256:{sha256}").parse::<ResourceDigest>().unwrap();
        let mut pinned = made();
        pin(&mut pinned, &[digest("image"), digest("chart")]).unwrap();
        let of = |at: usize| &pinned["component"]["resources"][at]["digest"];
        for at in [0, 1] {
            assert_eq!((&of(at)["hashAlgorithm"], &of(at)["value"]), (&json!("SHA-256"), &json!(sha256)));
        }
        assert_eq!(*of(2), Value::Null);
        let error = pin(&mut made(), &[digest("charts")]).unwrap_err().to_string();
        assert!(error.contains("no resource charts") && error.contains("chart, image, carrick"), "{error}");
        assert!(pin(&mut made(), &[digest("image"), digest("image")]).is_err());
        for bad in [
            "image",
            "image=sha256:",
            "=sha256:0",
            &format!("image=sha512:{sha256}"),
            &format!("image=sha256:{sha256}0"),
        ] {
            assert!(bad.parse::<ResourceDigest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_descriptor_of_this_chart_can_be_written() {
        let folder = std::env::temp_dir().join(format!("carrick-component-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let written = fs::read(write(&folder, COMMIT, &[]).unwrap()).unwrap();
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
