//! Names of fields in Kubernetes rules, where some characters and words are not valid CEL identifiers.

use std::borrow::Cow;

/// Words of CEL that cannot be used as field names.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

const SEQUENCES: [(&str, &str); 4] =
    [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// The name of a field as rules write it; none when no rule can name the field.
///
/// ```
/// assert_eq!(carrick_cel::escape("my-field").as_deref(), Some("my__dash__field"));
/// assert_eq!(carrick_cel::unescape("my__dash__field"), "my-field");
/// ```
pub fn escape(field: &str) -> Option<String> {
    if RESERVED.contains(&field) {
        return Some(format!("__{field}__"));
    }
    let mut out = String::with_capacity(field.len());
    let mut rest = field;
    'next: while let Some(c) = rest.chars().next() {
        for (plain, escaped) in SEQUENCES {
            if let Some(after) = rest.strip_prefix(plain) {
                out.push_str(escaped);
                rest = after;
                continue 'next;
            }
        }
        let first = out.is_empty();
        if !(c == '_' || c.is_ascii_alphabetic() || !first && c.is_ascii_digit()) {
            return None;
        }
        out.push(c);
        rest = &rest[1..];
    }
    (!out.is_empty()).then_some(out)
}

/// The field that a name in a rule stands for. Names without escapes stand for themselves.
pub fn unescape(name: &str) -> Cow<'_, str> {
    if !name.contains("__") {
        return Cow::Borrowed(name);
    }
    if let Some(word) = name.strip_prefix("__").and_then(|name| name.strip_suffix("__"))
        && RESERVED.contains(&word)
    {
        return Cow::Borrowed(word);
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    'next: while let Some(c) = rest.chars().next() {
        for (plain, escaped) in SEQUENCES {
            if let Some(after) = rest.strip_prefix(escaped) {
                out.push_str(plain);
                rest = after;
                continue 'next;
            }
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_kubernetes_does() {
        for (field, name) in [
            ("plain", "plain"),
            ("snake_case", "snake_case"),
            ("a__b", "a__underscores__b"),
            ("a___b", "a__underscores___b"),
            ("my-field", "my__dash__field"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("namespace", "__namespace__"),
            ("int", "int"),
            ("__x", "__underscores__x"),
        ] {
            assert_eq!(escape(field).as_deref(), Some(name));
            assert_eq!(unescape(name), field);
        }
        for field in ["", "1a", "a$", "é"] {
            assert_eq!(escape(field), None, "{field}");
        }
        assert_eq!(unescape("__x__"), "__x__");
    }
}
