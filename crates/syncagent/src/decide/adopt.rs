//! Adoption: what happens when the place of a new copy is taken.

use serde_json::Value;

use crate::api::AGENT_NAME;
use crate::rules::metadata::{Link, label};

/// What to do with an object that is in the place of a new copy.
#[derive(Debug, Clone, PartialEq)]
pub enum Adoption {
    /// It is the copy already: an earlier attempt created it.
    Ours,
    /// It belongs to nobody: take it over by writing this. Its content stays as it is.
    Take(Value),
    /// It belongs to someone else and must not be touched.
    Foreign {
        /// Who owns it, in words.
        owner: String,
    },
}

/// Decides about an object in the place of a copy. Related objects carry no link and are taken as they are.
pub fn adopt(existing: &Value, desired: &Value) -> Adoption {
    let Some(wanted) = Link::source_of(desired) else { return Adoption::Ours };
    match Link::source_of(existing) {
        Some(source) if source == wanted && label(existing, AGENT_NAME) == label(desired, AGENT_NAME) => Adoption::Ours,
        Some(source) if source != wanted => Adoption::Foreign {
            owner: format!("the copy of {}/{} in logical cluster {}", source.namespace, source.name, source.cluster),
        },
        _ if label(existing, AGENT_NAME).is_some_and(|agent| Some(agent) != label(desired, AGENT_NAME)) => {
            Adoption::Foreign { owner: format!("agent {}", label(existing, AGENT_NAME).unwrap_or_default()) }
        }
        _ => {
            let mut taken = existing.clone();
            for field in ["labels", "annotations"] {
                for (key, value) in desired["metadata"][field].as_object().into_iter().flatten() {
                    if key.starts_with("syncagent.kcp.io/") {
                        crate::rules::metadata::set(&mut taken, field, key, value.as_str().unwrap_or_default());
                    }
                }
            }
            Adoption::Take(taken)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::metadata::SourceKey;
    use serde_json::json;

    fn copy_of(cluster: &str, agent: &str) -> Value {
        let mut copy = json!({"metadata": {"name": "x"}, "spec": {"a": 1}});
        let source = SourceKey { cluster: cluster.into(), namespace: "ns".into(), name: "n".into() };
        Link::to(&source, None).write(&mut copy, agent);
        copy
    }

    #[test]
    fn only_what_belongs_to_nobody_is_taken() {
        let desired = copy_of("c1", "me");
        assert_eq!(adopt(&copy_of("c1", "me"), &desired), Adoption::Ours);
        assert!(matches!(adopt(&copy_of("c2", "me"), &desired), Adoption::Foreign { .. }));
        assert!(matches!(adopt(&copy_of("c1", "other"), &desired), Adoption::Foreign { .. }));
        let Adoption::Take(taken) = adopt(&json!({"metadata": {"name": "x"}, "spec": {"a": 7}}), &desired) else {
            panic!()
        };
        assert_eq!(taken["spec"]["a"], 7, "content stays");
        assert_eq!(Link::source_of(&taken), Link::source_of(&desired));
    }
}
