//! Compiled patterns.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use carrick_go::regex::{GoRegex, RegexError};
use parking_lot::Mutex;

/// Patterns in use, by their text.
static PATTERNS: LazyLock<Mutex<Patterns>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Patterns {
    known: HashMap<String, Weak<GoRegex>>,
    /// With more entries than this, those that nobody uses any more are removed.
    limit: usize,
}

/// A compiled pattern. The same few occur thousands of times in schemas that embed pods, and take more memory than all the rest.
pub(super) fn compiled(text: &str) -> Result<Arc<GoRegex>, RegexError> {
    if let Some(known) = PATTERNS.lock().known.get(text).and_then(Weak::upgrade) {
        return Ok(known);
    }
    let fresh = Arc::new(GoRegex::compile(text)?);
    let mut patterns = PATTERNS.lock();
    patterns.known.insert(text.to_owned(), Arc::downgrade(&fresh));
    if patterns.known.len() > patterns.limit {
        patterns.known.retain(|_, pattern| pattern.strong_count() > 0);
        patterns.limit = patterns.known.len() * 2 + 64;
    }
    Ok(fresh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_pattern_is_compiled_once() {
        let (first, again) = (compiled("^compact-[a-z]+$").unwrap(), compiled("^compact-[a-z]+$").unwrap());
        assert!(Arc::ptr_eq(&first, &again) && !Arc::ptr_eq(&first, &compiled("^compact-[a-y]+$").unwrap()));
        assert!(compiled("(").is_err());
    }
}
