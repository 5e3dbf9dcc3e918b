//! Reads JSON objects into structs and writes them back without losing anything; other crates declare their own kinds with the same macros.
//!
//! Kubernetes sometimes distinguishes a field that is missing from one that is empty, and a newer server sends fields that this crate does
//! not know. Whoever reads an object, changes one field and writes it back must not touch the others. Therefore every struct has a `rest`:
//! it holds the fields that are not known, and those known ones that are present but empty (`""`, `[]`, `{}`, `false`, `null`). A known
//! field that is not empty is written from the struct, everything else from `rest`.
//!
//! ```
//! carrick_kcp::object::object! {
//!     /// What a widget is like.
//!     WidgetSpec {
//!         /// How large it is.
//!         size: String => "size",
//!     }
//! }
//!
//! let mut spec: WidgetSpec = serde_json::from_str(r#"{"size": "", "colour": "red"}"#)?;
//! spec.size = "large".to_owned();
//! assert_eq!(serde_json::to_value(&spec)?, serde_json::json!({"size": "large", "colour": "red"}));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! Whoever uses the macros depends on `serde` and `serde_json` as well.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A type that a field of an object can have.
pub trait Field: Sized {
    /// The value of a field that is missing.
    fn absent() -> Self;

    /// Whether the field is left out when written.
    fn is_absent(&self) -> bool;
}

