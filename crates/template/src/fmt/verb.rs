//! Printing of single strings and numbers.

use carrick_go::float;
use carrick_go::quote::{self, Charset};

use super::printer::Printer;
use crate::{heap::Outcome, runes, value::Value};

impl Printer<'_> {
    /// Appends a text, padded to the width.
    pub(super) fn pad(&mut self, text: &[u8]) -> Outcome<()> {
        let Some(width) = self.flags.width else { return self.out.push(text) };
        let padding = width.saturating_sub(runes::count(text));
        if self.flags.minus {
            self.out.push(text)?;
            self.out.fill(b' ', padding)
        } else {
            self.out.fill(if self.flags.zero { b'0' } else { b' ' }, padding)?;
            self.out.push(text)
        }
    }

    fn pad_without_zeros(&mut self, text: &[u8]) -> Outcome<()> {
        let zero = std::mem::take(&mut self.flags.zero);
        let outcome = self.pad(text);
        self.flags.zero = zero;
        outcome
    }

    fn charset(&self) -> Charset {
        if self.flags.plus { Charset::Ascii } else { Charset::Printable }
    }

    pub(super) fn string(&mut self, text: &[u8], verb: char) -> Outcome<()> {
        if matches!(verb, 'x' | 'X') {
            return self.string_as_hex(text, verb == 'X');
        }
        let text = match self.flags.precision {
            Some(most) => &text[..runes::pieces(text).take(most).map(|(_, piece)| piece.len()).sum()],
            None => text,
        };
        if verb == 'q' || self.flags.sharp_v {
            self.heap.take(2 * text.len())?;
            if self.flags.sharp && quote::can_backquote(text) {
                return self.pad(&[b"`", text, b"`"].concat());
            }
            let quoted = quote::quote(text, self.charset());
            return self.pad(quoted.as_bytes());
        }
        self.pad(text)
    }

    fn string_as_hex(&mut self, text: &[u8], upper: bool) -> Outcome<()> {
        let text = &text[..self.flags.precision.unwrap_or(usize::MAX).min(text.len())];
        self.heap.take(5 * text.len())?;
        let prefix = match (self.flags.sharp, upper) {
            (false, _) => "",
            (true, false) => "0x",
            (true, true) => "0X",
        };
        let mut hex = String::new();
        for (index, byte) in text.iter().enumerate() {
            if index > 0 && self.flags.space {
                hex.push(' ');
            }
            if index == 0 || self.flags.space {
                hex.push_str(prefix);
            }
            let digits = if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
            hex.push_str(&digits);
        }
        self.pad(hex.as_bytes())
    }

    pub(super) fn unsigned(&mut self, value: &Value, number: u64, verb: char) -> Outcome<()> {
        if verb == 'v' && self.flags.sharp_v {
            let sharp = std::mem::replace(&mut self.flags.sharp, true);
            let outcome = self.integer(value, number, false, 'x');
            self.flags.sharp = sharp;
            return outcome;
        }
        self.integer(value, number, false, verb)
    }

    pub(super) fn integer(&mut self, value: &Value, magnitude: u64, negative: bool, verb: char) -> Outcome<()> {
        let (digits, prefix) = match verb {
            'v' | 'd' => (magnitude.to_string(), ""),
            'b' => (format!("{magnitude:b}"), if self.flags.sharp { "0b" } else { "" }),
            'o' => (format!("{magnitude:o}"), if self.flags.sharp { "0" } else { "" }),
            'O' => (format!("{magnitude:o}"), if self.flags.sharp { "0o0" } else { "0o" }),
            'x' => (format!("{magnitude:x}"), if self.flags.sharp { "0x" } else { "" }),
            'X' => (format!("{magnitude:X}"), if self.flags.sharp { "0X" } else { "" }),
            'c' => {
                let c = character(magnitude, negative);
                return self.pad(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            'q' => {
                let quoted = quote::quote_char(character(magnitude, negative), self.charset());
                return self.pad(quoted.as_bytes());
            }
            'U' => return self.code_point(if negative { magnitude.wrapping_neg() } else { magnitude }),
            _ => return self.bad_verb(value, verb),
        };
        let sign = match (negative, self.flags.plus, self.flags.space) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            _ => "",
        };
        let least = match (self.flags.precision, self.flags.width) {
            (Some(0), _) if magnitude == 0 => return self.pad_without_zeros(b""),
            (Some(least), _) => least,
            (None, Some(width)) if self.flags.zero && !self.flags.minus => width - sign.len().min(width),
            _ => 0,
        };
        let zeros = least.saturating_sub(digits.len());
        // An octal number that starts with a zero needs no other one.
        let starts_with_zero = zeros > 0 || magnitude == 0;
        let prefix = match prefix {
            "0" if starts_with_zero => "",
            "0o0" if starts_with_zero => "0o",
            other => other,
        };
        self.heap.take(zeros)?;
        let text = format!("{sign}{prefix}{}{digits}", "0".repeat(zeros));
        self.pad_without_zeros(text.as_bytes())
    }

    fn code_point(&mut self, code: u64) -> Outcome<()> {
        let least = self.flags.precision.unwrap_or(4).max(4);
        self.heap.take(least)?;
        let digits = format!("{code:X}");
        let mut text = format!("U+{}{digits}", "0".repeat(least.saturating_sub(digits.len())));
        if self.flags.sharp
            && let Some(c) = u32::try_from(code).ok().and_then(char::from_u32).filter(|c| runes::is_print(*c))
        {
            text.extend([' ', '\'', c, '\'']);
        }
        self.pad_without_zeros(text.as_bytes())
    }

    pub(super) fn complex(&mut self, value: &Value, real: f64, imaginary: f64, verb: char) -> Outcome<()> {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return self.bad_verb(value, verb);
        }
        self.out.text("(")?;
        self.float(value, real, verb)?;
        let plus = std::mem::replace(&mut self.flags.plus, true);
        self.float(value, imaginary, verb)?;
        self.flags.plus = plus;
        self.out.text("i)")
    }

    pub(super) fn float(&mut self, value: &Value, number: f64, verb: char) -> Outcome<()> {
        let (format, default) = match verb {
            'v' => ('g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => (verb, None),
            'f' | 'e' | 'E' | 'F' => (verb, Some(6)),
            _ => return self.bad_verb(value, verb),
        };
        let precision = self.flags.precision.or(default);
        self.heap.take(precision.unwrap_or(0))?;
        let mut text = float::format(number, format, precision);
        if !text.starts_with(['+', '-']) {
            text.insert(0, '+');
        }
        if !number.is_finite() {
            let bare = !self.flags.plus && (number.is_nan() || number > 0.0);
            let text = match (bare, self.flags.space) {
                (true, true) => format!(" {}", &text[1..]),
                (true, false) if number.is_nan() => text[1..].to_owned(),
                _ => text,
            };
            return self.pad_without_zeros(text.as_bytes());
        }
        if self.flags.sharp && format != 'b' {
            text = with_point(&text, format, precision);
        }
        let positive = text.starts_with('+');
        if positive && self.flags.space && !self.flags.plus {
            text.replace_range(..1, " ");
        } else if positive && !self.flags.plus {
            return self.pad(&text.as_bytes()[1..]);
        }
        let width = self.flags.width.unwrap_or(0);
        if self.flags.zero && !self.flags.minus && width > text.len() {
            self.out.push(&text.as_bytes()[..1])?;
            self.out.fill(b'0', width - text.len())?;
            return self.out.push(&text.as_bytes()[1..]);
        }
        self.pad(text.as_bytes())
    }
}

fn character(magnitude: u64, negative: bool) -> char {
    let code = if negative { None } else { u32::try_from(magnitude).ok() };
    code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The `#` flag: a decimal point always, and for `%g` the zeros at the end.
fn with_point(text: &str, format: char, precision: Option<usize>) -> String {
    let exponent = if matches!(format, 'x' | 'X') { ['p', 'P'] } else { ['e', 'E'] };
    let (number, tail) = text.split_at(text.find(exponent).unwrap_or(text.len()));
    let mut number = number.to_owned();
    let wanted = if matches!(format, 'g' | 'G' | 'x') { precision.unwrap_or(6) } else { 0 };
    let significant = number.trim_start_matches(['+', '-', '0', '.']).chars().filter(|c| *c != '.').count();
    let mut missing = wanted.saturating_sub(significant);
    if !number.contains('.') {
        if number.len() == 2 && number.ends_with('0') {
            missing = missing.saturating_sub(1);
        }
        number.push('.');
    }
    format!("{number}{}{tail}", "0".repeat(missing))
}
