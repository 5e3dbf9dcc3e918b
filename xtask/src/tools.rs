//! Where things are, and how the programs are built that are compared.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}

/// Cargo, started in the root of the repository.
pub fn cargo() -> Command {
    let mut cargo = without_cargo(Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())));
    cargo.current_dir(root());
    cargo
}

/// The same command without what cargo said to this program. It is not for another cargo: build scripts would run again because of it, now and at the
/// next build.
pub fn without_cargo(mut command: Command) -> Command {
    let said = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(said)) {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{} ended with {status}", command.get_program().display());
    }
    Ok(())
}

/// The folder where cargo builds, and where files of a run may be left.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Builds the command line and returns its path.
pub fn carrick() -> anyhow::Result<PathBuf> {
    // Without `--package` the features are those of plain `cargo run --release`, so that nothing is built twice.
    run(cargo().args(["build", "--quiet", "--release", "--bin", "carrick"]))?;
    Ok(target().join("release").join("carrick"))
}

/// Builds the program over the Go libraries and returns its path.
pub fn oracle() -> anyhow::Result<PathBuf> {
    let program = target().join("oracle");
    let build = ["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o"];
    // No workspace around us may change the pins, and Go must not go looking for another version of itself.
    run(Command::new("go")
        .current_dir(root().join("e2e/oracle"))
        .envs([("GOWORK", "off"), ("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0")])
        .args(build)
        .arg(&program)
        .arg("."))
    .context("the comparison needs Go 1.26")?;
    Ok(program)
}
