//! Names of logical clusters and paths of workspaces.

use thiserror::Error;

/// Why a string is neither a logical cluster name nor a workspace path.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// The string holds a character or an empty segment that kcp refuses.
    #[error("invalid cluster: {0:?} does not match the regex")]
    Invalid(String),
}

/// Checks a `/clusters/<segment>`: a name, a `:`-separated path, `*`, or anything below `system:`.
pub fn check(segment: &str) -> Result<(), PathError> {
    let system = segment.strip_prefix("system:").is_some_and(|rest| !rest.is_empty());
    if segment == "*" || system || segment.split(':').all(is_label) {
        Ok(())
    } else {
        Err(PathError::Invalid(segment.to_owned()))
    }
}

/// Splits a path into its parent and the last segment; a single name has no parent.
pub fn split(path: &str) -> (Option<&str>, &str) {
    match path.rsplit_once(':') {
        Some((parent, name)) => (Some(parent), name),
        None => (None, path),
    }
}

/// Joins a parent path and a workspace name.
pub fn join(parent: &str, name: &str) -> String {
    format!("{parent}:{name}")
}

/// A DNS-1123 label: lower-case letters, digits and inner dashes, at most 63 characters.
pub fn is_label(s: &str) -> bool {
    let bytes = s.as_bytes();
    let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !bytes.is_empty()
        && bytes.len() <= 63
        && bytes.iter().all(|b| edge(b) || *b == b'-')
        && bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_kcp_accepts() {
        for good in ["root", "root:orgs:acme", "33nozhdlp9e3vo7p", "*", "system:admin", "a-b:c"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn refuses_what_kcp_refuses() {
        for bad in ["", "Root", "~", "root:", ":root", "root::a", "-a", "a-", "a_b", "system:"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn splits_off_the_last_segment() {
        assert_eq!(split("root:a:b"), (Some("root:a"), "b"));
        assert_eq!(split("root"), (None, "root"));
    }
}
