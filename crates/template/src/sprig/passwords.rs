//! Passwords. They are slow to make on purpose, so each costs half of what a rendering may.

use hmac::{Hmac, KeyInit, Mac};
use scrypt::Params;
use sha2::Sha256;

use crate::{
    functions::{
        Args, Function,
        Type::{Str, Uint32},
    },
    heap::{Heap, Outcome},
    limits,
    value::Value,
};

/// Two of them fit into a rendering that does little else.
const STEPS: usize = limits::MAX_STEPS / 2 - 1000;

pub(super) const FUNCTIONS: &[Function] =
    &[Function::new("derivePassword", &[Uint32, Str, Str, Str, Str], derive_password)];

/// Shapes of passwords: a letter stands for one of a class of characters.
fn shapes(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

/// The characters of a class.
fn class(letter: u8) -> &'static [u8] {
    match letter {
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// The password that the Master Password algorithm makes of a main password, a user and a site.
fn derive_password(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    const SEED: &[u8] = b"com.lyndir.masterpassword";
    let Value::Uint(_, counter) = args.any(0)? else { return Err("the counter must be an unsigned integer".into()) };
    let counter = u32::try_from(*counter).unwrap_or(u32::MAX);
    let kind = args.str(1)?.text();
    let Some(shapes) = shapes(&kind) else { return heap.str(format!("cannot find password template {kind}")) };
    let (password, user, site) = (args.bytes(2)?, args.bytes(3)?, args.bytes(4)?);
    heap.step(STEPS)?;
    heap.scan(16 * (password.len() + user.len() + site.len()))?;
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();

    let parameters = Params::new(15, 8, 2).map_err(|error| error.to_string())?;
    let salt = [SEED, &length(user), user].concat();
    let mut key = [0; 64];
    scrypt::scrypt(password, &salt, &parameters, &mut key).map_err(|error| error.to_string())?;

    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| error.to_string())?;
    mac.update(&[SEED, &length(site), site, &counter.to_be_bytes()].concat());
    let seed = mac.finalize().into_bytes();
    let pick = |index: usize, count: usize| usize::from(seed[index]) % count;
    let shape = shapes[pick(0, shapes.len())];
    let letters = shape.bytes().enumerate().map(|(index, letter)| class(letter)[pick(index + 1, class(letter).len())]);
    heap.str(letters.collect::<Vec<u8>>())
}
