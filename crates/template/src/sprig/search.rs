//! Finding and splitting byte strings in bounded time.

use crate::{
    heap::{Heap, Outcome},
    runes,
    value::Str,
};

/// Offsets of the occurrences of a text that is not empty; they do not overlap.
pub(super) fn offsets(heap: &Heap, text: &[u8], wanted: &[u8], most: usize) -> Outcome<Vec<usize>> {
    heap.scan(text.len())?;
    if wanted.is_empty() || wanted.len() > text.len() {
        return Ok(Vec::new());
    }
    // Searching in `str` takes linear time whatever the text.
    if let (Ok(text), Ok(wanted)) = (std::str::from_utf8(text), std::str::from_utf8(wanted)) {
        return Ok(text.match_indices(wanted).take(most).map(|(offset, _)| offset).collect());
    }
    heap.step(text.len() / 64 * wanted.len())?;
    let mut found = Vec::new();
    let mut start = 0;
    while start + wanted.len() <= text.len() && found.len() < most {
        if text[start..].starts_with(wanted) {
            found.push(start);
            start += wanted.len();
        } else {
            start += 1;
        }
    }
    Ok(found)
}

/// Whether a text occurs in another one.
pub(super) fn contains(heap: &Heap, text: &[u8], wanted: &[u8]) -> Outcome<bool> {
    Ok(wanted.is_empty() || !offsets(heap, text, wanted, 1)?.is_empty())
}

/// `strings.SplitN`: at most the given number of parts; an empty separator splits into characters.
pub(super) fn split(heap: &Heap, text: &[u8], separator: &[u8], most: usize) -> Outcome<Vec<Str>> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let cuts: Vec<usize> = if separator.is_empty() {
        let widths = runes::pieces(text).map(|(_, piece)| piece.len());
        let ends = widths.scan(0, |end, width| {
            *end += width;
            Some(*end)
        });
        ends.take_while(|end| *end < text.len()).take(most - 1).collect()
    } else {
        offsets(heap, text, separator, most - 1)?
    };
    heap.step(cuts.len())?;
    if separator.is_empty() && text.is_empty() {
        return Ok(Vec::new());
    }
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    let mut start = 0;
    for cut in cuts {
        parts.push(Str::from(&text[start..cut]));
        start = cut + separator.len();
    }
    parts.push(Str::from(&text[start..]));
    Ok(parts)
}

/// `strings.ReplaceAll`: an empty text is found before every character and at the end.
pub(super) fn replace(heap: &Heap, text: &[u8], old: &[u8], new: &[u8]) -> Outcome<Str> {
    let mut out = heap.builder();
    if old.is_empty() {
        for (_, piece) in runes::pieces(text) {
            out.push(new)?;
            out.push(piece)?;
        }
        out.push(new)?;
        return out.finish();
    }
    let mut start = 0;
    for offset in offsets(heap, text, old, usize::MAX)? {
        out.push(&text[start..offset])?;
        out.push(new)?;
        start = offset + old.len();
    }
    out.push(&text[start..])?;
    out.finish()
}
