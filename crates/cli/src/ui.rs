//! What a command prints: headings, steps with their time, details. On a terminal with colours and a spinner, otherwise
//! as plain text.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use carrick_process::printable::{self, painted};
use clap::ValueEnum;
use console::{Term, style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// How long a step may take, also on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(30);
/// What takes longer is announced.
const MOMENT: Duration = Duration::from_millis(700);
/// Details begin below the text of their step.
const INDENT: &str = "               ";

/// What a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Where a command prints to.
#[derive(Debug, Clone)]
pub struct Ui {
    out: Term,
    spinner: bool,
    colour: bool,
}

/// Something that must be observed before its deadline.
#[derive(Debug)]
pub struct Step {
    doing: String,
    expected: String,
    hint: String,
    limit: Duration,
}

/// A step that succeeded: the line to show for it, more lines, and a value for later steps.
#[derive(Debug)]
pub struct Done<T> {
    text: String,
    details: Vec<String>,
    value: T,
}

/// What was observed last while waiting.
#[derive(Debug, Default)]
pub struct Observed(Mutex<String>);

/// A step failed; the reason has been printed.
#[derive(Debug)]
pub struct Failed;

impl Step {
    /// A step: what is being done, as text for the spinner, and the expected result.
    pub fn new(doing: impl Into<String>, expected: impl Into<String>) -> Self {
        let hint = "run again with --verbose to see what the servers and the agent log".to_owned();
        Self { doing: doing.into(), expected: expected.into(), hint, limit: LIMIT }
    }

    /// What to try if it fails, instead of reading the log.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// Another deadline than the usual one.
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }
}

impl Done<()> {
    /// A result without a value for later steps.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), details: Vec::new(), value: () }
    }
}

impl<T> Done<T> {
    /// With lines below.
    pub fn details(self, lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { details: lines.into_iter().map(Into::into).collect(), ..self }
    }

    /// With something for later steps.
    pub fn with<U>(self, value: U) -> Done<U> {
        Done { text: self.text, details: self.details, value }
    }
}

impl Observed {
    /// Records what is observed now.
    pub fn note(&self, what: impl Display) {
        let text = what.to_string();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != text {
            tracing::info!("waiting: {text}");
            *last = text;
        }
    }

    fn text(&self) -> String {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if text.is_empty() { "nothing".to_owned() } else { text }
    }
}

impl Ui {
    /// Standard output, as a terminal if it is one. No spinner if log lines go to the same terminal.
    pub fn new(logs: bool) -> Self {
        let out = Term::stdout();
        let terminal = out.is_term() && !is_dumb();
        Self { out, spinner: terminal && !logs, colour: terminal && std::env::var_os("NO_COLOR").is_none() }
    }

    /// Whether printed lines can be redrawn.
    pub fn is_live(&self) -> bool {
        self.spinner
    }

    /// Whether colours are wanted.
    pub fn has_colours(&self) -> bool {
        self.colour
    }

    /// Prints one line.
    pub fn line(&self, text: impl Display) {
        // If the reader has closed the pipe, there is nobody to print for.
        let _ = self.out.write_line(&painted(&text.to_string()));
    }

    /// Prints a line in bold, with an empty line before it.
    pub fn heading(&self, text: &str) {
        self.line(format_args!("\n{}", style(text).bold().force_styling(self.colour)));
    }

    /// Prints text that matters less.
    pub fn dim(&self, text: &str) {
        self.line(style(text).dim().force_styling(self.colour));
    }

    /// A command to type.
    pub fn command(&self, text: &str) {
        self.line(format_args!("  {}", style(text).cyan().force_styling(self.colour)));
    }

    /// Runs a step to its end or deadline and prints how it went.
    pub async fn step<T>(
        &self,
        step: Step,
        work: impl AsyncFnOnce(&Observed) -> anyhow::Result<Done<T>>,
    ) -> Result<T, Failed> {
        let started = Instant::now();
        let spinner = self.spinner.then(|| spin(&self.out, &step.doing));
        let seen = Observed::default();
        let ended = tokio::time::timeout(step.limit, work(&seen)).await;
        if let Some(spinner) = spinner {
            spinner.finish_and_clear();
        }
        let time = started.elapsed().as_millis();
        let problem = match ended {
            Ok(Ok(done)) => {
                let mark = style("✓").green().force_styling(self.colour);
                let time = style(format!("{time:>6} ms")).dim().force_styling(self.colour);
                self.line(format_args!("  {mark} {time}  {}", done.text));
                for detail in done.details {
                    self.dim(&format!("{INDENT}{detail}"));
                }
                return Ok(done.value);
            }
            Ok(Err(error)) => printable::one_line(&format!("{error:#}")).into_owned(),
            Err(_) => format!("{} (waited {} s)", printable::one_line(&seen.text()), step.limit.as_secs_f64()),
        };
        let mark = style("✗").red().bold().force_styling(self.colour);
        self.line(format_args!("  {mark} {time:>6} ms  {}", step.doing));
        for (what, text) in [("expected", &step.expected), ("last seen", &problem), ("try", &step.hint)] {
            self.line(format_args!("{INDENT}{what:<9}  {text}"));
        }
        Err(Failed)
    }
}

