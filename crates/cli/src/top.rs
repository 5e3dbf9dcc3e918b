//! `carrick top`: what an agent is doing, in a terminal.
//!
//! ```text
//!  dashboard ─▶ /state.json ─┬─▶ screen    one screen, fitted to the terminal
//!                            └─▶ -o json   as it is
//!  keyboard  ─▶ keys: q quits
//! ```

mod screen;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use carrick_process::printable::{painted, scrub};
use console::{Key, Term};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::agent_flags::search;
use crate::dashboard::reader::{Reader, ReaderFlags, dashboard_url};
use crate::ui::{Output, colours, print, print_json, waiting};
use crate::{logs, signals};
pub use screen::trouble;
use screen::{Size, text};

/// Show what an agent is doing, refreshed regularly; q quits.
///
/// Reads the dashboard of an agent that was started with --dashboard-address. It is read-only.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where the agent serves its dashboard: a URL, or host:port [default: that of carrick demo --keep or dev on this machine, else
    /// 127.0.0.1:8086]
    #[arg(value_name = "URL", conflicts_with = "address")]
    url: Option<String>,
    /// The same as URL
    #[arg(long, value_name = "URL", hide = true)]
    address: Option<String>,
    #[command(flatten)]
    reader: ReaderFlags,
    /// Seconds between two refreshes
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    every: u64,
    /// Print once and exit, which is also what happens when standard output is not a terminal
    #[arg(long)]
    once: bool,
    /// Output format; JSON is printed once
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

const EXAMPLES: &str = "\
Examples:
  api-syncagent … --dashboard-address :8086
  carrick top
      of carrick demo --keep, of carrick dev, or at 127.0.0.1:8086; else it
      prints the commands that lead to agents in clusters, such as
  kubectl -n kcp-system port-forward deployment/api-syncagent 8086 &
  carrick top http://127.0.0.1:8086
  carrick top https://dashboard.example.com --token-file token \\
    --certificate-authority ca.crt
  carrick top -o json | jq '.publishedResources[] | select(.failing)'";

/// Refreshes until stopped.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let out = Term::stdout();
    let given = args.address.or(args.url);
    let is_given = given.is_some();
    let url = match given {
        Some(url) => url,
        None => search::dashboard()?,
    };
    let url = format!("{}/state.json", dashboard_url(&url)?);
    let reader = Reader::new(args.reader)?;
    if !is_given && let Err(error) = look(&url, &reader).await {
        let forwarded = search::forwarding().await;
        return Err(if forwarded.is_empty() { error } else { anyhow::anyhow!("{error:#}\n{}", forwarded.trim_end()) });
    }
    let look = async |url: &str| look(url, &reader).await;
    if args.output == Output::Json {
        print_json(&waiting("asking the agent", look(&url)).await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.once || !out.is_term() {
        let size = Size { width: None, height: None, colours: colours() };
        print(&text(&waiting("asking the agent", look(&url)).await?, size));
        return Ok(ExitCode::SUCCESS);
    }
    let (mut keys, mut stopped) = (keys(&out), std::pin::pin!(signals::stop()));
    loop {
        // An agent that does not answer must not keep anybody from leaving.
        let refresh = async {
            let looked = look(&url).await;
            let (height, width) = out.size();
            let size = Size { width: Some(width.into()), height: Some(height.into()), colours: colours() };
            let shown = looked.map_or_else(|error| format!("{error:#}\n"), |state| text(&state, size));
            // If the terminal is gone, there is nobody to print for.
            let _ = out.clear_screen().and_then(|()| out.write_str(&painted(&shown)));
            tokio::time::sleep(Duration::from_secs(args.every.max(1))).await;
        };
        tokio::select! {
            told = &mut stopped => {
                restore(&out);
                told?;
                return Ok(ExitCode::SUCCESS);
            }
            Some(()) = keys.recv() => return Ok(ExitCode::SUCCESS),
            () = refresh => {}
        }
    }
}

/// What the dashboard says now.
async fn look(url: &str, reader: &Reader) -> anyhow::Result<Value> {
    let (status, text) = reader.get(url).await?;
    let advice = "pass --token-file or set CARRICK_DASHBOARD_TOKEN";
    ensure!(status != 401 && status != 403, "{url} asks to log in; {advice}. It says: {}", text.trim_end());
    let mut state: Value = serde_json::from_str(&text).unwrap_or_default();
    ensure!(status == 200 && state["agent"].is_object(), "{url} answers {status}, but is not a dashboard");
    scrub(&mut state);
    Ok(state)
}

/// Tells when somebody presses q or Escape. Reading a key blocks, so it has a thread of its own, which ends with the process.
fn keys(out: &Term) -> mpsc::UnboundedReceiver<()> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let out = out.clone();
    std::thread::spawn(move || {
        while let Ok(key) = out.read_key() {
            if matches!(key, Key::Char('q' | 'Q') | Key::Escape) {
                let _ = sender.send(());
                return;
            }
        }
    });
    receiver
}

/// A terminal whose reader was interrupted still waits for single keys; nobody could see what they type.
fn restore(out: &Term) {
    let _ = out.clear_line();
    #[cfg(unix)]
    let _ = std::process::Command::new("stty").arg("sane").status();
}
