//! Figures in a page of the documentation, between two comments, so that a run can replace them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;

const END: &str = "<!-- bench end -->";

/// Replaces the figures of one name.
pub fn replace(page: &Path, name: &str, figures: &str) -> anyhow::Result<()> {
    let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let text = replaced(&text, name, figures).with_context(|| format!("{} has no place for {name}", page.display()))?;
    Ok(fs::write(page, text)?)
}

fn replaced(text: &str, name: &str, figures: &str) -> Option<String> {
    let begin = format!("<!-- bench {name} -->\n");
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}{figures}{END}{after}"))
}

/// The machine and how busy it was, in one line.
pub fn machine(load_before: &str) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut line = format!("{cores} cores");
    if let Some(model) = field(&read("/proc/cpuinfo"), "model name") {
        let _ = write!(line, " ({model})");
    }
    let memory = field(&read("/proc/meminfo"), "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    if let Some(kib) = memory {
        let _ = write!(line, ", {} GiB", (kib + 512 * 1024) / 1024 / 1024);
    }
    let _ = write!(line, "; load average {load_before} before, {} after", load());
    line
}

/// The load average of the last minute.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_figures_of_that_name_change() {
        let page = "a\n<!-- bench x -->\nold\n<!-- bench end -->\nb\n<!-- bench y -->\n<!-- bench end -->\n";
        let wanted = "a\n<!-- bench x -->\nnew\n<!-- bench end -->\nb\n<!-- bench y -->\n<!-- bench end -->\n";
        assert_eq!(replaced(page, "x", "new\n").as_deref(), Some(wanted));
        assert_eq!(replaced(page, "z", "new\n"), None);
    }
}