/// Whether to print in colours.
pub fn colours() -> bool {
    console::colors_enabled() && std::env::var_os("NO_COLOR").is_none()
}

/// Prints text. Whatever in it acts on a terminal, other than by colours, is shown instead: much of it was written by others.
pub fn print(text: &str) {
    // If the reader has closed the pipe, there is nobody to print for.
    let _ = std::io::stdout().lock().write_all(painted(text).as_bytes());
}

/// Prints something for programs.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&(printable::json(&serde_json::to_string_pretty(value)?).into_owned() + "\n"));
    Ok(())
}

/// Prints text for people on standard error, in the same way.
pub fn print_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(painted(text).as_bytes());
}

/// Asks on standard error; an error if nobody can answer.
pub fn confirmed(question: &str) -> anyhow::Result<bool> {
    anyhow::ensure!(std::io::stdin().is_terminal(), "nobody can be asked here; say --yes to go on");
    print_error(&format!("{question} [y/N] "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Asks on standard error for a word that nobody types by accident; an error if nobody can answer.
pub fn typed(word: &str, why: &str) -> anyhow::Result<bool> {
    anyhow::ensure!(std::io::stdin().is_terminal(), "nobody can be asked here");
    print_error(&format!("{why}\nType {word} to go on: "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(answer.trim() == word)
}

/// Waits for something, with a spinner on a terminal's standard error if it takes more than a moment.
pub async fn waiting<T>(text: &str, work: impl Future<Output = T>) -> T {
    telling(text, async |_| work.await).await
}

/// What is being done, for whoever waits.
pub struct Doing(ProgressBar);

impl Doing {
    /// Something else is being done now.
    pub fn now(&self, text: impl Display) {
        self.0.set_message(printable::one_line(&text.to_string()).into_owned());
    }
}

/// The same for work that tells how far it is.
pub async fn telling<T>(text: &str, work: impl AsyncFnOnce(&Doing) -> T) -> T {
    let (err, doing) = (Term::stderr(), Doing(spinner(text)));
    let mut work = std::pin::pin!(work(&doing));
    if !err.is_term() || is_dumb() {
        return work.await;
    }
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(MOMENT) => show(&doing.0, &err),
    }
    let done = work.await;
    doing.0.finish_and_clear();
    done
}

/// Whether the terminal cannot draw a line again.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// A spinner that is not shown yet.
fn spinner(text: &str) -> ProgressBar {
    let bar = ProgressBar::hidden();
    // A bad template would only look worse.
    if let Ok(style) = ProgressStyle::with_template("  {spinner:.cyan}            {msg}") {
        bar.set_style(style.tick_strings(&["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏", " "]));
    }
    bar.set_message(text.to_owned());
    bar
}

fn show(bar: &ProgressBar, out: &Term) {
    bar.set_draw_target(ProgressDrawTarget::term(out.clone(), 20));
    bar.enable_steady_tick(Duration::from_millis(80));
}

fn spin(out: &Term, text: &str) -> ProgressBar {
    let bar = spinner(text);
    show(&bar, out);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user interface that prints into a buffer.
    fn plain() -> Ui {
        Ui { out: Term::buffered_stdout(), spinner: false, colour: false }
    }

    #[tokio::test]
    async fn a_step_hands_on_what_it_found() {
        let step = Step::new("counting", "three");
        let got = plain().step(step, async |_| Ok(Done::new("three").with(3))).await;
        assert!(matches!(got, Ok(3)));
    }

    #[tokio::test]
    async fn a_step_that_takes_too_long_fails() {
        let step = Step::new("waiting", "the end").limit(Duration::from_millis(5));
        let got = plain()
            .step(step, async |seen| {
                seen.note("no end in sight");
                std::future::pending::<anyhow::Result<Done<()>>>().await
            })
            .await;
        assert!(got.is_err());
    }

    #[test]
    fn nothing_seen_is_said_so() {
        assert_eq!(Observed::default().text(), "nothing");
    }
}
