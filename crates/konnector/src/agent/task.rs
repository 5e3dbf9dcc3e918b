//! Tasks that end with whoever started them.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

/// A task that is aborted when this is dropped: whoever loses the Lease must not write any more.
#[derive(Debug)]
pub struct Task(Option<JoinHandle<()>>);

impl Task {
    /// Starts a task.
    pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(tokio::spawn(work)))
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end, and aborts it if that takes too long.
    pub async fn ended_within(&mut self, grace: Duration, what: &str) {
        if tokio::time::timeout(grace, self.ended()).await.is_err() {
            tracing::warn!(what, "The sync did not end in time and is aborted.");
            if let Some(handle) = self.0.take() {
                handle.abort();
            }
        }
    }

    /// Waits for its end. How it ended is reported once; whoever asks again gets no error.
    pub async fn ended(&mut self) -> Result<(), JoinError> {
        let Some(handle) = &mut self.0 else { return Ok(()) };
        let ended = handle.await;
        // Such a handle may not be polled again.
        self.0 = None;
        ended
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.abort();
        }
    }
}

/// How long to wait before what has ended by a defect is started again.
pub const AFTER_PANIC: Duration = Duration::from_secs(5);

/// Runs something until it ends well or is told to stop; a defect in it does not stop others, nor it for good.
pub async fn restarted<W: Future<Output = ()> + Send + 'static>(
    what: String,
    stop: CancellationToken,
    start: impl Fn(CancellationToken) -> W,
) {
    while !stop.is_cancelled() {
        let Err(error) = Task::spawn(start(stop.clone())).ended().await else { return };
        tracing::error!(what, %error, "A connection to a provider has ended unexpectedly and is started again; please report this.");
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(AFTER_PANIC) => {}
        }
    }
}

/// Tasks that run as long as somebody wants them, one for each key.
#[derive(Debug, Default)]
pub struct Tasks<K>(BTreeMap<K, (CancellationToken, Task)>);

impl<K: Ord> Tasks<K> {
    /// Tells those that nobody wants any more to stop, and starts what is new. One that was told to stop finishes what it does, and only then may
    /// another one of its key begin.
    pub fn follow<T, W: Future<Output = ()> + Send + 'static>(
        &mut self,
        wanted: BTreeMap<K, T>,
        stop: &CancellationToken,
        start: impl Fn(T, CancellationToken) -> W,
    ) {
        for (key, (stop, _)) in &self.0 {
            if !wanted.contains_key(key) {
                stop.cancel();
            }
        }
        self.0.retain(|_, (_, task)| !task.has_ended());
        for (key, about) in wanted {
            self.0.entry(key).or_insert_with(|| {
                let stop = stop.child_token();
                (stop.clone(), Task::spawn(start(about, stop)))
            });
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Waits until one has ended that was told to stop; for ever, if there is none.
    pub async fn one_ended(&mut self) {
        let ending = self.0.values_mut().filter(|(stop, _)| stop.is_cancelled());
        let mut ending: FuturesUnordered<_> = ending.map(|(_, task)| task.ended()).collect();
        if ending.next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until all have ended; each has said why, if it did not end well.
    pub async fn all_ended(self) {
        for (_, mut task) in self.0.into_values() {
            let _ = task.ended().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_ends_with_its_owner() {
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let task = Task::spawn(async move {
            let _sender = sender;
            std::future::pending::<()>().await;
        });
        assert!(!task.has_ended());
        drop(task);
        assert!(receiver.await.is_err(), "what it held is dropped");
    }

    #[tokio::test]
    async fn another_task_of_a_key_begins_when_the_first_one_has_ended() {
        let (mut tasks, stop) = (Tasks::default(), CancellationToken::new());
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let start = |number: u8, stop: CancellationToken| {
            let begun = begun.clone();
            async move {
                begun.send(number).unwrap();
                stop.cancelled().await;
            }
        };
        tasks.follow(BTreeMap::from([("a", 1)]), &stop, start);
        assert_eq!(begins.recv().await, Some(1));
        tasks.follow(BTreeMap::new(), &stop, start);
        tasks.follow(BTreeMap::from([("a", 2)]), &stop, start);
        assert!(begins.try_recv().is_err(), "the first one is still there");
        tasks.one_ended().await;
        tasks.follow(BTreeMap::from([("a", 3)]), &stop, start);
        assert_eq!((begins.recv().await, tasks.count()), (Some(3), 1));
        stop.cancel();
        tasks.all_ended().await;
    }

    #[tokio::test]
    async fn whoever_waits_for_an_end_twice_gets_it_once() {
        let mut task = Task::spawn(async { panic!("on purpose") });
        assert!(task.ended().await.is_err());
        assert!(task.has_ended() && task.ended().await.is_ok());
    }
}
