//! Server processes that end with the test run, whichever way it ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::kubeconfig::Access;

/// kcp needs about half a minute on two cores, more when they are busy.
const START: Duration = Duration::from_mins(4);

/// Starts the server given as arguments, and ends it as soon as standard input closes: that happens when [`Process`] is dropped, and also
/// when the test run is killed with no chance to clean up.
const KEEPER: &str = r#"
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
{ read -r _ <&3; kill -KILL "$server"; } &
watcher=$!
wait "$server"
code=$?
kill "$watcher" 2>/dev/null
exit "$code"
"#;

/// Servers that are ready.
pub struct Started {
    /// Where the server is that clients talk to.
    pub url: String,
    /// What they need to know about it.
    pub access: Access,
    /// All processes; dropping them ends them.
    pub processes: Vec<Process>,
}

/// One running server.
pub struct Process {
    name: &'static str,
    binary: PathBuf,
    args: Vec<String>,
    log: PathBuf,
    keeper: Child,
}

impl Process {
    /// Starts a server; what it prints goes to a file in `folder`.
    pub(super) fn start(name: &'static str, binary: &Path, folder: &Path, args: &[String]) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        File::create(&log)?;
        let keeper = keep(name, binary, args, &log)?;
        Ok(Self { name, binary: binary.to_owned(), args: args.to_vec(), log, keeper })
    }

    /// Kills the server and starts it again.
    pub(super) fn restart(&mut self) -> anyhow::Result<()> {
        self.stop()?;
        self.start_again()
    }

    /// Kills the server.
    pub(super) fn stop(&mut self) -> anyhow::Result<()> {
        drop(self.keeper.stdin.take());
        self.keeper.wait()?;
        Ok(())
    }

    /// Starts a server that was stopped.
    pub(super) fn start_again(&mut self) -> anyhow::Result<()> {
        self.keeper = keep(self.name, &self.binary, &self.args, &self.log)?;
        Ok(())
    }

    /// Sends the server a signal, by its name.
    pub(super) fn signal(&self, name: &str) -> anyhow::Result<()> {
        let status = Command::new("/bin/sh").args(["-c", &format!("kill -{name} {}", self.id()?)]).status()?;
        anyhow::ensure!(status.success(), "cannot send SIG{name} to {}", self.name);
        Ok(())
    }

    /// An error with the end of the log if the server has ended.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.keeper.try_wait()? {
            anyhow::bail!("{} ended with {status}: {}", self.name, self.last_words());
        }
        Ok(())
    }

    /// The id of the server's own process; only Linux tells.
    pub fn id(&self) -> anyhow::Result<u32> {
        let keeper = self.keeper.id();
        let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children"))?;
        // The keeper starts the server before anything else.
        let first = children.split_whitespace().next().context("it has ended")?;
        Ok(first.parse()?)
    }

    /// The end of the log.
    pub(super) fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // Nothing can be done about a keeper that cannot be waited for; it ends by itself.
        let _ = self.keeper.wait();
    }
}

fn keep(name: &str, binary: &Path, args: &[String], log: &Path) -> anyhow::Result<Child> {
    let output = File::options().append(true).open(log)?;
    Command::new("/bin/sh")
        .args(["-c", KEEPER, name])
        // There is memory enough for a few minutes; time is what is short.
        .env("GOGC", "400")
        .arg(binary)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("cannot start {name}"))
}

/// A token that nobody can guess.
pub(super) fn new_token() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Asks until the answer is good, a server has ended, or it took too long.
pub(super) async fn until_ready<T>(
    processes: &mut [Process],
    name: &str,
    mut ask: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + START;
    loop {
        let problem = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(problem) => problem,
        };
        for process in &mut *processes {
            process.check()?;
        }
        if Instant::now() > deadline {
            let words: Vec<_> = processes.iter().map(Process::last_words).collect();
            return Err(problem.context(format!("{name} is not ready; the servers say: {}", words.join("\n---\n"))));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
