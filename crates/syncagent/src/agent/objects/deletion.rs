//! Ends: of orders, of what belongs to them, and of kinds that nobody publishes any more.

pub(super) mod abandoned;
pub(super) mod ended;
pub(super) mod leftovers;
pub(super) mod let_go;
pub(super) mod losses;
pub(super) mod orphans;
pub(super) mod released;
