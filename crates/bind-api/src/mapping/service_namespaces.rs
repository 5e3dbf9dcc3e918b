//! The namespaces of a provider that are assigned to those of a consumer.

use std::collections::{BTreeMap, BTreeSet};

use crate::conditions::{self, ASSIGNED, ConditionStatus};
use crate::v1alpha2::ApiServiceNamespace;

/// How much of what a provider says about a namespace is passed on.
const LONGEST_REASON: usize = 500;

/// Two consumer namespaces that a provider has assigned the same namespace to. Objects of one would overwrite those of the other, so neither is served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the provider has assigned its namespace {assigned} to {}; none of them is served until that is mended there", consumers.join(" and "))]
pub struct NamespaceConflict {
    /// The provider's namespace.
    pub assigned: String,
    /// The consumer's namespaces.
    pub consumers: Vec<String>,
}

/// Which namespace of the provider is assigned to which of the consumer: one to one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceNamespaces {
    assigned: BTreeMap<String, String>,
    mirrored: BTreeMap<String, String>,
    refused: BTreeMap<String, String>,
    conflicts: Vec<NamespaceConflict>,
}

impl ServiceNamespaces {
    /// What the APIServiceNamespaces of a contract say.
    pub fn new<'a>(objects: impl IntoIterator<Item = &'a ApiServiceNamespace>) -> Self {
        let mut all = Self::default();
        let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for object in objects {
            let (name, assigned) = (object.metadata.name.as_str(), object.status.namespace.as_str());
            if !name.is_empty() && !assigned.is_empty() {
                users.entry(assigned).or_default().insert(name);
            } else if let Some(reason) = refusal(object) {
                all.refused.insert(name.to_owned(), reason);
            }
        }
        for (assigned, consumers) in users {
            let consumers: Vec<String> = consumers.into_iter().map(str::to_owned).collect();
            if let [consumer] = &consumers[..] {
                all.assigned.insert(consumer.clone(), assigned.to_owned());
                all.mirrored.insert(assigned.to_owned(), consumer.clone());
            } else {
                all.conflicts.push(NamespaceConflict { assigned: assigned.to_owned(), consumers });
            }
        }
        all
    }

    /// The provider's namespace for one of the consumer.
    pub fn assigned_to(&self, consumer: &str) -> Option<&str> {
        self.assigned.get(consumer).map(String::as_str)
    }

    /// The consumer's namespace that one of the provider stands for.
    pub fn mirrored_by(&self, provider: &str) -> Option<&str> {
        self.mirrored.get(provider).map(String::as_str)
    }

    /// Why the provider assigns no namespace to one of the consumer, if it says so.
    pub fn refused(&self, consumer: &str) -> Option<&str> {
        self.refused.get(consumer).map(String::as_str)
    }

    /// All pairs of consumer's and provider's namespace, by the consumer's.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.assigned.iter().map(|(consumer, provider)| (consumer.as_str(), provider.as_str()))
    }

    /// What the provider has assigned twice.
    pub fn conflicts(&self) -> &[NamespaceConflict] {
        &self.conflicts
    }
}

/// Why a provider assigns no namespace, in its own words.
fn refusal(object: &ApiServiceNamespace) -> Option<String> {
    let condition = conditions::find(&object.status.conditions, ASSIGNED)?;
    let is_refused = condition.status == ConditionStatus::False && !condition.message.is_empty();
    is_refused.then(|| condition.message.chars().take(LONGEST_REASON).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::{Condition, Severity};

    #[test]
    fn what_a_provider_says_about_a_namespace_that_it_does_not_assign_is_known() {
        let mut refused = object("a", "");
        let said =
            Condition::fails(ASSIGNED, Severity::Error, "NamespaceRefused", format!("taken{}", "!".repeat(1000)));
        refused.status.conditions.push(said);
        let all = ServiceNamespaces::new(&[refused.clone(), object("b", "")]);
        assert!(all.refused("a").is_some_and(|reason| reason.starts_with("taken!") && reason.len() == LONGEST_REASON));
        assert_eq!(all.refused("b"), None);
        "x".clone_into(&mut refused.status.namespace);
        assert_eq!(ServiceNamespaces::new(&[refused]).refused("a"), None, "what was assigned once counts");
    }

    fn object(name: &str, assigned: &str) -> ApiServiceNamespace {
        let mut object = ApiServiceNamespace::new(name);
        assigned.clone_into(&mut object.status.namespace);
        object
    }

    #[test]
    fn a_namespace_that_is_assigned_twice_serves_nobody() {
        let objects = [object("a", "x"), object("b", "x"), object("c", "y"), object("d", "")];
        let all = ServiceNamespaces::new(&objects);
        assert_eq!(all.pairs().collect::<Vec<_>>(), [("c", "y")]);
        assert_eq!((all.assigned_to("a"), all.mirrored_by("x"), all.mirrored_by("y")), (None, None, Some("c")));
        let [conflict] = all.conflicts() else { panic!("one conflict") };
        assert!(
            conflict.to_string().starts_with("the provider has assigned its namespace x to a and b;"),
            "{conflict}"
        );
    }

    #[test]
    fn the_same_object_seen_twice_is_no_conflict() {
        let all = ServiceNamespaces::new(&[object("a", "x"), object("a", "x")]);
        assert_eq!((all.assigned_to("a"), all.conflicts().len()), (Some("x"), 0));
    }
}
