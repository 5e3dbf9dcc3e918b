//! As much of DER as keys need.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
/// Tags whose meaning the enclosing type defines.
pub(super) const CONTEXT_0: u8 = 0xa0;
pub(super) const CONTEXT_1: u8 = 0xa1;

/// Writes one element.
pub(super) fn write(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let digits = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    let mut out = vec![tag];
    if content.len() >= 0x80 {
        out.push(0x80 | u8::try_from(digits.len()).unwrap_or_default());
    }
    out.extend_from_slice(digits);
    out.extend_from_slice(content);
    out
}

/// Writes a sequence of elements.
pub(super) fn sequence(elements: &[Vec<u8>]) -> Vec<u8> {
    write(SEQUENCE, &elements.concat())
}

/// Writes a number that is not negative.
pub(super) fn integer(big_endian: &[u8]) -> Vec<u8> {
    let start = big_endian.iter().position(|byte| *byte != 0).unwrap_or(big_endian.len());
    let digits = &big_endian[start..];
    // The first bit is the sign.
    let sign: &[u8] = if digits.first().is_none_or(|byte| byte & 0x80 != 0) { &[0] } else { &[] };
    write(INTEGER, &[sign, digits].concat())
}

/// Reads one element: tag, content and what follows.
pub(super) fn read(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (digits, rest) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(digits, _)| digits.len() <= 4)?;
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// Reads an element with the given tag and moves past it.
pub(super) fn expect<'b>(bytes: &mut &'b [u8], tag: u8) -> Option<&'b [u8]> {
    let (found, content, rest) = read(bytes)?;
    *bytes = rest;
    (found == tag).then_some(content)
}
