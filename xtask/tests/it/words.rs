//! Words that must not come back: in names of files and types, and in what operators read. docs/glossary.md has those that are used instead.
//!
//! Read from the text of `crates/*/src`, without tests and comments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Names of files and parts of names of types that say nothing to somebody who has not written them.
const NAMES: [&str; 12] =
    ["pump", "bell", "crowd", "crowded", "places", "others", "reach", "uses", "hop", "hops", "ends", "told"];

/// A type may have these in its name: `Reach` and `Uses` are left from before, and none is added.
const LEFT_TYPES: [&str; 3] = ["Reach", "RelatedUses", "SecretUses"];

/// What logs, errors and conditions do not say. Data is reported, received and reconciled.
const PHRASES: [&str; 9] =
    ["told", "heard", "hears", "looked at", "looks at", "laid out anew", "lay out anew", "pump", "bell"];

/// Names of variables, functions and fields that stand for data that is reported or received.
const IDENTIFIERS: [&str; 4] = ["told", "heard", "hear", "tell"];

/// Crates in which some of those are left from before.
const LEFT_CRATES: [&str; 6] = ["syncagent", "konnector", "cli", "bind-api", "bind-backend", "kubectl-bind"];

/// Names that stood for several things in one crate.
const ONCE_PER_CRATE: [&str; 5] = ["Pace", "Verdict", "Outcome", "Session", "Told"];

#[test]
fn no_file_or_type_has_a_name_that_only_its_author_understands() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        let stem = file.file_stem().unwrap().to_str().unwrap();
        if NAMES.contains(&stem) {
            found.push(format!("{}: the name of the file", file.display()));
        }
        let types = types(&text).into_iter().filter(|name| !LEFT_TYPES.contains(&name.as_str()));
        let bad = types.filter(|name| words_of(name).iter().any(|word| NAMES.contains(&word.as_str())));
        found.extend(bad.map(|name| format!("{}: type {name}", file.display())));
    }
    assert!(found.is_empty(), "find a plain word for these, see docs/glossary.md:\n{}", found.join("\n"));
}

#[test]
fn no_type_name_stands_for_two_things_in_one_crate() {
    let mut seen: BTreeMap<(String, String), BTreeSet<PathBuf>> = BTreeMap::new();
    for (file, text) in sources() {
        let name = file.components().next().unwrap().as_os_str().to_str().unwrap().to_owned();
        for kind in types(&text).into_iter().filter(|kind| ONCE_PER_CRATE.contains(&kind.as_str())) {
            seen.entry((name.clone(), kind)).or_default().insert(file.clone());
        }
    }
    seen.retain(|_, files| files.len() > 1);
    assert!(seen.is_empty(), "rename all but one of each: {seen:#?}");
}

#[test]
fn what_operators_read_is_plain_english() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        for sentence in literals(&text).into_iter().filter(|literal| literal.contains(' ')) {
            let plain = format!(" {} ", without_placeholders(&sentence).to_lowercase().replace(is_mark, " "));
            let bad = PHRASES.iter().filter(|phrase| plain.contains(&format!(" {phrase} ")));
            found.extend(bad.map(|phrase| format!("{}: {phrase:?} in {sentence:?}", file.display())));
        }
    }
    assert!(found.is_empty(), "say it as an English-speaking operator would:\n{}", found.join("\n"));
}

#[test]
fn data_is_reported_and_received_in_code_too() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        let name = file.components().next().unwrap().as_os_str().to_str().unwrap().to_owned();
        if LEFT_CRATES.contains(&name.as_str()) {
            continue;
        }
        let literals: Vec<String> = literals(&text).into_iter().filter(|literal| literal.contains(' ')).collect();
        let code = literals.iter().fold(text, |text, literal| text.replace(literal, ""));
        let code = code.lines().filter_map(|line| line.split(" //").next());
        let words: BTreeSet<&str> =
            code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')).collect();
        let bad = IDENTIFIERS.iter().filter(|word| words.contains(*word));
        found.extend(bad.map(|word| format!("{}: {word}", file.display())));
    }
    assert!(found.is_empty(), "name what it is, see docs/glossary.md:\n{}", found.join("\n"));
}

