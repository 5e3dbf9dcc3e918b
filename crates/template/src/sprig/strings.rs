//! Strings.

use super::{cases, search, words};
use crate::{
    fmt,
    functions::{
        Args, Function,
        Type::{Any, Int, Str},
    },
    heap::{Heap, Outcome},
    runes,
    value::{self, Elem, Value},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("hello", &[], |_, _| Ok("Hello!".into())),
    Function::new("abbrev", &[Int, Str], |heap, args| abbreviate(heap, 0, args.int(0)?, args.str(1)?)),
    Function::new("abbrevboth", &[Int, Int, Str], |heap, args| {
        abbreviate(heap, args.int(0)?, args.int(1)?, args.str(2)?)
    }),
    Function::new("trunc", &[Int, Str], trunc),
    Function::new("trim", &[Str], |heap, args| heap.str(trim(args.bytes(0)?, char::is_whitespace))),
    Function::new("upper", &[Str], |heap, args| cases::map(heap, args.bytes(0)?, cases::upper)),
    Function::new("lower", &[Str], |heap, args| cases::map(heap, args.bytes(0)?, cases::lower)),
    Function::new("title", &[Str], |heap, args| cases::title(heap, args.bytes(0)?)),
    Function::new("untitle", &[Str], |heap, args| cases::untitle(heap, args.bytes(0)?)),
    Function::new("swapcase", &[Str], |heap, args| cases::swap(heap, args.bytes(0)?)),
    Function::new("camelcase", &[Str], |heap, args| words::pascal(heap, args.bytes(0)?)),
    Function::new("snakecase", &[Str], |heap, args| words::connect(heap, args.bytes(0)?, '_')),
    Function::new("kebabcase", &[Str], |heap, args| words::connect(heap, args.bytes(0)?, '-')),
    Function::new("substr", &[Int, Int, Str], substr),
    Function::new("repeat", &[Int, Str], repeat),
    Function::new("trimall", &[Str, Str], trim_all),
    Function::new("trimAll", &[Str, Str], trim_all),
    Function::new("trimSuffix", &[Str, Str], |heap, args| {
        let text = args.bytes(1)?;
        heap.str(text.strip_suffix(args.bytes(0)?).unwrap_or(text))
    }),
    Function::new("trimPrefix", &[Str, Str], |heap, args| {
        let text = args.bytes(1)?;
        heap.str(text.strip_prefix(args.bytes(0)?).unwrap_or(text))
    }),
    Function::new("nospace", &[Str], nospace),
    Function::new("initials", &[Str], initials),
    Function::new("wrap", &[Int, Str], |heap, args| wrap(heap, args.int(0)?, b"", args.bytes(1)?, false)),
    Function::new("wrapWith", &[Int, Str, Str], |heap, args| {
        wrap(heap, args.int(0)?, args.bytes(1)?, args.bytes(2)?, true)
    }),
    Function::new("contains", &[Str, Str], |heap, args| {
        search::contains(heap, args.bytes(1)?, args.bytes(0)?).map(Value::Bool)
    }),
    Function::new("hasPrefix", &[Str, Str], |_, args| Ok(args.bytes(1)?.starts_with(args.bytes(0)?).into())),
    Function::new("hasSuffix", &[Str, Str], |_, args| Ok(args.bytes(1)?.ends_with(args.bytes(0)?).into())),
    Function::variadic("quote", &[], Any, quote),
    Function::variadic("squote", &[], Any, squote),
    Function::variadic("cat", &[], Any, cat),
    Function::new("indent", &[Int, Str], |heap, args| indent(heap, args, b"")),
    Function::new("nindent", &[Int, Str], |heap, args| indent(heap, args, b"\n")),
    Function::new("replace", &[Str, Str, Str], |heap, args| {
        search::replace(heap, args.bytes(2)?, args.bytes(0)?, args.bytes(1)?).map(Value::Str)
    }),
    Function::new("plural", &[Str, Str, Int], |_, args| Ok(args.any(usize::from(args.int(2)? != 1))?.clone())),
    Function::new("toString", &[Any], |heap, args| Ok(Value::Str(fmt::to_str(heap, args.any(0)?)?))),
    Function::new("toStrings", &[Any], |heap, args| heap.str_list(strings_of(heap, args.any(0)?)?)),
    Function::new("join", &[Str, Any], join),
    Function::new("sortAlpha", &[Any], |heap, args| {
        let mut strings = match args.any(0)? {
            list @ Value::List(_) => strings_of(heap, list)?,
            other => vec![fmt::to_str(heap, other)?],
        };
        strings.sort();
        heap.str_list(strings)
    }),
    Function::new("split", &[Str, Str], |heap, args| {
        numbered(heap, &search::split(heap, args.bytes(1)?, args.bytes(0)?, usize::MAX)?)
    }),
    Function::new("splitList", &[Str, Str], |heap, args| {
        let parts = search::split(heap, args.bytes(1)?, args.bytes(0)?, usize::MAX)?;
        heap.str_list(parts)
    }),
    Function::new("splitn", &[Str, Int, Str], |heap, args| {
        // A negative number means all parts.
        let most = usize::try_from(args.int(1)?).unwrap_or(usize::MAX);
        numbered(heap, &search::split(heap, args.bytes(2)?, args.bytes(0)?, most)?)
    }),
];

