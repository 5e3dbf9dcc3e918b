//! What is shipped: static programs, a list of what is in them, and the check that they are fit to be shipped.
//!
//! ```text
//!  release ─┬─ cargo build --profile dist     the same bytes wherever it is built
//!           ├─ bill       SBOM in CycloneDX's format, from cargo metadata
//!           ├─ component  the agent's chart and images, for the Open Component Model
//!           ├─ check      self-contained, small, says its version
//!           ├─ notes      what the changelog says about this version, and checksums
//!           ├─ archive    all of it in one file
//!           └─ image      an image of each program for clusters, where there is a program to build it
//!  release-charts ─ chart     packages of the charts, and the images that each installs
//! ```

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

mod archive;
mod bill;
pub mod chart;
mod component;
mod elf;
mod image;
mod notes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::tools;
use component::ResourceDigest;

/// What runs in clusters, and therefore has an image; the command line is what `helm test` runs.
const IMAGES: [&str; 4] = ["api-syncagent", "konnector", "kube-bind-backend", "carrick"];
const MIB: u64 = 1024 * 1024;
/// What is shipped, and the largest that each may be. The command line holds two servers besides the agent.
const PROGRAMS: [(&str, u64); 5] = [
    // It was 15 for long, then 19 with what the mesh needs, 21 with drift and pauses; it is to become smaller again.
    ("api-syncagent", 21 * MIB),
    ("konnector", 15 * MIB),
    ("kube-bind-backend", 15 * MIB),
    ("kubectl-bind", 15 * MIB),
    ("carrick", 24 * MIB),
];

/// Build what is shipped, and check it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Target to build for; must be installed: rustup target add …
    #[arg(long, default_value = "x86_64-unknown-linux-musl")]
    target: String,
    /// Only this program; all of them by default
    #[arg(long, value_name = "NAME", value_parser = PROGRAMS.map(|(name, _)| name))]
    program: Option<String>,
    /// Folder for programs, SBOMs and their archive [default: <target folder>/release-<target>]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Also build the images of programs for clusters and start them, with buildah
    #[arg(long)]
    image: bool,
    /// Digest that the registry has given a resource of the component descriptor when it was pushed, for chart, image or carrick; may be repeated
    #[arg(long, value_name = "RESOURCE=DIGEST")]
    digest: Vec<ResourceDigest>,
}

/// Check programs that were built: self-contained, small, and they say their version.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Programs to check
    #[arg(required = true, value_name = "PROGRAM")]
    programs: Vec<PathBuf>,
}

/// Builds and checks.
pub fn build(args: &Args) -> anyhow::Result<()> {
    let root = tools::root();
    let changelog = fs::read_to_string(root.join("CHANGELOG.md")).context("cannot read CHANGELOG.md")?;
    let notes = notes::of(&changelog, env!("CARGO_PKG_VERSION"))?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let version = format!("{}+{commit}", env!("CARGO_PKG_VERSION"));
    // Panics name source files: by their place in the repository and in the registry, not on this machine.
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))?;
    let mut flags = format!("--remap-path-prefix={}=. --remap-path-prefix={home}=cargo", root.display());
    if args.target.contains("-linux-") {
        // The places that a program corrects when it starts, as bits instead of a table: 700 KB less.
        flags.push_str(" -Clink-arg=-Wl,-z,pack-relative-relocs");
    }
    if args.target.ends_with("-musl") {
        // Headers of glibc, from 2.38 on, have C call this by a name that musl does not know.
        flags.push_str(" -Clink-arg=-Wl,--defsym=__isoc23_strtol=strtol");
    }
    let mut command = tools::cargo();
    command.args(["build", "--locked", "--profile", "dist", "--target", &args.target]);
    let programs: Vec<&str> = PROGRAMS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| args.program.as_ref().is_none_or(|wanted| wanted == name))
        .collect();
    for program in &programs {
        command.args(["--bin", program]);
    }
    let date = git(&["log", "-1", "--format=%ct"])?;
    command.env("CARRICK_VERSION", &version).env("SOURCE_DATE_EPOCH", &date).env("RUSTFLAGS", flags);
    if args.target.ends_with("-musl") {
        compile_c(&mut command, &args.target)?;
    }
    tools::run(&mut command).with_context(|| format!("is the target installed? rustup target add {}", args.target))?;

    let out = args.out.clone().unwrap_or_else(|| tools::target().join(format!("release-{}", args.target)));
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    for program in &programs {
        let built = tools::target().join(&args.target).join("dist").join(program);
        fs::copy(&built, out.join(program)).with_context(|| format!("cannot copy {}", built.display()))?;
        let bill = bill::of(program, &version, &args.target)?;
        fs::write(out.join(format!("{program}.cdx.json")), serde_json::to_string_pretty(&bill)? + "\n")?;
    }
    for program in &programs {
        one(&out.join(program), args.target.contains("-linux-"))?;
    }
    let mut shipped: Vec<PathBuf> =
        programs.iter().flat_map(|name| [out.join(name), out.join(format!("{name}.cdx.json"))]).collect();
    if programs.contains(&component::AGENT) {
        shipped.push(component::write(&out, &git(&["rev-parse", "HEAD"])?, &args.digest)?);
    }
    fs::write(out.join("NOTES.md"), notes + &notes::table(&shipped)?)?;
    let all = format!("{}-{}-{}", args.program.as_deref().unwrap_or("carrick"), env!("CARGO_PKG_VERSION"), args.target);
    let archive = archive::pack(&out, &all, &[shipped.clone(), vec![out.join("NOTES.md")]].concat(), &date)?;
    fs::write(out.join("SHA256SUMS"), notes::checksums(&[shipped, vec![archive]].concat())?)?;
    let images: Vec<&str> = programs.into_iter().filter(|program| IMAGES.contains(program)).collect();
    if args.image && !images.is_empty() && !image::is_possible() {
        println!("SKIPPED: there is no buildah here; no image was built");
    } else if args.image {
        for program in images {
            image::build(&out.join(program), args.target.split('-').next().unwrap_or_default(), &version)?;
        }
    }
    println!("in {}", out.display());
    Ok(())
}

