//! The text of a pattern while it is read.

/// Why Go refuses a pattern.
pub(super) struct Error<'p> {
    pub reason: &'static str,
    pub fragment: &'p str,
    pub position: usize,
}

/// A pattern and how far it is read.
#[derive(Clone, Copy)]
pub(super) struct Text<'p> {
    whole: &'p str,
    pub at: usize,
}

impl<'p> Text<'p> {
    pub fn new(whole: &'p str) -> Self {
        Self { whole, at: 0 }
    }

    pub fn rest(&self) -> &'p str {
        &self.whole[self.at..]
    }

    /// All from a byte on.
    pub fn from(&self, start: usize) -> &'p str {
        &self.whole[start..]
    }

    /// What was read since a byte.
    pub fn since(&self, start: usize) -> &'p str {
        &self.whole[start..self.at]
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub fn next_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        self.peek().filter(|c| wanted(*c)).inspect(|c| self.at += c.len_utf8())
    }

    #[allow(clippy::unused_self)] // binds the lifetime of the fragment
    pub fn error(&self, reason: &'static str, position: usize, fragment: &'p str) -> Error<'p> {
        Error { reason, fragment, position }
    }
}
