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
    let is_command = ["kubectl ", "carrick ", "openssl ", "curl ", "for ", "echo "];
    if !is_command.iter().any(|word| line.trim_start().starts_with(word)) {
        return self::text(line, width);
    }
    let indent = &line[..line.len() - line.trim_start().len()];
    let mut lines: Vec<String> = Vec::new();
    for word in words(line.trim_start()) {
        // Room for the backslash.
        match lines.last_mut() {
            Some(last) if last.chars().count() + 3 + word.chars().count() <= width => {
                last.push(' ');
                last.push_str(&word);
            }
            Some(_) => lines.push(format!("{indent}  {word}")),
            None => lines.push(format!("{indent}{word}")),
        }
    }
    let end = lines.len().saturating_sub(1);
    lines.into_iter().enumerate().map(|(at, line)| if at < end { format!("{line} \\") } else { line }).collect()
}

/// The words of a command; what is in quotes is part of one word.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        quoted ^= letter == '\'';
        match words.last_mut() {
            Some(word) if letter != ' ' || quoted => word.push(letter),
            _ => words.push(String::new()),
        }
    }
    words
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
                "kubectl --server https://h/clusters/root:p patch apiexport \\",
                "  e --type=merge -p '{\"a\": \"b --c\"}'",
            ]
        );
        assert_eq!(lines.join("\n").replace(" \\\n ", ""), long);
        assert_eq!(
            command("kubectl get pods    # is the agent running?", 20),
            ["# is the agent", "# running?", "kubectl get pods"]
        );
        let inside = command("  kubectl get one two three four five", 24);
        assert_eq!(inside, ["  kubectl get one two \\", "    three four five"]);
        assert_eq!(command("kubectl get pods    # short", 40), ["kubectl get pods    # short"]);
        let piped = command("echo '{\"a\": 1}' | kubectl apply -f -", 24);
        assert_eq!(piped, ["echo '{\"a\": 1}' | \\", "  kubectl apply -f -"]);
        assert_eq!(command("stop one of the two agents", 15), ["stop one of the", "two agents"]);
    }
}
