//! The built binary, running, and a folder for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A command line of the built binary.
pub fn carrick(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_carrick"));
    // What runs on this machine besides is not what a test means.
    command.args(args).env_remove("RUST_LOG").env("XDG_STATE_HOME", nothing_runs());
    command
}

/// A state folder for commands that are to find nothing that runs.
fn nothing_runs() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{}", uuid::Uuid::new_v4().simple()))
}

/// What kubectl says, or nothing if there is no kubectl here.
#[allow(dead_code, reason = "not every test needs it")]
pub fn kubectl(args: &[&str]) -> Option<Output> {
    Command::new("kubectl").args(args).env("HOME", env!("CARGO_TARGET_TMPDIR")).output().ok()
}

/// What a server answers at a path, without the head.
#[allow(dead_code, reason = "not every test needs it")]
pub fn get(url: &str, path: &str) -> String {
    get_as(url, url.trim_start_matches("http://"), path)
}

/// The same for a client that knows the server by another name.
#[allow(dead_code, reason = "not every test needs it")]
pub fn get_as(url: &str, host: &str, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// A process that is read line by line. Dropping it ends it.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    /// Everything it has printed so far.
    pub output: String,
}

impl Running {
    #[allow(dead_code, reason = "not every test needs it")]
    pub fn start(args: &[&str]) -> Self {
        let mut child = carrick(args).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        Self::reading(child, stdout)
    }

    /// The same where others look for what runs on this machine.
    #[allow(dead_code, reason = "not every test needs it")]
    pub fn start_noted(args: &[&str], state: &str) -> Self {
        let mut child = carrick(args).env("XDG_STATE_HOME", state).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        Self::reading(child, stdout)
    }

    /// The same for what it prints on stderr.
    #[allow(dead_code, reason = "not every test needs it")]
    pub fn start_for_stderr(args: &[&str]) -> Self {
        let mut child = carrick(args).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        Self::reading(child, stderr)
    }

    fn reading(child: Child, output: impl Read + Send + 'static) -> Self {
        let output = BufReader::new(output);
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines, output: String::new() }
    }

    /// Waits for a line that holds a text.
    pub fn until(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else { panic!("no {text:?} in:\n{}", self.output) };
            self.output.push_str(&line);
            self.output.push('\n');
            if line.contains(text) {
                return;
            }
        }
    }

    /// Waits until all of these texts have been printed, in any order.
    #[allow(dead_code, reason = "not every test needs it")]
    pub fn until_all(&mut self, texts: &[&str]) {
        for text in texts {
            if !self.output.contains(text) {
                self.until(text);
            }
        }
    }

    /// Sends a signal and returns the exit code and everything that was printed.
    pub fn stop(mut self, signal: &str) -> (Option<i32>, String) {
        let sent = Command::new("kill").args(["-s", signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.output.push_str(&line);
            self.output.push('\n');
        }
        let code = self.child.wait().unwrap().code();
        (code, std::mem::take(&mut self.output))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, if all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder of its own for each test, removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Path of something in it.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
