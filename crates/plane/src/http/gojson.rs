//! What Go's decoder says about a text that is no JSON.

/// How deep objects may nest. Go takes 10 000 levels; so many fit into the stack of a thread here, if that is as large as [`carrick_json::STACK`].
pub(super) const MAX_DEPTH: usize = 1_500;

/// The complaint about a text, or none if it is JSON.
pub(super) fn complaint(content: &[u8]) -> Option<String> {
    let mut scanner = Scanner { content, at: 0 };
    let fault = scanner.value(0).err().or_else(|| {
        scanner.blank();
        scanner.peek().map(|byte| wrong(byte, "after top-level value"))
    });
    fault.map(|fault| fault.unwrap_or_else(|| "unexpected end of JSON input".to_owned()))
}

/// The first bytes of a text, as they are added to complaints.
pub(super) fn dump(content: &[u8]) -> String {
    if content.is_empty() {
        return "<empty>".to_owned();
    }
    let start = &content[..content.len().min(30)];
    // What looks like an object is shown as it is.
    let shown = match std::str::from_utf8(start) {
        Ok(text) if text.starts_with('{') => text.to_owned(),
        _ => data_encoding::HEXLOWER.encode(start),
    };
    if content.len() > 30 { format!("{shown} ...") } else { shown }
}

/// Nothing means that the text ended.
type Fault = Option<String>;

#[allow(clippy::unnecessary_wraps, reason = "it is used where nothing means the end of the text")]
fn wrong(byte: u8, place: &str) -> Fault {
    let letter = match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        0x20..=0x7e => format!("'{}'", char::from(byte)),
        b'\n' => "'\\n'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        byte => format!("'\\x{byte:02x}'"),
    };
    Some(format!("invalid character {letter} {place}"))
}

struct Scanner<'a> {
    content: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.content.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, Fault> {
        let byte = self.peek().ok_or(None)?;
        self.at += 1;
        Ok(byte)
    }

    fn blank(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), Fault> {
        self.blank();
        let byte = self.next()?;
        match byte {
            // Deeper ones are refused elsewhere.
            _ if depth > MAX_DEPTH => Err(Some("exceeded max depth".to_owned())),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' | b'0'..=b'9' => self.number(byte),
            other => Err(wrong(other, "looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), Fault> {
        self.blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.blank();
            match self.next()? {
                b'"' => self.string()?,
                other => return Err(wrong(other, "looking for beginning of object key string")),
            }
            self.blank();
            match self.next()? {
                b':' => {}
                other => return Err(wrong(other, "after object key")),
            }
            self.value(depth + 1)?;
            self.blank();
            match self.next()? {
                b',' => {}
                b'}' => return Ok(()),
                other => return Err(wrong(other, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), Fault> {
        self.blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.blank();
            match self.next()? {
                b',' => {}
                b']' => return Ok(()),
                other => return Err(wrong(other, "after array element")),
            }
        }
    }

    fn string(&mut self) -> Result<(), Fault> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let digit = self.next()?;
                            if !digit.is_ascii_hexdigit() {
                                return Err(wrong(digit, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    other => return Err(wrong(other, "in string escape code")),
                },
                byte if byte < 0x20 => return Err(wrong(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), Fault> {
        for wanted in word.bytes().skip(1) {
            let found = self.next()?;
            if found != wanted {
                return Err(wrong(found, &format!("in literal {word} (expecting '{}')", char::from(wanted))));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Result<(), Fault> {
        let digits = |scanner: &mut Self, place: &str| -> Result<(), Fault> {
            let first = scanner.next()?;
            if !first.is_ascii_digit() {
                return Err(wrong(first, place));
            }
            while scanner.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                scanner.at += 1;
            }
            Ok(())
        };
        let leading = if first == b'-' {
            let byte = self.next()?;
            if !byte.is_ascii_digit() {
                return Err(wrong(byte, "in numeric literal"));
            }
            byte
        } else {
            first
        };
        while leading != b'0' && self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            digits(self, "after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            digits(self, "in exponent of numeric literal")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn every_way_to_miss_json_has_its_words() {
        for (text, wanted) in [
            ("", Some("unexpected end of JSON input")),
            ("{", Some("unexpected end of JSON input")),
            ("{\"a\":1}", None),
            ("[1, -2.5e+3, \"x\\u00e4\", true, null]", None),
            ("no", Some("invalid character 'o' in literal null (expecting 'u')")),
            ("{]", Some("invalid character ']' looking for beginning of object key string")),
            ("{\"a\" 1}", Some("invalid character '1' after object key")),
            ("{\"a\":1 \"b\"}", Some("invalid character '\"' after object key:value pair")),
            ("[1 2]", Some("invalid character '2' after array element")),
            ("{} x", Some("invalid character 'x' after top-level value")),
            ("apiVersion: v1", Some("invalid character 'a' looking for beginning of value")),
            ("1.x", Some("invalid character 'x' after decimal point in numeric literal")),
        ] {
            assert_eq!(complaint(text.as_bytes()).as_deref(), wanted, "{text}");
        }
    }
}
