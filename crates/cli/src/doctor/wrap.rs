//! Long lines, made to fit. Pure.

/// A text in lines of at most that many characters, as far as its words allow.
pub fn text(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// A line of a fix: still good for the shell, with its comment above it and its flags on lines of their own where it would be too long.
pub fn command(line: &str, width: usize) -> Vec<String> {
    if line.chars().count() <= width {
        return vec![line.to_owned()];
    }
    if let Some((command, comment)) = line.split_once("    # ") {
        let mut lines: Vec<String> =
            self::text(comment, width - 2).into_iter().map(|line| format!("# {line}")).collect();
        lines.extend(self::command(command, width));
        return lines;
    }
    let is_command = ["kubectl ", "carrick ", "openssl ", "curl ", "for "];
    if !is_command.iter().any(|word| line.trim_start().starts_with(word)) {
        return self::text(line, width);
    }
    let mut lines: Vec<String> = Vec::new();
    for part in parts(line) {
        let room = width.saturating_sub(2);
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + part.chars().count() <= room => {
                last.push(' ');
                last.push_str(&part);
            }
            Some(_) => lines.push(format!("  {part}")),
            None => lines.push(part),
        }
    }
    let end = lines.len() - 1;
    lines.into_iter().enumerate().map(|(at, line)| if at < end { format!("{line} \\") } else { line }).collect()
}

/// A command in parts that may stand on lines of their own: split before flags, never inside of quotes.
fn parts(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quoted, mut before) = (false, None);
    for (at, letter) in line.char_indices() {
        quoted ^= letter == '\'';
        if letter == ' ' && !quoted && line[at + 1..].starts_with('-') && before.is_some() {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
        before = Some(letter);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_broken_between_words() {
        assert_eq!(text("one two three", 7), ["one two", "three"]);
        assert_eq!(text("https://a.very.long.word x", 5), ["https://a.very.long.word", "x"]);
        assert_eq!(text("", 5), [""]);
    }

    #[test]
    fn commands_stay_commands() {
        let long = "kubectl --server https://h/clusters/root:p patch apiexport e --type=merge -p '{\"a\": \"b --c\"}'";
        let lines = command(long, 60);
        assert_eq!(
            lines,
            [
                "kubectl --server https://h/clusters/root:p patch apiexport e \\",
                "  --type=merge -p '{\"a\": \"b --c\"}'",
            ]
        );
        assert_eq!(lines.join("\n").replace(" \\\n ", ""), long);
        assert_eq!(command("kubectl get pods    # is the agent running?", 20), ["# is the agent", "# running?", "kubectl get pods"]);
        assert_eq!(command("kubectl get pods    # short", 40), ["kubectl get pods    # short"]);
        assert_eq!(command("stop one of the two agents", 15), ["stop one of the", "two agents"]);
    }
}
