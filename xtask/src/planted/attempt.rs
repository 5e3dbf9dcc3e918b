//! Running test programs with a bug switched on.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

/// How often is looked whether a program has ended.
const GLANCE: Duration = Duration::from_millis(50);
/// How many tests of a suite run at once: they mostly wait.
const TOGETHER: &str = "4";

/// A test program.
#[derive(Debug, Clone)]
pub struct Program {
    /// Name of the test target.
    pub name: String,
    /// The program.
    pub path: PathBuf,
    /// The folder of its package, where tests expect to be run.
    pub folder: PathBuf,
    /// Where cargo built it.
    pub target: PathBuf,
    /// Whether each of its tests takes seconds.
    pub is_suite: bool,
    /// Names of its tests.
    pub tests: Vec<String>,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    /// All tests passed.
    Passed,
    /// These failed.
    Failed(Vec<String>),
    /// The program ended otherwise.
    Crashed(String),
    /// It had to be ended.
    Endless(Duration),
}

impl Ending {
    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::Passed => "passed".to_owned(),
            Self::Failed(tests) if tests.len() == 1 => format!("{} failed", tests[0]),
            Self::Failed(tests) => format!("{} and {} more failed", tests[0], tests.len() - 1),
            Self::Crashed(how) => format!("ended with {how}"),
            Self::Endless(limit) => format!("did not end within {} s", limit.as_secs()),
        }
    }
}

impl Program {
    /// Finds out which tests it has.
    pub fn list(&mut self) -> anyhow::Result<()> {
        let output = self.command().args(["--list"]).output()?;
        ensure!(output.status.success(), "{} --list ended with {}", self.name, output.status);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        self.tests = text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect();
        Ok(())
    }

    /// Runs the tests that are named; tells how it ended, how long it took and which bugs were reached.
    pub fn run(
        &self,
        tests: &[&str],
        bug: Option<usize>,
        limit: Duration,
    ) -> anyhow::Result<(Ending, Duration, BTreeSet<usize>)> {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let notes = std::env::temp_dir().join(format!("carrick-planted-{}-{run}", std::process::id()));
        let (seen, told) = (notes.with_extension("seen"), notes.with_extension("log"));
        let mut command = self.command();
        command.env("CARRICK_PLANTED_SEEN", &seen).stdin(Stdio::null());
        command.stdout(File::create(&told)?).stderr(Stdio::null());
        if let Some(bug) = bug {
            command.env("CARRICK_PLANTED", bug.to_string());
        }
        command.args(["--exact", "--test-threads", TOGETHER]);
        match tests {
            [test] => drop(command.arg(test)),
            tests if !self.is_suite => drop(command.args(tests)),
            // A suite takes but one filter: all others are left out.
            tests => {
                for other in self.tests.iter().filter(|test| !tests.contains(&test.as_str())) {
                    command.args(["--skip", other]);
                }
            }
        }
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {}", self.path.display()))?;
        let ended = wait(child, limit)?;
        let took = started.elapsed();
        let text = fs::read_to_string(&told).unwrap_or_default();
        let reached =
            fs::read_to_string(&seen).unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect();
        for file in [&seen, &told] {
            // Whatever is left in the folder for temporary files harms nobody.
            let _ = fs::remove_file(file);
        }
        Ok((ending(ended, &text, limit), took, reached))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        // A group of its own, so that agents which a test has started end with it.
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target)
            .env_remove("CARRICK_PLANTED")
            .process_group(0);
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Waits for the end of a program, and brings it about when the time is over.
fn wait(mut child: Child, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-KILL", "--", &group]).status().context("cannot start kill")?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(GLANCE);
    }
}

fn ending(ended: Option<ExitStatus>, told: &str, limit: Duration) -> Ending {
    let Some(status) = ended else { return Ending::Endless(limit) };
    if status.success() {
        return Ending::Passed;
    }
    let failed = told.lines().filter_map(|line| {
        line.strip_prefix("test ")?.split_once(" ...").filter(|(_, verdict)| verdict.contains("FAILED"))
    });
    let failed: Vec<String> = failed.map(|(name, _)| name.trim().to_owned()).collect();
    if failed.is_empty() { Ending::Crashed(status.to_string()) } else { Ending::Failed(failed) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn what_test_programs_print_is_understood() {
        let failed = ExitStatus::from_raw(101 << 8);
        let told = "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest a::d   ... FAILED\n\nfailures:\n";
        let limit = Duration::from_secs(1);
        assert_eq!(ending(Some(failed), told, limit), Ending::Failed(vec!["a::c".to_owned(), "a::d".to_owned()]));
        assert_eq!(ending(Some(ExitStatus::from_raw(0)), told, limit), Ending::Passed);
        assert!(matches!(ending(Some(ExitStatus::from_raw(6)), "", limit), Ending::Crashed(_)));
        assert_eq!(ending(None, told, limit), Ending::Endless(limit));
    }
}
