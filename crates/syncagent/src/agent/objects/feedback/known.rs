//! Whether all orders of a kind are known. Before that, nothing follows from one that is not there.

use carrick_client::Object;
use carrick_multicluster::{Fleet, FleetStore};
use futures::StreamExt;

use super::progress::Orders;

/// How many changes of the fleet are taken in at once.
const TOGETHER: usize = 1024;

impl Orders {
    /// Whether these are all orders that there are.
    pub fn are_known(&self) -> bool {
        are_known(&self.sources, &self.consumers)
    }
}

/// Whether the orders of all workspaces were listed, or no workspace has bound the export.
fn are_known(orders: &FleetStore<Object>, consumers: &Fleet) -> bool {
    consumers.is_synced() && (orders.is_listed() || consumers.clusters().is_empty())
}

/// Waits until all orders are known.
pub(in crate::agent::objects) async fn until_known(orders: &FleetStore<Object>, consumers: &Fleet) {
    if are_known(orders, consumers) {
        return;
    }
    let mut changes = consumers.subscribe().ready_chunks(TOGETHER);
    while !are_known(orders, consumers) {
        tokio::select! {
            Some(_) = changes.next() => {}
            () = orders.wait_until(FleetStore::is_listed), if !orders.is_listed() => {}
            else => return,
        }
    }
}
