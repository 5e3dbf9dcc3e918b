//! Constants of the template text: numbers, characters and strings.

use crate::tree::Number;

/// Reads a numeric constant.
pub(crate) fn number(text: &str) -> Result<Number, String> {
    let illegal = || format!("illegal number syntax: {text:?}");
    if let Some(text) = text.strip_suffix('i') {
        return complex(text).ok_or_else(illegal);
    }
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let mut number = Number {
        written_as_float: text.contains(['p', 'P']) || !hexadecimal && text.contains(['.', 'e', 'E']),
        ..Number::default()
    };
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if let Some(magnitude) = unsigned(digits) {
        number.int = if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() };
        // A sign makes Go's unsigned reading fail, except for zero.
        number.uint = (magnitude == 0 || digits.len() == text.len()).then_some(magnitude);
    }
    if number.int.is_some() || number.uint.is_some() {
        number.float = number.int.map(rounded).or(number.uint.map(rounded_unsigned));
    } else {
        let float = float(text).ok_or_else(illegal)?;
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {text:?}"));
        }
        number.float = Some(float);
        number.int = whole(float);
        number.uint = number.int.and_then(|int| u64::try_from(int).ok());
    }
    Ok(number)
}

/// Reads a complex constant without its `i`, such as `2` or `1+2`.
fn complex(text: &str) -> Option<Number> {
    let before_sign = |at: &usize| !text[..*at].ends_with(['e', 'E', 'p', 'P']);
    let sign = text.rmatch_indices(['+', '-']).map(|(at, _)| at).find(before_sign).filter(|at| *at > 0);
    let (real, imaginary) = match sign {
        Some(at) => (float(&text[..at])?, float(&text[at..])?),
        None => (0.0, float(text)?),
    };
    let mut number = Number { complex: Some((real, imaginary)), ..Number::default() };
    if imaginary == 0.0 {
        number.float = Some(real);
        number.int = whole(real);
        number.uint = number.int.and_then(|int| u64::try_from(int).ok());
    }
    Some(number)
}

/// The integer that a float is, if it is one.
#[expect(clippy::cast_possible_truncation, reason = "what was cut off makes the comparison fail")]
#[expect(clippy::float_cmp, reason = "nothing may be cut off at all")]
fn whole(float: f64) -> Option<i64> {
    let int = float as i64;
    (rounded(int) == float).then_some(int)
}

#[expect(clippy::cast_precision_loss, reason = "Go rounds as well")]
fn rounded(int: i64) -> f64 {
    int as f64
}

#[expect(clippy::cast_precision_loss, reason = "Go rounds as well")]
fn rounded_unsigned(uint: u64) -> f64 {
    uint as f64
}

/// Reads an unsigned integer with Go's prefixes and underscores.
pub(crate) fn unsigned(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits, prefixed) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..], true),
        [b'0', b'b', ..] => (2, &lower[2..], true),
        [b'0', b'o', ..] => (8, &lower[2..], true),
        [b'0', _, ..] => (8, &lower[1..], true),
        _ => (10, lower.as_str(), false),
    };
    let digits = without_underscores(digits, prefixed)?;
    if digits.is_empty() || digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(&digits, radix).ok()
}

/// Underscores are allowed only between digits and after a prefix.
fn without_underscores(digits: &str, prefixed: bool) -> Option<String> {
    let bytes = digits.as_bytes();
    for (i, _) in bytes.iter().enumerate().filter(|(_, b)| **b == b'_') {
        let before = if i == 0 { prefixed } else { bytes[i - 1].is_ascii_alphanumeric() };
        let after = bytes.get(i + 1).is_some_and(u8::is_ascii_alphanumeric);
        if !before || !after {
            return None;
        }
    }
    Some(digits.replace('_', ""))
}

/// Reads a float constant, also a hexadecimal one.
fn float(text: &str) -> Option<f64> {
    carrick_go::float::parse(text).ok().filter(|float| float.is_finite())
}

/// Reads a character constant such as `'a'` or `'\n'`.
pub(crate) fn character(text: &str) -> Result<Number, String> {
    let malformed = || format!("malformed character constant: {text}");
    let inner = &text[1..text.len() - 1];
    let mut rest = inner;
    let code = match next_unit(&mut rest, '\'').ok_or_else(malformed)? {
        Unit::Char(c) => u32::from(c),
        Unit::Byte(b) => u32::from(b),
    };
    if !rest.is_empty() {
        return Err(malformed());
    }
    Ok(Number {
        int: Some(i64::from(code)),
        uint: Some(u64::from(code)),
        float: Some(f64::from(code)),
        ..Number::default()
    })
}

/// Reads a string constant, quoted or raw.
pub(crate) fn string(text: &str) -> Result<Vec<u8>, String> {
    let inner = &text[1..text.len() - 1];
    if text.starts_with('`') {
        return Ok(inner.replace('\r', "").into_bytes());
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        match next_unit(&mut rest, '"').ok_or_else(|| format!("invalid escape in string {text}"))? {
            Unit::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(b) => bytes.push(b),
        }
    }
    Ok(bytes)
}

/// A piece of a quoted text.
enum Unit {
    Char(char),
    /// `\x` and octal escapes stand for single bytes.
    Byte(u8),
}

fn next_unit(rest: &mut &str, quote: char) -> Option<Unit> {
    let mut chars = rest.chars();
    let c = chars.next()?;
    if c == quote || c == '\n' {
        return None;
    }
    if c != '\\' {
        *rest = chars.as_str();
        return Some(Unit::Char(c));
    }
    let escape = chars.next()?;
    let after = chars.as_str();
    let (unit, tail) = match escape {
        'a' => (Unit::Char('\x07'), after),
        'b' => (Unit::Char('\x08'), after),
        'f' => (Unit::Char('\x0c'), after),
        'n' => (Unit::Char('\n'), after),
        'r' => (Unit::Char('\r'), after),
        't' => (Unit::Char('\t'), after),
        'v' => (Unit::Char('\x0b'), after),
        '\\' => (Unit::Char('\\'), after),
        '\'' | '"' if escape == quote => (Unit::Char(escape), after),
        'x' => {
            let (code, tail) = digits(after, 2, 16)?;
            (Unit::Byte(u8::try_from(code).ok()?), tail)
        }
        '0'..='7' => {
            let (code, tail) = digits(&rest[1..], 3, 8)?;
            (Unit::Byte(u8::try_from(code).ok()?), tail)
        }
        'u' | 'U' => {
            let (code, tail) = digits(after, if escape == 'u' { 4 } else { 8 }, 16)?;
            (Unit::Char(char::from_u32(code)?), tail)
        }
        _ => return None,
    };
    *rest = tail;
    Some(unit)
}

/// A number with exactly this many digits, and what follows it.
fn digits(text: &str, count: usize, radix: u32) -> Option<(u32, &str)> {
    let number = text.get(..count).filter(|t| t.chars().all(|c| c.is_digit(radix)))?;
    Some((u32::from_str_radix(number, radix).ok()?, &text[count..]))
}
