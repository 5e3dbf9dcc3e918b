//! JSON as Go's encoding/json writes it.

use carrick_go::float;

use crate::{
    functions::{
        Args, Function,
        Type::{Any, Str},
    },
    heap::{Builder, Failure, Heap, Outcome},
    runes,
    value::{self, Value},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("fromJson", &[Str], |heap, args| hide(from_json(heap, args), Value::Nil)),
    Function::new("mustFromJson", &[Str], from_json),
    Function::new("toJson", &[Any], |heap, args| hide(encoded(heap, args, Style::Escaped), "".into())),
    Function::new("mustToJson", &[Any], |heap, args| encoded(heap, args, Style::Escaped)),
    Function::new("toPrettyJson", &[Any], |heap, args| hide(encoded(heap, args, Style::Pretty), "".into())),
    Function::new("mustToPrettyJson", &[Any], |heap, args| encoded(heap, args, Style::Pretty)),
    Function::new("toRawJson", &[Any], |heap, args| hide(encoded(heap, args, Style::Raw), "".into())),
    Function::new("mustToRawJson", &[Any], |heap, args| encoded(heap, args, Style::Raw)),
];

/// How JSON is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// On one line, safe inside HTML.
    Escaped,
    /// On one line.
    Raw,
    /// On several lines, safe inside HTML.
    Pretty,
}

/// Functions without `must` hide errors, but not that a limit was reached.
fn hide(outcome: Outcome<Value>, instead: Value) -> Outcome<Value> {
    match outcome {
        Err(Failure::Message(_)) => Ok(instead),
        other => other,
    }
}

fn encoded(heap: &Heap, args: Args<'_>, style: Style) -> Outcome<Value> {
    Ok(Value::Str(encode(heap, args.any(0)?, style)?))
}

fn from_json(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let text = args.bytes(0)?;
    heap.scan(text.len())?;
    // Values take far more room than their text.
    heap.take(16 * text.len())?;
    let json = serde_json::from_str(&args.str(0)?.text()).map_err(|e| e.to_string())?;
    heap.import_floats(&json)
}

/// Writes a value as JSON.
pub(super) fn encode(heap: &Heap, value: &Value, style: Style) -> Outcome<value::Str> {
    let mut encoder = Encoder { heap, out: heap.builder(), style, indent: 0 };
    encoder.value(value)?;
    encoder.out.finish()
}

struct Encoder<'h> {
    heap: &'h Heap,
    out: Builder<'h>,
    style: Style,
    indent: usize,
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value) -> Outcome<()> {
        self.heap.step(1)?;
        match value {
            Value::Missing | Value::Nil => self.out.text("null"),
            Value::Bool(b) => self.out.text(if *b { "true" } else { "false" }),
            Value::Int(i) | Value::Int64(i) => self.out.text(&i.to_string()),
            Value::Uint(_, u) => self.out.text(&u.to_string()),
            Value::Float(f) if !f.is_finite() => Err(format!("json: unsupported value: {f}").into()),
            Value::Float(f) => self.out.text(&float::json(*f)),
            Value::Complex(..) => Err("json: unsupported type: complex128".into()),
            Value::Str(text) => self.string(text.as_bytes()),
            Value::Time(time) => self.string(time.json().as_bytes()),
            Value::Version(version) => self.string(version.to_string().as_bytes()),
            Value::Named(named) => self.out.text(&named.number().to_string()),
            Value::Found(found) => {
                let fields = found.fields(self.heap)?;
                self.object(fields.iter().map(|(name, item)| (name.as_bytes(), item)))
            }
            Value::List(list) if list.is_nil() => self.out.text("null"),
            Value::Map(map) if map.is_nil() => self.out.text("null"),
            Value::List(list) => {
                let heap = self.heap;
                let _level = heap.enter()?;
                let items = list.items();
                self.open("[")?;
                for (index, item) in items.iter().enumerate() {
                    self.separate(index)?;
                    self.value(item)?;
                }
                self.close("]", items.is_empty())
            }
            Value::Map(map) | Value::Root(map) => {
                let entries = map.entries();
                self.object(entries.iter().map(|(key, item)| (key.as_bytes(), item)))
            }
        }
    }

    fn object<'v>(&mut self, entries: impl ExactSizeIterator<Item = (&'v [u8], &'v Value)>) -> Outcome<()> {
        let heap = self.heap;
        let _level = heap.enter()?;
        let is_empty = entries.len() == 0;
        self.open("{")?;
        for (index, (key, item)) in entries.enumerate() {
            self.separate(index)?;
            self.string(key)?;
            self.out.text(if self.style == Style::Pretty { ": " } else { ":" })?;
            self.value(item)?;
        }
        self.close("}", is_empty)
    }

    fn open(&mut self, bracket: &str) -> Outcome<()> {
        self.indent += 2;
        self.out.text(bracket)
    }

    fn separate(&mut self, index: usize) -> Outcome<()> {
        if index > 0 {
            self.out.text(",")?;
        }
        self.newline()
    }

    fn newline(&mut self) -> Outcome<()> {
        if self.style != Style::Pretty {
            return Ok(());
        }
        self.out.text("\n")?;
        self.out.fill(b' ', self.indent)
    }

    fn close(&mut self, bracket: &str, empty: bool) -> Outcome<()> {
        self.indent -= 2;
        if !empty {
            self.newline()?;
        }
        self.out.text(bracket)
    }

    fn string(&mut self, text: &[u8]) -> Outcome<()> {
        self.out.text("\"")?;
        for (c, piece) in runes::pieces(text) {
            match c {
                '"' => self.out.text("\\\"")?,
                '\\' => self.out.text("\\\\")?,
                '\x08' => self.out.text("\\b")?,
                '\x0c' => self.out.text("\\f")?,
                '\n' => self.out.text("\\n")?,
                '\r' => self.out.text("\\r")?,
                '\t' => self.out.text("\\t")?,
                '<' | '>' | '&' if self.style == Style::Raw => self.out.push(piece)?,
                '<' | '>' | '&' | '\0'..' ' | '\u{2028}' | '\u{2029}' => {
                    self.out.text(&format!("\\u{:04x}", u32::from(c)))?;
                }
                char::REPLACEMENT_CHARACTER if piece.len() == 1 => self.out.text("\\ufffd")?,
                _ => self.out.push(piece)?,
            }
        }
        self.out.text("\"")
    }
}
