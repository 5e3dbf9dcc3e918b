//! Reports in the status of an order why it was not placed, or why its last change was not.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use carrick_sync::executor::{StepError, Verb};
use serde_json::json;

use crate::agent::objects::copies;
use crate::agent::objects::error::ReconcileError;
use crate::agent::objects::observe::now;
use crate::agent::objects::order::Order;
use crate::agent::objects::related::kinds::resource;
use crate::api::FIELD_MANAGER;
use crate::decide::ObjectAddress;
use crate::decide::report::{Unplaced, UnplacedReason, told, unplaced};
use crate::rules::Duty;
use crate::rules::metadata::KCP_SIDE;

/// How often in a row the service cluster does not answer before consumers are told: about five seconds, with the pauses in between.
const SILENT_FOR: u64 = 10;

/// Writes it, unless the order says so already.
pub(super) async fn report(order: &Order<'_>, error: &ReconcileError) -> Result<(), ReconcileError> {
    let Order { shared, rules, key, source, .. } = order;
    let Some(report) = rules.report.as_ref().filter(|_| rules.duty == Duty::Sync && !order.is_deleting()) else {
        return Ok(());
    };
    let Some(why) = error.unplaced(rules, key).filter(|why| is_lasting(order, why)) else { return Ok(()) };
    let has_copy = !copies::of(&shared.copies, key, &rules.remote.resource()).is_empty();
    let wanted = unplaced(report, source, has_copy, &why, &now());
    let generation = source["metadata"]["generation"].as_i64().unwrap_or_default();
    if wanted == source["status"] || !shared.conditions.is_news(key, generation, told(source), &why.message) {
        return Ok(());
    }
    let changed = carrick_json::merge::diff(&source["status"], &wanted);
    // Another object of the same name has its own fate, and so has another generation.
    let (uid, version) = (&source["metadata"]["uid"], &source["metadata"]["resourceVersion"]);
    let patch = json!({ "metadata": { "uid": uid, "resourceVersion": version }, "status": changed });
    let (kcp, kind) = (order.kcp().writing_as(FIELD_MANAGER), resource(&rules.remote));
    let at = ObjectAddress::of_source(KCP_SIDE, &rules.remote, key);
    match kcp.merge_patch_status(&kind, at.namespace.as_deref(), &at.name, &patch).await {
        // What has changed is reconciled again.
        Err(source) if !source.is_not_found() && !source.is_conflict() => {
            Err(StepError::Write { verb: Verb::WriteStatus, at: at.into(), source }.into())
        }
        _ => Ok(()),
    }
}

/// Whether a reason lasts: a server that is silent for a moment is not worth a word.
fn is_lasting(order: &Order<'_>, why: &Unplaced) -> bool {
    let times = || order.shared.failing.get(order.key).map_or(0, |failure| failure.times);
    why.reason != UnplacedReason::Unreachable || times() >= SILENT_FOR
}
