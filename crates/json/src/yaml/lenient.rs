//! What Go's reader tolerates and ours does not: lines of a quoted text that begin left of where they should.

use std::borrow::Cow;

use super::document::YamlError;

/// Why reading failed.
pub(super) enum Failure {
    /// A line of a quoted text is not indented enough. Spaces before it mean nothing, so more of them change nothing.
    Outdented(YamlError),
    /// Anything else.
    Other(YamlError),
}

/// Spaces that indent a line more than any key around it.
const INDENT: &str =
    "                                                                                                    ";

/// How many bytes may be read again, so that nobody can make reading as slow as they like.
const AGAIN: usize = 64 << 20;

/// Reads a text; lines that only our reader minds are indented first.
pub(super) fn read<T>(text: &str, read: impl Fn(&str) -> Result<T, Failure>) -> Result<T, YamlError> {
    let mut text = Cow::Borrowed(text);
    let mut again = 0;
    let mut last = 0;
    loop {
        match read(&text) {
            Ok(found) => return Ok(found),
            Err(Failure::Other(error)) => return Err(error),
            Err(Failure::Outdented(error)) => {
                again += text.len();
                // The same line once more: spaces do not help.
                let hopeless = again > AGAIN || error.line == last;
                let Some(start) = line(&text, error.line).filter(|_| !hopeless) else { return Err(error) };
                last = error.line;
                text.to_mut().insert_str(start, INDENT);
            }
        }
    }
}

/// Where a line begins.
fn line(text: &str, number: usize) -> Option<usize> {
    let mut breaks = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    breaks.nth(number.checked_sub(1)?)
}
