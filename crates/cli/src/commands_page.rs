//! The page of the book with all commands, made from the command line itself.

use std::fmt::Write as _;

use clap::{Arg, Command};

const HEAD: &str = "\
<!-- Made by `CARRICK_WRITE_PAGES=1 cargo test -p carrick commands_page` from the command line itself. -->

# All commands of carrick

`carrick COMMAND --help` prints the same, with examples. `-v` shows on stderr what the servers and the agent log. Commands that report something print it for programs with `-o json`.
";

/// The page.
fn page(root: &Command, tasks: &[(&str, &[&str])]) -> String {
    let mut page = HEAD.to_owned();
    for (task, names) in tasks {
        // Writing to a String cannot fail, here and below.
        let _ = write!(page, "\n## {task}\n");
        for name in *names {
            if let Some(command) = root.find_subcommand(name) {
                section(&mut page, command, &format!("carrick {name}"));
            }
        }
    }
    page
}

fn section(page: &mut String, command: &Command, name: &str) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "\n### {name}\n\n{}\n", escaped(about.trim()));
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !arg.is_global_set() && arg.get_id() != "help")
        .collect();
    if !arguments.is_empty() {
        page.push_str("\n| argument | default | what it does |\n| --- | --- | --- |\n");
    }
    for argument in arguments {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let values: Vec<String> =
            argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        let values = if values.is_empty() || !argument.get_action().takes_values() {
            String::new()
        } else {
            format!(" ({})", values.join(", "))
        };
        let takes = argument.get_action().takes_values();
        let default = argument.get_default_values().iter().filter(|value| takes && !value.is_empty());
        let default: Vec<String> = default.map(|value| format!("`{}`", value.to_string_lossy())).collect();
        let shown = cell(&format!("{}{values}", escaped(&help)));
        let _ = writeln!(page, "| {} | {} | {shown} |", cell(&named(argument)), default.join(", "));
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set()) {
        section(page, below, &format!("{name} {}", below.get_name()));
    }
}

/// An argument as it is written on the command line.
fn named(argument: &Arg) -> String {
    let value = || {
        let names: Vec<&str> =
            argument.get_value_names().into_iter().flatten().map(clap::builder::Str::as_str).collect();
        names.join(" ")
    };
    let Some(long) = argument.get_long() else { return format!("`{}`", value()) };
    let short = argument.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let value = if argument.get_action().takes_values() { format!(" {}", value()) } else { String::new() };
    format!("`{short}--{long}{value}`")
}

/// Text that Markdown takes for markup, or mdBook for HTML.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('>', "&gt;").replace('*', "\\*")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_of_all_commands_is_what_the_command_line_says() {
    let mut root = crate::command();
    root.build();
    let page = page(&root, &crate::TASKS);
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    if std::env::var_os("CARRICK_WRITE_PAGES").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == page, "run CARRICK_WRITE_PAGES=1 cargo test -p carrick commands_page");
    assert!(page.contains("### carrick doctor\n") && page.contains("| `--watch` |"), "{page}");
}
