//! Quantities of Kubernetes: `1.5Gi`, `100m`, `2e3`.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::budget::Budget;
use crate::eval::{Outcome, overload};
use crate::functions::failed;
use crate::signature::Row;
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("quantity(string): Quantity", |arguments, budget| {
        let found = parsed("quantity", arguments, budget)?;
        found.map(|found| Value::Quantity(Arc::new(found))).ok_or_else(|| failed("quantity"))
    }),
    ("isQuantity(string): bool", |arguments, budget| {
        parsed("isQuantity", arguments, budget).map(|found| Value::Bool(found.is_some()))
    }),
    ("sign(Quantity): int", |arguments, _| {
        let (found, _) = target("sign", arguments)?;
        Ok(Value::Int(found.value.signum().try_into().unwrap_or_default()))
    }),
    ("Quantity.isGreaterThan(Quantity): bool", |arguments, _| {
        compare("isGreaterThan", arguments, |order| Value::Bool(order.is_gt()))
    }),
    ("Quantity.isLessThan(Quantity): bool", |arguments, _| {
        compare("isLessThan", arguments, |order| Value::Bool(order.is_lt()))
    }),
    ("Quantity.compareTo(Quantity): int", |arguments, _| {
        compare("compareTo", arguments, |order| Value::Int(order as i64))
    }),
    ("Quantity.asApproximateFloat(): double", |arguments, _| {
        Ok(Value::Double(target("asApproximateFloat", arguments)?.0.approximate()))
    }),
    ("Quantity.asInteger(): int", |arguments, _| {
        target("asInteger", arguments)?.0.integer().map(Value::Int).ok_or_else(|| failed("asInteger"))
    }),
    ("Quantity.isInteger(): bool", |arguments, _| {
        Ok(Value::Bool(target("isInteger", arguments)?.0.integer().is_some()))
    }),
    ("Quantity.add(Quantity): Quantity\nQuantity.add(int): Quantity", |arguments, _| {
        let (a, b) = target("add", arguments)?;
        Ok(Value::Quantity(Arc::new(a.plus(&b.ok_or_else(|| overload("add", arguments))?))))
    }),
    ("Quantity.sub(Quantity): Quantity\nQuantity.sub(int): Quantity", |arguments, _| {
        let (a, b) = target("sub", arguments)?;
        Ok(Value::Quantity(Arc::new(a.minus(&b.ok_or_else(|| overload("sub", arguments))?))))
    }),
];

/// The quantity a function was called on, and the other one.
fn target<'a>(
    name: &str,
    arguments: &'a [Value],
) -> Result<(&'a Quantity, Option<Quantity>), crate::expression::EvalError> {
    match arguments {
        [Value::Quantity(a)] => Ok((a, None)),
        [Value::Quantity(a), Value::Quantity(b)] => Ok((a, Some((**b).clone()))),
        [Value::Quantity(a), Value::Int(b)] => Ok((a, Some(Quantity { value: i128::from(*b), scale: 0, small: true }))),
        _ => Err(overload(name, arguments)),
    }
}

fn parsed(name: &str, arguments: &[Value], budget: &Budget) -> Result<Option<Quantity>, crate::expression::EvalError> {
    let [Value::String(text)] = arguments else { return Err(overload(name, arguments)) };
    budget.bytes(text.len())?;
    Ok(Quantity::parse(text))
}

fn compare(name: &str, arguments: &[Value], result: impl Fn(Ordering) -> Value) -> Outcome {
    match target(name, arguments)? {
        (a, Some(b)) => Ok(result(a.cmp(&b))),
        _ => Err(overload(name, arguments)),
    }
}

/// A number: `value * 10^scale`. Kubernetes tells small ones apart, which alone can be integers.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    value: i128,
    scale: i32,
    small: bool,
}

/// The smallest part that is kept.
const NANO: i32 = -9;

impl Quantity {
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

    pub fn cmp(&self, other: &Self) -> Ordering {
        self.nanos().cmp(&other.nanos())
    }

    fn integer(&self) -> Option<i64> {
        if !self.small || self.scale < 0 {
            return None;
        }
        let power = 10_i128.checked_pow(self.scale.unsigned_abs())?;
        self.value.checked_mul(power).and_then(|value| i64::try_from(value).ok())
    }

    #[allow(clippy::cast_precision_loss)] // approximate by name
    fn approximate(&self) -> f64 {
        let power: f64 = format!("1e{}", self.scale).parse().unwrap_or(f64::INFINITY);
        if self.scale == 0 { self.value as f64 } else { self.value as f64 * power }
    }

    fn plus(&self, other: &Self) -> Self {
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

    fn minus(&self, other: &Self) -> Self {
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