/// Names the compiler for C and the linker, unless somebody has. The C in ring needs no C library, and that in mimalloc only what all C libraries for Linux
/// have alike, so any compiler for the processor will do; rustup's target brings the C library that is linked.
fn compile_c(command: &mut Command, target: &str) -> anyhow::Result<()> {
    let processor = target.split('-').next().unwrap_or_default();
    let own = processor == std::env::consts::ARCH;
    let compiler = if own { "cc".to_owned() } else { format!("{processor}-linux-gnu-gcc") };
    let underscored = target.replace('-', "_");
    // Huge pages save no time here, and hold half as much memory again as they are used for.
    let flags = format!("CFLAGS_{underscored}");
    let given = std::env::var(&flags).unwrap_or_default();
    command.env(&flags, format!("-DMI_DEFAULT_ALLOW_THP=0 {given}").trim_end());
    let cc = format!("CC_{underscored}");
    if std::env::var_os(&cc).is_some() {
        return Ok(());
    }
    let found = Command::new(&compiler).arg("--version").output().is_ok_and(|told| told.status.success());
    ensure!(
        found,
        "there is no {compiler} to compile the C in ring and mimalloc for {target}. On Debian: apt-get install gcc-{}-linux-gnu; or name one in {cc}",
        processor.replace('_', "-")
    );
    command.env(cc, &compiler);
    if !own {
        command.env(format!("CARGO_TARGET_{}_LINKER", underscored.to_uppercase()), compiler);
    }
    Ok(())
}

/// Checks programs.
pub fn check(args: &Check) -> anyhow::Result<()> {
    args.programs.iter().try_for_each(|program| one(program, true))
}

fn one(program: &Path, linux: bool) -> anyhow::Result<()> {
    let shown = program.display();
    let bytes = fs::read(program).with_context(|| format!("cannot read {shown}"))?;
    let size = u64::try_from(bytes.len())?;
    let known = PROGRAMS.iter().find(|(name, _)| program.file_name().is_some_and(|file| file == *name));
    let limit = known.map_or(15 * MIB, |(_, limit)| *limit);
    ensure!(size <= limit, "{shown} has {size} bytes; {limit} are allowed. Build with --profile dist");
    if linux {
        let needs = elf::needs(&bytes).with_context(|| format!("cannot read {shown}"))?;
        ensure!(
            needs.is_empty(),
            "{shown} is not self-contained: it needs {}. Build for a musl target",
            needs.join(", ")
        );
    }
    let told = Command::new(program).arg("--version").output();
    // One for another processor can only be asked where it is emulated.
    let told = told.or_else(|_| {
        let emulator = format!("qemu-{}-static", elf::processor(&bytes).unwrap_or_default());
        Command::new(emulator).arg(program).arg("--version").output()
    });
    let version = match told {
        Ok(told) if told.status.success() => String::from_utf8_lossy(&told.stdout).trim().to_owned(),
        Ok(told) => anyhow::bail!("{shown} --version ends with {}", told.status),
        Err(_) => "for another machine".to_owned(),
    };
    println!("{shown}: {} KiB, self-contained, {version}", size / 1024);
    Ok(())
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").current_dir(tools::root()).args(arguments).output().context("cannot start git")?;
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
