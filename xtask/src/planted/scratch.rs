//! The copy of the workspace, and the test programs built from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::attempt::Program;
use super::list::Bug;
use crate::tools;

/// Where the copy is and where it is built.
pub struct Scratch {
    root: PathBuf,
    target: PathBuf,
}

impl Scratch {
    /// Below the folder where cargo builds.
    pub fn new(target: Option<PathBuf>) -> Self {
        let folder = tools::target().join("planted");
        Self { root: folder.join("workspace"), target: target.unwrap_or_else(|| folder.join("target")) }
    }

    /// The root of the copy.
    pub fn root(&self) -> PathBuf {
        self.root.clone()
    }

    /// Where is noted what earlier runs found out.
    pub fn memory(&self) -> PathBuf {
        self.root.with_file_name("memory.json")
    }

    /// Copies what belongs to the repository, with other content for some files. What did not change stays as it is, so that little is
    /// built anew.
    pub fn copy(&self, changed: &BTreeMap<String, String>) -> anyhow::Result<()> {
        let output = Command::new("git")
            .current_dir(tools::root())
            .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
            .output()
            .context("cannot start git")?;
        ensure!(output.status.success(), "git ended with {}", output.status);
        let names = String::from_utf8(output.stdout)?;
        for name in names.split('\0').filter(|name| !name.is_empty()) {
            let from = tools::root().join(name);
            // A file that is deleted and not committed yet is none.
            if from.is_file() && !changed.contains_key(name) {
                let to = self.write(name, &fs::read(&from)?)?;
                fs::set_permissions(&to, fs::metadata(&from)?.permissions())?;
            }
        }
        for (name, text) in changed {
            self.write(name, text.as_bytes())?;
        }
        Ok(())
    }

    fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.root.join(name);
        if fs::read(&path).ok().as_deref() != Some(content) {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(path)
    }

    /// Sees whether the edited code compiles.
    pub fn check(&self, bugs: &[Bug]) -> anyhow::Result<()> {
        let mut command = self.cargo("check");
        output(command.arg("--lib"), bugs).map(drop)
    }

    fn cargo(&self, verb: &str) -> Command {
        let mut command = tools::cargo();
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target).arg(verb);
        // The command line along with them, so that dependencies have the features they have everywhere else.
        command.args([
            "-p",
            "carrick-sync",
            "-p",
            "carrick-syncagent",
            "-p",
            "carrick-e2e-scenarios",
            "-p",
            "carrick-e2e-promises",
            "-p",
            "carrick",
        ]);
        command.args(["--message-format", "json-render-diagnostics"]);
        command
    }

    /// Builds all test programs that are needed.
    pub fn build(&self, bugs: &[Bug], scenarios: bool, promises: bool) -> anyhow::Result<Vec<Program>> {
        let mut command = self.cargo("test");
        command.args(["--no-run", "--lib"]);
        if scenarios {
            command.args(["--test", "embedded", "--bin", "api-syncagent"]);
        }
        if promises {
            command.args(["--test", "promises"]);
        }
        let told = output(&mut command, bugs)?;
        let mut programs = Vec::new();
        for line in told.lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            let (Some(path), Some(name)) = (message["executable"].as_str(), message["target"]["name"].as_str()) else {
                continue;
            };
            if message["profile"]["test"] != true {
                continue;
            }
            let is_suite = ["embedded", "promises"].contains(&name);
            let folder = match name {
                "embedded" => Some("e2e/scenarios"),
                "promises" => Some("e2e/promises"),
                "carrick_sync" => Some("crates/sync"),
                "carrick_syncagent" => Some("crates/syncagent"),
                _ => None,
            };
            if let Some(folder) = folder {
                let mut program = Program {
                    name: name.to_owned(),
                    path: path.into(),
                    folder: self.root.join(folder),
                    target: self.target.clone(),
                    is_suite,
                    tests: Vec::new(),
                };
                program.list()?;
                programs.push(program);
            }
        }
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        ensure!(programs.iter().any(|program| !program.is_suite), "there are no unit tests");
        Ok(programs)
    }
}

/// Runs cargo and returns what it prints. If the edited code does not compile, the error names the bugs.
fn output(command: &mut Command, bugs: &[Bug]) -> anyhow::Result<String> {
    let output = command.output().context("cannot start cargo")?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut errors =
        told.split("\n\n").filter(|part| part.trim_start().starts_with("error")).collect::<Vec<_>>().join("\n\n");
    for (number, bug) in bugs.iter().enumerate() {
        errors = errors.replace(&format!("planted::on({number})"), &format!("planted::on(\"{}\")", bug.name));
    }
    bail!("the edited code does not compile:\n{errors}")
}
