//! Upper, lower and title case, one character for one character as in Go.

use crate::{
    heap::{Heap, Outcome},
    runes,
    value::Value,
};

/// Upper case of a character, where that is a single one.
pub(super) fn upper(c: char) -> char {
    single(c, c.to_uppercase())
}

/// Lower case of a character, where that is a single one.
pub(super) fn lower(c: char) -> char {
    if c == 'İ' { 'i' } else { single(c, c.to_lowercase()) }
}

/// Title case: that of the four letter pairs that have one of their own, upper case otherwise.
fn title_case(c: char) -> char {
    match c {
        'Ǆ'..='ǆ' => 'ǅ',
        'Ǉ'..='ǉ' => 'ǈ',
        'Ǌ'..='ǌ' => 'ǋ',
        'Ǳ'..='ǳ' => 'ǲ',
        _ => upper(c),
    }
}

fn single(c: char, mut mapped: impl ExactSizeIterator<Item = char>) -> char {
    if mapped.len() == 1 { mapped.next().unwrap_or(c) } else { c }
}

/// Maps every character.
pub(super) fn map(heap: &Heap, text: &[u8], change: impl Fn(char) -> char) -> Outcome<Value> {
    let mut out = heap.builder();
    out.reserve(text.len());
    for c in runes::chars(text) {
        out.char(change(c))?;
    }
    out.value()
}

/// `strings.Title`: the first letter of every word.
pub(super) fn title(heap: &Heap, text: &[u8]) -> Outcome<Value> {
    let mut out = heap.builder();
    let mut at_start = true;
    for c in runes::chars(text) {
        out.char(if at_start { title_case(c) } else { c })?;
        at_start = separates(c);
    }
    out.value()
}

fn separates(c: char) -> bool {
    if c.is_ascii() {
        return !(c.is_ascii_alphanumeric() || c == '_');
    }
    !c.is_alphanumeric() && c.is_whitespace()
}

/// Lower case for the first character of every word.
pub(super) fn untitle(heap: &Heap, text: &[u8]) -> Outcome<Value> {
    let mut out = heap.builder();
    let mut at_start = true;
    for c in runes::chars(text) {
        if c.is_whitespace() {
            at_start = true;
            out.char(c)?;
        } else {
            out.char(if at_start { lower(c) } else { c })?;
            at_start = false;
        }
    }
    out.value()
}

/// Upper case becomes lower case and the other way round.
pub(super) fn swap(heap: &Heap, text: &[u8]) -> Outcome<Value> {
    let mut out = heap.builder();
    let mut at_start = true;
    for c in runes::chars(text) {
        if c.is_uppercase() || matches!(c, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ') {
            out.char(lower(c))?;
            at_start = false;
        } else if c.is_lowercase() {
            out.char(if at_start { title_case(c) } else { upper(c) })?;
            at_start = false;
        } else {
            out.char(c)?;
            at_start = c.is_whitespace();
        }
    }
    out.value()
}
