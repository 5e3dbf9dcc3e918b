//! Regular expressions.

use std::{borrow::Cow, rc::Rc};

use regex::bytes::{Captures, Match, Regex, RegexBuilder};

use super::regex_syntax;
use crate::{
    functions::{
        Args, Function,
        Type::{Int, Str},
    },
    heap::{Builder, Failure, Heap, Outcome},
    runes,
    value::{self, Elem, Value},
};

/// Memory that a compiled expression may take.
const SIZE_LIMIT: usize = 1 << 20;

/// Work of compiling any expression.
const COMPILE_STEPS: usize = 2000;

/// A compiled expression and how many states it has, roughly.
pub(crate) struct Compiled {
    regex: Regex,
    states: usize,
    names: Vec<Option<String>>,
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("regexMatch", &[Str, Str], |heap, args| match is_match(heap, args) {
        // Alone among the functions without `must` this one hides a wrong expression.
        Err(Failure::Message(_)) => Ok(Value::Bool(false)),
        other => other,
    }),
    Function::new("mustRegexMatch", &[Str, Str], is_match),
    Function::new("regexFind", &[Str, Str], find),
    Function::new("mustRegexFind", &[Str, Str], find),
    Function::new("regexFindAll", &[Str, Str, Int], find_all),
    Function::new("mustRegexFindAll", &[Str, Str, Int], find_all),
    Function::new("regexReplaceAll", &[Str, Str, Str], |heap, args| replace(heap, args, false)),
    Function::new("mustRegexReplaceAll", &[Str, Str, Str], |heap, args| replace(heap, args, false)),
    Function::new("regexReplaceAllLiteral", &[Str, Str, Str], |heap, args| replace(heap, args, true)),
    Function::new("mustRegexReplaceAllLiteral", &[Str, Str, Str], |heap, args| replace(heap, args, true)),
    Function::new("regexSplit", &[Str, Str, Int], split),
    Function::new("mustRegexSplit", &[Str, Str, Int], split),
    Function::new("regexQuoteMeta", &[Str], quote_meta),
];

/// The compiled expression, with the work of running it over the text counted.
fn compiled(heap: &Heap, args: Args<'_>) -> Outcome<Rc<Compiled>> {
    let known = heap.regexes.borrow().get(args.bytes(0)?).cloned();
    let compiled = match known {
        Some(compiled) => compiled,
        None => compile(heap, args.bytes(0)?)?,
    };
    // The slowest engine looks at every state for every byte.
    heap.step(args.bytes(1)?.len().saturating_mul(compiled.states) / 64)?;
    Ok(compiled)
}

fn compile(heap: &Heap, expression: &[u8]) -> Outcome<Rc<Compiled>> {
    heap.step(COMPILE_STEPS + expression.len())?;
    let text = std::str::from_utf8(expression).map_err(|_| "regular expression is not UTF-8".to_owned())?;
    let regex_syntax::Translated { expression: translated, states, names } = regex_syntax::translate(text)?;
    heap.step(states / 8)?;
    let regex = RegexBuilder::new(&translated)
        .octal(true)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .build()
        // What the library says quotes the expression, which may have been made from a secret.
        .map_err(|_| "invalid regular expression".to_owned())?;
    let compiled = Rc::new(Compiled { regex, states, names });
    heap.regexes.borrow_mut().insert(expression.to_vec(), compiled.clone());
    Ok(compiled)
}

/// The text that an expression runs over. Go takes every byte that is not UTF-8 for a replacement character, so the expression
/// sees one.
struct Subject<'t> {
    original: &'t [u8],
    seen: Cow<'t, [u8]>,
    /// Where the bytes of `seen` come from, where that differs from the original.
    origins: Vec<usize>,
}

impl<'t> Subject<'t> {
    fn new(heap: &Heap, original: &'t [u8]) -> Outcome<Subject<'t>> {
        if std::str::from_utf8(original).is_ok() {
            return Ok(Subject { original, seen: Cow::Borrowed(original), origins: Vec::new() });
        }
        heap.take(32 * original.len())?;
        let (mut seen, mut origins, mut at) = (Vec::new(), Vec::new(), 0);
        for (c, piece) in runes::pieces(original) {
            seen.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            origins.resize(seen.len(), at);
            at += piece.len();
        }
        origins.push(at);
        Ok(Subject { original, seen: Cow::Owned(seen), origins })
    }

    /// A place in the original.
    fn origin(&self, at: usize) -> usize {
        self.origins.get(at).copied().unwrap_or(at)
    }

    /// A part of the original.
    fn part(&self, start: usize, end: usize) -> &'t [u8] {
        &self.original[self.origin(start)..self.origin(end)]
    }

