//! JSON the way Go programs around Kubernetes treat it: gjson and sjson paths, merge patches, Go's encoding. No I/O.
//!
//! ```text
//!             ┌── read    bytes of any depth up to a limit ──▶ value
//!             ├── path    text or Value + gjson path ──▶ what is there; sjson: written, deleted
//!   JSON ─────┼── merge   two documents ──▶ RFC 7386 patch; document + patch ──▶ document
//!             ├── go      value ──▶ the bytes Go would write, for hashes and stored state
//!             ├── yaml    YAML text ──▶ the value Go programs read from it
//!             └── manifest    a file of YAML or JSON ──▶ the objects kubectl finds in it
//!                 reference   what the path language has, with examples that are run
//! ```
//!
//! [`path::text`] works on JSON text and keeps all that a path does not address byte for byte:
//! integers beyond 2^53, long decimals, the order of keys. [`path::get`], [`path::set`], [`path::delete`], [`merge::diff`]
//! and [`merge::apply`] are for [`serde_json::Value`], which has sorted keys and 64-bit numbers.
//!
//! ```
//! use carrick_json::path::text;
//!
//! let json = r#"{"spec": {"size": 12345678901234567890, "items": [{"n": "a"}, {"n": "b"}]}}"#;
//! assert_eq!(text::get(json, r#"spec.items.#(n=="b").n"#).text(), "b");
//! let json = text::set(json, "spec.items.-1", r#"{"n":"c"}"#).unwrap();
//! assert_eq!(text::get(&json, "spec.items.#.n").raw(), r#"["a","b","c"]"#);
//! assert_eq!(text::get(&json, "spec.size").raw(), "12345678901234567890");
//! ```
//!
//! # Features
//!
//! `path` (paths and Go's bytes) and `yaml` (YAML and manifests) are on by default. Without them, what is left reads deep documents and merges them, and
//! depends on serde alone.
//!
//! # Deviations from Go
//!
//! Compared with gjson 1.18.0, sjson 1.2.5 and `encoding/json` of Go 1.26 on hundreds of thousands of
//! generated questions, these remain, each on purpose.
//!
//! Paths, where Go's answer is a defect:
//!
//! * Numbers are never rounded. Go reads the value to set as a float; here a number that no float holds, such as
//!   9007199254740993, is set as it is written. Others get Go's form (`1.50` is set as `1.5`).
//! * sjson finds out where results are by comparing memory addresses, and loses track after pipes, multipaths,
//!   modifiers and in nested `#`: it then overwrites other parts of the document. Here `a|#.b`, `a.#(q).b.#.c`,
//!   `a.#.b.#.c` and `a.#.@this` write to the right places, and what was computed is left alone.
//! * sjson looks for brackets inside strings when a path leads through one: setting `s.0` in `{"s":"[1,2]"}` changes
//!   the text. Here an object or array replaces a string like any other scalar, and deleting does nothing.
//! * Some paths make sjson panic; none does here.
//!
//! Paths, to bound what they cost:
//!
//! * Paths and what modifiers descend into may nest 200 levels, and one evaluation may read and write 4 MiB plus 16
//!   times the document. Beyond that a path leads nowhere ([`path::text::try_get`] and writing say so).
//! * Arrays are padded with at most 65 536 nulls. Go takes any index, and indexes from 2^64 on as something else.
//! * Wildcards always find out whether they match. gjson gives up after 10 000 steps per character.
//! * [`path::set`] and [`path::delete`] refuse documents that nest deeper than [`DEEPEST`] levels, as [`from_slice`] does.
//!
//! Paths, otherwise: results for text that is not JSON may differ; text is UTF-8, where Go has bytes.
//!
//! Merge patches: none known; an explicit `null` cannot be expressed in a patch, by the design of RFC 7386.
//!
//! Encoding: none known for values that Go can encode. Text is UTF-8, so there is nothing to replace with U+FFFD.

#[cfg(feature = "path")]
pub mod go;
#[cfg(feature = "yaml")]
pub mod manifest;
pub mod merge;
#[cfg(feature = "path")]
pub mod path;
#[cfg(feature = "yaml")]
pub mod yaml;

mod read;

#[cfg(feature = "path")]
pub use path::reference;
pub use read::{DEEPEST, STACK, TooDeep, depth, from_slice, from_str};

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
