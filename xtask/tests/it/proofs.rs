//! Pages that name the tests behind what they say: every test they name exists, where they say it is.

use std::fs;
use std::path::{Path, PathBuf};

/// Pages below `docs/`, and how many tests each names at least: a page that has lost its names proves nothing any more.
const PAGES: [(&str, usize); 3] = [("security.md", 30), ("kube-bind/security.md", 3), ("promises.md", 60)];

/// The tables of docs/security.md have a column for the test, and each line of it says something.
const SHOWN: &str = "security.md";

struct Source {
    path: PathBuf,
    text: String,
}

#[test]
fn every_test_that_a_page_names_exists() {
    let code = sources();
    let mut missing = Vec::new();
    for (page, least) in PAGES {
        let text = read(page);
        let names = names(&text);
        assert!(names.len() >= least, "{page} names only {names:?}");
        missing.extend(names.iter().filter(|name| !exists(name, &code)).map(|name| format!("{page}: {name}")));
    }
    assert!(missing.is_empty(), "these tests do not exist (any more, or under this name):\n{}", missing.join("\n"));
}

#[test]
fn every_line_about_who_may_do_what_names_its_test() {
    let text = read(SHOWN);
    let mut rows = 0;
    let is_shown = |table: &&str| table.lines().next().is_some_and(|head| head.ends_with("| shown by |"));
    for table in text.split("\n\n").filter(|block| block.starts_with('|')) {
        let head = table.lines().next().unwrap_or_default();
        assert!(is_shown(&table) || !head.contains(" cannot |") && !head.contains("| budget |"), "{SHOWN}: {head}");
    }
    for table in text.split("\n\n").filter(is_shown) {
        for row in table.lines().skip(2) {
            let shown = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
            let whole = shown.contains("`carrick-") || shown.contains("`charts/check`");
            // That they exist is a test of its own.
            assert!(whole || !names(shown).is_empty(), "{SHOWN}: which test shows it?\n{row}");
            rows += 1;
        }
    }
    assert!(rows > 40, "{SHOWN} has only {rows} such lines");
}

/// SECURITY.md says so of what is shipped: a number that does not fit ends one reconcile, and not the process.
#[test]
fn what_is_shipped_checks_arithmetic_and_survives_a_panic() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, dist) = manifest.split_once("[profile.dist]\n").expect("there is no profile dist");
    let dist = dist.split("\n[").next().unwrap_or_default();
    assert!(dist.lines().any(|line| line == "overflow-checks = true"), "{dist}");
    assert!(!manifest.lines().any(|line| line.starts_with("panic = ") || line == "overflow-checks = false"));
    let security = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    assert!(security.contains("`overflow-checks` in what is shipped"));
}

#[test]
fn names_of_tests_are_told_from_other_code_and_missed_when_they_are_gone() {
    let page = "`a::tests::it_holds` and `…::b`, a field `access_token`, `Kind`, `it_holds_for_all`, `it_<does>::<flow>`\n\
                ```sh\ncargo test `no_name_in_here`\n```\n`theme::` `a/b.rs`";
    let found = ["a::tests::it_holds", "…::b", "it_holds_for_all", "it_<does>::<flow>", "theme::"];
    assert_eq!(names(page), found);
    let source = |path: &str, text: &str| Source { path: path.into(), text: text.to_owned() };
    let code = [
        source("a.rs", "mod tests { fn it_holds() {} }"),
        source("c.rs", "fn b() {}\nlet name = \"quiet::nothing_is_written\"; format!(\"no_loss::by_{}\")"),
        source("theme/d.rs", ""),
    ];
    let is_there = ["a::tests::it_holds", "…::b", "c::b", "theme::", "quiet::nothing_is_written::<flow>"];
    assert!(is_there.iter().all(|name| exists(name, &code)));
    assert!(exists("no_loss::by_<somebody>", &code));
    let is_gone = ["a::tests::it_held", "a::b", "themes::", "quiet::nothing_is_writ", "noise::nothing_is_written"];
    assert!(is_gone.iter().all(|name| !exists(name, &code)));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join("docs").join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for folder in ["crates", "e2e", "xtask", "examples"] {
        collect(&root(), Path::new(folder), &mut found);
    }
    // This one names tests that do not exist.
    found.retain(|source| !source.path.ends_with("tests/it/proofs.rs"));
    assert!(found.len() > 500, "only {} files were found", found.len());
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap) {
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(Source { text: fs::read_to_string(entry.path()).unwrap(), path });
        }
    }
}

/// What a page names: paths with `::`, and words that are sentences. Fields have two words at most.
fn names(page: &str) -> Vec<&str> {
    // Blocks of code are every second part of what stands between three backticks; code in a line likewise.
    let prose = page.split("```").step_by(2);
    let code = prose.flat_map(|text| text.split('`').skip(1).step_by(2));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:<> …".contains(c);
    let is_name = |name: &&str| name.contains("::") || name.matches('_').count() > 1;
    code.filter(|code| code.chars().all(plain)).filter(is_name).collect()
}

/// Whether there is a function or a module of that name in a file or module of the names before it, or a trial whose name says the same.
fn exists(name: &str, code: &[Source]) -> bool {
    let name = name.trim_start_matches("…::").trim_end_matches('…');
    // `<flow>` and the like stand for what differs from trial to trial.
    let (fixed, open) = name.split_once('<').map_or((name, false), |(fixed, _)| (fixed, !fixed.ends_with("::")));
    let parts: Vec<&str> = fixed.split("::").filter(|part| !part.is_empty()).collect();
    let Some((last, around)) = parts.split_last() else { return false };
    let is_in = |source: &Source| {
        around
            .iter()
            .all(|module| has_component(&source.path, module) || source.text.contains(&format!("mod {module} {{")))
    };
    let (call, block, trial) = (format!("fn {last}("), format!("mod {last} {{"), parts.join("::"));
    let starts_trial = format!("\"{trial}{{");
    let whole_trial = [format!("::{trial}\""), format!("\"{trial}\"")];
    // A single word may be a field.
    let is_path = name.contains("::");
    code.iter().any(|source| {
        let text = &source.text;
        let here = text.contains(&call) || is_path && (text.contains(&block) || has_component(&source.path, last));
        (here && is_in(source))
            || whole_trial.iter().any(|trial| text.contains(trial))
            || open && text.contains(&starts_trial)
    })
}

fn has_component(path: &Path, module: &str) -> bool {
    path.components().any(|part| {
        let part = part.as_os_str().to_string_lossy();
        part.strip_suffix(".rs").unwrap_or(&part) == module
    })
}
