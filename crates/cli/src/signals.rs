//! Waiting for a signal to stop.

use anyhow::Context;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that are listened for. Whoever announces that it is ready listens first: a signal in between would end the process at once.
pub struct StopSignals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

impl StopSignals {
    /// Listens for Ctrl-C, and on Unix also for SIGTERM.
    #[cfg(unix)]
    pub fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?,
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
        })
    }

    /// Listens for Ctrl-C.
    #[cfg(not(unix))]
    pub fn listen() -> anyhow::Result<Self> {
        Ok(Self {})
    }

    /// Returns when the next signal has come.
    #[cfg(unix)]
    pub async fn next(&mut self) -> anyhow::Result<()> {
        tokio::select! {
            _ = self.interrupt.recv() => Ok(()),
            _ = self.terminate.recv() => Ok(()),
        }
    }

    /// Returns when the next signal has come.
    #[cfg(not(unix))]
    pub async fn next(&mut self) -> anyhow::Result<()> {
        tokio::signal::ctrl_c().await.context("cannot listen for Ctrl-C")
    }
}

/// Returns on Ctrl-C, and on Unix also on SIGTERM.
pub async fn stop() -> anyhow::Result<()> {
    StopSignals::listen()?.next().await
}
