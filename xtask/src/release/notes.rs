//! The notes of a release: what CHANGELOG.md says about its version, and the checksums of what is shipped.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// What the changelog says about a version.
pub fn of(changelog: &str, version: &str) -> anyhow::Result<String> {
    let Some(section) = section(changelog, version) else {
        bail!("CHANGELOG.md has no section for {version}: move what is under Unreleased below `## {version} (date)`");
    };
    Ok(format!("# Carrick {version}\n\n{section}\n"))
}

/// The checksums as a part of the notes.
pub fn table(files: &[PathBuf]) -> anyhow::Result<String> {
    Ok(format!("\n## Checksums (SHA-256)\n\n```text\n{}```\n", checksums(files)?))
}

/// Lines for `sha256sum --check`.
pub fn checksums(files: &[PathBuf]) -> anyhow::Result<String> {
    let mut lines = String::new();
    for file in files {
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(lines, "{}  {name}", HEXLOWER.encode(&Sha256::digest(&bytes)));
    }
    Ok(lines)
}

/// What stands between the heading of this version and the next heading of that level.
fn section<'a>(changelog: &'a str, version: &str) -> Option<&'a str> {
    let body = changelog.split("\n## ").skip(1).find(|part| {
        let heading = part.lines().next().unwrap_or_default();
        heading.split_whitespace().next() == Some(version)
    })?;
    Some(body.split_once('\n').map_or("", |(_, rest)| rest).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## Unreleased\n\n- later\n\n## 0.1.0 (2026-11-16)\n\n- first\n\n### Fixed\n\n- a bug\n\n## 0.0.9\n\n- old\n";

    #[test]
    fn notes_are_the_section_of_the_version() {
        assert_eq!(section(CHANGELOG, "0.1.0"), Some("- first\n\n### Fixed\n\n- a bug"));
        assert_eq!(section(CHANGELOG, "0.0.9"), Some("- old"));
        assert_eq!(of(CHANGELOG, "0.0.9").unwrap(), "# Carrick 0.0.9\n\n- old\n");
    }

    #[test]
    fn a_version_that_is_not_in_the_changelog_is_an_error() {
        let error = of(CHANGELOG, "0.2.0").unwrap_err().to_string();
        assert!(error.contains("no section for 0.2.0"), "{error}");
    }

    #[test]
    fn every_file_has_its_checksum() {
        let file = std::env::temp_dir().join(format!("carrick-notes-{}", std::process::id()));
        fs::write(&file, "abc").unwrap();
        let table = table(std::slice::from_ref(&file)).unwrap();
        fs::remove_file(&file).unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  carrick-notes-";
        assert!(table.contains(expected), "{table}");
    }
}
