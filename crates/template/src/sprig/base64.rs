//! Base64 decoding with the error positions of Go.

/// Decodes standard base64; line breaks do not count. The error is the offset of the first wrong byte.
pub(super) fn decode(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut quantum = Vec::with_capacity(4);
    let mut position = 0;
    while let Some(byte) = text.get(position) {
        let here = position;
        position += 1;
        match byte {
            b'\r' | b'\n' => {}
            b'=' => {
                padding(text, here, quantum.len())?;
                push(&mut bytes, &quantum);
                return Ok(bytes);
            }
            _ => {
                quantum.push(value(*byte).ok_or(here)?);
                if quantum.len() == 4 {
                    push(&mut bytes, &quantum);
                    quantum.clear();
                }
            }
        }
    }
    if quantum.is_empty() { Ok(bytes) } else { Err(position - quantum.len()) }
}

fn value(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

/// Checks what starts with the first padding character.
fn padding(text: &[u8], first: usize, digits: usize) -> Result<(), usize> {
    let skip_breaks = |mut at: usize| {
        while matches!(text.get(at), Some(b'\r' | b'\n')) {
            at += 1;
        }
        at
    };
    let mut next = first + 1;
    match digits {
        0 | 1 => return Err(first),
        2 => {
            next = skip_breaks(next);
            match text.get(next) {
                None => return Err(text.len()),
                Some(b'=') => next += 1,
                Some(_) => return Err(next - 1),
            }
        }
        _ => {}
    }
    next = skip_breaks(next);
    if next < text.len() { Err(next) } else { Ok(()) }
}

fn push(bytes: &mut Vec<u8>, quantum: &[u32]) {
    let bits = quantum.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - quantum.len()));
    let [_, three @ ..] = bits.to_be_bytes();
    bytes.extend_from_slice(&three[..quantum.len() - 1]);
}
