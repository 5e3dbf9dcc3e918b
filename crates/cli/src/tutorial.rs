//! `carrick tutorial`: the way to where the first tutorial of the book ends, for the pages that go on from there.

use std::io::Write as _;
use std::process::ExitCode;

/// Made from docs/getting-started.md.
const SCRIPT: &str = include_str!("../../../docs/set-up.sh");

/// Print the commands of the first tutorial, for the shell.
///
/// They lead to where "Five minutes on your laptop" ends: a plane and an agent in the background of this shell, a provider with a kind, a
/// consumer with an order, and the functions kcp, provider, service and team, which are kubectl for each of them. The current folder is to
/// be an empty one; where you are there already, they do nothing. They need kubectl and api-syncagent.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

const EXAMPLES: &str = "\
Examples:
  eval \"$(carrick tutorial)\"
      in an empty folder; end what it has started with: kill $(jobs -p)";

/// Prints them.
pub fn run(Args {}: Args) -> ExitCode {
    // If the reader has closed the pipe, there is nobody to print for.
    let _ = std::io::stdout().write_all(SCRIPT.as_bytes());
    ExitCode::SUCCESS
}
