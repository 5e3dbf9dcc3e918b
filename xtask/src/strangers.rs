//! Published crates, built as strangers meet them: outside of this workspace, without its dev-dependencies, with every set of their features.
//!
//! ```text
//!  cargo metadata ─▶ what is published ─┬─ every set of features    a small crate that depends on just that
//!                                       ├─ what must not be there   cargo tree
//!                                       ├─ the page of the book     the first controller, pasted into an empty folder
//!                                       ├─ the oldest Rust          the same crate, with the toolchain that Cargo.toml states
//!                                       ├─ cargo publish --dry-run  unpacked and built, all together
//!                                       └─ cargo semver-checks      against the last tag
//! ```

mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::tools;

/// Build every published crate as strangers would, with each set of its features, its oldest Rust, and as it would be published.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only crates whose names contain one of these.
    names: Vec<String>,
}

/// What a crate's tree may not hold: the crate, its features, and names of packages.
///
/// kube's own client always brings serde-saphyr, so that a YAML reader is there whatever is chosen; ours is behind `carrick-json/yaml`, which needs carrick-go.
const ABSENT: [(&str, &[&str], &[&str]); 3] = [
    ("carrick-multicluster", &[], &["carrick-kcp", "carrick-go", "carrick-template", "carrick-cel"]),
    ("carrick-client", &[], &["carrick-kcp", "carrick-go"]),
    ("carrick-json", &[], &["carrick-go", "granit-parser", "data-encoding"]),
];

/// Which version of Kubernetes k8s-openapi is built for.
const KUBERNETES: (&str, &str) = ("K8S_OPENAPI_ENABLED_VERSION", "1.34");

/// The version of cargo-semver-checks.
const SEMVER_CHECKS: &str = "0.51.0";

/// A published crate.
struct Crate {
    name: String,
    version: String,
    folder: PathBuf,
    rust: String,
    features: Vec<String>,
}

/// Checks all of them.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut published = published()?;
    published.retain(|krate| args.names.is_empty() || args.names.iter().any(|part| krate.name.contains(part)));
    ensure!(!published.is_empty(), "no published crate is called like {:?}", args.names);
    let stranger = Stranger::new()?;
    for krate in &published {
        for features in sets(&krate.features) {
            println!("{} [{}]", krate.name, features.join(" "));
            stranger.depends(krate, &features)?;
            tools::run(&mut stranger.cargo(&["check", "--quiet"])).with_context(|| krate.name.clone())?;
        }
    }
    for (name, features, absent) in ABSENT {
        let Some(krate) = published.iter().find(|krate| krate.name == name) else { continue };
        let features: Vec<&str> = features.to_vec();
        stranger.depends(krate, &features)?;
        let tree = stranger.tree()?;
        let found: Vec<&&str> = absent.iter().filter(|absent| tree.iter().any(|package| package == *absent)).collect();
        ensure!(found.is_empty(), "{name} with the features {features:?} brings {found:?}");
        println!("{name} [{}] goes without {}", features.join(" "), absent.join(", "));
    }
    if published.iter().any(|krate| krate.name == "carrick-multicluster") {
        page::build()?;
    }
    for krate in &published {
        let all: Vec<&str> = krate.features.iter().map(String::as_str).collect();
        stranger.depends(krate, &all)?;
        stranger.oldest(krate)?;
    }
    as_published(&published)?;
    compatible(&published)
}

