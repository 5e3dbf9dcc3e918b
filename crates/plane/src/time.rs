//! Times.

/// The current time in seconds, as in `creationTimestamp`.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
