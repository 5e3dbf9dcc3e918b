//! `carrick-bench`: what agents and servers cost. Run it with `cargo xtask bench`, `bench-konnectors`, `bench-backends`, `bench-corpus`, `bench-servers` and `bench-exports`.

use carrick_e2e::bench::{self, backends, corpus, konnectors, servers};
use clap::Parser;

/// Measure.
#[derive(Debug, Parser)]
enum Cli {
    Agents(bench::Args),
    Konnectors(konnectors::Args),
    Backends(backends::Args),
    Corpus(corpus::Args),
    Servers(servers::Args),
    Exports(servers::exports::Args),
    #[command(hide = true)]
    Serve(servers::Serve),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse() {
        Cli::Agents(args) => bench::run(args).await,
        Cli::Konnectors(args) => konnectors::run(args).await,
        Cli::Backends(args) => backends::run(args).await,
        Cli::Corpus(args) => corpus::run(args).await,
        Cli::Servers(args) => servers::run(args).await,
        Cli::Exports(args) => servers::exports::run(args).await,
        Cli::Serve(args) => servers::serve(args).await,
    }
}
