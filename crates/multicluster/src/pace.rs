//! How much may go on at once, found by trying.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// What is tried first: little, so that servers show how fast they are at rest.
const FIRST: f64 = 4.0;
/// How much longer than at rest, and how much longer at all, an answer may take before there is too much going on.
const TOLERATED: f64 = 2.0;
const TOLERATED_ANYWAY: f64 = 0.002;
/// How much one answer counts in an average.
const WEIGHT: f64 = 0.1;
/// With so many running, servers are at rest.
const AT_REST: usize = 2;

/// How many reconciles may run at once: as many as servers bear without keeping requests waiting.
///
/// More in flight than that does not get more done; it only makes every object wait longer, the single one of a
/// consumer behind thousands of another one too. What servers bear is learned from how long they take to answer, which is
/// what [`Pace::answered`] and [`Pace::refused`] are for. Controllers with the same pace share its limit. Cloning is cheap.
///
/// ```
/// use std::time::Duration;
/// use carrick_multicluster::{Config, Pace};
///
/// let pace = Pace::between(4, 128);
/// let config = Config::default().paced_by(pace.clone());
/// // in the reconciler, after each write to server 0:
/// pace.answered(0, Duration::from_millis(5));
/// ```
#[derive(Clone, Debug)]
pub struct Pace {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    course: Mutex<Course>,
    /// Told when there may be room.
    room: Notify,
}

impl Pace {
    /// A pace that never allows fewer or more at once than this.
    pub fn between(fewest: usize, most: usize) -> Self {
        let course = Mutex::new(Course::between(fewest, most));
        Self { inner: Arc::new(Inner { course, room: Notify::new() }) }
    }

    /// How many may run at this moment.
    pub fn limit(&self) -> usize {
        self.inner.course.lock().limit()
    }

    /// A server has answered a request, after this time. Servers are told apart by numbers.
    pub fn answered(&self, server: usize, took: Duration) {
        if self.inner.course.lock().answered(server, took.as_secs_f64()) {
            self.inner.room.notify_waiters();
        }
    }

    /// A server has said that it has too much to do, or did not answer in time.
    pub fn refused(&self) {
        self.inner.course.lock().refused();
    }

    /// Waits until not more than half of what may run does: the time for whatever can wait.
    pub async fn calm(&self) {
        self.until(|course| course.running * 2 <= course.limit()).await;
    }

    /// Waits until one more may run; until another one begins, that is.
    pub(crate) async fn room(&self) {
        self.until(|course| course.running < course.limit()).await;
    }

    async fn until(&self, wanted: impl Fn(&Course) -> bool) {
        loop {
            let told = self.inner.room.notified();
            if wanted(&self.inner.course.lock()) {
                return;
            }
            told.await;
        }
    }

    /// Counts one that runs, until dropped.
    pub(crate) fn begin(&self) -> Turn {
        self.inner.course.lock().running += 1;
        Turn(self.clone())
    }
}

/// One that runs.
#[derive(Debug)]
pub(crate) struct Turn(Pace);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.inner.course.lock().running -= 1;
        self.0.inner.room.notify_waiters();
    }
}

/// The pace without waiting.
#[derive(Debug)]
struct Course {
    fewest: f64,
    most: f64,
    limit: f64,
    running: usize,
    /// Nobody has waited so far: it may grow fast.
    probing: bool,
    /// Answers that count for the next decision.
    answers: f64,
    servers: Vec<Option<Server>>,
}

/// How long a server takes, in seconds.
#[derive(Debug, Clone, Copy)]
struct Server {
    at_rest: f64,
    now: f64,
}

impl Course {
    fn between(fewest: usize, most: usize) -> Self {
        let number = |count: usize| f64::from(u16::try_from(count.max(1)).unwrap_or(u16::MAX));
        let (fewest, most) = (number(fewest), number(most.max(fewest)));
        let limit = FIRST.clamp(fewest, most);
        Self { fewest, most, limit, running: 0, probing: true, answers: 0.0, servers: Vec::new() }
    }

