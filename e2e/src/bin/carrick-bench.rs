//! `carrick-bench`: what agents cost. Run it with `cargo xtask bench`.

use carrick_e2e::bench;
use clap::Parser;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    bench::run(bench::Args::parse()).await
}
