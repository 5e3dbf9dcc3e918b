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
mod memory;
mod plant;
mod scratch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use attempt::{Ending, Program};
use list::Bug;
use memory::{Memory, Remembered};
use scratch::Scratch;

use crate::tools;

/// Plant bugs in a copy of the agent's core, one at a time, and see which of them no test catches.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
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
    /// Try bugs again although an earlier run of the same programs has judged them.
    #[arg(long)]
    again: bool,
    /// End after so many minutes; the next run goes on where this one was.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Only check that all edits fit the code and compile.
    #[arg(long)]
    check: bool,
    /// Write the table to a file, too.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// How many tests of a suite are tried together.
const BATCH: usize = 12;
/// Unit tests that take longer come later.
const QUICK: Duration = Duration::from_millis(500);

/// What became of a bug.
enum Verdict {
    /// A test of a program failed, panicked or did not end.
    Caught {
        /// The program.
        program: String,
        /// What it said.
        words: String,
    },
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

    let ends = args.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let known = Known::take(args, programs, Memory::read(scratch.memory()))?;
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                while let Some((number, bug)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if ends.is_some_and(|ends| Instant::now() > ends) {
                        break;
                    }
                    let started = Instant::now();
                    let remembered = if args.again { None } else { known.remembered(*number, bug) };
                    let verdict = remembered.unwrap_or_else(|| known.judge(args, *number, bug));
                    known.remember(bug, &verdict);
                    say(&format!("{}: {} ({} s)", bug.name, words(&verdict), started.elapsed().as_secs()));
                    locked(&verdicts).insert(*number, verdict);
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    let table = table(&bugs, &verdicts);
    println!("{table}");
    if let Some(file) = &args.out {
        std::fs::write(file, &table).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let tried = chosen.iter().filter_map(|(number, bug)| Some((bug, verdicts.get(number)?)));
    let survived =
        |(bug, verdict): &(&&Bug, &Verdict)| bug.equivalent.is_none() && !matches!(verdict, Verdict::Caught { .. });
    let survivors = tried.filter(survived).count();
    let left = chosen.len() - verdicts.len();
    ensure!(
        left == 0,
        "{left} of {} planted bugs were not tried for want of time; the same command goes on with them",
        chosen.len()
    );
    ensure!(survivors == 0, "{survivors} of {} planted bugs were not caught", chosen.len());
    Ok(())
}

/// What test programs do when no bug is switched on.
struct Known {
    programs: Vec<Program>,
    /// Tells these programs from others.
    stamp: String,
    /// All tests one by one, the quickest first.
    tests: Vec<Test>,
    memory: Mutex<Memory>,
}

/// One test.
struct Test {
    program: usize,
    name: String,
    took: Duration,
    reached: BTreeSet<usize>,
}

impl Known {
    /// Runs every test once without a bug, unless that is known from an earlier run of the same program.
    fn take(args: &Args, programs: Vec<Program>, memory: Memory) -> anyhow::Result<Self> {
        let mut known = Self { programs, stamp: String::new(), tests: Vec::new(), memory: Mutex::new(memory) };
        let mut wanted = Vec::new();
        for (number, program) in known.programs.iter().enumerate() {
            let stamp = memory::stamp(&program.path)?;
            known.stamp.push_str(&stamp);
            wanted.extend(program.tests.iter().map(|name| (number, stamp.clone(), name.clone())));
        }
        say(&format!("{} tests without a bug", wanted.len()));
        let (next, tests) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..args.jobs.max(1) {
                scope.spawn(|| {
                    while let Some((program, stamp, name)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                        locked(&tests).extend(known.alone(*program, stamp, name));
                    }
                });
            }
        });
        known.tests = tests.into_inner().unwrap_or_else(PoisonError::into_inner);
        known.tests.sort_by_key(|test| test.took);
        Ok(known)
    }

    /// One test without a bug; none if it fails anyway, which would prove nothing.
    fn alone(&self, program: usize, stamp: &str, name: &str) -> Option<Test> {
        let remembered = locked(&self.memory).test(stamp, name);
        if let Some((took, reached)) = remembered {
            return Some(Test { program, name: name.to_owned(), took, reached });
        }
        match self.programs[program].run(&[name], None, Duration::from_mins(10)) {
            Ok((Ending::Passed, took, reached)) => {
                say(&format!("{name} without a bug: {} s, reaches {}", took.as_secs(), reached.len()));
                locked(&self.memory).note_test(stamp, name, took, &reached);
                return Some(Test { program, name: name.to_owned(), took, reached });
            }
            Ok((ending, ..)) => say(&format!("{name} is left out: {}", ending.words())),
            Err(error) => say(&format!("{name} is left out: {error:#}")),
        }
        None
    }

    /// What an earlier run of the same programs found out about a bug.
    fn remembered(&self, number: usize, bug: &Bug) -> Option<Verdict> {
        let reached = self.tests.iter().any(|test| test.reached.contains(&number));
        Some(match locked(&self.memory).verdict(&self.stamp, &bug.name)? {
            Remembered::Caught(program, words) => Verdict::Caught { program, words },
            Remembered::Survived if reached => Verdict::Survived,
            Remembered::Survived => Verdict::NotReached,
        })
    }

