//! `api-syncagent`: parse the flags, run the agent, stop it on SIGTERM or SIGINT.

use std::io::Write;
use std::process::ExitCode;

use carrick_syncagent::agent;
use carrick_syncagent::agent::explain::{Question, explain};
use carrick_syncagent::logging;
use carrick_syncagent::options::Options;
use carrick_syncagent::traces;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let options = match Options::parse_from_args(std::env::args_os()) {
        Ok(options) => options,
        Err(usage) if usage.exit_code == 0 => {
            print!("{}", usage.text);
            return ExitCode::SUCCESS;
        }
        Err(usage) => {
            eprint!("{}", usage.text);
            return ExitCode::from(usage.exit_code);
        }
    };
    let options = match options.complete() {
        Ok(options) => options,
        Err(problems) => {
            let now = jiff::Timestamp::now().strftime("%Y/%m/%d %H:%M:%S").to_string();
            eprintln!("{now} Invalid command line: {problems} (run api-syncagent --help for examples)");
            return ExitCode::FAILURE;
        }
    };
    let traces = match traces::Config::from_environment(|name| std::env::var(name).ok()) {
        Ok(config) => config.map(|config| (config, traces::layer())),
        Err(problem) => {
            eprintln!("Invalid environment: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let (layer, unsent) = match traces {
        Some((config, (layer, unsent))) => (Some(layer), Some((config, unsent))),
        None => (None, None),
    };
    logging::init(options.log_format, options.log_debug, layer);

    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(carrick_json::STACK)
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(options, unsent)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(fatal = true, %error, "Sync Agent has encountered an error");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options, traces: Option<(traces::Config, traces::Unsent)>) -> anyhow::Result<()> {
    if options.dry_run {
        let report = explain(options.into_config()?, &Question::default()).await?;
        // If the reader has closed the pipe, there is nobody to print for.
        let _ = write!(std::io::stdout(), "{report}");
        return Ok(());
    }
    let (stop, end) = (CancellationToken::new(), CancellationToken::new());
    carrick_process::stop_on_signals(&stop, "Stopping kcp Sync Agent…")?;
    let sending = traces.map(|(config, unsent)| tokio::spawn(traces::send_all(config, unsent, end.clone())));
    let result = Box::pin(agent::run(options.into_config()?, stop)).await;
    end.cancel();
    if let Some(sending) = sending {
        sending.await??;
    }
    Ok(result?)
}
