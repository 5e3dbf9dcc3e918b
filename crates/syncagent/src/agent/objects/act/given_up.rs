//! Lets orders go whose copies cannot be reached, where the provider has said so: a broker waits for that before it ends a move.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use carrick_sync::executor::{StepError, Verb};
use serde_json::json;

use crate::agent::objects::error::ReconcileError;
use crate::agent::objects::order::Order;
use crate::agent::objects::related::kinds::resource;
use crate::api::FIELD_MANAGER;
use crate::decide::{Holder, Step, give_up};
use crate::rules::metadata::WORDS;

/// Takes the finalizer off, unless the order has changed since.
pub(super) async fn send(order: &Order<'_>) -> Result<(), ReconcileError> {
    let Order { shared, rules, key, source, .. } = order;
    let former = shared.context.former.borrow().clone();
    let step = give_up(rules, key, source, Holder::new(&rules.agent_name, &former));
    let Some(Step::SetFinalizers { at, finalizers, held_by, resource_version }) = step else { return Ok(()) };
    let mut patch = json!({ "metadata": { "finalizers": finalizers, "resourceVersion": resource_version } });
    if let Some(by) = held_by {
        patch["metadata"]["annotations"] = json!({ WORDS.held_by: by });
    }
    tracing::error!(
        object = %shared.shown(key),
        "The service cluster cannot be reached for longer than --release-after: a deleted order is let go, and its copy stays there."
    );
    let kcp = order.kcp().writing_as(FIELD_MANAGER);
    match kcp.merge_patch(&resource(&rules.remote), at.namespace.as_deref(), &at.name, &patch).await {
        Err(source) if !source.is_not_found() => {
            Err(StepError::Write { verb: Verb::SetFinalizers, at: at.into(), source }.into())
        }
        _ => Ok(()),
    }
}
