//! Work on this repository: `cargo xtask --help`.
//!
//! ```text
//!  main ─┬─ reference   writes docs/reference from the tables of the crates
//!        ├─ book        builds the documentation with mdBook
//!        ├─ compare     asks Go and Carrick the same random questions
//!        ├─ bench       measures what agents and servers cost
//!        ├─ record      draws what the demo shows in a terminal
//!        ├─ planted     plants bugs in the agent's core and sees that tests catch them
//!        ├─ release     builds and checks what is shipped
//!        ├─ strangers   builds published crates as others do
//!        ├─ languages   times the same work in Go and in Rust
//!        └─ tools       where things are, how the two programs are built
//! ```

mod bench;
mod book;
mod compare;
mod languages;
mod planted;
mod record;
mod reference;
mod release;
mod strangers;
mod tools;

use clap::{Parser, Subcommand};

/// Work on this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the reference pages in docs/reference from the tables that implement the languages.
    Reference,
    /// Build the documentation as a book, with mdBook.
    Book,
    Compare(compare::Args),
    Bench(bench::Args),
    BenchKonnectors(bench::Konnectors),
    BenchBackends(bench::Backends),
    BenchCorpus(bench::Corpus),
    BenchImports(bench::Imports),
    BenchFigures(bench::Figures),
    BenchServers(bench::Servers),
    BenchExports(bench::Exports),
    BenchLanguages(languages::Args),
    Planted(planted::Args),
    /// Run the demo in a terminal and draw what it shows, as docs/demo.svg.
    Record,
    Release(release::Args),
    ReleaseCheck(release::Check),
    Strangers(strangers::Args),
    ReleaseCharts(release::chart::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Record => record::run(),
        Command::Reference => reference::write(),
        Command::Book => book::build(),
        Command::Compare(args) => compare::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::BenchKonnectors(args) => bench::konnectors(&args),
        Command::BenchBackends(args) => bench::backends(&args),
        Command::BenchCorpus(args) => bench::corpus(&args),
        Command::BenchImports(args) => bench::imports(&args),
        Command::BenchFigures(args) => bench::figures(&args),
        Command::BenchServers(args) => bench::servers(&args),
        Command::BenchExports(args) => bench::exports(&args),
        Command::BenchLanguages(args) => languages::run(&args),
        Command::Planted(args) => planted::run(&args),
        Command::Release(args) => release::build(&args),
        Command::ReleaseCheck(args) => release::check(&args),
        Command::Strangers(args) => strangers::run(&args),
        Command::ReleaseCharts(args) => release::chart::package(&args),
    }
}
