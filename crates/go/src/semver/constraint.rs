//! Version constraints such as `^1.2`, `>=1.0, <2` or `1.2 - 1.4 || ~2.1`.

use std::cmp::Ordering;

use super::version::{Version, compare_pre};

/// A text that is not a constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("improper constraint: {0}")]
pub struct ConstraintError(pub String);

/// Alternatives, each of which is a list of conditions.
///
/// ```
/// use carrick_go::semver::{Constraints, Version};
///
/// let constraints = Constraints::parse("^1.2 || >=3, <4").unwrap();
/// assert!(constraints.allow(&Version::parse("1.4").unwrap()));
/// assert!(!constraints.allow(&Version::parse("2.0").unwrap()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraints(Vec<Vec<Constraint>>);

impl Constraints {
    /// Reads constraints: `NewConstraint` of Masterminds/semver 3.3.
    pub fn parse(text: &str) -> Result<Constraints, ConstraintError> {
        let alternatives: Option<_> = text.split("||").map(parse_all).collect();
        alternatives.map(Constraints).ok_or_else(|| ConstraintError(text.to_owned()))
    }

    /// Whether a version fits one of the alternatives.
    pub fn allow(&self, version: &Version) -> bool {
        self.0.iter().any(|all| all.iter().all(|constraint| constraint.allows(version)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// Longer texts come before their prefixes.
const OPERATORS: &[(&str, Operator)] = &[
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterEqual),
    ("=>", Operator::GreaterEqual),
    ("<=", Operator::LessEqual),
    ("=<", Operator::LessEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Constraint {
    operator: Operator,
    version: Version,
    /// How many of the numbers were given; the others may be anything.
    given: usize,
}

/// A version with wildcards, and what follows it.
struct Partial<'a> {
    version: Version,
    given: usize,
    rest: &'a str,
}

fn parse_all(text: &str) -> Option<Vec<Constraint>> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut all = Vec::new();
    while !rest.is_empty() {
        let found = OPERATORS.iter().find_map(|(text, operator)| Some((rest.strip_prefix(text)?, *operator)));
        let (tail, operator) = found.unwrap_or((rest, Operator::Equal));
        let partial = partial_version(tail.trim_start())?;
        rest = partial.rest.trim_start();
        let range_end = partial.rest.trim_start().strip_prefix("- ").filter(|_| found.is_none());
        if let Some(end) = range_end {
            let end = partial_version(end.trim_start())?;
            rest = end.rest.trim_start();
            all.push(Constraint { operator: Operator::GreaterEqual, version: partial.version, given: partial.given });
            all.push(Constraint { operator: Operator::LessEqual, version: end.version, given: end.given });
        } else {
            all.push(Constraint { operator, version: partial.version, given: partial.given });
        }
        if let Some(tail) = rest.strip_prefix(',') {
            rest = tail.trim_start();
            if rest.is_empty() {
                return None;
            }
        }
    }
    Some(all)
}

fn partial_version(text: &str) -> Option<Partial<'_>> {
    let word = |c: char| c.is_ascii_alphanumeric() || "*.+-".contains(c);
    let (text, rest) = text.split_at(text.find(|c| !word(c)).unwrap_or(text.len()));
    let plain = text.strip_prefix('v').unwrap_or(text);
    let (numbers, suffix) = plain.split_at(plain.find(['-', '+']).unwrap_or(plain.len()));
    let parts: Vec<&str> = numbers.split('.').collect();
    let wildcard = |part: &&str| matches!(*part, "x" | "X" | "*");
    let number = |part: &&str| part.parse::<u64>().is_ok();
    if parts.len() > 3 || !parts.iter().all(|part| wildcard(part) || number(part)) {
        return None;
    }
    let given = parts.iter().take_while(|part| number(part)).count();
    let mut full: Vec<&str> = parts[..given].to_vec();
    full.resize(3, "0");
    let version = Version::parse(&format!("{}{suffix}", full.join("."))).ok()?;
    Some(Partial { version, given, rest })
}

impl Constraint {
    fn allows(&self, version: &Version) -> bool {
        let limit = &self.version;
        // Pre-releases count only where the constraint names one.
        if !version.pre.is_empty() && limit.pre.is_empty() {
            return false;
        }
        let order = version.compare(limit);
        match self.operator {
            Operator::Equal if self.given < 3 => self.tilde(version),
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual if self.given < 3 => self.differs(version),
            Operator::NotEqual => order != Ordering::Equal,
            Operator::Greater if version.major != limit.major && self.given < 3 => version.major > limit.major,
            Operator::Greater if self.given == 1 => false,
            Operator::Greater if self.given == 2 => version.minor > limit.minor,
            Operator::Greater => order == Ordering::Greater,
            Operator::Less => order == Ordering::Less,
            Operator::GreaterEqual => order != Ordering::Less,
            Operator::LessEqual if self.given < 3 => {
                version.major < limit.major
                    || version.major == limit.major && (version.minor <= limit.minor || self.given == 1)
            }
            Operator::LessEqual => order != Ordering::Greater,
            Operator::Tilde => self.tilde(version),
            Operator::Caret => self.caret(version),
        }
    }

    fn differs(&self, version: &Version) -> bool {
        let limit = &self.version;
        if version.major != limit.major {
            return true;
        }
        match self.given {
            0 => version.compare(limit) != Ordering::Equal,
            1 => false,
            _ if version.minor != limit.minor => true,
            _ => compare_pre(&version.pre, &limit.pre) != Ordering::Equal,
        }
    }

    fn tilde(&self, version: &Version) -> bool {
        let limit = &self.version;
        if version.compare(limit) == Ordering::Less {
            return false;
        }
        let everything = limit.numbers() == (0, 0, 0) && (self.given == 0 || self.given == 3);
        everything || version.major == limit.major && (version.minor == limit.minor || self.given == 1)
    }

    fn caret(&self, version: &Version) -> bool {
        let limit = &self.version;
        if version.compare(limit) == Ordering::Less {
            return false;
        }
        if limit.major > 0 || self.given == 1 {
            return version.major == limit.major;
        }
        if version.major > 0 {
            return false;
        }
        if limit.minor > 0 || self.given == 2 {
            return version.minor == limit.minor;
        }
        version.minor == 0 && version.patch == limit.patch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_allow_what_they_allow_in_go() {
        for (constraint, version, want) in [
            ("^1.2", "1.9.0", true),
            ("^1.2", "2.0.0", false),
            ("^0.2", "0.2.7", true),
            ("^0.2", "0.3.0", false),
            ("~1.2.3", "1.2.9", true),
            ("~1.2.3", "1.3.0", false),
            ("~1", "1.9.0", true),
            (">=1.0, <2", "1.5.0", true),
            (">1.2", "1.2.9", false),
            ("<=1.2", "1.2.9", true),
            ("1.2 - 1.4", "1.4.5", true),
            ("1.2.x", "1.2.7", true),
            ("*", "3.0.0", true),
            ("!=1.x", "1.5.0", false),
            ("^1 || ~3.1", "3.1.4", true),
            (">=1.0.0", "2.0.0-beta", false),
            (">=1.0.0-0", "2.0.0-beta", true),
        ] {
            let allowed = Constraints::parse(constraint).unwrap().allow(&Version::parse(version).unwrap());
            assert_eq!(allowed, want, "{constraint} and {version}");
        }
        for wrong in ["", "^", "1.2 ||", ">= 1,", "a", "1.2.3.4", "\\1"] {
            assert_eq!(Constraints::parse(wrong), Err(ConstraintError(wrong.to_owned())));
        }
    }
}
