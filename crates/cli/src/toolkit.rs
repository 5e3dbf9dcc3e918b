//! `carrick toolkit`: try the small languages of rules on data before publishing them.
//!
//! ```text
//!  template, cel, path ─┬─ source      where expressions and data come from: arguments, files, standard input
//!                       ├─ complaint   errors with the faulty line and carets below
//!                       └─ batch       one JSON question per line, one JSON answer per line
//! ```
//!
//! `convert` tries the rules between versions of a whole PublishedResource. Only `crd` talks to a network, and has a small asynchronous runtime of its own for it.

mod batch;
mod cel;
mod complaint;
mod convert;
mod crd;
mod path;
mod source;
mod template;
mod text;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Subcommand;

use complaint::Complaint;

/// Try templates, CEL expressions and paths before publishing them.
///
/// They answer exactly as the agent does, on data from a YAML or JSON file or from standard input.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    language: Language,
}

const EXAMPLES: &str = "\
Examples:
  carrick toolkit template --data obj.yaml '{{ .Object.metadata.name }}'
  carrick toolkit cel --self obj.yaml 'self.spec.replicas + 1'
  carrick toolkit path get --data obj.yaml spec.image
  carrick toolkit convert --crd crd.yaml published-resource.yaml

Each has more in its own --help. Exit codes: 0 an answer, 1 an error in the
expression or the data, 2 wrong usage.";

#[derive(Debug, Subcommand)]
enum Language {
    Template(template::Args),
    Cel(cel::Args),
    Convert(convert::Args),
    Crd(crd::Args),
    Path(path::Args),
}

/// Prints the answer, or what is wrong.
pub fn run(args: Args) -> ExitCode {
    let answered = match args.language {
        Language::Template(args) => template::run(args),
        Language::Cel(args) => cel::run(args),
        Language::Convert(args) => convert::run(&args),
        Language::Crd(args) => crd::run(&args),
        Language::Path(args) => path::run(args),
    };
    match answered {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            complaint.print();
            ExitCode::FAILURE
        }
    }
}

/// Prints an answer, on lines of its own.
fn print(answer: &str) -> Result<(), Complaint> {
    let mut out = io::stdout().lock();
    let end = if answer.ends_with('\n') { "" } else { "\n" };
    written(out.write_all(answer.as_bytes()).and_then(|()| out.write_all(end.as_bytes())).and_then(|()| out.flush()))
}

/// A pipe that the reader has closed is fine; everything else is an error.
fn written(result: io::Result<()>) -> Result<(), Complaint> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Complaint::new(format!("cannot write the answer: {error}")))
        }
        _ => Ok(()),
    }
}
