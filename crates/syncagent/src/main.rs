//! api-syncagent.
fn main() {}
