//! Benchmarks of both.

/// Time the same work in Go and in Rust, and print both.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Prints the table.
pub fn run(_: &Args) -> anyhow::Result<()> {
    Ok(())
}
