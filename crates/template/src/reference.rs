//! What every function is for, with examples: the source of the reference pages.
//!
//! A test compares the names with the table that implements the functions, and renders every example.

mod builtin;
mod lists;
mod numbers;
mod outside;
mod row;
mod strings;
mod values;

use crate::sprig;
use row::Row;

/// What there is to know about one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionDoc {
    /// As templates call it.
    pub name: &'static str,
    /// What it belongs to.
    pub group: &'static str,
    /// How it is called.
    pub usage: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// A template and what it renders to, where there is something to show.
    pub example: Option<(&'static str, &'static str)>,
}

const GROUPS: &[(&str, &[Row])] = &[
    ("Go's own functions", builtin::GO),
    ("Strings", strings::STRINGS),
    ("Lists of strings", strings::STRING_LISTS),
    ("Integer mathematics", numbers::MATH),
    ("Float mathematics", numbers::FLOATS),
    ("Dates; local time is UTC", values::DATES),
    ("Defaults", values::DEFAULTS),
    ("Encodings", values::ENCODING),
    ("Lists", lists::LISTS),
    ("Dictionaries", lists::DICTIONARIES),
    ("Conversions", numbers::CONVERSION),
    ("Paths", outside::PATHS),
    ("Flow control", values::FLOW),
    ("Types", values::REFLECTION),
    ("Versions", values::VERSIONS),
    ("Hashes and passwords", outside::CRYPTO),
    ("What lies outside", outside::NETWORK),
    ("URLs", outside::URLS),
    ("Names of copies", builtin::AGENT),
];

/// All functions, by group.
pub fn entries() -> Vec<FunctionDoc> {
    let entry = |group, Row(name, usage, summary, example): &Row| FunctionDoc {
        name,
        group,
        usage,
        summary,
        example: *example,
    };
    GROUPS.iter().flat_map(|(group, rows)| rows.iter().map(move |row| entry(group, row))).collect()
}

/// The functions of sprig that no template may call, and why.
pub fn refused() -> Vec<(&'static str, &'static str)> {
    sprig::refused::all().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{entries, refused};
    use crate::{Template, table};

    #[test]
    fn every_function_has_one_entry() {
        let listed: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
        let names: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(names.len(), listed.len(), "an entry stands twice");
        assert_eq!(names, table::names().collect());
        for (name, _) in refused() {
            assert!(!names.contains(name), "{name} is refused and listed");
        }
    }

    #[test]
    fn every_example_renders_as_shown() {
        for entry in entries() {
            let Some((text, expected)) = entry.example else { continue };
            assert!(text.contains(entry.name), "{}", entry.name);
            let rendered = Template::compile(text).unwrap().render_value(&serde_json::json!({})).unwrap();
            assert_eq!(rendered, expected, "{text}");
        }
    }
}
