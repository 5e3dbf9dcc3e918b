//! Replacements: `$1` and `${name}` stand for what the groups matched.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The replacement with the groups of a match filled in.
pub(super) fn expand(template: &str, captures: &Captures<'_>, names: &[String]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = group_name(rest) {
            out.push_str(group(name, captures, names));
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
    let end = inner.find(|c| !is_word(c)).unwrap_or(inner.len());
    let (name, after) = inner.split_at(end);
    let after = if inner.len() == text.len() { after } else { after.strip_prefix('}')? };
    (!name.is_empty()).then_some((name, after))
}

/// Letters and decimal digits of all scripts, and underscores.
fn is_word(c: char) -> bool {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\pL\p{Nd}]$").ok());
    match c {
        '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => true,
        _ if c.is_ascii() => false,
        _ => WORD.as_ref().is_some_and(|word| word.is_match(c.encode_utf8(&mut [0; 4]))),
    }
}

/// What a group matched. Several groups may share a name: the first one that took part counts.
fn group<'t>(name: &str, captures: &Captures<'t>, names: &[String]) -> &'t str {
    let leading_zero = name.len() > 1 && name.starts_with('0');
    let found = match name.parse::<usize>() {
        Ok(index) if !leading_zero => captures.get(index),
        _ => names.iter().enumerate().filter(|(_, known)| *known == name).find_map(|(index, _)| captures.get(index)),
    };
    found.map_or("", |found| found.as_str())
}
