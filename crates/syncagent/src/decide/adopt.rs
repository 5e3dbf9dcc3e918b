//! Adoption: what happens when an object already exists where a new copy should go.

use serde_json::Value;

use crate::rules;
use crate::rules::metadata::WORDS;

pub use carrick_sync::Adoption;

/// Decides about an existing object in the place of the copy of a primary. Related objects carry no link; their ownership is decided with
/// their pair, which sees them.
pub fn adopt(existing: &Value, desired: &Value, policy: rules::Adoption, subresources: &[&str]) -> Adoption {
    carrick_sync::adopt::adopt(&WORDS, existing, desired, policy, subresources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ACQUIRED, ADOPTION, AGENT_NAME, REMOTE_RESOURCE, REMOTE_UID};
    use crate::rules::metadata::{SourceKey, annotation, link_to_object, source_of, write_link};
    use rules::Adoption::{Link as LinkOnly, Refuse, TakeOver};
    use serde_json::json;

    fn copy_of(cluster: &str, agent: &str, resource: &str, uid: &str) -> Value {
        let mut copy = json!({"metadata": {"name": "x"}, "spec": {"a": 1}});
        let source = SourceKey { cluster: cluster.into(), namespace: "ns".into(), name: "n".into() };
        let link = link_to_object(&source, None, resource, &json!({"metadata": {"uid": uid}}));
        write_link(&link, &mut copy, agent);
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
    fn a_copy_that_has_lost_a_label_is_still_the_copy() {
        let whole = copy_of("c1", "me", "things.g", "u1");
        for label in whole["metadata"]["labels"].as_object().unwrap().keys() {
            let mut copy = whole.clone();
            copy["metadata"]["labels"].as_object_mut().unwrap().remove(label);
            copy["spec"] = json!({"a": 2});
            assert_eq!(adopt(&copy, Refuse), Adoption::Ours, "{label}");
            copy["metadata"]["annotations"][REMOTE_UID] = "u2".into();
            assert_ne!(adopt(&copy, Refuse), Adoption::Ours, "{label}, of another source");
        }
    }

    #[test]
    fn what_was_there_before_is_taken_only_if_somebody_said_so_however_equal_it_is() {
        let other = json!({"metadata": {"name": "x"}, "spec": {"a": 7}});
        assert_eq!(adopt(&other, Refuse), Adoption::Refused);
        let said = json!({"metadata": {"name": "x", "annotations": {ADOPTION: "TakeOver"}}, "spec": {"a": 7}});
        let equal = json!({"metadata": {"name": "x"}, "spec": {"a": 1}});
        assert_eq!(adopt(&equal, Refuse), Adoption::Refused);
        for (existing, policy, content, how) in
            [(&other, TakeOver, 1, "adopted"), (&said, Refuse, 1, "adopted"), (&other, LinkOnly, 7, "linked")]
        {
            let Adoption::Take(taken) = adopt(existing, policy) else { panic!("{existing}") };
            assert_eq!(taken["spec"]["a"], content);
            assert_eq!(annotation(&taken, ACQUIRED), Some(how));
            assert_eq!(source_of(&taken).unwrap().cluster.as_ref(), "c1");
        }
    }

    #[test]
    fn what_is_handed_over_was_acquired_as_before() {
        for (before, after) in [(None, None), (Some("adopted"), Some("adopted")), (Some("linked"), Some("linked"))] {
            let mut given = copy_of("c2", "me", "things.g", "u2");
            given["metadata"]["annotations"][ADOPTION] = "TakeOver".into();
            if let Some(before) = before {
                given["metadata"]["annotations"][ACQUIRED] = before.into();
            }
            let Adoption::Take(taken) = adopt(&given, Refuse) else { panic!("{given}") };
            assert_eq!(annotation(&taken, ACQUIRED), after, "what the agent made once is its own still");
        }
    }

    #[test]
    fn a_related_copy_that_was_not_seen_is_known_by_who_wrote_it_alone() {
        let wanted = json!({"metadata": {"labels": {AGENT_NAME: "me"}}, "data": {"k": "v"}});
        for policy in [Refuse, TakeOver, LinkOnly] {
            for (manager, adoption) in [("api-syncagent", Adoption::Ours), ("kubectl", Adoption::Refused)] {
                let mut existing = wanted.clone();
                existing["metadata"]["managedFields"] =
                    json!([{"manager": manager, "operation": "Update", "fieldsV1": {"f:data": {"f:k": {}}}}]);
                assert_eq!(super::adopt(&existing, &wanted, policy, &[]), adoption, "{existing}");
            }
        }
    }
}
