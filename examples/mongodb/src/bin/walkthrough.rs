//! The whole story by one command: on two embedded planes, or on servers of yours.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use example_mongodb::walkthrough::{Servers, play};
use kube::config::Kubeconfig;

/// Two consumers order a database each, change one, and delete both; every step waits until it is seen on both sides.
#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  cargo run -p example-mongodb --bin walkthrough                  on embedded planes, nothing else needed
  cargo run -p example-mongodb --bin walkthrough -- --kcp-kubeconfig admin.kubeconfig --target-kubeconfig service.kubeconfig
")]
struct Args {
    /// Kubeconfig of an administrator of kcp's workspace root. Workspaces root:mongodb, root:consumer-a and root:consumer-b are made there.
    #[arg(long, requires = "target_kubeconfig")]
    kcp_kubeconfig: Option<PathBuf>,
    /// Kubeconfig of the service cluster.
    #[arg(long, requires = "kcp_kubeconfig")]
    target_kubeconfig: Option<PathBuf>,
    /// Show what the operator logs.
    #[arg(short, long)]
    verbose: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    if args.verbose {
        tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    }
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> anyhow::Result<()> {
    let read = |path: PathBuf| Kubeconfig::read_from(&path).with_context(|| format!("cannot read {}", path.display()));
    let servers = match (args.kcp_kubeconfig, args.target_kubeconfig) {
        (Some(kcp), Some(target)) => Servers::given(read(kcp)?, read(target)?).await?,
        _ => Servers::embedded().await?,
    };
    play(&servers).await
}