    fn matched(&self, found: &Match<'_>) -> &'t [u8] {
        self.part(found.start(), found.end())
    }
}

fn is_match(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let subject = Subject::new(heap, args.bytes(1)?)?;
    Ok(compiled(heap, args)?.regex.is_match(&subject.seen).into())
}

fn find(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let compiled = compiled(heap, args)?;
    let subject = Subject::new(heap, args.bytes(1)?)?;
    heap.str(compiled.regex.find(&subject.seen).map_or(b"".as_slice(), |found| subject.matched(&found)))
}

/// Whether a match is one in Go as well: an empty one never lies inside a character there.
fn counts(text: &[u8], found: &Match<'_>) -> bool {
    let inside = text.get(found.start()).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    !found.is_empty() || !inside
}

/// A negative number of matches means all of them.
fn most(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn find_all(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let compiled = compiled(heap, args)?;
    let mut all = Vec::new();
    let subject = Subject::new(heap, args.bytes(1)?)?;
    let matches = compiled.regex.find_iter(&subject.seen).filter(|found| counts(&subject.seen, found));
    for found in matches.take(most(args.int(2)?)) {
        heap.step(1)?;
        all.push(value::Str::from(subject.matched(&found)));
    }
    if all.is_empty() { Ok(heap.nil_list(Elem::Str)) } else { heap.str_list(all) }
}

fn replace(heap: &Heap, args: Args<'_>, literal: bool) -> Outcome<Value> {
    let compiled = compiled(heap, args)?;
    let (subject, replacement) = (Subject::new(heap, args.bytes(1)?)?, args.bytes(2)?);
    let text: &[u8] = &subject.seen;
    let mut out = heap.builder();
    let mut start = 0;
    for captures in compiled.regex.captures_iter(text) {
        heap.step(1)?;
        let Some(whole) = captures.get(0).filter(|found| counts(text, found)) else { continue };
        out.push(subject.part(start, whole.start()))?;
        if literal {
            out.push(replacement)?;
        } else {
            expand(&mut out, replacement, |name| group(name, &subject, &captures, &compiled.names))?;
        }
        start = whole.end();
    }
    out.push(subject.part(start, text.len()))?;
    out.value()
}

/// Writes a replacement with `$1`, `$name` and `${name}` filled in.
fn expand<'t>(out: &mut Builder<'_>, replacement: &[u8], group: impl Fn(&[u8]) -> &'t [u8]) -> Outcome<()> {
    let mut rest = replacement;
    while let Some(dollar) = rest.iter().position(|b| *b == b'$') {
        out.push(&rest[..dollar])?;
        rest = &rest[dollar + 1..];
        if let Some(tail) = rest.strip_prefix(b"$") {
            out.push(b"$")?;
            rest = tail;
            continue;
        }
        match reference(rest) {
            Some((name, tail)) => {
                out.push(group(name))?;
                rest = tail;
            }
            // Malformed, so the dollar stands for itself.
            None => out.push(b"$")?,
        }
    }
    out.push(rest)
}

/// The name behind a dollar, and what follows it.
fn reference(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (text, braced) = text.strip_prefix(b"{").map_or((text, false), |text| (text, true));
    let word = runes::pieces(text).take_while(|(c, _)| c.is_alphanumeric() || *c == '_');
    let length = word.map(|(_, piece)| piece.len()).sum();
    let (name, rest) = text.split_at(length);
    if name.is_empty() {
        return None;
    }
    let rest = if braced { rest.strip_prefix(b"}")? } else { rest };
    Some((name, rest))
}

/// What a group matched; nothing when there is no such group.
fn group<'t>(name: &[u8], subject: &Subject<'t>, captures: &Captures<'_>, names: &[Option<String>]) -> &'t [u8] {
    let text = |index: usize| captures.get(index).map(|found| subject.matched(&found));
    let numeric = name.iter().all(u8::is_ascii_digit) && (name == b"0" || !name.starts_with(b"0"));
    if numeric {
        let number = std::str::from_utf8(name).ok().and_then(|digits| digits.parse().ok());
        return number.and_then(text).unwrap_or_default();
    }
    let mut same = names.iter().enumerate().filter(|(_, known)| known.as_ref().is_some_and(|k| k.as_bytes() == name));
    same.find_map(|(index, _)| text(index)).unwrap_or_default()
}

fn split(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let compiled = compiled(heap, args)?;
    let subject = Subject::new(heap, args.bytes(1)?)?;
    let text: &[u8] = &subject.seen;
    let most = most(args.int(2)?);
    if most == 0 {
        return Ok(heap.nil_list(Elem::Str));
    }
    if text.is_empty() && !args.bytes(0)?.is_empty() {
        return heap.str_list(vec!["".into()]);
    }
    let mut parts = Vec::new();
    let mut start = 0;
    let mut end = 0;
    for found in compiled.regex.find_iter(text).filter(|found| counts(text, found)).take(most) {
        if parts.len() == most - 1 {
            break;
        }
        heap.step(1)?;
        end = found.start();
        // An empty match at the very beginning splits nothing off.
        if found.end() != 0 {
            parts.push(value::Str::from(subject.part(start, end)));
        }
        start = found.end();
    }
    if end != text.len() {
        parts.push(value::Str::from(subject.part(start, text.len())));
    }
    heap.str_list(parts)
}

fn quote_meta(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut out = heap.builder();
    for byte in args.bytes(0)? {
        if br"\.+*?()|[]{}^$".contains(byte) {
            out.push(b"\\")?;
        }
        out.push(&[*byte])?;
    }
    out.value()
}
