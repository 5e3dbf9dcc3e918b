//! AES-256 in CBC mode, with the password as key.

use aes::{
    Aes256, Block,
    cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit},
};
use data_encoding::BASE64;

use super::random;
use crate::{
    functions::{Args, Function, Type::Str},
    heap::{Heap, Outcome},
    value::Value,
};

pub(super) const FUNCTIONS: &[Function] =
    &[Function::new("encryptAES", &[Str, Str], encrypt), Function::new("decryptAES", &[Str, Str], decrypt)];

const BLOCK: usize = 16;

/// The cipher for a password, which is cut or filled to the length of a key.
fn cipher(password: &[u8]) -> Aes256 {
    let mut key = [0; 32];
    let length = password.len().min(key.len());
    key[..length].copy_from_slice(&password[..length]);
    Aes256::new(&key.into())
}

fn xor(block: &mut [u8], other: &[u8]) {
    for (byte, other) in block.iter_mut().zip(other) {
        *byte ^= other;
    }
}

fn encrypt(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let text = args.bytes(1)?;
    if text.is_empty() {
        return heap.str("");
    }
    heap.step(text.len() / 8)?;
    heap.take(4 * text.len())?;
    let cipher = cipher(args.bytes(0)?);
    let padding = BLOCK - text.len() % BLOCK;
    let mut padded = text.to_vec();
    padded.resize(text.len() + padding, u8::try_from(padding).unwrap_or_default());
    let mut out = random::random_bytes(BLOCK);
    for plain in padded.chunks(BLOCK) {
        let mut block = Block::default();
        block.copy_from_slice(plain);
        let previous = out.len() - BLOCK;
        xor(&mut block, &out[previous..]);
        cipher.encrypt_block(&mut block);
        out.extend_from_slice(&block);
    }
    heap.str(BASE64.encode(&out))
}

fn decrypt(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let text = args.bytes(1)?;
    if text.is_empty() {
        return heap.str("");
    }
    heap.step(text.len() / 8)?;
    heap.take(2 * text.len())?;
    // Go's decoder skips line ends.
    let text: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let sealed = BASE64.decode(&text).map_err(|error| format!("illegal base64 data: {error}"))?;
    if sealed.len() < 2 * BLOCK || sealed.len() % BLOCK != 0 {
        return Err("the encrypted text has no whole blocks; it was not made by encryptAES".into());
    }
    let cipher = cipher(args.bytes(0)?);
    let mut out = Vec::with_capacity(sealed.len());
    for (previous, sealed) in sealed.chunks(BLOCK).zip(sealed.chunks(BLOCK).skip(1)) {
        let mut block = Block::default();
        block.copy_from_slice(sealed);
        cipher.decrypt_block(&mut block);
        xor(&mut block, previous);
        out.extend_from_slice(&block);
    }
    let padding = out.last().copied().map_or(0, usize::from);
    let Some(length) = out.len().checked_sub(padding) else {
        return Err("the padding of the decrypted text is wrong; is the password right?".into());
    };
    out.truncate(length);
    heap.str(out)
}
