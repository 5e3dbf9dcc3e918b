//! What pages quote from the code is in the code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::tools;

fn read(file: &str) -> String {
    fs::read_to_string(tools::root().join(file)).unwrap()
}

/// Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    files
}

/// A file without its tests, with strings that go over several lines in one.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let (mut code, mut goes_on) = (String::new(), false);
    for line in text.split("#[cfg(test)]").next().unwrap_or_default().lines() {
        let line = if goes_on { line.trim_start() } else { line };
        let part = line.strip_suffix('\\');
        code += part.unwrap_or(line);
        goes_on = part.is_some();
        if !goes_on {
            code.push('\n');
        }
    }
    code
}

/// Words in quotes behind a mark.
fn quoted(text: &str, mark: &str) -> Vec<String> {
    text.split(mark).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

fn is_reason(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().all(char::is_alphanumeric)
}

/// Reasons that the agent's code gives.
fn given() -> BTreeSet<String> {
    let agent = tools::root().join("crates/syncagent/src");
    let mut reasons = BTreeSet::new();
    for file in sources(&agent.join("agent")) {
        let text = code(&file);
        for mark in ["reason: \"", "Type::Warning, \"", "Type::Normal, \"", "warn_consumer(order, \""] {
            reasons.extend(quoted(&text, mark));
        }
    }
    let of_accept_apis =
        ["(false, \"", "not(\"", "not(\n                    \"", "FOREIGN: &str = \"", "NOT_ASKED: &str = \""];
    for (file, marks) in [
        ("agent/schemas/status.rs", &["(true, \"", "(false, \""][..]),
        ("agent/platform_mesh/report.rs", &of_accept_apis),
        ("decide/events.rs", &["=> (\"", "=> (\n            \""]),
        ("agent/objects/act/send.rs", &["is_unwanted() => \"", "is_held() => \""]),
    ] {
        reasons.extend(marks.iter().flat_map(|mark| quoted(&code(&agent.join(file)), mark)));
    }
    reasons.retain(|word| is_reason(word));
    reasons
}

#[test]
fn the_page_of_reasons_has_those_that_the_code_gives_and_no_others() {
    let page = read("docs/reference/reasons.md");
    let told = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let told: BTreeSet<String> = told.filter(|word| is_reason(word)).map(str::to_owned).collect();
    let given = given();
    assert!(given.len() > 45, "only {} reasons were found in the code: {given:?}", given.len());
    let missing: Vec<_> = given.difference(&told).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
    let invented: Vec<_> = told.difference(&given).collect();
    assert!(invented.is_empty(), "not in the code: {invented:?}");
}

#[test]
fn conditions_on_the_page_of_reasons_are_those_of_the_code() {
    let status = code(&tools::root().join("crates/syncagent/src/agent/schemas/status.rs"));
    // The list of conditions that the agent writes begins with this one.
    let list = status.split("\"RulesValid\",").nth(1).unwrap().split(']').next().unwrap();
    let listed = 1 + list.split(',').filter(|entry| !entry.trim().is_empty()).count();
    let page = read("docs/reference/reasons.md");
    let told: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(told.len(), listed, "{told:?}");
    let mut all = String::new();
    for file in sources(&tools::root().join("crates/syncagent/src")) {
        all += &code(&file);
    }
    for kind in told {
        assert!(all.contains(&format!("\"{kind}\"")), "there is no condition {kind}");
    }
}

/// Parts of a quoted message that stand in the code, without what it says about a certain object.
fn parts(message: &str) -> Vec<String> {
    let mut message = message.to_owned();
    for example in ["\"x\"", "\"y\"", "agent x", "buckets.example.com", "X.group"] {
        message = message.replace(example, "…");
    }
    let parts = message.split('…').map(|part| part.trim().trim_matches([';', ':']).to_owned());
    parts.filter(|part| part.len() > 3).collect()
}

#[test]
fn messages_of_the_troubleshooting_page_are_those_of_the_code() {
    let mut text = String::new();
    for file in sources(&tools::root().join("crates")) {
        text += &code(&file);
    }
    let columns = ["Valid", "Published", "Exported"];
    let page = read("docs/operations/troubleshooting.md");
    let mut seen = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| you see")) {
        let symptom = row.trim_start_matches("| ").split(" | ").next().unwrap();
        for message in symptom.split('`').skip(1).step_by(2).filter(|message| !columns.contains(message)) {
            for part in parts(message) {
                assert!(text.contains(&part), "nothing in the code says {part:?}, which the page quotes: {message}");
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "only {seen} messages were found");
}
