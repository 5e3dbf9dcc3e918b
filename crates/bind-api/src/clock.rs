//! Times as Kubernetes writes them: whole seconds of UTC in RFC 3339. Nobody here reads the clock; callers say what time it is.

use jiff::Timestamp;

/// The text of a time, as it stands in objects.
///
/// ```
/// use carrick_bind_api::clock;
///
/// let time = clock::read("2026-11-16T10:00:00.9+01:00").unwrap();
/// assert_eq!(clock::show(time), "2026-11-16T09:00:00Z");
/// ```
pub fn show(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time in an object; none if there is none or it is not one.
pub fn read(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
