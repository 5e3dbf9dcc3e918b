//! Signals that end a process.

use tokio_util::sync::CancellationToken;

/// The first SIGTERM or SIGINT asks for a graceful shutdown, which the log announces with `message`; the second one exits at once.
#[cfg(unix)]
pub fn stop_on_signals(stop: &CancellationToken, message: &'static str) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = stop.clone();
    tokio::spawn(async move {
        loop {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            if stop.is_cancelled() {
                tracing::warn!(signal = name, "Asked twice, stopping at once.");
                std::process::exit(1);
            }
            tracing::info!(signal = name, "{message}");
            stop.cancel();
        }
    });
    Ok(())
}
