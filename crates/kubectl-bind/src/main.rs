//! `kubectl-bind`: parse the flags, do it, say what went wrong.

use std::io::Write;
use std::process::ExitCode;

use carrick_client::Client;
use carrick_kubectl_bind::catalogue::{self, Kind};
use carrick_kubectl_bind::options::{Command, Options};
use carrick_kubectl_bind::{consume, deploy, identity, login, unbind};
use clap::Parser;

fn main() -> ExitCode {
    let options = Options::parse().checked().unwrap_or_else(|error| error.exit());
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
    let flags = &options.backend;
    match &options.command {
        None => consume::by_page(&client(&options)?, &options.bind, flags).await.map_err(said),
        Some(Command::Login(request)) => login::run(request, flags).await.map_err(said),
        Some(Command::Templates(request)) => catalogue::run(Kind::Templates, request, flags).await.map_err(said),
        Some(Command::Collections(request)) => catalogue::run(Kind::Collections, request, flags).await.map_err(said),
        Some(Command::ApiService(request)) => {
            consume::apiservice(&client(&options)?, request, flags).await.map_err(said)
        }
        Some(Command::ClusterIdentity { namespace }) => {
            identity::of(&client(&options)?, namespace).await.map(|uid| format!("{uid}\n")).map_err(said)
        }
        Some(Command::Unbind(request)) => unbind::run(&client(&options)?, request).await.map_err(said),
        Some(Command::Deploy(request)) => deploy::run(&client(&options)?, request).await.map_err(said),
    }
}

/// This cluster; commands that do not need it work without a kubeconfig.
fn client(options: &Options) -> Result<Client, String> {
    Ok(options.cluster.open().map_err(said)?.client())
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
