//! What the suites rely on and do not show by themselves.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod corpus;
mod ports;
mod ran;
mod selection;
