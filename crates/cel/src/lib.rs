//! CEL for mutations and CRD validation rules, on the `cel` crate. No I/O.
//!
//! ```text
//!   source ──▶ the cel crate parses ──▶ check, macros: resolve names, check types, choose overloads ──▶ node
//!                                         │ signature, types, environment: what exists, and for whom
//!        ┌────────────────────────────────┴───────┐
//!     Mutation                                   Rule ◀── schema   one `x-kubernetes-validations` entry
//!     value, self, other                         self, oldSelf
//!        │                                        │
//!        └──▶ convert / schema: JSON ──▶ value ──▶ eval, fold, functions ──▶ JSON (Mutation) or Verdict (Rule)
//!                                                   │ budget: every step is counted
//! ```
//!
//! Everything is `Send + Sync` and compiled once. Expressions of more than 16 KiB or 200 levels are refused; deep ones
//! run on a thread with a stack that fits (`stack`). An evaluation that takes more than a million steps is stopped:
//! parts, elements, comparisons and handled text all count, so time and memory are bounded whatever the data.
//!
//! # Differences from the reference agent (cel-go), for mutations
//!
//! All on purpose, where the reference writes nonsense or fails:
//!
//! - null, lists, maps, types and durations are written as what they are: `null`, arrays, objects, the type's name and
//!   a string such as `1h30m0s`. cel-go's results end up as `0`, `{"Adapter":{}}`, `{}` and `{"Duration":…}` there.
//! - Mutations know the string and list extensions (`lowerAscii`, `split`, `join`, `replace`, `format`, `sort`, …).
//! - Numbers in `value` are doubles as in the reference, but where that fails or would lose digits they are integers,
//!   so that `value + 1` works as well as `value + 1.0`.
//! - Maps are iterated in the order of their keys, so the same input always gives the same output.
//! - Messages of failed evaluations name types and functions, never values: those may be secret.
//!
//! # Differences from the API server, for rules
//!
//! `tests/go.json` holds a thousand expressions and rules with the API server's answers; ours agree. Known to differ:
//!
//! - Timestamps are always in UTC: `string(timestamp('2024-01-01T01:00:00+01:00'))` gives `2024-01-01T00:00:00Z`.
//! - Maps have booleans, integers and strings as keys, nothing else, and `1` and `1u` are one key.
//! - The budget counts other steps than the API server's cost, with the same limit; costs are not estimated beforehand.
//! - A message expression that does not compile refuses the rule, as creating a CRD does; it may use `oldSelf` as an
//!   optional value too.
//! - A value that breaks its format (`date-time`, `duration`, `byte`) fails the whole rule, used or not.
//! - There is no `authorizer`.

mod answer;
mod budget;
mod check;
mod convert;
mod environment;
mod escape;
mod eval;
mod expression;
mod fold;
mod functions;
#[cfg(test)]
mod go;
mod key;
mod macros;
mod mutation;
mod node;
pub mod reference;
mod rule;
mod schema;
mod signature;
mod stack;
mod types;
mod value;

pub use answer::answer;
pub use escape::{escape, unescape};
pub use expression::{CompileError, EvalError, Position};
pub use mutation::Mutation;
pub use rule::{Rule, Verdict};
pub use schema::Schema;
