//! Seeds for the fuzzers, made from the recorded answers:
//! `cargo test -p carrick-json --test it corpus -- --ignored`, then `cargo +nightly fuzz run path`.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

#[test]
#[ignore = "writes the seeds of the fuzzers into fuzz/corpus"]
fn seeds_are_written() {
    let mut seeds: Vec<(&str, String)> = Vec::new();
    for file in [include_str!("../paths.json"), include_str!("../paths-more.json")] {
        let file: Value = serde_json::from_str(file).unwrap();
        for case in file["cases"].as_array().unwrap() {
            let input = case["input"].as_str().unwrap();
            seeds.push(("path", format!("{}\n{input}", case["path"].as_str().unwrap())));
            if let (Some("sjsonset" | "sjsondel"), Some(output)) = (case["op"].as_str(), case["output"].as_str()) {
                seeds.push(("merge", format!("{}\n{}", input.replace('\n', " "), output.replace('\n', " "))));
            }
        }
    }
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (number, (target, seed)) in seeds.iter().enumerate() {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("seed-{number}")), seed).unwrap();
    }
}
