//! `format`: text with `%s`, `%d`, `%f`, `%e`, `%b`, `%o`, `%x` and `%X`.

use crate::budget::Budget;
use crate::error::{EvalError, failed};
use crate::functions::conversions::text;
use crate::functions::quote::quote;
use crate::types::Type;
use crate::value::key::Key;
use crate::value::{Outcome, Value, overload};

/// Digits after the point where none are asked for.
const PRECISION: usize = 6;

/// The most digits after the point.
const MAX_PRECISION: usize = 1_000;

/// Fills the placeholders of the first argument with the items of the second.
pub(crate) fn format(arguments: &[Value], budget: &Budget) -> Outcome {
    let [Value::String(template), Value::List(list)] = arguments else { return Err(overload("format", arguments)) };
    budget.bytes(template.len())?;
    let mut out = String::new();
    let mut items = list.items.iter();
    let mut rest = template.as_ref();
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (precision, after) = precision(rest)?;
        let verb = after.chars().next().ok_or_else(|| failed("format"))?;
        rest = &after[verb.len_utf8()..];
        let item = items.next().ok_or_else(|| failed("format"))?;
        let part = clause(verb, precision, item, budget)?;
        budget.bytes(part.len())?;
        out.push_str(&part);
    }
    out.push_str(rest);
    Ok(Value::string(out))
}

/// Whether a template fits arguments of these types; what is wrong if it does not, and where.
pub(crate) fn check(template: &str, arguments: &[(Type, u64)], list: u64) -> Result<(), (String, u64)> {
    let mut used = 0;
    let mut rest = template;
    while let Some((_, after)) = rest.split_once('%') {
        if let Some(after) = after.strip_prefix('%') {
            rest = after;
            continue;
        }
        let (_, after) = precision(after).map_err(|_| ("could not parse formatting clause".to_owned(), list))?;
        let verb = after.chars().next().ok_or_else(|| ("unexpected end of string".to_owned(), list))?;
        rest = &after[verb.len_utf8()..];
        let (rule, fits) = shown(verb).ok_or_else(|| {
            (std::format!("could not parse formatting clause: unrecognized formatting clause \"{verb}\""), list)
        })?;
        let Some((kind, place)) = arguments.get(used) else {
            return Err((std::format!("index {used} out of range"), list));
        };
        if !matches!(kind, Type::Dyn | Type::Free) && !fits(kind) {
            return Err((std::format!("error during formatting: {rule}, was given {}", kind.name()), *place));
        }
        used += 1;
    }
    if used < arguments.len() {
        let given = arguments.len();
        let reason = std::format!("too many arguments supplied to string.format (expected {used}, got {given})");
        return Err((reason, list));
    }
    Ok(())
}

/// What a verb can show, in words and as a test.
type Shown = (&'static str, fn(&Type) -> bool);

fn shown(verb: char) -> Option<Shown> {
    Some(match verb {
        's' => (
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
             timestamps",
            |kind| {
                let library = kind.name().starts_with("kubernetes.") || kind.name().starts_with("net.");
                !library && !matches!(kind, Type::Optional(_) | Type::Object(_))
            },
        ),
        'd' => ("decimal clause can only be used on integers", |kind| matches!(kind, Type::Int | Type::Uint)),
        'o' => ("octal clause can only be used on integers", |kind| matches!(kind, Type::Int | Type::Uint)),
        'b' => ("only integers and bools can be formatted as binary", |kind| {
            matches!(kind, Type::Int | Type::Uint | Type::Bool)
        }),
        'f' => ("fixed-point clause can only be used on doubles", |kind| matches!(kind, Type::Double | Type::String)),
        'e' => ("scientific clause can only be used on doubles", |kind| matches!(kind, Type::Double | Type::String)),
        'x' | 'X' => ("only integers, byte buffers, and strings can be formatted as hex", |kind| {
            matches!(kind, Type::Int | Type::Uint | Type::String | Type::Bytes)
        }),
        _ => return None,
    })
}

/// The digits of `.3` and what follows.
fn precision(text: &str) -> Result<(Option<usize>, &str), EvalError> {
    let Some(after) = text.strip_prefix('.') else { return Ok((None, text)) };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let precision = after[..digits].parse().ok().filter(|found| *found <= MAX_PRECISION);
    Ok((Some(precision.ok_or_else(|| failed("format"))?), &after[digits..]))
}

fn clause(verb: char, precision: Option<usize>, item: &Value, budget: &Budget) -> Result<String, EvalError> {
    let digits = precision.unwrap_or(PRECISION);
    Ok(match (verb, item) {
        ('s', item) => plain(item, budget)?,
        ('d', Value::Int(value)) => value.to_string(),
        ('d', Value::Uint(value)) => value.to_string(),
        ('b', Value::Bool(value)) => u8::from(*value).to_string(),
        ('b', Value::Int(value)) => signed(*value, |size| std::format!("{size:b}")),
        ('b', Value::Uint(value)) => std::format!("{value:b}"),
        ('o', Value::Int(value)) => signed(*value, |size| std::format!("{size:o}")),
        ('o', Value::Uint(value)) => std::format!("{value:o}"),
        ('x', Value::Int(value)) => signed(*value, |size| std::format!("{size:x}")),
        ('x', Value::Uint(value)) => std::format!("{value:x}"),
        ('X', Value::Int(value)) => signed(*value, |size| std::format!("{size:X}")),
        ('X', Value::Uint(value)) => std::format!("{value:X}"),
        ('x', Value::String(text)) => data_encoding::HEXLOWER.encode(text.as_bytes()),
        ('X', Value::String(text)) => data_encoding::HEXUPPER.encode(text.as_bytes()),
        ('x', Value::Bytes(bytes)) => data_encoding::HEXLOWER.encode(bytes),
        ('X', Value::Bytes(bytes)) => data_encoding::HEXUPPER.encode(bytes),
        ('f', item) => fixed(number(item)?, digits),
        ('e', item) => scientific(number(item)?, digits),
        _ => return Err(failed("format")),
    })
}

fn signed(value: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    std::format!("{sign}{}", digits(value.unsigned_abs()))
}

fn number(item: &Value) -> Result<f64, EvalError> {
    match item {
        Value::Double(value) => Ok(*value),
        Value::String(text) => match text.as_ref() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(failed("format")),
        },
        _ => Err(failed("format")),
    }
}

