//! Colours for the lines of a report. Pure.

use console::{Style, style};

/// The report with colours: headings bold, errors red, doubts yellow, what would be done cyan.
pub fn paint(report: &str) -> String {
    report.lines().flat_map(|line| [painted(line), "\n".to_owned()]).collect()
}

fn painted(line: &str) -> String {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    if ["Agent ", "APIExport ", "PublishedResource "].iter().any(|heading| line.starts_with(heading)) {
        return style(line).bold().force_styling(true).to_string();
    }
    for (word, colour) in [
        ("error:", Style::new().red()),
        ("problem:", Style::new().red()),
        ("Incomplete:", Style::new().red()),
        ("doubtful:", Style::new().yellow()),
        ("waits:", Style::new().yellow()),
        ("changed:", Style::new().yellow()),
        ("objects are left alone:", Style::new().yellow()),
        ("would ", Style::new().cyan()),
    ] {
        if text.starts_with(word) {
            return format!("{indent}{}", colour.force_styling(true).apply_to(text));
        }
    }
    if text.split_once(". ").is_some_and(|(number, _)| number.parse::<usize>().is_ok()) {
        return format!("{indent}{}", style(text).cyan().force_styling(true));
    }
    // An object whose reconcile fails as a whole.
    match line.split_once(": error: ") {
        Some((object, error)) => format!("{object}: {}", style(format!("error: {error}")).red().force_styling(true)),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_nothing_but_the_look() {
        let report = "APIExport e\n  would add schemas a\n\nPublishedResource p\n  doubtful: d\n  root:a ns/o: error: no\n    1. create x\n    error: y\n  in line\n";
        let shown = paint(report);
        assert_eq!(console::strip_ansi_codes(&shown), report);
        let lines: Vec<&str> = shown.lines().collect();
        assert!([0, 1, 3, 4, 5, 6, 7].iter().all(|at| lines[*at].contains('\u{1b}')), "{shown:?}");
        assert!([2, 8].iter().all(|at| !lines[*at].contains('\u{1b}')), "{shown:?}");
        assert!(lines[5].starts_with("  root:a ns/o: \u{1b}[31merror"), "{shown:?}");
    }
}
