//! Format strings: finds the directives and prints the operands they ask for.

use super::printer::{Flags, Printer};
use crate::{heap::Outcome, runes, value::Value};

/// Largest width, precision and argument number that Go accepts.
const LARGEST: usize = 1_000_000;

/// Prints a format string with its operands.
pub(super) fn print(printer: &mut Printer<'_>, format: &[u8], values: &[Value]) -> Outcome<()> {
    let mut directives = Directives { format, pos: 0, values, next: 0, reordered: false, index_ok: true };
    while directives.pos < format.len() {
        let rest = &format[directives.pos..];
        let literal = rest.iter().position(|b| *b == b'%').unwrap_or(rest.len());
        printer.out.push(&rest[..literal])?;
        directives.pos += literal;
        if directives.pos < format.len() {
            directives.pos += 1;
            directives.one(printer)?;
        }
    }
    printer.flags = Flags::default();
    if directives.reordered || directives.next >= values.len() {
        return Ok(());
    }
    printer.out.text("%!(EXTRA ")?;
    for (index, value) in values[directives.next..].iter().enumerate() {
        if index > 0 {
            printer.out.text(", ")?;
        }
        if value.is_nothing() {
            printer.out.text("<nil>")?;
        } else {
            printer.out.text(&value.type_name())?;
            printer.out.text("=")?;
            printer.value(value, 'v')?;
        }
    }
    printer.out.text(")")
}

struct Directives<'a> {
    format: &'a [u8],
    pos: usize,
    values: &'a [Value],
    /// The operand that comes next.
    next: usize,
    /// `[n]` was used, so unused operands are not a mistake.
    reordered: bool,
    /// The last `[n]` was well-formed.
    index_ok: bool,
}

impl Directives<'_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.pos).copied()
    }

    /// Prints the directive after a `%`.
    fn one(&mut self, printer: &mut Printer<'_>) -> Outcome<()> {
        self.index_ok = true;
        let mut flags = self.flags();
        let mut after_index = self.index();
        if self.peek() == Some(b'*') {
            self.pos += 1;
            match self.number_operand() {
                Some(width) => {
                    if width < 0 {
                        flags.minus = true;
                        flags.zero = false;
                    }
                    flags.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => printer.out.text("%!(BADWIDTH)")?,
            }
            after_index = false;
        } else {
            flags.width = self.number();
            if after_index && flags.width.is_some() {
                self.index_ok = false;
            }
        }
        if self.peek() == Some(b'.') {
            self.pos += 1;
            if after_index {
                self.index_ok = false;
            }
            after_index = self.index();
            if self.peek() == Some(b'*') {
                self.pos += 1;
                match self.number_operand() {
                    Some(precision @ 0..) => flags.precision = usize::try_from(precision).ok(),
                    _ => printer.out.text("%!(BADPREC)")?,
                }
                after_index = false;
            } else {
                flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !after_index {
            self.index();
        }
        let Some((verb, width)) = runes::first(&self.format[self.pos..]) else {
            return printer.out.text("%!(NOVERB)");
        };
        self.pos += width;
        if verb == '%' {
            return printer.out.text("%");
        }
        if !self.index_ok || self.next >= self.values.len() {
            let problem = if self.index_ok { "(MISSING)" } else { "(BADINDEX)" };
            printer.out.text("%!")?;
            printer.out.char(verb)?;
            return printer.out.text(problem);
        }
        if matches!(verb, 'v' | 'w') {
            flags.sharp_v = std::mem::take(&mut flags.sharp);
            flags.plus_v = std::mem::take(&mut flags.plus);
        }
        printer.flags = flags;
        let value = &self.values[self.next];
        self.next += 1;
        printer.value(value, verb)
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.pos += 1;
        }
        flags
    }

    /// Reads a number of the format; one that is too large is skipped.
    fn number(&mut self) -> Option<usize> {
        let digits = self.format[self.pos..].iter().take_while(|b| b.is_ascii_digit()).count();
        let text = &self.format[self.pos..self.pos + digits];
        self.pos += digits;
        std::str::from_utf8(text).ok()?.parse().ok().filter(|n| *n <= LARGEST)
    }

    /// Takes an operand as width or precision.
    fn number_operand(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        let number = match value {
            Value::Int(i) | Value::Int64(i) => *i,
            Value::Uint(_, u) => i64::try_from(*u).ok()?,
            _ => return None,
        };
        (number.unsigned_abs() <= LARGEST as u64).then_some(number)
    }

    /// Reads `[n]`, which chooses the next operand.
    fn index(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = &self.format[self.pos + 1..];
        let Some(length) = rest.iter().position(|b| *b == b']') else {
            self.index_ok = false;
            self.pos += 1;
            return false;
        };
        self.pos += length + 2;
        let number = std::str::from_utf8(&rest[..length]).ok().and_then(|text| text.parse::<usize>().ok());
        match number {
            Some(number @ 1..) if number <= self.values.len() => {
                self.next = number - 1;
                true
            }
            _ => {
                self.index_ok = false;
                true
            }
        }
    }
}
