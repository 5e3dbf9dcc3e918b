//! How literal text moves the context inside JavaScript.

use super::{
    context::{Context, Place, Slash},
    scan::{Moved, find, find_all, starts_with_ignoring_case},
};

pub(super) fn transition(context: &Context, text: &[u8]) -> Moved {
    match context.place {
        Place::JsDouble => literal(context, text, b"\\\""),
        Place::JsSingle => literal(context, text, b"\\'"),
        Place::JsRegex => literal(context, text, b"\\/[]"),
        Place::JsTemplate => template_string(context, text),
        Place::JsBlockComment => Ok(match find_all(text, b"*/") {
            Some(end) => (moved(context, Place::Js), end + 2),
            None => (context.clone(), text.len()),
        }),
        Place::JsLineComment | Place::JsOpenComment | Place::JsCloseComment => Ok(match line_end(text) {
            Some(end) => (moved(context, Place::Js), end),
            None => (context.clone(), text.len()),
        }),
        _ => code(context, text),
    }
}

fn moved(context: &Context, place: Place) -> Context {
    Context { place, ..context.clone() }
}

/// The first end of a line, by JavaScript's rules.
pub(super) fn line_end(text: &[u8]) -> Option<usize> {
    (0..text.len()).find(|i| {
        let rest = &text[*i..];
        matches!(rest[0], b'\n' | b'\r')
            || rest.starts_with("\u{2028}".as_bytes())
            || rest.starts_with("\u{2029}".as_bytes())
    })
}

fn code(context: &Context, text: &[u8]) -> Moved {
    let Some(at) = find(text, b"\"`'/{}<-#") else {
        return Ok((Context { slash: slash_after(text, context.slash), ..context.clone() }, text.len()));
    };
    let mut next = Context { slash: slash_after(&text[..at], context.slash), ..context.clone() };
    let rest = &text[at..];
    let mut read = at + 1;
    let mut string = |place| {
        next.place = place;
        next.slash = Slash::Regex;
    };
    match rest[0] {
        b'"' => string(Place::JsDouble),
        b'\'' => string(Place::JsSingle),
        b'`' => string(Place::JsTemplate),
        b'/' => match (rest.get(1), next.slash) {
            (Some(b'/'), _) => {
                next.place = Place::JsLineComment;
                read += 1;
            }
            (Some(b'*'), _) => {
                next.place = Place::JsBlockComment;
                read += 1;
            }
            (_, Slash::Regex) => next.place = Place::JsRegex,
            (_, Slash::Division) => next.slash = Slash::Regex,
            (_, Slash::Unknown) => {
                return Err("a slash could be a division or the start of a regular expression; add parentheses".into());
            }
        },
        b'<' if rest.starts_with(b"<!--") => {
            next.place = Place::JsOpenComment;
            read += 3;
        }
        b'-' if rest.starts_with(b"-->") => {
            next.place = Place::JsCloseComment;
            read += 2;
        }
        b'#' if rest.starts_with(b"#!") => {
            next.place = Place::JsLineComment;
            read += 1;
        }
        b'{' => {
            if let Some(depth) = next.braces.last_mut() {
                *depth += 1;
            }
            next.slash = Slash::Regex;
        }
        b'}' => match next.braces.last_mut() {
            // The end of a `${`.
            Some(0) => {
                next.braces.pop();
                next.place = Place::JsTemplate;
            }
            Some(depth) => {
                *depth -= 1;
                next.slash = Slash::Regex;
            }
            None => next.slash = Slash::Regex,
        },
        _ => {}
    }
    Ok((next, read))
}

/// What a slash means after some code.
fn slash_after(code: &[u8], before: Slash) -> Slash {
    let trimmed = trim_space(code);
    let Some(last) = trimmed.last() else { return before };
    match last {
        b'+' | b'-' => {
            // `x++ /y` divides, `x + /y/` does not.
            let run = trimmed.iter().rev().take_while(|byte| *byte == last).count();
            if run % 2 == 1 { Slash::Regex } else { Slash::Division }
        }
        b'.' => match trimmed.len().checked_sub(2).map(|i| trimmed[i]) {
            Some(b'0'..=b'9') => Slash::Division,
            _ => Slash::Regex,
        },
        b',' | b'<' | b'>' | b'=' | b'*' | b'%' | b'&' | b'|' | b'^' | b'?' | b'!' | b'~' | b'(' | b'[' | b':'
        | b';' | b'{' | b'}' => Slash::Regex,
        _ => {
            let word = trimmed.iter().rev().take_while(|byte| is_name(**byte)).count();
            match &trimmed[trimmed.len() - word..] {
                b"break" | b"case" | b"continue" | b"delete" | b"do" | b"else" | b"finally" | b"in" | b"instanceof"
                | b"return" | b"throw" | b"try" | b"typeof" | b"void" => Slash::Regex,
                _ => Slash::Division,
            }
        }
    }
}

/// Whether a byte is part of a name or a number.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

/// Code without the white space at its end.
fn trim_space(code: &[u8]) -> &[u8] {
    let is_space = |c: char| c == '\u{feff}' || c != '\u{85}' && c.is_whitespace();
    std::str::from_utf8(code).map_or(code, |code| code.trim_end_matches(is_space).as_bytes())
}

fn unfinished<T>() -> Result<T, String> {
    Err("an action stands inside an escape sequence of JavaScript".into())
}

/// A string in quotes or a regular expression.
fn literal(context: &Context, text: &[u8], special: &[u8]) -> Moved {
    let mut from = 0;
    let mut in_class = false;
    while let Some(at) = find(&text[from..], special) {
        let at = from + at;
        from = at + 1;
        match text[at] {
            b'\\' if from == text.len() => return unfinished(),
            b'\\' => from += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            // It would end the script, so it is escaped and no end.
            b'/' if at > 0 && starts_with_ignoring_case(&text[at - 1..], b"</script") => from += 1,
            _ if in_class => {}
            _ => return Ok((Context { slash: Slash::Division, ..moved(context, Place::Js) }, from)),
        }
    }
    if in_class {
        return Err("an action stands inside a character class of a regular expression of JavaScript".into());
    }
    Ok((context.clone(), text.len()))
}

fn template_string(context: &Context, text: &[u8]) -> Moved {
    let mut from = 0;
    while let Some(at) = find(&text[from..], b"`\\$") {
        let at = from + at;
        from = at + 1;
        match text[at] {
            b'\\' if from == text.len() => return unfinished(),
            b'\\' => from += 1,
            b'$' if text.get(from) == Some(&b'{') => {
                let mut next = moved(context, Place::Js);
                next.braces.push(0);
                return Ok((next, from + 1));
            }
            b'`' => return Ok((moved(context, Place::Js), from)),
            _ => {}
        }
    }
    Ok((context.clone(), text.len()))
}
