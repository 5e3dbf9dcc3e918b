//! Seeds for the fuzzers: `cargo test -p carrick-go --test it corpus -- --ignored`, then `cargo +nightly fuzz run regex`.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

const PATTERNS: [(&str, &str, &str); 10] = [
    ("^(.*):latest$", "$1:v1", "nginx:latest"),
    ("a(?P<x>x*)b", "<${x}>", "-ab-axxb-"),
    (r"\b[[:alpha:]]+\b", "$0$0", "one two"),
    (r"(?i)[^\W\d_]{2,3}?", "_", "aBc9"),
    (r"\Qa.b\E|\x{41}\101", "$$", "a.bAA"),
    (r"\p{Greek}|\pN|[\P{L}]", "", "αβ٣"),
    (r"(a|b)*?(c|)$", "$2$1", "abac"),
    ("(?s:.)(?U)x+", "$é", "xxx\n"),
    ("x{2,}{3}", "", ""),
    ("[z-a](", "", ""),
];

const OTHERS: [(&str, &[&str]); 3] = [
    ("duration", &["1h30m0.5s", "-2562047h47m16.854775808s", "3 days", "12µs", "0"]),
    ("semver", &["^1.2 || ~3\n1.2.3-beta.1+b1", ">=1.0, <2\nv1.2", "1.2 - 1.4\n01.02", "!=1.x\n1.0.0-0"]),
    ("json", &[r#"{"a":[1,-2.5e+3,"x\u00e4",true,null]}"#, "[[{}]]", "{]", "nul", "01"]),
];

#[test]
#[ignore = "writes the seeds of the fuzzers into fuzz/corpus"]
fn seeds_are_written() {
    let mut seeds: Vec<(&str, String)> = Vec::new();
    for (target, file) in [("url", include_str!("../urls.json")), ("selector", include_str!("../selectors.json"))] {
        let rows: Vec<Vec<Value>> = serde_json::from_str(file).unwrap();
        seeds.extend(rows.iter().map(|row| (target, row[0].as_str().unwrap().to_owned())));
    }
    for (pattern, replacement, text) in PATTERNS {
        seeds.push(("regex", format!("{pattern}\n{replacement}\n{text}")));
    }
    for (target, texts) in OTHERS {
        seeds.extend(texts.iter().map(|text| (target, (*text).to_owned())));
    }
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (number, (target, seed)) in seeds.iter().enumerate() {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("seed-{number}")), seed).unwrap();
    }
}
