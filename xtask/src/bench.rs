//! Measures agents: builds what is needed and runs the benchmark of `e2e/bench`.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::ensure;

use crate::tools;

/// Run agents one after the other over the same work and print what they cost; `-- --help` tells more.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Arguments of the benchmark; without `--agent`, ours is built and measured.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// The benchmark itself, as cargo builds it.
const BENCH: [&str; 4] = ["--profile", "dist", "--bin", "carrick-bench"];

/// What is run for the figures in docs/benchmarks.md.
const FIGURES: [&[&str]; 3] = [
    &["--world", "real", "--objects", "400", "--workspaces", "40"],
    &["--world", "embedded", "--objects", "1000", "--workspaces", "100", "--rate", "10"],
    &[
        "--world",
        "embedded",
        "--scale",
        "1000x100,3000x300,10000x1000,30000x1000,100000x1000",
        "--svg",
        "docs/scale.svg",
    ],
];

/// Measure everything again and write docs/benchmarks.md and its plot.
#[derive(Debug, clap::Args)]
pub struct Figures {
    /// An agent to compare ours with. May be repeated.
    #[arg(long, value_name = "NAME=PROGRAM")]
    agent: Vec<OsString>,
}

/// Runs the benchmark.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let named = |argument: &OsString| argument.to_string_lossy().starts_with("--agent");
    let help = |argument: &OsString| argument == "--help" || argument == "-h";
    let mut arguments = args.arguments.clone();
    if arguments.iter().any(|argument| named(argument) || help(argument)) {
        build()?;
    } else {
        arguments.extend(ours()?);
    }
    measure("agents", &arguments)
}

/// Run konnectors one after the other over the same work and print what they cost; `-- --help` tells more.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Konnectors {
    /// Arguments of the benchmark; without `--konnector`, ours is built and measured.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Measures konnectors instead of agents.
pub fn konnectors(args: &Konnectors) -> anyhow::Result<()> {
    tools::run(tools::cargo().args(["build", "--quiet", "--profile", "dist", "--bin", "konnector"]))?;
    tools::run(tools::cargo().args(["build", "--quiet"]).args(BENCH))?;
    let mut arguments = args.arguments.clone();
    let named = |argument: &OsString| argument.to_string_lossy().starts_with("--konnector");
    let help = |argument: &OsString| argument == "--help" || argument == "-h";
    if !arguments.iter().any(|argument| named(argument) || help(argument)) {
        let mut ours = OsString::from("ours=");
        ours.push(tools::target().join("dist/konnector"));
        arguments.extend(["--konnector".into(), ours]);
    }
    measure("konnectors", &arguments)
}

/// Run backends of kube-bind over the same work and print what they cost; `-- --help` tells more.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Backends {
    /// Arguments of the benchmark; without `--backend`, ours is built and measured.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Measures backends instead of agents.
pub fn backends(args: &Backends) -> anyhow::Result<()> {
    tools::run(tools::cargo().args(["build", "--quiet", "--profile", "dist", "--bin", "kube-bind-backend"]))?;
    tools::run(tools::cargo().args(["build", "--quiet"]).args(BENCH))?;
    let mut arguments = args.arguments.clone();
    let named = |argument: &OsString| argument.to_string_lossy().starts_with("--backend");
    let help = |argument: &OsString| argument == "--help" || argument == "-h";
    if !arguments.iter().any(|argument| named(argument) || help(argument)) {
        let mut ours = OsString::from("ours=");
        ours.push(tools::target().join("dist/kube-bind-backend"));
        arguments.extend(["--backend".into(), ours]);
    }
    measure("backends", &arguments)
}

/// Measure planes, and with `--real` kube-apiserver and kcp beside them; `--help` tells more.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Servers {
    /// Arguments of the benchmark.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Measures servers instead of agents.
pub fn servers(args: &Servers) -> anyhow::Result<()> {
    tools::run(tools::cargo().args(["build", "--quiet"]).args(BENCH))?;
    measure("servers", &args.arguments)
}

/// Measure what large exports cost a plane that plays kcp; `--help` tells more.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Exports {
    /// Arguments of the benchmark.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Measures exports instead of agents.
pub fn exports(args: &Exports) -> anyhow::Result<()> {
    tools::run(tools::cargo().args(["build", "--quiet"]).args(BENCH))?;
    measure("exports", &args.arguments)
}

/// Measure what the CRDs of public operators cost; `--help` tells more.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Corpus {
    /// Arguments of the benchmark.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Measures lives of kinds instead of agents.
pub fn corpus(args: &Corpus) -> anyhow::Result<()> {
    let folder = public_crds()?;
    tools::run(tools::cargo().args(["build", "--quiet"]).args(BENCH))?;
    tools::run(benchmark("corpus", &args.arguments).env("CARRICK_CORPUS", folder))
}

/// The folder with CRDs of public operators, which are fetched if they are not here.
fn public_crds() -> anyhow::Result<OsString> {
    let fetched = Command::new(tools::root().join("e2e/corpus/fetch")).stderr(Stdio::inherit()).output()?;
    ensure!(fetched.status.success(), "the CRDs of public operators cannot be fetched; they come from the Go proxy");
    Ok(String::from_utf8(fetched.stdout)?.trim().into())
}

/// Measure what import and drift cost; `--help` tells more.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Imports {
    /// Arguments of the benchmark; without `--agent`, ours is built and measured.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Measures imports instead of the ordinary work of agents.
pub fn imports(args: &Imports) -> anyhow::Result<()> {
    let folder = public_crds()?;
    build()?;
    let mut arguments = args.arguments.clone();
    if !arguments.iter().any(|argument| argument.to_string_lossy().starts_with("--agent")) {
        arguments.extend(["--agent".into(), tools::target().join("dist/api-syncagent").into()]);
    }
    tools::run(benchmark("imports", &arguments).env("CARRICK_CORPUS", folder))
}

/// Takes all figures of the documentation anew.
pub fn figures(args: &Figures) -> anyhow::Result<()> {
    let mut agents = ours()?.to_vec();
    for agent in &args.agent {
        agents.extend(["--agent".into(), agent.clone()]);
    }
    for work in FIGURES {
        let mut arguments: Vec<OsString> = work.iter().map(OsString::from).collect();
        // Only our own growth is of interest: others take hours.
        let known = if work.contains(&"--scale") { &agents[..2] } else { &agents };
        arguments.extend_from_slice(known);
        arguments.extend(["--page".into(), "docs/benchmarks.md".into()]);
        measure("agents", &arguments)?;
    }
    measure("servers", &["--real", "--page", "docs/benchmarks.md"].map(OsString::from))
}

/// Builds our agent and the benchmark; the arguments that name our agent.
fn ours() -> anyhow::Result<[OsString; 2]> {
    build()?;
    let mut agent = OsString::from("ours=");
    agent.push(tools::target().join("dist/api-syncagent"));
    Ok(["--agent".into(), agent])
}

/// The agent as it is shipped, and the benchmark.
fn build() -> anyhow::Result<()> {
    let agent = ["--profile", "dist", "--bin", "api-syncagent"];
    tools::run(tools::cargo().args(["build", "--quiet"]).args(agent))?;
    tools::run(tools::cargo().args(["build", "--quiet"]).args(BENCH))
}

fn measure(what: &str, arguments: &[OsString]) -> anyhow::Result<()> {
    tools::run(&mut benchmark(what, arguments))
}

fn benchmark(what: &str, arguments: &[OsString]) -> Command {
    let mut command = Command::new(tools::target().join("dist/carrick-bench"));
    command.current_dir(tools::root()).arg(what).args(arguments);
    command
}
