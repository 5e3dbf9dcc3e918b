//! What is made of the three programs of kube-bind: their flags, and the CRDs that a provider needs.

use clap::{Arg, Command, CommandFactory};

use super::markdown::{code, flag, sentence};

const HEAD: &str = "\
<!-- Made by `cargo xtask reference` from the tables in the code. Edit those. -->

# Flags of the programs for kube-bind

`--flag value` and `--flag=value` both work. Durations are Go's: `15s`, `5m`, `1h`. [How they work together](../kube-bind/backend.md) is told elsewhere.
";

const KONNECTOR_METRICS: &str = "
## konnector

At `/metrics` of `--server-address` (`:8090` unless told otherwise). `kube-bind-backend` serves none.

| metric | type | labels | what it tells |
| --- | --- | --- | --- |
";

/// One table for each program, and for each of its commands.
pub fn flags() -> String {
    let mut page = HEAD.to_owned();
    let programs = [
        carrick_bind_backend::options::Options::command(),
        carrick_konnector::options::Options::command(),
        carrick_kubectl_bind::options::Options::command(),
    ];
    for program in programs {
        let name = program.get_bin_name().unwrap_or(program.get_name()).to_owned();
        page += &["\n## ", &name, "\n\n"].concat();
        page += &about(&program);
        page += &table(&program);
        for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
            page += &["\n### ", &name, " ", command.get_name(), "\n\n"].concat();
            page += &about(command);
            page += &table(command);
        }
    }
    page
}

/// The metrics of the konnector, read from what it serves: that is the only place where they stand.
pub fn metrics() -> String {
    let metrics = carrick_konnector::agent::metrics::Metrics::default();
    // A counter without a count has no line, and therefore no labels.
    metrics.wrote("", "", "", "");
    let text = metrics.render();
    let after = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default();
    let mut page = KONNECTOR_METRICS.to_owned();
    for (name, help) in text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' ')) {
        let labels = after(&format!("{name}{{")).split_once('}').unwrap_or_default().0;
        let labels = labels.split(',').filter_map(|label| Some(label.split_once('=')?.0)).collect::<Vec<_>>();
        let kind = after(&format!("# TYPE {name} "));
        page += &["| ", &code(name), " | ", kind, " | ", &labels.join(", "), " | ", &sentence(help), " |\n"].concat();
    }
    page
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = about.replace('\n', " ");
    format!("{}.\n", about.trim_end_matches('.'))
}

/// The arguments of a command; those that are only there for compatibility are left out.
fn table(command: &Command) -> String {
    let mut rows = String::new();
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let names = match (argument.get_short(), argument.get_long()) {
            (Some(short), Some(long)) => format!("{}, {}", code(&format!("-{short}")), code(&format!("--{long}"))),
            (None, Some(long)) => code(&format!("--{long}")),
            (Some(short), None) => code(&format!("-{short}")),
            (None, None) => code(&argument.get_value_names().unwrap_or_default().join(" ")),
        };
        rows += &flag(&names, &value(argument), argument);
    }
    if rows.is_empty() {
        return String::new();
    }
    format!("\n| flag | value | default | what it does |\n| --- | --- | --- | --- |\n{rows}")
}

/// What may stand behind a flag: the words that are known, or what kind of thing it is. Nothing, if the flag stands alone.
fn value(argument: &Arg) -> String {
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let known = argument.get_possible_values();
    let known: Vec<String> = known.iter().map(|value| code(value.get_name())).collect();
    if !known.is_empty() {
        return known.join(", ");
    }
    argument.get_value_names().unwrap_or_default().join(" ").to_lowercase()
}

/// The CRDs of a provider, for the chart.
pub fn crds() -> String {
    let crds = carrick_bind_api::crds::provider();
    serde_json::to_string_pretty(&crds).unwrap_or_default() + "\n"
}
