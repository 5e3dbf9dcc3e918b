//! The kinds of values.

use std::fmt;

/// The kinds of results that gjson distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`, or nothing there.
    Null,
    /// `false`.
    False,
    /// A number.
    Number,
    /// A string.
    String,
    /// `true`.
    True,
    /// An object or an array.
    Json,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Null => "Null",
            Kind::False => "False",
            Kind::Number => "Number",
            Kind::String => "String",
            Kind::True => "True",
            Kind::Json => "JSON",
        })
    }
}
