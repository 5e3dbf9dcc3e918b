//! How literal text moves the context: tags, attributes and their values.

use super::{
    attributes::{self, Meaning},
    context::{Attr, Context, Delim, Element, Place, UrlPart},
    entities, script, style,
};

/// The context behind the first bytes of a text and how many these are, or what is wrong with the text.
pub(super) type Moved = Result<(Context, usize), String>;

const SPACE: &[u8] = b" \t\n\x0c\r";

/// The end of the spaces at the start.
fn spaces(text: &[u8]) -> usize {
    text.iter().position(|byte| !SPACE.contains(byte)).unwrap_or(text.len())
}

/// The position of the first of some bytes.
pub(super) fn find(text: &[u8], bytes: &[u8]) -> Option<usize> {
    text.iter().position(|byte| bytes.contains(byte))
}

/// The position of the first occurrence.
pub(super) fn find_all(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

pub(super) fn starts_with_ignoring_case(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Reads a text node from left to right.
pub(super) struct Scanner<'t> {
    text: &'t [u8],
    /// Where the element's content ends, once it was looked for.
    tag_end: Option<(Element, usize)>,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t [u8]) -> Scanner<'t> {
        Scanner { text, tag_end: None }
    }

    /// Moves on from a position.
    pub(super) fn step(&mut self, context: &Context, from: usize) -> Moved {
        if context.delim != Delim::None {
            return in_value(context, &self.text[from..]);
        }
        let end = self.content_end(context, from);
        if end == from {
            return Ok((Context::default(), 0));
        }
        transition(context, &self.text[from..end])
    }

    /// The end of the text that belongs to the element around it.
    fn content_end(&mut self, context: &Context, from: usize) -> usize {
        let element = context.element;
        let in_script_literal =
            element == Element::Script && (context.place.is_script_literal() || context.place.is_comment());
        if element == Element::None || in_script_literal {
            return self.text.len();
        }
        match self.tag_end {
            Some((known, end)) if known == element && end >= from => end,
            _ => {
                let end = from + closing_tag(&self.text[from..], element.name()).unwrap_or(self.text.len() - from);
                self.tag_end = Some((element, end));
                end
            }
        }
    }
}

/// The position of `</name` before a space, a slash or the end of the tag.
fn closing_tag(text: &[u8], name: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(start) = find_all(&text[from..], b"</") {
        let start = from + start;
        from = start + 2;
        let rest = &text[from..];
        if starts_with_ignoring_case(rest, name) {
            if rest.get(name.len()).is_some_and(|byte| b"> \t\n\x0c/".contains(byte)) {
                return Some(start);
            }
            from += name.len();
        }
    }
    None
}

/// Moves on inside the value of an attribute.
fn in_value(context: &Context, text: &[u8]) -> Moved {
    let ends: &[u8] = match context.delim {
        Delim::Double => b"\"",
        Delim::Single => b"'",
        Delim::SpaceOrTagEnd | Delim::None => b" \t\n\x0c\r>",
    };
    let end = find(text, ends);
    let value = &text[..end.unwrap_or(text.len())];
    if context.delim == Delim::SpaceOrTagEnd
        && let Some(bad) = find(value, b"\"'<=`")
    {
        let bad = char::from(value[bad]);
        return Err(format!("{bad:?} in the value of an attribute without quotes; write the value in quotes"));
    }
    let Some(end) = end else {
        let mut context = context.clone();
        let decoded = entities::decode(value);
        let mut rest = decoded.as_slice();
        while !rest.is_empty() {
            let (next, read) = transition(&context, rest)?;
            context = next;
            rest = &rest[read..];
        }
        return Ok((context, text.len()));
    };
    // A script of another type is no script.
    let is_type = context.place == Place::Attr && context.attr == Attr::ScriptType;
    let element = match context.element {
        Element::Script if is_type && !attributes::is_script_type(value) => Element::None,
        element => element,
    };
    let quote = usize::from(context.delim != Delim::SpaceOrTagEnd);
    Ok((Context { element, ..Context::at(Place::Tag) }, end + quote))
}

/// Moves on by the rules of the place.
fn transition(context: &Context, text: &[u8]) -> Moved {
    match context.place {
        Place::Text => Ok(text_and_tags(context, text)),
        Place::Tag => tag(context, text),
        Place::AttrName => {
            let end = attribute_name(text)?;
            let place = if end == text.len() { Place::AttrName } else { Place::AfterName };
            Ok((Context { place, ..context.clone() }, end))
        }
        Place::AfterName => Ok(match spaces(text) {
            end if end == text.len() => (context.clone(), end),
            end if text[end] == b'=' => (Context { place: Place::BeforeValue, ..context.clone() }, end + 1),
            end => (Context { place: Place::Tag, ..context.clone() }, end),
        }),
        Place::BeforeValue => Ok(before_value(context, text)),
        Place::HtmlComment => Ok(match find_all(text, b"-->") {
            Some(end) => (Context::default(), end + 3),
            None => (context.clone(), text.len()),
        }),
        Place::Rcdata | Place::Attr => Ok((context.clone(), text.len())),
        Place::Url | Place::Srcset => Ok((Context { url: url_part(context.url, text), ..context.clone() }, text.len())),
        Place::Meta => Ok(meta(context, text)),
        Place::MetaUrl => Ok(match find(text, b";") {
            Some(end) => (Context { place: Place::Meta, ..context.clone() }, end + 1),
            None => (context.clone(), text.len()),
        }),
        Place::Js
        | Place::JsDouble
        | Place::JsSingle
        | Place::JsTemplate
        | Place::JsRegex
        | Place::JsBlockComment
        | Place::JsLineComment
        | Place::JsOpenComment
        | Place::JsCloseComment => script::transition(context, text),
        Place::Css
        | Place::CssDouble
        | Place::CssSingle
        | Place::CssDoubleUrl
        | Place::CssSingleUrl
        | Place::CssUrl
        | Place::CssBlockComment
        | Place::CssLineComment => style::transition(context, text),
    }
}

