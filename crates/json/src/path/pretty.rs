//! JSON laid out over lines, and JSON without whitespace.

use std::cmp::Ordering;

use super::found::Found;
use super::kind::Kind;
use super::limits::Scope;
use super::scan::{self, Members, Token};

/// Options of `@pretty`.
struct Options {
    sort_keys: bool,
    indent: String,
    prefix: String,
    /// Arrays without objects that fit into this many columns stay on one line.
    width: i64,
}

impl Options {
    fn parse(argument: &str) -> Self {
        let mut options = Self { sort_keys: false, indent: "  ".into(), prefix: String::new(), width: 80 };
        for (key, value) in Found::of(argument).members() {
            match key.as_ref().map(Found::str).as_deref() {
                Some("sortKeys") => options.sort_keys = value.bool(),
                Some("indent") => options.indent = whitespace(&value.text()),
                Some("prefix") => options.prefix = whitespace(&value.text()),
                Some("width") => options.width = value.int(),
                _ => {}
            }
        }
        options
    }
}

fn whitespace(text: &str) -> String {
    text.chars().filter(|c| matches!(c, ' ' | '\t' | '\n' | '\r')).collect()
}

/// JSON over several lines with a newline at the end; empty if there is no value in the text.
pub(super) fn pretty(json: &str, argument: &str, scope: Scope<'_>) -> String {
    let options = Options::parse(argument);
    let mut writer = Writer { json, out: options.prefix.clone(), line: 0, options };
    if let Some(value) = scan::next_value(json.as_bytes(), 0)
        && writer.value(value, 0, scope).is_none()
    {
        return String::new();
    }
    if !writer.out.is_empty() {
        writer.out.push('\n');
    }
    writer.out
}

/// A member of an object that was written, and where.
struct Member<'a> {
    key: &'a str,
    start: usize,
    value_start: usize,
    end: usize,
}

struct Writer<'a> {
    json: &'a str,
    out: String,
    /// Where the current line starts: at the newline before it.
    line: usize,
    options: Options,
}

impl Writer<'_> {
    /// Writes a value; none when a limit was reached.
    fn value(&mut self, value: Token, level: usize, scope: Scope<'_>) -> Option<()> {
        let raw = &self.json[value.start..value.end];
        if !scope.work(raw.len()) {
            return None;
        }
        match (value.kind, raw.as_bytes()[0]) {
            (Kind::Json, b'[') => self.array(value, level, scope.deeper()?),
            (Kind::Json, _) => self.object(value, level, scope.deeper()?),
            (Kind::True, _) => self.push("true"),
            (Kind::False, _) => self.push("false"),
            (Kind::Null, _) => self.push("null"),
            _ => self.push(raw),
        }
    }

    #[allow(clippy::unnecessary_wraps)] // what one branch of a value gives
    fn push(&mut self, text: &str) -> Option<()> {
        self.out.push_str(text);
        Some(())
    }

    fn members(&self, value: Token) -> Vec<(Option<Token>, Token)> {
        let shift = |token: Token| Token { start: token.start + value.start, end: token.end + value.start, ..token };
        let members = Members::of(&self.json[value.start..value.end]);
        members.map(|(key, value)| (key.map(shift), shift(value))).collect()
    }

    fn array(&mut self, value: Token, level: usize, scope: Scope<'_>) -> Option<()> {
        let column = i64::try_from(self.out.len() - self.line).unwrap_or(i64::MAX);
        let room = self.options.width.saturating_sub(column);
        if self.options.width > 0 && room > 3 {
            let start = self.out.len();
            let fits = self.on_one_line(value, start.saturating_add(usize::try_from(room).ok()?), scope)?;
            if fits {
                return Some(());
            }
            self.out.truncate(start);
        }
        let items = self.members(value);
        self.out.push('[');
        for (index, (_, item)) in items.iter().enumerate() {
            self.new_line(index > 0, level + 1);
            self.value(*item, level + 1, scope)?;
        }
        self.close(items.is_empty(), level, ']');
        Some(())
    }

    /// Tries to write an array on the current line up to a length; false if it does not fit or holds objects.
    fn on_one_line(&mut self, value: Token, limit: usize, scope: Scope<'_>) -> Option<bool> {
        self.out.push('[');
        for (index, (_, item)) in self.members(value).into_iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            match (item.kind, self.json.as_bytes()[item.start]) {
                (Kind::Json, b'[') => {
                    if !self.on_one_line(item, limit, scope.deeper()?)? {
                        return Some(false);
                    }
                }
                (Kind::Json, _) => return Some(false),
                _ => self.value(item, 0, scope)?,
            }
            if self.out.len() > limit {
                return Some(false);
            }
        }
        self.out.push(']');
        Some(self.out.len() <= limit)
    }

    fn object(&mut self, value: Token, level: usize, scope: Scope<'_>) -> Option<()> {
        self.out.push('{');
        let members = self.members(value);
        let mut written = Vec::with_capacity(members.len());
        for (index, (key, item)) in members.iter().enumerate() {
            self.new_line(index > 0, level + 1);
            let start = self.line + 1;
            let key = key.map_or("", |key| &self.json[key.start..key.end]);
            self.out.push_str(key);
            self.out.push_str(": ");
            let value_start = self.out.len();
            self.value(*item, level + 1, scope)?;
            written.push(Member { key, start, value_start, end: self.out.len() });
        }
        if self.options.sort_keys {
            self.sort(&written);
        }
        self.close(members.is_empty(), level, '}');
        Some(())
    }

    /// Brings members that were just written into the order of their keys; among equal keys, of their values.
    fn sort(&mut self, written: &[Member<'_>]) {
        let (Some(first), Some(last)) = (written.first(), written.last()) else { return };
        let mut sorted: Vec<&Member<'_>> = written.iter().collect();
        let value = |member: &Member<'_>| self.out[member.value_start..member.end].trim();
        sorted.sort_by(|a, b| order(a.key, b.key).then_with(|| order(value(a), value(b))));
        let parts: Vec<&str> = sorted.iter().map(|member| &self.out[member.start..member.end]).collect();
        let text = parts.join(",\n");
        self.out.replace_range(first.start..last.end, &text);
    }

    /// A comma if wanted, and a new line with its indentation.
    fn new_line(&mut self, comma: bool, level: usize) {
        if comma {
            self.out.push(',');
        }
        self.line = self.out.len();
        self.out.push('\n');
        self.out.push_str(&self.options.prefix);
        for _ in 0..level {
            self.out.push_str(&self.options.indent);
        }
    }

    fn close(&mut self, empty: bool, level: usize, bracket: char) {
        if !empty {
            self.new_line(false, level);
        }
        self.out.push(bracket);
    }
}

/// The order of two JSON values: by kind, then strings and numbers by their value and others by their text.
fn order(a: &str, b: &str) -> Ordering {
    let (a, b) = (Found::of(a), Found::of(b));
    let rank = |found: &Found<'_>| found.kind() as u8;
    rank(&a).cmp(&rank(&b)).then_with(|| match a.kind() {
        Kind::String => a.str().cmp(&b.str()),
        Kind::Number => a.num().partial_cmp(&b.num()).unwrap_or(Ordering::Equal),
        _ => a.raw().cmp(b.raw()),
    })
}

/// JSON without the whitespace between its words.
pub(super) fn ugly(json: &str) -> String {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = scan::string_end(bytes, at).unwrap_or(bytes.len());
                continue;
            }
            0..=b' ' => {
                out.push_str(&json[copied..at]);
                copied = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    out.push_str(&json[copied..]);
    out
}
