//! Logs of programs that take the flags of Kubernetes' own: `-v` and `--logging-format`.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};

use crate::lines::{Format, Lines};

/// What a flag `--logging-format` says; Kubernetes calls the format for people `text`.
pub fn logging_format(text: &str) -> Result<Format, String> {
    match text {
        "text" => Ok(Format::Console),
        "json" => Ok(Format::Json),
        _ => Err("there are text and json".to_owned()),
    }
}

/// Sends the logs of this project and of `program` to stderr; dependencies log only errors. From a verbosity of 4 on, as with other programs of
/// Kubernetes, details too.
pub fn log_to_stderr(program: &'static str, format: Format, verbosity: u8) {
    let level = level(verbosity);
    let filter =
        Targets::new().with_default(LevelFilter::ERROR).with_target("carrick", level).with_target(program, level);
    let subscriber = tracing_subscriber::registry().with(Lines { format }.with_filter(filter));
    // A program that embeds an agent may have set up logging already; then its own is kept.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

fn level(verbosity: u8) -> LevelFilter {
    match verbosity {
        0..=3 => LevelFilter::INFO,
        4..=7 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_the_names_that_kubernetes_gives_them() {
        assert_eq!(logging_format("text"), Ok(Format::Console));
        assert_eq!(logging_format("json"), Ok(Format::Json));
        assert_eq!(logging_format("xml"), Err("there are text and json".to_owned()));
    }

    #[test]
    fn details_begin_at_four() {
        assert_eq!([0, 2, 3, 4, 7, 8, 255].map(level), {
            let (info, debug, trace) = (LevelFilter::INFO, LevelFilter::DEBUG, LevelFilter::TRACE);
            [info, info, info, debug, debug, trace, trace]
        });
    }
}
