//! What reading a text yields.

use std::fmt;

use serde_json::Value;

/// Why a text is not YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
#[non_exhaustive]
pub struct YamlError {
    /// What is wrong.
    pub message: String,
    /// The line, counted from one.
    pub line: usize,
    /// The column, counted from one.
    pub column: usize,
}

/// A document that was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// What it says; of keys that occur twice, the last one counts.
    pub value: Value,
    /// The keys that occur twice in one map.
    pub duplicates: Vec<Duplicate>,
}

/// A key that occurs twice in one map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The key as Go prints it: texts in quotes.
    pub key: String,
    /// The line of its second value, counted from one.
    pub line: usize,
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: key {} already set in map", self.line, self.key)
    }
}

impl Document {
    /// What Go's strict reader says about keys that occur twice; none if there are none.
    pub fn strict_error(&self) -> Option<String> {
        if self.duplicates.is_empty() {
            return None;
        }
        let lines = self.duplicates.iter().map(|one| format!("\n  {one}"));
        Some(format!("yaml: unmarshal errors:{}", lines.collect::<String>()))
    }
}
