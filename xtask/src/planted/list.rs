//! The list of bugs.
//!
//! ```text
//! === delete-without-uid
//! crates/sync/src/executor.rs
//! A copy that somebody made anew in between is deleted in place of its predecessor.
//! after: fn delete
//! --- old
//! uid: Some(uid)
//! +++ new
//! uid: None
//! ```
//!
//! The old text is an expression, or statements that end with `;` and bind no names; white space may differ. It must be there only once,
//! or only once behind the text after `after:`. A bug that cannot make a difference has a line `equivalent: why`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};

/// One edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bug {
    /// Its name, unique.
    pub name: String,
    /// The file, below the root of the repository.
    pub file: String,
    /// What goes wrong with it.
    pub why: String,
    /// The old text comes behind this one.
    pub after: Option<String>,
    /// Why it makes no difference.
    pub equivalent: Option<String>,
    /// What is replaced.
    pub old: String,
    /// By what.
    pub new: String,
}

/// All bugs of a folder.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Bug>> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    let mut bugs = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        bugs.extend(parse(&text).with_context(|| file.display().to_string())?);
    }
    let mut names = BTreeSet::new();
    for bug in &bugs {
        ensure!(names.insert(&bug.name), "two bugs are called {}", bug.name);
    }
    Ok(bugs)
}

fn parse(text: &str) -> anyhow::Result<Vec<Bug>> {
    let mut bugs = Vec::new();
    // What comes before the first one is for people.
    for part in format!("\n{text}").split("\n=== ").skip(1) {
        let name = part.lines().next().unwrap_or_default().trim().to_owned();
        bugs.push(one(&name, part).with_context(|| name.clone())?);
    }
    Ok(bugs)
}

fn one(name: &str, part: &str) -> anyhow::Result<Bug> {
    let (head, edit) = part.split_once("\n--- old\n").context("there is no line `--- old`")?;
    let (old, new) = format!("{edit}\n")
        .split_once("\n+++ new\n")
        .map(|(old, new)| (old.trim().to_owned(), new.trim().to_owned()))
        .context("there is no line `+++ new`")?;
    let (mut after, mut equivalent, mut words) = (None, None, Vec::new());
    let mut lines = head.lines().skip(1);
    let file = lines.next().context("the file is missing")?.trim().to_owned();
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(text) = line.strip_prefix("after: ") {
            after = Some(text.to_owned());
        } else if let Some(text) = line.strip_prefix("equivalent: ") {
            equivalent = Some(text.to_owned());
        } else {
            words.push(line);
        }
    }
    ensure!(!old.is_empty(), "nothing is replaced");
    let torn = ["&&", "||", "|", "."].into_iter().find(|operator| old.starts_with(operator));
    ensure!(
        torn.is_none(),
        "{} is no expression of its own: quote what it belongs to, or only what follows it",
        torn.unwrap_or_default()
    );
    if words.is_empty() {
        bail!("it does not say what goes wrong");
    }
    Ok(Bug { name: name.to_owned(), file, why: words.join(" "), after, equivalent, old, new })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read() {
        let text = "For people.\n\n=== one\na.rs\nBreaks\nthings.\nafter: fn x\n--- old\na\n  + b\n+++ new\na\n\n\
                    === two\nb.rs\nBreaks nothing.\nequivalent: a is b\n--- old\nc();\n+++ new\n";
        let bugs = parse(text).unwrap();
        assert_eq!((bugs[0].name.as_str(), bugs[0].why.as_str()), ("one", "Breaks things."));
        assert_eq!((bugs[0].old.as_str(), bugs[0].new.as_str()), ("a\n  + b", "a"));
        assert_eq!((bugs[0].after.as_deref(), bugs[1].new.as_str()), (Some("fn x"), ""));
        assert_eq!(bugs[1].equivalent.as_deref(), Some("a is b"));
        assert!(parse("=== three\nc.rs\n--- old\nx\n+++ new\ny").is_err());
        assert!(parse("=== four\nc.rs\nBreaks.\n--- old\n&& x\n+++ new\n").is_err());
    }
}
