//! Bells: something has changed, look again.

use std::sync::Arc;

use tokio::sync::watch;

/// Rings for all who listen; rings that nobody has heard yet count once.
#[derive(Clone, Debug)]
pub struct Bell(Arc<watch::Sender<u64>>);

impl Default for Bell {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Bell {
    /// Something has changed.
    pub fn ring(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A listener, which has heard nothing yet.
    pub fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

/// Hears a bell.
#[derive(Debug)]
pub struct Listener(watch::Receiver<u64>);

impl Listener {
    /// Waits for the next ring that was not heard yet; for ever if the bell is gone.
    pub async fn heard(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
