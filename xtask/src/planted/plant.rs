//! Putting all edits into a copy of the code at once, each behind a switch.
#![allow(clippy::format_push_string)] // a few lines of text, written once

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};

use super::list::Bug;

/// The crates whose code is edited. The first one, which the others know, gets the module with the switches.
const CRATES: [&str; 2] = ["crates/sync", "crates/syncagent"];
const MODULE: &str = r#"//! Switches of planted bugs.
#![allow(missing_docs)]
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a bug is switched on. Takes note that its place was reached.
pub fn on(bug: usize) -> bool {
    static NOW: OnceLock<Option<usize>> = OnceLock::new();
    static SEEN: OnceLock<Option<String>> = OnceLock::new();
    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
    if !REACHED[bug].swap(true, Ordering::Relaxed)
        && let Some(file) = SEEN.get_or_init(|| std::env::var("CARRICK_PLANTED_SEEN").ok())
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(file)
    {
        let _ = file.write_all(format!("{bug}\n").as_bytes());
    }
    *NOW.get_or_init(|| std::env::var("CARRICK_PLANTED").ok()?.parse().ok()) == Some(bug)
}
"#;

/// The files of a workspace that change when all bugs are planted, with their new content.
pub fn plant(root: &Path, bugs: &[Bug]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut changed = BTreeMap::new();
    let mut files: BTreeMap<&str, Vec<(usize, &Bug)>> = BTreeMap::new();
    for (number, bug) in bugs.iter().enumerate() {
        files.entry(&bug.file).or_default().push((number, bug));
    }
    for (file, bugs) in files {
        let path = root.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("{}: cannot read {file}", bugs[0].1.name))?;
        let mut edits = Vec::new();
        for (number, bug) in bugs {
            let (start, end) = find(&text, bug).with_context(|| format!("bug {} in {file}", bug.name))?;
            edits.push(Edit { start, end, number, new: &bug.new });
        }
        // The outer ones first, so that those within come behind.
        edits.sort_by_key(|edit| (edit.start, std::cmp::Reverse(edit.end)));
        changed.insert(file.to_owned(), edited(&text, 0, text.len(), &edits)?);
    }
    let core = CRATES[0];
    for of in CRATES {
        let line = if of == core { "pub mod planted;" } else { "pub use carrick_sync::planted;" };
        let library = format!("{of}/src/lib.rs");
        let text = fs::read_to_string(root.join(&library))?;
        changed.insert(library, format!("{text}\n{line}\n"));
    }
    changed.insert(format!("{core}/src/planted.rs"), MODULE.replace("COUNT", &bugs.len().max(1).to_string()));
    Ok(changed)
}

/// An edit at its place.
#[derive(Debug)]
struct Edit<'a> {
    start: usize,
    end: usize,
    number: usize,
    new: &'a str,
}

/// A part of a text with all edits within it. Edits may lie within each other, or on each other, but not across.
fn edited(text: &str, start: usize, end: usize, edits: &[Edit<'_>]) -> anyhow::Result<String> {
    let mut out = String::new();
    let (mut at, mut next) = (start, 0);
    while next < edits.len() {
        let outer = &edits[next];
        let same = edits[next..].iter().take_while(|edit| (edit.start, edit.end) == (outer.start, outer.end)).count();
        let (same, rest) = edits[next..].split_at(same);
        let within = rest.iter().take_while(|edit| edit.start < outer.end).count();
        if let Some(across) = rest[..within].iter().find(|edit| edit.end > outer.end) {
            bail!("the edits {} and {} overlap: {:?}", outer.number, across.number, &text[across.start..outer.end]);
        }
        out += &text[at..outer.start];
        let old = edited(text, outer.start, outer.end, &rest[..within])?;
        out += &switched(&old, same);
        at = outer.end;
        next += same.len() + within;
    }
    out += &text[at..end];
    Ok(out)
}

/// The old text and all that may stand in for it.
fn switched(old: &str, edits: &[Edit<'_>]) -> String {
    let is_block = ["if ", "for ", "while "].iter().any(|keyword| old.starts_with(keyword));
    let is_statement = |new: &str| new.is_empty() || new.ends_with(';');
    let is_statement = old.ends_with(';') || is_block && edits.iter().all(|edit| is_statement(edit.new));
    let mut out = String::new();
    for edit in edits {
        out += &format!("if crate::planted::on({}) {{ {} }} else ", edit.number, edit.new);
    }
    out += &format!("{{ {old} }}");
    // An expression keeps its place whatever is around it.
    if is_statement { out } else { format!("({out})") }
}

/// Where the old text of a bug is.
fn find(text: &str, bug: &Bug) -> anyhow::Result<(usize, usize)> {
    let from = match &bug.after {
        None => 0,
        Some(after) => text.find(after.as_str()).with_context(|| format!("{after:?} is not there"))?,
    };
    let mut found = text[from..]
        .char_indices()
        .filter_map(|(at, _)| matches(&text[from + at..], &bug.old).map(|end| (from + at, from + at + end)));
    let first = found.next().with_context(|| format!("this is not there: {}", bug.old))?;
    // Behind another text, the first is meant.
    ensure!(bug.after.is_some() || found.next().is_none(), "this is there more than once, say `after:`: {}", bug.old);
    Ok(first)
}

/// How long the text is that begins like this, where any white space is like any other.
fn matches(text: &str, wanted: &str) -> Option<usize> {
    let (mut rest, mut wanted) = (text, wanted);
    loop {
        let Some(next) = wanted.chars().next() else { return Some(text.len() - rest.len()) };
        if next.is_whitespace() {
            let trimmed = rest.trim_start();
            if trimmed.len() == rest.len() {
                return None;
            }
            (rest, wanted) = (trimmed, wanted.trim_start());
        } else {
            rest = rest.strip_prefix(next)?;
            wanted = &wanted[next.len_utf8()..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bug(old: &str, new: &str, after: Option<&str>) -> Bug {
        let text = str::to_owned;
        let after = after.map(text);
        Bug {
            name: text("n"),
            file: text("f"),
            why: text("w"),
            after,
            equivalent: None,
            old: text(old),
            new: text(new),
        }
    }

    fn planted(text: &str, bugs: &[Bug]) -> anyhow::Result<String> {
        let mut edits = Vec::new();
        for (number, bug) in bugs.iter().enumerate() {
            let (start, end) = find(text, bug)?;
            edits.push(Edit { start, end, number, new: &bug.new });
        }
        edits.sort_by_key(|edit| (edit.start, std::cmp::Reverse(edit.end)));
        edited(text, 0, text.len(), &edits)
    }

    #[test]
    fn every_edit_gets_a_switch_of_its_own() {
        let text = "fn f() { if a &&\n   b { g(); } }";
        let bugs = [bug("a && b", "a", None), bug("g();", "", None), bug("b", "!b", None), bug("a && b", "b", None)];
        let wanted = "fn f() { if (if crate::planted::on(0) { a } else if crate::planted::on(3) { b } else \
                      { a &&\n   (if crate::planted::on(2) { !b } else { b }) }) { if crate::planted::on(1) {  } else { g(); } } }";
        assert_eq!(planted(text, &bugs).unwrap(), wanted);
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        assert!(planted("x x", &[bug("x", "y", None)]).is_err());
        assert!(planted("x x", &[bug("z", "y", None)]).is_err());
        assert!(planted("abc", &[bug("ab", "", None), bug("bc", "", None)]).is_err());
        assert!(planted("x fn x", &[bug("x", "y", Some("fn"))]).unwrap().starts_with("x fn (if"));
    }
}
