//! Lines and columns for messages.

/// A place as people count it: from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    /// The place of a byte offset.
    pub(crate) fn of(text: &str, offset: usize) -> Place {
        let before = &text[..offset.min(text.len())];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Place { line: 1 + before.matches('\n').count(), column: 1 + before[line_start..].chars().count() }
    }
}

/// The text of a place, short enough for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 40;
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    line.chars().take(LONGEST - 1).chain(['…']).collect()
}
