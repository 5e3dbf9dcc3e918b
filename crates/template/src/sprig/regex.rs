//! Regular expressions.

use std::{borrow::Cow, ops::Range, rc::Rc};

use carrick_go::regex::{GoRegex, Groups, Pattern, Piece, RegexError, pieces, quote_meta};

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
    Function::new("regexQuoteMeta", &[Str], |heap, args| {
        heap.take(args.bytes(0)?.len())?;
        heap.str(quote_meta(args.bytes(0)?))
    }),
];

/// The compiled expression, with the work of running it over the text counted.
fn compiled(heap: &Heap, args: Args<'_>) -> Outcome<Rc<GoRegex>> {
    let known = heap.regexes.borrow().get(args.bytes(0)?).cloned();
    let compiled = match known {
        Some(compiled) => compiled,
        None => compile(heap, args.bytes(0)?)?,
    };
    // The slowest engine looks at every state for every byte.
    heap.step(args.bytes(1)?.len().saturating_mul(compiled.states()) / 64)?;
    Ok(compiled)
}

fn compile(heap: &Heap, expression: &[u8]) -> Outcome<Rc<GoRegex>> {
    heap.step(COMPILE_STEPS + expression.len())?;
    let text = std::str::from_utf8(expression).map_err(|_| "regular expression is not UTF-8".to_owned())?;
    // The whole message quotes the expression, which may have been made from a secret.
    let refused = |error: RegexError| format!("error parsing regexp: {}", error.reason);
    let pattern = Pattern::parse(text).map_err(refused)?;
    heap.step(pattern.states() / 8)?;
    let compiled = Rc::new(pattern.compile(SIZE_LIMIT).map_err(refused)?);
    heap.regexes.borrow_mut().insert(expression.to_vec(), compiled.clone());
    Ok(compiled)
}

/// The text that an expression runs over. Go takes every byte that is not UTF-8 for a replacement character, so the expression
/// sees one.
struct Subject<'t> {
    original: &'t [u8],
    seen: Cow<'t, str>,
    /// Where the bytes of `seen` come from, where that differs from the original.
    origins: Vec<usize>,
}

impl<'t> Subject<'t> {
    fn new(heap: &Heap, original: &'t [u8]) -> Outcome<Subject<'t>> {
        if let Ok(text) = std::str::from_utf8(original) {
            return Ok(Subject { original, seen: Cow::Borrowed(text), origins: Vec::new() });
        }
        heap.take(32 * original.len())?;
        let (mut seen, mut origins, mut at) = (String::new(), Vec::new(), 0);
        for (c, piece) in runes::pieces(original) {
            seen.push(c);
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
    fn part(&self, range: Range<usize>) -> &'t [u8] {
        &self.original[self.origin(range.start)..self.origin(range.end)]
    }
}

fn is_match(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let subject = Subject::new(heap, args.bytes(1)?)?;
    Ok(compiled(heap, args)?.is_match(&subject.seen).into())
}

fn find(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let compiled = compiled(heap, args)?;
    let subject = Subject::new(heap, args.bytes(1)?)?;
    heap.str(compiled.find(&subject.seen).map_or(b"".as_slice(), |found| subject.part(found)))
}

/// A negative number of matches means all of them.
fn most(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn find_all(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let compiled = compiled(heap, args)?;
    let mut all = Vec::new();
    let subject = Subject::new(heap, args.bytes(1)?)?;
    for found in compiled.find_iter(&subject.seen).take(most(args.int(2)?)) {
        heap.step(1)?;
        all.push(value::Str::from(subject.part(found)));
    }
    if all.is_empty() { Ok(heap.nil_list(Elem::Str)) } else { heap.str_list(all) }
}

fn replace(heap: &Heap, args: Args<'_>, literal: bool) -> Outcome<Value> {
    let compiled = compiled(heap, args)?;
    let (subject, replacement) = (Subject::new(heap, args.bytes(1)?)?, args.bytes(2)?);
    let mut out = heap.builder();
    let mut start = 0;
    for groups in compiled.groups_iter(&subject.seen) {
        heap.step(1)?;
        let whole = groups.whole();
        out.push(subject.part(start..whole.start))?;
        if literal {
            out.push(replacement)?;
        } else {
            expand(&mut out, replacement, &subject, &groups)?;
        }
        start = whole.end;
    }
    out.push(subject.part(start..subject.seen.len()))?;
    out.value()
}

/// Writes a replacement with `$1`, `$name` and `${name}` filled in.
fn expand(out: &mut Builder<'_>, replacement: &[u8], subject: &Subject<'_>, groups: &Groups<'_>) -> Outcome<()> {
    pieces(replacement).try_for_each(|piece| match piece {
        Piece::Text(text) => out.push(text),
        Piece::Group(name) => groups.get(name).map_or(Ok(()), |found| out.push(subject.part(found))),
    })
}

fn split(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let compiled = compiled(heap, args)?;
    let subject = Subject::new(heap, args.bytes(1)?)?;
    let text = &*subject.seen;
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
    for found in compiled.find_iter(text).take(most) {
        if parts.len() == most - 1 {
            break;
        }
        heap.step(1)?;
        end = found.start;
        // An empty match at the very beginning splits nothing off.
        if found.end != 0 {
            parts.push(value::Str::from(subject.part(start..end)));
        }
        start = found.end;
    }
    if end != text.len() {
        parts.push(value::Str::from(subject.part(start..text.len())));
    }
    heap.str_list(parts)
}
