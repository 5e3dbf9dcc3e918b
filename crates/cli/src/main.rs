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
//!        ├─ init    writes files that offer a kind in kcp
//!        ├─ shell   completions and man pages
//!        ├─ plane   serves an embedded kcp and a service cluster until stopped
//!        ├─ provider sets up a provider in kcp: workspace, export, rights, the agent's login
//!        ├─ toolkit tries templates, CEL expressions and paths on data
//!        ├─ top     shows what an agent is doing
//!        ├─ withdraw takes a kind out of the export, on a date
//!        ├─ ui      step lines with their time, for a terminal or plain
//!        └─ embedded, workspaces, kubeconfig, logs    what demo, dev and plane need
//! ```

mod agent_flags;
mod bind;
mod dashboard;
mod demo;
mod dev;
mod diff;
mod doctor;
mod embedded;
mod evolve;
mod explain;
mod init;
mod kubeconfig;
mod logs;
mod plane;
mod provider;
mod shell;
mod signals;
mod toolkit;
mod top;
mod ui;
mod withdraw;
mod workspaces;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Carrick joins a kcp control plane, where consumers order services, to the clusters where providers run them.
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
  carrick demo                          see one service delivered, from order to clean-up
  carrick demo --keep                   the same, and leave it running to look at with kubectl
  carrick bind demo                     how kube-bind joins clusters and kcp
  carrick plane --data-dir ./plane      a kcp and a Kubernetes API server to play with
  carrick dev --crd buckets.yaml        your API, published and ordered, again at every change of the file
  carrick init --crd buckets.yaml       files that offer a kind in kcp, ready to apply
  carrick provider up --help            all of it created in kcp and on your cluster, and checked
  carrick doctor --help                 what keeps the agent from working, and how to put it right
  carrick diff old.yaml new.yaml        what a changed CRD does to those who use it
  carrick explain --help                what would the agent do with an object, and why
  carrick toolkit template --data obj.yaml '{{ .Object.metadata.name | sha3short }}'
                                        try a rule before publishing it

carrick is for development and tests; production runs on real kcp and Kubernetes with api-syncagent.";

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
    Explain(explain::Args),
    Init(init::Args),
    Man(shell::ManArgs),
    Plane(plane::Args),
    Provider(provider::Args),
    Rollback(evolve::RollbackArgs),
    Toolkit(toolkit::Args),
    Top(top::Args),
    Withdraw(withdraw::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let verbose = cli.verbose;
    match cli.command {
        Command::Demo(args) => wait(demo::run(args, verbose)),
        Command::Approve(args) => wait(evolve::approve(args, verbose)),
        Command::Bind(args) => wait(bind::run(args, verbose)),
        Command::Dashboard(args) => wait(dashboard::run(args, verbose)),
        Command::Dev(args) => wait(dev::run(args, verbose)),
        Command::Diff(args) => wait(diff::run(args, verbose)),
        Command::Doctor(args) => wait(doctor::run(args, verbose)),
        Command::Explain(args) => wait(explain::run(args, verbose)),
        Command::Init(args) => wait(init::run(args, verbose)),
        Command::Plane(args) => wait(plane::run(args, verbose)),
        Command::Provider(args) => wait(provider::run(args, verbose)),
        Command::Rollback(args) => wait(evolve::roll_back(args, verbose)),
        Command::Toolkit(args) => toolkit::run(args),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => wait(async move { shell::man(&args, Cli::command()) }),
        Command::Top(args) => wait(top::run(args, verbose)),
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
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands without a report: what they print is for people, is a document already, or is written into files.
    const WITHOUT_REPORT: [&str; 14] = [
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
