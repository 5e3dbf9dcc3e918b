//! The functions of sprig 3.3 but for those in `refused`, and the three hash functions the sync agent adds.

mod base32;
mod base64;
mod cases;
mod cast;
mod crypto;
mod date;
mod decimal;
mod defaults;
mod dicts;
mod encode;
mod json;
mod lists;
mod math;
mod merge;
mod passwords;
mod paths;
mod random;
mod reflect;
pub(crate) mod refused;
mod regex;
mod search;
mod strings;
mod url;
mod versions;
mod words;

use crate::{
    functions::Function,
    heap::{Heap, Outcome},
    value::{Str, Value},
};

/// A value as Go's encoding/json writes it.
pub(crate) fn json(heap: &Heap, value: &Value) -> Outcome<Str> {
    json::encode(heap, value, json::Style::Escaped)
}

/// All functions, by topic.
pub(crate) const GROUPS: &[&[Function]] = &[
    crypto::FUNCTIONS,
    date::FUNCTIONS,
    defaults::FUNCTIONS,
    dicts::FUNCTIONS,
    encode::FUNCTIONS,
    json::FUNCTIONS,
    lists::FUNCTIONS,
    math::FUNCTIONS,
    passwords::FUNCTIONS,
    paths::FUNCTIONS,
    random::FUNCTIONS,
    reflect::FUNCTIONS,
    regex::FUNCTIONS,
    strings::FUNCTIONS,
    url::FUNCTIONS,
    versions::FUNCTIONS,
];
