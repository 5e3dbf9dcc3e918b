//! Versions such as `1.2.3-beta.1+b1`.

use std::{cmp::Ordering, fmt};

/// Why a text is not a version, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// The text is not made as versions are.
    #[error("Invalid Semantic Version")]
    Invalid,
    /// A number in the pre-release has a zero in front.
    #[error("Version segment starts with 0")]
    LeadingZero,
}

/// A version.
///
/// ```
/// use carrick_go::semver::Version;
///
/// let version = Version::parse("v1.2-beta.1").unwrap();
/// assert_eq!(version.to_string(), "1.2.0-beta.1");
/// assert!(version.compare(&Version::parse("1.2").unwrap()).is_lt());
/// assert!(Version::parse_strict("1.2").is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    /// What follows the hyphen, such as `beta.1`.
    pub pre: String,
    /// What follows the plus sign, such as `b1`.
    pub metadata: String,
    /// As it was written.
    pub original: String,
}

impl Version {
    /// Reads a version such as `1.2.3-beta.1+b1`, `v1.2` or `1`: what `NewVersion` of Masterminds/semver 3.3 takes. Missing numbers are
    /// zero.
    pub fn parse(text: &str) -> Result<Version, VersionError> {
        let rest = text.strip_prefix('v').unwrap_or(text);
        let (rest, metadata) = split_suffix(rest, '+')?;
        let (numbers, pre) = split_suffix(rest, '-')?;
        if pre.split('.').any(|part| is_number(part) && !is_plain(part)) {
            return Err(VersionError::LeadingZero);
        }
        let mut parts = [0; 3];
        let written: Vec<&str> = numbers.split('.').collect();
        if written.len() > parts.len() || !written.iter().all(|part| is_number(part)) {
            return Err(VersionError::Invalid);
        }
        for (part, written) in parts.iter_mut().zip(written) {
            *part = written.parse().map_err(|_| VersionError::Invalid)?;
        }
        let [major, minor, patch] = parts;
        Ok(Version { major, minor, patch, pre: pre.into(), metadata: metadata.into(), original: text.into() })
    }

    /// Reads a version with all its numbers and nothing in front: what `Parse` of blang/semver 4 takes.
    pub fn parse_strict(text: &str) -> Result<Version, VersionError> {
        let version = Version::parse(text)?;
        let numbers: Vec<&str> = text.split(['-', '+']).next().unwrap_or_default().split('.').collect();
        let fits = |part: &str| !is_number(part) || part.parse::<u64>().is_ok();
        let strict = numbers.len() == 3 && numbers.into_iter().all(is_plain) && version.pre.split('.').all(fits);
        if strict { Ok(version) } else { Err(VersionError::Invalid) }
    }

    /// Like [`Version::parse_strict`] after a leading `v` and zeros were dropped and missing numbers added, which is what
    /// `semver(text, true)` of the API server's CEL does.
    pub fn parse_normalized(text: &str) -> Result<Version, VersionError> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let stripped = |part: &str| {
            let rest = part.trim_start_matches('0');
            match rest.chars().next() {
                _ if part.len() < 2 => part.to_owned(),
                Some(c) if c.is_ascii_digit() => rest.to_owned(),
                _ => format!("0{rest}"),
            }
        };
        let mut parts: Vec<String> = text.splitn(3, '.').map(stripped).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err(VersionError::Invalid);
        }
        parts.resize(3, "0".to_owned());
        Version::parse_strict(&parts.join("."))
    }

    pub(super) fn numbers(&self) -> (u64, u64, u64) {
        (self.major, self.minor, self.patch)
    }

    /// The order of precedence, in which metadata does not count.
    pub fn compare(&self, other: &Version) -> Ordering {
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

/// A number without zeros in front.
fn is_plain(text: &str) -> bool {
    is_number(text) && (text == "0" || !text.starts_with('0'))
}

/// Splits off what follows the first separator and checks that it is dotted words.
fn split_suffix(text: &str, separator: char) -> Result<(&str, &str), VersionError> {
    let Some((head, tail)) = text.split_once(separator) else { return Ok((text, "")) };
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if tail.split('.').all(word) { Ok((head, tail)) } else { Err(VersionError::Invalid) }
}

pub(super) fn compare_pre(a: &str, b: &str) -> Ordering {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_loosely_strictly_or_after_normalization() {
        for (text, loose, strict, normalized) in [
            ("1.2.3", true, true, true),
            ("1.2.3-beta.1+b.1", true, true, true),
            ("v1.2", true, false, true),
            ("1", true, false, true),
            ("01.2.3", true, false, true),
            ("1.2.03-a", true, false, true),
            ("1.2.3-01", false, false, false),
            ("1.2.3-0a", true, true, true),
            ("1.2-a", true, false, false),
            ("1.2.3.4", false, false, false),
            ("1.2.3-18446744073709551616", true, false, false),
            ("18446744073709551616.0.0", false, false, false),
            ("1.2.3-", false, false, false),
            ("1.2.3+", false, false, false),
            ("1.2.3+a..b", false, false, false),
            ("", false, false, false),
            ("v", false, false, false),
            ("1.x.3", false, false, false),
        ] {
            assert_eq!(Version::parse(text).is_ok(), loose, "{text}, loosely");
            assert_eq!(Version::parse_strict(text).is_ok(), strict, "{text}, strictly");
            assert_eq!(Version::parse_normalized(text).is_ok(), normalized, "{text}, normalized");
        }
        assert_eq!(
            Version::parse("1.2.3-01").map_err(|error| error.to_string()),
            Err("Version segment starts with 0".into())
        );
    }

    #[test]
    fn versions_have_the_order_of_the_standard() {
        let ordered = [
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
        ];
        let versions: Vec<Version> = ordered.iter().map(|text| Version::parse_strict(text).unwrap()).collect();
        for (i, one) in versions.iter().enumerate() {
            for (j, other) in versions.iter().enumerate() {
                assert_eq!(one.compare(other), i.cmp(&j), "{one} and {other}");
            }
        }
        let [a, b] = ["1.0.0+a", "1.0.0+b"].map(|text| Version::parse(text).unwrap());
        assert!(a.compare(&b).is_eq());
    }
}
