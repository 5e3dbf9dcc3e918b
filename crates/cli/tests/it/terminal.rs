//! The built binary at a terminal, which script(1) of util-linux offers.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A process at a terminal of its own. Dropping it ends it: its terminal goes away.
pub struct Terminal {
    script: Child,
    keyboard: ChildStdin,
    screen: Receiver<Vec<u8>>,
    /// Everything it has shown so far.
    pub shown: String,
}

impl Terminal {
    /// Whether there is a program that offers terminals.
    pub fn is_here() -> bool {
        let version = Command::new("script").arg("--version").output();
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("util-linux"))
    }

    /// Starts a command line of the built binary.
    pub fn start(args: &[&str]) -> Self {
        let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
        let line = format!("stty cols 120 rows 40; exec '{}' {}", env!("CARGO_BIN_EXE_carrick"), quoted.join(" "));
        let mut script = Command::new("script")
            .args(["--quiet", "--flush", "--return", "--command", &line, "/dev/null"])
            .env("TERM", "xterm")
            .env_remove("RUST_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keyboard, mut output) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(number @ 1..) = output.read(&mut bytes) {
                if sender.send(bytes[..number].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { script, keyboard, screen, shown: String::new() }
    }

    /// Waits until a text is on the screen.
    pub fn until(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.shown.contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.screen.recv_timeout(left) else { panic!("no {text:?} in:\n{}", self.shown) };
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    /// Types.
    #[allow(dead_code, reason = "not every test needs it")]
    pub fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Waits until it has ended; its exit code.
    #[allow(dead_code, reason = "not every test needs it")]
    pub fn ended(mut self, patience: Duration) -> Option<i32> {
        let deadline = Instant::now() + patience;
        // The screen goes dark when nobody is left to write to it.
        loop {
            match self.screen.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it is still there:\n{}", self.shown),
            }
        }
        self.script.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already, if all went well.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
