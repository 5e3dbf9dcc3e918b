//! The table of all functions that templates can call.

use std::{collections::HashMap, sync::LazyLock};

use crate::{builtin, functions::Function, sprig};

/// All functions by name; sprig's win over Go's own of the same name (`slice`).
static TABLE: LazyLock<HashMap<&str, &Function>> = LazyLock::new(|| {
    let groups = std::iter::once(builtin::FUNCTIONS).chain(sprig::GROUPS.iter().copied());
    groups.flatten().map(|function| (function.name, function)).collect()
});

/// The names of all functions.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.keys().copied()
}

/// Finds a function.
pub(crate) fn lookup(name: &str) -> Option<&'static Function> {
    TABLE.get(name).copied()
}
