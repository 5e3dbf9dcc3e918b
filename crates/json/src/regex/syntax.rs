//! From RE2 syntax as Go takes it to the syntax of the regex crate.
//!
//! They differ in details only: in Go `\d`, `\w`, `\s` and `\b` are ASCII, `\Q…\E` quotes, brackets inside a class are
//! plain characters, `{` that starts no repetition is one too, and there are octal escapes but no `x`, `u` or `R` flag.

use std::iter::Peekable;
use std::str::Chars;

const DIGIT: &str = "0-9";
const SPACE: &str = r"\t\n\f\r ";
const WORD: &str = "0-9A-Za-z_";

type Text<'p> = Peekable<Chars<'p>>;

/// The same pattern for the regex crate, or why Go would refuse it.
pub(super) fn translate(pattern: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut text = pattern.chars().peekable();
    let mut after_repeat = false;
    while let Some(c) = text.next() {
        let mut repeat = false;
        match c {
            '\\' => escape(&mut text, &mut out)?,
            '[' => class(&mut text, &mut out)?,
            '(' => group(&mut text, &mut out)?,
            '*' | '+' | '?' => {
                out.push(c);
                repeat = true;
            }
            '{' => match repetition(&text) {
                Some(range) => {
                    out.push_str(&range);
                    text.nth(range.chars().count() - 2);
                    repeat = true;
                }
                None => out.push_str(r"\{"),
            },
            '}' => out.push_str(r"\}"),
            other => out.push(other),
        }
        if repeat {
            if after_repeat {
                return Err("invalid nested repetition operator");
            }
            if text.next_if_eq(&'?').is_some() {
                out.push('?');
            }
        }
        after_repeat = repeat;
    }
    Ok(out)
}

