//! Memory for programs that are linked with musl, which is how they ship. musl's own allocator has one lock for all threads: two that parse objects
//! take six times the processor time that they take with this one, and the restart of an agent three times (docs/benchmarks.md).

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
