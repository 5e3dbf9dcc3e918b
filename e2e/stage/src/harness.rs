//! What every suite's program is made of: its arguments, logs and runtimes, and verdicts on trials.

use std::time::{SystemTime, UNIX_EPOCH};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::{logbook, ran};

/// When scenarios on real servers do not begin any more, in seconds since 1970. Without it all are played.
pub const DEADLINE: &str = "CARRICK_DEADLINE";

/// A trial on real servers that is left out if there is no time left for it.
pub fn trial(name: impl Into<String>, run: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    noted(name, move || run().map(|()| Completion::Completed))
}

/// The same of one that may find out that it cannot be played.
pub fn noted(name: impl Into<String>, run: impl FnOnce() -> Result<Completion, Failed> + Send + 'static) -> Trial {
    let name = name.into();
    Trial::ignorable_test(name.clone(), move || {
        ran::noted(&name, || if is_late() { Ok(Completion::ignored_with("there was no time left")) } else { run() })
    })
}

/// What the command line says. Scenarios wait more than they work, so several play at once whatever the number of cores.
pub fn arguments(threads: usize) -> Arguments {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(threads);
    arguments
}

/// Whether nothing may begin any more.
pub fn is_late() -> bool {
    let deadline = std::env::var(DEADLINE).ok().and_then(|text| text.parse::<u64>().ok());
    deadline.is_some_and(|deadline| since_1970() >= deadline)
}

/// Seconds since 1970.
pub fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default()
}

/// A runtime whose threads carry objects that nest as deep as they can.
pub fn runtime() -> anyhow::Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(2).thread_stack_size(carrick_json::STACK).enable_all().build()?)
}

/// Plays something where objects may nest as deep as they can be carried: threads of tests are small.
pub fn on_a_large_stack(play: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Result<(), Failed> {
    let played =
        std::thread::Builder::new().stack_size(carrick_json::STACK).spawn(play).map(std::thread::JoinHandle::join);
    match played {
        Ok(Ok(result)) => verdict(result),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => Err(error.into()),
    }
}

/// How a trial ends that ended like this.
pub fn verdict(result: anyhow::Result<()>) -> Result<(), Failed> {
    result.map_err(|error| format!("{error:#}").into())
}

/// `RUST_LOG=info` shows what agents and planes say; the thread's name tells which stage it is about.
pub fn init_logs(details: bool) {
    let wanted = std::env::var("RUST_LOG").ok().filter(|wanted| !wanted.is_empty());
    let filter: Targets = wanted.and_then(|wanted| wanted.parse().ok()).unwrap_or_default();
    let shown = fmt::layer().with_thread_names(true).with_writer(std::io::stderr).with_filter(filter);
    tracing_subscriber::registry().with(shown).with(logbook::layer(details)).init();
}
