//! JSON the way Go programs around Kubernetes treat it. No I/O.
//!
//! ```text
//!              ┌── path::get     read with gjson paths
//!   Value ─────┼── path::set     write with sjson paths, path::delete
//!              ├── merge::diff   what changed, as a merge patch; merge::apply
//!              ├── go::to_string the bytes Go would write, for hashes and stored state
//!              └── text ── regex::GoRegex   rewrite with RE2 syntax and Go's `$1`
//! ```
//!
//! Everything works on [`serde_json::Value`], whose object keys are sorted, just as Go's encoder sorts the keys of a
//! map. Where a result depends on the order of keys (`a.*`, `@keys`, `@values`) it is the sorted order.

pub mod go;
pub mod merge;
pub mod path;
pub mod regex;
