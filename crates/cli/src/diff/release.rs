//! `--against-release`: the definitions in a git repository, now and at its last release.
//!
//! ```text
//!  tags before this commit ─▶ highest version ─┬─▶ git grep, git show ─▶ definitions before
//!  working tree ───────────────────────────────┴─▶ git grep, files ────▶ definitions after
//! ```

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use carrick_schema::evolution::Definition;

use super::documents;
use crate::ui::print_error;

/// Finds files that may hold definitions.
const KINDS: &str = "kind\"?: *\"?(CustomResourceDefinition|APIResourceSchema)";

/// The release that is compared with, its definitions, and those of the working tree.
pub fn read(given: &str, paths: &[String]) -> anyhow::Result<(String, Vec<Definition>, Vec<Definition>)> {
    let name = if given.is_empty() { last_release()? } else { given.to_owned() };
    let commit = commit(&name)?.with_context(|| {
        let last = last_release().map(|last| format!("the last release here is {last}; ")).unwrap_or_default();
        format!(
            "git knows no tag or commit {name}; {last}a clone without tags gets them by git fetch --tags --unshallow"
        )
    })?;
    let before = definitions(&files(Some(&commit), paths)?, paths, |file| {
        git(&["show", &format!("{commit}:./{file}")])?.with_context(|| format!("git has no {file} at {name}"))
    })?;
    let after = definitions(&files(None, paths)?, paths, |file| Ok(std::fs::read(file)?))?;
    let place = if paths.is_empty() { "the current folder".to_owned() } else { paths.join(" ") };
    ensure!(
        !before.is_empty() || !after.is_empty(),
        "{place} has no CustomResourceDefinition and no APIResourceSchema, neither now nor at {name}"
    );
    if before.is_empty() {
        print_error(&format!("# {place} had no definitions at {name}: what is new harms nobody\n"));
    }
    Ok((name, before, after))
}

/// The commit with a name, if there is one.
fn commit(name: &str) -> anyhow::Result<Option<String>> {
    let found = git(&["rev-parse", "--quiet", "--verify", "--end-of-options", &format!("{name}^{{commit}}")])?;
    Ok(found.map(|commit| text(&commit).trim().to_owned()))
}

/// The highest version among the tags before this commit.
fn last_release() -> anyhow::Result<String> {
    ensure!(
        commit("HEAD")?.is_some(),
        "this repository has no commit yet, so nothing was released; carrick diff OLD NEW compares files"
    );
    // A commit that is a release itself is compared with the one before.
    let tags = git(&["tag", "--merged", "HEAD", "--no-contains", "HEAD"])?.unwrap_or_default();
    highest(text(&tags).lines()).map(str::to_owned).context(
        "no tag such as v1.2.0 comes before this commit; name what to compare with, --against-release=COMMIT, or get the tags \
         of a clone without them: git fetch --tags --unshallow",
    )
}

/// The highest of those that are versions; candidates of a release are none. Pure.
fn highest<'a>(tags: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    tags.filter_map(|tag| Some((version(tag)?, tag))).max().map(|(_, tag)| tag)
}

fn version(tag: &str) -> Option<Vec<u64>> {
    // Repositories of several modules have tags such as api/v1.2.0.
    let name = tag.rsplit('/').next().unwrap_or(tag);
    let numbers: Option<Vec<u64>> =
        name.strip_prefix('v').unwrap_or(name).split('.').map(|part| part.parse().ok()).collect();
    numbers.filter(|numbers| (2..=3).contains(&numbers.len()))
}

/// The files with definitions below some paths, at a commit or in the working tree.
fn files(commit: Option<&str>, paths: &[String]) -> anyhow::Result<Vec<String>> {
    let mut arguments = vec!["grep", "--files-with-matches", "--null", "--extended-regexp", "-I", "-e", KINDS];
    arguments.push(commit.unwrap_or("--untracked"));
    arguments.push("--");
    let all = [".".to_owned()];
    let paths = if paths.is_empty() { &all } else { paths };
    arguments.extend(paths.iter().map(String::as_str));
    let found = git(&arguments)?.unwrap_or_default();
    let found = text(&found);
    let names = found.split('\0').filter(|name| !name.is_empty());
    let names = names.map(|name| commit.and_then(|it| name.strip_prefix(it)?.strip_prefix(':')).unwrap_or(name));
    let readable = |name: &&str| [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
    Ok(names.filter(readable).map(str::to_owned).collect())
}

/// The definitions in files. Of two with one name the first one counts: the same CRD is often in a chart as well.
fn definitions(
    files: &[String],
    paths: &[String],
    read: impl Fn(&str) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Vec<Definition>> {
    let (mut known, mut all) = (BTreeSet::new(), Vec::new());
    for file in files {
        let found = match documents::parse(&read(file).with_context(|| format!("cannot read {file}"))?) {
            Ok(found) => found,
            // Folders have templates of charts, too, which are no YAML.
            Err(error) if !paths.contains(file) => {
                print_error(&format!("# left out: {file}: {error:#}\n"));
                continue;
            }
            Err(error) => return Err(error.context(file.clone())),
        };
        all.extend(found.into_iter().filter(|one| known.insert(one.resource())));
    }
    Ok(all)
}

/// What git prints; `None` if it ends with 1, which is how it says that nothing was found.
fn git(arguments: &[&str]) -> anyhow::Result<Option<Vec<u8>>> {
    let ended = Command::new("git").args(arguments).output().context("cannot run git")?;
    match ended.status.code() {
        Some(0) => Ok(Some(ended.stdout)),
        Some(1) => Ok(None),
        _ => {
            let problem = text(&ended.stderr);
            let outside = problem.contains("not a git repository");
            let way_out = if outside { "; carrick diff OLD NEW compares files without git" } else { "" };
            bail!("git {}: {}{way_out}", arguments.first().unwrap_or(&""), problem.trim())
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_release_is_the_highest_version_and_no_candidate() {
        let tags = ["v1.9.0", "v1.10.0-rc.1", "v1.10.0", "helm-9.0.0", "v1.2", "nightly"];
        assert_eq!(highest(tags.into_iter()), Some("v1.10.0"));
        assert_eq!(highest(["api/v0.2.0", "0.1.0"].into_iter()), Some("api/v0.2.0"));
        assert_eq!(highest(["v1.10.0-rc.1", "main", "v3"].into_iter()), None);
    }
}
