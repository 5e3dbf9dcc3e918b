//! Numbers about controllers, counted as they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::name::ClusterName;
use crate::queue::{Queue, QueueStats};
use crate::request::Key;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing more to do until something changes.
    Success,
    /// Fine so far, looked at again after a pause.
    Requeue,
    /// Failed, tried again as the error policy says.
    Error,
    /// Panicked, tried again later.
    Panic,
    /// A cluster it needs is not there yet, tried again soon.
    Later,
    /// Its cluster has left.
    Gone,
}

impl Ended {
    pub(crate) const ALL: [Self; 6] = [Self::Success, Self::Requeue, Self::Error, Self::Panic, Self::Later, Self::Gone];

    /// One word for logs and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Requeue => "requeue",
            Self::Error => "error",
            Self::Panic => "panic",
            Self::Later => "later",
            Self::Gone => "gone",
        }
    }
}

/// Numbers about one controller.
pub(crate) struct ControllerStats {
    name: Arc<str>,
    queue: Queue<Key>,
    ended: [AtomicU64; 6],
    undecodable: AtomicU64,
    open: AtomicU64,
    pub(crate) waited: Histogram,
    pub(crate) took: Histogram,
}

impl ControllerStats {
    pub(crate) fn new(name: Arc<str>, queue: Queue<Key>) -> Self {
        Self {
            name,
            queue,
            ended: Default::default(),
            undecodable: AtomicU64::new(0),
            open: AtomicU64::new(0),
            waited: Histogram::default(),
            took: Histogram::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn queue(&self) -> QueueStats {
        self.queue.stats()
    }

    pub(crate) fn longest(&self, count: usize) -> Vec<(ClusterName, usize)> {
        self.queue.longest(count)
    }

    pub(crate) fn count(&self, ended: Ended) {
        self.ended[ended as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self, ended: Ended) -> u64 {
        self.ended[ended as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn count_undecodable(&self) {
        self.undecodable.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn undecodable(&self) -> u64 {
        self.undecodable.load(Ordering::Relaxed)
    }

    pub(crate) fn set_open(&self, clusters: usize) {
        self.open.store(clusters as u64, Ordering::Relaxed);
    }

    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }
}

/// Durations in buckets.
#[derive(Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; Histogram::BOUNDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Histogram {
    /// Upper bounds in seconds.
    pub(crate) const BOUNDS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0];

    pub(crate) fn record(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if let Some(bucket) = Self::BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Bounds and how many durations are within each, smaller ones included.
    pub(crate) fn cumulative(&self) -> Vec<(f64, u64)> {
        let mut total = 0;
        let add = |bucket: &AtomicU64| {
            total += bucket.load(Ordering::Relaxed);
            total
        };
        Self::BOUNDS.iter().copied().zip(self.buckets.iter().map(add)).collect()
    }

    /// How many durations, and their sum in seconds.
    pub(crate) fn total(&self) -> (u64, f64) {
        let sum = Duration::from_micros(self.micros.load(Ordering::Relaxed));
        (self.count.load(Ordering::Relaxed), sum.as_secs_f64())
    }
}
