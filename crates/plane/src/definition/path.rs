//! Paths to fields of a schema, such as `.spec.size` or `.labels['a']`.

use serde_json::Value;

/// A path that exists in a schema.
pub(super) struct Path<'a> {
    /// The path as error messages name it.
    pub text: String,
    /// Its first name.
    pub root: String,
    /// The schema at that path; null if any value may be there.
    pub schema: &'a Value,
}

impl<'a> Path<'a> {
    /// Follows a path; names in brackets may be forbidden.
    pub fn parse(path: &str, schema: &'a Value, brackets: bool) -> Result<Self, String> {
        let mut found = Self { text: String::new(), root: String::new(), schema };
        let mut rest = tokens(path).into_iter();
        while let Some(token) = rest.next() {
            let end = || "unexpected end of JSON path".to_owned();
            match token {
                "." => found.step(rest.next().ok_or_else(end)?)?,
                "[" if !brackets => return Err("array notation is not allowed".to_owned()),
                "[" => {
                    let name = rest.next().ok_or_else(end)?;
                    let plain = name.strip_prefix('\'').and_then(|name| name.strip_suffix('\''));
                    let Some(plain) = plain.filter(|_| name.len() > 1) else {
                        return Err(format!("expected single quoted string but got {name}"));
                    };
                    found.step(&plain.replace("\\'", "'").replace("\\\\", "\\"))?;
                    match rest.next().ok_or_else(end)? {
                        "]" => {}
                        other => return Err(format!("expected ] but got {other}")),
                    }
                }
                other => return Err(format!("expected [ or . but got: {other}")),
            }
        }
        Ok(found)
    }

    fn step(&mut self, name: &str) -> Result<(), String> {
        static NONE: Value = Value::Null;
        let named = self.schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
        let nowhere = || "does not refer to a valid field".to_owned();
        if named {
            self.schema = self.schema["properties"].get(name).ok_or_else(nowhere)?;
            if !self.text.is_empty() {
                self.text.push('.');
            }
            self.text.push_str(name);
        } else {
            let values = self.schema.get("additionalProperties").ok_or_else(nowhere)?;
            self.schema = if values.is_object() { values } else { &NONE };
            self.text.extend(["[", name, "]"]);
        }
        if self.root.is_empty() {
            name.clone_into(&mut self.root);
        }
        Ok(())
    }
}

/// Dots, brackets, quoted texts and what is between them.
fn tokens(path: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), path);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = rest.as_bytes();
                let end = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
                end.map_or(rest.len(), |end| end + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        tokens.push(&rest[..length]);
        rest = &rest[length..];
    }
    tokens
}
