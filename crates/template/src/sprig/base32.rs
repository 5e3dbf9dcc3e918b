//! Base32 decoding with the error positions of Go.

/// Decodes standard base32; line breaks do not count. The error is the offset of the first wrong byte.
pub(super) fn decode(text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let mut bytes = Vec::with_capacity(text.len() / 8 * 5);
    let mut quantum = Vec::with_capacity(8);
    for (at, byte) in text.iter().enumerate() {
        let behind = &text[at + 1..];
        if *byte == b'=' && quantum.len() >= 2 && behind.len() < 8 {
            padding(&text, at, quantum.len())?;
            push(&mut bytes, &quantum);
            return Ok(bytes);
        }
        quantum.push(value(*byte).ok_or(at)?);
        if quantum.len() == 8 {
            push(&mut bytes, &quantum);
            quantum.clear();
        }
    }
    if quantum.is_empty() { Ok(bytes) } else { Err(text.len() - quantum.len()) }
}

fn value(byte: u8) -> Option<u64> {
    match byte {
        b'A'..=b'Z' => Some(u64::from(byte - b'A')),
        b'2'..=b'7' => Some(u64::from(byte - b'2') + 26),
        _ => None,
    }
}

/// Checks what starts with the first padding character.
fn padding(text: &[u8], first: usize, digits: usize) -> Result<(), usize> {
    let behind = &text[first + 1..];
    let wanted = 7 - digits;
    if behind.len() < wanted {
        return Err(text.len());
    }
    if let Some(wrong) = behind[..wanted].iter().position(|byte| *byte != b'=') {
        return Err(first + wrong);
    }
    if matches!(digits, 3 | 6) { Err(first) } else { Ok(()) }
}

fn push(bytes: &mut Vec<u8>, quantum: &[u64]) {
    let bits = quantum.iter().fold(0, |bits, value| bits << 5 | value) << (5 * (8 - quantum.len()));
    let [_, _, _, five @ ..] = bits.to_be_bytes();
    bytes.extend_from_slice(&five[..quantum.len() * 5 / 8]);
}
