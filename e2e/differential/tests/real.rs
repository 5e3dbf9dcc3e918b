//! Every scenario on the same real kcp, kube-apiserver and etcd, which are started for the first one and ended after the last one, and what
//! planes and real servers answer to the same requests: `e2e/real`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use carrick_e2e_differential::{self as differential, Pair, goclients, shorter};
use carrick_e2e_scenarios::Scenario;
use carrick_e2e_stage::selection::Selection;
use carrick_e2e_stage::world::RealWorld;
use carrick_e2e_stage::{harness, ran};
use libtest_mimic::{Completion, Trial};
use tokio::runtime::Runtime;

/// Where the real servers' binaries are; `e2e/real` sets it.
const SERVERS: &str = "CARRICK_SERVERS";

fn main() -> ExitCode {
    harness::init_logs(false);
    let arguments = harness::arguments(4);
    if differential::live().is_some() {
        let trials = differential::all().into_iter().map(|(name, pair)| {
            Trial::test(name, move || harness::verdict(harness::runtime()?.block_on(differential::compare(None, pair))))
        });
        return libtest_mimic::run(&arguments, trials.collect()).exit_code();
    }
    let Some(binaries) = std::env::var_os(SERVERS).map(PathBuf::from) else {
        eprintln!("skipped: to play the scenarios on real kcp, kube-apiserver and etcd, run `e2e/real`");
        let trials = shorter::trials().into_iter().chain([core()]).collect();
        return libtest_mimic::run(&arguments, trials).exit_code();
    };
    let servers = match harness::runtime() {
        Ok(runtime) => Arc::new(Servers { runtime, binaries, world: Mutex::default(), playing: RwLock::default() }),
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let play = |scenario: Scenario| {
        let servers = Arc::clone(&servers);
        harness::noted(scenario.name, move || {
            if let Some(lack) = scenario.lacks() {
                return Ok(Completion::ignored_with(lack));
            }
            harness::on_a_large_stack(move || {
                let world = servers.world().map_err(anyhow::Error::msg)?;
                let _turn = servers.turn(scenario.alone);
                servers.runtime.block_on((scenario.play)(world))
            })
            .map(|()| Completion::Completed)
        })
    };
    let compare = |(name, pair): (&'static str, Pair)| {
        let servers = Arc::clone(&servers);
        harness::trial(name, move || {
            let world = servers.world()?;
            // So many kinds keep an API server busy.
            let _turn = servers.turn(pair == Pair::Corpus);
            harness::verdict(servers.runtime.block_on(differential::compare(Some(&*world), pair)))
        })
    };
    let mut all = carrick_e2e_scenarios::all();
    // Shards of a real kcp cannot take a workspace back.
    all.retain(|scenario| !scenario.planes);
    if std::env::var_os(harness::DEADLINE).is_some() {
        // What is left out for want of time is something else each day.
        let days = harness::since_1970() / (24 * 60 * 60);
        let first = usize::try_from(days).unwrap_or_default() * 61 % all.len();
        all.rotate_left(first);
    }
    let trials = all.into_iter().map(play).chain(differential::all().into_iter().map(compare));
    let go = |(name, part, place): (String, _, _)| {
        let servers = Arc::clone(&servers);
        harness::trial(name, move || {
            let world = servers.world()?;
            let _turn = servers.turn(false);
            harness::verdict(servers.runtime.block_on(goclients::play(&*world, part, place)))
        })
    };
    let trials = trials
        .chain(goclients::trials())
        .chain(goclients::on_real_servers().into_iter().map(go))
        .chain(shorter::trials());
    let chosen = Selection::wanted().and_then(|wanted| Ok((wanted, wanted.of(trials.collect(), Trial::name)?)));
    let (selection, trials) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let scenarios: BTreeSet<&str> = carrick_e2e_scenarios::all().into_iter().map(|scenario| scenario.name).collect();
    let names: Vec<(String, bool)> =
        trials.iter().map(|trial| (trial.name().to_owned(), scenarios.contains(trial.name()))).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Err(error) = servers.record(&names) {
        eprintln!("what was played is not recorded: {error:#}");
        return ExitCode::FAILURE;
    }
    if let Some(lack) = selection.lacks(&arguments, &conclusion) {
        eprintln!("{lack}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// That the core is made of scenarios and comparisons which are there; needs no server.
fn core() -> Trial {
    Trial::test("core::every_name_in_the_list_is_that_of_a_trial", || {
        let scenarios = carrick_e2e_scenarios::all().into_iter().map(|scenario| scenario.name);
        let all = scenarios.chain(differential::all().into_iter().map(|(name, _)| name)).collect();
        harness::verdict(Selection::Core.of(all, |name| name).map(drop))
    })
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

    /// Keeps what was played, if somebody wants to know and there was something.
    fn record(&self, names: &[(String, bool)]) -> anyhow::Result<()> {
        let Some(file) = ran::file() else { return Ok(()) };
        let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Ok(world)) = &*world else { anyhow::bail!("no server has been started") };
        ran::record(&file, world.versions(), names)
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
