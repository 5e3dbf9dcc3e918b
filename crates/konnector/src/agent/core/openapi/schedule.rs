//! When to read the index of documents: after something has changed, and otherwise only where nothing would say so.

use std::time::Duration;

use tokio::time::Instant;

/// After how long to read again once a CRD or a binding of an API has changed: documents follow a moment later.
const SOON: &[u64] = &[1, 4];
/// The same for APIs of other servers, whose documents are fetched once a minute.
const AGGREGATED: &[u64] = &[1, 4, 15, 75];
/// Reads are at least this far apart.
const GAP: Duration = Duration::from_secs(1);
/// After how long to read again while a group does not answer.
const INCOMPLETE: Duration = Duration::from_secs(20);
/// After how long to read again where a change cannot be seen.
const UNSEEN: Duration = Duration::from_mins(10);

/// When the next read is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Due {
    /// With the next pass, whatever leads to it.
    #[default]
    Now,
    /// At this time.
    At(Instant),
    /// When something changes.
    OnChange,
}

/// When to read the index of documents.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    due: Due,
    last: Option<Instant>,
    /// When something has changed, and after how long to read because of that.
    changed: Option<(Instant, &'static [u64])>,
}

impl Schedule {
    /// Something has changed that documents follow.
    pub fn changed(&mut self, now: Instant, is_aggregated: bool) {
        // What is aggregated may still be on its way when something else changes.
        let is_longer = self.changed.is_some_and(|(_, rest)| rest.len() > SOON.len());
        self.changed = Some((now, if is_aggregated || is_longer { AGGREGATED } else { SOON }));
        self.due = match self.last.map(|last| last + GAP) {
            Some(next) if next > now => Due::At(next),
            _ => Due::Now,
        };
    }

    /// Whether to read now.
    pub fn is_due(&mut self, now: Instant) -> bool {
        if matches!(self.due, Due::At(next) if next <= now) {
            self.due = Due::Now;
        }
        self.due == Due::Now
    }

    /// In how long it will be due. What is due now is tried again with the next pass.
    pub fn due_in(&self, now: Instant) -> Duration {
        match self.due {
            Due::At(next) => next.saturating_duration_since(now),
            Due::Now | Due::OnChange => Duration::MAX,
        }
    }

    /// It was read, and every group has answered or not.
    pub fn was_read(&mut self, now: Instant, is_complete: bool) {
        self.last = Some(now);
        let after = self.changed.and_then(|(at, rest)| {
            let next = rest.iter().map(|&after| at + Duration::from_secs(after)).find(|next| *next > now);
            next.map(|next| next.max(now + GAP))
        });
        if after.is_none() {
            self.changed = None;
        }
        let retry = (!is_complete).then(|| now + INCOMPLETE);
        self.due = [after, retry].into_iter().flatten().min().map_or(Due::OnChange, Due::At);
    }

    /// Not every change can be seen.
    pub fn is_blind(&mut self) {
        if self.due == Due::OnChange {
            self.due = self.last.map_or(Due::Now, |last| Due::At(last + UNSEEN));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many seconds it is read, until it rests.
    fn reads(schedule: &mut Schedule, start: Instant, is_complete: bool, is_blind: bool) -> Vec<u64> {
        let (mut now, mut all) = (start, Vec::new());
        while schedule.is_due(now) && all.len() < 9 {
            all.push((now - start).as_secs());
            schedule.was_read(now, is_complete);
            if is_blind {
                schedule.is_blind();
            }
            now = now.checked_add(schedule.due_in(now)).unwrap_or(now);
        }
        all
    }

    #[test]
    fn a_change_is_followed_for_a_while_and_then_nothing_is_read_where_changes_can_be_seen() {
        let start = Instant::now();
        let mut schedule = Schedule::default();
        assert_eq!(reads(&mut schedule, start, true, false), [0], "at first");
        let later = start + Duration::from_mins(1);
        assert!(!schedule.is_due(later));
        schedule.changed(later, false);
        assert_eq!(reads(&mut schedule, later, true, false), [0, 1, 4]);
        schedule.changed(later, true);
        schedule.changed(later, false);
        let again = later + Duration::from_secs(5);
        assert_eq!(
            reads(&mut schedule, again, true, false),
            [0, 10, 70],
            "documents of other servers are fetched once a minute"
        );
        assert!(!schedule.is_due(later + UNSEEN * 9));
    }

    #[test]
    fn what_cannot_be_seen_is_read_rarely_and_what_has_not_answered_soon() {
        let start = Instant::now();
        assert_eq!(reads(&mut Schedule::default(), start, true, true)[..3], [0, 600, 1_200]);
        assert_eq!(reads(&mut Schedule::default(), start, false, false)[..3], [0, 20, 40]);
        // However often something changes, it is read once a second.
        let mut schedule = Schedule::default();
        schedule.was_read(start, true);
        schedule.changed(start + GAP / 4, false);
        schedule.changed(start + GAP / 2, false);
        assert!(!schedule.is_due(start + GAP / 2) && schedule.is_due(start + GAP));
    }
}
