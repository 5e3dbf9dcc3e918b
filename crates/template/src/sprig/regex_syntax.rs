//! Turns a regular expression of Go into one of the `regex` crate.
//!
//! Both have the same roots; this knows the differences: `\d`, `\s`, `\w` and `\b` are ASCII in Go, `\Q..\E` and a literal `{` exist only
//! there, and inside brackets `[`, `&&`, `--` and `~~` have no meaning of their own.

/// Largest count of a repetition.
const MOST_REPEATS: u32 = 1000;

/// States that a class of Unicode characters takes, roughly.
const UNICODE_CLASS_STATES: usize = 100;

/// An expression of the other syntax.
pub(super) struct Translated {
    pub(super) expression: String,
    /// How large it becomes when repetitions are written out, roughly.
    pub(super) states: usize,
    /// Names of the groups, by number.
    pub(super) names: Vec<Option<String>>,
}

/// The expression in the other syntax, or what is wrong with it.
pub(super) fn translate(expression: &str) -> Result<Translated, String> {
    let out = String::with_capacity(expression.len() + 16);
    let mut translator = Translator { rest: expression, out, groups: vec![1], last: 0, names: vec![None] };
    translator.run()?;
    let states = translator.groups.iter().fold(0, |sum: usize, size| sum.saturating_add(*size));
    Ok(Translated { expression: translator.out, states, names: translator.names })
}

struct Translator<'e> {
    rest: &'e str,
    out: String,
    /// Sizes of the open groups, outermost first.
    groups: Vec<usize>,
    /// Size of what a repetition would repeat.
    last: usize,
    names: Vec<Option<String>>,
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        Some(c)
    }

    /// Counts something that can be repeated.
    fn grow(&mut self, states: usize) {
        self.last = states;
        if let Some(group) = self.groups.last_mut() {
            *group = group.saturating_add(states);
        }
    }

    fn close(&mut self) {
        if self.groups.len() > 1 {
            let size = self.groups.pop().unwrap_or(1);
            self.grow(size);
        }
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
                    self.grow(2);
                    self.class()?;
                    false
                }
                '(' => {
                    self.group()?;
                    false
                }
                ')' => {
                    self.out.push(c);
                    self.close();
                    false
                }
                _ => {
                    self.grow(1);
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
        let most = counts.split(',').filter_map(|count| count.parse::<usize>().ok()).max().unwrap_or(0);
        if counts.split(',').any(|count| !count.is_empty() && count.parse().map_or(true, |n: u32| n > MOST_REPEATS)) {
            return Err(format!("invalid repeat count: {{{counts}}}"));
        }
        self.out.push('{');
        self.out.push_str(&self.rest[..length]);
        self.rest = &self.rest[length..];
        self.grow(self.last.saturating_mul(most));
        Ok(())
    }

    /// Starts a group. Names are kept here, because Go allows the same one twice; the other crate has more flags.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        self.groups.push(1);
        let Some(tail) = self.rest.strip_prefix('?') else {
            self.names.push(None);
            return Ok(());
        };
        if let Some(named) = tail.strip_prefix("P<").or_else(|| tail.strip_prefix('<')) {
            let (name, rest) = named.split_once('>').ok_or("invalid named capture")?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err("invalid named capture".to_owned());
            }
            self.names.push(Some(name.to_owned()));
            self.rest = rest;
            return Ok(());
        }
        let end = tail.find([':', ')']).ok_or("missing closing ) in flags")?;
        let flags = &tail[..end];
        if !flags.chars().all(|c| "imsU-".contains(c)) {
            return Err(format!("invalid or unsupported group syntax: (?{flags}"));
        }
        // Copied here, so that the question mark is no repetition.
        self.out.push('?');
        self.rest = tail;
        Ok(())
    }

    /// Translates what follows a backslash; tells whether it stands for a single character.
    fn escape(&mut self, in_class: bool) -> Result<bool, String> {
        let c = self.next().ok_or("trailing backslash at end of expression")?;
        let invalid = || Err(format!("invalid escape sequence: \\{c}"));
        let ascii = match c {
            'd' => "0-9",
            'w' => "0-9A-Za-z_",
            's' => r"\t\n\f\r\x20",
            'D' => "^0-9",
            'W' => "^0-9A-Za-z_",
            'S' => r"^\t\n\f\r\x20",
            _ => "",
        };
        let class = !ascii.is_empty() || matches!(c, 'p' | 'P');
        self.grow(if matches!(c, 'p' | 'P') { UNICODE_CLASS_STATES } else { 2 });
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
            // A single digit would be a back reference.
            '1'..='7' if !self.rest.starts_with(|c| matches!(c, '0'..='7')) => return invalid(),
            'p' | 'P' | 'x' if self.rest.starts_with('{') => {
                let end = self.rest.find('}').ok_or("missing closing } in escape")?;
                self.copy(c, end + 1);
            }
            'p' | 'P' => self.copy(c, self.rest.chars().next().map_or(0, char::len_utf8)),
            'x' => self.copy(c, self.rest.bytes().take(2).take_while(u8::is_ascii_hexdigit).count()),
            '0'..='7' => self.copy(c, self.rest.bytes().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count()),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => self.out.extend(['\\', c]),
            // An escaped angle bracket is something else in the other syntax.
            '<' | '>' => self.out.push(c),
            _ if c.is_ascii_punctuation() => self.out.extend(['\\', c]),
            _ => return invalid(),
        }
        Ok(!class)
    }

    /// Copies an escape and so many bytes behind it.
    fn copy(&mut self, escape: char, length: usize) {
        let (copied, rest) = self.rest.split_at(length);
        self.out.extend(['\\', escape]);
        self.out.push_str(copied);
        self.rest = rest;
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
            if !first && self.rest.starts_with(']') {
                self.next();
                break;
            }
            first = false;
            let single = self.class_char()?;
            // A minus makes a range, except at the end.
            if single && self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.next();
                self.out.push('-');
                if !self.class_char()? {
                    return Err("invalid character class range".to_owned());
                }
            }
        }
        self.out.push(']');
        Ok(())
    }

    /// Translates one part of a class; tells whether it is a single character.
    fn class_char(&mut self) -> Result<bool, String> {
        match self.next().ok_or("missing closing ]")? {
            '\\' => return self.escape(true),
            // These have a meaning in the other syntax only.
            c @ ('[' | ']' | '&' | '~' | '-' | '^') => self.out.extend(['\\', c]),
            c => self.out.push(c),
        }
        Ok(true)
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