/// `NaN` and infinities have no digits.
fn special(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        value if value.is_infinite() && value > 0.0 => Some("∞"),
        value if value.is_infinite() => Some("-∞"),
        _ => None,
    }
}

/// With thousands apart, as in American English.
fn fixed(value: f64, digits: usize) -> String {
    if let Some(special) = special(value) {
        return special.to_owned();
    }
    let plain = std::format!("{:.digits$}", value.abs());
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    std::format!("{sign}{grouped}{rest}")
}

/// `1.500000×10⁰³`; what looks like a precision is a width, as in the library.
fn scientific(value: f64, width: usize) -> String {
    if let Some(special) = special(value) {
        return std::format!("{special:>width$}");
    }
    let plain = std::format!("{:.PRECISION$e}", if value == 0.0 { 0.0 } else { value });
    let Some((mantissa, exponent)) = plain.split_once('e') else { return plain };
    let (sign, size) = exponent.strip_prefix('-').map_or(("", exponent), |size| ("⁻", size));
    let raised: String = std::format!("{size:0>2}").chars().map(superscript).collect();
    std::format!("{:>width$}", std::format!("{mantissa}×10{sign}{raised}"))
}

fn superscript(digit: char) -> char {
    match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4'..='9' => char::from_u32(0x2070 + u32::from(digit) - u32::from('0')).unwrap_or(digit),
        _ => '⁰',
    }
}

/// What `%s` shows.
fn plain(item: &Value, budget: &Budget) -> Result<String, EvalError> {
    budget.step()?;
    match item {
        Value::Null => Ok("null".to_owned()),
        Value::List(list) => {
            let mut parts = Vec::new();
            for item in &list.items {
                parts.push(nested(item, budget)?);
            }
            Ok(std::format!("[{}]", parts.join(", ")))
        }
        Value::Map(map) => {
            let mut parts = Vec::new();
            for (key, value) in map.iter() {
                if !matches!(key, Key::Bool(_) | Key::Int(_) | Key::Uint(_) | Key::String(_)) {
                    return Err(failed("format"));
                }
                parts.push((nested(&key.into(), budget)?, nested(value, budget)?));
            }
            parts.sort();
            let parts: Vec<String> = parts.into_iter().map(|(key, value)| std::format!("{key}:{value}")).collect();
            Ok(std::format!("{{{}}}", parts.join(", ")))
        }
        other => text(other, budget)?.ok_or_else(|| failed("format")),
    }
}

/// An item inside a list or map.
fn nested(item: &Value, budget: &Budget) -> Result<String, EvalError> {
    let shown = plain(item, budget)?;
    budget.bytes(shown.len())?;
    Ok(match item {
        Value::String(_) => quote(&shown),
        Value::Bytes(_) => std::format!("b{}", quote(&shown)),
        Value::Double(value) if !value.is_finite() => std::format!("\"{value:.PRECISION$}\""),
        Value::Double(value) => std::format!("{value:.PRECISION$}"),
        Value::Timestamp(_) => std::format!("timestamp(\"{shown}\")"),
        Value::Duration(_) => std::format!("duration(\"{shown}\")"),
        _ => shown,
    })
}
