//! Prints what happens. On a terminal, a table is redrawn below the log lines; elsewhere there are only log lines.

use std::collections::BTreeSet;
use std::time::Instant;

use console::{Term, measure_text_width, style, truncate_str};

use super::board::{self, BoardRow, Health, Turn};
use crate::doctor::wrap;
use crate::ui::Ui;

/// Where the text of a line begins, behind its time and its mark.
const INDENT: usize = 12;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Something was done.
    Done,
    /// Something is wrong.
    Wrong,
    /// Something has changed on its own.
    News,
}

/// Where it is printed.
#[derive(Debug)]
pub struct Screen {
    ui: Ui,
    out: Term,
    started: Instant,
    entries: Vec<BoardRow>,
    problems: BTreeSet<String>,
    /// How many lines of the table are on the terminal.
    drawn: usize,
}

impl Screen {
    /// A screen with nothing on it.
    pub fn new(ui: Ui) -> Self {
        Self {
            ui,
            out: Term::stdout(),
            started: Instant::now(),
            entries: Vec::new(),
            problems: BTreeSet::new(),
            drawn: 0,
        }
    }

    /// Prints one line about something that just happened.
    pub fn say(&mut self, mark: Mark, text: &str) {
        self.wipe();
        let time = format!("{:>7.1} s", self.started.elapsed().as_secs_f64());
        let time = style(time).dim().force_styling(self.ui.has_colours());
        let mark = match mark {
            Mark::Done => style("✓").green(),
            Mark::Wrong => style("✗").red().bold(),
            Mark::News => style("·").cyan(),
        };
        let mark = mark.force_styling(self.ui.has_colours());
        self.ui.line(format_args!("{time} {mark} {}", hanging(text, self.width())));
        self.draw();
    }

    /// Shows the current state of everything.
    pub fn show(&mut self, entries: Vec<BoardRow>) {
        if entries == self.entries {
            return;
        }
        let before = std::mem::replace(&mut self.entries, entries);
        let now = self.entries.clone();
        let (changed, gone) = board::news(&before, &now);
        if self.ui.is_live() {
            self.wipe();
            self.draw();
            // The table has no room for whole errors.
            for entry in &changed {
                match board::turn(&before, entry) {
                    Turn::Wrong => self.say(Mark::Wrong, &format!("{} {}: {}", entry.what, entry.name, entry.text)),
                    Turn::Fixed => self.say(Mark::Done, &format!("{} {}: fixed", entry.what, entry.name)),
                    Turn::None => {}
                }
            }
            return;
        }
        for entry in changed {
            let mark = match board::turn(&before, entry) {
                Turn::Wrong => Mark::Wrong,
                Turn::Fixed => Mark::Done,
                Turn::None => Mark::News,
            };
            self.say(mark, &format!("{} {}: {}", entry.what, entry.name, entry.text));
        }
        for entry in gone {
            let end = if entry.what == "agent" { "works again" } else { "gone" };
            self.say(Mark::News, &format!("{} {}: {end}", entry.what, entry.name));
        }
    }

    /// Shows what is wrong with the files now; each new problem gets a line of its own.
    pub fn complain(&mut self, problems: BTreeSet<String>) {
        let before = std::mem::replace(&mut self.problems, problems);
        let new: Vec<String> = self.problems.difference(&before).cloned().collect();
        let fixed: Vec<String> = before.difference(&self.problems).cloned().collect();
        // The same file with another problem is not fixed.
        let subject = |problem: &str| problem.split(": ").next().unwrap_or_default().to_owned();
        for problem in fixed.iter().filter(|problem| !new.iter().any(|new| subject(new) == subject(problem))) {
            self.say(Mark::Done, &format!("fixed: {problem}"));
        }
        for problem in new {
            self.say(Mark::Wrong, &format!("{problem}; the objects applied before stay"));
        }
    }

    /// How many columns there are, if somebody looks at them.
    pub fn width(&self) -> Option<usize> {
        self.ui.is_live().then(|| usize::from(self.out.size().1))
    }

    /// Removes the table, which is no longer needed.
    pub fn end(&mut self) {
        self.wipe();
        self.entries.clear();
        self.problems.clear();
    }

    fn wipe(&mut self) {
        // If the terminal is gone, there is nothing to erase.
        let _ = self.out.clear_last_lines(std::mem::take(&mut self.drawn));
    }

    fn draw(&mut self) {
        if !self.ui.is_live() {
            return;
        }
        let (height, width) = self.out.size();
        let lines = table(&self.entries, &self.problems, self.ui.has_colours());
        // Lines that have scrolled off the screen cannot be erased.
        for line in lines.iter().take(usize::from(height).saturating_sub(2)) {
            self.ui.line(truncate_str(line, usize::from(width).saturating_sub(1), "…"));
            self.drawn += 1;
        }
    }
}

