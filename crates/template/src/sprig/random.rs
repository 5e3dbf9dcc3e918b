//! Random strings and numbers. A name is made once, so they may be part of one; `refused` says where they may not.

use crate::{
    functions::{
        Args, Function,
        Type::{Int, Str},
    },
    heap::{Heap, Outcome},
    runes,
    value::Value,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("uuidv4", &[], |heap, _| heap.str(uuid::Uuid::new_v4().to_string())),
    Function::new("randAlphaNum", &[Int], |heap, args| string(heap, args, |c| c.is_ascii_alphanumeric())),
    Function::new("randAlpha", &[Int], |heap, args| string(heap, args, |c| c.is_ascii_alphabetic())),
    Function::new("randNumeric", &[Int], |heap, args| string(heap, args, |c| c.is_ascii_digit())),
    Function::new("randAscii", &[Int], |heap, args| string(heap, args, |c| (b' '..0x7f).contains(&c))),
    Function::new("randBytes", &[Int], bytes),
    Function::new("randInt", &[Int, Int], int),
    Function::new("shuffle", &[Str], shuffle),
];

/// Random bits, from the generator behind random UUIDs. Six of the 128 are fixed and lie in these two halves.
fn random_u32() -> u32 {
    let [a, b, c, d, ..] = uuid::Uuid::new_v4().into_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// A number below another one, each as likely as the others.
fn below(limit: u32) -> u32 {
    let usable = u32::MAX - u32::MAX % limit.max(1);
    loop {
        let number = random_u32();
        if number < usable {
            return number % limit.max(1);
        }
    }
}

/// How much is wanted; a negative number means nothing.
fn count(heap: &Heap, args: Args<'_>) -> Outcome<usize> {
    let count = usize::try_from(args.int(0)?).unwrap_or(0);
    heap.step(count)?;
    Ok(count)
}

fn string(heap: &Heap, args: Args<'_>, allowed: impl Fn(u8) -> bool) -> Outcome<Value> {
    let alphabet: Vec<u8> = (0..=127).filter(|c| allowed(*c)).collect();
    let mut out = heap.builder();
    for _ in 0..count(heap, args)? {
        let index = below(u32::try_from(alphabet.len()).unwrap_or(1)) as usize;
        out.push(&alphabet[index..=index])?;
    }
    out.value()
}

fn bytes(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let count = count(heap, args)?;
    heap.take(2 * count)?;
    let bytes: Vec<u8> = std::iter::repeat_with(|| random_u32().to_be_bytes()).flatten().take(count).collect();
    heap.str(data_encoding::BASE64.encode(&bytes))
}

fn int(_: &Heap, args: Args<'_>) -> Outcome<Value> {
    let (least, end) = (args.int(0)?, args.int(1)?);
    match end.checked_sub(least) {
        Some(span @ 1..) => {
            let wide = u64::from(random_u32()) << 32 | u64::from(random_u32());
            Ok(Value::Int(least + (wide % span.unsigned_abs()).cast_signed()))
        }
        _ => Err(format!("no integer is at least {least} and less than {end}").into()),
    }
}

fn shuffle(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut chars: Vec<char> = runes::chars(args.bytes(0)?).collect();
    heap.step(chars.len())?;
    for last in (1..chars.len()).rev() {
        let other = below(u32::try_from(last + 1).unwrap_or(u32::MAX)) as usize;
        chars.swap(last, other);
    }
    heap.str(chars.into_iter().collect::<String>())
}
