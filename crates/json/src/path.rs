//! Paths into JSON: reading as gjson 1.18 does, writing as sjson 1.2.5 does.
//!
//! ```text
//!   get ──▶ find (components, arrays, pipes) ──┬─▶ part    one key or wildcard
//!                    ▲                         ├─▶ query   #(name=="x")
//!   set, delete ─────┘ (complex paths)         ├─▶ modifier @keys, @flatten, …
//!                                              └─▶ multipath {a,b} and [a,b]
//! ```
//!
//! Not on the `gjson` crate: it finds keys below the place where a path ends (`ab.a.b` in `{"ab":{"a":{"a":{"b":1}}}}`),
//! works on text only and takes exponential time for some wildcards.
//!
//! Differences from the originals, all of them because a [`Value`] is no text: keys come in sorted order, `@pretty` and
//! `@ugly` change nothing, and `@reverse` leaves objects alone. Two limits protect the caller: paths nest at most 64
//! levels, and writing pads an array to at most 65 536 elements.

mod answer;
mod error;
mod find;
mod found;
mod modifier;
mod multipath;
mod part;
mod query;
mod write;

use serde_json::Value;

pub use answer::answer;
pub use error::{PathError, Problem};
pub use found::{Found, Kind};
pub use write::{delete, set};

/// What is at `path`, with gjson's syntax: keys and indexes joined by dots, `\` escapes, `*` and `?`, `#`, `#.x`,
/// `#(query)`, `#(query)#`, `|`, `@modifiers`, `{a,b}` and `[a,b]` multipaths, `!` literals.
pub fn get<'a>(json: &'a Value, path: &str) -> Found<'a> {
    Found::new(find::find(json, path, 0).map(|hit| hit.value))
}
