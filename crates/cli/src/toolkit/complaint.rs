//! An error message with the faulty line and carets below it.

use console::{Term, measure_text_width, style};

use super::text::Text;

/// Lines longer than this many characters are shown in part.
const LONGEST: usize = 120;

/// An error to print.
#[derive(Debug)]
pub struct Complaint {
    message: String,
    place: Option<Box<Excerpt>>,
    hint: Option<String>,
}

/// A part of a line.
#[derive(Debug)]
struct Excerpt {
    /// The file, or what the text is.
    name: String,
    line: usize,
    column: usize,
    /// The line as it is shown: perhaps only a part of it.
    shown: String,
    /// Columns before the caret, and how many carets.
    before: usize,
    carets: usize,
}

impl Complaint {
    /// What is wrong, in a sentence without full stop.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None, hint: None }
    }

    /// The faulty part of the text: its first byte and its length.
    pub fn at(self, text: &Text, offset: usize, length: usize) -> Self {
        if text.content.is_empty() {
            return self;
        }
        Self { place: Some(Box::new(Excerpt::new(text, offset, length))), ..self }
    }

    /// What may help.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Prints it on standard error, in colour if that is a terminal.
    pub fn print(&self) {
        let colour = Term::stderr().is_term() && std::env::var_os("NO_COLOR").is_none();
        eprint!("{}", self.text(colour));
    }

    fn text(&self, colour: bool) -> String {
        let red = |text: &str| style(text.to_owned()).red().bold().force_styling(colour).to_string();
        let blue = |text: &str| style(text.to_owned()).blue().bold().force_styling(colour).to_string();
        let mut lines = vec![format!("{}: {}", red("error"), self.message)];
        let number = self.place.as_ref().map(|place| place.line.to_string()).unwrap_or_default();
        let (margin, bar) = (" ".repeat(number.len()), blue("|"));
        if let Some(place) = &self.place {
            let Excerpt { name, line, column, shown, before, carets } = &**place;
            lines.push(format!("{margin}{} {name}:{line}:{column}", blue("-->")));
            lines.push(format!("{margin} {bar}"));
            lines.push(format!("{} {bar} {shown}", blue(&number)));
            lines.push(format!("{margin} {bar} {}{}", " ".repeat(*before), red(&"^".repeat(*carets))));
        }
        if let Some(hint) = &self.hint {
            lines.push(format!("{margin} {} {hint}", blue("=")));
        }
        lines.join("\n") + "\n"
    }
}

impl Excerpt {
    fn new(text: &Text, offset: usize, length: usize) -> Self {
        let content = text.content.as_str();
        let start = floor(content, offset);
        let end = floor(content, offset.saturating_add(length)).max(start);
        let line_start = content[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = content[start..].find('\n').map_or(content.len(), |at| start + at);
        let (before, faulty) = (&content[line_start..start], &content[start..end.min(line_end)]);
        let after = &content[start + faulty.len()..line_end];
        let (left, middle, right) = cut(before, faulty, after);
        Self {
            name: text.name.clone(),
            line: 1 + content[..line_start].matches('\n').count(),
            column: 1 + before.chars().count(),
            before: measure_text_width(&left),
            carets: measure_text_width(&middle).max(1),
            shown: format!("{left}{middle}{right}"),
        }
    }
}

/// The last character boundary that is not after the offset.
fn floor(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The three parts of a line, without characters that would move the caret, and shortened to what fits on a screen.
fn cut(before: &str, faulty: &str, after: &str) -> (String, String, String) {
    let plain = |text: &str| text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<Vec<char>>();
    let (mut before, mut faulty, mut after) = (plain(before), plain(faulty), plain(after));
    if before.len() + faulty.len() + after.len() > LONGEST {
        if faulty.len() > LONGEST / 2 {
            faulty.truncate(LONGEST / 2);
            after = vec!['…'];
        }
        let room = (LONGEST - faulty.len()) / 2;
        if before.len() > room {
            before.drain(..before.len() - room);
            before.insert(0, '…');
        }
        if after.len() > room {
            after.truncate(room);
            after.push('…');
        }
    }
    let text = |part: Vec<char>| part.into_iter().collect();
    (text(before), text(faulty), text(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(content: &str, offset: usize, length: usize) -> String {
        let text = Text { name: "rule".into(), content: content.into() };
        Complaint::new("wrong").at(&text, offset, length).text(false)
    }

    #[test]
    fn the_caret_stands_below_the_faulty_part() {
        assert_eq!(shown("a bc d", 2, 2), "error: wrong\n --> rule:1:3\n  |\n1 | a bc d\n  |   ^^\n");
    }

    #[test]
    fn wide_letters_and_tabs_do_not_move_the_caret() {
        assert!(shown("é\t日本 x", 10, 1).ends_with("1 | é 日本 x\n  |        ^\n"));
    }

    #[test]
    fn other_lines_are_not_shown_and_spans_end_with_their_line() {
        let text = shown("one\ntwo three\nfour", 8, 100);
        assert!(text.ends_with("2 | two three\n  |     ^^^^^\n"), "{text}");
    }

    #[test]
    fn the_end_of_the_text_has_a_place() {
        for (content, offset) in [("ab", 2), ("ab\n", 3), ("é", 1), ("ab", 900)] {
            assert!(shown(content, offset, 5).contains('^'), "{content:?}");
        }
    }

    #[test]
    fn long_lines_are_shown_in_part() {
        let text = shown(&"x".repeat(5000), 2500, 3);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].chars().count() < LONGEST + 10, "{text}");
        assert_eq!(lines[4].trim_end_matches('^').len(), lines[4].len() - 3);
    }
}