    fn remember(&self, bug: &Bug, verdict: &Verdict) {
        let caught = match verdict {
            Verdict::Caught { program, words } => Some((program.as_str(), words.as_str())),
            Verdict::Survived | Verdict::NotReached => None,
        };
        locked(&self.memory).note_verdict(&self.stamp, &bug.name, caught);
    }

    /// Switches a bug on and runs what reaches it, until something notices: unit tests, then scenarios, then promises.
    fn judge(&self, args: &Args, number: usize, bug: &Bug) -> Verdict {
        let mut tests: Vec<&Test> = self.tests.iter().filter(|test| test.reached.contains(&number)).collect();
        if tests.is_empty() {
            return Verdict::NotReached;
        }
        let before = locked(&self.memory).caught(&bug.name).map(str::to_owned);
        if let Some(at) = before.and_then(|before| tests.iter().position(|test| test.name == before)) {
            let test = tests.remove(at);
            if let Some(verdict) = self.attempt(args, &[test], number) {
                return verdict;
            }
        }
        for (number_of_program, program) in self.programs.iter().enumerate() {
            let own: Vec<&Test> = tests.iter().filter(|test| test.program == number_of_program).copied().collect();
            let quick = own.partition_point(|test| test.took < QUICK);
            let batches: Vec<&[&Test]> =
                if program.is_suite { own.chunks(BATCH).collect() } else { vec![&own[..quick], &own[quick..]] };
            for batch in batches.into_iter().filter(|batch| !batch.is_empty()) {
                let Some(Verdict::Caught { words, .. }) = self.attempt(args, batch, number) else { continue };
                say(&format!("{}: looking closer: {words}", bug.name));
                // Several at once may disturb each other: only what also fails alone has noticed the bug.
                let (first, rest): (Vec<&Test>, Vec<&Test>) = batch.iter().partition(|test| words.contains(&test.name));
                for test in first.into_iter().chain(rest) {
                    if let Some(verdict) = self.attempt(args, &[test], number) {
                        locked(&self.memory).note_caught(&bug.name, &test.name);
                        return verdict;
                    }
                }
            }
        }
        Verdict::Survived
    }

    /// Runs some tests of one program with a bug; nothing if they pass.
    fn attempt(&self, args: &Args, tests: &[&Test], bug: usize) -> Option<Verdict> {
        let program = &self.programs[tests.first()?.program];
        let took: Duration = tests.iter().map(|test| test.took).sum();
        let limit = (took * args.patience).max(Duration::from_secs(30));
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        let words = match program.run(&names, Some(bug), limit) {
            Ok((Ending::Passed, ..)) => return None,
            Ok((ending, ..)) => ending.words(),
            Err(error) => format!("{error:#}"),
        };
        let words = match &names[..] {
            [name] if !words.contains(name) => format!("{name} {words}"),
            _ => words,
        };
        Some(Verdict::Caught { program: program.name.clone(), words })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Caught { program, words } => format!("caught by {}: {words}", suite(program)),
        Verdict::Survived => "SURVIVED".to_owned(),
        Verdict::NotReached => "SURVIVED, no test reaches it".to_owned(),
    }
}

fn table(bugs: &[Bug], verdicts: &BTreeMap<usize, Verdict>) -> String {
    let mut text = String::from("| bug | what it breaks | verdict |\n| --- | --- | --- |\n");
    let (mut caught, mut equivalent, mut survived) = (0, 0, 0);
    let mut by: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, verdict) in verdicts {
        let Bug { name, why, equivalent: same, .. } = &bugs[*number];
        let shown = match (verdict, same) {
            (Verdict::Caught { program, .. }, _) => {
                caught += 1;
                *by.entry(suite(program)).or_insert(0) += 1;
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
    let by: Vec<String> = by.iter().map(|(suite, count)| format!("{count} by {suite}")).collect();
    text + &format!(
        "\n{} planted bugs: {caught} caught ({}), {equivalent} equivalent to the right code, {survived} survived.\n",
        verdicts.len(),
        by.join(", ")
    )
}

/// What the tests of a program are called.
fn suite(program: &str) -> &str {
    match program {
        "embedded" => "scenarios",
        "promises" => "promises",
        _ => "unit tests",
    }
}

fn say(what: &str) {
    eprintln!("planted: {what}");
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn all_planted_bugs_fit_the_code() {
        let bugs = list::read(&tools::root().join("xtask/planted")).unwrap();
        assert!(bugs.len() >= 160, "{} bugs", bugs.len());
        let changed = plant::plant(&tools::root(), &bugs).unwrap();
        let broken: String = changed.iter().filter_map(|(file, text)| no_rust(file, text)).collect();
        assert!(broken.is_empty(), "edits must replace whole expressions or statements:\n{broken}");
    }

    /// What the compiler's parser has against a text. Types are checked when bugs are tried out.
    fn no_rust(file: &str, text: &str) -> Option<String> {
        let mut rustfmt = tools::without_cargo(Command::new("rustfmt"));
        rustfmt.args(["--edition", "2024", "--emit", "stdout", "--quiet"]);
        rustfmt.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = rustfmt.spawn().expect("rustfmt, a component of the toolchain");
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let wrong = String::from_utf8_lossy(&output.stderr);
        (!output.status.success()).then(|| format!("{file}:\n{wrong}\n"))
    }
}
