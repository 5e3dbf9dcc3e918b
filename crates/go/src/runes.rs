//! Characters of byte strings, the way Go decodes them.

/// First character and its width; a byte that is not UTF-8 is the replacement character of width 1.
pub fn first(bytes: &[u8]) -> Option<(char, usize)> {
    let lead = *bytes.first()?;
    let width = match lead {
        0x00..0x80 => return Some((char::from(lead), 1)),
        0xC2..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0..0xF5 => 4,
        _ => return Some((char::REPLACEMENT_CHARACTER, 1)),
    };
    let decoded = bytes.get(..width).and_then(|bytes| std::str::from_utf8(bytes).ok());
    match decoded.and_then(|text| text.chars().next()) {
        Some(c) => Some((c, width)),
        None => Some((char::REPLACEMENT_CHARACTER, 1)),
    }
}

/// All characters.
pub fn chars(bytes: &[u8]) -> impl Iterator<Item = char> + '_ {
    pieces(bytes).map(|(c, _)| c)
}

/// All characters with the bytes they come from.
pub fn pieces(bytes: &[u8]) -> impl Iterator<Item = (char, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (c, width) = first(rest)?;
        let (piece, tail) = rest.split_at(width);
        rest = tail;
        Some((c, piece))
    })
}

/// How many characters there are.
pub fn count(bytes: &[u8]) -> usize {
    chars(bytes).count()
}

/// Whether Go prints the character as it is in quoted strings.
pub fn is_print(c: char) -> bool {
    // `str::escape_debug` leaves printable characters alone; the leading letter keeps combining marks out of its special case.
    match c {
        ' '..='~' => true,
        '\0'..='\u{a0}' | '\u{ad}' => false,
        _ => ['a', c].iter().collect::<String>().escape_debug().count() == 2,
    }
}
