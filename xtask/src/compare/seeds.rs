//! The recorded questions that random ones are made from.

use std::fs;

use anyhow::Context;
use serde_json::Value;

use crate::tools;

/// A file of recorded questions: an object with `cases`, and data that they share.
pub fn read(file: &str) -> anyhow::Result<Value> {
    let text = fs::read_to_string(tools::root().join(file)).with_context(|| format!("cannot read {file}"))?;
    serde_json::from_str(&text).with_context(|| format!("{file} is no JSON"))
}

/// The texts of one field of the cases.
pub fn texts(recorded: &Value, field: &str) -> Vec<String> {
    let cases = recorded["cases"].as_array().into_iter().flatten();
    cases.filter_map(|case| case[field].as_str()).map(str::to_owned).collect()
}
