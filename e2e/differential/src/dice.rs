//! Random choices, all of which follow from a seed.

use carrick_e2e_stage::seed::{self, Choices};
use serde_json::{Map, Value, json};

/// Choices with words for what a generator needs.
pub struct Dice(Choices);

impl Dice {
    /// The dice of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Choices::of(seed))
    }

    /// Whether requests are made, too, whose answers are known to differ (docs/plane.md tells which).
    pub fn is_wide() -> bool {
        seed::is_wide()
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.below(u64::try_from(limit).unwrap_or(1))).unwrap_or(0)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of several texts.
    pub fn word(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    /// One of the elements of a list.
    pub fn any(&mut self, of: &Value) -> Value {
        of.as_array().filter(|list| !list.is_empty()).map_or(Value::Null, |list| self.pick(list).clone())
    }

    /// One of the documents of a text with one on each line.
    pub fn line(&mut self, text: &str) -> Value {
        let lines: Vec<&str> = text.lines().collect();
        serde_json::from_str(lines[self.below(lines.len())]).unwrap_or_default()
    }

    /// An object with some of several fields, each with one of its values.
    pub fn some(&mut self, percent: usize, fields: &[(&str, Value)]) -> Value {
        let mut map = Map::new();
        for (name, values) in fields {
            if self.chance(percent) {
                map.insert((*name).to_owned(), self.any(values));
            }
        }
        json!(map)
    }
}
