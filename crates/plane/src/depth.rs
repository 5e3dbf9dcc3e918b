//! How deep objects may nest: whoever walks through one needs some stack for every level.

use serde_json::Value;

/// How deep objects may nest. Go accepts 10 000 levels; here this many fit on the stack of a thread, if it is as large as
/// [`carrick_json::STACK`].
pub(crate) const MAX_DEPTH: usize = 1_500;

/// How deep an object may nest on this thread. The embedding program chooses the stack size of its threads, and no request may exhaust it.
pub(crate) fn deepest() -> usize {
    /// Stack needed per level for walking through an object, without optimisation and with room to spare.
    const LEVEL: usize = 4 << 10;
    stacker::remaining_stack().map_or(128, |left| left / LEVEL).min(MAX_DEPTH)
}

/// How deep a value nests; one that is neither a list nor a map does not.
pub(crate) fn of(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(of).max().unwrap_or_default(),
        Value::Object(map) => 1 + map.values().map(of).max().unwrap_or_default(),
        _ => 0,
    }
}
