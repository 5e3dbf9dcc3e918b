//! Charts as they are shipped: their packages, and beside each the bill of what it installs, in CycloneDX's format.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::tools;

/// Package the charts, each with a bill of the images that it installs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder for packages and bills
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Registry to push the packages to, such as oci://registry.example.com/charts
    #[arg(value_name = "REGISTRY")]
    registry: Option<String>,
}

/// Packages, and writes the bills.
pub fn package(args: &Args) -> anyhow::Result<()> {
    let mut command = Command::new(tools::root().join("charts/package"));
    tools::run(command.arg(&args.folder).args(&args.registry))?;
    for name in charts()? {
        let version = version(&name)?;
        let package = args.folder.join(format!("{name}-{version}.tgz"));
        let bytes = fs::read(&package).with_context(|| format!("cannot read {}", package.display()))?;
        let bill = bill(&name, &version, &HEXLOWER.encode(&Sha256::digest(&bytes)), &images(&rendered(&name)?))?;
        let file = package.with_extension("cdx.json");
        fs::write(&file, serde_json::to_string_pretty(&bill)? + "\n")?;
        println!("{}", file.display());
    }
    Ok(())
}

/// The names of all charts.
fn charts() -> anyhow::Result<BTreeSet<String>> {
    let folders = fs::read_dir(tools::root().join("charts")).context("cannot read charts")?;
    let folders: Vec<PathBuf> = folders.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    let charts = folders.iter().filter(|folder| folder.join("Chart.yaml").is_file());
    Ok(charts.filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned())).collect())
}

/// The version of a chart.
pub fn version(chart: &str) -> anyhow::Result<String> {
    let file = tools::root().join("charts").join(chart).join("Chart.yaml");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let version = text.lines().find_map(|line| line.strip_prefix("version: "));
    Ok(version.with_context(|| format!("{} has no version", file.display()))?.trim().to_owned())
}

/// What a chart renders with the fewest values. `charts/check` sees to it that this is what helm renders today.
pub fn rendered(chart: &str) -> anyhow::Result<String> {
    let tests = tools::root().join("charts/tests");
    let own = tests.join(chart);
    // The first chart's lie right there.
    let folder = if own.is_dir() { own } else { tests };
    let file = folder.join("minimal.yaml");
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// The images in manifests.
pub fn images(manifests: &str) -> BTreeSet<&str> {
    let lines = manifests.lines().map(|line| line.trim_start().trim_start_matches("- "));
    lines.filter_map(|line| line.strip_prefix("image: ")).map(|image| image.trim().trim_matches('"')).collect()
}

/// The bill of a chart. Pure.
fn bill(chart: &str, version: &str, sha256: &str, images: &BTreeSet<&str>) -> anyhow::Result<Value> {
    ensure!(!images.is_empty(), "the chart {chart} installs no image; are its snapshots in charts/tests complete?");
    let address = format!("pkg:helm/{chart}@{version}");
    let components: Vec<Value> = images.iter().map(|image| component(image)).collect();
    let on: Vec<&Value> = components.iter().map(|component| &component["bom-ref"]).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": address, "name": chart, "version": version, "purl": address,
            "licenses": [{ "expression": env!("CARGO_PKG_LICENSE") }],
            "hashes": [{ "alg": "SHA-256", "content": sha256 }],
        }},
        "dependencies": [{ "ref": address, "dependsOn": on }],
        "components": components,
    }))
}

fn component(image: &str) -> Value {
    // A colon in front of a slash belongs to the registry's port.
    let (repository, tag) = match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (image, "latest"),
    };
    let name = Path::new(repository).file_name().and_then(|name| name.to_str()).unwrap_or(repository);
    let address = format!("pkg:oci/{name}?repository_url={repository}&tag={tag}");
    json!({ "type": "container", "bom-ref": address, "name": repository, "version": tag, "purl": address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_lists_each_image_once() {
        let manifests = "spec:\n  - image: \"r.example:5000/a/agent:1.2\"\n    imagePullPolicy: Always\n---\n  image: r.example:5000/tool\n  image: r.example:5000/tool\n";
        let bill = bill("agent", "1.2", "abc", &images(manifests)).unwrap();
        let listed: Vec<_> =
            bill["components"].as_array().unwrap().iter().map(|it| (&it["name"], &it["version"])).collect();
        let (agent, tool) = (json!("r.example:5000/a/agent"), json!("r.example:5000/tool"));
        assert_eq!(listed, [(&agent, &json!("1.2")), (&tool, &json!("latest"))]);
        assert_eq!(
            bill["dependencies"][0]["dependsOn"][0],
            "pkg:oci/agent?repository_url=r.example:5000/a/agent&tag=1.2"
        );
        assert_eq!(bill["metadata"]["component"]["hashes"][0]["content"], "abc");
    }

    #[test]
    fn every_chart_installs_the_image_of_its_own_name_and_version() {
        let charts = charts().unwrap();
        assert!(charts.len() >= 3, "{charts:?}");
        for chart in charts {
            let (rendered, own) = (rendered(&chart).unwrap(), format!("/{chart}:{}", version(&chart).unwrap()));
            let images = images(&rendered);
            assert!(images.iter().any(|image| image.ends_with(&own)), "{chart}: {images:?}");
            bill(&chart, "1", "", &images).unwrap();
        }
        assert!(bill("empty", "1", "", &BTreeSet::new()).is_err());
    }
}
