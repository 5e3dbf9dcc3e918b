//! Notes what others have changed of copies, and reports it on the copies themselves: providers look there.

use std::collections::HashMap;

use carrick_sync::drift::DriftedCopy;
use serde_json::Value;

use crate::agent::events::Type;
use crate::agent::objects::observe::Observed;
use crate::agent::objects::order::Order;
use crate::decide::drift::{MOST_REVERTS, WINDOW, shown};
use crate::decide::{ObjectAddress, Plan, overwritten};

/// Notes what a plan says about it, if anybody has looked.
pub(super) fn note(order: &Order<'_>, plan: &Plan) {
    let Order { shared, rules, key, .. } = order;
    let is_news = match &plan.drift {
        Some(drift) => shared.drifted.note(key, drift),
        None if !rules.watches_drift() || order.is_deleting() => shared.drifted.note(key, &[]),
        None => false,
    };
    if is_news {
        shared.count_again.notify_one();
    }
}

/// Notes it before anybody is asked who it was. Whether that was new, and nothing else is due.
pub(super) fn count_first(order: &Order<'_>, plan: &Plan) -> bool {
    let Order { shared, key, .. } = order;
    if shared.drifted.contains(key) || !plan.steps.is_empty() || !plan.strands.is_empty() {
        return false;
    }
    note(order, plan);
    shared.drifted.contains(key)
}

/// Notes which copies of related objects others have changed, once nothing is due.
pub(super) fn note_related(order: &Order<'_>, observed: &Observed, plan: &Plan) {
    let Order { shared, rules, key, .. } = order;
    if plan.is_settled() {
        shared.overwritten.note(key, overwritten(rules, &observed.seen(order)));
    }
}

/// Reports what is new, once it was noted or set back.
pub(super) fn report(
    order: &Order<'_>,
    observed: &Observed,
    drift: &[DriftedCopy],
    objects: &HashMap<ObjectAddress, Value>,
) {
    let Order { shared, rules, key, .. } = order;
    for copy in drift.iter().filter(|copy| copy.news) {
        let own = observed.copies.first().filter(|_| *copy.at.kind == rules.local);
        let Some(object) = own.or_else(|| objects.get(&copy.at)) else { continue };
        for (kind, reason, message) in messages(copy) {
            tracing::info!(object = %key, copy = %copy.at, "{message}");
            shared.context.recorder.event(&shared.context.local, object, kind, reason, &message);
        }
    }
}

/// What is said about one copy.
fn messages(copy: &DriftedCopy) -> Vec<(Type, &'static str, String)> {
    let mut all = Vec::new();
    if !copy.reverted.is_empty() {
        let message = format!("Changed by others and set back to what was ordered: {}.", shown(&copy.reverted));
        all.push((Type::Normal, "DriftReverted", message));
    }
    let fields = shown(&copy.fields);
    if copy.contested {
        let message = format!(
            "Changed by others: {fields}. It was set back {MOST_REVERTS} times in {} minutes, so it is left alone for now: find out who changes it, or set spec.drift of the PublishedResource for these fields.",
            WINDOW / 60
        );
        all.push((Type::Warning, "DriftContested", message));
    } else if !copy.fields.is_empty() {
        let message = format!("Changed by others: {fields}. It stays so until the order changes the same fields.");
        all.push((Type::Warning, "Drifted", message));
    }
    all
}
