//! Patterns as RE2 understands them.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};

use crate::budget::Budget;
use crate::eval::{Outcome, overload};
use crate::expression::EvalError;
use crate::functions::failed;
use crate::signature::Row;
use crate::value::Value;

/// `matches` belongs to the standard library.
pub(crate) const STANDARD_ROWS: &[Row] = &[("matches(string, string): bool\nstring.matches(string): bool", matches)];

/// The pattern functions of Kubernetes.
pub(crate) const ROWS: &[Row] = &[
    ("string.find(string): string", find),
    ("string.findAll(string): list(string)\nstring.findAll(string, int): list(string)", find_all),
];

/// Memory that a compiled pattern may take.
const SIZE: usize = 1 << 20;

/// What compiling costs, besides its length: it is far slower than a step.
const COMPILING: u64 = 1_000;

/// Compiles a pattern.
pub(crate) fn compile(pattern: &str, budget: &Budget) -> Result<Regex, EvalError> {
    let weight = weight(pattern).ok_or_else(|| failed("matches"))?;
    budget.charge(COMPILING + (pattern.len() as u64).saturating_add(weight) * 10)?;
    let translated = translate(pattern).ok_or_else(|| failed("matches"))?;
    RegexBuilder::new(&translated).size_limit(SIZE).build().map_err(|_| failed("matches"))
}

/// Compiles a literal in place.
pub(crate) fn literal(pattern: &mut Value) -> Result<(), EvalError> {
    if let Value::String(text) = pattern {
        *pattern = Value::Pattern(compile(text, &Budget::new())?.into());
    }
    Ok(())
}

/// The pattern and the text of a call, paid for.
fn prepared<'a>(name: &str, arguments: &'a [Value], budget: &Budget) -> Result<(&'a str, Cow<'a, Regex>), EvalError> {
    match arguments {
        [Value::String(text), Value::Pattern(pattern), ..] => {
            budget.bytes(text.len().saturating_mul(2 + pattern.as_str().len() / 4))?;
            Ok((text, Cow::Borrowed(pattern)))
        }
        [Value::String(text), Value::String(pattern), ..] => {
            budget.bytes(text.len().saturating_mul(2 + pattern.len() / 4))?;
            Ok((text, Cow::Owned(compile(pattern, budget)?)))
        }
        _ => Err(overload(name, arguments)),
    }
}

fn matches(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, pattern) = prepared("matches", arguments, budget)?;
    Ok(Value::Bool(pattern.is_match(text)))
}

fn find(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, pattern) = prepared("find", arguments, budget)?;
    Ok(Value::string(pattern.find(text).map_or("", |found| found.as_str())))
}

fn find_all(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, pattern) = prepared("findAll", arguments, budget)?;
    let limit = match arguments {
        [_, _, Value::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let mut found = Vec::new();
    for part in pattern.find_iter(text).take(limit) {
        budget.step()?;
        found.push(Value::string(part.as_str()));
    }
    Ok(Value::list(found))
}

/// Rewrites what RE2 and the regex crate read differently: `\d`, `\w`, `\s` and `\b` are ASCII in RE2, `\Q…\E` quotes,
/// and `[`, `&`, `~` have no meaning inside a class. None for what RE2 refuses.
fn translate(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let (mut class, mut repeated) = (false, false);
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next()? {
                'Q' if !class => {
                    let text: String = rest.by_ref().collect();
                    let (quoted, after) = text.split_once("\\E").unwrap_or((&text, ""));
                    out.push_str(&regex::escape(quoted));
                    out.push_str(&translate(after)?);
                    return Some(out);
                }
                'd' => out.push_str(if class { "0-9" } else { "[0-9]" }),
                'D' => out.push_str("[^0-9]"),
                'w' => out.push_str(if class { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
                'W' => out.push_str("[^0-9A-Za-z_]"),
                's' => out.push_str(if class { "\\t\\n\\f\\r " } else { "[\\t\\n\\f\\r ]" }),
                'S' => out.push_str("[^\\t\\n\\f\\r ]"),
                'b' if !class => out.push_str("(?-u:\\b)"),
                // word boundaries elsewhere, but not here
                angle @ ('<' | '>') => out.push(angle),
                other => {
                    out.push('\\');
                    out.push(other);
                }
            },
            '[' if class && rest.peek() == Some(&':') => {
                let mut name = String::from("[");
                while let Some(c) = rest.next() {
                    name.push(c);
                    if c == ':' && rest.peek() == Some(&']') && name.len() > 2 {
                        rest.next();
                        name.push(']');
                        break;
                    }
                }
                out.push_str(&name);
            }
            '[' if class => out.push_str("\\["),
            '[' => {
                class = true;
                out.push('[');
                if rest.peek() == Some(&'^') {
                    rest.next();
                    out.push('^');
                }
                // a closing bracket right at the start is meant as itself
                if rest.peek() == Some(&']') {
                    rest.next();
                    out.push_str("\\]");
                }
            }
            ']' if class => {
                class = false;
                out.push(']');
            }
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
            }
            '-' if class && rest.peek() == Some(&'-') => {
                rest.next();
                out.push_str("-\\-");
            }
            '{' if !class => {
                let counted: String = rest.clone().take_while(|c| *c != '}').collect();
                match repetition(&counted, rest.clone().any(|c| c == '}')) {
                    Some(most) if most > MAX_REPETITION || repeated => return None,
                    Some(_) => {
                        out.push('{');
                        out.extend(rest.by_ref().take(counted.len() + 1));
                        lazy(&mut out, &mut rest);
                        repeated = true;
                        continue;
                    }
                    None => out.push_str("\\{"),
                }
            }
            '*' | '+' | '?' if !class => {
                if repeated {
                    return None;
                }
                out.push(c);
                lazy(&mut out, &mut rest);
                repeated = true;
                continue;
            }
            '(' if !class && rest.peek() == Some(&'?') => {
                let flags: String = rest.clone().skip(1).take_while(|c| c.is_ascii_alphabetic() || *c == '-').collect();
                let named = flags == "P" || flags.is_empty();
                if !named && !flags.chars().all(|c| "imsU-".contains(c)) {
                    return None;
                }
                out.push_str("(?");
                rest.next();
            }
            other => out.push(other),
        }
        repeated = false;
    }
    Some(out)
}

