//! Tasks that end with whoever started them.

use tokio::task::{JoinError, JoinHandle};

/// A task that is aborted when this is dropped: whoever loses the Lease must not write any more.
#[derive(Debug)]
pub struct Task(JoinHandle<()>);

impl Task {
    /// Starts a task.
    pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for its end, which is told once.
    pub async fn ended(&mut self) -> Result<(), JoinError> {
        (&mut self.0).await
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
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
}
