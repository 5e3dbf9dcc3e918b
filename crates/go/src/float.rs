//! Floats as Go's `strconv` reads and prints them, and `encoding/json`.
//!
//! Where two shortest forms are equally close to a float, Go takes the even digit and Rust's standard library the upper one.

mod read;

pub use read::{FloatError, parse};

/// More digits than a float has; further ones are zeros.
const MOST_DIGITS: usize = 1100;

/// The decimal digits of a positive float, as text: `0.d1d2d3… × 10^point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digits {
    /// ASCII digits, the first of which is zero for zero only.
    pub digits: Vec<u8>,
    /// How many of the digits are before the decimal point; negative for zeros after it.
    pub point: i32,
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

/// `strconv.FormatFloat` of a 64-bit float, in the format `e`, `E`, `f`, `F`, `g`, `G`, `b`, `x` or `X`. No precision means the shortest
/// text that reads back as the same number.
///
/// ```
/// use carrick_go::float;
///
/// assert_eq!(float::format(1e6, 'g', None), "1e+06");
/// assert_eq!(float::format(2.5, 'f', Some(0)), "2");
/// ```
pub fn format(float: f64, verb: char, precision: Option<usize>) -> String {
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

/// The fewest digits that tell a positive float from its neighbours, and of those the closest ones, the even one of two.
pub fn shortest(magnitude: f64) -> Digits {
    let short = Digits::parse(&format!("{magnitude:e}")).trimmed();
    // So many digits are needed; the closest ones are those of the exact value, unless they belong to a neighbour.
    let closest = format!("{magnitude:.*e}", short.digits.len() - 1);
    if closest.parse() == Ok(magnitude) { Digits::parse(&closest).trimmed() } else { short }
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
        // One bit before the point, sixty after it.
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

/// The form of `encoding/json`: with an exponent only below 1e-6 and from 1e21 on.
///
/// ```
/// assert_eq!(carrick_go::float::json(1e21), "1e+21");
/// ```
pub fn json(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        // A single digit exponent is written without the zero before it.
        let text = format(float, 'e', None);
        return text.replace("e-0", "e-");
    }
    format(float, 'f', None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn floats_in_json_are_printed_as_go_prints_them() {
        for (value, want) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-2.25, "-2.25"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e22, "-1.5e+22"),
            (0.000_001, "0.000001"),
            (0.000_000_1, "1e-7"),
            (1.25e-10, "1.25e-10"),
            (1e300, "1e+300"),
            (5e-324, "5e-324"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e+308"),
            (0.000_012_3, "0.0000123"),
        ] {
            assert_eq!(json(value), want);
        }
    }

    #[test]
    fn of_two_forms_that_are_equally_close_the_even_one_is_printed() {
        for (value, want) in
            [(2_241_009_620_944_033.2, "2241009620944033.2"), (9_524_076_633_548.062, "9524076633548.062")]
        {
            assert_eq!(json(value), want);
            assert_eq!(format(value, 'f', None), want);
        }
    }

    #[test]
    fn every_format_is_that_of_go() {
        for (value, verb, precision, want) in [
            (1e6, 'g', None, "1e+06"),
            (123_456.0, 'g', None, "123456"),
            (0.000_1, 'g', None, "0.0001"),
            (0.000_01, 'G', None, "1E-05"),
            (100.0, 'g', Some(2), "1e+02"),
            (1.5, 'e', None, "1.5e+00"),
            (1.5, 'e', Some(3), "1.500e+00"),
            (0.25, 'f', Some(1), "0.2"),
            (0.75, 'f', Some(1), "0.8"),
            (1e23, 'f', None, "100000000000000000000000"),
            (1.0, 'b', None, "4503599627370496p-52"),
            (1.0, 'x', None, "0x1p+00"),
            (-0.1, 'X', Some(3), "-0X1.99AP-04"),
            (f64::INFINITY, 'g', None, "+Inf"),
            (f64::NEG_INFINITY, 'f', None, "-Inf"),
            (f64::NAN, 'e', None, "NaN"),
        ] {
            assert_eq!(format(value, verb, precision), want, "{value} {verb} {precision:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_as_the_same_float(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            for text in [json(value), format(value, 'e', None), format(value, 'f', None), format(value, 'g', None)] {
                prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(bits), "{}", text);
            }
        }
    }
}
