//! Server processes that end with the test run, whichever way it ends.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

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

/// One running server.
pub(super) struct Process {
    name: &'static str,
    log: PathBuf,
    keeper: Child,
}

impl Process {
    /// Starts a server; what it prints goes to a file in `folder`.
    pub(super) fn start(name: &'static str, binary: &Path, folder: &Path, args: &[String]) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log)?;
        let keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, name])
            .arg(binary)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, log, keeper })
    }

    /// An error with the end of the log if the server has ended.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.keeper.try_wait()? {
            anyhow::bail!("{} ended with {status}: {}", self.name, self.last_words());
        }
        Ok(())
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

/// Free ports on the loopback interface, all different.
pub(super) fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut held = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
