//! The agent's image, made from the program by the Dockerfile and tried out, by buildah: it needs neither a daemon nor rights.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::tools;

/// Whether there is a program to build images with.
pub fn is_possible() -> bool {
    Command::new("buildah").arg("--version").output().is_ok_and(|told| told.status.success())
}

/// Builds the image around a program and starts it once; one for another processor is only built.
pub fn build(program: &Path, processor: &str, version: &str) -> anyhow::Result<()> {
    let platform = match processor {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let context = tools::target().join("image");
    let place = context.join("dist").join(platform);
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    fs::copy(program, place.join("api-syncagent"))?;
    fs::copy(tools::root().join("Dockerfile"), context.join("Dockerfile"))?;
    // A tag may not contain a plus.
    let name = format!("api-syncagent:{}-{platform}", version.replace('+', "-"));
    let arguments = ["bud", "--quiet", "--isolation", "chroot", "--arch", platform, "--build-arg"];
    let argument = format!("TARGETARCH={platform}");
    tools::run(buildah().args(arguments).args([&argument, "--tag", &name]).arg(&context).stdout(Stdio::null()))?;
    let told = if processor == std::env::consts::ARCH { start(&name)? } else { "for another machine".to_owned() };
    println!("image {name}: {told}");
    Ok(())
}

/// What the program in the image says about itself.
fn start(name: &str) -> anyhow::Result<String> {
    let container = ask(&["from", "--pull-never", name])?;
    let told = ask(&["run", "--isolation", "chroot", &container, "--", "/api-syncagent", "--version"]);
    ask(&["rm", &container])?;
    told
}

fn ask(arguments: &[&str]) -> anyhow::Result<String> {
    let output = buildah().args(arguments).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "buildah {} ended with {}: {error}", arguments.join(" "), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn buildah() -> Command {
    let mut command = Command::new("buildah");
    // Works on every file system, also inside of a container.
    command.args(["--storage-driver", "vfs"]);
    command
}
