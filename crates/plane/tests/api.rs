//! A plain service cluster as any HTTPS client sees it.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests may panic and take json! by value"
)]

#[path = "api/access.rs"]
mod access;
#[path = "api/accounts.rs"]
mod accounts;
#[path = "api/apply.rs"]
mod apply;
#[path = "api/client.rs"]
mod client;
#[path = "api/conversions.rs"]
mod conversions;
#[path = "api/corpus.rs"]
mod corpus;
#[path = "api/crds.rs"]
mod crds;
#[path = "api/deletion.rs"]
mod deletion;
#[path = "api/durable.rs"]
mod durable;
#[path = "api/faults.rs"]
mod faults;
#[path = "api/hooks.rs"]
mod hooks;
#[path = "api/killed.rs"]
mod killed;
#[path = "api/limits.rs"]
mod limits;
#[path = "api/lists.rs"]
mod lists;
#[path = "api/matrix.rs"]
mod matrix;
#[path = "api/objects.rs"]
mod objects;
#[path = "api/policies.rs"]
mod policies;
#[path = "api/protobuf.rs"]
mod protobuf;
#[path = "api/recorded.rs"]
mod recorded;
#[path = "api/reviews.rs"]
mod reviews;
#[path = "api/robust.rs"]
mod robust;
#[path = "api/shards.rs"]
mod shards;
#[path = "api/sizes.rs"]
mod sizes;
#[path = "api/watches.rs"]
mod watches;
#[path = "api/webhooks.rs"]
mod webhooks;
#[path = "api/workloads.rs"]
mod workloads;
