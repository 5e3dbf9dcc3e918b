//! CEL for mutations and CRD validation rules, on the `cel` crate. No I/O.
//!
//! ```text
//!   source ──▶ Expression::compile ──▶ parse, refuse unknown names (names), refuse literals of wrong types (types)
//!                    │
//!        ┌───────────┴───────────┐
//!     Mutation                  Rule            one `x-kubernetes-validations` entry
//!     value, self, other        self, oldSelf
//!        │                       │
//!        └──▶ convert: JSON ──▶ CEL values ──▶ evaluate ──▶ JSON (Mutation) or Verdict (Rule)
//! ```
//!
//! Everything is `Send + Sync` and compiled once. Expressions of more than 16 KiB or 200 levels are refused; deep ones
//! run on a thread with a stack that fits (`stack`). There is no limit on time yet: an expression with nested
//! comprehensions over large lists runs as long as it takes.
//!
//! # Differences from the reference agent (cel-go)
//!
//! All on purpose, where the reference writes nonsense or fails:
//!
//! - null, lists, maps, types and durations are written as what they are: `null`, arrays, objects, the type's name and
//!   a string such as `1h30m0s`. cel-go's results end up as `0`, `{"Adapter":{}}`, `{}` and `{"Duration":…}` there.
//! - Mutations know the string and list extensions (`lowerAscii`, `split`, `join`, `replace`, `format`, `sort`, …).
//! - Numbers in `value` are doubles as in the reference, but where that fails or would lose digits they are integers,
//!   so that `value + 1` works as well as `value + 1.0`.
//! - Maps are iterated in the order of their keys, so the same input always gives the same output.
//! - Types are checked only where literals and conversions show them; the rest fails when evaluated, not when compiled.
//! - Messages of failed evaluations name types and functions, never values: those may be secret.

mod budget;
mod check;
mod convert;
mod environment;
mod escape;
mod eval;
mod expression;
mod fold;
mod functions;
mod macros;
mod mutation;
mod node;
mod rule;
mod signature;
mod stack;
mod types;
mod value;

pub use escape::{escape, unescape};
pub use expression::{CompileError, EvalError, Position};
pub use mutation::Mutation;
pub use rule::{Rule, Verdict};
