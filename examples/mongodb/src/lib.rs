//! The MongoDB walk-through: consumers order databases in kcp workspaces, one operator runs them on a service cluster.
//!
//! ```text
//!   kcp                                   service cluster
//!   root:mongodb     schema, export       CRD
//!   root:consumer-a  MongoDBCommunity ──▶ <cluster a>-mongodb/example-mongodb ◀── mongo-sim (no pods needed)
//!   root:consumer-b  MongoDBCommunity ──▶ <cluster b>-mongodb/example-mongodb
//!                                    sync
//! ```

pub mod api;
pub mod operator;
pub mod sim;
pub mod sync;
pub mod walkthrough;
