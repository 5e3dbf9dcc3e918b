//! The functions that expressions can call, by library.

pub(crate) mod conversions;
pub(crate) mod format;
mod formats;
pub(crate) mod lists;
mod net;
mod operators;
mod optional;
mod quantity;
pub(crate) mod regex;
mod semver;
mod sets;
mod strings;
pub(crate) mod time;
mod url;

pub(crate) use formats::Format;
pub(crate) use net::{Cidr, Ip};
pub(crate) use quantity::Quantity;
pub(crate) use semver::Semver;
pub(crate) use url::Url;

use crate::expression::EvalError;
use crate::signature::Row;

/// The libraries of mutations: the standard one, and extensions for strings, lists, patterns, URLs and quantities.
pub(crate) fn mutation() -> Vec<&'static [Row]> {
    vec![
        operators::ROWS,
        conversions::ROWS,
        time::ROWS,
        regex::STANDARD_ROWS,
        regex::ROWS,
        strings::ROWS,
        strings::REVERSE_ROWS,
        lists::ROWS,
        lists::KUBERNETES_ROWS,
        url::ROWS,
        quantity::ROWS,
    ]
}

/// The libraries of validation rules: what the API server offers, and nothing else.
pub(crate) fn rule() -> Vec<&'static [Row]> {
    vec![
        operators::ROWS,
        conversions::ROWS,
        time::ROWS,
        regex::STANDARD_ROWS,
        regex::ROWS,
        strings::ROWS,
        lists::ROWS,
        lists::KUBERNETES_ROWS,
        sets::ROWS,
        optional::ROWS,
        url::ROWS,
        quantity::ROWS,
        net::ROWS,
        formats::ROWS,
        semver::ROWS,
    ]
}

/// The error of a function that cannot handle its arguments.
pub(crate) fn failed(function: &str) -> EvalError {
    EvalError::Function(function.to_owned())
}
