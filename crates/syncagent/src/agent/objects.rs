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
//! Files import downwards only: `manager` and `explain` on top, then `syncer`, `report` and `reconcile`, then `act` and `observe`, then
//! `order`, `error` and `shared`, and at the bottom the caches, the memory and `context`.

mod abandoned;
mod act;
mod consumers;
mod context;
mod copies;
mod crowd;
mod error;
pub(super) mod explain;
mod failing;
mod fleet;
mod hop;
mod kinds;
mod manager;
mod observe;
mod order;
mod orphans;
mod others;
mod places;
mod primaries;
mod progress;
mod reach;
mod reader;
mod reconcile;
mod related;
mod released;
mod report;
mod shared;
mod source;
mod states;
mod syncer;
mod uses;

use carrick_multicluster::Pace;

pub(crate) use consumers::Consumers;
pub(crate) use context::{CONTROLLER, Context, ObjectsReport, Released, Troubles};
pub(crate) use manager::run;
pub(crate) use progress::{AllOrders, Orders, Wanted};

/// How few and how many objects are worked on at once.
const AT_ONCE: (usize, usize) = (4, 128);

/// The pace of one agent.
pub(crate) fn pace() -> Pace {
    Pace::between(AT_ONCE.0, AT_ONCE.1)
}