/// An offset that a slice expression of Go accepts.
fn offset(position: i64, length: usize) -> Outcome<usize> {
    let offset = usize::try_from(position).ok().filter(|offset| *offset <= length);
    offset.ok_or_else(|| format!("slice bounds out of range: {position} in a string of {length} bytes").into())
}

fn trunc(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let (count, text) = (args.int(0)?, args.bytes(1)?);
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if size >= text.len() {
        return heap.str(text);
    }
    heap.str(if count < 0 { &text[text.len() - size..] } else { &text[..size] })
}

fn substr(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let (start, end, text) = (args.int(0)?, args.int(1)?, args.bytes(2)?);
    let beyond = usize::try_from(end).map_or(true, |end| end > text.len());
    if start < 0 {
        return heap.str(&text[..offset(end, text.len())?]);
    }
    let start = offset(start, text.len())?;
    let end = if beyond { text.len() } else { offset(end, text.len())? };
    if start > end {
        return Err(format!("slice bounds out of range: {start} is behind {end}").into());
    }
    heap.str(&text[start..end])
}

fn abbreviate(heap: &Heap, left: i64, width: i64, text: &value::Str) -> Outcome<Value> {
    let bytes = text.as_bytes();
    let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    if width < 4 || left > 0 && width < 7 || length <= width {
        return Ok(Value::Str(text.clone()));
    }
    let kept = width - 3;
    let offset = left.min(length).min(length - kept);
    let at = |position: i64| usize::try_from(position).unwrap_or(0).min(bytes.len());
    let mut out = heap.builder();
    if offset <= 4 {
        out.push(&bytes[..at(kept)])?;
        out.text("...")?;
    } else if width < 7 {
        // The marks would leave no room.
    } else if offset + kept < length {
        out.text("...")?;
        out.push(&bytes[at(offset)..at(offset + kept - 3)])?;
        out.text("...")?;
    } else {
        out.text("...")?;
        out.push(&bytes[at(length - kept)..])?;
    }
    out.value()
}

/// Drops characters at both ends.
fn trim(text: &[u8], drop: impl Fn(char) -> bool) -> &[u8] {
    let mut start = 0;
    for (c, piece) in runes::pieces(text) {
        if !drop(c) {
            break;
        }
        start += piece.len();
    }
    let mut end = start;
    let mut position = start;
    for (c, piece) in runes::pieces(&text[start..]) {
        position += piece.len();
        if !drop(c) {
            end = position;
        }
    }
    &text[start..end]
}

fn trim_all(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let (cut, text) = (args.bytes(0)?, args.bytes(1)?);
    heap.step(text.len() / 64 * cut.len())?;
    let cut: Vec<char> = runes::chars(cut).collect();
    heap.str(trim(text, |c| cut.contains(&c)))
}

fn repeat(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let text = args.bytes(1)?;
    let count = usize::try_from(args.int(0)?).map_err(|_| "negative repeat count".to_owned())?;
    heap.take(text.len().saturating_mul(count))?;
    let repeated = text.repeat(if text.is_empty() { 0 } else { count });
    heap.scan(repeated.len())?;
    Ok(repeated.into())
}

/// sprig reads bytes as characters here, which spoils other texts than ASCII.
fn latin(byte: u8) -> char {
    char::from(byte)
}

