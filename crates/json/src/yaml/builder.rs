//! Builds values from the events of the parser, without recursion.

use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span, Tag, options};
use serde_json::{Map, Value};

use super::document::{Document, Duplicate, YamlError};
use super::lenient::Failure;
use super::scalar::{self, Scalar};

/// How many values a document may have by referring to others: Go's limits for texts that grow while they are read.
const SMALL: usize = 400_000;
const LARGE: usize = 4_000_000;

/// The documents of a text, one at a time.
pub(super) fn documents(text: &str, deepest: usize) -> impl Iterator<Item = Result<Document, Failure>> {
    let options: Options = options! {
        emit_comments: false,
        flow_nesting_limit: deepest,
        block_nesting_limit: deepest,
    };
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut over = false;
    std::iter::from_fn(move || {
        if over {
            return None;
        }
        let mut builder = Builder { deepest, ..Builder::default() };
        loop {
            let (event, span) = match parser.next()? {
                Ok(next) => next,
                Err(error) => {
                    over = true;
                    let (at, message) = (error.marker(), error.info());
                    let problem = YamlError { message, line: at.line(), column: at.col() + 1 };
                    let outdented = *error.kind() == ErrorKind::InvalidQuotedScalarIndent;
                    return Some(Err(if outdented { Failure::Outdented(problem) } else { Failure::Other(problem) }));
                }
            };
            match builder.take(event, &span) {
                Ok(false) => {}
                Ok(true) => return Some(Ok(builder.document)),
                Err(message) => {
                    over = true;
                    let at = span.start;
                    return Some(Err(Failure::Other(YamlError { message, line: at.line(), column: at.col() + 1 })));
                }
            }
        }
    })
}

/// A value with the number of values in it.
#[derive(Clone)]
struct Node {
    value: Value,
    size: usize,
    /// What it is as a key; none for lists and maps.
    scalar: Option<Scalar>,
    /// An unquoted `<<`.
    merge: bool,
}

/// A list or a map that is not complete yet, and the line on which it begins.
enum Frame {
    List { items: Vec<Value>, size: usize, anchor: usize, line: usize },
    Map { entries: Map<String, Value>, size: usize, anchor: usize, line: usize, key: Option<Key> },
}

enum Key {
    Named {
        name: String,
        shown: String,
    },
    /// `<<`: the value's own entries are added.
    Merge,
}

#[derive(Default)]
struct Builder {
    deepest: usize,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Node>,
    /// Values made so far, and how many of them by references.
    made: usize,
    copied: usize,
    document: Document,
}

