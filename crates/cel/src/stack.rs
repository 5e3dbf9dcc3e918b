//! Enough stack for deep expressions.
//!
//! The cel crate parses by recursion with large frames: 20 nested parentheses overflow the 2 MiB stack of a worker
//! thread in a debug build, which would abort the process. Parsing therefore gets a thread with a large stack, and so
//! does evaluating an expression that nests very deep. Only pages that are touched cost memory.

/// Stack that is enough to parse any expression of the accepted length.
pub(crate) const PARSING: usize = 128 << 20;

/// Stack that one level of an expression may need when evaluated; a debug build takes 4 KiB.
const LEVEL: usize = 16 << 10;

/// Up to this many levels, the stack of the calling thread is enough.
const SHALLOW: usize = 60;

/// Evaluates an expression of this depth; none when no thread can be started or it panics.
pub(crate) fn for_depth<T: Send>(depth: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    if depth <= SHALLOW { Some(work()) } else { with_stack((depth + SHALLOW) * LEVEL, work) }
}

/// Runs `work` with a stack of this many bytes; none when no thread can be started or it panics.
pub(crate) fn with_stack<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().name("cel".to_owned()).stack_size(bytes).spawn_scoped(scope, work);
        worker.ok()?.join().ok()
    })
}
