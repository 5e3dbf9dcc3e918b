//! Writes the corpora that the fuzz target `template` starts from: every template that tests compare with Go.
//! `cargo test -p carrick-template --test it seed -- --ignored`

use std::{fs, path::Path};

use serde_json::Value;

#[test]
#[ignore = "writes files below fuzz/corpus"]
fn seed_the_fuzz_target() {
    let files = [
        include_str!("../vectors.json"),
        include_str!("../go.json"),
        include_str!("../sprig.json"),
        include_str!("../random.json"),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/template");
    fs::create_dir_all(&folder).unwrap();
    for (number, file) in files.into_iter().enumerate() {
        let vectors: Value = serde_json::from_str(file).unwrap();
        for (index, case) in vectors["cases"].as_array().unwrap().iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}-{index}")), case["template"].as_str().unwrap()).unwrap();
        }
    }
}
