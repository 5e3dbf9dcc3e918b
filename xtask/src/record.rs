//! A recording of the demo in a real terminal, as an animated picture for the README.
//!
//! ```text
//!  carrick demo in a pseudo-terminal ─▶ capture  what it printed, and when
//!                                          │
//!                                        screen   lines as they stand in the end, with colours and times
//!                                          ▼
//!                                        picture  docs/demo.svg
//! ```

mod capture;
mod picture;
mod screen;

use std::fs;
use std::process::Command;

use crate::tools;

/// How wide the terminal is.
const COLUMNS: usize = 118;
/// Where the picture goes.
const PICTURE: &str = "docs/demo.svg";

/// Builds and runs the demo, and writes its picture.
pub fn run() -> anyhow::Result<()> {
    tools::run(tools::cargo().args(["build", "--release", "--bin", "carrick"]))?;
    let demo = tools::without_cargo(Command::new(tools::target().join("release/carrick")));
    let chunks = capture::run(&demo, "demo", COLUMNS)?;
    let lines = screen::lines(&chunks);
    fs::write(tools::root().join(PICTURE), picture::draw("carrick demo", &lines, COLUMNS))?;
    eprintln!("{PICTURE}: {} lines", lines.len());
    Ok(())
}
