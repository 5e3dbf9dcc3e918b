//! Adoption: what happens when an object already exists where a new copy should go.

use serde_json::Value;

use super::content::{is_exact, overwritten};
use crate::api::{ADOPTION, AGENT_NAME, REMOTE_RESOURCE, REMOTE_UID};
use crate::rules;
use crate::rules::metadata::{Link, annotation, label, set, strip};

/// What to do with an existing object in the place of a new copy.
#[derive(Debug, Clone, PartialEq)]
pub enum Adoption {
    /// It is the copy already: an earlier attempt created it.
    Ours,
    /// It may be taken over, by writing this.
    Take(Value),
    /// It belongs to someone else and must not be touched.
    Foreign {
        /// A description of its owner.
        owner: String,
    },
    /// It has no known owner, and nobody has allowed taking it over.
    Refused,
}

/// Decides about an existing object in the place of the copy of a primary. Related objects carry no link; their ownership is decided by
/// `pair`, which sees them.
pub fn adopt(existing: &Value, desired: &Value, policy: rules::Adoption, subresources: &[&str]) -> Adoption {
    let Some(wanted) = Link::source_of(desired) else { return Adoption::Ours };
    let source = Link::source_of(existing);
    let is_other = |mark: &str| {
        annotation(existing, mark).is_some_and(|theirs| annotation(desired, mark).is_some_and(|ours| ours != theirs))
    };
    let agent = label(existing, AGENT_NAME);
    let same_agent = agent == label(desired, AGENT_NAME);
    // The owner's annotation decides, but an object of another agent is never taken over.
    let said = annotation(existing, ADOPTION) == Some(rules::Adoption::TAKE_OVER);
    match source {
        _ if agent.is_some() && !same_agent => {
            Adoption::Foreign { owner: format!("agent {}", agent.unwrap_or_default()) }
        }
        Some(source) if source == wanted && !is_other(REMOTE_RESOURCE) && !is_other(REMOTE_UID) && same_agent => {
            Adoption::Ours
        }
        Some(source) if source == wanted && is_other(REMOTE_RESOURCE) && !said => Adoption::Foreign {
            owner: format!(
                "an object of {}, whose copy it is",
                annotation(existing, REMOTE_RESOURCE).unwrap_or_default()
            ),
        },
        Some(source) if source == wanted && is_other(REMOTE_UID) && !said => {
            Adoption::Foreign { owner: "an earlier object of the same name, whose copy it is".to_owned() }
        }
        Some(source) if source != wanted && !said => Adoption::Foreign {
            owner: format!(
                "{}/{} in logical cluster {}, whose copy it is",
                source.namespace, source.name, source.cluster
            ),
        },
        _ => {
            let content = strip(desired);
            match policy {
                _ if said || policy == rules::Adoption::TakeOver || is_exact(&content, existing, subresources) => {}
                rules::Adoption::Link => {}
                _ => return Adoption::Refused,
            }
            let mut taken = existing.clone();
            if policy != rules::Adoption::Link || said {
                taken = overwritten(&content, existing, None, subresources).unwrap_or(taken);
            }
            for field in ["labels", "annotations"] {
                for (key, value) in desired["metadata"][field].as_object().into_iter().flatten() {
                    if key.starts_with("syncagent.kcp.io/") {
                        set(&mut taken, field, key, value.as_str().unwrap_or_default());
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
    use rules::Adoption::{Link as LinkOnly, Refuse, TakeOver};
    use serde_json::json;

    fn copy_of(cluster: &str, agent: &str, resource: &str, uid: &str) -> Value {
        let mut copy = json!({"metadata": {"name": "x"}, "spec": {"a": 1}});
        let source = SourceKey { cluster: cluster.into(), namespace: "ns".into(), name: "n".into() };
        Link::to(&source, None).to_object(resource, &json!({"metadata": {"uid": uid}})).write(&mut copy, agent);
        copy
    }

    fn adopt(existing: &Value, policy: rules::Adoption) -> Adoption {
        super::adopt(existing, &copy_of("c1", "me", "things.g", "u1"), policy, &[])
    }

    #[test]
    fn what_belongs_to_somebody_is_never_taken() {
        for policy in [Refuse, TakeOver, LinkOnly] {
            assert_eq!(adopt(&copy_of("c1", "me", "things.g", "u1"), policy), Adoption::Ours);
            for other in [
                copy_of("c2", "me", "things.g", "u1"),
                copy_of("c1", "other", "things.g", "u1"),
                copy_of("c1", "me", "others.g", "u1"),
                copy_of("c1", "me", "things.g", "u2"),
            ] {
                assert!(matches!(adopt(&other, policy), Adoption::Foreign { .. }), "{other}");
            }
        }
        for (other, taken) in [("me", true), ("other", false)] {
            let mut given = copy_of("c2", other, "things.g", "u1");
            given["metadata"]["annotations"][ADOPTION] = "TakeOver".into();
            assert_eq!(matches!(adopt(&given, Refuse), Adoption::Take(_)), taken, "given away by its owner");
        }
        let mut unmarked = copy_of("c1", "me", "things.g", "u1");
        for mark in [REMOTE_RESOURCE, REMOTE_UID] {
            unmarked["metadata"]["annotations"].as_object_mut().unwrap().remove(mark);
        }
        assert_eq!(adopt(&unmarked, Refuse), Adoption::Ours, "the reference agent leaves no marks");
    }

    #[test]
    fn what_was_there_before_is_taken_only_if_it_is_equal_or_somebody_said_so() {
        let other = json!({"metadata": {"name": "x"}, "spec": {"a": 7}});
        assert_eq!(adopt(&other, Refuse), Adoption::Refused);
        let said = json!({"metadata": {"name": "x", "annotations": {ADOPTION: "TakeOver"}}, "spec": {"a": 7}});
        let equal = json!({"metadata": {"name": "x"}, "spec": {"a": 1}});
        for (existing, policy, content) in
            [(&other, TakeOver, 1), (&said, Refuse, 1), (&equal, Refuse, 1), (&other, LinkOnly, 7)]
        {
            let Adoption::Take(taken) = adopt(existing, policy) else { panic!("{existing}") };
            assert_eq!(taken["spec"]["a"], content);
            assert_eq!(Link::source_of(&taken).unwrap().cluster.as_ref(), "c1");
        }
    }
}
