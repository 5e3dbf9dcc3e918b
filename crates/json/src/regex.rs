//! Regular expressions as Go programs write them: RE2 syntax, and `$1` in replacements.

mod syntax;

use regex::{Captures, Regex};

/// Why a pattern is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid regular expression '{pattern}': {reason}")]
pub struct RegexError {
    /// The pattern as it was given.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
    /// The byte in the pattern at which it shows, if known.
    pub position: Option<usize>,
}

/// A compiled pattern that matches what Go's `regexp` would match.
#[derive(Debug, Clone)]
pub struct GoRegex {
    regex: Regex,
}

impl GoRegex {
    /// Compiles a pattern in RE2 syntax.
    pub fn compile(pattern: &str) -> Result<Self, RegexError> {
        let refuse = |reason: String| RegexError { pattern: pattern.to_owned(), reason, position: None };
        let translated = syntax::translate(pattern).map_err(|reason| refuse(reason.to_owned()))?;
        let regex = Regex::new(&translated).map_err(|error| refuse(last_line(&error.to_string())))?;
        Ok(Self { regex })
    }

    /// Whether the pattern occurs anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Replaces every match; `$1`, `${1}` and `${name}` in the replacement stand for groups, `$$` for a dollar sign.
    /// Groups that do not exist are empty.
    pub fn replace_all(&self, text: &str, replacement: &str) -> String {
        self.regex.replace_all(text, |captures: &Captures<'_>| expand(replacement, captures)).into_owned()
    }
}

/// The regex crate draws the pattern over several lines and puts the reason last.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or(message).trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn expand(template: &str, captures: &Captures<'_>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = group_name(rest) {
            out.push_str(group(name, captures));
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

/// The group name after a dollar sign and what follows; none when it is malformed.
fn group_name(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('{').unwrap_or(text);
    let end = inner.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(inner.len());
    let (name, after) = inner.split_at(end);
    let after = if inner.len() == text.len() { after } else { after.strip_prefix('}')? };
    (!name.is_empty()).then_some((name, after))
}

fn group<'t>(name: &str, captures: &Captures<'t>) -> &'t str {
    let leading_zero = name.len() > 1 && name.starts_with('0');
    let found = match name.parse::<usize>() {
        Ok(index) if !leading_zero => captures.get(index),
        _ => captures.name(name),
    };
    found.map_or("", |found| found.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_expand_groups_as_go_does() {
        for (pattern, text, replacement, want) in [
            ("a(x*)b", "-ab-axxb-", "T", "-T-T-"),
            ("a(x*)b", "-ab-axxb-", "$1", "--xx-"),
            ("a(x*)b", "-ab-axxb-", "$1W", "---"),
            ("a(x*)b", "-ab-axxb-", "${1}W", "-W-xxW-"),
            ("a(?P<x>x*)b", "-ab-axxb-", "<$x>", "-<>-<xx>-"),
            ("a(?<x>x*)b", "axxb", "${x}!", "xx!"),
            ("(.+)", "abc", "$$1", "$1"),
            ("(.+)", "abc", "$0-$1-$2", "abc-abc-"),
            ("(.+)", "abc", r"\1", r"\1"),
            ("(.+)", "abc", "$ ${ ${1 ${a b} $", "$ ${ ${1 ${a b} $"),
            ("(.+)", "abc", "$01", ""),
            ("(.+)", "abc", "$é", ""),
            ("a*", "baaac", "x", "xbxcx"),
            ("", "ab", "-", "-a-b-"),
            ("^prefix-", "prefix-prefix-x", "", "prefix-x"),
            ("nope", "abc", "$1", "abc"),
            ("[^a]", "aéa", "_", "a_a"),
        ] {
            let regex = GoRegex::compile(pattern).unwrap();
            assert_eq!(regex.replace_all(text, replacement), want, "{pattern} {replacement}");
        }
    }
}
