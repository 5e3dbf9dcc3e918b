//! The first controller of the book, built as whoever pastes the page builds it: from an empty folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::tools;

/// The page.
const PAGE: &str = "docs/library.md";
/// Where the page has the clone of this repository.
const CLONE: &str = "../carrick/";

/// What the page says.
#[derive(Debug, PartialEq, Eq)]
struct Pasted {
    /// The `Cargo.toml`, with the clone where it is here.
    manifest: String,
    /// The program that is copied.
    program: PathBuf,
}

/// Builds it.
pub fn build() -> anyhow::Result<()> {
    let (root, folder) = (tools::root(), tools::target().join("pasted"));
    let page = fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let pasted = read(&page, &root)?;
    fs::create_dir_all(folder.join("src"))?;
    // An empty folder of a reader is in no workspace.
    fs::write(folder.join("Cargo.toml"), format!("{}\n[workspace]\n", pasted.manifest))?;
    fs::copy(&pasted.program, folder.join("src/main.rs")).with_context(|| pasted.program.display().to_string())?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let mut cargo = tools::cargo();
    cargo.current_dir(&folder).env("CARGO_TARGET_DIR", tools::target()).args(["check", "--quiet"]);
    tools::run(&mut cargo).with_context(|| format!("what {PAGE} says does not build"))?;
    println!("{PAGE} builds as it is pasted");
    Ok(())
}

/// Reads the page. Pure.
fn read(page: &str, root: &Path) -> anyhow::Result<Pasted> {
    let block = page.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```"));
    let (manifest, _) = block.with_context(|| format!("{PAGE} has no Cargo.toml"))?;
    ensure!(manifest.contains(CLONE), "the Cargo.toml of {PAGE} does not lead to {CLONE}");
    let here = format!("{}/", root.display());
    let copied = page.lines().find_map(|line| line.strip_prefix("$ cp ")?.strip_suffix(" src/main.rs"));
    let copied =
        copied.and_then(|from| from.strip_prefix(CLONE)).with_context(|| format!("{PAGE} copies no program"))?;
    Ok(Pasted { manifest: manifest.replace(CLONE, &here), program: root.join(copied) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_which_versions_and_which_program_and_both_are_ours() {
        let root = tools::root();
        let pasted = read(&fs::read_to_string(root.join(PAGE)).unwrap(), &root).unwrap();
        assert!(pasted.program.is_file(), "{pasted:?}");
        let ours = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        for name in ["kube", "k8s-openapi"] {
            let version = |text: &str| {
                let line = text.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap().to_owned();
                line.split('"').nth(1).unwrap().to_owned()
            };
            let (page, ours) = (version(&pasted.manifest), version(&ours));
            assert!(ours.starts_with(&page), "{name}: {page} on the page, {ours} here");
        }
        assert!(read("nothing", &root).is_err());
    }
}
