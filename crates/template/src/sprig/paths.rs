//! Slash-separated paths. The functions for the paths of the system are the same, as the agent runs on Linux.

use crate::{
    functions::{Args, Function, Type::Str},
    heap::{Heap, Outcome},
    value::Value,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("base", &[Str], base),
    Function::new("dir", &[Str], dir),
    Function::new("clean", &[Str], |heap, args| heap.str(clean(args.bytes(0)?))),
    Function::new("ext", &[Str], ext),
    Function::new("isAbs", &[Str], |_, args| Ok(args.bytes(0)?.starts_with(b"/").into())),
    Function::new("osBase", &[Str], base),
    Function::new("osDir", &[Str], dir),
    Function::new("osClean", &[Str], |heap, args| heap.str(clean(args.bytes(0)?))),
    Function::new("osExt", &[Str], ext),
    Function::new("osIsAbs", &[Str], |_, args| Ok(args.bytes(0)?.starts_with(b"/").into())),
];

/// The shortest equal path.
fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => {
                parts.pop();
            }
            b".." if rooted => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join(b"/".as_slice());
    match (rooted, joined.is_empty()) {
        (true, _) => [b"/", joined.as_slice()].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}

fn base(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let path = args.bytes(0)?;
    if path.is_empty() {
        return heap.str(".");
    }
    let end = path.iter().rposition(|b| *b != b'/').map_or(0, |last| last + 1);
    let start = path[..end].iter().rposition(|b| *b == b'/').map_or(0, |slash| slash + 1);
    heap.str(if end == 0 { b"/".as_slice() } else { &path[start..end] })
}

fn dir(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let path = args.bytes(0)?;
    let end = path.iter().rposition(|b| *b == b'/').map_or(0, |slash| slash + 1);
    heap.str(clean(&path[..end]))
}

fn ext(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let path = args.bytes(0)?;
    let name = path.iter().rposition(|b| *b == b'/').map_or(path, |slash| &path[slash + 1..]);
    heap.str(name.iter().rposition(|b| *b == b'.').map_or(b"".as_slice(), |dot| &name[dot..]))
}