/// A group while it is read.
#[derive(Default)]
struct Group {
    sum: u64,
    /// The last item, which a repetition multiplies.
    last: u64,
    /// How often the last item is repeated in all, and the most of all items.
    repeated: u32,
    most: u32,
}

impl Group {
    fn item(&mut self, weight: u64, repeated: u32) {
        self.sum = self.sum.saturating_add(self.last);
        (self.last, self.repeated) = (weight, repeated);
        self.most = self.most.max(repeated);
    }
}

/// How large a pattern becomes when it is compiled, roughly; none when repetitions within each other are too many.
fn weight(pattern: &str) -> Option<u64> {
    let mut groups = vec![Group::default()];
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        let mut closed = None;
        let group = groups.last_mut()?;
        match c {
            '(' => groups.push(Group::default()),
            ')' => closed = groups.pop(),
            '\\' => match rest.next() {
                // a class of Unicode
                Some('p' | 'P') => group.item(300, 1),
                _ => group.item(1, 1),
            },
            '[' => {
                let mut length = 0;
                while let Some(c) = rest.next().filter(|c| *c != ']' || length == 0) {
                    length += 1;
                    if c == '\\' {
                        rest.next();
                    }
                }
                group.item(3, 1);
            }
            '.' => group.item(5, 1),
            '{' => {
                let inside: String = rest.clone().take_while(|c| *c != '}').collect();
                if let Some(times) = repetition(&inside, true).map(|times| times.max(1)) {
                    group.last = group.last.saturating_mul(u64::from(times));
                    group.repeated = group.repeated.checked_mul(times).filter(|all| *all <= MAX_REPETITION)?;
                    group.most = group.most.max(group.repeated);
                }
            }
            _ => group.item(1, 1),
        }
        if let (Some(closed), Some(group)) = (closed, groups.last_mut()) {
            group.item(closed.sum.saturating_add(closed.last), closed.most.max(1));
        }
    }
    groups.iter().map(|group| group.sum.saturating_add(group.last)).reduce(u64::saturating_add)
}

/// The most repetitions that RE2 accepts.
const MAX_REPETITION: u32 = 1_000;

/// The largest number of `2`, `2,` or `2,5`, if that is what stands between braces.
fn repetition(inside: &str, closed: bool) -> Option<u32> {
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
    if !closed || least.is_empty() || !digits(least) || !digits(most) {
        return None;
    }
    let number = |text: &str| text.parse().unwrap_or(u32::MAX);
    Some(number(least).max(if most.is_empty() { 0 } else { number(most) }))
}

/// A question mark after a repetition makes it lazy.
fn lazy(out: &mut String, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if rest.peek() == Some(&'?') {
        rest.next();
        out.push('?');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_re2() {
        for (pattern, text, want) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "१२", false),
            (r"^\w$", "é", false),
            (r"^[\w-]+$", "a-b", true),
            (r"^[^\s]+$", "a b", false),
            (r"\bfoo\b", "a foo b", true),
            (r"^\Qa.b\E+$", "a.bb", true),
            (r"^[a&&b]+$", "&", true),
            (r"^[[a]+$", "[", true),
            (r"^[]a]+$", "]", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^(?i)abc$", "ABC", true),
            (r"^.$", "é", true),
            (r"^[a-z]{1,63}(\.[a-z]{1,63})*$", "a.b", true),
            (r"^(a{100}){10}$", "a", false),
        ] {
            assert_eq!(compile(pattern, &Budget::new()).unwrap().is_match(text), want, "{pattern} on {text}");
        }
        for wrong in ["[", "(", "a**b(", r"\", r"(?=a)", "((((x{9}){9}){9}){9})", "(a{101}){10}"] {
            assert!(compile(wrong, &Budget::new()).is_err(), "{wrong}");
        }
    }
}