/// A text behind a time and a mark: where the terminal is narrower, it goes on below its own beginning. Pure.
fn hanging(text: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if text.chars().count() + INDENT >= width => {
            wrap::text(text, width.saturating_sub(INDENT + 1)).join(&format!("\n{:INDENT$}", ""))
        }
        _ => text.to_owned(),
    }
}

/// The addresses of what runs, each with the kubeconfig that leads there, below each other where the terminal is too narrow. Pure.
pub fn addresses(rows: &[(&str, String, String)], width: Option<usize>) -> Vec<String> {
    let widest = rows.iter().map(|(_, url, _)| url.chars().count()).max().unwrap_or_default();
    let beside: Vec<String> = rows
        .iter()
        .map(|(what, url, kubeconfig)| format!("{what:<22}{url:<widest$}  {kubeconfig}").trim_end().to_owned())
        .collect();
    if width.is_none_or(|width| beside.iter().all(|line| line.chars().count() < width)) {
        return beside;
    }
    let below = |text: &String| Some(format!("  {text}")).filter(|_| !text.is_empty());
    let lines = rows.iter().flat_map(|(what, url, kubeconfig)| {
        std::iter::once((*what).to_owned()).chain(below(url)).chain(below(kubeconfig))
    });
    lines.collect()
}

/// The table: published kinds, objects, and files that are wrong. Pure.
fn table(entries: &[BoardRow], problems: &BTreeSet<String>, colours: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (what, heading) in [("agent", "AGENT"), ("published", "PUBLISHED"), ("object", "OBJECT")] {
        let of_kind: Vec<&BoardRow> = entries.iter().filter(|entry| entry.what == what).collect();
        if of_kind.is_empty() {
            continue;
        }
        let widest = of_kind.iter().map(|entry| measure_text_width(&entry.name)).max().unwrap_or_default();
        let width = widest.max(heading.len());
        lines.push(String::new());
        lines.push(style(format!("  {heading:<width$}  STATE")).dim().force_styling(colours).to_string());
        for entry in of_kind {
            let text = style(&entry.text);
            let text = match entry.health {
                Health::Well => text,
                Health::Waits => text.yellow(),
                Health::Wrong => text.red(),
            };
            lines.push(format!("  {:<width$}  {}", entry.name, text.force_styling(colours)));
        }
    }
    if !problems.is_empty() {
        lines.push(String::new());
        lines.extend(
            problems.iter().map(|problem| style(format!("  ✗ {problem}")).red().force_styling(colours).to_string()),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_below_their_beginning_at_80_and_120_columns() {
        let text = "crd.yaml: the CRD buckets.example.com is not valid: spec.versions[0].schema is missing; ".repeat(2);
        for width in [80, 120] {
            let shown = format!("{:INDENT$}{}", "", hanging(text.trim(), Some(width)));
            let lines: Vec<&str> = shown.lines().collect();
            assert!(lines.len() > 1 && lines.iter().all(|line| line.starts_with(&" ".repeat(INDENT))), "{shown}");
            assert!(lines.iter().all(|line| line.chars().count() < width), "{shown}");
            assert!(lines[0].chars().count() > width - 25, "{shown}");
        }
        assert_eq!(hanging("short   as it is", Some(80)), "short   as it is");
        assert_eq!(hanging(&text, None), text, "nobody looks at a file through a narrow terminal");
    }

    #[test]
    fn addresses_are_below_each_other_where_they_do_not_fit_beside() {
        let row = |what, url: &str, file: &str| (what, url.to_owned(), file.to_owned());
        let rows = [
            row(
                "consumer's workspace",
                "https://127.0.0.1:40123/clusters/root:consumer",
                "/tmp/carrick-dev/consumer.kubeconfig",
            ),
            row("dashboard", "http://127.0.0.1:40125", ""),
        ];
        let wide = addresses(&rows, Some(120));
        assert_eq!((wide.len(), &wide), (2, &addresses(&rows, None)));
        assert!(wide.iter().all(|line| line.len() < 120), "{wide:?}");
        assert_eq!(
            addresses(&rows, Some(80)),
            [
                "consumer's workspace",
                "  https://127.0.0.1:40123/clusters/root:consumer",
                "  /tmp/carrick-dev/consumer.kubeconfig",
                "dashboard",
                "  http://127.0.0.1:40125",
            ]
        );
    }

    #[test]
    fn a_table_has_a_row_for_everything_and_wrong_files_below() {
        let entry =
            |what, name: &str| BoardRow { what, name: name.to_owned(), text: "text".to_owned(), health: Health::Well };
        let problems = BTreeSet::from(["f.yaml: no".to_owned()]);
        let lines = table(&[entry("published", "buckets"), entry("object", "buckets default/a")], &problems, false);
        assert_eq!(
            lines,
            [
                "",
                "  PUBLISHED  STATE",
                "  buckets    text",
                "",
                "  OBJECT             STATE",
                "  buckets default/a  text",
                "",
                "  ✗ f.yaml: no",
            ]
        );
    }
}
