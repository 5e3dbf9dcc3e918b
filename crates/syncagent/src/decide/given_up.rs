//! An order that is let go although its copy cannot be reached. Pure.

use serde_json::Value;

use super::holders::{Holder, is_held_by, release};
use super::{ObjectAddress, Step};
use crate::rules::Rules;
use crate::rules::metadata::{KCP_SIDE, SourceKey, is_deleting};

/// The step that lets an order go that its owner has deleted; none if it is not ours to let go. Its copy stays, and what is remembered of it.
pub fn give_up(rules: &Rules, key: &SourceKey, source: &Value, holder: Holder<'_>) -> Option<Step> {
    let at = ObjectAddress::of_source(KCP_SIDE, &rules.remote, key);
    (is_deleting(source) && is_held_by(source, holder)).then(|| release(&at, source, holder))
}
