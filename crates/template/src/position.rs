//! Lines and columns for messages.

use crate::lex::Span;

/// A part of a template text, as people count it and as programs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Bytes of the text before it.
    pub offset: usize,
    /// Length of the part in bytes; none for a place between characters, such as the end of the text.
    pub length: usize,
}

impl Position {
    pub(crate) fn of(text: &str, span: Span) -> Position {
        let offset = span.start.min(text.len());
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Position {
            line: 1 + before.matches('\n').count(),
            column: 1 + before[line_start..].chars().count(),
            offset,
            length: span.end.min(text.len()).saturating_sub(offset),
        }
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A part of a text, short enough for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 40;
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    line.chars().take(LONGEST - 1).chain(['…']).collect()
}
