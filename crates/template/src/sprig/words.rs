//! Names made of words: `camelcase`, `snakecase` and `kebabcase`.

use super::cases::{lower, upper};
use crate::{
    heap::{Heap, Outcome},
    runes,
    value::Value,
};

fn connects(c: char) -> bool {
    c == '-' || c == '_' || c.is_whitespace()
}

/// `some_words` to `SomeWords`. Connectors at the ends stay, and of several in a row all but one.
pub(super) fn pascal(heap: &Heap, text: &[u8]) -> Outcome<Value> {
    let chars: Vec<char> = runes::chars(text).collect();
    heap.take(4 * chars.len())?;
    let lead = chars.iter().take_while(|c| connects(**c)).count();
    let mut out = heap.builder();
    for c in &chars[..lead.min(chars.len())] {
        out.char(*c)?;
    }
    let Some((first, rest)) = chars[lead..].split_first() else {
        // Where there are only connectors, the last one is written twice.
        if let Some(last) = chars.last() {
            out.char(*last)?;
        }
        return out.value();
    };
    // A word in capitals becomes lower case after its first letter.
    let mut in_capitals = first.is_uppercase();
    let mut pending = upper(*first);
    for c in rest {
        let mut next = *c;
        if connects(pending) {
            if connects(next) {
                out.char(pending)?;
                pending = next;
                continue;
            }
            in_capitals = next.is_uppercase();
            next = upper(next);
        } else {
            if in_capitals {
                if next.is_uppercase() {
                    next = lower(next);
                } else {
                    in_capitals = false;
                }
            }
            out.char(pending)?;
        }
        pending = next;
    }
    out.char(pending)?;
    out.value()
}

/// What a run of characters is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// A word that starts with a capital, or several capitals.
    Capital,
    Lower,
    Connector,
    Punctuation,
    Other,
}

type Word = (Kind, Vec<char>);

/// `FirstName` to `first_name`.
pub(super) fn connect(heap: &Heap, text: &[u8], connector: char) -> Outcome<Value> {
    let chars: Vec<char> = runes::chars(text).collect();
    heap.take(8 * chars.len())?;
    heap.step(chars.len() / 8)?;
    let words = split(&chars);
    let kind_at = |index: usize| words.get(index).map(|(kind, _)| *kind);
    let mut out = String::new();
    let mut index = 0;
    while let Some((kind, word)) = words.get(index) {
        push(&mut out, *kind, word, connector);
        index += 1;
        match (kind, kind_at(index), kind_at(index + 1)) {
            (Kind::Connector | Kind::Punctuation, ..) => continue,
            (Kind::Number, ..) => index = push_tail(&mut out, &words, index, connector),
            // Lower-case letters after a number belong to it; together they form a word.
            (_, Some(Kind::Number), Some(Kind::Lower)) => {
                out.push(connector);
                index = push_tail(&mut out, &words, index, connector);
            }
            // Any other number belongs to the word before it.
            (_, Some(Kind::Number), _) => {
                push(&mut out, Kind::Number, &words[index].1, connector);
                index += 1;
            }
            _ => {}
        }
        if kind_at(index).is_some_and(|next| !matches!(next, Kind::Connector | Kind::Punctuation)) {
            out.push(connector);
        }
    }
    heap.str(out)
}

/// Writes the small letters and numbers that follow a number.
fn push_tail(out: &mut String, words: &[Word], mut index: usize, connector: char) -> usize {
    while let Some((kind @ (Kind::Lower | Kind::Number), word)) = words.get(index) {
        push(out, *kind, word, connector);
        index += 1;
    }
    index
}

fn push(out: &mut String, kind: Kind, word: &[char], connector: char) {
    match kind {
        Kind::Connector => out.extend(word.iter().map(|_| connector)),
        Kind::Capital => out.extend(word.iter().map(|c| if c.is_uppercase() { lower(*c) } else { *c })),
        _ => out.extend(word),
    }
}

/// Chinese characters do not count as letters here.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() && !matches!(c, '\u{3400}'..='\u{4d85}' | '\u{4e00}'..='\u{9fcc}' | '\u{20000}'..='\u{2b81d}')
}

fn is_small(c: char) -> bool {
    is_letter(c) && !c.is_uppercase()
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() && !"$+<=>^`|~".contains(c)
        || matches!(c, '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '\u{2010}'..='\u{2027}' | '\u{3001}'..='\u{3003}')
}

fn kind_of(c: char) -> Kind {
    match c {
        _ if connects(c) => Kind::Connector,
        _ if is_punctuation(c) => Kind::Punctuation,
        _ if c.is_uppercase() => Kind::Capital,
        _ if is_letter(c) => Kind::Lower,
        _ if c.is_numeric() => Kind::Number,
        _ => Kind::Other,
    }
}

fn split(chars: &[char]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = chars;
    while let Some((first, tail)) = rest.split_first() {
        let kind = kind_of(*first);
        let length = match kind {
            Kind::Capital => {
                let capitals = tail.iter().take_while(|c| c.is_uppercase()).count();
                let small = tail.get(capitals).is_some_and(|c| is_small(*c));
                match (capitals, small) {
                    (0, true) => 1 + tail.iter().take_while(|c| is_small(**c)).count(),
                    // The last capital starts the next word: `HTTPServer`.
                    (_, true) => capitals,
                    (_, false) => 1 + capitals,
                }
            }
            Kind::Lower => 1 + tail.iter().take_while(|c| is_small(**c)).count(),
            _ => 1 + tail.iter().take_while(|c| kind_of(**c) == kind).count(),
        };
        let (word, remaining) = rest.split_at(length);
        words.push((kind, word.to_vec()));
        rest = remaining;
    }
    words
}
