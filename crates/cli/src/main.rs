//! Carrick on the command line.
//!
//! ```text
//!  main ─┬─ bind    kube-bind: a demo of both ways to join clusters and kcp
//!        ├─ dashboard shows several agents on one page
//!        ├─ demo    runs a whole delivery, from order to clean-up, in this process
//!        ├─ dev     applies a provider's files, and applies them again at every change
//!        ├─ diff    judges what a changed CRD does to consumers; evolve: approve, rollback
//!        ├─ doctor  finds what keeps an agent from working, and prints the fix
//!        ├─ explain shows what the agent would do, and why
//!        ├─ import  hands objects that exist over to consumers, as orders
//!        ├─ init    writes files that offer a kind in kcp
//!        ├─ shell   completions and man pages
//!        ├─ mesh    everything that speaks of Platform Mesh, for init and provider
//!        ├─ plane   serves an embedded kcp and a service cluster until stopped
//!        ├─ provider sets up a provider in kcp: workspace, export, rights, the agent's login
//!        ├─ release lets go what is held under the name of an agent that is no more
//!        ├─ restore shows and frees what is held after a server was restored from a backup
//!        ├─ toolkit tries templates, CEL expressions and paths on data
//!        ├─ top     shows what an agent is doing
//!        ├─ tutorial prints the commands of the book's first tutorial
//!        ├─ withdraw takes a kind out of the export, on a date
//!        ├─ ui      step lines with their time, for a terminal or plain
//!        └─ embedded, workspaces, kubeconfig, logs    what demo, dev and plane need
//! ```

mod agent_flags;
mod bind;
#[cfg(test)]
mod commands_page;
mod dashboard;
mod demo;
mod dev;
mod diff;
mod doctor;
mod drift;
mod embedded;
mod evolve;
mod explain;
mod import;
mod init;
mod kinds;
mod kubeconfig;
mod logs;
mod mesh;
mod plane;
mod provider;
mod release;
mod restore;
mod shell;
mod signals;
mod toolkit;
mod top;
mod trace;
mod tutorial;
mod ui;
mod withdraw;
mod workspaces;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use console::style;

/// Carrick joins kcp, where consumers order services, to clusters that run them.
#[derive(Debug, Parser)]
#[command(name = "carrick", version = carrick_syncagent::VERSION, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Show what the servers and the agent log, on stderr.
    #[arg(short, long, global = true, help_heading = "Global options", display_order = 900)]
    verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  carrick demo                      one service, from order to clean-up
  carrick dev --crd buckets.yaml    your API, again at every change of the file
  carrick init --crd buckets.yaml   files that offer a kind in kcp
  carrick provider up --help        the same, created on both sides and checked
  carrick doctor                    what keeps the agent from working
  carrick explain                   what the agent does with each order, and why
  carrick diff old.yaml new.yaml    what a changed CRD does to those who use it

The agent itself is api-syncagent. carrick sets it up, looks after it, and
brings an embedded kcp and Kubernetes for laptops and tests.";

/// The commands by what people want to do.
const TASKS: [(&str, &[&str]); 5] = [
    ("See it, and develop an API", &["demo", "tutorial", "dev", "plane", "toolkit"]),
    (
        "Offer a kind, change it, take it back",
        &["init", "provider", "diff", "approve", "rollback", "import", "withdraw"],
    ),
    ("Look after an agent", &["doctor", "explain", "drift", "trace", "top", "dashboard", "restore", "release"]),
    ("Join clusters by kube-bind", &["bind"]),
    ("Your shell", &["completions", "man"]),
];

/// The command line, with its commands by task.
fn command() -> clap::Command {
    let command = Cli::command();
    let mut listed = String::new();
    for (task, names) in TASKS {
        // Writing to a String cannot fail.
        let _ = writeln!(listed, "{}:", style(task).underlined().bold());
        for name in names {
            let about = command.find_subcommand(name).and_then(|found| found.get_about().cloned()).unwrap_or_default();
            let _ = writeln!(listed, "  {} {about}", style(format!("{name:<11}")).bold());
        }
        listed.push('\n');
    }
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}Options:\n{{options}}{{after-help}}");
    command.help_template(template)
}

#[derive(Debug, Subcommand)]
enum Command {
    Approve(evolve::ApproveArgs),
    Bind(bind::Args),
    Completions(shell::CompletionsArgs),
    Dashboard(dashboard::Args),
    Demo(demo::Args),
    Dev(dev::Args),
    Diff(diff::Args),
    Doctor(doctor::Args),
    Drift(drift::Args),
    Explain(explain::Args),
    Import(import::Args),
    Init(init::Args),
    Man(shell::ManArgs),
    Plane(plane::Args),
    Provider(provider::Args),
    Release(release::Args),
    Restore(restore::Args),
    Rollback(evolve::RollbackArgs),
    Toolkit(toolkit::Args),
    Top(top::Args),
    Trace(trace::Args),
    Tutorial(tutorial::Args),
    Withdraw(withdraw::Args),
}

