//! New RSA and DSA keys.

use std::cell::Cell;

use crypto_bigint::{
    BoxedUint, ConcatenatingMul, NonZero, Odd, RandomMod, Resize,
    modular::{BoxedMontyForm, BoxedMontyParams},
};
use crypto_primes::{
    Flavor,
    hazmat::{SetBits, SmallFactorsSieveFactory, random_odd_integer},
    is_prime, sieve_and_find,
};
use getrandom::{SysRng, rand_core::UnwrapErr};

use super::der;

/// Candidates that are tried at most. One in about a hundred is prime, so that a search hardly ever ends without one.
const ATTEMPTS: usize = 5000;
/// The exponent of every RSA key.
const EXPONENT: u32 = 65_537;
/// Bits of the two primes of a DSA key.
const DSA_BITS: (u32, u32) = (2048, 256);

type Made<T> = Result<T, String>;

fn generator() -> UnwrapErr<SysRng> {
    UnwrapErr(SysRng)
}

fn unlucky() -> String {
    "no prime was found; try again".to_owned()
}

fn prime(bits: u32) -> Made<BoxedUint> {
    // With the two highest bits set, the product of two primes has all its bits.
    let factory = SmallFactorsSieveFactory::new(Flavor::Any, bits, SetBits::TwoMsb).map_err(|e| e.to_string())?;
    let attempts = Cell::new(0);
    let found = sieve_and_find(&mut generator(), factory, |_, candidate: &BoxedUint| {
        attempts.set(attempts.get() + 1);
        attempts.get() > ATTEMPTS || is_prime(Flavor::Any, candidate)
    });
    match found {
        Ok(Some(prime)) if attempts.get() <= ATTEMPTS => Ok(prime),
        _ => Err(unlucky()),
    }
}

fn one() -> BoxedUint {
    BoxedUint::from(1u32)
}

fn non_zero(number: BoxedUint) -> Made<NonZero<BoxedUint>> {
    NonZero::new(number).into_option().ok_or_else(unlucky)
}

/// The inverse of a number.
fn inverse(number: &BoxedUint, modulus: &BoxedUint) -> Option<BoxedUint> {
    let modulus = NonZero::new(modulus.clone()).into_option()?;
    number.rem_vartime(&modulus).resize(modulus.bits_precision()).invert_mod(&modulus).into_option()
}

fn remainder(number: &BoxedUint, modulus: BoxedUint) -> Made<BoxedUint> {
    Ok(number.rem_vartime(&non_zero(modulus)?))
}

/// Makes an RSA key, in the form of PKCS#1.
pub(super) fn rsa(bits: u32) -> Made<Vec<u8>> {
    let exponent = BoxedUint::from(EXPONENT);
    for _ in 0..ATTEMPTS {
        let (mut p, mut q) = (prime(bits / 2)?, prime(bits / 2)?);
        if p < q {
            std::mem::swap(&mut p, &mut q);
        }
        let (p1, q1) = (p.wrapping_sub(one()), q.wrapping_sub(one()));
        let (Some(d), Some(inverse_q)) = (inverse(&exponent, &p1.concatenating_mul(&q1)), inverse(&q, &p)) else {
            continue;
        };
        let numbers =
            [&p.concatenating_mul(&q), &exponent, &d, &p, &q, &remainder(&d, p1)?, &remainder(&d, q1)?, &inverse_q];
        let numbers = numbers.map(|number| der::integer(&number.to_be_bytes()));
        return Ok(der::sequence(&[&[der::integer(&[0])], numbers.as_slice()].concat()));
    }
    Err(unlucky())
}

/// Makes parameters and a DSA key, in the form that OpenSSL gave them.
pub(super) fn dsa() -> Made<Vec<u8>> {
    let (p_bits, q_bits) = DSA_BITS;
    let order = prime(q_bits)?;
    let modulus = field(&order, p_bits)?;
    let params = BoxedMontyParams::new_vartime(Odd::new(modulus.clone()).into_option().ok_or_else(unlucky)?);
    let power = |base: BoxedUint, exponent: &BoxedUint| BoxedMontyForm::new(base, &params).pow(exponent).retrieve();
    let (cofactor, _) = modulus.wrapping_sub(one()).div_rem_vartime(&non_zero(order.clone())?);
    let base = power(BoxedUint::from(2u32).resize(p_bits), &cofactor);
    let secret = BoxedUint::random_mod_vartime(&mut generator(), &non_zero(order.clone())?);
    let public = power(base.clone(), &secret);
    let numbers = [&modulus, &order, &base, &public, &secret].map(|number| der::integer(&number.to_be_bytes()));
    Ok(der::sequence(&[&[der::integer(&[0])], numbers.as_slice()].concat()))
}

/// A prime with a multiple of another one before it.
fn field(q: &BoxedUint, bits: u32) -> Made<BoxedUint> {
    let small = small_primes();
    let twice = non_zero(q.concatenating_mul(BoxedUint::from(2u32)))?;
    let length = std::num::NonZero::new(bits).ok_or_else(unlucky)?;
    for _ in 0..ATTEMPTS {
        let start: Odd<BoxedUint> =
            random_odd_integer(&mut generator(), length, SetBits::TwoMsb).map_err(|error| error.to_string())?;
        let start = start.get();
        let above = start.rem_vartime(&twice).resize(bits);
        let candidate = start.wrapping_sub(above).wrapping_add(one());
        // Most candidates have a small divisor, which shows at once.
        let has_divisor = small.iter().any(|divisor| candidate.rem_limb(*divisor).0 == 0);
        if !has_divisor && candidate.bits() == bits && is_prime(Flavor::Any, &candidate) {
            return Ok(candidate);
        }
    }
    Err(unlucky())
}

fn small_primes() -> Vec<NonZero<crypto_bigint::Limb>> {
    const LAST: u16 = 4000;
    let is_prime = |number: &u16| (2..*number).take_while(|d| d * d <= *number).all(|d| !number.is_multiple_of(d));
    let limb = |number| NonZero::new(crypto_bigint::Limb::from(number)).into_option();
    (3..LAST).filter(is_prime).filter_map(limb).collect()
}
