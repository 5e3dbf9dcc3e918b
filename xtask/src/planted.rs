//! Planted bugs: edits to the agent's core that tests must catch.
//!
//! ```text
//!  xtask/planted/*.txt ─▶ list    what is edited, and why it matters
//!                          │
//!  the workspace ─▶ copy ─▶ plant  all edits at once, each behind a switch: `if planted::on(17) { new } else { old }`
//!                          │
//!                        build    test programs, once
//!                          │
//!                         try     for each bug: unit tests, then the scenarios and promises that reach it, until one fails
//!                          ▼
//!                        table    what caught it, or that nothing did
//! ```
//!
//! The copy lies in the target folder; the workspace itself is never touched.
#![allow(clippy::format_push_string)] // a few lines of text, written once

mod attempt;
mod list;
mod plant;
mod scratch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use attempt::{Ending, Program, Suite};
use list::Bug;
use scratch::Scratch;

use crate::tools;

/// Plant bugs in a copy of the agent's core, one at a time, and see which of them no test catches.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Try only bugs whose names contain one of these.
    names: Vec<String>,
    /// Run unit tests alone.
    #[arg(long)]
    quick: bool,
    /// Leave out the promises, which take longest.
    #[arg(long)]
    no_promises: bool,
    /// How many test programs run at once.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// How many times as long as without a bug a test may take; after that it is ended, and the bug counts as caught.
    #[arg(long, default_value_t = 8)]
    patience: u32,
    /// Where cargo builds the copy.
    #[arg(long, value_name = "FOLDER")]
    target: Option<PathBuf>,
    /// Only check that all edits fit the code and compile.
    #[arg(long)]
    check: bool,
    /// Write the table to a file, too.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What became of a bug.
enum Verdict {
    /// A test failed, panicked or did not end.
    Caught(String),
    /// All tests passed, and some of them reached it.
    Survived,
    /// No test ever reached it.
    NotReached,
}