fn main() -> ExitCode {
    let cli = Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    let verbose = cli.verbose;
    match cli.command {
        Command::Demo(args) => wait(demo::run(args, verbose)),
        Command::Approve(args) => wait(evolve::approve(args, verbose)),
        Command::Bind(args) => wait(bind::run(args, verbose)),
        Command::Dashboard(args) => wait(dashboard::run(args, verbose)),
        Command::Dev(args) => wait(dev::run(args, verbose)),
        Command::Diff(args) => wait(diff::run(args, verbose)),
        Command::Doctor(args) => wait(doctor::run(args, verbose)),
        Command::Drift(args) => wait(drift::run(args, verbose)),
        Command::Explain(args) => wait(explain::run(args, verbose)),
        Command::Import(args) => wait(import::run(args, verbose)),
        Command::Init(args) => wait(init::run(args, verbose)),
        Command::Plane(args) => wait(plane::run(args, verbose)),
        Command::Provider(args) => wait(provider::run(args, verbose)),
        Command::Release(args) => wait(release::run(args, verbose)),
        Command::Restore(args) => wait(restore::run(args, verbose)),
        Command::Rollback(args) => wait(evolve::roll_back(args, verbose)),
        Command::Toolkit(args) => toolkit::run(args),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => wait(async move { shell::man(&args, Cli::command()) }),
        Command::Top(args) => wait(top::run(args, verbose)),
        Command::Trace(args) => wait(trace::run(args, verbose)),
        Command::Tutorial(args) => tutorial::run(args),
        Command::Withdraw(args) => wait(withdraw::run(args, verbose)),
    }
}

/// Runs an asynchronous command.
fn wait(command: impl Future<Output = anyhow::Result<ExitCode>>) -> ExitCode {
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(carrick_json::STACK).build() {
            Ok(runtime) => runtime,
            Err(error) => {
                eprintln!("error: cannot start: {error}");
                return ExitCode::FAILURE;
            }
        };
    match runtime.block_on(command) {
        Ok(code) => code,
        Err(error) => {
            ui::print_error(&format!("error: {error:#}\n"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands without a report: what they print is for people, is a document already, or is written into files.
    const WITHOUT_REPORT: [&str; 15] = [
        "bind demo",
        "completions",
        "dashboard",
        "demo",
        "dev",
        "init",
        "man",
        "provider up",
        "toolkit cel",
        "toolkit crd",
        "toolkit path delete",
        "toolkit path get",
        "toolkit path set",
        "toolkit template",
        "tutorial",
    ];

    /// All commands that do something, by their names.
    fn leaves(command: &clap::Command, name: &str, all: &mut Vec<(String, clap::Command)>) {
        let below: Vec<&clap::Command> =
            command.get_subcommands().filter(|command| command.get_name() != "help").collect();
        if below.is_empty() {
            all.push((name.to_owned(), command.clone()));
        }
        for command in below {
            leaves(command, format!("{name} {}", command.get_name()).trim(), all);
        }
    }

    fn all() -> Vec<(String, clap::Command)> {
        let mut root = Cli::command();
        root.build();
        let mut all = Vec::new();
        leaves(&root, "", &mut all);
        assert!(all.len() > 15, "{all:?}");
        all
    }

    #[test]
    fn every_command_has_its_task() {
        let mut listed: Vec<&str> = TASKS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        listed.sort_unstable();
        let root = Cli::command();
        let mut all: Vec<&str> = root.get_subcommands().map(clap::Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(listed, all);
        let help = command().render_help().to_string();
        assert!(help.contains("Look after an agent") && help.contains("  doctor      Find what"), "{help}");
        let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }

    /// Every command line that --help can follow: the root, groups such as `provider`, and those that do something.
    fn helped(command: &clap::Command, name: &str, all: &mut Vec<(String, clap::Command)>) {
        all.push((name.to_owned(), command.clone()));
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            helped(below, &format!("{name} {}", below.get_name()), all);
        }
    }

    #[test]
    fn help_fits_a_terminal_so_that_no_command_is_broken_in_two() {
        let mut root = command();
        root.build();
        let mut every = Vec::new();
        helped(&root, "carrick", &mut every);
        assert!(every.iter().any(|(name, _)| name == "carrick toolkit path") && every.len() > all().len(), "{every:?}");
        let mut wrong = Vec::new();
        for (name, command) in every {
            let mut narrow = command.clone().term_width(80);
            for help in [narrow.render_help().to_string(), narrow.render_long_help().to_string()] {
                let wide = help.lines().filter(|line| line.chars().count() > 80);
                wrong.extend(wide.map(|line| format!("{name} is wider than 80 columns: {line}")));
                let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                let broken = examples.lines().filter(|line| !help.lines().any(|shown| shown == *line));
                wrong.extend(broken.map(|line| format!("{name} breaks an example: {line}")));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn whatever_reports_something_does_so_for_programs_too() {
        for (name, command) in all() {
            let json = command.get_arguments().any(|argument| {
                let values = argument.get_possible_values();
                argument.get_short() == Some('o') && values.iter().any(|value| value.get_name() == "json")
            });
            assert_ne!(json, WITHOUT_REPORT.contains(&name.as_str()), "carrick {name}");
        }
    }

    #[test]
    fn help_lists_global_flags_once_and_last() {
        for (name, mut command) in all() {
            for help in [command.render_help().to_string(), command.render_long_help().to_string()] {
                let flags = help.lines().filter(|line| line.trim_start().starts_with("-v, --verbose"));
                assert_eq!(flags.count(), 1, "carrick {name}: {help}");
                assert_eq!(help.matches("Global options:").count(), 1, "carrick {name}: {help}");
                let listed = |text: &str| help.find(text).unwrap_or(0);
                assert!(listed("Global options:") > listed("Options:"), "carrick {name}: {help}");
            }
        }
    }
}
