//! JSON that is kept as it was written.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON text kept to the letter (key order, numbers), as Go keeps `default`, `enum` and `example` of a schema.
///
/// White space between tokens is dropped and `<`, `>`, `&`, U+2028 and U+2029 are escaped, as Go does when it encodes such a value.
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    pub(super) fn new(text: &str) -> Result<Self, serde_json::Error> {
        let mut compact = String::with_capacity(text.len());
        let (mut in_string, mut escaped) = (false, false);
        for c in text.chars() {
            match c {
                ' ' | '\n' | '\r' | '\t' if !in_string => continue,
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    // Writing to a String cannot fail.
                    let _ = write!(compact, "\\u{:04x}", u32::from(c));
                }
                _ => compact.push(c),
            }
            if c == '"' && !escaped {
                in_string = !in_string;
            }
            escaped = c == '\\' && !escaped;
        }
        RawValue::from_string(compact).map(Self)
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::new(raw.get()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_dropped_and_order_kept() {
        let raw = RawJson::new("{ \"b\": 1.50,\n \"a\": \"x \\\" <y>\" }").unwrap();
        assert_eq!(raw.get(), r#"{"b":1.50,"a":"x \" \u003cy\u003e"}"#);
    }

    #[test]
    fn a_text_may_end_with_a_backslash() {
        let raw = RawJson::new("{ \"a\": \"x\\\\\", \"b c\": \" d \" }").unwrap();
        assert_eq!(raw.get(), "{\"a\":\"x\\\\\",\"b c\":\" d \"}");
    }
}
