//! What a terminal shows in the end: lines, with their colours, and when each was complete.

use std::time::Duration;

use super::capture::Chunk;

/// A line that is not rewritten any more.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub at: Duration,
    pub spans: Vec<Span>,
}

/// Text of one look.
#[derive(Debug, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub look: Look,
}

/// How text looks, by the codes that our programs use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    pub bold: bool,
    pub dim: bool,
    /// As in `ESC[32m`; `None` is the usual one.
    pub colour: Option<u8>,
}

/// The lines of an output.
pub fn lines(chunks: &[Chunk]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut pending = Vec::new();
    for chunk in chunks {
        for byte in &chunk.bytes {
            if *byte == b'\n' {
                lines.push(line(chunk.at, &String::from_utf8_lossy(&pending)));
                pending.clear();
            } else {
                pending.push(*byte);
            }
        }
    }
    lines
}

/// What is left of a line that may have been rewritten: what follows the last return to its beginning.
fn line(at: Duration, text: &str) -> Line {
    let text = text.trim_end_matches('\r');
    let text = text.rsplit('\r').next().unwrap_or(text);
    let (mut spans, mut look) = (Vec::<Span>::new(), Look::default());
    let mut parts = text.split('\x1b');
    add(&mut spans, parts.next().unwrap_or_default(), look);
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        let (code, rest) = part.split_at(end.map_or(part.len(), |end| end + 1));
        if let Some(codes) = code.strip_prefix('[').and_then(|code| code.strip_suffix('m')) {
            codes.split(';').for_each(|code| look.change(code));
        }
        add(&mut spans, rest, look);
    }
    Line { at, spans }
}

fn add(spans: &mut Vec<Span>, text: &str, look: Look) {
    if !text.is_empty() {
        spans.push(Span { text: text.to_owned(), look });
    }
}

impl Look {
    fn change(&mut self, code: &str) {
        match code.parse::<u8>() {
            Ok(1) => self.bold = true,
            Ok(2) => self.dim = true,
            Ok(22) => (self.bold, self.dim) = (false, false),
            Ok(colour @ 30..=37) => self.colour = Some(colour),
            Ok(39) => self.colour = None,
            _ => *self = Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(String, Look)> {
        line(Duration::ZERO, text).spans.into_iter().map(|span| (span.text, span.look)).collect()
    }

    #[test]
    fn a_rewritten_line_is_what_stands_there_in_the_end() {
        let plain = |text: &str| (text.to_owned(), Look::default());
        assert_eq!(shown("working …  \r\x1b[2Kdone\r"), [plain("done")]);
        assert_eq!(shown(""), []);
    }

    #[test]
    fn colours_last_until_they_are_taken_back() {
        let green = Look { colour: Some(32), ..Look::default() };
        let dim = Look { dim: true, ..Look::default() };
        let expected = [("✓".to_owned(), green), (" ".to_owned(), Look::default()), ("3 ms".to_owned(), dim)];
        assert_eq!(shown("\x1b[32m✓\x1b[0m \x1b[2m3 ms\x1b[0m"), expected);
    }

    #[test]
    fn characters_may_be_cut_between_chunks() {
        let tick = "✓\n".as_bytes();
        let chunk = |millis, bytes: &[u8]| Chunk { at: Duration::from_millis(millis), bytes: bytes.to_owned() };
        let lines = lines(&[chunk(1, &tick[..1]), chunk(2, &tick[1..])]);
        assert_eq!((lines[0].at, lines[0].spans[0].text.as_str()), (Duration::from_millis(2), "✓"));
    }
}
