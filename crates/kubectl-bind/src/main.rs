//! `kubectl-bind`: parse the flags, do it, say what went wrong.

use std::io::{IsTerminal as _, Write};
use std::process::ExitCode;

use carrick_client::Client;
use carrick_kubectl_bind::catalogue::{self, Kind};
use carrick_kubectl_bind::options::{Command, Options};
use carrick_kubectl_bind::{consume, deploy, habits, identity, login, unbind, v2};
use carrick_process::printable::printable;
use clap::Parser;

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options.checked().unwrap_or_else(|error| error.exit()),
        Err(problem) => {
            eprintln!("error: {problem}");
            return ExitCode::from(2);
        }
    };
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(run(options)));
    match done {
        Ok(text) => {
            // What is piped is data; what is shown is for people, and much of it was written by others.
            let shown = std::io::stdout().is_terminal();
            let text = if shown { printable(&text).into_owned() } else { text };
            // If the reader has closed the pipe, there is nobody to print for.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {}", printable(&problem));
            ExitCode::FAILURE
        }
    }
}

/// What was asked for, in our words or in those of kube-bind.
fn options() -> Result<Options, String> {
    // Paths need not be text.
    let Ok(args) = std::env::args_os().map(std::ffi::OsString::into_string).collect::<Result<Vec<_>, _>>() else {
        return Ok(Options::parse());
    };
    let (args, said) = habits::taken(args)?;
    for line in said {
        eprintln!("note: {line}");
    }
    Ok(Options::parse_from(args))
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
        Some(Command::Connect(request)) => v2::connect::run(&client(&options)?, request).await.map_err(said),
        Some(Command::Join(request)) => v2::bind::run(&client(&options)?, request).await.map_err(said),
        Some(Command::Status) => v2::status::run(&client(&options)?).await.map_err(said),
        Some(Command::Upgrade(request)) => v2::upgrade::run(&client(&options)?, request).await.map_err(said),
    }
}

/// This cluster; commands that do not need it work without a kubeconfig.
fn client(options: &Options) -> Result<Client, String> {
    Ok(options.cluster.open().map_err(said)?.client())
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
