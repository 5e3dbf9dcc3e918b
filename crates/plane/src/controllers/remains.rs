//! What is left of a namespace that is being deleted, as its conditions report it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The conditions of a namespace in deletion in their order, each with its reason and message as long as nothing is wrong.
const FINE: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (CONTENT, "ContentRemoved", "All content successfully removed"),
    (FINALIZERS, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];
const CONTENT: &str = "NamespaceContentRemaining";
const FINALIZERS: &str = "NamespaceFinalizersRemaining";

/// What is left of a namespace.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// How many objects of each kind.
    kinds: BTreeMap<String, usize>,
    /// How many objects each finalizer holds.
    finalizers: BTreeMap<String, usize>,
}

impl Remains {
    /// Counts an object of a kind.
    pub(super) fn add(&mut self, group: &str, plural: &str, object: &Value) {
        *self.kinds.entry(format!("{plural}.{group}")).or_default() += 1;
        for finalizer in object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Brings the conditions of a namespace up to date; returns whether they have changed.
    pub(super) fn report(&self, namespace: &mut Value, now: &str) -> bool {
        if !namespace["status"]["conditions"].is_array() {
            namespace["status"]["conditions"] = json!([]);
        }
        let Some(present) = namespace["status"]["conditions"].as_array_mut() else { return false };
        let mut changed = false;
        for (kind, fine_reason, fine_message) in FINE {
            let (status, reason, message) = match kind {
                CONTENT if !self.kinds.is_empty() => {
                    let list = reported(&self.kinds, |kind, count| format!("{kind} has {count} resource instances"));
                    ("True", "SomeResourcesRemain", format!("Some resources are remaining: {list}"))
                }
                FINALIZERS if !self.finalizers.is_empty() => {
                    let list =
                        reported(&self.finalizers, |name, count| format!("{name} in {count} resource instances"));
                    let message = format!("Some content in the namespace has finalizers remaining: {list}");
                    ("True", "SomeFinalizersRemain", message)
                }
                _ => ("False", fine_reason, fine_message.to_owned()),
            };
            let new = json!({
                "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now,
            });
            let Some(old) = present.iter_mut().find(|old| old["type"] == kind) else {
                present.push(new);
                changed = true;
                continue;
            };
            let since = if old["status"] == status { old["lastTransitionTime"].clone() } else { now.into() };
            if ["status", "reason", "message"].iter().any(|field| old[*field] != new[*field]) {
                *old = new;
                old["lastTransitionTime"] = since;
                changed = true;
            }
        }
        changed
    }
}

fn reported(counts: &BTreeMap<String, usize>, line: impl Fn(&str, usize) -> String) -> String {
    let mut lines: Vec<String> = counts.iter().map(|(name, count)| line(name, *count)).collect();
    lines.sort();
    lines.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_tell_what_is_left_and_what_holds_it() {
        let mut remains = Remains::default();
        remains.add("", "configmaps", &json!({"metadata": {"finalizers": ["example.com/hold"]}}));
        remains.add("example.com", "things", &json!({"metadata": {}}));
        let mut namespace = json!({"status": {"phase": "Terminating"}});
        assert!(remains.report(&mut namespace, "then"));
        let conditions = namespace["status"]["conditions"].clone();
        let shown: Vec<(&str, &str)> = conditions
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["status"].as_str().unwrap(), one["message"].as_str().unwrap()))
            .collect();
        let expected = [
            ("False", "All resources successfully discovered"),
            ("False", "All legacy kube types successfully parsed"),
            ("False", "All content successfully deleted, may be waiting on finalization"),
            (
                "True",
                "Some resources are remaining: configmaps. has 1 resource instances, things.example.com has 1 resource instances",
            ),
            (
                "True",
                "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
            ),
        ];
        assert_eq!(shown, expected);
        assert!(!remains.report(&mut namespace, "now"));
        assert_eq!(namespace["status"]["conditions"], conditions);
        assert!(Remains::default().report(&mut namespace, "now"));
        assert_eq!(namespace["status"]["conditions"][3]["lastTransitionTime"], "now");
        assert_eq!(namespace["status"]["conditions"][0]["lastTransitionTime"], "then");
    }
}
