//! Patterns as Go reads them, and what it says about those it refuses.

/// What is wrong with a pattern, if anything.
pub(super) fn fault(pattern: &str) -> Option<String> {
    let mut reader = Reader { pattern, at: 0, depth: 0, repeatable: false, last: None };
    reader.read().err().map(|(what, shown)| format!("error parsing regexp: {what}: `{shown}`"))
}

/// Classes with names, as in `[[:alpha:]]`.
const CLASSES: &str = "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit";

type Fault = (&'static str, String);

struct Reader<'a> {
    pattern: &'a str,
    at: usize,
    depth: usize,
    /// Something stands here that can be repeated.
    repeatable: bool,
    /// Where the repetition right before begins.
    last: Option<usize>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.pattern[self.at..]
    }

    fn from(&self, start: usize) -> String {
        self.pattern[start..self.at].to_owned()
    }

    fn take(&mut self) -> Option<char> {
        let letter = self.rest().chars().next()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn read(&mut self) -> Result<(), Fault> {
        while let Some(letter) = self.rest().chars().next() {
            let start = self.at;
            let last = self.last.take();
            match letter {
                '(' => self.open()?,
                '|' => {
                    self.at += 1;
                    self.repeatable = false;
                }
                ')' => {
                    self.depth = self.depth.checked_sub(1).ok_or(("unexpected )", self.pattern.to_owned()))?;
                    self.at += 1;
                    self.repeatable = true;
                }
                '[' => {
                    self.class()?;
                    self.repeatable = true;
                }
                '*' | '+' | '?' => {
                    self.at += 1;
                    self.repeat(start, last)?;
                }
                '{' => {
                    if let Some(fits) = self.counts() {
                        if !fits {
                            return Err(("invalid repeat count", self.from(start)));
                        }
                        self.repeat(start, last)?;
                    } else {
                        self.at += 1;
                        self.repeatable = true;
                    }
                }
                '\\' => {
                    self.escape(false)?;
                    self.repeatable = true;
                }
                _ => {
                    self.take();
                    self.repeatable = true;
                }
            }
        }
        if self.depth > 0 { Err(("missing closing )", self.pattern.to_owned())) } else { Ok(()) }
    }

    fn repeat(&mut self, start: usize, last: Option<usize>) -> Result<(), Fault> {
        if self.rest().starts_with('?') {
            self.at += 1;
        }
        if let Some(last) = last {
            return Err(("invalid nested repetition operator", self.from(last)));
        }
        if !self.repeatable {
            return Err(("missing argument to repetition operator", self.from(start)));
        }
        self.last = Some(start);
        Ok(())
    }

    /// `{2,3}`: whether the numbers fit; none if it is no repetition.
    fn counts(&mut self) -> Option<bool> {
        let inside = self.rest().strip_prefix('{')?;
        let inside = &inside[..inside.find('}')?];
        let number = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            (plain && (text.len() == 1 || !text.starts_with('0'))).then(|| text.parse::<u32>().unwrap_or(u32::MAX))
        };
        let (least, most) = match inside.split_once(',') {
            None => (number(inside)?, Some(number(inside)?)),
            Some((least, "")) => (number(least)?, None),
            Some((least, most)) => (number(least)?, Some(number(most)?)),
        };
        self.at += inside.len() + 2;
        Some(least <= 1_000 && most.is_none_or(|most| most <= 1_000 && least <= most))
    }

    fn open(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        self.repeatable = false;
        if !self.rest().starts_with('?') {
            self.depth += 1;
            return Ok(());
        }
        self.at += 1;
        if self.rest().starts_with("P<") || self.rest().starts_with('<') {
            return self.name(start);
        }
        let (mut sign, mut flagged) = (false, false);
        while let Some(letter) = self.take() {
            match letter {
                'i' | 'm' | 's' | 'U' => flagged = true,
                '-' if !sign => {
                    sign = true;
                    flagged = false;
                }
                ':' | ')' if !sign || flagged => {
                    self.depth += usize::from(letter == ':');
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(("invalid or unsupported Perl syntax", self.from(start)))
    }

    fn name(&mut self, start: usize) -> Result<(), Fault> {
        let opened = self.rest().find('<').map_or(0, |at| at + 1);
        let Some(end) = self.rest().find('>') else {
            return Err(("invalid named capture", self.pattern[start..].to_owned()));
        };
        let name = &self.rest()[opened..end];
        self.at += end + 1;
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(("invalid named capture", self.from(start)));
        }
        self.depth += 1;
        Ok(())
    }

    /// One letter, or a class such as `\d`, for which none is returned.
    fn escape(&mut self, inside: bool) -> Result<Option<char>, Fault> {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.take() else {
            return Err(("trailing backslash at end of expression", String::new()));
        };
        let invalid = |reader: &Self| Err(("invalid escape sequence", reader.from(start)));
        match letter {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => Ok(None),
            'A' | 'b' | 'B' | 'z' if !inside => Ok(None),
            'Q' if !inside => {
                self.at += self.rest().find("\\E").map_or(self.rest().len(), |end| end + 2);
                Ok(None)
            }
            'p' | 'P' => {
                let length = match self.rest().strip_prefix('{') {
                    None => self.rest().chars().next().map_or(0, char::len_utf8),
                    Some(name) => match name.find('}') {
                        Some(end) => end + 2,
                        None => return Err(("invalid character class range", self.pattern[start..].to_owned())),
                    },
                };
                self.at += length;
                let found = self.from(start);
                if regex::Regex::new(&found).is_err() {
                    return Err(("invalid character class range", found));
                }
                Ok(None)
            }
            '1'..='7' if !self.rest().starts_with(|c: char| c.is_digit(8)) => invalid(self),
            '0'..='7' => {
                while self.rest().starts_with(|c: char| c.is_digit(8)) && self.at - start < 4 {
                    self.at += 1;
                }
                Ok(Some('\0'))
            }
            'x' => self.hexadecimal().map_or_else(|| invalid(self), |letter| Ok(Some(letter))),
            'a' => Ok(Some('\u{7}')),
            'f' => Ok(Some('\u{c}')),
            'n' => Ok(Some('\n')),
            'r' => Ok(Some('\r')),
            't' => Ok(Some('\t')),
            'v' => Ok(Some('\u{b}')),
            letter if letter.is_ascii_punctuation() && letter != '_' => Ok(Some(letter)),
            ' ' => Ok(Some(' ')),
            _ => invalid(self),
        }
    }

    /// What follows `\x`: two digits, or any number of them in braces.
    fn hexadecimal(&mut self) -> Option<char> {
        let Some(digits) = self.rest().strip_prefix('{') else {
            let digits: String = self.rest().chars().take(2).collect();
            self.at += digits.len();
            return u8::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 2).map(char::from);
        };
        let good = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        self.at += 1 + good + digits[good..].chars().next().map_or(0, char::len_utf8);
        let number = u32::from_str_radix(&digits[..good], 16).ok().filter(|_| digits[good..].starts_with('}'));
        number.and_then(char::from_u32)
    }

    fn class(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let open = || ("missing closing ]", self.pattern[start..].to_owned());
        let missing = open();
        self.at += 1;
        if self.rest().starts_with('^') {
            self.at += 1;
        }
        let mut first = true;
        loop {
            match self.rest().chars().next() {
                None => return Err(missing),
                Some(']') if !first => {
                    self.at += 1;
                    return Ok(());
                }
                Some('[') if self.rest().starts_with("[:") && self.rest().contains(":]") => {
                    let end = self.rest().find(":]").map_or(0, |end| end + 2);
                    let name = self.rest()[..end].to_owned();
                    self.at += end;
                    let plain = name.trim_matches(['[', ':', ']', '^']);
                    if !CLASSES.split(' ').any(|class| class == plain) {
                        return Err(("invalid character class range", name));
                    }
                }
                Some(_) => self.range(&missing)?,
            }
            first = false;
        }
    }

    fn range(&mut self, missing: &Fault) -> Result<(), Fault> {
        let start = self.at;
        let Some(low) = self.letter(missing)? else { return Ok(()) };
        let mut after = self.rest().chars();
        if after.next() == Some('-') && !matches!(after.next(), None | Some(']')) {
            self.at += 1;
            let second = self.at;
            let Some(high) = self.letter(missing)? else {
                return Err(("invalid escape sequence", self.from(second)));
            };
            if high < low {
                return Err(("invalid character class range", self.from(start)));
            }
        }
        Ok(())
    }

    fn letter(&mut self, missing: &Fault) -> Result<Option<char>, Fault> {
        if self.rest().starts_with('\\') {
            return self.escape(true);
        }
        self.take().map(Some).ok_or_else(|| missing.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go says, without "error parsing regexp".
    const REFUSED: &[(&str, &str)] = &[
        ("[", "missing closing ]: `[`"),
        ("a[b", "missing closing ]: `[b`"),
        ("(", "missing closing ): `(`"),
        ("a(b(c)", "missing closing ): `a(b(c)`"),
        ("a)", "unexpected ): `a)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a+?*", "invalid nested repetition operator: `+?*`"),
        ("\\y", "invalid escape sequence: `\\y`"),
        ("(a)\\1", "invalid escape sequence: `\\1`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("[a-\\d]", "invalid escape sequence: `\\d`"),
        ("\\x{", "invalid escape sequence: `\\x{`"),
        ("a{2}*", "invalid nested repetition operator: `{2}*`"),
        ("(?i)*", "missing argument to repetition operator: `*`"),
        ("(?<=a)", "invalid named capture: `(?<=a)`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?P<a", "invalid named capture: `(?P<a`"),
        ("\\pX", "invalid character class range: `\\pX`"),
        ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
    ];

    const TAKEN: &[&str] = &[
        "",
        "^[a-z]+$",
        "a{1",
        "{",
        "a{2}",
        "a{2,}",
        "[]a]",
        "[^]a]",
        "[a-]",
        "\\d+\\.\\w",
        "(?i)a",
        "(?:a|b)*?",
        "\\Q*\\E",
        "(?P<n>a)",
        "(?<n>a)",
        "[[:alpha:]]",
        "\\x41",
        "[\\d-]",
        "a|",
        "()*",
        "x*y+z?",
    ];

    #[test]
    fn what_go_refuses_is_refused_in_its_words() {
        for (pattern, why) in REFUSED {
            assert_eq!(fault(pattern), Some(format!("error parsing regexp: {why}")), "{pattern}");
        }
        for pattern in TAKEN {
            assert_eq!(fault(pattern), None, "{pattern}");
        }
    }
}
