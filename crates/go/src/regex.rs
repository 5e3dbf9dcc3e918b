//! Regular expressions as Go programs write them: RE2 syntax, its error messages, and `$1` in replacements.
//!
//! ```text
//!   pattern ──▶ syntax::translate ──┬─▶ class    [a-z[:digit:]]
//!                                   ├─▶ escape   \n, \x{41}, \101
//!                                   └─▶ unicode  \p{Greek}
//!       the same pattern for the regex crate ──▶ GoRegex;  replacement ──▶ expand
//! ```
//!
//! Deviations from Go, each on purpose:
//!
//! * A compiled pattern may take 32 MiB (or what [`Pattern::compile`] is given) and nest 250 levels, else it is `expression too large` or
//!   `nests too deeply`. Go allows more, notably for repetitions of large Unicode classes (`\pL{1000}`).
//! * `\p{Old_Persian}` and other names of scripts with underscores work. Go 1.26 refuses them, earlier versions do not.
//! * Unicode classes are those of the `regex` crate's version of Unicode; Go 1.26 has 15.0.

mod class;
mod escape;
mod expand;
mod syntax;
mod text;
mod unicode;

use std::ops::Range;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

pub use expand::{Piece, pieces};

/// Memory that a compiled pattern may take: three times what is usual, because Go takes long repetitions of `\pL`.
const SIZE_LIMIT: usize = 32 << 20;

/// Memory that matching may take in addition.
const CACHE_LIMIT: usize = 2 << 20;

/// Why a pattern is refused, in the words of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {reason}: `{fragment}`")]
#[non_exhaustive]
pub struct RegexError {
    /// The pattern as it was given.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: &'static str,
    /// The part of the pattern that is wrong.
    pub fragment: String,
    /// The byte in the pattern at which it shows, if known.
    pub position: Option<usize>,
}

/// A pattern that Go accepts, not compiled yet.
///
/// ```
/// use carrick_go::regex::Pattern;
///
/// let refused = Pattern::parse("a**").err().unwrap();
/// assert_eq!(refused.to_string(), "error parsing regexp: invalid nested repetition operator: `**`");
/// ```
#[derive(Debug, Clone)]
pub struct Pattern {
    original: Arc<str>,
    translated: String,
    names: Vec<String>,
    states: usize,
}

impl Pattern {
    /// Reads a pattern in RE2 syntax.
    pub fn parse(pattern: &str) -> Result<Self, RegexError> {
        let translated = syntax::translate(pattern).map_err(|error| RegexError {
            pattern: pattern.to_owned(),
            reason: error.reason,
            fragment: error.fragment.to_owned(),
            position: Some(error.position),
        })?;
        let syntax::Translated { pattern: text, names, states } = translated;
        Ok(Self { original: pattern.into(), translated: text, names, states })
    }

    /// The same pattern in the syntax of the `regex` crate.
    pub fn translated(&self) -> &str {
        &self.translated
    }

    /// How many states it will have, roughly: what compiling it costs, and matching each byte with it at worst.
    pub fn states(&self) -> usize {
        self.states
    }

    /// Compiles it, if that takes at most `size_limit` bytes of memory.
    pub fn compile(self, size_limit: usize) -> Result<GoRegex, RegexError> {
        // What the translation lets through can only be too large or too deep.
        let too_large = |error: regex::Error| RegexError {
            pattern: self.original.to_string(),
            reason: match error {
                regex::Error::CompiledTooBig(_) => "expression too large",
                _ => "expression nests too deeply",
            },
            fragment: self.original.to_string(),
            position: None,
        };
        let mut builder = RegexBuilder::new(&self.translated);
        builder.size_limit(size_limit).dfa_size_limit(CACHE_LIMIT.min(size_limit));
        let regex = builder.build().map_err(too_large)?;
        Ok(GoRegex { regex, pattern: self.original, names: self.names.into(), states: self.states })
    }
}

/// A compiled pattern that matches what Go's `regexp` would match.
#[derive(Debug, Clone)]
pub struct GoRegex {
    regex: Regex,
    pattern: Arc<str>,
    /// The name of each group, the whole match being the first one; most have none.
    names: Arc<[String]>,
    states: usize,
}

impl GoRegex {
    /// Compiles a pattern in RE2 syntax.
    pub fn compile(pattern: &str) -> Result<Self, RegexError> {
        Pattern::parse(pattern)?.compile(SIZE_LIMIT)
    }

    /// The pattern as it was given.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// How many states it has, roughly.
    pub fn states(&self) -> usize {
        self.states
    }

    /// Whether the pattern occurs anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Where the pattern occurs first.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        self.regex.find(text).map(|found| found.range())
    }

    /// Where the pattern occurs, one after the other.
    pub fn find_iter(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        self.regex.find_iter(text).map(|found| found.range())
    }

    /// The same with groups.
    pub fn groups_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Groups<'a>> {
        self.regex.captures_iter(text).map(|captures| Groups { captures, names: &self.names })
    }

    /// Replaces every match; `$1`, `${1}` and `${name}` in the replacement stand for groups, `$$` for a dollar sign.
    /// Groups that do not exist are empty.
    ///
    /// ```
    /// use carrick_go::regex::GoRegex;
    ///
    /// let regex = GoRegex::compile("^(?P<name>.*):latest$").unwrap();
    /// assert_eq!(regex.replace_all("nginx:latest", "${name}:v1"), "nginx:v1");
    /// ```
    pub fn replace_all(&self, text: &str, replacement: &str) -> String {
        let mut out = Vec::with_capacity(text.len());
        let mut start = 0;
        for groups in self.groups_iter(text) {
            let whole = groups.whole();
            out.extend_from_slice(&text.as_bytes()[start..whole.start]);
            for piece in pieces(replacement.as_bytes()) {
                match piece {
                    Piece::Text(text) => out.extend_from_slice(text),
                    Piece::Group(name) => out.extend_from_slice(&text.as_bytes()[groups.get(name).unwrap_or(0..0)]),
                }
            }
            start = whole.end;
        }
        out.extend_from_slice(&text.as_bytes()[start..]);
        // Pieces are cut between characters.
        String::from_utf8(out).unwrap_or_default()
    }
}

/// A match with its groups.
#[derive(Debug)]
pub struct Groups<'a> {
    captures: regex::Captures<'a>,
    names: &'a [String],
}

impl Groups<'_> {
    /// Where the whole pattern matched.
    pub fn whole(&self) -> Range<usize> {
        self.captures.get(0).map_or(0..0, |found| found.range())
    }

    /// Where the group with a number or a name matched; none when it took no part, or when there is no such group. Several groups may
    /// share a name: the first one that took part counts.
    pub fn get(&self, name: &[u8]) -> Option<Range<usize>> {
        let at = |index: usize| self.captures.get(index).map(|found| found.range());
        let number = name.iter().all(u8::is_ascii_digit) && (name == b"0" || !name.starts_with(b"0"));
        if number {
            return std::str::from_utf8(name).ok()?.parse().ok().and_then(at);
        }
        let same = self.names.iter().enumerate().filter(|(_, known)| known.as_bytes() == name);
        same.map(|(index, _)| index).find_map(at)
    }
}

/// `regexp.QuoteMeta`: a pattern that matches the text and nothing else.
pub fn quote_meta(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if br"\.+*?()|[]{}^$".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}
