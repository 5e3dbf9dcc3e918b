//! The functions that expressions can call, by library.

pub(crate) mod conversions;
pub(crate) mod format;
mod formats;
pub(crate) mod lists;
mod net;
mod operators;
mod optional;
mod quantity;
mod quote;
pub(crate) mod regex;
mod semver;
mod sets;
mod strings;
mod time;
mod url;

use crate::signature::Row;

/// Functions that belong together, and who has them.
pub(crate) struct Library {
    pub name: &'static str,
    pub rows: &'static [Row],
    pub mutations: bool,
    pub rules: bool,
}

const fn library(name: &'static str, rows: &'static [Row], mutations: bool, rules: bool) -> Library {
    Library { name, rows, mutations, rules }
}

/// Rules have what the API server offers. Mutations have the standard functions, and extensions for strings, lists,
/// patterns, URLs and quantities.
pub(crate) const LIBRARIES: &[Library] = &[
    library("operators", operators::ROWS, true, true),
    library("conversions", conversions::ROWS, true, true),
    library("times", time::ROWS, true, true),
    library("patterns", regex::STANDARD_ROWS, true, true),
    library("patterns", regex::ROWS, true, true),
    library("strings", strings::ROWS, true, true),
    // not in the version of the library that the API server has
    library("strings (mutations only)", strings::REVERSE_ROWS, true, false),
    library("lists", lists::ROWS, true, true),
    library("lists", lists::KUBERNETES_ROWS, true, true),
    library("sets (rules only)", sets::ROWS, false, true),
    library("optional values (rules only)", optional::ROWS, false, true),
    library("URLs", url::ROWS, true, true),
    library("quantities", quantity::ROWS, true, true),
    library("addresses (rules only)", net::ROWS, false, true),
    library("formats (rules only)", formats::ROWS, false, true),
    library("versions (rules only)", semver::ROWS, false, true),
];
