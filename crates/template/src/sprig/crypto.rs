//! Hashes.

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use sha3::Sha3_256;

use super::json::{self, Style};
use crate::{
    functions::{
        Args, Function,
        Type::{Any, Int, Str},
    },
    heap::{Heap, Outcome},
    value::Value,
};

/// Length of the short hashes.
const SHORT: usize = 20;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("sha1sum", &[Str], |heap, args| heap.str(hex::<Sha1>(heap, args.bytes(0)?)?)),
    Function::new("sha256sum", &[Str], |heap, args| heap.str(hex::<Sha256>(heap, args.bytes(0)?)?)),
    Function::new("sha512sum", &[Str], |heap, args| heap.str(hex::<Sha512>(heap, args.bytes(0)?)?)),
    Function::new("adler32sum", &[Str], adler32),
    Function::new("sha3sum", &[Str], |heap, args| heap.str(hex::<Sha3_256>(heap, args.bytes(0)?)?)),
    Function::variadic("sha3short", &[Str], Int, sha3short),
    Function::new("shortHash", &[Any], short_hash),
];

fn hex<D: Digest>(heap: &Heap, text: &[u8]) -> Outcome<String> {
    heap.step(4)?;
    heap.step(text.len() / 16)?;
    Ok(data_encoding::HEXLOWER.encode(&D::digest(text)))
}

fn adler32(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    const PRIME: u32 = 65_521;
    heap.scan(args.bytes(0)?.len())?;
    let (low, high) = args.bytes(0)?.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % PRIME;
        (low, (high + low) % PRIME)
    });
    heap.str((high << 16 | low).to_string())
}

fn sha3short(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let length = match args.all().len() {
        1 => SHORT,
        2 => match usize::try_from(args.int(1)?) {
            Ok(length @ 1..) => length,
            _ => return Err("the length must be larger than zero".into()),
        },
        _ => return Err("give at most one length".into()),
    };
    let mut hash = hex::<Sha3_256>(heap, args.bytes(0)?)?;
    hash.truncate(length);
    heap.str(hash)
}

fn short_hash(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut hash = match args.any(0)? {
        Value::Str(text) => hex::<Sha1>(heap, text.as_bytes())?,
        other => {
            let json = json::encode(heap, other, Style::Escaped)?;
            hex::<Sha1>(heap, &[json.as_bytes(), b"\n"].concat())?
        }
    };
    hash.truncate(SHORT);
    heap.str(hash)
}
