//! What agents say, kept by the names of their threads.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

static PAGES: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);

/// Writes down what agents say; with all details, if asked to.
pub fn layer<S: tracing::Subscriber + for<'a> LookupSpan<'a>>(details: bool) -> impl Layer<S> {
    let agents = if details {
        Targets::new().with_default(tracing::Level::WARN).with_target("carrick", tracing::Level::DEBUG)
    } else {
        Targets::new()
            .with_target("carrick_client", tracing::Level::WARN)
            .with_target("carrick_syncagent", tracing::Level::INFO)
            .with_target("carrick_multicluster", tracing::Level::INFO)
    };
    fmt::layer().with_ansi(false).without_time().with_target(false).with_writer(|| Pen).with_filter(agents)
}

/// The lines that an agent has said so far, given the name of its thread.
pub fn lines(thread: &str) -> Vec<String> {
    pages().get(thread).map(|page| page.lines().map(str::to_owned).collect()).unwrap_or_default()
}

struct Pen;

impl Write for Pen {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if let Some(name) = thread::current().name() {
            pages().entry(name.to_owned()).or_default().push_str(&String::from_utf8_lossy(text));
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn pages() -> MutexGuard<'static, HashMap<String, String>> {
    PAGES.lock().unwrap_or_else(PoisonError::into_inner)
}
