//! A running agent, and what it costs its machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::process::{Child, Command};

/// How long an agent may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(15);
/// Linux tells processor time in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// A running agent; killed when dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts an agent; what it prints goes to a file.
    pub fn start(program: &Path, arguments: &[String], log: PathBuf) -> anyhow::Result<Self> {
        let output = File::create(&log)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, log })
    }

    /// Asks it to end and waits until it has; any way of ending is fine.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let id = self.id()?;
        let sent = Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
        ensure!(sent.success(), "cannot send SIGTERM: {sent}");
        let ended = tokio::time::timeout(GRACE, self.child.wait()).await;
        ended.context("the agent did not end in time")??;
        Ok(())
    }

    /// An error with the end of its log if it has ended.
    pub fn check(&mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait()?;
        ensure!(ended.is_none(), "the agent has ended by itself: {}", self.last_words());
        Ok(())
    }

    /// Processor time of all its threads so far.
    pub fn processor_time(&self) -> anyhow::Result<Duration> {
        processor_time(self.id()?)
    }

    /// Resident memory now and at its highest, in bytes.
    pub fn memory(&self) -> anyhow::Result<(u64, u64)> {
        memory(self.id()?)
    }

    fn id(&self) -> anyhow::Result<u32> {
        self.child.id().with_context(|| format!("the agent has ended: {}", self.last_words()))
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

/// Resident memory of this process in bytes: that of the embedded planes and of the benchmark itself.
pub fn own_memory() -> u64 {
    memory(std::process::id()).map_or(0, |(now, _)| now)
}

/// Resident memory of a process now and at its highest, in bytes.
pub fn memory(id: u32) -> anyhow::Result<(u64, u64)> {
    memory_in(&fs::read_to_string(format!("/proc/{id}/status"))?)
}

/// Processor time of all threads of a process so far.
pub fn processor_time(id: u32) -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    processor_time_in(&stat).context("no processor time in /proc")
}

fn memory_in(status: &str) -> anyhow::Result<(u64, u64)> {
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    };
    field("VmRSS:").zip(field("VmHWM:")).context("no memory in /proc")
}

fn processor_time_in(stat: &str) -> Option<Duration> {
    // The name of the program is in parentheses; user and system time are the 12th and 13th field behind it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(TICK * (user + system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_and_memory_are_read_as_linux_writes_them() {
        let stat = "12 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 3 0";
        assert_eq!(processor_time_in(stat), Some(Duration::from_secs(2)));
        assert_eq!(memory_in("Name: a\nVmHWM:\t 8 kB\nVmRSS:\t 4 kB\n").unwrap(), (4096, 8192));
    }
}
