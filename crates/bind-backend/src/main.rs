//! `kube-bind-backend`: parse the flags, run it, stop it on SIGTERM or SIGINT.

use std::process::ExitCode;

use carrick_bind_backend::options::Options;
use carrick_bind_backend::{backend, logging};
use clap::Parser;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let options = Options::parse();
    logging::init(options.v);
    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(carrick_json::STACK)
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(options)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    carrick_process::stop_on_signals(&stop, "Stopping.")?;
    let environment = |name: &str| std::env::var(name).ok();
    let (config, front) = (options.config(environment)?, options.front(environment)?);
    Ok(backend::run(config, front, stop).await?)
}
