//! Provenance: labels and annotations on the copy of a related object that name the primary and the entry it was made for.
//!
//! Labels are for agents: all three together find the copies of one entry of one primary, whoever made them, even if the state is lost.
//! Annotations are for people.

use std::collections::BTreeMap;

use serde_json::Value;

use super::metadata::{Link, SourceKey, label, sha1_hex};
use crate::api::{AGENT_NAME, RELATED_IDENTIFIER, RELATED_OWNER, RELATED_PRIMARY_NAME, RELATED_PRIMARY_NAMESPACE};

/// What the copies of one entry of one primary carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// Labels, without the agent's name, and annotations.
    pub link: Link,
    /// Name of the agent.
    pub agent_name: String,
    owner: String,
    identifier: String,
}

impl Provenance {
    /// The provenance of copies that an agent makes for an entry of a PublishedResource and a primary in kcp.
    pub fn of(primary: &SourceKey, published: &str, identifier: &str, agent_name: &str) -> Self {
        let (owner, identifier) = (owner(primary, published), identifier.to_owned());
        let labels = vec![(RELATED_OWNER, owner.clone()), (RELATED_IDENTIFIER, identifier.clone())];
        let mut annotations = vec![(RELATED_PRIMARY_NAME, primary.name.to_string())];
        if !primary.namespace.is_empty() {
            annotations.push((RELATED_PRIMARY_NAMESPACE, primary.namespace.to_string()));
        }
        Self {
            link: Link { labels, annotations, marks: Vec::new(), notes: Vec::new() },
            agent_name: agent_name.to_owned(),
            owner,
            identifier,
        }
    }

    /// The label selector that finds the copies.
    pub fn selector(&self) -> String {
        self.labels().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    }

    /// Primary and entry as one text, for lookups.
    pub fn key(&self) -> String {
        key(&self.owner, &self.identifier)
    }

    /// The same for the labels of an object; none if it does not carry them.
    pub fn key_of(labels: &BTreeMap<String, String>) -> Option<String> {
        Some(key(labels.get(RELATED_OWNER)?, labels.get(RELATED_IDENTIFIER)?))
    }

    /// Whether an object carries all the labels.
    pub fn is_on(&self, object: &Value) -> bool {
        self.labels().all(|(key, value)| label(object, key) == Some(value))
    }

    /// Whether an object carries the mark of another primary or another PublishedResource.
    pub fn is_of_another_primary(&self, object: &Value) -> bool {
        label(object, RELATED_OWNER).is_some_and(|owner| owner != self.owner)
    }

    /// Whether another agent has put its name on an object.
    pub fn is_of_another_agent(&self, object: &Value) -> bool {
        label(object, AGENT_NAME).is_some_and(|agent| agent != self.agent_name)
    }

    fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let agent = (AGENT_NAME, self.agent_name.as_str());
        self.link.labels.iter().map(|(key, value)| (*key, value.as_str())).chain([agent])
    }
}

/// The primary and the PublishedResource that a copy belongs to, as a label value.
pub fn owner(primary: &SourceKey, published: &str) -> String {
    sha1_hex(&[&*primary.cluster, published, &primary.namespace, &primary.name].map(str::to_owned).join("\0"))
}

fn key(owner: &str, identifier: &str) -> String {
    format!("{owner}/{identifier}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn primary(namespace: &str) -> SourceKey {
        SourceKey { cluster: "testcluster".into(), namespace: namespace.into(), name: "my-crontab".into() }
    }

    fn provenance() -> Provenance {
        Provenance::of(&primary("default"), "publish-crontabs", "credentials", "agent")
    }

    fn marked(provenance: &Provenance) -> Value {
        let mut object = json!({"metadata": {"name": "x", "labels": {"own": "1"}}});
        crate::rules::metadata::write_link(&provenance.link, &mut object, &provenance.agent_name);
        object
    }

    #[test]
    fn owners_equal_those_of_the_reference_agent() {
        assert_eq!(owner(&primary("default"), "publish-crontabs"), "2b03c2ab04c9002b7373adcd2df5032779c99a9e");
        assert_eq!(owner(&primary(""), "publish-crontabs"), "887013b7c91c9596348f49841b0087b0267bec7f");
    }

    #[test]
    fn a_copy_carries_three_labels_and_the_name_of_its_primary() {
        let metadata = marked(&provenance())["metadata"].clone();
        assert_eq!(
            metadata,
            json!({"name": "x",
                "labels": {"own": "1", RELATED_OWNER: "2b03c2ab04c9002b7373adcd2df5032779c99a9e",
                    RELATED_IDENTIFIER: "credentials", AGENT_NAME: "agent"},
                "annotations": {RELATED_PRIMARY_NAME: "my-crontab", RELATED_PRIMARY_NAMESPACE: "default"}})
        );
        let cluster_wide = marked(&Provenance::of(&primary(""), "publish-crontabs", "credentials", "agent"));
        assert_eq!(cluster_wide["metadata"]["annotations"], json!({RELATED_PRIMARY_NAME: "my-crontab"}));
    }

    #[test]
    fn only_the_copies_of_one_entry_of_one_primary_of_one_agent_are_found() {
        let (ours, name) = (provenance(), "publish-crontabs");
        assert!(ours.is_on(&marked(&ours)));
        let other_cluster = SourceKey { cluster: "other".into(), ..primary("default") };
        let other_name = SourceKey { name: "other".into(), ..primary("default") };
        // Whether it is another primary's, or another agent's.
        for (other, (primary, agent)) in [
            (Provenance::of(&other_cluster, name, "credentials", "agent"), (true, false)),
            (Provenance::of(&other_name, name, "credentials", "agent"), (true, false)),
            (Provenance::of(&primary("other"), name, "credentials", "agent"), (true, false)),
            (Provenance::of(&primary("default"), "other", "credentials", "agent"), (true, false)),
            (Provenance::of(&primary("default"), name, "credentials", "other"), (false, true)),
            (Provenance::of(&primary("default"), name, "other", "agent"), (false, false)),
        ] {
            let copy = marked(&other);
            assert!(!ours.is_on(&copy) && ours.selector() != other.selector(), "{other:?}");
            let labels = serde_json::from_value(copy["metadata"]["labels"].clone()).unwrap();
            assert_eq!(Provenance::key_of(&labels), Some(other.key()), "{other:?}");
            assert_eq!(ours.key() == other.key(), agent, "{other:?}");
            assert_eq!(
                (ours.is_of_another_primary(&copy), ours.is_of_another_agent(&copy)),
                (primary, agent),
                "{other:?}"
            );
        }
        let bare = json!({});
        assert!(!ours.is_on(&bare) && !ours.is_of_another_primary(&bare) && !ours.is_of_another_agent(&bare));
    }

    #[test]
    fn names_of_any_length_make_labels_that_fit() {
        let long = SourceKey { name: "n".repeat(253).into(), namespace: "s".repeat(63).into(), ..primary("") };
        let provenance = Provenance::of(&long, &"p".repeat(253), "", "agent");
        assert!(provenance.labels().all(|(_, value)| value.len() <= 63));
        assert_eq!(provenance.labels().count(), 3);
        assert!(provenance.selector().contains(&format!("{RELATED_IDENTIFIER}=,")));
    }
}