/// Plants and tries.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let bugs = list::read(&tools::root().join("xtask/planted"))?;
    let scratch = Scratch::new(args.target.clone());
    scratch.copy(&plant::plant(&tools::root(), &bugs)?)?;
    say(&format!("{} bugs planted in {}", bugs.len(), scratch.root().display()));
    if args.check {
        return scratch.check(&bugs);
    }
    let programs = scratch.build(&bugs, !args.quick, !args.quick && !args.no_promises)?;
    let wanted =
        |bug: &&(usize, &Bug)| args.names.is_empty() || args.names.iter().any(|name| bug.1.name.contains(name));
    let chosen: Vec<(usize, &Bug)> = bugs.iter().enumerate().collect();
    let chosen: Vec<(usize, &Bug)> = chosen.iter().filter(wanted).copied().collect();
    ensure!(!chosen.is_empty(), "no bug has such a name");

    let known = Known::take(args, &programs)?;
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                while let Some((number, bug)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let started = Instant::now();
                    let verdict = known.judge(args, *number);
                    say(&format!("{}: {} ({} s)", bug.name, words(&verdict), started.elapsed().as_secs()));
                    verdicts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(*number, verdict);
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let table = table(&bugs, &verdicts);
    println!("{table}");
    if let Some(file) = &args.out {
        std::fs::write(file, &table).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let survivors = chosen
        .iter()
        .filter(|(number, bug)| bug.equivalent.is_none() && !matches!(verdicts.get(number), Some(Verdict::Caught(_))));
    let survivors = survivors.count();
    ensure!(survivors == 0, "{survivors} of {} planted bugs were not caught", chosen.len());
    Ok(())
}

/// What test programs do when no bug is switched on.
struct Known {
    /// Unit tests, with the time that each program takes and the bugs that it reaches.
    units: Vec<(Program, Duration, BTreeSet<usize>)>,
    /// Scenarios and promises one by one, the quickest first.
    suites: Vec<(Suite, Duration, BTreeSet<usize>)>,
}

impl Known {
    /// Runs everything once without a bug.
    fn take(args: &Args, programs: &[Program]) -> anyhow::Result<Self> {
        let mut units = Vec::new();
        for program in programs.iter().filter(|program| !program.is_suite) {
            say(&format!("{} without a bug", program.name));
            let (ending, took, reached) = program.run(None, None, Duration::from_mins(10))?;
            ensure!(matches!(ending, Ending::Passed), "{} fails without any bug: {}", program.name, ending.words());
            units.push((program.clone(), took, reached));
        }
        let tests =
            programs.iter().filter(|program| program.is_suite).map(Suite::all).collect::<Result<Vec<_>, _>>()?;
        let tests: Vec<Suite> = tests.into_iter().flatten().collect();
        let next = AtomicUsize::new(0);
        let suites = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..args.jobs.max(1) {
                scope.spawn(|| {
                    while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let known = test.program.run(Some(&test.name), None, Duration::from_mins(10));
                        match known {
                            Ok((Ending::Passed, took, reached)) => {
                                say(&format!(
                                    "{} without a bug: {} s, reaches {}",
                                    test.name,
                                    took.as_secs(),
                                    reached.len()
                                ));
                                let mut suites = suites.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                                suites.push((test.clone(), took, reached));
                            }
                            // What fails anyway proves nothing.
                            Ok((ending, ..)) => say(&format!("{} is left out: {}", test.name, ending.words())),
                            Err(error) => say(&format!("{} is left out: {error:#}", test.name)),
                        }
                    }
                });
            }
        });
        let mut suites = suites.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        suites.sort_by_key(|(_, took, _)| *took);
        Ok(Self { units, suites })
    }

    /// Switches a bug on and runs what reaches it, until something notices.
    fn judge(&self, args: &Args, bug: usize) -> Verdict {
        let mut was_reached = false;
        let units = self.units.iter().map(|(program, took, reached)| (program, None, took, reached));
        let suites = self.suites.iter().map(|(test, took, reached)| (&test.program, Some(&test.name), took, reached));
        for (program, name, took, reached) in units.chain(suites) {
            if !reached.contains(&bug) {
                continue;
            }
            was_reached = true;
            let limit = (*took * args.patience).max(Duration::from_secs(30));
            match program.run(name.map(String::as_str), Some(bug), limit) {
                Ok((Ending::Passed, ..)) => {}
                Ok((ending, ..)) => {
                    let by = name.map_or_else(String::new, |name| format!("{} {name}, ", program.name));
                    return Verdict::Caught(format!("{by}{}", ending.words()));
                }
                Err(error) => return Verdict::Caught(format!("{error:#}")),
            }
        }
        if was_reached { Verdict::Survived } else { Verdict::NotReached }
    }
}

fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Caught(by) => format!("caught: {by}"),
        Verdict::Survived => "SURVIVED".to_owned(),
        Verdict::NotReached => "SURVIVED, no test reaches it".to_owned(),
    }
}

fn table(bugs: &[Bug], verdicts: &BTreeMap<usize, Verdict>) -> String {
    let mut text = String::from("| bug | what it breaks | verdict |\n| --- | --- | --- |\n");
    let (mut caught, mut equivalent, mut survived) = (0, 0, 0);
    for (number, verdict) in verdicts {
        let Bug { name, why, equivalent: same, .. } = &bugs[*number];
        let shown = match (verdict, same) {
            (Verdict::Caught(_), _) => {
                caught += 1;
                words(verdict)
            }
            (_, Some(reason)) => {
                equivalent += 1;
                format!("equivalent: {reason}")
            }
            _ => {
                survived += 1;
                words(verdict)
            }
        };
        text += &format!("| {name} | {why} | {} |\n", shown.replace('|', "\\|"));
    }
    text + &format!(
        "\n{} planted bugs: {caught} caught, {equivalent} equivalent to the right code, {survived} survived.\n",
        verdicts.len()
    )
}

fn say(what: &str) {
    eprintln!("planted: {what}");
}
