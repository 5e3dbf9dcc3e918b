//! Strings and numbers as sjson writes them.

use std::borrow::Cow;

use super::found::parse_float;
use crate::go;

/// A string as sjson writes it: only those that need an escape are encoded as Go does it.
pub(super) fn quoted(text: &str) -> String {
    let plain = |byte: u8| (b' '..=0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) { format!("\"{text}\"") } else { go::to_string(text).unwrap_or_default() }
}

/// A number as Go writes it after reading it as a float, by `format`; one that no float holds stays as it is written.
pub(super) fn number(literal: &str, format: fn(f64) -> String) -> Cow<'_, str> {
    let written = format(parse_float(literal));
    if decimal(&written) == decimal(literal) { Cow::Owned(written) } else { Cow::Borrowed(literal) }
}

/// A number as its sign, its digits without leading and trailing zeros, and the power of ten of the first one.
fn decimal(literal: &str) -> Option<(bool, String, i64)> {
    let (negative, unsigned) = literal.strip_prefix('-').map_or((false, literal), |rest| (true, rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some((negative, String::new(), 0));
    }
    let leading = i64::try_from(digits.len() - significant.len()).ok()?;
    let power = exponent.checked_add(i64::try_from(whole.len()).ok()?)?.checked_sub(leading)?;
    Some((negative, significant.trim_end_matches('0').to_owned(), power))
}
