//! Lines as an animated SVG: they appear one after the other, and what does not fit scrolls up.
#![allow(clippy::format_push_string)] // a few thousand bytes, written once

use std::time::Duration;

use super::screen::{Line, Look, Span};

/// How many lines are visible.
const ROWS: usize = 28;
/// Pixels of a character and of a line, and around all of them.
const WIDTH: f64 = 8.43;
const HEIGHT: usize = 19;
const MARGIN: usize = 16;
/// How long it plays, whatever the program took.
const LENGTH: Duration = Duration::from_secs(14);
/// How much of that goes by the clock; the rest is the same for each line, so that what came at once can be read.
const BY_CLOCK: f64 = 0.3;

const STYLE: &str = "\
text{font-family:ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:14px;fill:#d5dbe3}\
.b{font-weight:bold}.d{fill:#8b949e}.c31{fill:#ff7b72}.c32{fill:#3fb950}.c33{fill:#d29922}.c36{fill:#56d4dd}\
.l{opacity:0;animation:on 1ms linear both}@keyframes on{to{opacity:1}}";

/// The picture of a terminal in which a command was typed.
pub fn draw(command: &str, lines: &[Line], columns: usize) -> String {
    let typed = Line {
        at: Duration::ZERO,
        spans: vec![span("$ ", Look { dim: true, ..Look::default() }), span(command, Look::default())],
    };
    let shown: Vec<&Line> = std::iter::once(&typed).chain(lines).collect();
    let times = times(&shown.iter().map(|line| line.at).collect::<Vec<_>>());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "pixels")]
    let width = (columns as f64 * WIDTH) as usize + 2 * MARGIN;
    let (inner, height) = (ROWS * HEIGHT, ROWS * HEIGHT + 2 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{} in a terminal\">\n\
         <style>{STYLE}{}</style>\n<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#16191d\"/>\n\
         <svg x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{}\" height=\"{inner}\"><g class=\"s\">\n",
        escaped(command),
        scrolling(&times),
        width - 2 * MARGIN,
    );
    for (row, (line, at)) in shown.iter().zip(&times).enumerate() {
        let y = row * HEIGHT + HEIGHT - 5;
        let spans: String = line.spans.iter().map(tspan).collect();
        out += &format!(
            "<text class=\"l\" y=\"{y}\" xml:space=\"preserve\" style=\"animation-delay:{:.2}s\">{spans}</text>\n",
            at.as_secs_f64()
        );
    }
    out + "</g></svg>\n</svg>\n"
}

/// When each line appears.
fn times(real: &[Duration]) -> Vec<Duration> {
    let total = real.last().copied().unwrap_or_default().max(Duration::from_millis(1)).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a few dozen lines")]
    let share = |index: usize| (index + 1) as f64 / real.len() as f64;
    let one = |(index, at): (usize, &Duration)| {
        LENGTH.mul_f64(BY_CLOCK * at.as_secs_f64() / total + (1.0 - BY_CLOCK) * share(index))
    };
    real.iter().enumerate().map(one).collect()
}

/// Moves all lines up by one whenever another one does not fit. Whoever wants no motion sees the end.
fn scrolling(times: &[Duration]) -> String {
    let total = times.last().copied().unwrap_or_default();
    let steps = times.iter().enumerate().skip(ROWS);
    let up = |row: usize| format!("transform:translateY(-{}px)", (row + 1 - ROWS) * HEIGHT);
    let end = times.len().checked_sub(1).filter(|last| *last >= ROWS).map(up).unwrap_or_default();
    let mut frames = String::new();
    for (row, at) in steps {
        frames += &format!("{:.2}%{{{}}}", 100.0 * at.as_secs_f64() / total.as_secs_f64(), up(row));
    }
    format!(
        ".s{{{end};animation:up {:.2}s step-end both}}@keyframes up{{0%{{transform:none}}{frames}}}\
         @media(prefers-reduced-motion:reduce){{.l,.s{{animation:none;opacity:1}}}}",
        total.as_secs_f64()
    )
}

fn span(text: &str, look: Look) -> Span {
    Span { text: text.to_owned(), look }
}

fn tspan(span: &Span) -> String {
    let Look { bold, dim, colour } = span.look;
    let colour = colour.map(|colour| format!("c{colour}"));
    let classes: Vec<&str> =
        [bold.then_some("b"), dim.then_some("d"), colour.as_deref()].into_iter().flatten().collect();
    let text = escaped(&span.text);
    if classes.is_empty() { text } else { format!("<tspan class=\"{}\">{text}</tspan>", classes.join(" ")) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_order_and_their_distance() {
        let times = times(&[0, 0, 1, 2].map(Duration::from_secs));
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
        assert!(times[2] + times[0] > times[1] * 2, "{times:?}");
        assert_eq!(times[3], LENGTH);
    }

    #[test]
    fn what_was_printed_is_no_markup() {
        let line =
            Line { at: Duration::ZERO, spans: vec![span("a < b & \"c\"", Look { bold: true, ..Look::default() })] };
        assert!(draw("x", &[line], 80).contains("<tspan class=\"b\">a &lt; b &amp; &quot;c&quot;</tspan>"));
    }

    #[test]
    fn only_what_does_not_fit_scrolls() {
        let at = |count: u32| (1..=count).map(|n| Duration::from_secs(1) * n).collect::<Vec<_>>();
        let rows = u32::try_from(ROWS).unwrap();
        assert!(!scrolling(&at(rows)).contains("translateY"));
        assert!(scrolling(&at(rows + 2)).contains("100.00%{transform:translateY(-38px)}"));
    }
}
