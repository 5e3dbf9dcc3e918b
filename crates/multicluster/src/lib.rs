//! Controllers over many logical clusters: fleet, store and fair queue.
