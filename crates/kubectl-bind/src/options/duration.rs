//! Durations on the command line.

use std::time::Duration;

/// A duration of Go that is longer than nothing.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let nanos =
        carrick_go::duration::parse(text).and_then(|nanos| u64::try_from(nanos).ok()).filter(|nanos| *nanos > 0);
    nanos.map(Duration::from_nanos).ok_or_else(|| format!("{text:?} is not a duration such as 5m"))
}
