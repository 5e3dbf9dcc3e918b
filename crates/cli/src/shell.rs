//! `carrick completions` and `carrick man`: what shells and `man` need to know about the command line.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const COMPLETIONS: &str = "\
Examples:
  source <(carrick completions bash)
      in this shell
  carrick completions bash > ~/.local/share/bash-completion/completions/carrick
  carrick completions zsh > \"${fpath[1]}/_carrick\"
  carrick completions fish > ~/.config/fish/completions/carrick.fish";

/// Write man pages.
#[derive(Debug, clap::Args)]
#[command(after_help = MAN)]
pub struct ManArgs {
    /// Write a page for every command into this folder, instead of printing that of carrick itself
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

const MAN: &str = "\
Examples:
  carrick man | man -l -
  carrick man --dir ~/.local/share/man/man1 && man carrick-doctor";

/// Prints completions.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "carrick", &mut text);
    // If the reader has closed the pipe, there is nobody to print for, here and below.
    let _ = std::io::stdout().write_all(&text);
    ExitCode::SUCCESS
}

/// Prints or writes man pages.
pub fn man(args: &ManArgs, command: Command) -> anyhow::Result<ExitCode> {
    let Some(folder) = &args.dir else {
        let mut text = Vec::new();
        clap_mangen::Man::new(command).render(&mut text)?;
        let _ = std::io::stdout().write_all(&text);
        return Ok(ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    clap_mangen::generate_to(command, folder).with_context(|| format!("cannot write to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
