//! Encodings.

use data_encoding::{BASE32, BASE64};

use super::{base32, base64};
use crate::functions::{Function, Type::Str};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("b64enc", &[Str], |heap, args| {
        heap.take(args.bytes(0)?.len())?;
        heap.str(BASE64.encode(args.bytes(0)?))
    }),
    // The decoders return the error as their text.
    Function::new("b64dec", &[Str], |heap, args| match base64::decode(args.bytes(0)?) {
        Ok(bytes) => heap.str(bytes),
        Err(position) => heap.str(format!("illegal base64 data at input byte {position}")),
    }),
    Function::new("b32enc", &[Str], |heap, args| {
        heap.take(args.bytes(0)?.len())?;
        heap.str(BASE32.encode(args.bytes(0)?))
    }),
    Function::new("b32dec", &[Str], |heap, args| match base32::decode(args.bytes(0)?) {
        Ok(bytes) => heap.str(bytes),
        Err(position) => heap.str(format!("illegal base32 data at input byte {position}")),
    }),
];
