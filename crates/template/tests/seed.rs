//! Writes the corpora that the fuzz targets `template` and `html` start from: every template that tests compare with Go.
//! `cargo test -p carrick-template --test seed -- --ignored`

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::{fs, path::Path};

use serde_json::Value;

#[test]
#[ignore = "writes files below fuzz/corpus"]
fn seed_the_fuzz_targets() {
    let files = [
        (include_str!("vectors.json"), "template"),
        (include_str!("go.json"), "template"),
        (include_str!("sprig.json"), "template"),
        (include_str!("random.json"), "template"),
        (include_str!("html.json"), "html"),
    ];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (number, (file, target)) in files.into_iter().enumerate() {
        let vectors: Value = serde_json::from_str(file).unwrap();
        for (index, case) in vectors["cases"].as_array().unwrap().iter().enumerate() {
            let folder = corpus.join(if case["html"] == true { "html" } else { target });
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("seed-{number}-{index}")), case["template"].as_str().unwrap()).unwrap();
        }
    }
}
