//! The house explains itself: what it consists of is written down, and what was tidied stays tidy.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The names of all crates, sorted.
fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = folders
        .filter(|folder| folder.join("Cargo.toml").exists())
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(names.len() > 10, "only {names:?} were found");
    names
}

#[test]
fn contributing_and_the_architecture_name_every_crate() {
    for page in ["CONTRIBUTING.md", "docs/development/architecture.md"] {
        let text = read(page);
        let missing: Vec<String> =
            crates().into_iter().filter(|name| !text.contains(&format!("`crates/{name}`"))).collect();
        assert!(missing.is_empty(), "{page} does not say what these are for: {missing:?}");
    }
}

#[test]
fn the_architecture_leads_to_files_that_exist() {
    let text = read("docs/development/architecture.md");
    let named = text.split('`').skip(1).step_by(2).filter(|code| {
        let is_path = |c: char| c.is_alphanumeric() || "/._-".contains(c);
        (code.starts_with("crates/") || code.starts_with("xtask/") || code.starts_with("docs/"))
            && code.chars().all(is_path)
    });
    let named: Vec<&str> = named.collect();
    assert!(named.len() > 20, "only {named:?} were found");
    let missing: Vec<&&str> = named.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "these are gone: {missing:?}");
}

#[test]
fn no_leaf_depends_on_a_leaf() {
    let folder = root().join("crates");
    // The command line stands above all of them.
    let is_leaf = |name: &str| name == "plane" || name != "cli" && folder.join(name).join("src/main.rs").exists();
    let leaves: Vec<String> = crates().into_iter().filter(|name| is_leaf(name)).collect();
    assert!(leaves.len() > 4, "only {leaves:?} were found");
    let mut found = Vec::new();
    for name in crates().into_iter().filter(|name| name != "cli") {
        let text = fs::read_to_string(folder.join(&name).join("Cargo.toml")).unwrap();
        for other in dependencies(&text).filter(|other| leaves.iter().any(|leaf| leaf == other)) {
            found.push(format!("{name} -> {other}"));
        }
    }
    assert!(found.is_empty(), "what both need belongs into a crate below them: {found:?}");
}

/// The crates of ours that a crate needs, other than for its tests.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let section = manifest.split("\n[").filter(|section| section.starts_with("dependencies]"));
    section.flat_map(str::lines).filter_map(|line| {
        let name = line.strip_prefix("carrick-")?;
        name.find(|c: char| !(c.is_alphanumeric() || c == '-')).map(|end| &name[..end])
    })
}

#[test]
fn dependencies_are_read_without_those_of_tests() {
    let manifest = "[package]\nname = \"carrick-a\"\n\n[dependencies]\ncarrick-b.workspace = true\ncarrick-c-d = { path = \"x\" }\n\n[dev-dependencies]\ncarrick-e.workspace = true\n";
    assert_eq!(dependencies(manifest).collect::<Vec<_>>(), ["b", "c-d"]);
}

/// What decides, below `crates/`: data goes in and data comes out.
const PURE: [&str; 12] = [
    "bind-api/src",
    "bind-backend/src/decide",
    "cel/src",
    "go/src",
    "json/src",
    "kcp/src",
    "konnector/src/decide",
    "schema/src",
    "sync/src",
    "syncagent/src/decide",
    "syncagent/src/rules",
    "template/src",
];

/// What stands there and is not pure: the executor, what tells templates the date, and answers of Go for tests.
const IMPURE: [&str; 5] = [
    "cel/src/go.rs",
    "sync/src/executor.rs",
    "sync/src/executor/",
    "template/src/sprig/date.rs",
    "template/src/time/point.rs",
];

/// What knows a client, waits, measures time, draws lots or reads what lies around.
const IMPURITIES: [&str; 17] = [
    "carrick_client",
    "carrick_multicluster",
    "carrick_plane",
    "carrick_process",
    "crate::agent",
    "crate::executor",
    "executor::",
    "fastrand",
    "getrandom",
    "hyper",
    "Instant",
    "::now(",
    "std::env",
    "std::fs",
    "std::process",
    "SystemTime",
    "tokio",
];

#[test]
fn what_decides_knows_no_client_no_runtime_no_clock_and_no_chance() {
    let crates = root().join("crates");
    let (mut read, mut found) = (0, Vec::new());
    for part in PURE {
        let mut files = Vec::new();
        collect(&crates.join(part), &mut files);
        assert!(!files.is_empty(), "{part} is gone");
        for file in files {
            let name = file.strip_prefix(&crates).unwrap().to_str().unwrap();
            if IMPURE.iter().any(|impure| name.starts_with(impure)) {
                continue;
            }
            read += 1;
            found.extend(impurities(&fs::read_to_string(&file).unwrap()).map(|what| format!("{name}: {what}")));
        }
    }
    assert!(read > 200, "only {read} files were found");
    let gone: Vec<&str> = IMPURE.into_iter().filter(|path| !crates.join(path).exists()).collect();
    assert!(gone.is_empty(), "these are no exceptions any more: {gone:?}");
    assert!(found.is_empty(), "move this to what carries decisions out:\n{}", found.join("\n"));
}

/// The lines of a text, without tests and comments, that hold something impure.
fn impurities(text: &str) -> impl Iterator<Item = &str> {
    let production = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = production.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    code.filter(|line| IMPURITIES.iter().any(|what| line.contains(what)))
}

#[test]
fn what_is_impure_is_found_outside_of_tests_and_comments() {
    let text =
        "// tokio\nuse carrick_client::Client;\nfn f() { g(); }\n#[cfg(test)]\nmod tests {\n    use tokio::test;\n}";
    assert_eq!(impurities(text).collect::<Vec<_>>(), ["use carrick_client::Client;"]);
}

#[test]
fn the_object_half_of_the_agent_can_be_taken_in_at_a_glance() {
    let top = fs::read_dir(root().join("crates/syncagent/src/agent/objects")).unwrap();
    let files = top.filter(|entry| entry.as_ref().unwrap().path().is_file()).count();
    assert!(files <= 20, "{files} files are too many at the top of agent/objects: put them into folders by subject");
}

#[test]
fn what_depends_on_a_servers_wording_stands_in_one_file() {
    let mut found = Vec::new();
    let forms = ["status.message.", "cause.message.", "error.to_string()."]
        .map(|what| ["contains(", "split_once(", "starts_with(", "ends_with("].map(|how| format!("{what}{how}")))
        .concat();
    for name in crates().into_iter().filter(|name| !matches!(name.as_str(), "plane" | "schema" | "cel" | "template")) {
        let mut files = Vec::new();
        collect(&root().join("crates").join(&name).join("src"), &mut files);
        for file in files.into_iter().filter(|file| !file.ends_with("client/src/wording.rs")) {
            let text = fs::read_to_string(&file).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            // Words that stand in that file may be looked for elsewhere.
            let bad = text.lines().filter(|line| {
                forms.iter().any(|form| line.contains(form.as_str()))
                    && !line.contains("wording::")
                    && !line.contains("assert!(")
            });
            found.extend(bad.map(|line| format!("{}: {}", file.display(), line.trim())));
        }
    }
    assert!(found.is_empty(), "move these to crates/client/src/wording.rs:\n{}", found.join("\n"));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry.extension().is_some_and(|kind| kind == "rs")
            && entry.file_stem().is_some_and(|it| it != "tests")
        {
            files.push(entry);
        }
    }
}
