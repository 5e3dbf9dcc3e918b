//! Statistics of controllers, counted as they run.

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
    /// Succeeded, and is reconciled again after a pause.
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

/// Statistics of one controller.
pub(crate) struct ControllerStats {
    name: Arc<str>,
    queue: Queue<Key>,
    ended: [AtomicU64; 6],
    undecodable: AtomicU64,
    open: AtomicU64,
    pub(crate) waited: Stopwatch,
    pub(crate) took: Stopwatch,
}

impl ControllerStats {
    pub(crate) fn new(name: Arc<str>, queue: Queue<Key>) -> Self {
        Self {
            name,
            queue,
            ended: Default::default(),
            undecodable: AtomicU64::new(0),
            open: AtomicU64::new(0),
            waited: Stopwatch::default(),
            took: Stopwatch::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn queue(&self) -> QueueStats {
        self.queue.stats()
    }

    /// How often a key was queued.
    pub(crate) fn added(&self) -> u64 {
        self.queue.added()
    }

    /// How long the oldest waiting key has waited.
    pub(crate) fn oldest(&self) -> Duration {
        self.queue.oldest()
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

/// Counts durations in buckets.
#[derive(Debug, Default)]
pub struct Stopwatch {
    buckets: [AtomicU64; Durations::BOUNDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Stopwatch {
    /// Counts one duration.
    pub fn record(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if let Some(bucket) = Durations::BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn read(&self) -> Durations {
        Durations {
            buckets: std::array::from_fn(|bucket| self.buckets[bucket].load(Ordering::Relaxed)),
            count: self.count.load(Ordering::Relaxed),
            sum: Duration::from_micros(self.micros.load(Ordering::Relaxed)),
        }
    }
}

/// How long things took, in buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    buckets: [u64; Durations::BOUNDS.len()],
    /// How many durations.
    pub count: u64,
    /// Their sum.
    pub sum: Duration,
}

impl Durations {
    /// Upper bounds in seconds.
    pub const BOUNDS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0];

    /// Bounds and how many durations are within each, smaller ones included.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let running = self.buckets.iter().scan(0, |total, count| {
            *total += count;
            Some(*total)
        });
        Self::BOUNDS.into_iter().zip(running)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += more;
        }
        self.count += other.count;
        self.sum += other.sum;
    }
}