/// The repetition `{n}`, `{n,}` or `{n,m}` whose opening brace was just read.
fn repetition(text: &Text<'_>) -> Option<String> {
    let inner: String = text.clone().take_while(|c| *c != '}').collect();
    let closed = text.clone().any(|c| c == '}');
    let (from, to) = inner.split_once(',').unwrap_or((&inner, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    (closed && !from.is_empty() && digits(from) && digits(to)).then(|| format!("{{{inner}}}"))
}

fn group(text: &mut Text<'_>, out: &mut String) -> Result<(), &'static str> {
    out.push('(');
    if text.next_if_eq(&'?').is_none() {
        return Ok(());
    }
    out.push('?');
    let named = match text.peek() {
        Some('<') => true,
        Some('P') => {
            out.push('P');
            text.next();
            if text.peek() != Some(&'<') {
                return Err("invalid named capture");
            }
            true
        }
        _ => false,
    };
    let end = if named { '>' } else { ':' };
    loop {
        match text.next() {
            None => return Err("missing closing )"),
            Some(')') if !named => {
                out.push(')');
                return Ok(());
            }
            Some(c) if c == end => {
                out.push(c);
                return Ok(());
            }
            Some('<') if named && out.ends_with(['?', 'P']) => out.push('<'),
            Some(c) if named && (c == '_' || c.is_ascii_alphanumeric()) => out.push(c),
            Some(_) if named => return Err("invalid named capture"),
            Some(c @ ('i' | 'm' | 's' | 'U' | '-')) => out.push(c),
            Some(_) => return Err("invalid or unsupported Perl syntax"),
        }
    }
}

/// An escape outside of a class; the backslash was read.
fn escape(text: &mut Text<'_>, out: &mut String) -> Result<(), &'static str> {
    match text.next().ok_or("trailing backslash at end of expression")? {
        'Q' => quoted(text, |c| push_literal(out, c)),
        'd' => push_class(out, "", DIGIT),
        'D' => push_class(out, "^", DIGIT),
        's' => push_class(out, "", SPACE),
        'S' => push_class(out, "^", SPACE),
        'w' => push_class(out, "", WORD),
        'W' => push_class(out, "^", WORD),
        'b' => out.push_str(r"(?-u:\b)"),
        'B' => out.push_str(r"(?-u:\B)"),
        c @ ('A' | 'z') => out.extend(['\\', c]),
        c @ ('p' | 'P') => unicode_class(c, text, out),
        other => push_literal(out, character(other, text)?),
    }
    Ok(())
}

fn push_class(out: &mut String, negation: &str, members: &str) {
    out.extend(["[", negation, members, "]"]);
}

/// The text up to `\E` or the end.
fn quoted(text: &mut Text<'_>, mut push: impl FnMut(char)) {
    while let Some(c) = text.next() {
        if c == '\\' && text.next_if_eq(&'E').is_some() {
            return;
        }
        push(c);
    }
}

/// `\pL` and `\p{Greek}` mean the same to both.
fn unicode_class(letter: char, text: &mut Text<'_>, out: &mut String) {
    out.push('\\');
    out.push(letter);
    if let Some(first) = text.next() {
        out.push(first);
        if first == '{' {
            for c in text.by_ref() {
                out.push(c);
                if c == '}' {
                    break;
                }
            }
        }
    }
}

/// The character that an escape stands for; `first` follows the backslash.
fn character(first: char, text: &mut Text<'_>) -> Result<char, &'static str> {
    const INVALID: &str = "invalid escape sequence";
    let octal = |c: &char| ('0'..='7').contains(c);
    match first {
        'a' => Ok('\u{7}'),
        'f' => Ok('\u{c}'),
        'n' => Ok('\n'),
        'r' => Ok('\r'),
        't' => Ok('\t'),
        'v' => Ok('\u{b}'),
        '0'..='7' => {
            if first != '0' && !text.peek().is_some_and(octal) {
                return Err(INVALID);
            }
            let mut code = first.to_digit(8).unwrap_or_default();
            for _ in 0..2 {
                if let Some(digit) = text.next_if(octal) {
                    code = code * 8 + digit.to_digit(8).unwrap_or_default();
                }
            }
            char::from_u32(code).ok_or(INVALID)
        }
        'x' => {
            let digits: String = if text.next_if_eq(&'{').is_some() {
                text.by_ref().take_while(|c| *c != '}').collect()
            } else {
                text.by_ref().take(2).collect()
            };
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).ok_or(INVALID)
        }
        punctuation if punctuation.is_ascii() && !punctuation.is_ascii_alphanumeric() => Ok(punctuation),
        _ => Err(INVALID),
    }
}

/// A character that stands for itself, whatever it means in a pattern.
fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        out.push(c);
    } else {
        out.extend([r"\x{", &format!("{:x}", u32::from(c)), "}"]);
    }
}

/// A bracket expression; the opening bracket was read.
fn class(text: &mut Text<'_>, out: &mut String) -> Result<(), &'static str> {
    out.push('[');
    if text.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut first = true;
    loop {
        let c = text.next().ok_or("missing closing ]")?;
        match c {
            ']' if !first => {
                out.push(']');
                return Ok(());
            }
            '[' if text.peek() == Some(&':') && posix(text, out) => {}
            '\\' if class_escape(text, out)? => {}
            '\\' => {
                let escaped = text.next().ok_or("missing closing ]")?;
                let from = character(escaped, text)?;
                range(from, text, out)?;
            }
            other => range(other, text, out)?,
        }
        first = false;
    }
}

/// `[:alpha:]`, ASCII to both. Returns false, with nothing read, when it is not complete.
fn posix(text: &mut Text<'_>, out: &mut String) -> bool {
    let ahead: String = text.clone().skip(1).take_while(|c| *c == '^' || c.is_ascii_alphabetic()).collect();
    let after: String = text.clone().skip(1 + ahead.len()).take(2).collect();
    if after != ":]" {
        return false;
    }
    text.nth(ahead.len() + 2);
    out.extend(["[:", &ahead, ":]"]);
    true
}

/// An escape in a class that stands for several characters. Returns false, with nothing read, for other escapes.
fn class_escape(text: &mut Text<'_>, out: &mut String) -> Result<bool, &'static str> {
    let Some(&c) = text.peek() else { return Err("missing closing ]") };
    let plain = |members: &str, out: &mut String| out.push_str(members);
    match c {
        'd' => plain(DIGIT, out),
        's' => plain(SPACE, out),
        'w' => plain(WORD, out),
        'D' => push_class(out, "^", DIGIT),
        'S' => push_class(out, "^", SPACE),
        'W' => push_class(out, "^", WORD),
        'p' | 'P' => {
            text.next();
            unicode_class(c, text, out);
            return Ok(true);
        }
        _ => return Ok(false),
    }
    text.next();
    Ok(true)
}

/// A character in a class, or a range that starts with it.
fn range(from: char, text: &mut Text<'_>, out: &mut String) -> Result<(), &'static str> {
    push_literal(out, from);
    let mut ahead = text.clone();
    if ahead.next() != Some('-') || ahead.peek().is_none_or(|c| *c == ']') {
        return Ok(());
    }
    text.next();
    let to = match text.next() {
        Some('\\') => {
            let escaped = text.next().ok_or("missing closing ]")?;
            character(escaped, text)?
        }
        Some(c) => c,
        None => return Err("missing closing ]"),
    };
    if to < from {
        return Err("invalid character class range");
    }
    out.push('-');
    push_literal(out, to);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::regex::GoRegex;

    #[test]
    fn patterns_match_what_go_matches() {
        for (pattern, text, want) in [
            (r"^\d$", "5", true),
            (r"^\d$", "٣", false),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            (r"^\s$", "\u{b}", false),
            (r"^\s$", "\u{a0}", false),
            (r"^[\d\s]$", "٣", false),
            (r"^[^\w]$", "é", true),
            (r"^[\Wa]$", "é", true),
            (r"\bab\b", "é ab é", true),
            (r"\bab\b", "éab", true),
            (r"\bab\b", "xab", false),
            (r"a\Bb", "ab", true),
            (r"\Bé\B", "é", true),
            (r"^\Qa.b*\E+$", "a.b***", true),
            (r"^\Qa.b", "a.b", true),
            (r"^\Qa.b", "axb", false),
            (r"^[a&&b]$", "&", true),
            (r"^[a&&b]$", "b", true),
            (r"^[a~~b]$", "~", true),
            (r"^[+--]$", ",", true),
            (r"^[[a]$", "[", true),
            (r"^[]a]$", "]", true),
            (r"^[^]a]$", "b", true),
            (r"^[a-]$", "-", true),
            (r"^[\-z]$", "-", true),
            (r"^[[:alpha:]_]$", "q", true),
            (r"^[[:^digit:]]$", "5", false),
            (r"^[[:alpha]$", ":", true),
            (r"^a{2}$", "aa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^a{$", "a{", true),
            (r"^{}$", "{}", true),
            (r"^\<x\>$", "<x>", true),
            (r"^\101\x42\x{43}$", "ABC", true),
            (r"^\a\v$", "\u{7}\u{b}", true),
            (r"(?i)^K$", "k", true),
            (r"(?is)a.b", "A\nB", true),
            (r"(?s:.)", "\n", true),
            (r"^.$", "\n", false),
            (r"(?m)^b$", "a\nb\nc", true),
            (r"^b$", "a\nb\nc", false),
            (r"^\p{Greek}\pL$", "αß", true),
            (r"^[\p{Greek}x]$", "α", true),
            (r"(?U)^a+?$", "aa", true),
            (r"^\.\/\-$", "./-", true),
            (r"a b # c", "a b # c", true),
        ] {
            let regex = GoRegex::compile(pattern).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(regex.is_match(text), want, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn patterns_that_go_refuses_are_refused() {
        for (pattern, reason) in [
            (r"a**", "invalid nested repetition operator"),
            (r"a{2}{3}", "invalid nested repetition operator"),
            (r"(?x)a", "invalid or unsupported Perl syntax"),
            (r"(?=a)", "invalid or unsupported Perl syntax"),
            (r"(?<!a)", "invalid named capture"),
            (r"(?P=n)", "invalid named capture"),
            (r"(?P<a.b>x)", "invalid named capture"),
            (r"\1", "invalid escape sequence"),
            (r"\Z", "invalid escape sequence"),
            (r"\y", "invalid escape sequence"),
            ("a\\", "trailing backslash at end of expression"),
            ("[a", "missing closing ]"),
            ("[z-a]", "invalid character class range"),
            ("(?i", "missing closing )"),
            ("(a", "unclosed group"),
            ("*a", "repetition operator missing expression"),
        ] {
            let error = GoRegex::compile(pattern).expect_err(pattern);
            assert_eq!(error.pattern, pattern);
            assert_eq!(error.reason, reason, "{pattern}");
        }
    }
}
