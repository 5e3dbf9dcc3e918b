//! `carrick-bench`: what agents and servers cost. Run it with `cargo xtask bench`, `cargo xtask bench-servers` and
//! `cargo xtask bench-exports`.

use carrick_e2e::bench::{self, servers};
use clap::Parser;

/// Measure.
#[derive(Debug, Parser)]
enum Cli {
    Agents(bench::Args),
    Servers(servers::Args),
    Exports(servers::exports::Args),
    #[command(hide = true)]
    Serve(servers::Serve),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse() {
        Cli::Agents(args) => bench::run(args).await,
        Cli::Servers(args) => servers::run(args).await,
        Cli::Exports(args) => servers::exports::run(args).await,
        Cli::Serve(args) => servers::serve(args).await,
    }
}
