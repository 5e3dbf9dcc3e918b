//! Following a path through JSON text.

use std::borrow::Cow;

use super::component::{Element, Key, Rest, split_pipe};
use super::found::{Found, Origin, unescape};
use super::kind::Kind;
use super::limits::Scope;
use super::query::Query;
use super::scan::{self, Start, Token};
use super::{modifier, multipath, wildcard};

/// Text to look into, and where it is in the document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub text: &'a str,
    /// None for text that was made on the way.
    pub at: Option<usize>,
}

/// The outcome of the first steps of a path.
pub(super) enum Progress<'a, 'p> {
    /// The path ends here.
    Done(Found<'a>),
    /// The rest of the path starts over with this text, which may still be part of the document.
    Next(Cow<'a, str>, Option<usize>, &'p str, Passed),
}

/// What a path passed before it started over.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Passed {
    Pipe,
    /// A modifier or multipath: from there on nothing can be written.
    Modifier,
}

impl<'a, 'p> Progress<'a, 'p> {
    /// Text that was made from the source, and what follows in the path; other than a dot or a pipe it is ignored.
    pub fn made(text: Cow<'a, str>, source: Source<'_>, rest: &'p str) -> Self {
        let at = source.at.filter(|_| matches!(text, Cow::Borrowed(_)));
        if rest.starts_with(['.', '|']) {
            return Progress::Next(text, at, &rest[1..], Passed::Modifier);
        }
        Progress::Done(Found::parse(text, at))
    }
}

/// Finds what is at `path`.
pub(super) fn find<'a>(source: Source<'a>, path: &str, scope: Scope<'_>) -> Found<'a> {
    let Some(scope) = scope.deeper() else { return Found::nothing() };
    let mut step = first(source, path, scope);
    let mut passed = None;
    loop {
        step = match step {
            Progress::Done(found) => return seen_from_behind(found, passed),
            Progress::Next(text, at, rest, now) => {
                passed = if passed == Some(Passed::Modifier) { passed } else { Some(now) };
                match text {
                    Cow::Borrowed(text) => first(Source { text, at }, rest, scope),
                    Cow::Owned(text) => match first(Source { text: &text, at: None }, rest, scope) {
                        Progress::Done(found) => return found.into_owned(),
                        Progress::Next(next, _, rest, now) => {
                            Progress::Next(Cow::Owned(next.into_owned()), None, rest, now)
                        }
                    },
                }
            }
        };
    }
}

