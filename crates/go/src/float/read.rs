//! `strconv.ParseFloat`.

/// Why a text is not a float.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FloatError {
    /// It is not written as Go writes floats.
    #[error("invalid syntax")]
    Syntax,
    /// It is too large.
    #[error("value out of range")]
    Range(
        /// The infinity that is nearest.
        f64,
    ),
}

/// `strconv.ParseFloat`: the nearest 64-bit float. Digits may be parted by `_`, `0x1.8p3` is 12, `inf` and `nan` have no case.
///
/// ```
/// use carrick_go::float::{self, FloatError};
///
/// assert_eq!(float::parse("1_000.5e-1"), Ok(100.05));
/// assert_eq!(float::parse("1e999"), Err(FloatError::Range(f64::INFINITY)));
/// assert_eq!(float::parse("1,5"), Err(FloatError::Syntax));
/// ```
pub fn parse(text: &str) -> Result<f64, FloatError> {
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (if text.starts_with('-') { -1.0 } else { 1.0 }, digits),
        None => (1.0, text),
    };
    let lower = digits.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "infinity" => return Ok(sign * f64::INFINITY),
        "nan" if digits.len() == text.len() => return Ok(f64::NAN),
        _ => {}
    }
    let hexadecimal = lower.strip_prefix("0x");
    let plain = without_underscores(hexadecimal.unwrap_or(&lower), hexadecimal.is_some()).ok_or(FloatError::Syntax)?;
    let size = if hexadecimal.is_some() {
        read_hexadecimal(&plain).ok_or(FloatError::Syntax)?
    } else {
        // Only digits, so that neither words nor a second sign are taken.
        let digits = plain.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        plain.parse::<f64>().ok().filter(|_| digits).ok_or(FloatError::Syntax)?
    };
    if size.is_finite() { Ok(sign * size) } else { Err(FloatError::Range(sign * size)) }
}

/// Underscores are allowed between digits, and after a prefix.
fn without_underscores(text: &str, hexadecimal: bool) -> Option<String> {
    let digit = |byte: &u8| byte.is_ascii_digit() || hexadecimal && byte.is_ascii_hexdigit();
    let bytes = text.as_bytes();
    let parts = |at: usize| {
        let before = at.checked_sub(1).map_or(hexadecimal, |before| digit(&bytes[before]));
        before && bytes.get(at + 1).is_some_and(digit)
    };
    let fine = (0..bytes.len()).filter(|at| bytes[*at] == b'_').all(parts);
    fine.then(|| text.replace('_', ""))
}

/// The value of `1.8p3`, rounded to the nearest float, to the even one of two.
#[allow(clippy::cast_precision_loss)] // at most 53 bits are left
fn read_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // What is beyond these is nothing or infinite anyway.
    let size = digits.parse::<i64>().unwrap_or(i64::MAX).min(1 << 40);
    let mut exponent = if exponent.starts_with('-') { -size } else { size };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut bits = 0_u64;
    for (at, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        if bits >> 60 == 0 {
            bits = bits << 4 | digit;
            exponent -= if at >= whole.len() { 4 } else { 0 };
        } else {
            // The last bit says that there is more.
            bits |= u64::from(digit != 0);
            exponent += if at >= whole.len() { 0 } else { 4 };
        }
    }
    if bits == 0 {
        return Some(0.0);
    }
    let length = i64::from(64 - bits.leading_zeros());
    if exponent + length > 1024 {
        return Some(f64::INFINITY);
    }
    // Small floats have fewer bits: none is a fraction of the smallest one.
    let cut = (length - 53).max(-1074 - exponent).max(0);
    let rounded = match u32::try_from(cut) {
        Ok(0) => bits,
        Ok(cut @ 1..=63) => {
            let (kept, rest, half) = (bits >> cut, bits & ((1 << cut) - 1), 1 << (cut - 1));
            kept + u64::from(rest > half || rest == half && kept & 1 == 1)
        }
        Ok(64) => u64::from(bits > 1 << 63),
        _ => 0,
    };
    // In two steps, because the power alone may be too small.
    let power = i32::try_from(exponent + cut).unwrap_or(-2000);
    Some(rounded as f64 * 2_f64.powi(power / 2) * 2_f64.powi(power - power / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_read_as_go_reads_them() {
        for (text, want) in [
            ("1", 1.0),
            ("+1.5", 1.5),
            ("1.", 1.0),
            (".5", 0.5),
            ("-0", -0.0),
            ("1e-400", 0.0),
            ("1_23.50_0_0e+1_2", 1.235e14),
            ("Inf", f64::INFINITY),
            ("-inFinity", f64::NEG_INFINITY),
            ("0x1p4", 16.0),
            ("0X_1.8P+3", 12.0),
            ("-0x.8p1", -1.0),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x1p-1074", 5e-324),
            ("0x1p-1075", 0.0),
            ("0x1.8p-1075", 5e-324),
            ("0x10000000000000.8p0", 4_503_599_627_370_496.0),
            ("0x10000000000001.8p0", 4_503_599_627_370_498.0),
            ("0x100000000000000000000000000000000p-128", 1.0),
            ("0x1.00000000000008000000000000000001p0", 1.000_000_000_000_000_2),
            ("0x0p99999999999999999999", 0.0),
        ] {
            assert_eq!(parse(text).map(f64::to_bits), Ok(want.to_bits()), "{text}");
        }
        assert!(parse("nAn").is_ok_and(f64::is_nan));
        for text in ["1e309", "0x1p1024", "0x1.fffffffffffff8p1023"] {
            assert_eq!(parse(text), Err(FloatError::Range(f64::INFINITY)), "{text}");
            assert_eq!(parse(&format!("-{text}")), Err(FloatError::Range(f64::NEG_INFINITY)), "{text}");
        }
        for text in [
            "", ".", "+", "1x", "e5", "1e", "--1", "+nan", "_1", "1_", "1__2", "1_.5", "0x1", "0xp1", "0x1p", "0x1p_1",
            "i", "infi", " 1",
        ] {
            assert_eq!(parse(text), Err(FloatError::Syntax), "{text}");
        }
    }
}