    fn limit(&self) -> usize {
        // The limit is between 1 and 65535.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let limit = self.limit as usize;
        limit
    }

    /// Learns from an answer; true if more may run now.
    fn answered(&mut self, server: usize, took: f64) -> bool {
        if self.servers.len() <= server {
            self.servers.resize(server + 1, None);
        }
        let known = self.servers[server].get_or_insert(Server { at_rest: took, now: took });
        known.now += (took - known.now) * WEIGHT;
        if self.running <= AT_REST || took < known.at_rest {
            known.at_rest += (took - known.at_rest) * WEIGHT;
        }
        self.answers += 1.0;
        if self.answers < self.limit {
            return false;
        }
        // Every one of those running has been answered about once since the last change.
        self.answers = 0.0;
        let late = |server: &Server| server.now > server.at_rest * TOLERATED + TOLERATED_ANYWAY;
        if self.servers.iter().flatten().any(late) {
            self.probing = false;
            self.set(self.limit * 0.8);
            return false;
        }
        // Without having been needed, a limit says nothing.
        if self.running < self.limit() {
            return false;
        }
        self.set(if self.probing { self.limit * 1.5 } else { self.limit + 1.0 });
        true
    }

    fn refused(&mut self) {
        self.probing = false;
        // One refusal of many at once is enough.
        if self.answers > 0.0 {
            self.answers = 0.0;
            self.set(self.limit * 0.5);
        }
    }

    fn set(&mut self, limit: f64) {
        self.limit = limit.clamp(self.fewest, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers a request in `at_rest` seconds and can do so many at once; the rest wait in line.
    fn settle(course: &mut Course, at_rest: f64, at_once: f64) -> usize {
        for _ in 0..2_000 {
            course.running = course.limit();
            let waiting = (course.limit / at_once).max(1.0);
            course.answered(0, at_rest * waiting);
        }
        course.limit()
    }

    #[test]
    fn it_finds_what_a_server_bears() {
        let limit = settle(&mut Course::between(4, 128), 0.01, 4.0);
        assert!((6..=10).contains(&limit), "a server that does 4 at once: {limit}");
        let limit = settle(&mut Course::between(4, 128), 0.05, 1000.0);
        assert_eq!(limit, 128, "a server that is far away but strong");
        let mut course = Course::between(4, 128);
        course.running = 1;
        course.answered(0, 0.01);
        assert_eq!(settle(&mut course, 0.01, 0.1), 4, "never fewer than asked for");
    }

    #[test]
    fn it_follows_a_server_that_becomes_weaker_and_stronger() {
        let mut course = Course::between(4, 128);
        let strong = settle(&mut course, 0.01, 16.0);
        let weak = settle(&mut course, 0.01, 4.0);
        assert!(weak < strong / 2, "{strong} then {weak}");
        let again = settle(&mut course, 0.01, 16.0);
        assert!(again > strong / 2, "{strong} then {weak} then {again}");
    }

    #[test]
    fn an_unused_limit_does_not_grow() {
        let mut course = Course::between(4, 128);
        for _ in 0..1_000 {
            course.running = 1;
            course.answered(0, 0.01);
        }
        assert_eq!(course.limit(), 4);
    }

    #[test]
    fn refusals_halve_it_once_for_all_that_were_under_way() {
        let mut course = Course::between(4, 128);
        let before = settle(&mut course, 0.01, 16.0);
        course.answered(0, 0.01);
        for _ in 0..before {
            course.refused();
        }
        assert_eq!(course.limit(), before / 2);
    }

    #[tokio::test]
    async fn whoever_waits_is_let_in_when_another_one_ends() {
        let pace = Pace::between(1, 1);
        let turn = pace.begin();
        let waiting = tokio::spawn({
            let pace = pace.clone();
            async move { pace.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(turn);
        waiting.await.unwrap();
    }
}
