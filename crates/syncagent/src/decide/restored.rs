//! Orders that have gone back in time, because kcp was restored from a backup.
//!
//! ```text
//!  order in kcp            copy                         what is known              so
//!  generation 3            made for its generation 5    both have the same UID     it has gone back
//!  there                   none                         it was carried to its end  it has come back
//!  annotated Hold          any                          it was held before         it stays held, whatever its generation is by now
//! ```
//!
//! Such an order is held as soon as carrying it out would change the service cluster: first it says so itself, by an annotation, so that
//! neither a restart nor a later edit lets it slip through; then nothing is done for it until that annotation says otherwise.

use serde_json::{Value, json};
use thiserror::Error;

use super::edit::{Edit, Guard};
use super::{ObjectAddress, Step};
use crate::api::{AFTER_RESTORE, REMOTE_GENERATION};
use crate::rules::metadata::annotation;
use crate::rules::{AfterRestore, Rules};

/// In which way an order has gone back in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Setback {
    /// Its copy was made for a later generation.
    #[error("kcp has generation {now} of this order, but generation {done} was carried out: kcp went back in time")]
    Older {
        /// The generation that was carried out.
        done: i64,
        /// The generation in kcp.
        now: i64,
    },
    /// It was deleted, and so was its copy.
    #[error("this order was deleted and its copy with it, but it is there again: kcp went back in time")]
    Returned,
    /// It was held before, and has changed since.
    #[error("this order was held when kcp went back in time, and has changed since")]
    Held,
}

impl Setback {
    /// What the consumer is told.
    pub fn for_consumer(self) -> &'static str {
        match self {
            Self::Older { .. } | Self::Held => {
                "Held: the control plane was restored from a backup, and this object is older than what the service runs with. The service keeps running as it was ordered last. Apply the newest version of this object again, or ask the provider to go on with this one."
            }
            Self::Returned => {
                "Held: this object had been deleted, and came back when the control plane was restored from a backup. Nothing is created for it. Delete it again, or ask the provider to go on with it."
            }
        }
    }
}

/// How an order has gone back in time, if it has. `known` is whether anything is remembered of it, `ended` whether it was carried to its
/// end before.
pub fn setback(source: &Value, copy: Option<&Value>, known: bool, ended: bool) -> Option<Setback> {
    let now = source["metadata"]["generation"].as_i64();
    let done = copy.and_then(|copy| annotation(copy, REMOTE_GENERATION)?.parse::<i64>().ok());
    match (copy, done, now) {
        (Some(_), Some(done), Some(now)) if now < done => Some(Setback::Older { done, now }),
        (None, ..) if ended && !known => Some(Setback::Returned),
        _ if is_held(source) => Some(Setback::Held),
        _ => None,
    }
}

/// Whether such an order is carried out nevertheless.
pub fn follows(rules: &Rules, source: &Value) -> bool {
    rules.after_restore == AfterRestore::Follow || annotation(source, AFTER_RESTORE) == Some(AfterRestore::FOLLOW)
}

/// Whether the order itself says that it is held.
fn is_held(source: &Value) -> bool {
    annotation(source, AFTER_RESTORE) == Some(AfterRestore::HOLD)
}

/// The step that makes the order say that it is held; none if it does. Exactly this version of it: a cache that lags must not hold an
/// order that is newer than it seems.
pub(super) fn hold(at: &ObjectAddress, source: &Value) -> Option<Step> {
    if is_held(source) {
        return None;
    }
    let metadata = &source["metadata"];
    let patch = json!({ "metadata": {
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
        "annotations": { AFTER_RESTORE: AfterRestore::HOLD },
    } });
    Some(Step::Patch { at: at.clone(), patch })
}

/// The step by which a copy takes an older generation for its own: its content is the same, so nothing is lost, and from here on the
/// order counts on from there.
pub(super) fn count_from(at: &ObjectAddress, source: &Value, copy: &Value) -> Step {
    let generation = source["metadata"]["generation"].as_i64().unwrap_or_default().to_string();
    let path = ["metadata", "annotations", REMOTE_GENERATION].map(str::to_owned).to_vec();
    let edits = vec![Edit { path, value: Some(generation.into()) }];
    let guard = Guard::Version(copy["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned());
    Step::Edit { at: at.clone(), edits, guard }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_gone_back_only_where_something_says_so() {
        let order = |generation: i64, said: Option<&str>| {
            let mut order = json!({ "metadata": { "uid": "u", "generation": generation, "annotations": {} } });
            if let Some(said) = said {
                order["metadata"]["annotations"][AFTER_RESTORE] = said.into();
            }
            order
        };
        let copy = |generation: &str| json!({ "metadata": { "annotations": { REMOTE_GENERATION: generation } } });
        let unmarked = json!({ "metadata": { "name": "made by the reference agent" } });
        let (older, newer, broken) = (copy("3"), copy("5"), copy("five"));
        for (source, copy, known, ended, wanted) in [
            // Life as usual.
            (order(4, None), Some(&older), true, false, None),
            (order(5, None), Some(&newer), true, false, None),
            (order(4, None), Some(&unmarked), true, false, None),
            (order(4, None), Some(&broken), true, false, None),
            // A crash between the finalizer and the copy, and a copy that somebody deleted.
            (order(4, None), None, false, false, None),
            (order(4, None), None, true, false, None),
            (order(4, None), None, true, true, None),
            // What ended and goes on with a copy was let go on.
            (order(4, None), Some(&older), false, true, None),
            // Back in time.
            (order(4, None), Some(&newer), true, false, Some(Setback::Older { done: 5, now: 4 })),
            (order(4, Some("Hold")), Some(&newer), true, false, Some(Setback::Older { done: 5, now: 4 })),
            (order(6, Some("Hold")), Some(&newer), true, false, Some(Setback::Held)),
            (order(6, Some("Follow")), Some(&newer), true, false, None),
            (order(1, None), None, false, true, Some(Setback::Returned)),
            (order(1, Some("Hold")), None, false, false, Some(Setback::Held)),
        ] {
            assert_eq!(setback(&source, copy, known, ended), wanted, "{source} {copy:?} {known} {ended}");
        }
    }

    #[test]
    fn an_order_says_once_that_it_is_held() {
        let at = ObjectAddress {
            side: crate::rules::metadata::KCP_SIDE,
            kind: std::sync::Arc::new(crate::rules::ApiKind {
                group: "g".into(),
                version: "v1".into(),
                kind: "Thing".into(),
                plural: "things".into(),
                namespaced: true,
            }),
            namespace: Some("ns".into()),
            name: "a".into(),
        };
        let source = json!({ "metadata": { "uid": "u", "resourceVersion": "7" } });
        let Some(Step::Patch { patch, .. }) = hold(&at, &source) else { panic!("it does not say so yet") };
        assert_eq!(patch["metadata"]["resourceVersion"], "7", "only the version that was judged");
        let held = json!({ "metadata": { "uid": "u", "annotations": patch["metadata"]["annotations"] } });
        assert_eq!(hold(&at, &held), None);
    }
}
