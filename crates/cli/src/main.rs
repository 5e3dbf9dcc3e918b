//! Carrick.
fn main() {}