#[test]
fn names_and_sentences_are_found_in_every_form() {
    let text = "pub(super) struct ToldBinding<T> {}\nenum Hop {}\n// struct Bell\ntype Age = [String; 3];\nfn f() { g(\"it \\\"was\\\" told\", 'x'); }\n#[cfg(test)]\nmod tests {\n    struct Pump;\n}";
    let text = production(text);
    assert_eq!(types(&text), ["ToldBinding", "Hop", "Age"]);
    assert_eq!(words_of("WatchOptions"), ["watch", "options"]);
    assert_eq!(literals(&text), ["it \\\"was\\\" told"]);
    assert_eq!(without_placeholders("{told}: {at:?} told"), ":  told");
}

fn is_mark(c: char) -> bool {
    !c.is_alphanumeric() && c != '\''
}

/// The text of all files of all crates, by their path from the folder of the crates.
fn sources() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut files = Vec::new();
    for name in fs::read_dir(&crates).unwrap() {
        collect(&name.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 500, "only {} files were found", files.len());
    let read = |file: PathBuf| {
        let text = production(&fs::read_to_string(&file).unwrap());
        (file.strip_prefix(&crates).unwrap().to_owned(), text)
    };
    files.into_iter().map(read).collect()
}

/// All files of a folder, without those of tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.unwrap().path();
        if entry.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry.extension().is_some_and(|kind| kind == "rs") {
            files.push(entry);
        }
    }
}

/// What is not for tests only, without comments that have a line of their own.
fn production(text: &str) -> String {
    let is_tests = |at: usize| {
        let rest = text[at..].trim_start_matches("#[cfg(test)]").trim_start();
        rest.strip_prefix("mod ").and_then(|rest| rest.split_once(' ')).is_some_and(|(_, rest)| rest.starts_with('{'))
    };
    let end = text.match_indices("#[cfg(test)]").map(|(at, _)| at).find(|at| is_tests(*at)).unwrap_or(text.len());
    text[..end].lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| line.to_owned() + "\n").collect()
}

/// The names of the types that a text defines.
fn types(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        let line = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or("", |(_, rest)| rest),
            Some(rest) => rest.trim_start(),
            None => line,
        };
        let defined = ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|word| line.strip_prefix(word));
        names.extend(defined.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()));
    }
    names
}

/// The words of a name in camel case, in small letters.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        match words.last_mut().filter(|_| !letter.is_uppercase()) {
            Some(word) => word.push(letter),
            None => words.push(letter.to_lowercase().collect()),
        }
    }
    words
}

/// The string literals of a text that do not go over several lines, unless they say so by a backslash.
fn literals(text: &str) -> Vec<String> {
    let (mut found, mut letters) = (Vec::new(), text.chars().peekable());
    while let Some(letter) = letters.next() {
        // A quote as a character is no beginning.
        if letter == '\'' && letters.next_if(|next| matches!(next, '"' | '\\')) == Some('\\') {
            letters.next();
        }
        if letter != '"' {
            continue;
        }
        let mut literal = Some(String::new());
        for letter in letters.by_ref() {
            let is_escaped = literal.as_ref().is_some_and(|it| it.ends_with('\\') && !it.ends_with("\\\\"));
            match letter {
                '"' if !is_escaped => break,
                '\n' if !is_escaped => {
                    literal = None;
                    break;
                }
                letter => literal.iter_mut().for_each(|literal| literal.push(letter)),
            }
        }
        found.extend(literal);
    }
    found
}

/// A text without the names of variables in braces.
fn without_placeholders(text: &str) -> String {
    let (mut plain, mut depth) = (String::new(), 0_u32);
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            letter if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    plain
}