/// The part of a URL after some more of it.
pub(super) fn url_part(part: UrlPart, text: &[u8]) -> UrlPart {
    if find(text, b"#?").is_some() {
        UrlPart::QueryOrFragment
    } else if part == UrlPart::Start && spaces(text) < text.len() {
        UrlPart::BeforeQuery
    } else {
        part
    }
}

fn text_and_tags(context: &Context, text: &[u8]) -> (Context, usize) {
    let mut from = 0;
    while let Some(open) = find(&text[from..], b"<") {
        let open = from + open;
        if text[open..].starts_with(b"<!--") {
            return (Context::at(Place::HtmlComment), open + 4);
        }
        let closes = text.get(open + 1) == Some(&b'/');
        let start = open + 1 + usize::from(closes);
        let name = tag_name(&text[start.min(text.len())..]);
        if !name.is_empty() {
            let element = if closes { Element::None } else { Element::of(name) };
            return (Context { element, ..Context::at(Place::Tag) }, start + name.len());
        }
        from = start.min(text.len());
    }
    (context.clone(), text.len())
}

/// Letters and digits, with single colons and dashes between them.
fn tag_name(text: &[u8]) -> &[u8] {
    if !text.first().is_some_and(u8::is_ascii_alphabetic) {
        return &[];
    }
    let mut end = 1;
    loop {
        match &text[end..] {
            [byte, ..] if byte.is_ascii_alphanumeric() => end += 1,
            [b':' | b'-', next, ..] if next.is_ascii_alphanumeric() => end += 2,
            _ => return &text[..end],
        }
    }
}

fn tag(context: &Context, text: &[u8]) -> Moved {
    let start = spaces(text);
    let rest = &text[start..];
    match rest.first() {
        None => return Ok((context.clone(), text.len())),
        Some(b'>') => {
            let element = if context.element == Element::Meta { Element::None } else { context.element };
            return Ok((Context { element, ..Context::at(element.content()) }, start + 1));
        }
        Some(_) => {}
    }
    let end = attribute_name(rest)?;
    if end == 0 {
        return Err("an attribute has no name; expected a space, a name or the end of the tag".into());
    }
    let name = String::from_utf8_lossy(&rest[..end]).to_lowercase();
    let attr = match (context.element, name.as_str()) {
        (Element::Script, "type") => Attr::ScriptType,
        (Element::Meta, "content") => Attr::MetaContent,
        _ => match attributes::meaning(&name) {
            Meaning::Url => Attr::Url,
            Meaning::Style => Attr::Style,
            Meaning::Script => Attr::Script,
            Meaning::Srcset => Attr::Srcset,
            Meaning::Plain | Meaning::Delicate => Attr::None,
        },
    };
    let place = if end == rest.len() { Place::AttrName } else { Place::AfterName };
    Ok((Context { element: context.element, attr, ..Context::at(place) }, start + end))
}

/// The end of an attribute's name.
fn attribute_name(text: &[u8]) -> Result<usize, String> {
    let end = find(text, b" \t\n\x0c\r=>'\"<").unwrap_or(text.len());
    match text.get(end) {
        Some(bad @ (b'\'' | b'"' | b'<')) => Err(format!("{:?} in the name of an attribute", char::from(*bad))),
        _ => Ok(end),
    }
}

fn before_value(context: &Context, text: &[u8]) -> (Context, usize) {
    let start = spaces(text);
    let (delim, quote) = match text.get(start) {
        None => return (context.clone(), text.len()),
        Some(b'"') => (Delim::Double, 1),
        Some(b'\'') => (Delim::Single, 1),
        Some(_) => (Delim::SpaceOrTagEnd, 0),
    };
    (Context { place: context.attr.value(), delim, ..context.clone() }, start + quote)
}

/// Looks for the `url=` of a refresh.
fn meta(context: &Context, text: &[u8]) -> (Context, usize) {
    for start in 0..text.len() {
        if starts_with_ignoring_case(&text[start..], b"url") {
            let equals = start + 3 + spaces(&text[start + 3..]);
            if text.get(equals) == Some(&b'=') {
                return (Context { place: Place::MetaUrl, ..context.clone() }, equals + 1);
            }
        }
    }
    (context.clone(), text.len())
}