/// The crates of the workspace that do not say `publish = false`.
fn published() -> anyhow::Result<Vec<Crate>> {
    let output = tools::cargo().args(["metadata", "--no-deps", "--format-version", "1"]).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut published = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten().filter(|package| package["publish"].is_null())
    {
        let features = package["features"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        published.push(Crate {
            name: text(&package["name"]),
            version: text(&package["version"]),
            folder: Path::new(&text(&package["manifest_path"])).parent().unwrap_or(Path::new(".")).to_owned(),
            rust: text(&package["rust_version"]),
            features: features.filter(|name| name != "default").collect(),
        });
    }
    Ok(published)
}

/// All sets of some features.
fn sets(features: &[String]) -> Vec<Vec<&str>> {
    let mut sets = vec![Vec::new()];
    for feature in features {
        let with: Vec<Vec<&str>> =
            sets.iter().map(|set| set.iter().copied().chain([feature.as_str()]).collect()).collect();
        sets.extend(with);
    }
    sets
}

/// A crate outside of the workspace that depends on one of ours and on nothing else.
struct Stranger {
    folder: PathBuf,
}

impl Stranger {
    fn new() -> anyhow::Result<Self> {
        let folder = tools::target().join("stranger");
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("src/lib.rs"), "")?;
        // The versions that we have tried; cargo takes out what is not needed.
        fs::copy(tools::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
        Ok(Self { folder })
    }

    /// Makes it depend on a crate with exactly these features.
    fn depends(&self, krate: &Crate, features: &[&str]) -> anyhow::Result<()> {
        // Lists and texts look the same in Rust's debug output and in TOML.
        let dependency = format!(
            "{} = {{ path = {:?}, default-features = false, features = {features:?} }}",
            krate.name,
            krate.folder.display().to_string()
        );
        let manifest = format!(
            "[package]\nname = \"stranger\"\nedition = \"2024\"\npublish = false\n\n[dependencies]\n{dependency}\n\n[workspace]\n"
        );
        Ok(fs::write(self.folder.join("Cargo.toml"), manifest)?)
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = tools::cargo();
        self.at_home(&mut cargo);
        cargo.args(arguments);
        cargo
    }

    /// Where the stranger builds, and for which version of Kubernetes, which kube leaves to whoever builds a program.
    fn at_home(&self, command: &mut Command) {
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", tools::target()).env(KUBERNETES.0, KUBERNETES.1);
    }

    /// The names of all packages that are compiled.
    fn tree(&self) -> anyhow::Result<Vec<String>> {
        let output = self.cargo(&["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}"]).output()?;
        ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect())
    }

    /// Builds it with the oldest Rust that the crate claims to build with.
    fn oldest(&self, krate: &Crate) -> anyhow::Result<()> {
        ensure!(!krate.rust.is_empty(), "{} states no rust-version", krate.name);
        let toolchain =
            if krate.rust.matches('.').count() == 1 { format!("{}.0", krate.rust) } else { krate.rust.clone() };
        println!("{} with Rust {toolchain}", krate.name);
        let mut rustup = Command::new("rustup");
        tools::run(
            rustup
                .args(["toolchain", "install", &toolchain, "--profile", "minimal", "--no-self-update"])
                .env("RUSTUP_LOG", "error"),
        )
        .with_context(|| format!("Rust {toolchain} is needed to check {}", krate.name))?;
        let mut old = tools::without_cargo(Command::new("rustup"));
        old.args(["run", &toolchain, "cargo", "check", "--quiet"]).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        self.at_home(&mut old);
        tools::run(&mut old).with_context(|| format!("{} does not build with Rust {toolchain}", krate.name))
    }
}

/// Packs all of them, unpacks them elsewhere and builds what is there, as cargo does before it publishes.
fn as_published(published: &[Crate]) -> anyhow::Result<()> {
    let folder = tools::target().join("published");
    forget_ours(&folder)?;
    let mut cargo = tools::cargo();
    cargo.env("CARGO_TARGET_DIR", &folder);
    // Whoever tries this before a commit means what is there now.
    cargo.args(["publish", "--dry-run", "--quiet", "--allow-dirty", "--locked"]);
    cargo.env(KUBERNETES.0, KUBERNETES.1);
    for krate in published {
        cargo.args(["--package", &krate.name]);
    }
    tools::run(&mut cargo).context("a crate cannot be published as it is")?;
    println!("{} crates can be published", published.len());
    Ok(())
}

/// Removes what an earlier run has built of our crates: cargo takes a published version for one that never changes, and would build the next crate with
/// the one of that time.
fn forget_ours(folder: &Path) -> anyhow::Result<()> {
    for part in ["package", "debug/.fingerprint", "debug/deps", "debug/build"] {
        let Ok(entries) = fs::read_dir(folder.join(part)) else { continue };
        for entry in entries {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
            let name = name.to_string_lossy().into_owned();
            if part != "package" && !name.starts_with("carrick") && !name.starts_with("libcarrick") {
                continue;
            }
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Whether users of the last release can take this one.
fn compatible(published: &[Crate]) -> anyhow::Result<()> {
    let output = Command::new("git").current_dir(tools::root()).args(["describe", "--tags", "--abbrev=0"]).output()?;
    if !output.status.success() {
        println!("SKIPPED: cargo-semver-checks has nothing to compare with: there is no tag yet");
        return Ok(());
    }
    let tag = String::from_utf8(output.stdout)?.trim().to_owned();
    if !tools::cargo().args(["semver-checks", "--version"]).output()?.status.success() {
        tools::run(tools::cargo().args([
            "install",
            "cargo-semver-checks",
            "--version",
            SEMVER_CHECKS,
            "--locked",
            "--quiet",
        ]))?;
    }
    let mut cargo = tools::cargo();
    cargo.args(["semver-checks", "--baseline-rev", &tag]);
    for krate in published {
        println!("{} {} against {tag}", krate.name, krate.version);
        cargo.args(["--package", &krate.name]);
    }
    tools::run(&mut cargo).with_context(|| format!("users of {tag} cannot take this version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_features_is_tried_once() {
        let features = ["a", "b", "c"].map(str::to_owned);
        let mut all: Vec<String> = sets(&features).iter().map(|set| set.concat()).collect();
        all.sort();
        assert_eq!(all, ["", "a", "ab", "abc", "ac", "b", "bc", "c"]);
    }

    #[test]
    fn the_libraries_are_published_and_the_agents_are_not() {
        let names: Vec<String> = published().expect("cargo metadata").into_iter().map(|krate| krate.name).collect();
        assert!(names.contains(&"carrick-multicluster".to_owned()), "{names:?}");
        assert!(!names.contains(&"carrick-syncagent".to_owned()), "{names:?}");
    }
}