/// A result with the place that counts after what the path passed.
fn seen_from_behind(mut found: Found<'_>, passed: Option<Passed>) -> Found<'_> {
    found.origin = match (passed, found.origin) {
        (Some(_), Origin::At(at)) => Origin::Piped(at),
        (Some(Passed::Modifier), Origin::Each(_)) => Origin::Nowhere,
        (_, origin) => origin,
    };
    found
}

fn first<'a, 'p>(source: Source<'a>, path: &'p str, scope: Scope<'_>) -> Progress<'a, 'p> {
    if !scope.work(source.text.len()) {
        return Progress::Done(Found::nothing());
    }
    let mut path = path;
    match path.as_bytes() {
        [b'@', _, ..] => {
            if let Some((text, rest)) = modifier::run(source.text, path, scope, raw) {
                return Progress::made(text, source, rest);
            }
        }
        [b'!', _, ..] => {
            if let Some((literal, rest)) = modifier::literal(path) {
                return Progress::made(Cow::Owned(literal.to_owned()), source, rest);
            }
        }
        [b'[' | b'{', _, ..] => match collect(source, path, scope) {
            Ok((text, rest)) => return Progress::made(Cow::Owned(text), source, rest),
            // no multipath after all: what follows it counts
            Err(rest) => path = rest,
        },
        _ => {}
    }
    Walk { source, bytes: source.text.as_bytes(), pipe: None, hit: None, kept: None }.run(path, scope)
}

/// The raw JSON at a path, if there is something.
fn raw(json: &str, path: &str, scope: Scope<'_>) -> Option<String> {
    let found = find(Source { text: json, at: None }, path, scope);
    found.exists().then(|| found.into_raw().into_owned())
}

/// Evaluates the multipath at the start of `path`; returns the result with what follows. If it is not one after all,
/// gives what to take as the path instead.
fn collect<'p>(source: Source<'_>, path: &'p str, scope: Scope<'_>) -> Result<(String, &'p str), &'p str> {
    let (selectors, rest) = multipath::parse(path).ok_or("")?;
    if !rest.is_empty() && !rest.starts_with(['.', '|']) {
        return Err(rest);
    }
    let named = path.starts_with('{');
    let mut out = String::from(if named { '{' } else { '[' });
    for selector in selectors {
        let found = find(source, selector.path, scope);
        if !found.exists() || !scope.work(found.raw().len()) {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        if named {
            out.push_str(&selector.key());
            out.push(':');
        }
        out.push_str(found.raw());
    }
    out.push(if named { '}' } else { ']' });
    Ok((out, rest))
}

/// A search from the outermost value inwards.
struct Walk<'a, 'p> {
    source: Source<'a>,
    bytes: &'a [u8],
    /// The path after the pipe that was passed.
    pipe: Option<&'p str>,
    /// What was found, which ends the search. It is here because the way up through all levels would copy it each time.
    hit: Option<Found<'a>>,
    /// What the first `#(...)#` collected. It counts unless something else is found later.
    kept: Option<Found<'a>>,
}

/// Each part of the search returns the byte to continue at if there is no hit; one past the end of the text if nothing
/// more can be found.
impl<'a, 'p> Walk<'a, 'p> {
    fn run(mut self, path: &'p str, scope: Scope<'_>) -> Progress<'a, 'p> {
        if let Some(lines) = path.strip_prefix("..") {
            self.array(0, lines, scope);
        } else if let Some(open) = self.bytes.iter().position(|byte| matches!(byte, b'{' | b'[')) {
            self.inside(open, path, scope);
        }
        let found = self.hit.or(self.kept).unwrap_or_else(Found::nothing);
        match self.pipe {
            Some(rest) => {
                let at = found.origin.start();
                Progress::Next(found.into_raw(), at, rest, Passed::Pipe)
            }
            None => Progress::Done(found),
        }
    }

    /// Searches the object or array that opens at a byte.
    fn inside(&mut self, open: usize, path: &'p str, scope: Scope<'_>) -> usize {
        let Some(scope) = scope.deeper() else { return self.bytes.len() };
        if self.bytes[open] == b'{' { self.object(open + 1, path, scope) } else { self.array(open + 1, path, scope) }
    }

    fn object(&mut self, from: usize, path: &'p str, scope: Scope<'_>) -> usize {
        let wanted = Key::parse(path);
        self.note_pipe(wanted.rest);
        let mut at = from;
        loop {
            let missed = self.bytes.len();
            let Some(skipped) = self.bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'}')) else {
                return missed;
            };
            let open = at + skipped;
            if self.bytes[open] == b'}' {
                return open + 1;
            }
            let Some((end, escapes)) = scan::string(self.bytes, open) else { return missed };
            let matched = if wanted.wild || escapes {
                let key = unescape(&self.source.text[open + 1..end - 1]);
                if wanted.wild { wildcard::matches(&wanted.name, &key, scope) } else { wanted.name == key }
            } else {
                *wanted.name.as_bytes() == self.bytes[open + 1..end - 1]
            };
            let Some(start) = self.value_start(end) else { return missed };
            at = self.visit(start, matched, wanted.rest, scope);
            if self.hit.is_some() || at > self.bytes.len() {
                return at;
            }
        }
    }

    /// The first byte from `from` on with which a value starts.
    fn value_start(&self, from: usize) -> Option<usize> {
        self.bytes[from..].iter().position(|byte| scan::starts_value(*byte)).map(|skipped| from + skipped)
    }

    /// Visits the value that starts at a byte: it is found, or searched, or passed over.
    fn visit(&mut self, start: usize, matched: bool, rest: Rest<'p>, scope: Scope<'_>) -> usize {
        match rest {
            Rest::Dot(path) if matched && matches!(self.bytes[start], b'{' | b'[') => {
                return self.inside(start, path, scope);
            }
            _ => {}
        }
        match scan::start_at(self.bytes, start) {
            Start::Value(token) => {
                if matched && !matches!(rest, Rest::Dot(_)) {
                    self.hit = Some(self.found(token));
                }
                token.end
            }
            // a string without end hides all that follows
            Start::Unclosed | Start::Other => self.bytes.len() + 1,
        }
    }

    fn found(&self, token: Token) -> Found<'a> {
        Found::token(self.source.text, self.source.at, token)
    }

    /// An element as a text of its own.
    fn element(&self, token: Token) -> Source<'a> {
        Source { text: &self.source.text[token.start..token.end], at: self.source.at.map(|at| at + token.start) }
    }

    fn note_pipe(&mut self, rest: Rest<'p>) {
        if let Rest::Pipe(pipe) = rest {
            self.pipe = Some(pipe);
        }
    }

    fn array(&mut self, from: usize, path: &'p str, scope: Scope<'_>) -> usize {
        match Element::parse(path) {
            Element::Index(index, rest) => {
                self.note_pipe(rest);
                self.at_index(from, Some(index), rest, scope)
            }
            Element::Nothing(rest) => {
                self.note_pipe(rest);
                self.at_index(from, None, rest, scope)
            }
            Element::Count(rest) => {
                self.note_pipe(rest);
                let mut count = 0usize;
                let end = self.each(from, |_, _| {
                    count += 1;
                    true
                });
                self.hit = (end <= self.bytes.len()).then(|| Found::computed(Kind::Number, count.to_string()));
                end
            }
            Element::Each(path, pipe) => {
                let mut all = Collected::new();
                let end = self.each(from, |walk, token| {
                    all.add(&find(walk.element(token), path, scope));
                    true
                });
                self.pipe = pipe.or(self.pipe);
                self.hit = (end <= self.bytes.len()).then(|| all.into_found());
                end
            }
            Element::Query(query, rest) => self.query(from, &query, rest, scope),
        }
    }

    fn at_index(&mut self, from: usize, index: Option<u64>, rest: Rest<'p>, scope: Scope<'_>) -> usize {
        let (mut at, mut count) = (from, 0);
        while let Some(start) = self.element_start(at) {
            at = self.visit(start, Some(count) == index, rest, scope);
            if self.hit.is_some() || at > self.bytes.len() {
                return at;
            }
            count += 1;
        }
        self.array_end(at)
    }

    /// The first byte of the next element; none after the last one.
    fn element_start(&self, from: usize) -> Option<usize> {
        let ends = |byte: &u8| *byte == b']' || scan::starts_value(*byte);
        let start = from + self.bytes[from..].iter().position(ends)?;
        (self.bytes[start] != b']').then_some(start)
    }

    fn array_end(&self, from: usize) -> usize {
        self.bytes[from..].iter().position(|byte| *byte == b']').map_or(self.bytes.len(), |at| from + at + 1)
    }

    /// Visits the elements as long as the visitor wants more; returns the byte after them.
    fn each(&mut self, from: usize, mut visit: impl FnMut(&mut Self, Token) -> bool) -> usize {
        let mut at = from;
        while let Some(start) = self.element_start(at) {
            // a string without end hides all that follows
            let Start::Value(token) = scan::start_at(self.bytes, start) else { return self.bytes.len() + 1 };
            at = token.end;
            if !visit(self, token) {
                return at;
            }
        }
        self.array_end(at)
    }

    /// `#(query)` and `#(query)#`: the first element that matches, or all of them.
    fn query(&mut self, from: usize, query: &Query<'p>, rest: Rest<'p>, scope: Scope<'_>) -> usize {
        self.note_pipe(rest);
        let mut all = Collected::new();
        let end = self.each(from, |walk, token| {
            let element = walk.found(token);
            let asked = match element.kind() {
                Kind::Json => find(walk.element(token), query.path, scope),
                _ if query.path.is_empty() => element.clone(),
                _ => return true,
            };
            if !query.matches(&asked, scope) {
                return true;
            }
            let result = match rest {
                Rest::Dot(path) => {
                    let (path, pipe) = split_pipe(path);
                    walk.pipe = pipe.or(walk.pipe);
                    find(walk.element(token), path, scope)
                }
                Rest::End | Rest::Pipe(_) => element,
            };
            if query.all {
                all.add(&result);
            } else {
                // an element found by itself counts, however the path continued inside it
                let origin = result.origin.start().map_or(result.origin.clone(), Origin::At);
                walk.hit = Some(Found { origin, ..result });
            }
            walk.hit.is_none()
        });
        if query.all && self.kept.is_none() && end <= self.bytes.len() {
            self.kept = Some(all.into_found());
        }
        end
    }
}

/// An array made of several results.
struct Collected {
    /// Empty as long as nothing was added.
    raw: String,
    origin: Origin,
}

impl Collected {
    fn new() -> Self {
        Self { raw: String::new(), origin: Origin::Each(Vec::new()) }
    }

    fn add(&mut self, found: &Found<'_>) {
        if !found.exists() {
            return;
        }
        self.raw.push(if self.raw.is_empty() { '[' } else { ',' });
        self.raw.push_str(found.raw());
        match (&mut self.origin, found.origin.clone()) {
            (Origin::Each(places), Origin::At(at) | Origin::Piped(at)) => places.push(at..at + found.raw().len()),
            (Origin::Each(places), Origin::Each(inner)) => places.extend(inner),
            (origin, _) => *origin = Origin::Nowhere,
        }
    }

    fn into_found<'a>(mut self) -> Found<'a> {
        self.raw.push_str(if self.raw.is_empty() { "[]" } else { "]" });
        let mut found = Found::computed(Kind::Json, self.raw);
        found.origin = self.origin;
        found
    }
}
