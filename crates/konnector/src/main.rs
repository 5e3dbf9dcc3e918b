//! `konnector`: parse the flags, run the agent, stop it on SIGTERM or SIGINT.

use std::io::Write;
use std::process::ExitCode;

use carrick_konnector::agent;
use carrick_konnector::options::{Command, Options, Roles};
use carrick_process::printable::one_line;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let options = Options::of_args(std::env::args_os()).unwrap_or_else(|error| error.exit());
    carrick_process::log_to_stderr("konnector", options.logging_format, options.v);
    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(carrick_json::STACK)
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(options)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Servers have written much of it.
            eprintln!("error: {}", one_line(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> anyhow::Result<()> {
    match &options.command {
        Some(Command::Roles(roles)) => return print_roles(roles).await,
        Some(Command::Crds) => return print(&carrick_bind_api::core::crds::all()),
        None => {}
    }
    let stop = CancellationToken::new();
    carrick_process::stop_on_signals(&stop, "Stopping.")?;
    let config = options.config(|name| std::env::var(name).ok())?;
    Ok(agent::run(config, stop).await?)
}

async fn print_roles(roles: &Roles) -> anyhow::Result<()> {
    let subject = roles.subject();
    let slice = roles.apiexport_endpointslice_ref.as_deref();
    let mut all = carrick_bind_api::roles::base(&subject);
    if !roles.base_only {
        let client = roles.server()?.client();
        all.extend(agent::roles::of_cluster(&client, &subject, slice).await?);
        for warning in agent::roles::warnings(&client).await? {
            // Not among the roles, which may be piped elsewhere.
            eprintln!("warning: {}", one_line(&warning));
        }
    }
    print(&all)
}

/// Prints objects as YAML documents.
fn print(all: &[serde_json::Value]) -> anyhow::Result<()> {
    let texts = all.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    let text: String = texts.iter().flat_map(|role| ["---\n", role.trim_end(), "\n"]).collect();
    // If the reader has closed the pipe, there is nobody to print for.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}
