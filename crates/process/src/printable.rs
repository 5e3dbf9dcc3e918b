//! What is printed is printable: names, messages and fields come from others, and a terminal or a log does what they say.
//!
//! ```text
//!  one_line    a text within a line: nothing that ends the line, moves the cursor, colours, hides or reverses
//!  printable   a text of several lines: the same, but its lines stay
//!  painted     what a command prints, all of it: the same, but the colours that it has given itself stay
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

/// A text for a place within a line. What cannot be printed is shown as an escape, such as `\u{1b}` or `\n`.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, |c| !is_plain(c))
}

/// A text of several lines: line feeds and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |c| !is_plain(c) && c != '\n' && c != '\t')
}

/// Everything that a command prints: lines, tabs, and colours stay.
pub fn painted(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return printable(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        out += &printable(&rest[..at]);
        let length = colour(&rest[at..]);
        if length == 0 {
            out += &printable("\u{1b}");
            rest = &rest[at + 1..];
        } else {
            out += &rest[at..at + length];
            rest = &rest[at + length..];
        }
    }
    out += &printable(rest);
    Cow::Owned(out)
}

/// All texts in a value, each for a place within a line.
pub fn scrub(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = one_line(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(scrub),
        Value::Object(map) => map.values_mut().for_each(scrub),
        _ => {}
    }
}

/// JSON in which nothing stands that cannot be printed; it says the same.
pub fn json(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| is_plain(c) || c == '\n') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) || c == '\n' {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail, here and below.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(out)
}

/// The length of a sequence that only sets a colour or a weight; 0 if it is none.
fn colour(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let numbers = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b';').count();
    if rest.as_bytes().get(numbers) != Some(&b'm') {
        return 0;
    }
    // Concealed text is there and is not seen.
    if rest[..numbers].split(';').any(|number| number == "8") { 0 } else { numbers + 3 }
}

fn escape(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' if is_bad(c) => out += "\\n",
            '\t' if is_bad(c) => out += "\\t",
            '\r' => out += "\\r",
            c if is_bad(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Whether a character is shown where it stands and changes nothing around it.
fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            // Without width, marks of direction, and ends of lines.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_acts_on_a_terminal_is_shown_instead() {
        for (text, wanted) in [
            ("größer → 世界 ✓", "größer → 世界 ✓"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\u{1b}[32m✓", "a\\u{1b}[32m✓"),
            ("a\u{1b}]0;title\u{7}b", "a\\u{1b}]0;title\\u{7}b"),
            ("a\u{9b}2Jb", "a\\u{9b}2Jb"),
            ("fine\n  ✓ all is well", "fine\\n  ✓ all is well"),
            ("a\r\tb\u{8}\u{7f}", "a\\r\\tb\\u{8}\\u{7f}"),
            ("user\u{202e}gpj.exe\u{2066}", "user\\u{202e}gpj.exe\\u{2066}"),
            ("a\u{200b}\u{feff}\u{2028}", "a\\u{200b}\\u{feff}\\u{2028}"),
        ] {
            assert_eq!(one_line(text), wanted);
            assert_eq!(one_line(&one_line(text)), wanted, "escapes are plain");
        }
        assert_eq!(printable("a\n\tb\r\u{1b}[1m"), "a\n\tb\\r\\u{1b}[1m");
    }

    #[test]
    fn a_command_keeps_its_own_colours_and_nothing_else() {
        let green = "\u{1b}[32m✓\u{1b}[0m\n";
        assert_eq!(painted(green), green);
        assert_eq!(painted("\u{1b}[1;38;5;9mx\u{1b}[mz"), "\u{1b}[1;38;5;9mx\u{1b}[mz");
        for (text, wanted) in [
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{1b}[8mhidden", "\\u{1b}[8mhidden"),
            ("\u{1b}[0;8mhidden", "\\u{1b}[0;8mhidden"),
            ("\u{1b}", "\\u{1b}"),
            ("\u{1b}[", "\\u{1b}["),
            ("\u{1b}]8;;http://x\u{1b}\\", "\\u{1b}]8;;http://x\\u{1b}\\"),
        ] {
            assert_eq!(painted(text), wanted);
        }
    }

    #[test]
    fn json_says_the_same() {
        let value = json!({"a": "x\u{9b}y\u{202e}\u{7f}\u{e0041}\n", "b": ["ß"]});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = json(&text);
        assert!(shown.chars().all(|c| is_plain(c) || c == '\n'), "{shown:?}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        let mut scrubbed = value;
        scrub(&mut scrubbed);
        assert_eq!(scrubbed, json!({"a": "x\\u{9b}y\\u{202e}\\u{7f}\\u{e0041}\\n", "b": ["ß"]}));
    }
}
