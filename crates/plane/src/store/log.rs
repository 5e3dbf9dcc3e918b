//! The recent changes, bounded, and the parts of them that are watched.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::watch as signal;

use super::change::Change;
use super::error::Expired;
use super::key::{Key, Kind};

/// How much history the log keeps for watchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// The maximum number of changes.
    pub changes: usize,
    /// The approximate maximum of bytes in memory; the last few changes are always kept.
    pub bytes: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { changes: 20_000, bytes: 32 * 1024 * 1024 }
    }
}

/// This many changes are kept however large they are.
const FEW: usize = 16;
/// Memory for a change besides the object: its key, its slot in the log.
const OVERHEAD: usize = 300;

/// The changes that a watcher subscribes to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Topic {
    /// Objects of this kind.
    pub kind: Kind,
    /// In this cluster, or in all of them.
    pub cluster: Option<Arc<str>>,
}

/// What readers of the log wait for. Every life is newer than the ones before, whatever its revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Now {
    /// How often the log was restarted.
    pub(super) life: u64,
    pub(super) revision: u64,
}

/// The part of the log that belongs to a topic with watchers.
#[derive(Debug)]
struct TopicLog {
    changes: VecDeque<Arc<Change>>,
    /// Revision of the newest change that was dropped.
    lost: u64,
    newest: signal::Sender<Now>,
}

#[derive(Debug)]
struct LogEntry {
    change: Arc<Change>,
    bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    limits: LogLimits,
    entries: VecDeque<LogEntry>,
    bytes: usize,
    /// Watches may start after this revision or a newer one.
    oldest: u64,
    channels: HashMap<Topic, TopicLog>,
    /// How often the log was restarted.
    life: u64,
}

impl Log {
    pub(super) fn new(limits: LogLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Starts the log at this revision.
    pub(super) fn begin(&mut self, revision: u64) {
        self.oldest = revision;
    }

    /// Forgets everything and starts again at this revision: nobody can watch across that.
    pub(super) fn restart(&mut self, revision: u64) {
        *self = Self { oldest: revision, life: self.life + 1, ..Self::new(self.limits) };
    }

    /// How often the log was restarted.
    pub(super) fn life(&self) -> u64 {
        self.life
    }

    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Whether a watch may start after a revision.
    pub(super) fn check(&self, after: u64) -> Result<(), Expired> {
        if after < self.oldest { Err(Expired { asked: after, oldest: self.oldest }) } else { Ok(()) }
    }

    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Arc<Change>> {
        self.entries.iter().rev().map(|entry| &entry.change)
    }

    /// Adds a change and wakes those who watch it.
    pub(super) fn push(&mut self, change: Arc<Change>) {
        for topic in topics(&change.key) {
            let Some(channel) = self.channels.get_mut(&topic) else { continue };
            if channel.newest.receiver_count() == 0 {
                self.channels.remove(&topic);
                continue;
            }
            channel.changes.push_back(change.clone());
            channel.newest.send_replace(Now { life: self.life, revision: change.revision });
        }
        let bytes = change.after.as_ref().or(change.before.as_ref()).map_or(0, |object| object.text().len()) + OVERHEAD;
        self.bytes += bytes;
        self.entries.push_back(LogEntry { change, bytes });
        while self.entries.len() > self.limits.changes
            || (self.bytes > self.limits.bytes && self.entries.len() > FEW.min(self.limits.changes))
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some(LogEntry { change, bytes }) = self.entries.pop_front() else { return };
        self.bytes -= bytes;
        self.oldest = change.revision;
        for topic in topics(&change.key) {
            if let Some(channel) = self.channels.get_mut(&topic)
                && channel.changes.front().is_some_and(|first| first.revision == change.revision)
            {
                channel.changes.pop_front();
                channel.lost = change.revision;
            }
        }
    }

    /// Wakes for changes of a topic from now on.
    pub(super) fn subscribe(&mut self, topic: &Topic) -> signal::Receiver<Now> {
        if let Some(channel) = self.channels.get(topic) {
            return channel.newest.subscribe();
        }
        let fits = |change: &Arc<Change>| {
            change.key.kind == topic.kind && topic.cluster.as_ref().is_none_or(|cluster| *cluster == change.key.cluster)
        };
        let changes: VecDeque<_> =
            self.entries.iter().map(|entry| &entry.change).filter(|c| fits(c)).cloned().collect();
        let revision = changes.back().map_or(self.oldest, |change| change.revision);
        let (newest, receiver) = signal::channel(Now { life: self.life, revision });
        self.channels.insert(topic.clone(), TopicLog { changes, lost: self.oldest, newest });
        receiver
    }

    /// Up to `limit` changes after a revision, or none if some have been dropped already.
    pub(super) fn changes(&self, topic: Option<&Topic>, after: u64, limit: usize) -> Option<Vec<Arc<Change>>> {
        match topic {
            None => {
                self.check(after).ok()?;
                let start = self.entries.partition_point(|entry| entry.change.revision <= after);
                Some(self.entries.range(start..).take(limit).map(|entry| entry.change.clone()).collect())
            }
            Some(topic) => {
                let channel = self.channels.get(topic)?;
                if after < channel.lost {
                    return None;
                }
                let start = channel.changes.partition_point(|change| change.revision <= after);
                Some(channel.changes.range(start..).take(limit).cloned().collect())
            }
        }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize, usize) {
        (self.entries.len(), self.bytes, self.channels.len())
    }
}

/// The two topics a change belongs to.
fn topics(key: &Key) -> [Topic; 2] {
    [
        Topic { kind: key.kind.clone(), cluster: Some(key.cluster.clone()) },
        Topic { kind: key.kind.clone(), cluster: None },
    ]
}
