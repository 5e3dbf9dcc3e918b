//! Regular expressions.

use std::rc::Rc;

use regex::bytes::{Regex, RegexBuilder};

use super::regex_syntax;
use crate::{
    functions::{
        Args, Function,
        Type::{Int, Str},
    },
    heap::{Failure, Heap, Outcome},
    value::{self, Elem, Value},
};

/// Memory that a compiled expression may take.
const SIZE_LIMIT: usize = 1 << 20;

/// Work of compiling an expression.
const COMPILE_STEPS: usize = 1000;

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

/// The compiled expression, and the work of running it over the text counted.
fn compiled(heap: &Heap, args: Args<'_>) -> Outcome<Rc<Regex>> {
    let expression = args.bytes(0)?;
    // The slowest engine looks at every part of the expression for every byte.
    heap.step(args.bytes(1)?.len() / 64 * (1 + expression.len() / 8))?;
    if let Some(regex) = heap.regexes.borrow().get(expression) {
        return Ok(regex.clone());
    }
    heap.step(COMPILE_STEPS + expression.len())?;
    let text = std::str::from_utf8(expression).map_err(|_| "regular expression is not UTF-8".to_owned())?;
    let translated = regex_syntax::translate(text)?;
    let regex = RegexBuilder::new(&translated)
        .octal(true)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .build()
        .map_err(|error| format!("invalid regular expression {text:?}: {error}"))?;
    let regex = Rc::new(regex);
    heap.regexes.borrow_mut().insert(expression.to_vec(), regex.clone());
    Ok(regex)
}

fn is_match(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    Ok(compiled(heap, args)?.is_match(args.bytes(1)?).into())
}

fn find(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let regex = compiled(heap, args)?;
    heap.str(regex.find(args.bytes(1)?).map_or(b"".as_slice(), |found| found.as_bytes()))
}

/// A negative number of matches means all of them.
fn most(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn find_all(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let regex = compiled(heap, args)?;
    let mut all = Vec::new();
    for found in regex.find_iter(args.bytes(1)?).take(most(args.int(2)?)) {
        heap.step(1)?;
        all.push(value::Str::from(found.as_bytes()));
    }
    if all.is_empty() { Ok(heap.nil_list(Elem::Str)) } else { heap.str_list(all) }
}

fn replace(heap: &Heap, args: Args<'_>, literal: bool) -> Outcome<Value> {
    let regex = compiled(heap, args)?;
    let (text, replacement) = (args.bytes(1)?, args.bytes(2)?);
    let mut out = heap.builder();
    let mut start = 0;
    for captures in regex.captures_iter(text) {
        heap.step(1)?;
        let Some(whole) = captures.get(0) else { continue };
        out.push(&text[start..whole.start()])?;
        if literal {
            out.push(replacement)?;
        } else {
            // Every two bytes may stand for the whole match.
            heap.take(replacement.len() / 2 * whole.len())?;
            let mut expanded = Vec::new();
            captures.expand(replacement, &mut expanded);
            out.push(&expanded)?;
        }
        start = whole.end();
    }
    out.push(&text[start..])?;
    out.value()
}

fn split(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let regex = compiled(heap, args)?;
    let text = args.bytes(1)?;
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
    for found in regex.find_iter(text).take(most) {
        if parts.len() == most - 1 {
            break;
        }
        heap.step(1)?;
        end = found.start();
        // An empty match at the very beginning splits nothing off.
        if found.end() != 0 {
            parts.push(value::Str::from(&text[start..end]));
        }
        start = found.end();
    }
    if end != text.len() {
        parts.push(value::Str::from(&text[start..]));
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
