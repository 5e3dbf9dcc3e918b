//! The object half: consumers' objects, their copies and their related objects.
//!
//! ```text
//!  Catalog ──▶ manager ──▶ one Syncer per PublishedResource, its rules swapped in place when they change
//!  fleets  ──▶    │            sources   one watch per endpoint, at <endpoint>/clusters/*
//!  (endpoints)    │            copies    one watch on the service cluster
//!                 │            related   one watch per kind and endpoint on each side, shared by all syncers
//!                 │               └──▶ controller ──▶ reconcile: observe ─▶ decide ─▶ act ─┬─▶ send    to the servers
//!                 │                                                                        └─▶ record  for explain
//!                 └──▶ states: what was last written, from Secrets
//! ```
//!
//! Kinds whose PublishedResource is switched off, gone or not valid have a syncer too, as long as objects of theirs may be held: it releases
//! them, or at least those that their consumers delete.
//!
//! Files import downwards only: `manager` and `explain` on top, then `syncer` with its `report`, and `reconcile`, then `act` and `observe`, then
//! `order`, `error` and `shared`, and at the bottom the caches, the memory and `context`.

mod act;
mod context;
mod copies;
mod deletion;
mod error;
pub(super) mod explain;
mod feedback;
mod fleet;
pub(super) mod import;
mod manager;
mod observe;
mod order;
mod quota;
mod reader;
mod reconcile;
mod related;
mod shared;
mod source;
mod states;
mod syncer;

use carrick_multicluster::Pace;

use crate::rules::access::Budget;

pub(crate) use context::{CONTROLLER, Context, Drift, ObjectsReport, Released, Troubles};
pub(crate) use feedback::progress::{AllOrders, Orders, Wanted};
pub(crate) use fleet::consumers::Consumers;
pub(crate) use import::ImportsReport;
pub(crate) use manager::run;

/// How few and how many objects are worked on at once.
const AT_ONCE: (usize, usize) = (4, 128);

/// The pace of one agent. No workspace can take all of it.
pub(crate) fn pace(budget: Budget) -> Pace {
    Pace::between(AT_ONCE.0, AT_ONCE.1).per_cluster(budget.in_flight)
}
