//! Bracket expressions and the escapes that stand for several characters.

use super::escape;
use super::text::{Error, Text};
use super::unicode;

const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);

/// A set of characters that no text contains, and its complement.
const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";
const ANYTHING: &str = r"[\x{0}-\x{10FFFF}]";

/// A `\d`, `\w`, `\s` or one of their complements, which are ASCII in Go.
pub(super) fn perl(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// The `\pL` or `\p{Greek}` at the cursor.
pub(super) fn property<'p>(text: &mut Text<'p>) -> Result<String, Error<'p>> {
    let start = text.at;
    text.next();
    let mut negated = text.next() == Some('P');
    let name_start = text.at;
    let name = if text.next_if(|c| c == '{').is_some() {
        let Some(length) = text.rest().find('}') else {
            return Err(text.error("invalid character class range", start, text.from(start)));
        };
        text.at += length + 1;
        &text.since(name_start)[1..=length]
    } else {
        text.next();
        text.since(name_start)
    };
    let plain = name.strip_prefix('^');
    negated ^= plain.is_some();
    let refused = || text.error("invalid character class range", start, text.since(start));
    let property = unicode::property(plain.unwrap_or(name)).ok_or_else(refused)?;
    Ok(match (property.as_str(), negated) {
        ("gc=Cs", false) => NOTHING.to_owned(),
        ("gc=Cs", true) => ANYTHING.to_owned(),
        (_, false) => format!(r"\p{{{property}}}"),
        (_, true) => format!(r"\P{{{property}}}"),
    })
}

/// The bracket expression at the cursor.
pub(super) fn bracket<'p>(text: &mut Text<'p>) -> Result<String, Error<'p>> {
    let start = text.at;
    text.next();
    let negated = text.next_if(|c| c == '^').is_some();
    let mut members = String::new();
    let mut first = true;
    while first || text.peek() != Some(']') {
        first = false;
        if let Some(named) = posix(text)? {
            members.push_str(named);
            continue;
        }
        let escaped = text.rest().strip_prefix('\\').and_then(|rest| rest.chars().next());
        match escaped {
            Some('p' | 'P') => members.push_str(&property(text)?),
            Some(letter) if perl(letter).is_some() => {
                members.push_str(perl(letter).unwrap_or_default());
                text.at += 2;
            }
            _ => range(text, start, &mut members)?,
        }
    }
    text.next();
    Ok(match (members.is_empty(), negated) {
        (true, false) => NOTHING.to_owned(),
        (true, true) => ANYTHING.to_owned(),
        (false, false) => format!("[{members}]"),
        (false, true) => format!("[^{members}]"),
    })
}

/// The `[:alpha:]` at the cursor, if there is one.
fn posix<'p>(text: &mut Text<'p>) -> Result<Option<&'p str>, Error<'p>> {
    const NAMES: [&str; 14] = [
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
        "word", "xdigit",
    ];
    let start = text.at;
    let Some(length) = text.rest().strip_prefix("[:").and_then(|rest| rest.find(":]")) else { return Ok(None) };
    text.at += length + 4;
    let whole = text.since(start);
    let name = &whole[2..2 + length];
    if NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
        Ok(Some(whole))
    } else {
        Err(text.error("invalid character class range", start, whole))
    }
}

/// A character in a class, or a range that starts with it; `class` is where the class starts.
fn range<'p>(text: &mut Text<'p>, class: usize, members: &mut String) -> Result<(), Error<'p>> {
    let start = text.at;
    let from = character(text, class)?;
    let mut to = from;
    let ahead = text.rest().strip_prefix('-');
    if ahead.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(']')) {
        text.next();
        to = character(text, class)?;
        if to < from {
            return Err(text.error("invalid character class range", start, text.since(start)));
        }
    }
    let surrogate = |code: u32| (SURROGATES.0..=SURROGATES.1).contains(&code);
    let from = if surrogate(from) { SURROGATES.1 + 1 } else { from };
    let to = if surrogate(to) { SURROGATES.0 - 1 } else { to };
    if from <= to {
        members.extend([r"\x{", &format!("{from:x}"), r"}-\x{", &format!("{to:x}"), "}"]);
    }
    Ok(())
}

fn character<'p>(text: &mut Text<'p>, class: usize) -> Result<u32, Error<'p>> {
    match text.peek() {
        None => Err(text.error("missing closing ]", class, text.from(class))),
        Some('\\') => escape::character(text),
        Some(c) => {
            text.next();
            Ok(u32::from(c))
        }
    }
}

/// How many states an atom takes in the compiled pattern, roughly.
pub(super) fn states(atom: &str) -> usize {
    const CLASS: usize = 2;
    const PROPERTY: usize = 100;
    if atom.len() == 1 && atom != "." {
        return 1;
    }
    CLASS + PROPERTY * (atom.matches(r"\p{").count() + atom.matches(r"\P{").count())
}

/// A single character for the regex crate, whatever it means there.
pub(super) fn literal(code: u32) -> String {
    match char::from_u32(code) {
        None => NOTHING.to_owned(),
        Some(c) if c.is_ascii_alphanumeric() || !c.is_ascii() => c.to_string(),
        Some(_) => format!(r"\x{{{code:x}}}"),
    }
}
