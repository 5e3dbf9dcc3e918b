//! The JSON paths of printer columns: `.spec.size`, `.items[0].name`, `.conditions[?(@.type=="Ready")].status`.

use std::cmp::Ordering;

use serde_json::Value;

/// All values at a path.
pub(crate) fn select<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let trimmed = path.trim();
    let inner = trimmed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(trimmed);
    let mut found = vec![value];
    for step in steps(inner.strip_prefix('$').unwrap_or(inner)) {
        found = found.into_iter().flat_map(|value| step.apply(value)).collect();
    }
    found
}

/// The text shown for a path; several values are joined by commas as kubectl does.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value as it is printed into a column of texts: lists and maps as JSON.
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Number(number) if number.is_f64() => {
            carrick_go::float::format(number.as_f64().unwrap_or(0.0), 'g', None)
        }
        Value::Array(_) | Value::Object(_) => carrick_json::go::to_string(value).unwrap_or_default(),
        other => text(other),
    }
}

#[derive(Debug, PartialEq)]
enum Segment {
    Field(String),
    Index(i64),
    /// From, up to and excluding, and every how many items.
    Slice(Option<i64>, Option<i64>, usize),
    All,
    Filter {
        path: String,
        operator: &'static str,
        wanted: Value,
    },
    /// Not understood: selects nothing.
    Nothing,
}

impl Segment {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Field(name), Value::Object(map)) => map.get(name).into_iter().collect(),
            (Self::Index(index), Value::Array(list)) => {
                let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
                let place = if *index < 0 { list.len().checked_sub(distance) } else { Some(distance) };
                place.and_then(|place| list.get(place)).into_iter().collect()
            }
            (Self::Slice(from, to, step), Value::Array(list)) => {
                let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
                let place = |at: i64| usize::try_from(if at < 0 { at + length } else { at }).ok();
                let range = place(from.unwrap_or(0)).zip(place(to.unwrap_or(length)));
                // What reaches beyond the list selects nothing.
                let items = range.and_then(|(from, to)| list.get(from..to)).unwrap_or_default();
                items.iter().step_by(*step).collect()
            }
            (Self::All, Value::Array(list)) => list.iter().collect(),
            (Self::All, Value::Object(map)) => map.values().collect(),
            (Self::Filter { path, operator, wanted }, Value::Array(list)) => {
                list.iter().filter(|item| compare(select(item, path).first().copied(), operator, wanted)).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn compare(found: Option<&Value>, operator: &str, wanted: &Value) -> bool {
    match operator {
        "" => found.is_some(),
        "==" => found == Some(wanted),
        "!=" => found.is_some_and(|found| found != wanted),
        _ => found.and_then(|found| order(found, wanted)).is_some_and(|order| match operator {
            "<" => order.is_lt(),
            ">" => order.is_gt(),
            "<=" => order.is_le(),
            _ => order.is_ge(),
        }),
    }
}

/// How two numbers or two texts compare.
fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64()?.partial_cmp(&other.as_f64()?),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

fn steps(path: &str) -> Vec<Segment> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let Some(end) = closing(after) else { return vec![Segment::Nothing] };
            steps.push(bracket(&after[..end]));
            rest = &after[end + 1..];
        } else {
            let after = rest.strip_prefix('.').unwrap_or(rest);
            let (name, left) = field(after);
            if name == "*" {
                steps.push(Segment::All);
            } else if !name.is_empty() {
                steps.push(Segment::Field(name));
            } else if left.len() == rest.len() {
                return vec![Segment::Nothing];
            }
            rest = left;
        }
    }
    steps
}

/// The position of the bracket that closes the one just opened, outside quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    for (index, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(index),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A field name up to the next dot or bracket; a backslash escapes the next character.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '.' | '[' => return (name, &text[index..]),
            '\\' => name.extend(letters.next().map(|(_, next)| next)),
            other => name.push(other),
        }
    }
    (name, "")
}

fn bracket(text: &str) -> Segment {
    let text = text.trim();
    if text == "*" || text.is_empty() {
        return Segment::All;
    }
    if let Some(name) = quoted(text) {
        return Segment::Field(name);
    }
    if let Some(inner) = text.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let inner = inner.trim();
        for operator in ["==", "!=", "<=", ">=", "<", ">"] {
            if let Some((left, right)) = inner.split_once(operator) {
                let right = right.trim();
                let wanted = match quoted(right) {
                    Some(text) => Value::String(text),
                    None => serde_json::from_str(right).unwrap_or(Value::Null),
                };
                let path = left.trim().trim_start_matches('@').to_owned();
                return Segment::Filter { path, operator, wanted };
            }
        }
        let path = inner.trim_start_matches('@').to_owned();
        return Segment::Filter { path, operator: "", wanted: Value::Null };
    }
    if text.contains(':') {
        return slice(text).unwrap_or(Segment::Nothing);
    }
    text.parse().map_or(Segment::Nothing, Segment::Index)
}

/// `0:2`, `1:`, `:-1` or `::2`.
fn slice(text: &str) -> Option<Segment> {
    let mut parts = text.split(':').map(|part| match part.trim() {
        "" => Some(None),
        number => number.parse::<i64>().ok().map(Some),
    });
    let (from, to) = (parts.next()??, parts.next()??);
    let step = match parts.next() {
        None | Some(Some(None)) => 1,
        Some(step) => usize::try_from(step??).ok().filter(|step| *step > 0)?,
    };
    parts.next().is_none().then_some(Segment::Slice(from, to, step))
}

fn quoted(text: &str) -> Option<String> {
    ['"', '\''].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner.replace("\\.", "."))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_printer_columns_are_understood() {
        let object = json!({
            "spec": {"size": 3, "names": ["a", "b"]},
            "metadata": {"labels": {"x.io/y": "z"}},
            "status": {"conditions": [{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}]},
        });
        for (path, expected) in [
            (".spec.size", vec!["3"]),
            ("{.spec.size}", vec!["3"]),
            ("$.spec.names[1]", vec!["b"]),
            (".spec.names[-1]", vec!["b"]),
            (".spec.names[*]", vec!["a", "b"]),
            (".spec.names[]", vec!["a", "b"]),
            (".spec.names[0:1]", vec!["a"]),
            (".spec.names[1:]", vec!["b"]),
            (".spec.names[:-1]", vec!["a"]),
            (".spec.names[::2]", vec!["a"]),
            (".spec.names[1:5]", vec![]),
            (".spec.names[a:b]", vec![]),
            (r#".status.conditions[?(@.type>"Ready")].status"#, vec!["False"]),
            (r#".status.conditions[?(@.type<="Ready")].status"#, vec!["True"]),
            (".metadata.labels['x.io/y']", vec!["z"]),
            (r".metadata.labels.x\.io/y", vec!["z"]),
            (r#".status.conditions[?(@.type=="Ready")].status"#, vec!["True"]),
            (".status.conditions[?(@.type=='Nope')].status", vec![]),
            (".missing.field", vec![]),
            ("[", vec![]),
        ] {
            let found: Vec<String> = select(&object, path).into_iter().map(text).collect();
            assert_eq!(found, expected, "{path}");
        }
    }
}
