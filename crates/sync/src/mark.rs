//! Marks: what a copy says of the last write to it.
//!
//! ```text
//!  0f3c…              written when the copy was created, or by a version that did not count
//!  0f3c….7            the seventh write since
//!  applied-0f3c….8    the eighth, by server-side apply
//! ```
//!
//! The checksum says what was written. It returns when a source returns to an earlier content; the number does not, so no mark is ever seen
//! twice on one object, and a write that was meant for an earlier mark is refused however late it arrives.

use std::fmt;

const APPLIED: &str = "applied-";

/// The annotation of a copy that says what was written to it last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark {
    /// Checksum of the desired state.
    pub sum: String,
    /// Whether it was written by server-side apply.
    pub applied: bool,
    /// Which write since the copy was created it was.
    pub number: u64,
}

impl Mark {
    /// Reads the value of the annotation. One without a number counts as the first write.
    pub fn read(text: &str) -> Self {
        let (text, applied) = text.strip_prefix(APPLIED).map_or((text, false), |rest| (rest, true));
        let numbered = text.rsplit_once('.').and_then(|(sum, number)| Some((sum, number.parse().ok()?)));
        let (sum, number) = numbered.unwrap_or((text, 0));
        Self { sum: sum.to_owned(), applied, number }
    }

    /// The mark of a new copy.
    pub fn first(sum: String) -> Self {
        Self { sum, applied: false, number: 0 }
    }

    /// The mark of the next write to a copy that carries this annotation.
    pub fn after(before: Option<&str>, sum: String, applied: bool) -> Self {
        let number = before.map_or(0, |before| Self::read(before).number).saturating_add(1);
        Self { sum, applied, number }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sum, applied, number } = self;
        let applied = if *applied { APPLIED } else { "" };
        match number {
            0 => write!(f, "{applied}{sum}"),
            number => write!(f, "{applied}{sum}.{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_also_by_versions_that_did_not_count() {
        for (text, sum, applied, number) in [
            ("ab", "ab", false, 0),
            ("ab.7", "ab", false, 7),
            ("applied-ab", "ab", true, 0),
            ("applied-ab.12", "ab", true, 12),
        ] {
            let mark = Mark::read(text);
            assert_eq!((mark.sum.as_str(), mark.applied, mark.number), (sum, applied, number));
            assert_eq!(mark.to_string(), text);
        }
        assert_eq!(Mark::read("ab.x").sum, "ab.x");
    }

    #[test]
    fn no_mark_follows_itself() {
        let mut mark = Mark::first("a".to_owned()).to_string();
        let mut seen = vec![mark.clone()];
        for sum in ["b", "a", "a", "b"] {
            mark = Mark::after(Some(&mark), sum.to_owned(), false).to_string();
            assert!(!seen.contains(&mark), "{mark}");
            seen.push(mark.clone());
        }
        assert_eq!(mark, "b.4");
        assert_eq!(Mark::after(None, "a".to_owned(), true).to_string(), "applied-a.1");
    }
}
