//! Related objects: what is known of them, and noticing their changes.
//!
//! ```text
//!  RelatedReader (one primary) ──▶ RelatedWatches ──▶ RelatedCache, one for each side and kind ◀── watch, one for each endpoint
//!      └── asks the servers where the cache does not know, and before anything is withdrawn
//! ```

mod bytes;
mod cache;
pub(super) mod held;
mod keys;
pub(super) mod kinds;
mod marked;
mod patience;
pub(super) mod primaries;
pub(super) mod users;
mod watches;
pub(super) mod withheld;

pub(super) use cache::CacheAnswer;
pub(super) use keys::{ClusterNamespace, PrimaryKey};
pub(super) use patience::Patience;
pub(super) use watches::{Interest, RelatedWatches, Wanted, gvr_of};
