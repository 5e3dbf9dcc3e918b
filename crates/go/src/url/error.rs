//! Why a text is not a URL.

use std::fmt;

use crate::quote::{self, Charset};

/// Why a text is not a URL, in Go's words: `parse "a b://": first path segment in URL cannot contain colon`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    text: String,
    fault: Fault,
}

/// What is wrong, the part of the text that is wrong, and where that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub what: &'static str,
    pub shown: Option<String>,
    pub place: &'static str,
}

impl UrlError {
    /// What is wrong without any part of the text, which may be a secret.
    pub fn plain(&self) -> String {
        [self.fault.what, self.fault.place].join(" ").trim_end().trim_end_matches(':').to_owned()
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { what, shown, place } = &self.fault;
        write!(f, "parse {}: {what}", self.text)?;
        shown.iter().try_for_each(|shown| write!(f, " {shown}"))?;
        if place.is_empty() { Ok(()) } else { write!(f, " {place}") }
    }
}

impl std::error::Error for UrlError {}

impl From<&'static str> for Fault {
    fn from(what: &'static str) -> Self {
        Fault { what, shown: None, place: "" }
    }
}

impl Fault {
    /// A fault that shows a part of the text.
    pub fn about(what: &'static str, part: &[u8], place: &'static str) -> Self {
        Fault { what, shown: Some(quoted(part)), place }
    }

    /// The error of this fault in a text.
    pub fn of(self, text: &[u8]) -> UrlError {
        UrlError { text: quoted(text), fault: self }
    }
}

/// A text in quotes.
pub(super) fn quoted(text: &[u8]) -> String {
    quote::quote(text, Charset::Printable)
}