impl Builder {
    /// Takes one event; true at the end of the document.
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<bool, String> {
        let line = span.start.line();
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let scalar = tagged(&text, plain, tag.as_deref())?;
                let merge = plain && tag.is_none() && text == "<<";
                // Only what is used as a value has to be one.
                let in_key = matches!(self.stack.last(), Some(Frame::Map { key: None, .. }));
                let value = if in_key { Value::Null } else { scalar.clone().value()? };
                self.made += 1;
                self.finish(Node { value, size: 1, scalar: Some(scalar), merge }, anchor, line)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(Frame::List { items: Vec::new(), size: 1, anchor, line })?;
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(Frame::Map { entries: Map::new(), size: 1, anchor, line, key: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => match self.stack.pop() {
                Some(Frame::List { items, size, anchor, line }) => {
                    self.finish(Node { value: items.into(), size, scalar: None, merge: false }, anchor, line)?;
                }
                Some(Frame::Map { entries, size, anchor, line, .. }) => {
                    self.finish(Node { value: entries.into(), size, scalar: None, merge: false }, anchor, line)?;
                }
                None => {}
            },
            Event::Alias(id) => {
                let node = self.anchors.get(&id).ok_or("an anchor's value contains itself")?;
                self.made += node.size;
                self.copied += node.size;
                if self.copied > 100 && self.made > 1000 && self.copied > allowed(self.made) {
                    return Err("document contains excessive aliasing".to_owned());
                }
                let node = node.clone();
                self.finish(node, 0, line)?;
            }
            Event::DocumentEnd => return Ok(true),
            _ => {}
        }
        Ok(false)
    }

    fn open(&mut self, frame: Frame) -> Result<(), String> {
        // Lists inside of block lists count for the parser's own limits only in part.
        if self.stack.len() >= self.deepest {
            return Err(format!("the document nests deeper than {} levels", self.deepest));
        }
        self.made += 1;
        self.stack.push(frame);
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn finish(&mut self, node: Node, anchor: usize, line: usize) -> Result<(), String> {
        if anchor != 0 {
            let mut kept = node.clone();
            if let (Value::Null, Some(scalar)) = (&kept.value, &kept.scalar) {
                kept.value = scalar.clone().value()?;
            }
            self.anchors.insert(anchor, kept);
        }
        match self.stack.last_mut() {
            None => self.document.value = node.value,
            Some(Frame::List { items, size, .. }) => {
                *size += node.size;
                items.push(node.value);
            }
            Some(Frame::Map { entries, size, key, .. }) => {
                *size += node.size;
                match key.take() {
                    None if node.merge => *key = Some(Key::Merge),
                    None => {
                        let scalar = node.scalar.ok_or("a list or a map cannot be the key of a map")?;
                        *key = Some(Key::Named { name: scalar.key()?, shown: scalar.shown() });
                    }
                    Some(Key::Merge) => merge(node.value, line, entries, &mut self.document.duplicates)?,
                    Some(Key::Named { name, shown }) => {
                        if entries.insert(name, node.value).is_some() {
                            self.document.duplicates.push(Duplicate { key: shown, line });
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Adds the entries of a map, or of several of which the first ones count most.
fn merge(
    value: Value,
    line: usize,
    entries: &mut Map<String, Value>,
    duplicates: &mut Vec<Duplicate>,
) -> Result<(), String> {
    let maps = match value {
        Value::Array(list) => list,
        other => vec![other],
    };
    for map in maps.into_iter().rev() {
        let Value::Object(map) = map else {
            return Err("map merge requires map or sequence of maps as the value".to_owned());
        };
        for (name, value) in map {
            let shown = carrick_go::quote::text(&name);
            if entries.insert(name, value).is_some() {
                duplicates.push(Duplicate { key: shown, line });
            }
        }
    }
    Ok(())
}

/// How many of so many values may come from references.
fn allowed(made: usize) -> usize {
    if made <= SMALL {
        return made / 100 * 99;
    }
    if made >= LARGE {
        return made / 10;
    }
    // From 99 % down to 10 %, in a straight line.
    let percent = 99 - 89 * (made - SMALL) / (LARGE - SMALL);
    made / 100 * percent
}

/// A scalar with its tag, if it has one.
fn tagged(text: &str, plain: bool, tag: Option<&Tag>) -> Result<Scalar, String> {
    let core = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
    let Some(core) = core else {
        return Ok(if plain { scalar::resolve(text) } else { Scalar::Text(text.to_owned()) });
    };
    let Some(kind) = core.strip_prefix("tag:yaml.org,2002:") else { return Ok(Scalar::Text(text.to_owned())) };
    let found = scalar::resolve(text);
    match (kind, found) {
        ("bool", found @ Scalar::Bool(_))
        | ("int", found @ (Scalar::Integer(_) | Scalar::Unsigned(_)))
        | ("float", found @ Scalar::Float(_))
        | ("null", found @ Scalar::Null) => Ok(found),
        #[allow(clippy::cast_precision_loss, reason = "this is what the tag asks for")]
        ("float", Scalar::Integer(number)) => Ok(Scalar::Float(number as f64)),
        ("bool" | "int" | "float" | "null", _) => Err(format!("cannot decode `{text}` as a !!{kind}")),
        ("binary", _) => binary(text).map(Scalar::Text),
        _ => Ok(Scalar::Text(text.to_owned())),
    }
}

/// What base64 stands for. JSON has no bytes, so what is not UTF-8 is replaced, as Go does it.
fn binary(text: &str) -> Result<String, String> {
    let one_line: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    let bytes = data_encoding::BASE64.decode(one_line.as_bytes());
    let bytes = bytes.map_err(|error| format!("!!binary value contains invalid base64 data: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
