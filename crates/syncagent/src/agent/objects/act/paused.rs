//! Notes what is paused of an order, and reports what people wait for: a deletion, or a pause that cannot be read.

use crate::agent::events::Type;
use crate::agent::objects::observe::Observed;
use crate::agent::objects::order::Order;
use crate::decide::pause::{Pauser, Pauses};

/// Notes it. The end of a pause that has an end is scheduled by what is noted.
pub(super) fn note(order: &Order<'_>, observed: &Observed) {
    let Order { shared, rules, key, source, .. } = order;
    let (paused, pauses) = (&shared.paused, Pauses::seen(rules, &observed.seen(order)));
    if paused.note(key, &pauses) {
        shared.count_again.notify_one();
    }
    let recorder = &shared.context.recorder;
    let deleted = source["metadata"]["deletionTimestamp"].as_str();
    if deleted.is_some_and(|at| paused.is_recent(at)) && pauses.deletion() {
        let message = format!("The deletion waits, because synchronization is paused: {}.", pauses.words());
        if paused.is_event(key, &message) {
            recorder.event(order.kcp(), source, Type::Normal, "Paused", &message);
        }
    }
    for (by, problem) in pauses.problems() {
        if !paused.is_event(key, &problem) {
            continue;
        }
        tracing::warn!(object = %key, "{problem}.");
        match (by, observed.copies.first()) {
            (Pauser::Consumer, _) => recorder.event(order.kcp(), source, Type::Warning, "PauseUnreadable", &problem),
            (Pauser::Provider, Some(copy)) => {
                recorder.event(&shared.context.local, copy, Type::Warning, "PauseUnreadable", &problem);
            }
            (Pauser::Provider, None) => {}
        }
    }
}
