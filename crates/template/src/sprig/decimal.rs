//! Decimal arithmetic for the float functions: `addf 0.1 0.2` is 0.3 in sprig.

use std::cmp::Ordering;

use carrick_go::float::{self, Digits};

/// Digits after the point that a division keeps.
const DIVISION_DIGITS: i32 = 16;

/// A number `sign × digits × 10^exponent`; digits are 0 to 9, most significant first, without zeros in front.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i32,
}

impl Decimal {
    /// The shortest decimal that reads back as the float; none for infinities and NaN.
    pub(super) fn from_float(float: f64) -> Option<Decimal> {
        if !float.is_finite() {
            return None;
        }
        let Digits { digits, point } = float::shortest(float.abs());
        let exponent = point - i32::try_from(digits.len()).ok()?;
        let digits = digits.iter().map(|digit| digit - b'0').collect();
        Some(Decimal { negative: float < 0.0, digits: trim(digits), exponent })
    }

    pub(super) fn to_float(&self) -> f64 {
        let digits: String = self.digits.iter().map(|d| char::from(b'0' + d)).collect();
        let sign = if self.negative && !self.is_zero() { "-" } else { "" };
        format!("{sign}0{digits}e{}", self.exponent).parse().unwrap_or(0.0)
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The digits for a smaller exponent.
    fn scaled(&self, exponent: i32) -> Vec<u8> {
        let mut digits = self.digits.clone();
        if !digits.is_empty() {
            let zeros = usize::try_from(self.exponent - exponent).unwrap_or(0);
            digits.resize(digits.len() + zeros, 0);
        }
        digits
    }

    pub(super) fn add(&self, other: &Decimal) -> Decimal {
        let exponent = self.exponent.min(other.exponent);
        let (a, b) = (self.scaled(exponent), other.scaled(exponent));
        if self.negative == other.negative {
            return Decimal { negative: self.negative, digits: plus(&a, &b), exponent };
        }
        match compare(&a, &b) {
            Ordering::Less => Decimal { negative: other.negative, digits: minus(&b, &a), exponent },
            Ordering::Equal => Decimal { negative: false, digits: Vec::new(), exponent },
            Ordering::Greater => Decimal { negative: self.negative, digits: minus(&a, &b), exponent },
        }
    }

    pub(super) fn sub(&self, other: &Decimal) -> Decimal {
        self.add(&Decimal { negative: !other.negative, ..other.clone() })
    }

    pub(super) fn mul(&self, other: &Decimal) -> Decimal {
        let mut product = vec![0u64; self.digits.len() + other.digits.len()];
        for (i, a) in self.digits.iter().rev().enumerate() {
            for (j, b) in other.digits.iter().rev().enumerate() {
                product[i + j] += u64::from(*a) * u64::from(*b);
            }
        }
        carry(&mut product);
        let digits = product.iter().rev().map(|d| u8::try_from(*d).unwrap_or(0)).collect();
        let negative = self.negative != other.negative;
        Decimal { negative, digits: trim(digits), exponent: self.exponent + other.exponent }
    }

    /// Rounds half away from zero; none when dividing by zero.
    pub(super) fn div(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let negative = self.negative != other.negative;
        let shift = self.exponent - other.exponent + DIVISION_DIGITS;
        let mut numerator = self.digits.clone();
        let mut divisor = other.digits.clone();
        let zeros = usize::try_from(shift.unsigned_abs()).unwrap_or(0);
        if shift >= 0 {
            numerator.resize(numerator.len() + zeros, 0);
        } else {
            divisor.resize(divisor.len() + zeros, 0);
        }
        let (mut quotient, remainder) = divide(&numerator, &divisor);
        if compare(&plus(&remainder, &remainder), &divisor) != Ordering::Less {
            quotient = plus(&quotient, &[1]);
        }
        Some(Decimal { negative, digits: quotient, exponent: -DIVISION_DIGITS })
    }

    /// Digits are work; long numbers come from repeated multiplication.
    pub(super) fn size(&self) -> usize {
        self.digits.len() + usize::try_from(self.exponent.unsigned_abs()).unwrap_or(0)
    }
}

fn trim(mut digits: Vec<u8>) -> Vec<u8> {
    let zeros = digits.iter().take_while(|d| **d == 0).count();
    digits.drain(..zeros);
    digits
}

fn compare(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn carry(digits: &mut [u64]) {
    let mut over = 0;
    for digit in digits {
        let sum = *digit + over;
        *digit = sum % 10;
        over = sum / 10;
    }
}

fn plus(a: &[u8], b: &[u8]) -> Vec<u8> {
    let length = a.len().max(b.len()) + 1;
    let digit = |digits: &[u8], i: usize| digits.len().checked_sub(i + 1).map_or(0, |at| digits[at]);
    let mut sum = Vec::with_capacity(length);
    let mut over = 0;
    for i in 0..length {
        let total = digit(a, i) + digit(b, i) + over;
        sum.push(total % 10);
        over = total / 10;
    }
    sum.reverse();
    trim(sum)
}

/// The first must not be smaller.
fn minus(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut difference = a.to_vec();
    let mut borrow = 0;
    for i in 0..a.len() {
        let at = a.len() - 1 - i;
        let take = b.len().checked_sub(i + 1).map_or(0, |at| b[at]) + borrow;
        borrow = u8::from(difference[at] < take);
        difference[at] = difference[at] + 10 * borrow - take;
    }
    trim(difference)
}

fn divide(numerator: &[u8], divisor: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut quotient = Vec::with_capacity(numerator.len());
    let mut remainder = Vec::new();
    for digit in numerator {
        remainder.push(*digit);
        remainder = trim(remainder);
        let mut times = 0;
        while compare(&remainder, divisor) != Ordering::Less {
            remainder = minus(&remainder, divisor);
            times += 1;
        }
        quotient.push(times);
    }
    (trim(quotient), remainder)
}
