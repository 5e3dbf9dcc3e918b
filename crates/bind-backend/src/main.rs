//! `kube-bind-backend`: parse the flags, run it, stop it on SIGTERM or SIGINT.

use std::io::Write;
use std::process::ExitCode;

use carrick_bind_backend::options::{Command, Options, Roles};
use carrick_bind_backend::{agent, backend, decide};
use carrick_process::printable::one_line;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let options = Options::of_args(std::env::args_os()).unwrap_or_else(|error| error.exit());
    carrick_process::log_to_stderr("kube_bind_backend", options.logging_format, options.v);
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

async fn print_roles(options: &Options, roles: &Roles) -> anyhow::Result<()> {
    anyhow::ensure!(
        !options.serves_kcp(),
        "in kcp, kube-bind-backend init makes an account with the rights that it needs"
    );
    let (subject, terms) = options.subject(roles)?;
    let mut all = decide::roles::base(&subject, &terms);
    if !roles.base_only {
        all.extend(agent::roles::of_cluster(&options.server()?.client(), &subject).await?);
    }
    let texts = all.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    let text: String = texts.iter().flat_map(|role| ["---\n", role.trim_end(), "\n"]).collect();
    // If the reader has closed the pipe, there is nobody to print for.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

async fn run(options: Options) -> anyhow::Result<()> {
    if let Some(Command::Roles(roles)) = &options.command {
        return print_roles(&options, roles).await;
    }
    if let Some(Command::Init) = options.command {
        let client = options.server()?.client();
        let written = if options.serves_kcp() {
            agent::init::workspace(&client).await?
        } else {
            agent::init::crds(&client).await?
        };
        tracing::info!(?written, "Installed.");
        if options.serves_kcp() {
            let (address, namespace) = (options.own_address()?, options.own_namespace());
            let made = agent::init::account(&client, &address, &namespace).await?;
            anyhow::ensure!(
                made.is_some(),
                "the server did not fill in a token for the account in namespace {namespace}; try again"
            );
            tracing::info!(namespace, "The backend's kubeconfig is in Secret kube-bind-backend-kubeconfig.");
        }
        return Ok(());
    }
    let stop = CancellationToken::new();
    carrick_process::stop_on_signals(&stop, "Stopping.")?;
    let environment = |name: &str| std::env::var(name).ok();
    let (config, front) = (options.config(environment)?, options.front(environment)?);
    Ok(backend::run(config, front, stop).await?)
}
