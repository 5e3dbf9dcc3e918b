//! Errors of templates and expressions with what helps their authors: what they may have meant, and the faulty part itself. Pure.

use super::suggest::nearest;

/// How many letters around the faulty part are shown.
const AROUND: usize = 30;

/// Why a template is refused, for its author.
pub fn template(text: &str, error: &carrick_template::CompileError) -> String {
    let meant = match error {
        carrick_template::CompileError::UnknownFunction { name, .. } => {
            nearest(name, carrick_template::reference::entries().into_iter().map(|entry| entry.name))
        }
        _ => None,
    };
    let place = error.position().map(|at| marked(text, at.offset, at.length));
    told(&error.to_string(), meant, place)
}

/// Why an expression is refused, for its author.
pub fn cel(text: &str, error: &carrick_cel::CompileError) -> String {
    let meant = match error {
        carrick_cel::CompileError::Undeclared { name, .. } => {
            let functions = carrick_cel::reference::entries().into_iter().map(|entry| entry.name);
            nearest(name, functions.chain(["self", "other", "value", "objects", "related"]))
        }
        _ => None,
    };
    let place = error.position().and_then(|at| {
        let before: usize = text.lines().take(at.line.saturating_sub(1)).map(|line| line.len() + 1).sum();
        let line = text.get(before..)?;
        let column = line.char_indices().nth(at.column.saturating_sub(1)).map_or(line.len(), |(offset, _)| offset);
        Some(marked(text, before + column, 1))
    });
    told(&error.to_string(), meant, place)
}

fn told(error: &str, meant: Option<&str>, place: Option<String>) -> String {
    let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    let place = place.map(|place| format!("; here: {place}")).unwrap_or_default();
    format!("{error}{meant}{place}")
}

/// The faulty part of a text between arrows, with what is around it, in one line.
fn marked(text: &str, offset: usize, length: usize) -> String {
    let start = floor(text, offset);
    let end = floor(text, offset.saturating_add(length)).max(start);
    let before: Vec<char> = text[..start].chars().collect();
    let after: Vec<char> = text[end..].chars().collect();
    let cut = |more: bool| if more { "…" } else { "" };
    let line =
        |part: &[char]| part.iter().map(|letter| if letter.is_control() { ' ' } else { *letter }).collect::<String>();
    let first = before.len().saturating_sub(AROUND);
    let last = after.len().min(AROUND);
    let faulty: Vec<char> = text[start..end].chars().take(2 * AROUND).collect();
    format!(
        "{}{}→{}←{}{}",
        cut(first > 0),
        line(&before[first..]),
        line(&faulty),
        line(&after[..last]),
        cut(last < after.len())
    )
}

/// The last character boundary that is not after the offset.
fn floor(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_function_is_shown_with_the_right_one() {
        let text = "{{ .Object.metadata.name | uper }}-x";
        let error = carrick_template::Template::compile(text).unwrap_err();
        let told = template(text, &error);
        assert!(told.contains("function \"uper\" does not exist; did you mean upper?"), "{told}");
        assert!(told.ends_with("; here: {{ .Object.metadata.name | →uper← }}-x"), "{told}");
    }

    #[test]
    fn a_misspelt_variable_of_cel_is_shown_with_the_right_one() {
        let text = "1 + slef.spec.size";
        let error = carrick_cel::Mutation::compile(text).unwrap_err();
        let told = cel(text, &error);
        assert!(told.contains("did you mean self?") && told.contains("here: 1 + →s←lef"), "{told}");
    }

    #[test]
    fn long_texts_are_shown_in_part_and_in_one_line() {
        let text = format!("{}\n{{{{ uper }}}}{}", "é".repeat(100), "x".repeat(100));
        let error = carrick_template::Template::compile(&text).unwrap_err();
        let told = template(&text, &error);
        assert!(told.contains("…é") && told.ends_with('…') && !told.contains('\n'), "{told}");
        assert!(told.chars().count() < 200, "{told}");
    }
}
