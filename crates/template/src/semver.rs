//! Versions and version constraints, as the semver library behind sprig reads them.

mod constraint;

use std::{cmp::Ordering, fmt};

pub(crate) use constraint::Constraints;

/// A version; missing parts are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
    pub(crate) pre: String,
    pub(crate) metadata: String,
    /// As it was written.
    pub(crate) original: String,
}

impl Version {
    /// Reads a version such as `1.2.3-beta.1+b1`, `v1.2` or `1`.
    pub(crate) fn parse(text: &str) -> Result<Version, String> {
        let invalid = || "not a semantic version".to_owned();
        let rest = text.strip_prefix('v').unwrap_or(text);
        let (rest, metadata) = split_suffix(rest, '+').ok_or_else(invalid)?;
        let (numbers, pre) = split_suffix(rest, '-').ok_or_else(invalid)?;
        if pre.split('.').any(|part| part.len() > 1 && part.starts_with('0') && is_number(part)) {
            return Err("the version has a pre-release number that starts with 0".to_owned());
        }
        let mut parts = [0; 3];
        let written: Vec<&str> = numbers.split('.').collect();
        if written.len() > parts.len() || !written.iter().all(|part| is_number(part)) {
            return Err(invalid());
        }
        for (part, written) in parts.iter_mut().zip(written) {
            *part = written.parse().map_err(|_| invalid())?;
        }
        let [major, minor, patch] = parts;
        Ok(Version { major, minor, patch, pre: pre.into(), metadata: metadata.into(), original: text.into() })
    }

    fn numbers(&self) -> (u64, u64, u64) {
        (self.major, self.minor, self.patch)
    }

    /// Order of precedence; metadata does not count.
    pub(crate) fn compare(&self, other: &Version) -> Ordering {
        self.numbers().cmp(&other.numbers()).then_with(|| compare_pre(&self.pre, &other.pre))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Splits off what follows the first separator and checks that it is dotted words.
fn split_suffix(text: &str, separator: char) -> Option<(&str, &str)> {
    let Some((head, tail)) = text.split_once(separator) else { return Some((text, "")) };
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    tail.split('.').all(word).then_some((head, tail))
}

fn compare_pre(a: &str, b: &str) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => return Ordering::Equal,
        // A release comes after its pre-releases.
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}
