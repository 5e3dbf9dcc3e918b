//! Images, made from programs by the Dockerfile and tried out, by buildah: it needs neither a daemon nor rights.

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
    let name = program.file_name().and_then(|name| name.to_str()).context("the program has no name")?;
    fs::copy(program, place.join(name))?;
    fs::copy(tools::root().join("Dockerfile"), context.join("Dockerfile"))?;
    // A tag may not contain a plus.
    let image = format!("{name}:{}-{platform}", version.replace('+', "-"));
    let arguments = ["bud", "--quiet", "--isolation", "chroot", "--arch", platform, "--target", name, "--build-arg"];
    let argument = format!("TARGETARCH={platform}");
    tools::run(buildah().args(arguments).args([&argument, "--tag", &image]).arg(&context).stdout(Stdio::null()))?;
    let own = processor == std::env::consts::ARCH;
    let told = if own { start(&image, name)? } else { "for another machine".to_owned() };
    println!("image {image}: {told}");
    Ok(())
}

/// What the program in the image says about itself.
fn start(image: &str, program: &str) -> anyhow::Result<String> {
    let container = ask(&["from", "--pull-never", image])?;
    let program = format!("/{program}");
    let told = ask(&["run", "--isolation", "chroot", &container, "--", &program, "--version"]);
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
