//! CEL for mutations, CRD validation rules and admission policies, on the `cel` crate. No I/O.
//!
//! ```text
//!   source ──▶ the cel crate parses ──▶ check, macros: resolve names, check types, choose overloads ──▶ node
//!                                         │ signature, types, environment: what exists, and for whom
//!        ┌────────────────────────────────┴───────┐
//!     Mutation                                   Rule ◀── schema   one `x-kubernetes-validations` entry
//!     value, self, other                         self, oldSelf
//!        │                                        │
//!        └──▶ input / schema: JSON ──▶ value ──▶ eval, fold, functions ──▶ JSON (Mutation) or Verdict (Rule)
//!                                                   │ budget: every step is counted
//! ```
//!
//! Everything is `Send + Sync` and compiled once. Expressions of more than 16 KiB or 200 levels are refused; deep ones
//! run on a thread with a stack that fits (`stack`). An evaluation that takes more than a million steps is stopped:
//! parts, elements, comparisons and handled text all count, so time and memory are bounded whatever the data.
//!
//! # Differences from cel-go as kcp's api-syncagent uses it, for mutations
//!
//! Of the 95 recorded cases 72 agree. The other 23 differ on purpose, and are listed in `tests/it/vectors.rs`:
//!
//! - 17 results that the reference garbles: null (2 cases), lists (10) and maps (3) and types (2) are written as what
//!   they are, an array, an object, the name of the type. The reference writes `0`, `{"Adapter":{}}` and `{}`. In the
//!   same way durations become text such as `1h30m0s`, not `{"Duration":…}`.
//! - 6 functions that the reference does not know: mutations have the libraries for strings, lists, patterns, URLs and
//!   quantities besides the standard one, so that `join`, `format`, `replace`, `split`, `lowerAscii` and `sum` work.
//!
//! Besides:
//!
//! - Numbers in `value` are doubles as in the reference, but where that fails or would lose digits they are integers,
//!   so that `value + 1` works as well as `value + 1.0`.
//! - Maps are iterated in the order of their keys, so the same input always gives the same output.
//! - Messages of failed evaluations name types and functions, never values: those may be secret.
//! - Of several errors in one expression, the first is reported; of a rule, all are.
//!
//! # Differences from the API server, for rules
//!
//! `tests/go.json` and `tests/answers.jsonl` hold four thousand expressions and rules with answers of the API server
//! (Kubernetes 1.36 and its cel-go, which decide where 1.34 answers differently); ours agree. Known to differ:
//!
//! - The budget counts other steps than the API server's cost, with the same limit. Costs are not estimated when a rule
//!   is created: a rule that is refused there for its estimated cost is accepted here, and stopped when it takes too long.
//! - Lists, maps and values of libraries cannot be keys of maps: the API server accepts them, and never finds them again.
//! - `{?'a': x}` and `[?x]` work where the type of `x` is not known; the API server's planner panics.
//! - Sums of quantities can be compared with `==`; the API server fails for some of them. Beyond 10^29, quantities are
//!   all the same.
//! - Messages of Protocol Buffers, such as `google.protobuf.Duration{seconds: 5}`, cannot be made.
//! - The type of a value out of an optional value that is not known remains unknown, where the API server settles on
//!   bytes and refuses the rest.
//! - A message expression may use `oldSelf` as an optional value too.
//! - A value that breaks its format (`date-time`, `duration`, `byte`) fails the whole rule, used or not.
//! - There is no `authorizer`.
//!
//! The same holds for expressions of admission policies. Their errors are worded as the API server words them
//! ([`EvalError::wording`]), apart from positions in lists and computed keys, which are not reported.

mod admission;
mod budget;
mod check;
mod convert;
mod environment;
mod error;
mod escape;
mod eval;
mod expression;
mod fold;
mod functions;
#[cfg(test)]
mod go;
mod input;
mod limits;
mod macros;
mod mutation;
mod node;
mod reads;
pub mod reference;
mod rule;
mod schema;
mod signature;
mod stack;
mod summary;
mod types;
mod value;

pub use admission::{Admission, AdmissionBinding, AdmissionInput, AdmissionScope, AdmissionType, Evaluated};
pub use error::{CompileError, EvalError, Position};
pub use escape::{escape, unescape};
pub use mutation::Mutation;
pub use reads::FieldRead;
pub use rule::{Rule, Verdict};
pub use schema::Schema;
pub use summary::{Summary, SummaryInput};

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
