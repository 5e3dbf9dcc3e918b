//! Texts of a given length, pattern or format.

use serde_json::{Value, json};

use super::pattern;

/// Texts are not longer than this, whatever a schema allows.
const LONGEST: u64 = 2_000;

/// Texts that look like many things.
const COMMON: [&str; 16] = [
    "a",
    "",
    "b1",
    "Ab",
    "1",
    "a-b",
    "a.b",
    "a b",
    "A_B",
    "x/y",
    "10.0.0.1",
    "2024-02-29T12:00:00Z",
    "50%",
    "ä",
    "-",
    "abc",
];

/// Texts that a node may allow, with those at the borders of another.
pub(super) fn candidates(schema: &Value, other: &Value) -> Vec<Value> {
    let mut texts: Vec<String> = Vec::new();
    for node in [schema, other] {
        texts.extend(node["format"].as_str().into_iter().flat_map(of_format).map(|text| (*text).to_owned()));
        texts.extend(node["pattern"].as_str().into_iter().flat_map(pattern::texts));
    }
    texts.extend(COMMON.map(str::to_owned));
    let lengths = [schema, other].into_iter().flat_map(|node| [node["minLength"].as_u64(), node["maxLength"].as_u64()]);
    let lengths: Vec<u64> =
        lengths.flatten().flat_map(|length| [length, length + 1, length.saturating_sub(1)]).collect();
    let stems: Vec<String> = texts.iter().filter(|text| !text.is_empty()).take(12).cloned().collect();
    let mut sized = Vec::new();
    for length in lengths.into_iter().filter(|length| *length <= LONGEST) {
        let length = usize::try_from(length).unwrap_or_default();
        for stem in &stems {
            sized.push(resized(stem, length));
        }
    }
    sized.extend(texts);
    sized.into_iter().map(|text| json!(text)).collect()
}

/// A text of that many characters that begins or ends like another.
fn resized(stem: &str, length: usize) -> String {
    let count = stem.chars().count();
    if count >= length {
        return stem.chars().take(length).collect();
    }
    let Some(last) = stem.chars().last() else { return String::new() };
    stem.chars().chain(std::iter::repeat_n(last, length - count)).collect()
}

/// Texts of a format.
fn of_format(format: &str) -> &'static [&'static str] {
    match format {
        "date-time" | "datetime" => &["2024-02-29T12:00:00Z", "2024-01-01T00:00:00.5+01:00"],
        "date" => &["2024-02-29"],
        "byte" => &["YQ==", "YWJj"],
        "uuid" | "uuid4" => &["123e4567-e89b-42d3-a456-426614174000"],
        "uuid3" => &["123e4567-e89b-32d3-a456-426614174000"],
        "uuid5" => &["123e4567-e89b-52d3-a456-426614174000"],
        "ipv4" => &["10.0.0.1"],
        "ipv6" => &["fd00::1"],
        "cidr" => &["10.0.0.0/8", "fd00::/64"],
        "email" => &["a@example.com"],
        "hostname" => &["example.com", "a"],
        "uri" => &["https://example.com/a", "/a"],
        "mac" => &["00:00:5e:00:53:01"],
        "duration" => &["1h", "1h30m", "90s"],
        "bsonobjectid" => &["507f1f77bcf86cd799439011"],
        "hexcolor" => &["#ffffff", "fff"],
        "k8s-short-name" => &["a-b"],
        "k8s-long-name" => &["a.b"],
        _ => &[],
    }
}
