//! `api-syncagent`: parse the flags, run the agent, stop it on SIGTERM or SIGINT.

use std::io::Write;
use std::process::ExitCode;

use carrick_syncagent::agent;
use carrick_syncagent::agent::explain::{Question, explain};
use carrick_syncagent::logging;
use carrick_syncagent::options::Options;
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
    logging::init(options.log_format, options.log_debug);

    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(carrick_json::STACK)
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(options)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(fatal = true, %error, "Sync Agent has encountered an error");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> anyhow::Result<()> {
    if options.dry_run {
        let report = explain(options.into_config()?, &Question::default()).await?;
        // If the reader has closed the pipe, there is nobody to print for.
        let _ = write!(std::io::stdout(), "{report}");
        return Ok(());
    }
    let stop = CancellationToken::new();
    carrick_process::stop_on_signals(&stop, "Stopping kcp Sync Agent…")?;
    Ok(Box::pin(agent::run(options.into_config()?, stop)).await?)
}
