//! A plain service cluster as any HTTPS client sees it.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests may panic and take json! by value"
)]

mod access;
mod accounts;
mod apply;
mod broker;
mod client;
mod conversions;
mod corpus;
mod crds;
mod deletion;
mod durable;
mod faults;
mod hooks;
mod killed;
mod limits;
mod lists;
mod matrix;
mod objects;
mod policies;
mod protobuf;
mod recorded;
mod restored;
mod reviews;
mod robust;
mod shards;
mod sizes;
mod watches;
mod webhooks;
mod workloads;