fn nospace(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let text = args.str(0)?;
    if !text.as_bytes().iter().any(|b| latin(*b).is_whitespace()) {
        return Ok(Value::Str(text.clone()));
    }
    let mut out = heap.builder();
    for c in text.as_bytes().iter().map(|b| latin(*b)).filter(|c| !c.is_whitespace()) {
        out.char(c)?;
    }
    out.value()
}

fn initials(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut out = heap.builder();
    let mut after_gap = true;
    for c in args.bytes(0)?.iter().map(|b| latin(*b)) {
        if c.is_whitespace() {
            after_gap = true;
        } else if std::mem::take(&mut after_gap) {
            out.char(c)?;
        }
    }
    out.value()
}

/// Breaks lines at spaces; longer words are cut only when asked for.
fn wrap(heap: &Heap, width: i64, newline: &[u8], text: &[u8], cut_words: bool) -> Outcome<Value> {
    let newline = if newline.is_empty() { b"\n".as_slice() } else { newline };
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let mut out = heap.builder();
    let mut rest = text;
    while rest.len() > width {
        if let Some(tail) = rest.strip_prefix(b" ") {
            rest = tail;
            continue;
        }
        let space = rest[..=width].iter().rposition(|b| *b == b' ');
        let later_space = || rest[width..].iter().position(|b| *b == b' ').map(|at| at + width);
        let (line, tail) = match space {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None if cut_words => rest.split_at(width),
            None => match later_space() {
                Some(at) => (&rest[..at], &rest[at + 1..]),
                None => break,
            },
        };
        out.push(line)?;
        out.push(newline)?;
        heap.step(1)?;
        rest = tail;
    }
    out.push(rest)?;
    out.value()
}

fn quote(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut out = heap.builder();
    for value in args.all().iter().filter(|value| !value.is_nothing()) {
        if out.len() > 0 {
            out.text(" ")?;
        }
        let text = fmt::to_str(heap, value)?;
        out.push(fmt::sprintf(heap, b"%q", &[Value::Str(text)])?.as_bytes())?;
    }
    out.value()
}

fn squote(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut out = heap.builder();
    for value in args.all().iter().filter(|value| !value.is_nothing()) {
        out.text(if out.len() > 0 { " '" } else { "'" })?;
        out.push(fmt::to_str(heap, value)?.as_bytes())?;
        out.text("'")?;
    }
    out.value()
}

fn cat(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut out = heap.builder();
    for (index, value) in args.all().iter().filter(|value| !value.is_nothing()).enumerate() {
        if index > 0 {
            out.text(" ")?;
        }
        out.push(fmt::to_str(heap, value)?.as_bytes())?;
    }
    out.value()
}

fn indent(heap: &Heap, args: Args<'_>, before: &[u8]) -> Outcome<Value> {
    let spaces = usize::try_from(args.int(0)?).map_err(|_| "negative repeat count".to_owned())?;
    let mut out = heap.builder();
    out.push(before)?;
    for (index, line) in args.bytes(1)?.split(|b| *b == b'\n').enumerate() {
        if index > 0 {
            out.push(b"\n")?;
        }
        out.fill(b' ', spaces)?;
        out.push(line)?;
    }
    out.value()
}

/// The strings of a list, without nils; any other value is a list of itself.
pub(super) fn strings_of(heap: &Heap, value: &Value) -> Outcome<Vec<value::Str>> {
    match value {
        Value::List(list) => {
            heap.step(list.len())?;
            list.items().iter().filter(|item| !item.is_nothing()).map(|item| fmt::to_str(heap, item)).collect()
        }
        Value::Missing | Value::Nil => Ok(Vec::new()),
        other => Ok(vec![fmt::to_str(heap, other)?]),
    }
}

fn join(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut out = heap.builder();
    for (index, text) in strings_of(heap, args.any(1)?)?.iter().enumerate() {
        if index > 0 {
            out.push(args.bytes(0)?)?;
        }
        out.push(text.as_bytes())?;
    }
    out.value()
}

/// A map `_0`, `_1` and so on.
fn numbered(heap: &Heap, parts: &[value::Str]) -> Outcome<Value> {
    heap.take(parts.iter().map(value::Str::len).sum())?;
    let entries = parts.iter().enumerate().map(|(i, part)| (format!("_{i}").into(), Value::Str(part.clone())));
    Ok(Value::Map(heap.new_map(Elem::Str, entries.collect())?))
}
