//! The seeds of the fuzzer: every expression and rule that is recorded.
//! `cargo test -p carrick-cel --test it seed -- --ignored`, then `cargo +nightly fuzz run cel`.

use std::path::Path;

use serde_json::Value;

#[test]
#[ignore = "writes files below fuzz/corpus"]
fn recorded_expressions_become_seeds() {
    let vectors: Value = serde_json::from_str(include_str!("../cel.json")).unwrap();
    let recorded: Value = serde_json::from_str(include_str!("../go.json")).unwrap();
    let answers = include_str!("../answers.jsonl").lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let listed = |list: &Value| list.as_array().unwrap().clone();
    let questions =
        listed(&vectors["cases"]).into_iter().chain(listed(&recorded["cases"])).chain(listed(&recorded["typed"]));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/cel");
    std::fs::create_dir_all(&folder).unwrap();
    for (at, question) in questions.chain(answers).enumerate() {
        let text = question["expression"].as_str().or(question["rule"]["rule"].as_str());
        std::fs::write(folder.join(format!("seed-{at}")), text.unwrap_or_default()).unwrap();
    }
}
