//! Versions of konnectors and backends, as Go programs are built with them.

use carrick_go::semver::Version;

use crate::problems::ClusterBindingProblem;

/// What stands between the version of Kubernetes and that of kube-bind in the version of a program.
const MARK: &str = "+kube-bind-";

/// The version of kube-bind whose API and protocol our programs speak.
pub const SPOKEN: &str = "v0.8.1";

/// The oldest version of kube-bind that understands this API; kube-bind's own clients refuse older backends.
pub const OLDEST: &str = "v0.6.0";

/// What stands before the version of a program of ours.
const OWN_MARK: &str = "+carrick-";

/// How a program of ours names itself to those of kube-bind: the version that it speaks, which they compare, and its own.
///
/// ```
/// use carrick_bind_api::version;
///
/// let shown = version::spoken_by("v0.1.0");
/// assert_eq!(shown, "v0.8.1+carrick-v0.1.0");
/// assert_eq!(version::of_program(&shown).unwrap(), version::SPOKEN);
/// ```
pub fn spoken_by(program: &str) -> String {
    format!("{SPOKEN}{OWN_MARK}{program}")
}

/// Whether a backend is of a kube-bind that is too old. One that was built without a version is of today.
///
/// ```
/// use carrick_bind_api::version::is_too_old;
///
/// assert!(is_too_old("v0.5.9") && !is_too_old("v0.6.0") && !is_too_old("v0.0.0") && !is_too_old("v0.0.0-master+$Format$"));
/// ```
pub fn is_too_old(version: &str) -> bool {
    !version.trim_start_matches('v').starts_with("0.0.0") && is_older(version, OLDEST)
}

/// The version of kube-bind in the version of a program: `v0.8.1` in `v1.34.0+kube-bind-v0.8.1`, and otherwise the version itself.
///
/// ```
/// use carrick_bind_api::version;
///
/// assert_eq!(version::of_program("v1.34.0+kube-bind-v0.8.1").unwrap(), "v0.8.1");
/// assert_eq!(version::of_program("v0.8.2").unwrap(), "v0.8.2");
/// assert!(version::of_program("latest").is_err());
/// ```
pub fn of_program(text: &str) -> Result<&str, ClusterBindingProblem> {
    let version = text.split_once(MARK).map_or(text, |(_, version)| version);
    let version = version.split_once(OWN_MARK).map_or(version, |(spoken, _)| spoken);
    let strict = version.strip_prefix('v').unwrap_or(version);
    match Version::parse_strict(strict) {
        Ok(_) => Ok(version),
        Err(error) => {
            Err(ClusterBindingProblem::VersionUnknown { version: text.to_owned(), problem: error.to_string() })
        }
    }
}

/// Whether one version comes before another; one that is no version does not.
///
/// ```
/// use carrick_bind_api::version::is_older;
///
/// assert!(is_older("v0.5.9", "0.6.0") && !is_older("v0.6.0", "0.6.0") && !is_older("latest", "0.6.0"));
/// ```
pub fn is_older(version: &str, than: &str) -> bool {
    let read = |text: &str| Version::parse_strict(text.strip_prefix('v').unwrap_or(text)).ok();
    match (read(version), read(than)) {
        (Some(version), Some(than)) => version.compare(&than).is_lt(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_none_are_named() {
        for text in ["", "v", "v1", "v1.x", "v1.34.0+kube-bind-", "main"] {
            let problem = of_program(text).unwrap_err();
            assert_eq!((problem.condition_type(), problem.reason()), ("ValidVersion", "ParseError"), "{text}");
        }
        assert_eq!(of_program("v0.9.0-rc.1"), Ok("v0.9.0-rc.1"));
    }
}
