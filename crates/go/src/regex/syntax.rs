//! From RE2 syntax as Go takes it to the syntax of the regex crate.
//!
//! They differ in details: in Go `\d`, `\w`, `\s` and `\b` are ASCII, `\Q…\E` quotes, brackets inside a class are plain
//! characters, `{` that starts no repetition is one too, there are octal escapes but no `x`, `u` or `R` flag, groups
//! may share a name, and flags may come between an expression and its repetition. So nothing is left to the other
//! syntax: every atom carries its flags, and groups have no names.

use super::text::{Error, Text};
use super::{class, escape};

/// A pattern for the regex crate.
pub(super) struct Translated {
    pub pattern: String,
    /// The names of its groups, the whole match being the first one.
    pub names: Vec<String>,
    /// How large it becomes when repetitions are written out, roughly.
    pub states: usize,
}

/// Translates a pattern, or says why Go would refuse it.
pub(super) fn translate(pattern: &str) -> Result<Translated, Error<'_>> {
    let mut translator = Translator {
        text: Text::new(pattern),
        out: String::with_capacity(pattern.len() + 16),
        names: vec![String::new()],
        flags: Flags::default(),
        groups: Vec::new(),
        atom: None,
        repeats: 1,
        states: 1,
        last_repeat: None,
    };
    while translator.text.peek().is_some() {
        translator.item()?;
    }
    if let Some(open) = translator.groups.last() {
        return Err(translator.text.error("missing closing )", open.position, pattern));
    }
    Ok(Translated { pattern: translator.out, names: translator.names, states: translator.states })
}

/// The flags that Go has.
#[allow(clippy::struct_excessive_bools)] // four letters, each on or off
#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    ignore_case: bool,
    multi_line: bool,
    dot_newline: bool,
    ungreedy: bool,
}

/// An open group.
struct Group {
    /// Where it opens in the pattern.
    position: usize,
    /// Where it opens in the translation.
    start: usize,
    /// The flags around it.
    flags: Flags,
    /// The repetitions inside what comes before it.
    repeats: u64,
    /// The size of what comes before it.
    states: usize,
}

/// What a repetition would apply to.
#[derive(Clone, Copy)]
struct Atom {
    /// Where it starts in the translation.
    start: usize,
    /// How often its innermost part is repeated.
    repeats: u64,
    /// How large it is.
    states: usize,
}

struct Translator<'p> {
    text: Text<'p>,
    out: String,
    names: Vec<String>,
    flags: Flags,
    groups: Vec<Group>,
    atom: Option<Atom>,
    /// The largest repetition in the current group.
    repeats: u64,
    /// The size of the current group.
    states: usize,
    /// Where the repetition starts that was just read.
    last_repeat: Option<usize>,
}

