//! Escapes that stand for one character.

use super::text::{Error, Text};

/// The character that the escape at the cursor stands for, the backslash included. Surrogates are possible: they are
/// characters to Go, which no text contains.
pub(super) fn character<'p>(text: &mut Text<'p>) -> Result<u32, Error<'p>> {
    let start = text.at;
    text.next();
    let Some(first) = text.next() else {
        return Err(text.error("trailing backslash at end of expression", start, text.rest()));
    };
    let octal = |c: char| ('0'..='7').contains(&c);
    let code = match first {
        'a' => Some(7),
        'f' => Some(12),
        'n' => Some(10),
        'r' => Some(13),
        't' => Some(9),
        'v' => Some(11),
        // one digit alone would refer back to a group
        '1'..='7' if !text.peek().is_some_and(octal) => None,
        '0'..='7' => {
            let mut code = first.to_digit(8).unwrap_or_default();
            for _ in 0..2 {
                if let Some(digit) = text.next_if(octal).and_then(|digit| digit.to_digit(8)) {
                    code = code * 8 + digit;
                }
            }
            Some(code)
        }
        'x' => hexadecimal(text),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        _ => None,
    };
    code.ok_or_else(|| text.error("invalid escape sequence", start, text.since(start)))
}

/// The digits after `\x`: two of them, or any number in braces.
fn hexadecimal(text: &mut Text<'_>) -> Option<u32> {
    let first = text.next()?;
    if first != '{' {
        let (high, low) = (first.to_digit(16), text.next()?.to_digit(16));
        return Some(high? * 16 + low?);
    }
    let mut code = None;
    loop {
        match text.next()? {
            '}' => return code,
            digit => {
                let next = code.unwrap_or(0) * 16 + digit.to_digit(16)?;
                code = Some(next);
                if next > u32::from(char::MAX) {
                    return None;
                }
            }
        }
    }
}
