//! Regular expressions as Go programs write them: RE2 syntax, and `$1` in replacements.
//!
//! ```text
//!   pattern ──▶ syntax::translate ──┬─▶ class    [a-z[:digit:]]
//!                                   ├─▶ escape   \n, \x{41}, \101
//!                                   └─▶ unicode  \p{Greek}
//!       the same pattern for the regex crate ──▶ Regex;  replacement ──▶ expand
//! ```

mod class;
mod escape;
mod expand;
mod syntax;
mod unicode;

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

/// Memory that a compiled pattern may take: three times what is usual, because Go takes long repetitions of `\pL`.
const SIZE_LIMIT: usize = 32 << 20;

/// Why a pattern is refused, in the words of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {reason}: `{fragment}`")]
pub struct RegexError {
    /// The pattern as it was given.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
    /// The part of the pattern that is wrong.
    pub fragment: String,
    /// The byte in the pattern at which it shows, if known.
    pub position: Option<usize>,
}

/// A compiled pattern that matches what Go's `regexp` would match.
#[derive(Debug, Clone)]
pub struct GoRegex {
    regex: Regex,
    /// The name of each group, the whole match being the first one; most have none.
    names: Arc<[String]>,
}

impl GoRegex {
    /// Compiles a pattern in RE2 syntax.
    pub fn compile(pattern: &str) -> Result<Self, RegexError> {
        let translated = syntax::translate(pattern).map_err(|error| RegexError {
            pattern: pattern.to_owned(),
            reason: error.reason.to_owned(),
            fragment: error.fragment.to_owned(),
            position: Some(error.position),
        })?;
        // What the translation lets through can only be too large or too deep.
        let too_large = |error: regex::Error| RegexError {
            pattern: pattern.to_owned(),
            reason: match error {
                regex::Error::CompiledTooBig(_) => "expression too large".to_owned(),
                _ => "expression nests too deeply".to_owned(),
            },
            fragment: pattern.to_owned(),
            position: None,
        };
        let regex = RegexBuilder::new(&translated.pattern).size_limit(SIZE_LIMIT).build().map_err(too_large)?;
        Ok(Self { regex, names: translated.names.into() })
    }

    /// Whether the pattern occurs anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Replaces every match; `$1`, `${1}` and `${name}` in the replacement stand for groups, `$$` for a dollar sign.
    /// Groups that do not exist are empty.
    pub fn replace_all(&self, text: &str, replacement: &str) -> String {
        let expand = |captures: &regex::Captures<'_>| expand::expand(replacement, captures, &self.names);
        self.regex.replace_all(text, expand).into_owned()
    }
}
