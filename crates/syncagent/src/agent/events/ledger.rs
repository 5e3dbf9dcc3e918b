//! Events that were written already: repetitions become counts, and objects with too many events are rate limited.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::note::{Involved, Note, Type};

/// How many events an object and source may cause at once, and how long it takes until one more is allowed.
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_mins(5);
/// How many events are remembered; beyond that everything is forgotten, which costs a few events with a count of one.
const LIMIT: usize = 2048;

/// What makes two events equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct EventKey {
    source: EventSource,
    kind: Type,
    reason: String,
    message: String,
}

/// The component that reports, and the object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct EventSource {
    url: String,
    component: &'static str,
    involved: Involved,
}

impl EventKey {
    pub(super) fn of(note: &Note) -> Self {
        // An event says the same about the next version of the object.
        let involved = Involved { resource_version: String::new(), ..note.involved.clone() };
        let source = EventSource { url: note.client.url().to_owned(), component: note.component, involved };
        Self { source, kind: note.kind, reason: note.reason.clone(), message: note.message.clone() }
    }
}

/// An event that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenEvent {
    pub(super) name: String,
    pub(super) count: u32,
}

/// What to do with an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextWrite {
    New,
    Repeat(WrittenEvent),
    Drop,
}

/// What one worker has written.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    written: HashMap<EventKey, WrittenEvent>,
    allowances: HashMap<EventSource, Allowance>,
}

#[derive(Debug)]
struct Allowance {
    left: u32,
    since: Instant,
}

impl Ledger {
    /// Decides about an event and uses up one event of its source's allowance.
    pub(super) fn look(&mut self, key: &EventKey, now: Instant) -> NextWrite {
        if self.allowances.len() >= LIMIT {
            self.allowances.clear();
        }
        let fresh = Allowance { left: BURST, since: now };
        let allowance = self.allowances.entry(key.source.clone()).or_insert(fresh);
        let earned = now.duration_since(allowance.since).as_secs() / REFILL.as_secs();
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(BURST);
            allowance.left = allowance.left.saturating_add(earned).min(BURST);
            allowance.since = now;
        }
        if allowance.left == 0 {
            return NextWrite::Drop;
        }
        allowance.left -= 1;
        self.written.get(key).cloned().map_or(NextWrite::New, NextWrite::Repeat)
    }

    /// Remembers what was written.
    pub(super) fn wrote(&mut self, key: EventKey, entry: WrittenEvent) {
        if self.written.len() >= LIMIT {
            self.written.clear();
        }
        self.written.insert(key, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, message: &str) -> EventKey {
        let involved = Involved {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: "a".into(),
            name: name.into(),
            uid: "u".into(),
            resource_version: String::new(),
        };
        let source = EventSource { url: "https://h".into(), component: "syncagent-sync", involved };
        EventKey { source, kind: Type::Normal, reason: "R".into(), message: message.into() }
    }

    #[test]
    fn an_equal_event_is_a_repetition() {
        let mut ledger = Ledger::default();
        let now = Instant::now();
        assert_eq!(ledger.look(&key("x", "m"), now), NextWrite::New);
        let entry = WrittenEvent { name: "x.1".into(), count: 1 };
        ledger.wrote(key("x", "m"), entry.clone());
        assert_eq!(ledger.look(&key("x", "m"), now), NextWrite::Repeat(entry));
        assert_eq!(ledger.look(&key("x", "other"), now), NextWrite::New);
        assert_eq!(ledger.look(&key("y", "m"), now), NextWrite::New);
    }

    #[test]
    fn an_object_with_too_many_events_is_rate_limited() {
        let mut ledger = Ledger::default();
        let start = Instant::now();
        for n in 0..BURST {
            assert_eq!(ledger.look(&key("x", &n.to_string()), start), NextWrite::New);
        }
        assert_eq!(ledger.look(&key("x", "more"), start), NextWrite::Drop);
        assert_eq!(ledger.look(&key("y", "more"), start), NextWrite::New);
        assert_eq!(ledger.look(&key("x", "more"), start + REFILL), NextWrite::New);
        assert_eq!(ledger.look(&key("x", "again"), start + REFILL), NextWrite::Drop);
    }
}
