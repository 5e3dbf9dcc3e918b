//! Schemas of the API's types, generated from the types themselves.
//!
//! `described!` declares a struct and gives it [`Described`]. Doc comments become descriptions, so they are written for users of the API:
//!
//! ```text
//!  described! {
//!      /// How copies are named.                 ──▶ description
//!      with json!({ … });                         ──▶ merged into the schema of the struct
//!      pub struct Naming {
//!          /// Name of the copy.                 ──▶ description of the field
//!          @required pub name: String,            ──▶ required: [name]
//!          /// Scope.
//!          pub scope: String = json!({ "enum": … }),  ──▶ merged into the schema of the field
//!      }
//!  }
//! ```

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A type with a schema.
pub(crate) trait Described {
    /// Its schema, as a CRD holds it.
    fn schema() -> Value;
}

/// One field of a struct.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) required: bool,
    pub(crate) schema: fn() -> Value,
    pub(crate) extra: Option<Value>,
}

/// The schema of a struct, with `extra` merged into it.
pub(crate) fn object(fields: &[Field], description: &str, extra: Option<Value>) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut schema = (field.schema)();
        schema["description"] = sentence(field.description).into();
        merge(&mut schema, field.extra.clone());
        properties.insert(camel_case(field.name), schema);
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !description.is_empty() {
        schema["description"] = sentence(description).into();
    }
    let required: Vec<String> = fields.iter().filter(|field| field.required).map(|f| camel_case(f.name)).collect();
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    merge(&mut schema, extra);
    schema
}

fn merge(schema: &mut Value, extra: Option<Value>) {
    if let Some(Value::Object(extra)) = extra {
        for (key, value) in extra {
            schema[key] = value;
        }
    }
}

/// A doc comment as one line of plain text, without Markdown.
fn sentence(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "")
}

fn camel_case(name: &str) -> String {
    let mut words = name.trim_start_matches("r#").split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}

impl Described for String {
    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl Described for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl Described for i64 {
    fn schema() -> Value {
        json!({ "type": "integer", "format": "int64" })
    }
}

/// An object of no fields.
impl Described for Map<String, Value> {
    fn schema() -> Value {
        json!({ "type": "object" })
    }
}

impl<T: Described> Described for Option<T> {
    fn schema() -> Value {
        T::schema()
    }
}

impl<T: Described> Described for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

impl<T: Described> Described for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

/// Declares a struct of the API and its schema; see the top of this module.
macro_rules! described {
    ($(
        $(#[doc = $doc:literal])*
        $(with $extra:expr;)?
        pub struct $name:ident {
            $(
                $(#[doc = $field_doc:literal])*
                $(@$required:ident)?
                pub $field:ident : $type:ty $(= $field_extra:expr)?,
            )*
        }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $(
                $(#[doc = $field_doc])*
                pub $field: $type,
            )*
        }

        impl $name {
            fn fields() -> Vec<crate::api::schema::Field> {
                vec![$(crate::api::schema::Field {
                    name: stringify!($field),
                    description: concat!($($field_doc, "\n"),*),
                    required: described!(@is $($required)?),
                    schema: <$type as crate::api::schema::Described>::schema,
                    extra: described!(@option $($field_extra)?),
                }),*]
            }
        }

        impl crate::api::schema::Described for $name {
            fn schema() -> serde_json::Value {
                let description = concat!($($doc, "\n"),*);
                crate::api::schema::object(&Self::fields(), description, described!(@option $($extra)?))
            }
        }
    )*};
    (@is required) => { true };
    (@is) => { false };
    (@option $value:expr) => { Some($value) };
    (@option) => { None };
}

pub(crate) use described;
