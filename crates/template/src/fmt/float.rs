//! Go's text forms of floats.

/// More digits than a float has; further ones are zeros.
const MOST_DIGITS: usize = 1100;

/// Decimal digits of a positive float: `0.d1d2d3… × 10^point`.
struct Digits {
    digits: Vec<u8>,
    point: i32,
}

impl Digits {
    /// From Rust's exponent form.
    fn parse(text: &str) -> Digits {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        let zero = digits.iter().all(|d| *d == b'0');
        let point = if zero { 1 } else { exponent.parse::<i32>().unwrap_or(0) + 1 };
        Digits { digits, point }
    }

    fn trimmed(mut self) -> Digits {
        while self.digits.len() > 1 && self.digits.last() == Some(&b'0') {
            self.digits.pop();
        }
        self
    }

    fn exponent_form(&self, decimals: usize) -> String {
        let mut text = String::new();
        text.push(char::from(self.digits[0]));
        if decimals > 0 {
            text.push('.');
            text.extend((1..=decimals).map(|i| char::from(self.digits.get(i).copied().unwrap_or(b'0'))));
        }
        let exponent = self.point - 1;
        let sign = if exponent < 0 { '-' } else { '+' };
        text + &format!("e{sign}{:02}", exponent.unsigned_abs())
    }

    fn positional_form(&self, decimals: usize) -> String {
        let digit = |position: i32| {
            let index = usize::try_from(position).ok();
            char::from(index.and_then(|i| self.digits.get(i)).copied().unwrap_or(b'0'))
        };
        let mut text: String = (0..self.point.max(0)).map(digit).collect();
        if text.is_empty() {
            text.push('0');
        }
        if decimals > 0 {
            text.push('.');
            text.extend((self.point..).take(decimals).map(digit));
        }
        text
    }
}

/// `strconv.FormatFloat`; no precision means the shortest text that reads back as the same number.
pub(crate) fn format(float: f64, verb: char, precision: Option<usize>) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if float.is_sign_negative() { "-" } else { "" };
    if float.is_infinite() {
        return if sign.is_empty() { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let magnitude = float.abs();
    let text = match verb {
        'b' => binary(magnitude),
        'x' | 'X' => hexadecimal(magnitude, precision),
        'e' | 'E' => exponent(magnitude, precision),
        'f' | 'F' => positional(magnitude, precision),
        _ => general(magnitude, precision),
    };
    let text = if verb.is_ascii_uppercase() && verb != 'F' { text.to_ascii_uppercase() } else { text };
    format!("{sign}{text}")
}

fn shortest(magnitude: f64) -> Digits {
    Digits::parse(&format!("{magnitude:e}")).trimmed()
}

fn exponent(magnitude: f64, precision: Option<usize>) -> String {
    match precision {
        None => {
            let digits = shortest(magnitude);
            digits.exponent_form(digits.digits.len() - 1)
        }
        Some(decimals) => Digits::parse(&format!("{magnitude:.*e}", decimals.min(MOST_DIGITS))).exponent_form(decimals),
    }
}

fn positional(magnitude: f64, precision: Option<usize>) -> String {
    match precision {
        None => {
            let digits = shortest(magnitude);
            let length = i32::try_from(digits.digits.len()).unwrap_or(i32::MAX);
            digits.positional_form(usize::try_from(length - digits.point).unwrap_or(0))
        }
        Some(decimals) => {
            let exact = decimals.min(MOST_DIGITS);
            let zeros = "0".repeat(decimals - exact);
            format!("{magnitude:.exact$}{zeros}")
        }
    }
}

fn general(magnitude: f64, precision: Option<usize>) -> String {
    let (digits, threshold) = match precision {
        None => (shortest(magnitude), 6),
        Some(precision) => {
            let significant = precision.clamp(1, MOST_DIGITS);
            let digits = Digits::parse(&format!("{magnitude:.*e}", significant - 1)).trimmed();
            let length = digits.digits.len();
            let whole = i32::try_from(length).is_ok_and(|length| length >= digits.point);
            let threshold = if significant > length && whole { length } else { significant };
            (digits, i32::try_from(threshold).unwrap_or(i32::MAX))
        }
    };
    let length = digits.digits.len();
    let exponent = digits.point - 1;
    if exponent < -4 || exponent >= threshold {
        return digits.exponent_form(length - 1);
    }
    let decimals = i32::try_from(length).unwrap_or(i32::MAX) - digits.point;
    digits.positional_form(usize::try_from(decimals).unwrap_or(0))
}

/// Mantissa and power of two of a positive float.
fn parts(magnitude: f64) -> (u64, i32) {
    let bits = magnitude.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let exponent = i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

fn binary(magnitude: f64) -> String {
    let (mantissa, exponent) = parts(magnitude);
    format!("{mantissa}p{exponent:+}")
}

fn hexadecimal(magnitude: f64, precision: Option<usize>) -> String {
    let (mut mantissa, mut exponent) = parts(magnitude);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // One bit before the point, sixty behind it.
        let shift = mantissa.leading_zeros().saturating_sub(3);
        mantissa <<= shift;
        exponent += 60 - i32::try_from(shift).unwrap_or(0);
    }
    let decimals = match precision {
        None => 15 - usize::try_from(mantissa.trailing_zeros().min(60) / 4).unwrap_or(0),
        Some(decimals) => {
            if decimals < 15 {
                let shift = 4 * (15 - decimals);
                let half = 1u64 << (shift - 1);
                let odd = mantissa >> shift & 1;
                mantissa = (mantissa + half - 1 + odd) >> shift << shift;
                if mantissa >> 61 != 0 {
                    mantissa >>= 1;
                    exponent += 1;
                }
            }
            decimals
        }
    };
    let digits = format!("{:015x}", mantissa & ((1 << 60) - 1));
    let fraction: String = digits.chars().chain(std::iter::repeat('0')).take(decimals).collect();
    let point = if decimals > 0 { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{}{point}{fraction}p{sign}{:02}", mantissa >> 60, exponent.unsigned_abs())
}

/// The form of `encoding/json`.
pub(crate) fn json(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        // A single digit exponent is written without the zero before it.
        let text = format(float, 'e', None);
        return text.replace("e-0", "e-");
    }
    format(float, 'f', None)
}
