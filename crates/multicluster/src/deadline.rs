//! Deadlines that may be as far away as a user likes.

use std::time::Duration;

use tokio::time::Instant;

/// Whatever is further away than this never comes.
const NEVER: Duration = Duration::from_hours(24 * 365 * 30);

/// The deadline after a delay of any length, even [`Duration::MAX`].
pub(crate) fn after(now: Instant, delay: Duration) -> Instant {
    now + delay.min(NEVER)
}
