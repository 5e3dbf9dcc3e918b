//! The nodes of a compiled schema, in small forms: large kinds have thousands of nodes, and most of them check next to nothing.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use carrick_go::regex::GoRegex;
use serde_json::Value;

/// The declared type of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// No type: anything (only below preserved nodes and in value validations).
    Any,
    /// A map or a struct.
    Object,
    /// A list.
    Array,
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
}

/// How a list is identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListType {
    /// One value.
    Atomic,
    /// A set of scalars.
    Set,
    /// A map with these key fields.
    Map(Vec<String>),
}

/// One node of a compiled schema. What is expensive to compile is shared by its copies.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "these are the independent flags of the schema language")]
pub struct Schema {
    /// Declared type.
    pub kind: Type,
    /// Null is allowed.
    pub nullable: bool,
    /// Known fields.
    pub properties: Properties,
    /// Schema of the values of a map.
    pub additional: Option<Box<Schema>>,
    /// Any additional field is fine: `additionalProperties: true`.
    pub open: bool,
    /// Schema of list items.
    pub items: Option<Box<Schema>>,
    /// Unknown fields are kept.
    pub preserve: bool,
    /// Holds a complete Kubernetes object.
    pub embedded: bool,
    /// Value set when the field is absent.
    pub default: Option<Value>,
    /// Required fields.
    pub required: Vec<String>,
    /// List identity.
    pub list: ListType,
    /// The map is one value for server-side apply.
    pub atomic: bool,
    /// Any node below (or this one) has a default.
    pub has_defaults: bool,
    /// Any node below (or this one) has CEL rules.
    pub has_rules: bool,
    pub(super) checks: FewChecks,
    pub(super) rules: Option<Arc<[carrick_cel::Rule]>>,
}

/// Value validations of one node.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) values: Option<Vec<Value>>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) exclusive_maximum: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<Arc<GoRegex>>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique: bool,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) format: Option<String>,
    pub(super) all_of: Vec<Schema>,
    pub(super) any_of: Vec<Schema>,
    pub(super) one_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
}

/// The known fields of an object, in order. A map would leave room for eleven fields wherever there is one.
#[derive(Debug, Clone, Default)]
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
#[derive(Debug, Clone)]
pub(super) struct FewChecks(Option<Arc<Checks>>);

impl FewChecks {
    /// Whether nothing is checked.
    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl From<Checks> for FewChecks {
    fn from(checks: Checks) -> Self {
        Self((!checks.is_empty()).then(|| Arc::new(checks)))
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
}
