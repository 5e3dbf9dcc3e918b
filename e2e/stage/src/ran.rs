//! What was played on which versions of real servers, and how it went.
//!
//! `e2e/real --record` keeps it in `e2e/servers/ran.json`, and `cargo xtask reference` makes docs/reference/supported.md of that: no page names
//! a version that nobody has tried.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use libtest_mimic::{Completion, Failed};
use serde::{Deserialize, Serialize};

/// The file that keeps it; `e2e/real --record` sets it.
const FILE: &str = "CARRICK_RAN";

/// Whether each trial that has begun has passed. One process plays one run.
static OUTCOMES: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());

/// What the servers say about themselves at `/version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// That of Kubernetes in kcp, and kcp's own behind it.
    pub kcp: String,
    /// That of the service cluster.
    pub kubernetes: String,
    /// That of the etcd behind the service cluster.
    pub etcd: String,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The servers.
    #[serde(flatten)]
    pub versions: Versions,
    /// Scenarios of the agents.
    pub scenarios: Count,
    /// Everything else: comparisons of the plane with the servers, and clients written in Go.
    pub comparisons: Count,
}

/// How trials of one kind have ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    /// How many did what they should.
    pub passed: usize,
    /// Those that did not.
    pub failed: Vec<String>,
    /// How many were not played.
    pub left_out: usize,
}

impl Count {
    fn add(&mut self, name: &str, passed: Option<bool>) {
        match passed {
            Some(true) => self.passed += 1,
            Some(false) => self.failed.push(name.to_owned()),
            None => self.left_out += 1,
        }
    }
}

/// Runs a trial and notes how it has ended.
pub fn noted(name: &str, run: impl FnOnce() -> Result<Completion, Failed>) -> Result<Completion, Failed> {
    // It has failed until it returns: it may panic.
    note(name, Some(false));
    let result = run();
    match &result {
        Ok(Completion::Completed) => note(name, Some(true)),
        Ok(Completion::Ignored { .. }) => note(name, None),
        Err(_) => {}
    }
    result
}

fn note(name: &str, passed: Option<bool>) {
    let mut outcomes = OUTCOMES.lock().unwrap_or_else(PoisonError::into_inner);
    match passed {
        Some(passed) => outcomes.insert(name.to_owned(), passed),
        None => outcomes.remove(name),
    };
}

/// The file to write to, if this run is to be recorded.
pub fn file() -> Option<PathBuf> {
    std::env::var_os(FILE).map(PathBuf::from)
}

/// Puts this run into a file, in the place of an earlier one on the same versions. `all` has the name of every trial there is, played or not, and
/// whether it is a scenario.
pub fn record(file: &Path, versions: &Versions, all: &[(String, bool)]) -> anyhow::Result<()> {
    let run = count(versions, all);
    let path = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "[]".to_owned(),
        Err(error) => return Err(error).context(format!("cannot read {path}")),
    };
    let runs = serde_json::from_str(&text).with_context(|| format!("{path} is not a list of runs; delete it"))?;
    let mut text = serde_json::to_string_pretty(&with(runs, run))?;
    text.push('\n');
    std::fs::write(file, text).with_context(|| format!("cannot write {path}"))
}

/// How each of all trials went.
pub fn count(versions: &Versions, all: &[(String, bool)]) -> Run {
    let outcomes = OUTCOMES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut run = Run { versions: versions.clone(), scenarios: Count::default(), comparisons: Count::default() };
    for (name, is_scenario) in all {
        let kind = if *is_scenario { &mut run.scenarios } else { &mut run.comparisons };
        kind.add(name, outcomes.get(name).copied());
    }
    run
}

/// The newest versions come first.
pub fn with(mut runs: Vec<Run>, run: Run) -> Vec<Run> {
    runs.retain(|other| other.versions != run.versions);
    runs.push(run);
    runs.sort_by_key(|run| Reverse((numbers(&run.versions.kcp), numbers(&run.versions.kubernetes))));
    runs
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}
