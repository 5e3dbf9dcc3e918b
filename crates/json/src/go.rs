//! JSON byte for byte as Go's `encoding/json` writes it, for hashes and stored state that a Go program also computes.

use std::io::{self, Write};

use carrick_go::float;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// A value that cannot be written as JSON, such as a map whose keys are not strings.
#[derive(Debug, thiserror::Error)]
#[error("cannot encode as JSON: {0}")]
pub struct EncodeError(#[from] serde_json::Error);

/// Compact JSON as `json.Marshal` gives it.
///
/// ```
/// let value = serde_json::json!({"b": 1e-7, "a": "<é>"});
/// assert_eq!(carrick_json::go::to_string(&value).unwrap(), r#"{"a":"\u003cé\u003e","b":1e-7}"#);
/// ```
///
/// Fields come in the order they are serialized; maps should be sorted, as those of `serde_json` are. `<`, `>`, `&`,
/// U+2028 and U+2029 are escaped, floats use the shortest form with an exponent only below 1e-6 and from 1e21, and raw
/// values ([`serde_json::value::RawValue`]) are compacted with their key order kept.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, EncodeError> {
    let mut bytes = Vec::with_capacity(128);
    value.serialize(&mut Serializer::with_formatter(&mut bytes, GoFormatter { mark_floats: false }))?;
    String::from_utf8(bytes).map_err(|error| EncodeError(serde::ser::Error::custom(error)))
}

/// Like [`to_string`] with the newline that `json.Encoder` adds; hashes over encoded objects include it.
pub fn to_line<T: Serialize + ?Sized>(value: &T) -> Result<String, EncodeError> {
    let mut line = to_string(value)?;
    line.push('\n');
    Ok(line)
}

/// A value as text that reads back as the same value: like [`to_string`], but floats stay floats.
pub(crate) fn to_text(value: &serde_json::Value) -> String {
    let mut bytes = Vec::with_capacity(512);
    // writing a value to memory cannot fail
    let _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, GoFormatter { mark_floats: true }));
    String::from_utf8(bytes).unwrap_or_default()
}

struct GoFormatter {
    /// Whether floats without fraction get one.
    mark_floats: bool,
}

impl Formatter for GoFormatter {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let mut text = float::json(value);
        if self.mark_floats && !text.contains(['.', 'e']) {
            text.push_str(".0");
        }
        writer.write_all(text.as_bytes())
    }

    fn write_f32<W: ?Sized + Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        // the digits of the short float, written as those of a long one
        let text = value.to_string().parse().map_or_else(|_| value.to_string(), float::json);
        writer.write_all(text.as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        write_escaped(writer, fragment)
    }

    fn write_raw_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        write_escaped(writer, &without_whitespace(fragment))
    }
}

/// Writes text with the characters escaped that could end a script in an HTML page.
fn write_escaped<W: ?Sized + Write>(writer: &mut W, text: &str) -> io::Result<()> {
    let mut done = 0;
    for (at, found) in text.match_indices(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        let escape = match found {
            "<" => "\\u003c",
            ">" => "\\u003e",
            "&" => "\\u0026",
            "\u{2028}" => "\\u2028",
            _ => "\\u2029",
        };
        writer.write_all(&text.as_bytes()[done..at])?;
        writer.write_all(escape.as_bytes())?;
        done = at + found.len();
    }
    writer.write_all(&text.as_bytes()[done..])
}

/// Raw JSON without the whitespace between its tokens.
fn without_whitespace(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    json.chars()
        .filter(|&c| {
            if in_string {
                in_string = escaped || c != '"';
                escaped = !escaped && c == '\\';
                true
            } else {
                in_string = c == '"';
                !c.is_ascii_whitespace()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::RawValue};

    use super::*;

    #[test]
    fn strings_are_escaped_as_go_escapes_them() {
        for (text, want) in [
            ("plain é 日本 😀", "\"plain é 日本 😀\""),
            ("<a href=\"x\">&</a>", r#""\u003ca href=\"x\"\u003e\u0026\u003c/a\u003e""#),
            ("\u{2028}\u{2029}", r#""\u2028\u2029""#),
            ("tab\tnl\ncr\rbs\u{8}ff\u{c}", r#""tab\tnl\ncr\rbs\bff\f""#),
            ("\u{0}\u{1f}\u{7f}", "\"\\u0000\\u001f\u{7f}\""),
            ("back\\slash /", r#""back\\slash /""#),
        ] {
            assert_eq!(to_string(&text).unwrap(), want);
        }
    }

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        for (value, want) in [(0.0, "0"), (-0.0, "-0"), (3.0, "3"), (1e21, "1e+21"), (0.000_000_1, "1e-7")] {
            assert_eq!(to_string(&value).unwrap(), want);
        }
        assert_eq!(to_string(&0.1f32).unwrap(), "0.1");
        assert_eq!(to_string(&1e21f32).unwrap(), "1e+21");
    }

    #[test]
    fn integers_keep_all_their_digits() {
        assert_eq!(
            to_string(&json!([9_007_199_254_740_993_i64, u64::MAX, -5])).unwrap(),
            "[9007199254740993,18446744073709551615,-5]"
        );
    }

    #[test]
    fn keys_of_values_are_sorted_and_escaped() {
        assert_eq!(
            to_string(&json!({"b": 1, "a<": [null, true], "Z": {}})).unwrap(),
            r#"{"Z":{},"a\u003c":[null,true],"b":1}"#
        );
    }

    #[test]
    fn struct_fields_keep_their_order() {
        #[derive(Serialize)]
        struct Key {
            b: u8,
            #[serde(skip_serializing_if = "Option::is_none")]
            none: Option<u8>,
            a: u8,
        }
        assert_eq!(to_line(&Key { b: 1, none: None, a: 2 }).unwrap(), "{\"b\":1,\"a\":2}\n");
    }

    #[test]
    fn raw_values_lose_whitespace_and_keep_the_order_of_keys() {
        let raw = RawValue::from_string("{ \"z\" : \"a b\\\" <\",\n\t\"a\": [1.0, 2] }".to_owned()).unwrap();
        assert_eq!(to_string(&raw).unwrap(), r#"{"z":"a b\" \u003c","a":[1.0,2]}"#);
    }

    #[test]
    fn the_result_parses_back_to_the_same_value() {
        let value: Value = json!({"a": [1, 1.5, "<&>\u{2028}\u{1}", null], "b": {"c": -7e-9}});
        assert_eq!(serde_json::from_str::<Value>(&to_string(&value).unwrap()).unwrap(), value);
    }
}
