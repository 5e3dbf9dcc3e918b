//! A text with a name.

/// A text, and what to call it in messages.
#[derive(Debug)]
pub struct Text {
    pub name: String,
    pub content: String,
}

impl Text {
    /// The byte at a line and a column in characters, both counted from 1.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        let before: usize = self.content.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let rest = &self.content[before..];
        before + rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_lead_to_bytes() {
        let text = Text { name: "rule".into(), content: "é\nab cd".into() };
        for (line, column, offset) in [(1, 1, 0), (1, 2, 2), (2, 1, 3), (2, 4, 6), (2, 90, 8), (9, 1, 8), (0, 0, 0)] {
            assert_eq!(text.offset(line, column), offset, "{line}:{column}");
        }
    }
}
