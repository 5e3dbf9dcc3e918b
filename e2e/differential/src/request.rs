//! One request of a sequence, in a form that can be sent to any server.
//!
//! Texts may hold `{ns}`, the sequence's own namespace, and a text may be `$uid:KEY`, `$rv:KEY` or `$first:KEY`: what the server asked gave
//! to the object of that key (`configmaps/a`) last, or, for `$first`, its first revision.

use std::fmt;

use serde_json::Value;

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// HTTP method.
    pub method: &'static str,
    /// Path below the server or workspace.
    pub path: String,
    /// Parameters, not encoded.
    pub query: Vec<(&'static str, String)>,
    /// `Content-Type`.
    pub media: &'static str,
    /// `Accept`.
    pub accept: &'static str,
    /// What is sent.
    pub body: Body,
    /// Whether the pages that follow are fetched as well.
    pub pages: bool,
    /// What is sent after the first page.
    pub between: Option<Box<Request>>,
    /// What has to happen for the answer to count.
    pub when: When,
}

/// Which answer to a request counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The first.
    Now,
    /// None: others may have changed the object meanwhile.
    Never,
    /// None: it is sent until it is refused, because those who refuse hear of the reason a moment later.
    Refused,
    /// The one that no longer changes, where somebody collects what nobody needs; elsewhere none.
    Settled,
    /// That there is nothing (any more), where somebody ends namespaces; elsewhere none.
    Gone,
}

/// What is sent.
#[derive(Debug, Clone)]
pub enum Body {
    /// Nothing.
    None,
    /// A document.
    Json(Value),
    /// Any text.
    Text(String),
    /// As many bytes of a document as given.
    Long(usize),
    /// The object of a key as it was answered last, with a merge patch applied.
    Last(String, Value),
}

impl Request {
    /// A request without anything special.
    pub fn new(method: &'static str, path: impl Into<String>, body: Body) -> Self {
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            media,
            accept: "application/json",
            body,
            pages: false,
            between: None,
            when: When::Now,
        }
    }

    /// The same with a parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// Whether its answer may take long.
    pub fn waits(&self) -> bool {
        matches!(self.when, When::Settled | When::Gone)
    }

    /// The same whose answer counts at another time.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// The same with another `Content-Type`.
    #[must_use]
    pub fn media(mut self, media: &'static str) -> Self {
        self.media = media;
        self
    }

    /// The same with another `Accept`.
    #[must_use]
    pub fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        for (index, (name, value)) in self.query.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
        }
        if self.accept != "application/json" {
            write!(f, " (accept {})", self.accept)?;
        }
        if self.when != When::Now {
            write!(f, " ({:?})", self.when)?;
        }
        if let Some(between) = &self.between {
            write!(f, " (then {between})")?;
        }
        let media = if matches!(self.media, "application/json") { "" } else { self.media };
        match &self.body {
            Body::None => Ok(()),
            Body::Json(value) => write!(f, " {media} {value}"),
            Body::Text(text) => write!(f, " {media} {text:?}"),
            Body::Long(length) => write!(f, " {media} ({length} bytes)"),
            Body::Last(key, changes) => write!(f, " {media} {key} as seen last, with {changes}"),
        }
    }
}
