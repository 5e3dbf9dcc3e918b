//! `kubectl-bind`: parse the flags, do it, say what went wrong.

use std::io::Write;
use std::process::ExitCode;

use carrick_kubectl_bind::options::{Command, Options};
use carrick_kubectl_bind::{deploy, identity};
use clap::Parser;

fn main() -> ExitCode {
    let options = Options::parse();
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(run(options)));
    match done {
        Ok(text) => {
            // If the reader has closed the pipe, there is nobody to print for.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<String, String> {
    let client = options.cluster.open().map_err(|error| error.to_string())?.client();
    match options.command {
        Command::ClusterIdentity { namespace } => {
            identity::of(&client, &namespace).await.map(|uid| format!("{uid}\n")).map_err(|error| error.to_string())
        }
        Command::Deploy(request) => deploy::run(&client, &request).await.map_err(|error| error.to_string()),
    }
}
