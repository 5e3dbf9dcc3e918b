//! Small forms of what every node of a schema has: large kinds have thousands of nodes, and most of them check next to nothing.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Weak};

use carrick_go::regex::{GoRegex, RegexError};
use parking_lot::Mutex;

use super::{Checks, Schema};

/// The known fields of an object, in order. A map would leave room for eleven fields wherever there is one.
#[derive(Debug, Default)]
pub struct Properties(Box<[(String, Schema)]>);

impl Properties {
    /// The schema of a field.
    pub fn get(&self, name: &str) -> Option<&Schema> {
        let found = self.0.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        self.0.get(found).map(|(_, schema)| schema)
    }

    /// Whether a field is known.
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether no field is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All fields, in order.
    pub fn iter(&self) -> Entries<'_> {
        self.0.iter().map(|(name, schema)| (name, schema))
    }
}

/// Fields and their schemas, in order.
pub type Entries<'a> =
    std::iter::Map<std::slice::Iter<'a, (String, Schema)>, fn(&'a (String, Schema)) -> (&'a String, &'a Schema)>;

impl<'a> IntoIterator for &'a Properties {
    type Item = (&'a String, &'a Schema);
    type IntoIter = Entries<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<BTreeMap<String, Schema>> for Properties {
    fn from(map: BTreeMap<String, Schema>) -> Self {
        Self(map.into_iter().collect())
    }
}

/// Value validations, which take memory only where there are any.
#[derive(Debug)]
pub(super) struct FewChecks(Option<Box<Checks>>);

impl FewChecks {
    /// Whether nothing is checked.
    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl From<Checks> for FewChecks {
    fn from(checks: Checks) -> Self {
        Self((!checks.is_empty()).then(|| Box::new(checks)))
    }
}

impl Deref for FewChecks {
    type Target = Checks;

    fn deref(&self) -> &Checks {
        static NONE: LazyLock<Checks> = LazyLock::new(Checks::default);
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl Checks {
    fn is_empty(&self) -> bool {
        let Self {
            values,
            minimum,
            maximum,
            exclusive_minimum,
            exclusive_maximum,
            multiple_of,
            min_length,
            max_length,
            pattern,
            min_items,
            max_items,
            unique,
            min_properties,
            max_properties,
            format,
            all_of,
            any_of,
            one_of,
            not,
        } = self;
        let numbers = minimum.is_none() && maximum.is_none() && multiple_of.is_none();
        let lengths = [min_length, max_length, min_items, max_items, min_properties, max_properties];
        let flags = [exclusive_minimum, exclusive_maximum, unique];
        values.is_none()
            && numbers
            && lengths.iter().all(|length| length.is_none())
            && !flags.into_iter().any(|flag| *flag)
            && pattern.is_none()
            && format.is_none()
            && [all_of, any_of, one_of].iter().all(|branches| branches.is_empty())
            && not.is_none()
    }
}

/// Patterns in use, by their text.
static PATTERNS: LazyLock<Mutex<Patterns>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Patterns {
    known: HashMap<String, Weak<GoRegex>>,
    /// With more entries than this, those that nobody uses any more are removed.
    limit: usize,
}

/// A compiled pattern. The same few occur thousands of times in schemas that embed pods, and take more memory than all the rest.
pub(super) fn pattern(text: &str) -> Result<Arc<GoRegex>, RegexError> {
    if let Some(known) = PATTERNS.lock().known.get(text).and_then(Weak::upgrade) {
        return Ok(known);
    }
    let compiled = Arc::new(GoRegex::compile(text)?);
    let mut patterns = PATTERNS.lock();
    patterns.known.insert(text.to_owned(), Arc::downgrade(&compiled));
    if patterns.known.len() > patterns.limit {
        patterns.known.retain(|_, pattern| pattern.strong_count() > 0);
        patterns.limit = patterns.known.len() * 2 + 64;
    }
    Ok(compiled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_found_among_any_number_of_them() {
        for count in [0_usize, 1, 2, 7, 100] {
            let fields: BTreeMap<String, Schema> = (0..count)
                .map(|number| (format!("f{number}"), Schema::part(&json!({"type": "string"})).unwrap()))
                .collect();
            let properties = Properties::from(fields);
            assert_eq!((properties.is_empty(), properties.iter().count()), (count == 0, count));
            for number in 0..count {
                assert!(properties.contains_key(&format!("f{number}")));
            }
            assert!(!properties.contains_key("g") && properties.get("f").is_none() && properties.get("").is_none());
        }
    }

    #[test]
    fn every_check_counts_and_a_node_without_any_is_small() {
        for check in [
            json!({"enum": ["a"]}),
            json!({"minimum": 1}),
            json!({"maximum": 1}),
            json!({"exclusiveMinimum": true}),
            json!({"exclusiveMaximum": true}),
            json!({"multipleOf": 2}),
            json!({"minLength": 1}),
            json!({"maxLength": 1}),
            json!({"pattern": "^a$"}),
            json!({"minItems": 1}),
            json!({"maxItems": 1}),
            json!({"uniqueItems": true}),
            json!({"minProperties": 1}),
            json!({"maxProperties": 1}),
            json!({"format": "date"}),
            json!({"allOf": [{}]}),
            json!({"anyOf": [{}]}),
            json!({"oneOf": [{}]}),
            json!({"not": {}}),
        ] {
            let mut schema = check.clone();
            schema["type"] = "string".into();
            assert!(!Schema::part(&schema).unwrap().checks.is_none(), "{check}");
        }
        assert!(Schema::part(&json!({"type": "string", "description": "d"})).unwrap().checks.is_none());
        assert!(size_of::<Schema>() <= 176, "{}", size_of::<Schema>());
    }

    #[test]
    fn the_same_pattern_is_compiled_once() {
        let (first, again) = (pattern("^compact-[a-z]+$").unwrap(), pattern("^compact-[a-z]+$").unwrap());
        assert!(Arc::ptr_eq(&first, &again) && !Arc::ptr_eq(&first, &pattern("^compact-[a-y]+$").unwrap()));
        assert!(pattern("(").is_err());
    }
}
