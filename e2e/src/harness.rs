//! From scenarios to tests.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::differential::{self, Pair};
use crate::world::{EmbeddedWorld, RealWorld};
use crate::{goclients, logbook, scenarios};

/// Where the real servers' binaries are; `e2e/real` sets it.
const SERVERS: &str = "CARRICK_SERVERS";

/// When scenarios on real servers do not begin any more, in seconds since 1970. Without it all are played.
const DEADLINE: &str = "CARRICK_DEADLINE";

/// Plays every scenario in an embedded world of its own.
pub fn embedded() -> ExitCode {
    init_logs(false);
    let play = |scenario: scenarios::Scenario| {
        Trial::ignorable_test(scenario.name, move || {
            if let Some(lack) = scenario.lacks() {
                return Ok(Completion::ignored_with(lack));
            }
            on_a_large_stack(move || {
                let runtime = runtime()?;
                let result = runtime.block_on(async {
                    let world = EmbeddedWorld::start().await?;
                    (scenario.play)(Arc::new(world)).await
                });
                runtime.shutdown_background();
                result
            })
            .map(|()| Completion::Completed)
        })
    };
    libtest_mimic::run(&arguments(6), scenarios::all().into_iter().map(play).collect()).exit_code()
}

/// Plays every scenario on the same real servers, which are started for the first one and ended after the last one.
pub fn real() -> ExitCode {
    init_logs(false);
    let arguments = arguments(4);
    if differential::live().is_some() {
        let trials = differential::all().into_iter().map(|(name, pair)| {
            Trial::test(name, move || verdict(runtime()?.block_on(differential::compare(None, pair))))
        });
        return libtest_mimic::run(&arguments, trials.collect()).exit_code();
    }
    let Some(binaries) = std::env::var_os(SERVERS).map(PathBuf::from) else {
        eprintln!("skipped: to play the scenarios on real kcp, kube-apiserver and etcd, run `e2e/real`");
        return libtest_mimic::run(&arguments, Vec::new()).exit_code();
    };
    let servers = match runtime() {
        Ok(runtime) => Arc::new(Servers { runtime, binaries, world: Mutex::default(), playing: RwLock::default() }),
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let play = |scenario: scenarios::Scenario| {
        let servers = Arc::clone(&servers);
        Trial::ignorable_test(scenario.name, move || {
            if is_late() {
                return Ok(Completion::ignored_with("there was no time left"));
            }
            if let Some(lack) = scenario.lacks() {
                return Ok(Completion::ignored_with(lack));
            }
            on_a_large_stack(move || {
                let world = servers.world().map_err(anyhow::Error::msg)?;
                let _turn = servers.turn(scenario.alone);
                servers.runtime.block_on((scenario.play)(world))
            })
            .map(|()| Completion::Completed)
        })
    };
    let compare = |(name, pair): (&'static str, Pair)| {
        let servers = Arc::clone(&servers);
        trial(name, move || {
            let world = servers.world()?;
            // So many kinds keep an API server busy.
            let _turn = servers.turn(pair == Pair::Corpus);
            verdict(servers.runtime.block_on(differential::compare(Some(&*world), pair)))
        })
    };
    let mut all = scenarios::all();
    if std::env::var_os(DEADLINE).is_some() {
        // What is left out for want of time is something else each day.
        let days = since_1970() / (24 * 60 * 60);
        let first = usize::try_from(days).unwrap_or_default() * 61 % all.len();
        all.rotate_left(first);
    }
    let trials = all.into_iter().map(play).chain(differential::all().into_iter().map(compare));
    let go = |(name, part, place): (String, _, _)| {
        let servers = Arc::clone(&servers);
        trial(name, move || {
            let world = servers.world()?;
            let _turn = servers.turn(false);
            verdict(servers.runtime.block_on(goclients::play(&*world, part, place)))
        })
    };
    let trials = trials.chain(goclients::trials()).chain(goclients::on_real_servers().into_iter().map(go));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// A trial that is left out if there is no time left for it.
pub(crate) fn trial(
    name: impl Into<String>,
    run: impl FnOnce() -> Result<(), libtest_mimic::Failed> + Send + 'static,
) -> Trial {
    Trial::ignorable_test(name, move || {
        if is_late() {
            return Ok(Completion::ignored_with("there was no time left"));
        }
        run().map(|()| Completion::Completed)
    })
}

/// What the command line says. Scenarios wait more than they work, so several play at once whatever the number of cores.
fn arguments(threads: usize) -> Arguments {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(threads);
    arguments
}

fn is_late() -> bool {
    let deadline = std::env::var(DEADLINE).ok().and_then(|text| text.parse::<u64>().ok());
    deadline.is_some_and(|deadline| since_1970() >= deadline)
}

fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default()
}

/// The real servers, once they are needed.
struct Servers {
    runtime: Runtime,
    binaries: PathBuf,
    world: Mutex<Option<Result<Arc<RealWorld>, String>>>,
    playing: RwLock<()>,
}

impl Servers {
    /// The one world; whoever asks first starts it, the others wait.
    fn world(&self) -> Result<Arc<RealWorld>, String> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let started = world.get_or_insert_with(|| {
            eprintln!("starting kcp, kube-apiserver and etcd, which takes about half a minute");
            let start = RealWorld::start(&self.binaries);
            self.runtime.block_on(start).map(Arc::new).map_err(|error| format!("{error:#}"))
        });
        // The long story is told once.
        std::mem::replace(started, started.clone().map_err(|_| "the servers did not start".to_owned()))
    }

    /// Waits for the turn of a scenario, which is over when the answer is dropped.
    fn turn(&self, alone: bool) -> Turn<'_> {
        if alone {
            Turn::Alone(self.playing.write().unwrap_or_else(PoisonError::into_inner))
        } else {
            Turn::Together(self.playing.read().unwrap_or_else(PoisonError::into_inner))
        }
    }
}

/// Held while a scenario plays.
enum Turn<'a> {
    Alone(#[expect(dead_code, reason = "only held")] RwLockWriteGuard<'a, ()>),
    Together(#[expect(dead_code, reason = "only held")] RwLockReadGuard<'a, ()>),
}

pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(2).thread_stack_size(carrick_json::STACK).enable_all().build()?)
}

/// Plays something where objects may nest as deep as they can be carried: threads of tests are small.
fn on_a_large_stack(play: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Result<(), Failed> {
    let played =
        std::thread::Builder::new().stack_size(carrick_json::STACK).spawn(play).map(std::thread::JoinHandle::join);
    match played {
        Ok(Ok(result)) => verdict(result),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn verdict(result: anyhow::Result<()>) -> Result<(), Failed> {
    result.map_err(|error| format!("{error:#}").into())
}

/// `RUST_LOG=info` shows what agents and planes say; the thread's name tells which stage it is about.
pub(crate) fn init_logs(details: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    let shown = fmt::layer().with_thread_names(true).with_writer(std::io::stderr).with_filter(filter);
    tracing_subscriber::registry().with(shown).with(logbook::layer(details)).init();
}
