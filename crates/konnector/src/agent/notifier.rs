//! Notifies whoever has subscribed that something has changed, without saying what.

use std::sync::Arc;

use tokio::sync::watch;

/// Notifies all subscribers; what they have not received yet counts once.
#[derive(Clone, Debug)]
pub struct Notifier(Arc<watch::Sender<u64>>);

impl Default for Notifier {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Notifier {
    /// Something has changed.
    pub fn notify(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A subscription to changes from now on.
    pub fn subscribe(&self) -> Subscription {
        Subscription(self.0.subscribe())
    }
}

/// A subscription to the changes of a [`Notifier`].
#[derive(Debug)]
pub struct Subscription(watch::Receiver<u64>);

impl Subscription {
    /// Waits for the next change; for ever if the notifier is gone.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
