//! Pages that name the tests behind what they say: every test they name exists.

use std::fs;
use std::path::{Path, PathBuf};

/// Pages below `docs/`.
const PAGES: [&str; 1] = ["compatibility.md"];

/// All Rust sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

pub fn every_test_that_a_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates", "e2e"] {
        sources(&root.join(folder), &mut files);
    }
    let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for page in PAGES {
        let text = fs::read_to_string(root.join("docs").join(page)).unwrap();
        let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == ':');
        // What stands between backticks is every second part.
        let named = text.split('`').skip(1).step_by(2).filter(is_name);
        let tests: Vec<&str> = named.filter_map(|name| name.rsplit("::").next()).filter(|n| n.contains('_')).collect();
        assert!(tests.len() > 50, "{page} names {tests:?}");
        for test in tests.into_iter().filter(|test| !test.starts_with("sync_agent_")) {
            assert!(code.contains(&format!("fn {test}(")), "{page} names {test}, which does not exist");
        }
    }
}
