//! Turns a regular expression of Go into one of the `regex` crate.
//!
//! Both have the same roots; this knows the differences: `\d`, `\s`, `\w` and `\b` are ASCII in Go, `\Q..\E` and a literal `{` exist only
//! there, and inside brackets `[`, `&&`, `--` and `~~` have no meaning of their own.

/// Largest count of a repetition.
const MOST_REPEATS: u32 = 1000;

/// The expression in the other syntax, or what is wrong with it.
pub(super) fn translate(expression: &str) -> Result<String, String> {
    let mut translator = Translator { rest: expression, out: String::with_capacity(expression.len() + 16) };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'e> {
    rest: &'e str,
    out: String,
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        Some(c)
    }

    fn run(&mut self) -> Result<(), String> {
        let mut repeated = false;
        while let Some(c) = self.next() {
            let repeats = match c {
                '*' | '+' | '?' => {
                    self.out.push(c);
                    true
                }
                '{' => {
                    let counts = repetition(self.rest);
                    match counts {
                        Some(length) => self.counts(length)?,
                        None => self.out.push_str("\\{"),
                    }
                    counts.is_some()
                }
                '\\' => {
                    self.escape(false)?;
                    false
                }
                '[' => {
                    self.class()?;
                    false
                }
                '(' => {
                    self.group()?;
                    false
                }
                _ => {
                    self.out.push(c);
                    false
                }
            };
            if repeats && repeated {
                return Err("invalid nested repetition operator".to_owned());
            }
            if repeats && self.rest.starts_with('?') {
                self.next();
                self.out.push('?');
            }
            repeated = repeats;
        }
        Ok(())
    }

    fn counts(&mut self, length: usize) -> Result<(), String> {
        let counts = &self.rest[..length - 1];
        if counts.split(',').any(|count| !count.is_empty() && count.parse().map_or(true, |n: u32| n > MOST_REPEATS)) {
            return Err(format!("invalid repeat count: {{{counts}}}"));
        }
        self.out.push('{');
        self.out.push_str(&self.rest[..length]);
        self.rest = &self.rest[length..];
        Ok(())
    }

    /// The flags of a group; the other crate has more of them.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        let Some(tail) = self.rest.strip_prefix('?') else { return Ok(()) };
        if tail.starts_with("P<") || tail.starts_with('<') && !tail.starts_with("<=") && !tail.starts_with("<!") {
            return Ok(());
        }
        let end = tail.find([':', ')']).ok_or("missing closing ) in flags")?;
        let flags = &tail[..end];
        if !flags.chars().all(|c| "imsU-".contains(c)) {
            return Err(format!("invalid or unsupported group syntax: (?{flags}"));
        }
        Ok(())
    }

    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let c = self.next().ok_or("trailing backslash at end of expression")?;
        let ascii = match c {
            'd' => "0-9",
            'w' => "0-9A-Za-z_",
            's' => r"\t\n\f\r\x20",
            'D' => "^0-9",
            'W' => "^0-9A-Za-z_",
            'S' => r"^\t\n\f\r\x20",
            _ => "",
        };
        match c {
            'd' | 'w' | 's' if in_class => self.out.push_str(ascii),
            'd' | 'w' | 's' | 'D' | 'W' | 'S' => {
                self.out.push('[');
                self.out.push_str(ascii);
                self.out.push(']');
            }
            'b' if !in_class => self.out.push_str(r"(?-u:\b)"),
            'B' if !in_class => self.out.push_str(r"(?-u:\B)"),
            'Q' if !in_class => self.quoted(),
            'A' | 'z' if !in_class => self.out.extend(['\\', c]),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'p' | 'P' | 'x' | '0'..='7' => self.out.extend(['\\', c]),
            _ if c.is_ascii_alphanumeric() => return Err(format!("invalid escape sequence: \\{c}")),
            '<' | '>' => self.out.push(c),
            _ if c.is_ascii() => self.out.extend(['\\', c]),
            _ => return Err(format!("invalid escape sequence: \\{c}")),
        }
        Ok(())
    }

    fn quoted(&mut self) {
        let (literal, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
        self.out.push_str(&regex::escape(literal));
        self.rest = rest;
    }

    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.out.push('^');
            self.rest = rest;
        }
        let mut first = true;
        loop {
            if let Some(length) = posix_class(self.rest) {
                self.out.push_str(&self.rest[..length]);
                self.rest = &self.rest[length..];
                first = false;
                continue;
            }
            match self.next().ok_or("missing closing ]")? {
                ']' if !first => break,
                ']' => self.out.push_str("\\]"),
                '[' => self.out.push_str("\\["),
                '\\' => self.escape(true)?,
                c @ ('&' | '~') => self.out.extend(['\\', c]),
                // At the ends a minus stands for itself.
                '-' if first || self.rest.starts_with(']') => self.out.push_str("\\-"),
                c => self.out.push(c),
            }
            first = false;
        }
        self.out.push(']');
        Ok(())
    }
}

/// The length of `3}`, `3,}` or `3,5}`.
fn repetition(rest: &str) -> Option<usize> {
    let end = rest.find('}')?;
    let (least, most) = rest[..end].split_once(',').unwrap_or((&rest[..end], ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    (!least.is_empty() && digits(least) && digits(most)).then_some(end + 1)
}

/// The length of `[:alpha:]`.
fn posix_class(rest: &str) -> Option<usize> {
    let tail = rest.strip_prefix("[:")?;
    let end = tail.find(":]")?;
    let name = tail[..end].strip_prefix('^').unwrap_or(&tail[..end]);
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase())).then_some(end + 4)
}
