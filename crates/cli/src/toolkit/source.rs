//! Where expressions and data come from.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use clap::error::ErrorKind;
use serde_json::Value;

use super::complaint::Complaint;
use super::text::Text;

/// The argument that stands for standard input.
const STDIN: &str = "-";

/// The expression, from the argument or from a file. The command line makes sure that there is exactly one of them.
pub fn expression(what: &str, argument: Option<String>, file: Option<&str>) -> Result<Text, Complaint> {
    match (argument, file) {
        (Some(content), _) => Ok(Text { name: what.to_owned(), content }),
        (None, Some(file)) => read(file),
        (None, None) => Err(Complaint::new(format!("there is no {what}"))),
    }
}

/// Data in YAML or JSON, from a file or standard input, or from the argument itself.
pub fn data(argument: &str) -> Result<Value, Complaint> {
    parse(&data_text(argument)?)
}

/// The text of data.
pub fn data_text(argument: &str) -> Result<Text, Complaint> {
    if argument == STDIN || Path::new(argument).exists() || !looks_inline(argument) {
        return read(argument).map_err(|complaint| {
            complaint.hint("give a file, - for standard input, or JSON such as '{\"a\": 1}', '[1]', '\"text\"' or 5")
        });
    }
    Ok(Text { name: "argument".to_owned(), content: argument.to_owned() })
}

/// Exits if more than one input is to be read from standard input.
pub fn at_most_one_from_stdin(arguments: &[Option<&String>]) {
    if arguments.iter().flatten().filter(|argument| **argument == STDIN).count() > 1 {
        let told = "standard input (-) can be only one of the inputs\n";
        clap::Error::raw(ErrorKind::ArgumentConflict, told).exit();
    }
}

/// The value of a text in JSON or YAML.
pub fn parse(text: &Text) -> Result<Value, Complaint> {
    // JSON is YAML, but its own parser keeps more digits and has better messages.
    if text.content.trim_start().starts_with(['{', '[', '"']) {
        match serde_json::from_str(&text.content) {
            Ok(value) => return Ok(value),
            Err(error) if Path::new(&text.name).extension().is_some_and(|extension| extension == "json") => {
                let offset = text.offset(error.line(), error.column());
                return Err(Complaint::new(format!("this is not valid JSON: {error}")).at(text, offset, 1));
            }
            Err(_) => {}
        }
    }
    serde_saphyr::from_str(&text.content).map_err(|error| {
        let error = error.without_snippet();
        let complaint = Complaint::new(format!("this is not valid YAML: {error}"));
        let count = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        match error.location() {
            Some(at) => complaint.at(text, text.offset(count(at.line()), count(at.column())), 1),
            None => complaint,
        }
    })
}

fn read(file: &str) -> Result<Text, Complaint> {
    if file == STDIN {
        let mut content = String::new();
        return match std::io::stdin().read_to_string(&mut content) {
            Ok(_) => Ok(Text { name: "standard input".to_owned(), content }),
            Err(error) => Err(Complaint::new(format!("cannot read standard input: {error}"))),
        };
    }
    match std::fs::read_to_string(file) {
        Ok(content) => Ok(Text { name: file.to_owned(), content }),
        Err(error) => Err(Complaint::new(format!("cannot read {file}: {error}"))),
    }
}

/// Whether an argument is data rather than the name of a missing file: a single word could be either.
fn looks_inline(argument: &str) -> bool {
    argument.starts_with(['{', '[', '"', '\''])
        || argument.contains(['\n'])
        || argument.contains(": ")
        || argument.parse::<f64>().is_ok()
        || matches!(argument, "true" | "false" | "null" | "")
}

/// The data of a question: its own, the data that all questions share, or the element of it that the question refers to by number.
pub fn shared(own: Option<Value>, shared: Option<&Value>) -> Cow<'_, Value> {
    match (own, shared) {
        (None, None) => Cow::Owned(Value::Null),
        (None, Some(shared)) => Cow::Borrowed(shared),
        (Some(Value::Number(number)), Some(Value::Array(elements))) => {
            let element = number.as_u64().and_then(|at| elements.get(usize::try_from(at).ok()?));
            element.map_or(Cow::Owned(Value::Number(number)), Cow::Borrowed)
        }
        (Some(own), _) => Cow::Owned(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str) -> Text {
        Text { name: "rule".into(), content: content.into() }
    }

    #[test]
    fn words_are_files_and_everything_else_is_data() {
        for (argument, inline) in [
            ("obj.yaml", false),
            ("a b", false),
            ("{}", true),
            ("[1]", true),
            ("1.5", true),
            ("a: 1", true),
            ("null", true),
        ] {
            assert_eq!(looks_inline(argument), inline, "{argument}");
        }
    }

    #[test]
    fn data_is_json_or_yaml() {
        for (content, wanted) in [
            (r#"{"a": 12345678901234567890}"#, Some(serde_json::json!({"a": 12_345_678_901_234_567_890_u64}))),
            ("a: [1, x]", Some(serde_json::json!({"a": [1, "x"]}))),
            ("{a: 1}", Some(serde_json::json!({"a": 1}))),
            ("a: [", None),
        ] {
            assert_eq!(parse(&text(content)).ok(), wanted, "{content}");
        }
    }

    #[test]
    fn questions_have_own_data_or_share_it() {
        let (list, map) = (serde_json::json!(["a", "b"]), serde_json::json!({"a": 1}));
        for (own, all, wanted) in [
            (None, None, Value::Null),
            (None, Some(&map), map.clone()),
            (Some(Value::from(1)), Some(&list), "b".into()),
            (Some(Value::from(7)), Some(&list), 7.into()),
            (Some(Value::from(1)), Some(&map), 1.into()),
            (Some(map.clone()), Some(&list), map.clone()),
        ] {
            assert_eq!(*shared(own.clone(), all), wanted, "{own:?}");
        }
    }
}
