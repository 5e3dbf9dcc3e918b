//! Quantities of Kubernetes: `1.5Gi`, `100m`, `2e3`.

use std::cmp::Ordering;

/// A number: `value * 10^scale`. Kubernetes treats small ones separately: only they can be integers.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    value: i128,
    scale: i32,
    small: bool,
}

/// The smallest part that is kept.
const NANO: i32 = -9;

impl Quantity {
    /// A whole number.
    pub fn whole(value: i64) -> Self {
        Self { value: i128::from(value), scale: 0, small: true }
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i64 {
        self.value.signum().try_into().unwrap_or_default()
    }

    /// Parses a quantity.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let stripped = unsigned.trim_start_matches('0');
        let whole_length = stripped.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, rest) = stripped.split_at(whole_length);
        let (decimals, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
            None => ("", rest),
        };
        let (base, exponent) = suffix_of(suffix)?;
        let whole = if whole.is_empty() { "0" } else { whole };
        let digits = [whole, decimals].concat();
        let length = i32::try_from(digits.len()).ok()?;
        let decimal_count = i32::try_from(decimals.len()).ok()?;
        let value: i128 = digits.parse().unwrap_or(i128::MAX);
        let value = if negative { -value } else { value };
        let mut found = if base == 10 {
            let scale = exponent - decimal_count;
            Self { value, scale, small: length <= 18 && scale >= NANO }
        } else {
            let fits = decimals.is_empty() && 14 - length - exponent * 3 / 10 >= 0;
            let value = value.saturating_mul(1_i128 << exponent);
            Self { value, scale: -decimal_count, small: fits && i64::try_from(value).is_ok() }
        };
        if !found.small {
            found = Self { value: found.nanos(), scale: NANO, small: false };
            let most = i128::from(i64::MAX) * 1_000_000_000;
            if base == 2 {
                found.value = found.value.clamp(-most, most);
            }
        }
        Some(found)
    }

    /// In units of a billionth, rounded away from zero.
    fn nanos(&self) -> i128 {
        let shift = self.scale - NANO;
        let power = 10_i128.checked_pow(shift.unsigned_abs()).unwrap_or(i128::MAX);
        if shift >= 0 {
            return self.value.saturating_mul(power);
        }
        let (whole, rest) = (self.value / power, self.value % power);
        if rest == 0 { whole } else { whole + self.value.signum() }
    }

    /// Which of two is larger.
    pub fn cmp(&self, other: &Self) -> Ordering {
        self.nanos().cmp(&other.nanos())
    }

    /// The number, if it is an integer to Kubernetes.
    pub fn integer(&self) -> Option<i64> {
        if !self.small || self.scale < 0 {
            return None;
        }
        let power = 10_i128.checked_pow(self.scale.unsigned_abs())?;
        self.value.checked_mul(power).and_then(|value| i64::try_from(value).ok())
    }

    /// The nearest double, more or less.
    #[allow(clippy::cast_precision_loss)] // approximate by name
    pub fn approximate(&self) -> f64 {
        let power: f64 = format!("1e{}", self.scale).parse().unwrap_or(f64::INFINITY);
        if self.scale == 0 { self.value as f64 } else { self.value as f64 * power }
    }

    /// The sum.
    pub fn plus(&self, other: &Self) -> Self {
        if self.small && other.small {
            if self.value == 0 {
                return other.clone();
            }
            let scale = self.scale.min(other.scale);
            let raised = |quantity: &Self| {
                let power = 10_i128.checked_pow((quantity.scale - scale).unsigned_abs())?;
                quantity.value.checked_mul(power).filter(|value| i64::try_from(*value).is_ok())
            };
            let sum = raised(self).zip(raised(other)).map(|(a, b)| a + b).filter(|sum| i64::try_from(*sum).is_ok());
            if let Some(value) = sum {
                return Self { value, scale, small: true };
            }
        }
        Self { value: self.nanos().saturating_add(other.nanos()), scale: NANO, small: false }
    }

    /// The difference.
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&Self { value: -other.value, ..other.clone() })
    }
}

/// Base and exponent of a suffix.
fn suffix_of(suffix: &str) -> Option<(u8, i32)> {
    Some(match suffix {
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "" => (10, 0),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        "Ki" => (2, 10),
        "Mi" => (2, 20),
        "Gi" => (2, 30),
        "Ti" => (2, 40),
        "Pi" => (2, 50),
        "Ei" => (2, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            (10, exponent.parse::<i64>().ok()?.clamp(-100, 100).try_into().ok()?)
        }
    })
}
