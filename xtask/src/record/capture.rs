//! Running a program in a pseudo-terminal, by util-linux' `script`.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

/// What came out at once, and when.
#[derive(Debug, PartialEq, Eq)]
pub struct Chunk {
    pub at: Duration,
    pub bytes: Vec<u8>,
}

/// Runs a program with one argument to its end, in a terminal of that width.
pub fn run(program: &Command, argument: &str, columns: usize) -> anyhow::Result<Vec<Chunk>> {
    let folder = crate::tools::target().join("record");
    fs::create_dir_all(&folder)?;
    let (output, timing) = (folder.join("output"), folder.join("timing"));
    let program = program.get_program().to_str().context("a path that is no text")?;
    let status = Command::new("script")
        .args(["--quiet", "--return", "--command"])
        .arg(format!("stty cols {columns} rows 40; '{program}' {argument}"))
        .args([OsStr::new("--log-out"), output.as_os_str(), OsStr::new("--log-timing"), timing.as_os_str()])
        .env("TERM", "xterm-256color")
        .stdout(Stdio::null())
        .status()
        .context("script, of util-linux, cannot be started")?;
    ensure!(status.success(), "{program} {argument} failed: {status}; {} has what it printed", output.display());
    chunks(&fs::read(&output)?, &fs::read_to_string(&timing)?)
}

/// Output cut by its timing: each line says after how many seconds how many bytes came. The first line of the output is script's own.
fn chunks(output: &[u8], timing: &str) -> anyhow::Result<Vec<Chunk>> {
    let begin = output.iter().position(|byte| *byte == b'\n').context("script wrote nothing")? + 1;
    let (mut rest, mut at) = (&output[begin..], Duration::ZERO);
    let mut chunks = Vec::new();
    for line in timing.lines() {
        let (after, count) = line.split_once(' ').with_context(|| format!("no timing: {line}"))?;
        at += Duration::from_secs_f64(after.parse()?);
        let (bytes, later) = rest.split_at(count.parse::<usize>()?.min(rest.len()));
        chunks.push(Chunk { at, bytes: bytes.to_owned() });
        rest = later;
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_cut_by_its_timing() {
        let chunks = chunks(b"Script started\none\ntwo\nScript done\n", "0.5 4\n0.25 4\n").unwrap();
        let chunk = |millis, bytes: &str| Chunk { at: Duration::from_millis(millis), bytes: bytes.into() };
        assert_eq!(chunks, [chunk(500, "one\n"), chunk(750, "two\n")]);
    }
}
