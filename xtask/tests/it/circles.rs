//! No two files of a crate import each other, not even by way of others: what many need lies at the bottom.
//!
//! Read from the text: `use` trees, paths that begin with `crate`, `super` or `self`, and paths into modules that the file declares.
//! Tests may look wherever they like.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The crates that are free of circles. A crate that has become so is added, and none is taken off.
const CRATES: [&str; 12] = [
    "bind-api",
    "bind-backend",
    "cel",
    "client",
    "go",
    "json",
    "kubectl-bind",
    "plane",
    "process",
    "schema",
    "sync",
    "template",
];

/// The names of the modules around a module and its own, without the crate.
type ModulePath = Vec<String>;
type Files = BTreeMap<ModulePath, String>;
type Edges = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

#[test]
fn no_two_files_import_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let found: Vec<String> = CRATES.iter().flat_map(|name| circles(name, &crates.join(name).join("src"))).collect();
    assert!(found.is_empty(), "these files import each other:\n{}", found.join("\n"));
}

#[test]
fn imports_are_found_in_every_form() {
    let files: Files = ["a", "b", "b/c", "d", "e"].map(|name| (module(name), String::new())).into();
    let text = "mod c;\npub(crate) use c::X;\nuse crate::{a::{self, Y}, d};\n// crate::e\nfn f() { super::a::z(); }";
    assert_eq!(imports(&module("b"), text, &files), ["a", "b/c", "d"].map(module).into());
    assert_eq!(imports(&module("b"), "mod c;\nfn f() { c::w(super::e::V) }", &files), ["b/c", "e"].map(module).into());
    assert_eq!(imports(&module("b/c"), "use super::super::a; use super::X;", &files), ["a", "b"].map(module).into());
    let tested = "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}";
    assert_eq!(production(tested), "fn f() {}\n");
    assert_eq!(test_modules("mod a;\n#[cfg(test)]\nmod b;\n").collect::<Vec<_>>(), ["b"]);
}

#[test]
fn circles_are_found_however_long_they_are() {
    let edges = [("a", vec!["d"]), ("d", vec!["b/c"]), ("b/c", vec!["a"]), ("b", vec!["a"]), ("e", vec![])];
    let edges: Edges = edges.map(|(from, to)| (module(from), to.into_iter().map(module).collect())).into();
    assert_eq!(in_circles(&edges), ["a", "b/c", "d"].map(module).into());
}

fn module(text: &str) -> ModulePath {
    text.split('/').map(str::to_owned).collect()
}

/// The files of a crate that are part of a circle, each with what it imports of them.
fn circles(name: &str, source: &Path) -> Vec<String> {
    let mut files = Files::new();
    collect(source, &[], &mut files);
    let tests: Vec<ModulePath> = files
        .iter()
        .flat_map(|(module, text)| {
            let around = if is_root(module) { &[][..] } else { module };
            test_modules(text).map(move |test| [around, &[test.to_owned()]].concat())
        })
        .collect();
    assert!(!files.is_empty(), "{name} has no files");
    // The root gathers everything.
    files.retain(|module, _| !is_root(module) && !tests.iter().any(|test| module.starts_with(test)));
    let edges: Edges =
        files.iter().map(|(module, text)| (module.clone(), imports(module, &production(text), &files))).collect();
    let members = in_circles(&edges);
    let told = members.iter().map(|module| {
        let others: Vec<String> = edges[module].intersection(&members).map(|other| other.join("/")).collect();
        format!("{name}: {} -> {}", module.join("/"), others.join(", "))
    });
    told.collect()
}

fn is_root(module: &[String]) -> bool {
    matches!(module, [only] if only == "lib" || only == "main")
}

/// Reads all files below a folder.
fn collect(folder: &Path, around: &[String], files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap().path();
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = [around, &[name]].concat();
        if entry.is_dir() {
            collect(&entry, &module, files);
        } else if entry.extension().is_some_and(|kind| kind == "rs") {
            files.insert(module, fs::read_to_string(entry).unwrap());
        }
    }
}

