//! What requests send, and what they accept as an answer.

use bytes::Bytes;
use serde_json::Value;

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";

/// How much of objects is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of them.
    Whole,
    /// Their metadata; all of them where a server cannot send it alone.
    Metadata,
}

impl Form {
    /// What to accept as an answer about one object, or as the events of a watch.
    pub(crate) fn of_objects(self) -> &'static str {
        match self {
            Self::Whole => JSON,
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        }
    }

    /// What to accept as a list.
    pub(crate) fn of_lists(self) -> &'static str {
        match self {
            Self::Whole => JSON,
            Self::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        }
    }
}

/// What can be sent as the body of a request.
pub(crate) trait Payload: Sync {
    /// The JSON text.
    fn to_json(&self) -> Result<Bytes, serde_json::Error>;
}

impl Payload for Value {
    fn to_json(&self) -> Result<Bytes, serde_json::Error> {
        serde_json::to_vec(self).map(Bytes::from)
    }
}

/// JSON that was written already.
pub(crate) struct Text(pub(crate) Bytes);

impl Payload for Text {
    fn to_json(&self) -> Result<Bytes, serde_json::Error> {
        Ok(self.0.clone())
    }
}

/// An object as servers read it that take YAML: JSON without anything that YAML forbids or reads in another way.
pub(crate) struct AsYaml<'a>(pub(crate) &'a Value);

/// Longer keys have to be marked as keys; counted in bytes and with some room.
const LONGEST_KEY: usize = 1000;

impl Payload for AsYaml<'_> {
    fn to_json(&self) -> Result<Bytes, serde_json::Error> {
        let mut text = String::new();
        write_yaml(self.0, &mut text)?;
        Ok(text.into())
    }
}

fn write_yaml(value: &Value, to: &mut String) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(fields) => {
            to.push('{');
            for (at, (key, value)) in fields.iter().enumerate() {
                to.push_str(if at > 0 { "," } else { "" });
                let key = quoted(key)?;
                to.push_str(if key.len() > LONGEST_KEY { "? " } else { "" });
                to.push_str(&key);
                to.push(':');
                write_yaml(value, to)?;
            }
            to.push('}');
        }
        Value::Array(items) => {
            to.push('[');
            for (at, item) in items.iter().enumerate() {
                to.push_str(if at > 0 { "," } else { "" });
                write_yaml(item, to)?;
            }
            to.push(']');
        }
        Value::String(text) => to.push_str(&quoted(text)?),
        other => to.push_str(&serde_json::to_string(other)?),
    }
    Ok(())
}

/// A text in quotes. What YAML does not allow is escaped, and so is what would be a line break there: folded, it becomes a space.
fn quoted(text: &str) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(text)?;
    let is_plain = |character: char| {
        !matches!(character, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    if text.chars().all(is_plain) {
        return Ok(text);
    }
    let escape = |character: char| {
        if is_plain(character) { character.to_string() } else { format!("\\u{:04x}", u32::from(character)) }
    };
    Ok(text.chars().map(escape).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(object: &Value) -> String {
        String::from_utf8(AsYaml(object).to_json().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn what_is_applied_is_json_as_long_as_yaml_reads_it_as_such() {
        let object = json!({"a": [1, -0.5, true, null, "é😀\n\u{1}\"\\"], "b": {}, "c": {"d": 1e21}, "e": []});
        assert_eq!(sent(&object), serde_json::to_string(&object).unwrap());
    }

    #[test]
    fn what_yaml_forbids_or_folds_is_escaped_and_means_the_same() {
        for character in
            ['\u{7f}', '\u{80}', '\u{85}', '\u{9f}', '\u{2028}', '\u{2029}', '\u{feff}', '\u{fffe}', '\u{ffff}']
        {
            let object = json!({format!("k{character}"): [format!("a {character} b")]});
            let text = sent(&object);
            assert!(!text.contains(character), "{text:?}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), object);
        }
    }

    #[test]
    fn long_keys_are_marked_as_keys() {
        let (long, short) = ("k".repeat(1100), "k".repeat(900));
        assert_eq!(sent(&json!({"a": {long.clone(): 1}})), format!(r#"{{"a":{{? "{long}":1}}}}"#));
        assert_eq!(sent(&json!({short.clone(): 1})), format!(r#"{{"{short}":1}}"#));
    }
}
