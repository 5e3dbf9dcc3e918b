//! Functions on text. Positions count characters, not bytes.

use crate::budget::Budget;
use crate::error::failed;
use crate::functions::format::format;
use crate::functions::quote::quote;
use crate::signature::Row;
use crate::value::{Outcome, Value, overload};

pub(crate) const ROWS: &[Row] = &[
    ("string.contains(string): bool", |arguments, budget| search("contains", arguments, budget, |a, b| a.contains(b))),
    ("string.startsWith(string): bool", |arguments, budget| {
        search("startsWith", arguments, budget, |a, b| a.starts_with(b))
    }),
    ("string.endsWith(string): bool", |arguments, budget| search("endsWith", arguments, budget, |a, b| a.ends_with(b))),
    ("string.charAt(int): string", char_at),
    ("string.indexOf(string): int\nstring.indexOf(string, int): int", index_of),
    ("string.lastIndexOf(string): int\nstring.lastIndexOf(string, int): int", last_index_of),
    ("string.lowerAscii(): string", |arguments, budget| {
        change("lowerAscii", arguments, budget, str::to_ascii_lowercase)
    }),
    ("string.upperAscii(): string", |arguments, budget| {
        change("upperAscii", arguments, budget, str::to_ascii_uppercase)
    }),
    ("string.trim(): string", |arguments, budget| change("trim", arguments, budget, |text| text.trim().to_owned())),
    ("strings.quote(string): string", |arguments, budget| change("strings.quote", arguments, budget, quote)),
    ("string.replace(string, string): string\nstring.replace(string, string, int): string", replace),
    ("string.split(string): list(string)\nstring.split(string, int): list(string)", split),
    ("string.substring(int): string\nstring.substring(int, int): string", substring),
    ("list(string).join(): string\nlist(string).join(string): string", join),
    ("string.format(list(dyn)): string", format),
];

/// Turns text around.
pub(crate) const REVERSE_ROWS: &[Row] = &[("string.reverse(): string", |arguments, budget| {
    change("reverse", arguments, budget, |text| text.chars().rev().collect())
})];

fn search(name: &str, arguments: &[Value], budget: &Budget, found: impl Fn(&str, &str) -> bool) -> Outcome {
    let [Value::String(text), Value::String(wanted)] = arguments else { return Err(overload(name, arguments)) };
    budget.bytes(text.len() + wanted.len())?;
    Ok(Value::Bool(found(text, wanted)))
}

fn change(name: &str, arguments: &[Value], budget: &Budget, changed: impl Fn(&str) -> String) -> Outcome {
    let [Value::String(text)] = arguments else { return Err(overload(name, arguments)) };
    budget.bytes(text.len())?;
    Ok(Value::string(changed(text)))
}

/// Where the character of this number starts, or the text ends.
fn offset(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    text.char_indices().map(|(start, _)| start).chain([text.len()]).nth(at)
}

fn char_at(arguments: &[Value], budget: &Budget) -> Outcome {
    let [Value::String(text), Value::Int(at)] = arguments else { return Err(overload("charAt", arguments)) };
    budget.bytes(text.len())?;
    let start = offset(text, *at).ok_or_else(|| failed("charAt"))?;
    Ok(Value::string(text[start..].chars().next().map(String::from).unwrap_or_default()))
}

fn index_of(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, wanted, from) = match arguments {
        [Value::String(text), Value::String(wanted)] => (text, wanted, 0),
        [Value::String(text), Value::String(wanted), Value::Int(from)] => (text, wanted, *from),
        _ => return Err(overload("indexOf", arguments)),
    };
    budget.bytes(text.len() + wanted.len())?;
    if from < 0 {
        return Err(failed("indexOf"));
    }
    let Some(start) = offset(text, from) else {
        return Ok(if wanted.is_empty() { Value::count(text.chars().count()) } else { Value::Int(-1) });
    };
    Ok(match text[start..].find(wanted.as_ref()) {
        Some(found) => Value::count(text[..start + found].chars().count()),
        None => Value::Int(-1),
    })
}

fn last_index_of(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, wanted, upto) = match arguments {
        [Value::String(text), Value::String(wanted)] => (text, wanted, None),
        [Value::String(text), Value::String(wanted), Value::Int(upto)] => (text, wanted, Some(*upto)),
        _ => return Err(overload("lastIndexOf", arguments)),
    };
    budget.bytes(text.len() + wanted.len())?;
    let length = text.chars().count();
    let searched = match upto {
        None => text.as_ref(),
        Some(upto) if upto < 0 => return Err(failed("lastIndexOf")),
        Some(upto) => match usize::try_from(upto).ok().filter(|upto| *upto < length) {
            None if wanted.is_empty() => return Ok(Value::count(length)),
            None => return Ok(Value::Int(-1)),
            // a match may start at the offset and go on after it
            Some(upto) => {
                let end = i64::try_from(upto + wanted.chars().count()).ok().and_then(|end| offset(text, end));
                end.map_or(text.as_ref(), |end| &text[..end])
            }
        },
    };
    Ok(match searched.rfind(wanted.as_ref()) {
        Some(found) => Value::count(text[..found].chars().count()),
        None => Value::Int(-1),
    })
}

fn replace(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, from, to, limit) = match arguments {
        [Value::String(text), Value::String(from), Value::String(to)] => (text, from, to, -1),
        [Value::String(text), Value::String(from), Value::String(to), Value::Int(limit)] => (text, from, to, *limit),
        _ => return Err(overload("replace", arguments)),
    };
    budget.bytes(text.len())?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // the result may be far longer than its parts: its cost is taken before it is made
    let times = text.matches(from.as_ref()).count().min(limit);
    budget.bytes(text.len().saturating_add(times.saturating_mul(to.len())))?;
    Ok(Value::string(text.replacen(from.as_ref(), to, limit)))
}

fn split(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, separator, limit) = match arguments {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => (text, separator, *limit),
        _ => return Err(overload("split", arguments)),
    };
    budget.bytes(text.len())?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<String> = if limit == 0 {
        Vec::new()
    } else if separator.is_empty() {
        budget.charge(text.len() as u64)?;
        let count = text.chars().count();
        let single = if limit < count { limit - 1 } else { count };
        let mut parts: Vec<String> = text.chars().take(single).map(String::from).collect();
        if single < count {
            parts.push(text.chars().skip(single).collect());
        }
        parts
    } else {
        text.splitn(limit, separator.as_ref()).map(str::to_owned).collect()
    };
    budget.charge(parts.len() as u64)?;
    Ok(Value::list(parts.into_iter().map(Value::string).collect()))
}

fn substring(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, start, end) = match arguments {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(overload("substring", arguments)),
    };
    budget.bytes(text.len())?;
    let from = offset(text, start).ok_or_else(|| failed("substring"))?;
    let to = end.map_or(Some(text.len()), |end| offset(text, end)).ok_or_else(|| failed("substring"))?;
    text.get(from..to).map(Value::string).ok_or_else(|| failed("substring"))
}

fn join(arguments: &[Value], budget: &Budget) -> Outcome {
    let (list, separator) = match arguments {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, separator.as_ref()),
        _ => return Err(overload("join", arguments)),
    };
    let mut out = String::new();
    for (at, item) in list.items.iter().enumerate() {
        let Value::String(text) = item else { return Err(failed("join")) };
        let separator = if at == 0 { "" } else { separator };
        budget.step()?;
        budget.bytes(text.len() + separator.len())?;
        out.push_str(separator);
        out.push_str(text);
    }
    Ok(Value::string(out))
}
