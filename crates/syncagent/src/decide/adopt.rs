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
    use crate::api::{ADOPTION, REMOTE_RESOURCE, REMOTE_UID};
    use crate::rules::metadata::{SourceKey, link_to_object, source_of, write_link};
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
            assert_eq!(source_of(&taken).unwrap().cluster.as_ref(), "c1");
        }
    }
}
