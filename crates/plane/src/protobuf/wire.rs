//! Protobuf's wire format: numbered fields, each a number or some bytes.

/// Why bytes are not a message, in the words of Kubernetes' Go libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end within a field.
    #[error("unexpected EOF")]
    End,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field has a type that does not exist, or none that fits its form.
    #[error("proto: wrong wireType = {0} for field")]
    Type(u64),
    /// A text is not UTF-8, a time is out of range, embedded JSON is none.
    #[error("proto: a value cannot be represented in JSON")]
    Value,
    /// Messages are nested deeper than the server can follow.
    #[error("exceeded max depth")]
    Depth,
}

/// The content of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Number(u64),
    Eight([u8; 8]),
    Bytes(&'a [u8]),
    /// Four bytes, which no built-in kind uses.
    Four,
}

impl<'a> Wire<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], WireError> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(self.wrong()) }
    }

    pub(super) fn number(self) -> Result<u64, WireError> {
        if let Self::Number(number) = self { Ok(number) } else { Err(self.wrong()) }
    }

    /// The error for a field that has this type, but should have another.
    pub(super) fn wrong(self) -> WireError {
        WireError::Type(match self {
            Self::Number(_) => 0,
            Self::Eight(_) => 1,
            Self::Bytes(_) => 2,
            Self::Four => 5,
        })
    }
}

/// The fields of one message, in the order sent.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.0.is_empty()).then(|| {
            let field = take(&mut self.0);
            // After an error there is nothing to go on with.
            if field.is_err() {
                self.0 = &[];
            }
            field
        })
    }
}

fn take<'a>(bytes: &mut &'a [u8]) -> Result<(u64, Wire<'a>), WireError> {
    let tag = varint(bytes)?;
    let wire = match tag & 7 {
        0 => Wire::Number(varint(bytes)?),
        1 => Wire::Eight(*split(bytes, 8)?.first_chunk().ok_or(WireError::End)?),
        2 => {
            let length = usize::try_from(varint(bytes)?).map_err(|_| WireError::End)?;
            Wire::Bytes(split(bytes, length)?)
        }
        5 => {
            split(bytes, 4)?;
            Wire::Four
        }
        other => return Err(WireError::Type(other)),
    };
    Ok((tag >> 3, wire))
}

fn split<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], WireError> {
    let (start, rest) = bytes.split_at_checked(length).ok_or(WireError::End)?;
    *bytes = rest;
    Ok(start)
}

/// Takes one number off the start.
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or(WireError::End)?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(WireError::Overflow)
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low(value) | 0x80);
        value >>= 7;
    }
    out.push(low(value));
}

/// The lowest seven bits.
fn low(value: u64) -> u8 {
    (value & 0x7f).to_le_bytes()[0]
}

/// Appends a number.
pub(super) fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

/// Appends eight bytes.
pub(super) fn put_eight(out: &mut Vec<u8>, field: u64, value: [u8; 8]) {
    put_varint(out, field << 3 | 1);
    out.extend(value);
}

/// Appends bytes or a text.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, value.len() as u64);
    out.extend(value);
}

/// Appends a message that `write` appends the fields of.
pub(super) fn put_message(out: &mut Vec<u8>, field: u64, write: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, field << 3 | 2);
    // Most messages are short enough for a length of one byte; the others make room for a longer one.
    let start = out.len() + 1;
    out.push(0);
    write(out);
    let length = (out.len() - start) as u64;
    if length < 0x80 {
        out[start - 1] = low(length);
    } else {
        let mut bytes = Vec::with_capacity(5);
        put_varint(&mut bytes, length);
        out.splice(start - 1..start, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_can_be_taken() {
        let long = vec![7; 70_000];
        let mut out = Vec::new();
        put_number(&mut out, 1, u64::MAX);
        put_eight(&mut out, 2, 1.5_f64.to_le_bytes());
        put_message(&mut out, 300, |out| put_bytes(out, 1, &long));
        put_message(&mut out, 4, |_| {});
        let fields: Vec<_> = Fields(&out).map(Result::unwrap).collect();
        assert_eq!(fields[0], (1, Wire::Number(u64::MAX)));
        assert_eq!(fields[1], (2, Wire::Eight(1.5_f64.to_le_bytes())));
        assert_eq!(fields[3], (4, Wire::Bytes(&[])));
        let (300, Wire::Bytes(inner)) = fields[2] else { panic!("{:?}", fields[2].0) };
        assert_eq!(Fields(inner).next().unwrap().unwrap(), (1, Wire::Bytes(&long)));
        assert_eq!(fields.len(), 4);
        for end in 1..out.len() {
            // Whatever is cut off ends with an error or a field less, never with a panic.
            assert!(Fields(&out[..end]).count() <= 4);
        }
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let first = |bytes: &'static [u8]| Fields(bytes).next().unwrap().unwrap_err();
        assert_eq!(first(&[0x08]), WireError::End);
        assert_eq!(first(&[0x0a, 5, 1]), WireError::End);
        assert_eq!(first(&[0x0b]), WireError::Type(3));
        assert_eq!(first(&[0xff; 11]), WireError::Overflow);
    }
}