impl<'p> Translator<'p> {
    /// Reads the next thing in the pattern.
    fn item(&mut self) -> Result<(), Error<'p>> {
        let last_repeat = self.last_repeat.take();
        let start = self.text.at;
        match self.text.peek() {
            Some('(') => return self.open(),
            Some(')') => return self.close(),
            Some('|') => {
                self.text.next();
                self.out.push('|');
                self.atom = None;
            }
            Some('[') => {
                let class = class::bracket(&mut self.text)?;
                self.push_folded(&class);
            }
            Some('\\') => return self.escape(),
            Some(c @ ('*' | '+' | '?')) => {
                self.text.next();
                return self.repeat(start, c.into(), 1, last_repeat);
            }
            Some('{') => {
                if let Some((minimum, maximum, length)) = repetition(self.text.rest()) {
                    self.text.at += length;
                    let fits = minimum <= 1000 && maximum.is_none_or(|maximum| (minimum..=1000).contains(&maximum));
                    if !fits {
                        return Err(self.text.error("invalid repeat count", start, self.text.since(start)));
                    }
                    let count = if maximum == Some(0) { 0 } else { maximum.unwrap_or(minimum).max(1) };
                    return self.repeat(start, self.text.since(start).to_owned(), count, last_repeat);
                }
                self.text.next();
                self.push_literal('{'.into());
            }
            Some(c) => {
                self.text.next();
                match (c, self.flags) {
                    ('^', Flags { multi_line: true, .. }) => self.push("(?m:^)"),
                    ('^', _) => self.push(r"\A"),
                    ('$', Flags { multi_line: true, .. }) => self.push("(?m:$)"),
                    ('$', _) => self.push(r"\z"),
                    ('.', Flags { dot_newline: true, .. }) => self.push("(?s:.)"),
                    ('.', _) => self.push("."),
                    _ => self.push_literal(c.into()),
                }
            }
            None => {}
        }
        Ok(())
    }

    fn push(&mut self, atom: &str) {
        let states = class::states(atom);
        self.states = self.states.saturating_add(states);
        self.atom = Some(Atom { start: self.out.len(), repeats: 1, states });
        self.out.push_str(atom);
    }

    /// An atom to which case may matter.
    fn push_folded(&mut self, atom: &str) {
        if self.flags.ignore_case { self.push(&format!("(?i:{atom})")) } else { self.push(atom) }
    }

    fn push_literal(&mut self, code: u32) {
        self.push_folded(&class::literal(code));
    }

    fn escape(&mut self) -> Result<(), Error<'p>> {
        let start = self.text.at;
        let letter = self.text.rest()[1..].chars().next();
        let simple = match letter {
            Some('A') => r"\A",
            Some('z') => r"\z",
            Some('b') => r"(?-u:\b)",
            Some('B') => r"(?-u:\B)",
            Some('C') => {
                self.text.at += 2;
                return Err(self.text.error("invalid escape sequence", start, self.text.since(start)));
            }
            Some('Q') => {
                self.quoted();
                return Ok(());
            }
            Some('p' | 'P') => {
                let property = class::property(&mut self.text)?;
                self.push_folded(&property);
                return Ok(());
            }
            Some(letter) if class::perl(letter).is_some() => {
                self.text.at += 2;
                self.push_folded(class::perl(letter).unwrap_or_default());
                return Ok(());
            }
            _ => {
                let code = escape::character(&mut self.text)?;
                self.push_literal(code);
                return Ok(());
            }
        };
        self.text.at += 2;
        self.push(simple);
        Ok(())
    }

    /// The text from `\Q` to `\E` or to the end.
    fn quoted(&mut self) {
        let rest = &self.text.rest()[2..];
        let (literal, length) = rest.find(r"\E").map_or((rest, rest.len()), |end| (&rest[..end], end + 2));
        self.text.at += 2 + length;
        for c in literal.chars() {
            self.push_literal(c.into());
        }
    }

    fn open(&mut self) -> Result<(), Error<'p>> {
        let start = self.text.at;
        let outer = self.flags;
        let rest = self.text.rest();
        let (bracket, name) = if !rest.starts_with("(?") {
            self.text.next();
            ("(", String::new())
        } else if let Some(prefix) = name_prefix(rest) {
            ("(", self.name(prefix)?)
        } else if self.flag_group()? {
            ("(?:", String::new())
        } else {
            return Ok(());
        };
        if bracket == "(" {
            self.names.push(name);
        }
        self.groups.push(Group {
            position: start,
            start: self.out.len(),
            flags: outer,
            repeats: self.repeats,
            states: self.states,
        });
        self.out.push_str(bracket);
        self.atom = None;
        (self.repeats, self.states) = (1, 1);
        Ok(())
    }

    /// The name of a group whose opening, `prefix` bytes long, is at the cursor.
    fn name(&mut self, prefix: usize) -> Result<String, Error<'p>> {
        let start = self.text.at;
        let invalid = "invalid named capture";
        let Some(end) = self.text.rest().find('>') else {
            return Err(self.text.error(invalid, start, self.text.rest()));
        };
        self.text.at += end + 1;
        let name = &self.text.since(start)[prefix..end];
        if name.is_empty() || !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
            return Err(self.text.error(invalid, start, self.text.since(start)));
        }
        Ok(name.to_owned())
    }

    /// Flags in `(?i)` or `(?i:`; true if they open a group.
    fn flag_group(&mut self) -> Result<bool, Error<'p>> {
        let start = self.text.at;
        self.text.at += 2;
        let mut flags = self.flags;
        let (mut on, mut seen) = (true, false);
        while let Some(c) = self.text.next() {
            match c {
                'i' => flags.ignore_case = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_newline = on,
                'U' => flags.ungreedy = on,
                '-' if on => {
                    (on, seen) = (false, false);
                    continue;
                }
                ':' | ')' if on || seen => {
                    self.flags = flags;
                    return Ok(c == ':');
                }
                _ => break,
            }
            seen = true;
        }
        Err(self.text.error("invalid or unsupported Perl syntax", start, self.text.since(start)))
    }

    fn close(&mut self) -> Result<(), Error<'p>> {
        let Some(group) = self.groups.pop() else {
            return Err(self.text.error("unexpected )", self.text.at, self.text.from(0)));
        };
        self.text.next();
        self.out.push(')');
        self.atom = Some(Atom { start: group.start, repeats: self.repeats, states: self.states });
        self.repeats = self.repeats.max(group.repeats);
        self.states = self.states.saturating_add(group.states);
        self.flags = group.flags;
        Ok(())
    }

    /// A repetition that starts at a byte of the pattern and was read up to the cursor.
    fn repeat(&mut self, start: usize, mut operator: String, count: u64, last: Option<usize>) -> Result<(), Error<'p>> {
        let lazy = self.text.next_if(|c| c == '?').is_some();
        if let Some(last) = last {
            return Err(self.text.error("invalid nested repetition operator", last, self.text.since(last)));
        }
        let Some(atom) = self.atom else {
            let reason = "missing argument to repetition operator";
            return Err(self.text.error(reason, start, self.text.since(start)));
        };
        let repeats = if count == 0 { 1 } else { atom.repeats * count };
        if repeats > 1000 && count > 1 {
            return Err(self.text.error("invalid repeat count", start, self.text.since(start)));
        }
        if lazy != self.flags.ungreedy {
            operator.push('?');
        }
        // a repetition may be repeated again when there are flags in between
        if self.out.ends_with(['*', '+', '?', '}']) {
            self.out.insert_str(atom.start, "(?:");
            self.out.push(')');
        }
        self.out.push_str(&operator);
        let copies = usize::try_from(count).unwrap_or(usize::MAX).saturating_sub(1);
        let more = atom.states.saturating_mul(copies);
        self.states = self.states.saturating_add(more);
        self.atom = Some(Atom { repeats, states: atom.states.saturating_add(more), ..atom });
        self.repeats = self.repeats.max(repeats);
        self.last_repeat = Some(start);
        Ok(())
    }
}

/// The length of `(?P<` or `(?<` if a name can follow it.
fn name_prefix(rest: &str) -> Option<usize> {
    let prefix = ["(?P<", "(?<"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    (rest.len() > prefix.len()).then_some(prefix.len())
}

/// The smallest and largest count and the length of a repetition `{n}`, `{n,}` or `{n,m}`.
fn repetition(rest: &str) -> Option<(u64, Option<u64>, usize)> {
    let inner = &rest[1..rest.find('}')?];
    let (from, to) = inner.split_once(',').map_or((inner, None), |(from, to)| (from, Some(to)));
    let minimum = count(from)?;
    let maximum = match to {
        None => Some(minimum),
        Some("") => None,
        Some(to) => Some(count(to)?),
    };
    Some((minimum, maximum, inner.len() + 2))
}

/// A number without leading zeros; huge ones are just that.
fn count(digits: &str) -> Option<u64> {
    let fine = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    (fine && !digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX))
}
