//! Tasks that end with whoever started them.

use tokio::task::{JoinError, JoinHandle};

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
    async fn whoever_waits_for_an_end_twice_gets_it_once() {
        let mut task = Task::spawn(async { panic!("on purpose") });
        assert!(task.ended().await.is_err());
        assert!(task.has_ended() && task.ended().await.is_ok());
    }
}
