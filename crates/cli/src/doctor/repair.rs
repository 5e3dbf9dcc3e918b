//! `--fix`: shows commands, and runs them after a yes.

use std::io::{BufRead, IsTerminal, Write};
use std::process::Command;

use super::report::Report;
use crate::ui::print_error;

/// What becomes of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Run,
    Leave,
    /// Nobody can be asked.
    Unasked,
}

/// Shows the commands of each finding that may be run, and runs them after a yes; returns whether any was run.
pub fn offer(report: &Report, yes: bool) -> anyhow::Result<bool> {
    let repairs: Vec<(&str, &[String])> = report.repairs().collect();
    if repairs.is_empty() {
        eprintln!(
            "Nothing here can be fixed by commands that only add something; the commands above are for you to decide about."
        );
        return Ok(false);
    }
    let mut any = false;
    for (text, commands) in repairs {
        print_error(&format!("\n{text}\n"));
        for line in commands {
            print_error(&format!("  {line}\n"));
        }
        match ask(yes)? {
            Answer::Run => any |= run(&script(commands))?,
            Answer::Leave => {}
            Answer::Unasked => eprintln!("Not run: nobody can be asked here. Run them with --yes."),
        }
    }
    Ok(any)
}

fn ask(yes: bool) -> anyhow::Result<Answer> {
    if yes {
        return Ok(Answer::Run);
    }
    if !std::io::stdin().is_terminal() {
        return Ok(Answer::Unasked);
    }
    eprint!("Run this? [y/N] ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(if is_yes(&line) { Answer::Run } else { Answer::Leave })
}

fn is_yes(line: &str) -> bool {
    ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
}

/// The commands as a script that stops at the first failure.
fn script(commands: &[String]) -> String {
    format!("set -eu\n{}\n", commands.join("\n"))
}

/// Runs a script; returns whether it has succeeded.
fn run(script: &str) -> anyhow::Result<bool> {
    let status = Command::new("sh").arg("-c").arg(script).status()?;
    if !status.success() {
        eprintln!("It failed; see above.");
    }
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::super::checks::Finding;
    use super::*;

    #[test]
    fn nothing_but_a_yes_is_a_yes() {
        assert!(is_yes("y\n") && is_yes("YES\n"));
        assert!(!is_yes("\n") && !is_yes("no\n") && !is_yes("yesterday\n"));
    }

    #[test]
    fn a_script_stops_at_the_first_failure_and_says_so() {
        let file = std::env::temp_dir().join(format!("carrick-{}", uuid::Uuid::new_v4().simple()));
        let touch = format!("touch {}", file.display());
        let report = |commands: &[&str]| {
            let found = commands.iter().fold(Finding::red("a"), |found, line| found.fix(*line)).runs();
            Report::of([("check", vec![found])])
        };
        assert!(!offer(&report(&["false", &touch]), true).unwrap() && !file.exists());
        assert!(offer(&report(&[&touch]), true).unwrap() && file.exists());
        std::fs::remove_file(&file).unwrap();
        assert!(
            !offer(&Report::of([("check", vec![Finding::red("b").fix(&*touch)])]), true).unwrap() && !file.exists()
        );
    }
}
