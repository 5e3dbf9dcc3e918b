//! Arguments as programs in Go take them. Deployments and scripts pass them on, and none of them is a reason not to start.

use std::ffi::OsString;

/// Flags of Kubernetes' logging beside `-v` and `--logging-format`, and whether they have a value. Names are compared as Go's programs do, which may
/// spell them with underscores.
const LOGGING: &[(&str, bool)] = &[
    ("--add-dir-header", false),
    ("--alsologtostderr", false),
    ("--alsologtostderrthreshold", true),
    ("--legacy-stderr-threshold-behavior", false),
    ("--log-backtrace-at", true),
    ("--log-file-max-size", true),
    ("--log-flush-frequency", true),
    ("--log-json-info-buffer-size", true),
    ("--log-json-split-stream", false),
    ("--log-text-info-buffer-size", true),
    ("--log-text-split-stream", false),
    ("--logtostderr", false),
    ("--one-output", false),
    ("--skip-headers", false),
    ("--skip-log-headers", false),
    ("--stderrthreshold", true),
    ("--vmodule", true),
];

/// Whether a flag with this name only says how Go's programs log; if so, whether it has a value.
///
/// ```
/// use carrick_process::go_flags::logging;
///
/// assert_eq!((logging("--vmodule"), logging("--skip_headers"), logging("--v")), (Some(true), Some(false), None));
/// ```
pub fn logging(name: &str) -> Option<bool> {
    let name = name.replace('_', "-");
    LOGGING.iter().find(|(flag, _)| *flag == name).map(|(_, has_value)| *has_value)
}

/// Flags of a program that Go reads in ways of its own.
#[derive(Clone, Copy, Debug)]
pub struct GoFlags {
    /// Switches, which may have a value: `--switch=true`.
    pub switches: &'static [&'static str],
    /// Flags whose empty value means that they are not given.
    pub optional: &'static [&'static str],
}

impl GoFlags {
    /// The arguments without what means nothing here: flags for logging, empty values, and values of switches.
    pub fn taken(&self, args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
        let (mut kept, mut args) = (Vec::new(), args.into_iter().peekable());
        while let Some(arg) = args.next() {
            // What is no text names no flag.
            let Some(text) = arg.to_str() else {
                kept.push(arg);
                continue;
            };
            if text == "--" {
                kept.push(arg);
                kept.extend(args);
                break;
            }
            let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            if let Some(has_value) = logging(name) {
                if has_value && value.is_none() {
                    args.next();
                }
                continue;
            }
            if self.optional.contains(&name) {
                if value == Some("") {
                    continue;
                }
                if value.is_none() && args.next_if(|next| next.is_empty()).is_some() {
                    continue;
                }
            }
            match value.filter(|_| self.switches.contains(&name)).and_then(boolean) {
                Some(true) => kept.push(name.into()),
                Some(false) => {}
                None => kept.push(arg),
            }
        }
        kept
    }
}

/// What Go takes for a truth value.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" | "t" | "T" | "1" => Some(true),
        "false" | "False" | "FALSE" | "f" | "F" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(args: &str) -> String {
        let flags = GoFlags { switches: &["--off"], optional: &["--file"] };
        // A lone comma stands for an empty argument.
        let args = args.split(' ').map(|arg| OsString::from(if arg == "," { "" } else { arg }));
        flags.taken(args).iter().map(|arg| arg.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn flags_for_logging_are_left_out_with_their_values() {
        assert_eq!(taken("p --vmodule a=1 --log-flush-frequency=5s -v 4 --skip_headers x"), "p -v 4 x");
        assert_eq!(taken("p --log-text-split-stream=true --logging-format json"), "p --logging-format json");
    }

    #[test]
    fn switches_may_have_a_value_and_empty_values_mean_nothing() {
        assert_eq!(taken("p --off=true"), "p --off");
        assert_eq!(taken("p --off=F y"), "p y");
        assert_eq!(taken("p --off=maybe"), "p --off=maybe", "which is refused");
        assert_eq!(taken("p --file= y"), "p y");
        assert_eq!(taken("p --file , y"), "p y");
        assert_eq!(taken("p --file f --name="), "p --file f --name=");
        assert_eq!(taken("p -- --off=true --vmodule"), "p -- --off=true --vmodule");
    }
}