/// The modules in files of their own that only tests have.
fn test_modules(text: &str) -> impl Iterator<Item = &str> {
    let declared = text.split("#[cfg(test)]").skip(1).filter_map(|rest| rest.trim_start().strip_prefix("mod "));
    declared.filter_map(|rest| rest.split_once(';')).map(|(name, _)| name).filter(|name| is_name(name))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// What is not compiled for tests only: everything before the tests at the end, without comments.
fn production(text: &str) -> String {
    let is_block = |start: usize| {
        let rest = text[start..].trim_start_matches("#[cfg(test)]").trim_start();
        rest.strip_prefix("mod ").and_then(|rest| rest.split_once(' ')).is_some_and(|(_, rest)| rest.starts_with('{'))
    };
    let end = text.match_indices("#[cfg(test)]").map(|(start, _)| start).find(|start| is_block(*start));
    let lines = text[..end.unwrap_or(text.len())].lines();
    lines.map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// The files that a file imports from.
fn imports(module: &[String], text: &str, files: &Files) -> BTreeSet<ModulePath> {
    let text: String = text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect();
    let children: Vec<&str> = text
        .split("mod ")
        .skip(1)
        .filter_map(|rest| rest.split_once(';'))
        .map(|(name, _)| name)
        .filter(|name| is_name(name))
        .collect();
    let mut found = BTreeSet::new();
    for place in paths(&text) {
        let names: Vec<&str> = place.split("::").map(str::trim).collect();
        let up = names.iter().take_while(|name| **name == "super").count();
        let base: &[String] = match names[0] {
            "crate" => &[],
            "super" => &module[..module.len().saturating_sub(up)],
            "self" => module,
            first if children.contains(&first) => module,
            _ => continue,
        };
        let below = names.iter().skip(if matches!(names[0], "crate" | "self") { 1 } else { up });
        let whole: ModulePath = base.iter().cloned().chain(below.map(|name| (*name).to_owned())).collect();
        // The longest part of the path that is a file; what follows is something in it.
        let file = (1..=whole.len()).rev().map(|length| &whole[..length]).find(|part| files.contains_key(*part));
        found.extend(file.filter(|file| *file != module).map(<[String]>::to_vec));
    }
    found
}

/// All paths of at least two parts, with the trees of `use` spread out.
fn paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("::") {
        let start = rest[..at].rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |before| before + 1);
        let end = spread(&rest[start..], "", &mut found);
        rest = &rest[start + end.max(at + 2 - start)..];
    }
    found
}

/// Reads one path, or a tree of paths, from the beginning of a text; returns how long it is.
fn spread(text: &str, prefix: &str, found: &mut Vec<String>) -> usize {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let length = text.find(|c: char| !plain(c)).unwrap_or(text.len());
    let head = format!("{prefix}{}", &text[..length]);
    if !(head.ends_with("::") && text[length..].starts_with('{')) {
        found.push(head.trim_end_matches(':').to_owned());
        return length;
    }
    let mut at = length + 1;
    while at < text.len() && !text[at..].starts_with('}') {
        let begin = text[at..].find(|c: char| plain(c) || c == '}').map_or(text.len(), |offset| at + offset);
        if text[begin..].starts_with('}') {
            at = begin;
            break;
        }
        at = begin + spread(&text[begin..], &head, found).max(1);
    }
    (at + 1).min(text.len())
}

/// All files from which a way leads back to them.
fn in_circles(edges: &Edges) -> BTreeSet<ModulePath> {
    let reaches_itself = |start: &&ModulePath| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&ModulePath> = edges[*start].iter().collect();
        while let Some(module) = next.pop() {
            if module == *start {
                return true;
            }
            if seen.insert(module) {
                next.extend(edges.get(module).into_iter().flatten());
            }
        }
        false
    };
    edges.keys().filter(reaches_itself).cloned().collect()
}
