//! How often an agent checks what no watch reports.

use std::time::Duration;

/// How often an agent checks what no watch reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// When an object that something is under way for is reconciled again: 5 s.
    pub requeue: Duration,
    /// For how long a related object must be absent, or no longer named, before its copy is withdrawn: 5 s.
    pub grace: Duration,
    /// When an object is reconciled again although nothing is under way, if some changes of what belongs to it are not reported: 1 minute.
    pub resync: Duration,
    /// When a kind without a CRD is asked for again if it is not there or could not be read: 10 s.
    pub absent_kind: Duration,
    /// When a kind without a CRD is asked for again if it is there: 5 minutes.
    pub known_kind: Duration,
    /// For how long changes are collected before the number of objects is written to the status of a PublishedResource: 5 s.
    pub count: Duration,
    /// How often the agent notes in the APIExport that it works: 2 minutes.
    pub heartbeat: Duration,
    /// How often the Secret with the token for kcp is looked at, if the agent renews it: 1 minute.
    pub token: Duration,
    /// When another agent may assume that this one no longer works: 5 minutes.
    pub heartbeat_old: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            requeue: Duration::from_secs(5),
            grace: Duration::from_secs(5),
            resync: Duration::from_mins(1),
            absent_kind: Duration::from_secs(10),
            known_kind: Duration::from_mins(5),
            count: Duration::from_secs(5),
            heartbeat: Duration::from_mins(2),
            token: Duration::from_mins(1),
            heartbeat_old: Duration::from_mins(5),
        }
    }
}