impl Field for String {
    fn absent() -> Self {
        Self::new()
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl Field for bool {
    fn absent() -> Self {
        false
    }

    fn is_absent(&self) -> bool {
        !*self
    }
}

impl Field for Value {
    fn absent() -> Self {
        Self::Null
    }

    fn is_absent(&self) -> bool {
        self.is_null()
    }
}

impl<T> Field for Vec<T> {
    fn absent() -> Self {
        Self::new()
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl<T> Field for Option<T> {
    fn absent() -> Self {
        None
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T> Field for BTreeMap<String, T> {
    fn absent() -> Self {
        Self::new()
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

/// Moves a field out of the fields of an object. An empty one stays there as well, so that it is written as it was.
pub fn take<T: Field + DeserializeOwned>(rest: &mut Map<String, Value>, key: &str) -> Result<T, String> {
    match rest.get(key) {
        None | Some(Value::Null) => return Ok(T::absent()),
        Some(_) => {}
    }
    let value = rest.remove(key).unwrap_or_default();
    let hollow = is_hollow(&value).then(|| value.clone());
    let field: T = serde_json::from_value(value).map_err(|error| format!("{key}: {error}"))?;
    if let Some(hollow) = hollow.filter(|_| field.is_absent()) {
        rest.insert(key.to_owned(), hollow);
    }
    Ok(field)
}

fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(yes) => !yes,
        Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Declares a struct for a JSON object: `field: Type => "jsonName"`. A field marked `[always]` is required by the API: a new value of the
/// struct is written with it, empty or not.
#[doc(hidden)]
#[macro_export]
macro_rules! object {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty => $key:literal $([$always:ident])?,)* }
    ) => {
        $crate::object::fields! { $(#[$meta])* $name { $($(#[$doc])* $field: $type => $key,)* } }

        impl Default for $name {
            fn default() -> Self {
                #[allow(unused_mut)] // only structs with required fields add to it
                let mut rest = serde_json::Map::new();
                $($($crate::object::always!($always, rest, $type, $key);)?)*
                Self { $($field: $crate::object::Field::absent(),)* rest }
            }
        }
    };
}

/// Puts the empty value of a required field into the rest of a new object.
#[doc(hidden)]
#[macro_export]
macro_rules! always {
    (always, $rest:ident, $type:ty, $key:literal) => {
        $rest.insert($key.to_owned(), serde_json::json!(<$type>::default()));
    };
}

/// The struct itself, reading and writing.
#[doc(hidden)]
#[macro_export]
macro_rules! fields {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty => $key:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
            /// Fields that this type does not know, and known ones that are present but empty. They are written as they were read.
            pub rest: serde_json::Map<String, serde_json::Value>,
        }

        impl $name {
            /// Whether a field is written from the struct and not from `rest`.
            #[allow(clippy::match_single_binding, clippy::unused_self)] // of a struct without known fields
            fn writes(&self, key: &str) -> bool {
                match key {
                    $($key => !$crate::object::Field::is_absent(&self.$field),)*
                    _ => false,
                }
            }
        }

        /// Two objects are equal if their JSON is.
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                let rest = |it: &Self| it.rest.keys().filter(|key| !it.writes(key)).count();
                true $(&& self.$field == other.$field)*
                    && rest(self) == rest(other)
                    && self.rest.iter().all(|(key, value)| self.writes(key) || other.rest.get(key) == Some(value))
            }
        }

        impl Eq for $name {}

        impl $crate::object::Field for $name {
            fn absent() -> Self {
                Self { $($field: $crate::object::Field::absent(),)* rest: serde_json::Map::new() }
            }

            fn is_absent(&self) -> bool {
                self.rest.is_empty() $(&& $crate::object::Field::is_absent(&self.$field))*
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[allow(unused_mut)] // a struct without known fields leaves it as it is
                let mut rest = serde_json::Map::<String, serde_json::Value>::deserialize(deserializer)?;
                Ok(Self {
                    $($field: $crate::object::take(&mut rest, $key).map_err(serde::de::Error::custom)?,)*
                    rest,
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $(if !$crate::object::Field::is_absent(&self.$field) {
                    map.serialize_entry($key, &self.$field)?;
                })*
                for (key, value) in self.rest.iter().filter(|(key, _)| !self.writes(key)) {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    };
}

/// Declares a kind: a top-level object with `apiVersion`, `kind` and `metadata`, followed by its own fields.
#[doc(hidden)]
#[macro_export]
macro_rules! kind {
    (
        $(#[$meta:meta])*
        $name:ident = $kind:path { $($(#[$doc:meta])* $field:ident: $type:ty => $key:literal,)* }
    ) => {
        $crate::object::fields! {
            $(#[$meta])*
            $name {
                /// Group and version; the elements of a list may lack it.
                api_version: String => "apiVersion",
                /// Kind; the elements of a list may lack it.
                kind: String => "kind",
                /// Name, labels, annotations and what else every object has.
                metadata: $crate::meta::ObjectMeta => "metadata",
                $($(#[$doc])* $field: $type => $key,)*
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    api_version: $kind.api_version(),
                    kind: $kind.kind.to_owned(),
                    metadata: $crate::meta::ObjectMeta::default(),
                    $($field: <$type>::default(),)*
                    rest: serde_json::Map::new(),
                }
            }
        }

        impl $name {
            /// A new object of this kind with this name.
            pub fn new(name: impl Into<String>) -> Self {
                Self { metadata: $crate::meta::ObjectMeta::named(name), ..Self::default() }
            }
        }

        impl $crate::kinds::KcpObject for $name {
            const KIND: $crate::kinds::Kind = $kind;

            fn metadata(&self) -> &$crate::meta::ObjectMeta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut $crate::meta::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

/// Declares an enum of words that a string field can hold. A field that is left out is `Unset`, and a word of a newer server `Other`.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $word:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            /// Nothing is said.
            #[default]
            Unset,
            $($(#[$doc])* $word,)*
            /// A word that this crate does not know.
            Other(String),
        }

        impl $name {
            /// The word as it stands in JSON; empty if nothing is said.
            pub fn as_str(&self) -> &str {
                match self {
                    Self::Unset => "",
                    $(Self::$word => stringify!($word),)*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    "" => Self::Unset,
                    $(stringify!($word) => Self::$word,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::object::Field for $name {
            fn absent() -> Self {
                Self::Unset
            }

            fn is_absent(&self) -> bool {
                self.as_str().is_empty()
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Ok(Self::from(&*word))
            }
        }
    };
}

#[doc(hidden)]
pub use {always, fields};
#[doc(inline)]
pub use {kind, object, words};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    object! {
        /// For these tests.
        Sample {
            /// A text.
            text: String => "text",
            /// A required one.
            required: String => "required" [always],
            /// A list.
            list: Vec<String> => "list",
            /// Something that may be missing.
            inner: Option<Inner> => "inner",
            /// A word.
            mood: Mood => "mood",
        }
    }

    object! {
        /// Inside.
        Inner {
            /// Yes or no.
            yes: bool => "yes",
        }
    }

    words! {
        /// A word.
        Mood {
            /// Well.
            Good,
        }
    }

    #[test]
    fn what_is_empty_null_or_unknown_is_written_as_it_was_read() {
        for sample in [
            json!({}),
            json!({"text": "", "list": [], "inner": {}, "mood": ""}),
            json!({"text": null, "list": null, "inner": null, "mood": null}),
            json!({"text": "a", "list": ["b"], "inner": {"yes": false, "more": 1}, "mood": "Good", "other": {"x": []}}),
            json!({"mood": "Better"}),
        ] {
            let read: Sample = serde_json::from_value(sample.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), sample);
        }
    }

    #[test]
    fn what_is_set_later_replaces_what_was_empty_and_required_fields_are_always_there() {
        let mut read: Sample = serde_json::from_value(json!({"text": "", "list": []})).unwrap();
        read.text = "a".to_owned();
        assert_eq!(serde_json::to_value(&read).unwrap(), json!({"text": "a", "list": []}));
        let mut new = Sample { mood: Mood::Good, ..Sample::default() };
        assert_eq!(serde_json::to_value(&new).unwrap(), json!({"required": "", "mood": "Good"}));
        new.required = "r".to_owned();
        new.inner = Some(Inner::default());
        assert_eq!(serde_json::to_value(&new).unwrap(), json!({"required": "r", "mood": "Good", "inner": {}}));
    }

    #[test]
    fn objects_are_equal_if_their_json_is() {
        let read = |value: Value| serde_json::from_value::<Sample>(value).unwrap();
        let new = Sample { required: "r".to_owned(), ..Sample::default() };
        assert_eq!(new, read(json!({"required": "r"})));
        assert_ne!(new, read(json!({"required": "r", "text": ""})));
        assert_ne!(read(json!({"other": 1})), read(json!({"other": 2})));
        assert_ne!(read(json!({"other": 1})), read(json!({"another": 1})));
        assert_ne!(read(json!({"mood": "Good"})), read(json!({"mood": "Better"})));
    }

    #[test]
    fn a_field_of_another_type_is_named_in_the_error() {
        let error = serde_json::from_value::<Sample>(json!({"inner": {"yes": "maybe"}})).unwrap_err().to_string();
        assert!(error.starts_with("inner: yes: invalid type"), "{error}");
    }
}
