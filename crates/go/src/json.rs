//! What Go's `encoding/json` says about a text that is not JSON.

use crate::quote::{Charset, quote_char};

/// How deep Go lets arrays and objects nest.
pub const MAX_DEPTH: usize = 10_000;

/// What is wrong with a text, or nothing if it is JSON that is nested at most `deepest` levels deep (for Go, [`MAX_DEPTH`]).
///
/// ```
/// use carrick_go::json::{MAX_DEPTH, fault};
///
/// assert_eq!(fault(b"{}", MAX_DEPTH), None);
/// assert_eq!(fault(b"{x}", MAX_DEPTH).as_deref(), Some("invalid character 'x' looking for beginning of object key string"));
/// ```
pub fn fault(text: &[u8], deepest: usize) -> Option<String> {
    let mut scanner = Scanner { rest: text.iter(), open: Vec::new(), deepest };
    scanner.scan().err().map(|fault| fault.unwrap_or_else(|| "unexpected end of JSON input".to_owned()))
}

/// Nothing means that the text ended.
type Fault = Option<String>;

#[allow(clippy::unnecessary_wraps, reason = "it is used where nothing means the end of the text")]
fn wrong(byte: u8, place: &str) -> Fault {
    Some(format!("invalid character {} {place}", quote_char(char::from(byte), Charset::Printable)))
}

struct Scanner<'a> {
    rest: std::slice::Iter<'a, u8>,
    /// The brackets that are open.
    open: Vec<u8>,
    deepest: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.as_slice().first().copied()
    }

    fn next(&mut self) -> Result<u8, Fault> {
        self.rest.next().copied().ok_or(None)
    }

    /// The next byte that is not white space.
    fn next_token(&mut self) -> Result<u8, Fault> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.rest.find(|byte| !blank(byte)).copied().ok_or(None)
    }

    fn scan(&mut self) -> Result<(), Fault> {
        let mut first = self.next_token()?;
        'values: loop {
            match first {
                b'{' | b'[' => {
                    if self.open.len() >= self.deepest {
                        return Err(wrong(first, "exceeded max depth"));
                    }
                    let token = self.next_token()?;
                    // Both closing brackets are two code points after the opening ones.
                    if token != first + 2 {
                        self.open.push(first);
                        first = if first == b'{' { self.key(token)? } else { token };
                        continue;
                    }
                }
                b'"' => self.string()?,
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                b'-' | b'0'..=b'9' => self.number(first)?,
                other => return Err(wrong(other, "looking for beginning of value")),
            }
            // What follows a value, up to the next one.
            while let Some(&bracket) = self.open.last() {
                match self.next_token()? {
                    b',' => {
                        let token = self.next_token()?;
                        first = if bracket == b'{' { self.key(token)? } else { token };
                        continue 'values;
                    }
                    byte if byte == bracket + 2 => drop(self.open.pop()),
                    byte if bracket == b'[' => return Err(wrong(byte, "after array element")),
                    byte => return Err(wrong(byte, "after object key:value pair")),
                }
            }
            return self.next_token().map_or(Ok(()), |byte| Err(wrong(byte, "after top-level value")));
        }
    }

    /// A key of which this is the first byte, and its colon. Gives the first byte of the value.
    fn key(&mut self, first: u8) -> Result<u8, Fault> {
        if first != b'"' {
            return Err(wrong(first, "looking for beginning of object key string"));
        }
        self.string()?;
        match self.next_token()? {
            b':' => self.next_token(),
            other => Err(wrong(other, "after object key")),
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

    /// Skips digits.
    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.rest.next();
        }
    }

    fn number(&mut self, first: u8) -> Result<(), Fault> {
        let digits = |scanner: &mut Self, place: &str| -> Result<(), Fault> {
            let first = scanner.next()?;
            if !first.is_ascii_digit() {
                return Err(wrong(first, place));
            }
            scanner.digits();
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
        if leading != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.rest.next();
            digits(self, "after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.rest.next();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.rest.next();
            }
            digits(self, "in exponent of numeric literal")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DEPTH, fault};

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
            ("[1,]", Some("invalid character ']' looking for beginning of value")),
            ("{\"a\":1,}", Some("invalid character '}' looking for beginning of object key string")),
            ("[}", Some("invalid character '}' looking for beginning of value")),
            ("[[1],{\"a\":[]},{}]", None),
            ("01", Some("invalid character '1' after top-level value")),
            ("-x", Some("invalid character 'x' in numeric literal")),
            ("1e+", Some("unexpected end of JSON input")),
            ("\"\\x\"", Some("invalid character 'x' in string escape code")),
            ("\"\u{1}\"", Some("invalid character '\\x01' in string literal")),
            ("'a'", Some("invalid character '\\'' looking for beginning of value")),
            ("\u{7}", Some("invalid character '\\a' looking for beginning of value")),
            // Go takes the first byte for a character.
            ("\u{e9}", Some("invalid character '\u{c3}' looking for beginning of value")),
            ("1.x", Some("invalid character 'x' after decimal point in numeric literal")),
        ] {
            assert_eq!(fault(text.as_bytes(), MAX_DEPTH).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn depth_is_limited_and_costs_no_stack() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(fault(nested(MAX_DEPTH).as_bytes(), MAX_DEPTH), None);
        let refused = Some("invalid character '[' exceeded max depth");
        assert_eq!(fault(nested(MAX_DEPTH + 1).as_bytes(), MAX_DEPTH).as_deref(), refused);
        assert_eq!(fault(nested(1_000_000).as_bytes(), 1_000_000), None);
        assert_eq!(fault(b"[[[]]]", 2).as_deref(), refused);
    }
}
