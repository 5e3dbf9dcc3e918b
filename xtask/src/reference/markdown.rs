//! Texts as they stand in tables of Markdown.

/// A text that begins with a capital.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A sentence in a table.
pub fn sentence(text: &str) -> String {
    let text = capital(text).replace('|', "\\|").replace('\n', " ");
    let text = if text.contains('`') { text } else { text.replace('<', "&lt;") };
    if text.ends_with('.') { text } else { text + "." }
}

/// Code in a table. Ends of lines are shown.
pub fn code(text: &str) -> String {
    if text.is_empty() {
        return "*nothing*".to_owned();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    let text = text.replace('|', "\\|").replace('\n', "↵").replace('\t', "⇥");
    format!("{fence}{space}{text}{space}{fence}")
}

/// The row of a flag: its names, its value, its default, what it does.
pub fn flag(names: &str, value: &str, flag: &clap::Arg) -> String {
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    // Derived defaults are told in the text.
    let (help, derived) = match help.split_once(" [default: ") {
        Some((help, default)) => (help.to_owned(), default.trim_end_matches(']').to_owned()),
        None => (help, String::new()),
    };
    let default = flag.get_default_values().first().and_then(|value| value.to_str()).unwrap_or_default();
    let default = if default.is_empty() { derived } else { default.to_owned() };
    let default = if default.is_empty() { String::new() } else { code(&default) };
    ["| ", names, " | ", value, " | ", &default, " | ", &sentence(&help), " |\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_survives_tables() {
        for (text, wanted) in
            [("a | b", "`a \\| b`"), ("`a`", "`` `a` ``"), ("", "*nothing*"), ("a\nb", "`a↵b`"), (" a", "`  a `")]
        {
            assert_eq!(code(text), wanted);
        }
    }
}
