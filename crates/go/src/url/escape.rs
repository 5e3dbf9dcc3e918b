//! `%20` and its like.

use super::error::Fault;

/// The part of a URL that a text is; it decides which characters are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    User,
    Host,
    /// The zone of an IPv6 address.
    Zone,
    Path,
    /// A key or a value of a query.
    Query,
    Fragment,
}

/// The text with its escapes decoded, or which one is wrong. A host has no other characters than it may have.
pub(super) fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, Fault> {
    let in_host = matches!(part, Part::Host | Part::Zone);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'%' => {
                let refused = || Fault::about("invalid URL escape", &[b"%", &tail[..tail.len().min(2)]].concat(), "");
                let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
                let code = digit(0).zip(digit(1)).map(|(high, low)| high * 16 + low);
                let byte = code.and_then(|code| u8::try_from(code).ok()).ok_or_else(refused)?;
                let allowed = match part {
                    Part::Host => byte >= 0x80 || byte == b'%',
                    Part::Zone => byte == b'%' || byte == b' ' || !should_escape(byte, Part::Host),
                    _ => true,
                };
                if !allowed {
                    return Err(refused());
                }
                out.push(byte);
                rest = &tail[2..];
            }
            b'+' if part == Part::Query => out.push(b' '),
            byte if in_host && byte.is_ascii() && should_escape(*byte, part) => {
                return Err(Fault::about("invalid character", &[*byte], "in host name"));
            }
            byte => out.push(*byte),
        }
    }
    Ok(out)
}

/// The text with all characters escaped that have another meaning there.
pub(super) fn escape(text: &[u8], part: Part) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if should_escape(byte, part) {
            out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        } else {
            out.push(byte);
        }
    }
    out
}

/// Whether a text may stay as it is: others escape less than Go does.
pub(super) fn is_plain_encoding(text: &[u8], part: Part) -> bool {
    text.iter().all(|byte| b"!$&'()*+,;=:@[]%".contains(byte) || !should_escape(*byte, part))
}

fn should_escape(byte: u8, part: Part) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => false,
        b'!' | b'\'' | b'(' | b')' | b'*' | b'[' | b']' | b'<' | b'>' | b'"'
            if matches!(part, Part::Host | Part::Zone) =>
        {
            false
        }
        b'!' | b'(' | b')' | b'*' if part == Part::Fragment => false,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            Part::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Part::Host | Part::Zone => matches!(byte, b'/' | b'?' | b'@'),
            Part::Path => byte == b'?',
            Part::Query => true,
            Part::Fragment => false,
        },
        _ => true,
    }
}
