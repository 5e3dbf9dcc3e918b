//! What becomes of one CRD of the consumer that a provider offers.

use carrick_bind_api::core::conditions::{
    API_MANAGED_BY_OTHER, CONVERSION_WEBHOOK, FOREIGN_CRD, Finding, PENDING, READY,
};
use carrick_bind_api::core::names::{CONNECTION_ANNOTATION, MANAGED_LABEL, SCHEMA_HASH_ANNOTATION};
use carrick_bind_api::core::schema::{self, CrdOwner, PullError, Pulled};
use carrick_bind_api::core::{PullPolicy, SchemaPolicy, UpdatePolicy};
use serde_json::{Value, json};

use super::rivals::Claimant;

/// A write of a CRD.
#[derive(Clone, Debug, PartialEq)]
pub enum CrdWrite {
    /// It is created.
    Create(Value),
    /// It replaces the one that is there.
    Replace(Value),
}

/// What becomes of a CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct CrdPlan {
    /// The write that is needed.
    pub write: Option<CrdWrite>,
    /// The CRD as it is here afterwards, if objects of it can be synced.
    pub usable: Option<Value>,
    /// The hash of what is offered, if it was pulled.
    pub hash: String,
    /// Whether what is here is what is offered.
    pub in_sync: bool,
    /// Why the API cannot be used.
    pub problem: Option<Finding>,
}

impl CrdPlan {
    fn refused(reason: &'static str, message: String) -> Self {
        let problem = Some(Finding::no(READY, reason, message));
        Self { write: None, usable: None, hash: String::new(), in_sync: false, problem }
    }

    fn used(crd: Value, hash: String, write: Option<CrdWrite>) -> Self {
        Self { write, usable: Some(crd), hash, in_sync: true, problem: None }
    }
}

/// Decides about a CRD, given the provider's and the one that is here. One that somebody else installed is neither overwritten nor marked.
pub fn decide(offered: &Value, there: Option<&Value>, connection: &str, policy: &SchemaPolicy) -> CrdPlan {
    let name = schema::name(offered);
    let pulled = match schema::pull(offered, connection) {
        Ok(pulled) => pulled,
        Err(error @ PullError::Webhook(_)) => return CrdPlan::refused(CONVERSION_WEBHOOK, error.to_string()),
        Err(error) => return CrdPlan::refused(PENDING, error.to_string()),
    };
    let Some(there) = there else {
        if policy.pull_policy == PullPolicy::None {
            let words = format!(
                "waiting for somebody to install CustomResourceDefinition {name}: the Connection's pullPolicy is None"
            );
            return CrdPlan::refused(PENDING, words);
        }
        let write = CrdWrite::Create(pulled.crd.clone());
        return CrdPlan::used(pulled.crd, pulled.hash, Some(write));
    };
    match schema::owner(there) {
        CrdOwner::Connection { name, hash } if name == connection => ours(there, pulled, &hash, policy),
        CrdOwner::Connection { name: other, .. } => CrdPlan::refused(
            API_MANAGED_BY_OTHER,
            format!("CustomResourceDefinition {name} was installed for Connection {other}; unbind it there first"),
        ),
        CrdOwner::Contract(binding) => CrdPlan::refused(
            API_MANAGED_BY_OTHER,
            format!(
                "CustomResourceDefinition {name} was installed by kube-bind 0.8 for APIServiceBinding {binding}; \
                 delete that binding first"
            ),
        ),
        CrdOwner::Other if schema::serves(there, &pulled.crd) => CrdPlan::used(pulled.crd, pulled.hash, None),
        CrdOwner::Other => CrdPlan::refused(
            FOREIGN_CRD,
            format!(
                "CustomResourceDefinition {name} was installed by somebody else and does not serve what the provider offers; \
                 it is left as it is, so remove it or make it the same"
            ),
        ),
    }
}

/// The plan for a CRD of somebody else that another binding uses for its Connection.
pub fn taken(name: &str, by: &Claimant) -> CrdPlan {
    let Claimant { key, connection, .. } = by;
    let message = format!(
        "CustomResourceDefinition {name} was installed by somebody else and is used by {key} of Connection {connection}; unbind it there first"
    );
    CrdPlan::refused(API_MANAGED_BY_OTHER, message)
}

/// The write by which a CRD that was installed for another Connection is this one's. The objects and what it says stay as they are.
pub fn handed_over(there: &Value, connection: &str) -> CrdWrite {
    let mut new = there.clone();
    new["metadata"]["annotations"][CONNECTION_ANNOTATION] = json!(connection);
    CrdWrite::Replace(new)
}

/// Whether nothing on a CRD says for whom it was installed.
pub fn is_nobodys(there: &Value) -> bool {
    schema::owner(there) == CrdOwner::Other
}

fn ours(there: &Value, pulled: Pulled, known: &str, policy: &SchemaPolicy) -> CrdPlan {
    let stays = policy.update_policy == UpdatePolicy::Once || policy.pull_policy == PullPolicy::None;
    let in_sync = known == pulled.hash;
    if in_sync || stays {
        return CrdPlan { in_sync, ..CrdPlan::used(there.clone(), known.to_owned(), None) };
    }
    let mut new = there.clone();
    new["spec"] = pulled.crd["spec"].clone();
    new["metadata"]["labels"][MANAGED_LABEL] = json!("true");
    for mark in [CONNECTION_ANNOTATION, SCHEMA_HASH_ANNOTATION] {
        new["metadata"]["annotations"][mark] = pulled.crd["metadata"]["annotations"][mark].clone();
    }
    CrdPlan::used(new.clone(), pulled.hash, Some(CrdWrite::Replace(new)))
}

/// The CRD by which a Connection reads objects at the end of a binding, given the provider's, if it is still there. With one that was installed for
/// another Connection, or by kube-bind 0.8, the objects are theirs: the marks of copies do not say by which Connection they were made.
pub fn draining(there: &Value, offered: Option<&Value>, connection: &str) -> Option<Value> {
    if !is_nobodys(there) {
        return is_ours(there, connection).then(|| there.clone());
    }
    let pulled = schema::pull(offered?, connection).ok()?.crd;
    schema::serves(there, &pulled).then_some(pulled)
}

/// Whether objects of a CRD that is here may be held for a Connection: nobody else has installed it for copies of their own.
pub fn may_hold(there: &Value, connection: &str) -> bool {
    is_nobodys(there) || is_ours(there, connection)
}

/// Whether a CRD was installed for a Connection, so that it goes with its last binding.
pub fn is_ours(there: &Value, connection: &str) -> bool {
    matches!(schema::owner(there), CrdOwner::Connection { name, .. } if name == connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered() -> Value {
        json!({"metadata": {"name": "widgets.example.io"}, "spec": {"group": "example.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    }

    fn changed() -> Value {
        let mut crd = offered();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("new");
        crd
    }

    fn policy(pull: PullPolicy, update: UpdatePolicy) -> SchemaPolicy {
        let mut policy = SchemaPolicy::default();
        (policy.pull_policy, policy.update_policy) = (pull, update);
        policy
    }

    fn pulled(crd: &Value, connection: &str) -> Value {
        schema::pull(crd, connection).unwrap().crd
    }

    #[test]
    fn what_is_missing_is_created_and_what_is_ours_follows_if_it_may() {
        let always = || policy(PullPolicy::Unset, UpdatePolicy::Unset);
        let created = decide(&offered(), None, "west", &always());
        assert_eq!(created.write, Some(CrdWrite::Create(pulled(&offered(), "west"))));
        let ours = pulled(&offered(), "west");
        let same = decide(&offered(), Some(&ours), "west", &always());
        assert!(same.write.is_none() && same.in_sync && same.usable.is_some());
        let new = decide(&changed(), Some(&ours), "west", &always());
        let Some(CrdWrite::Replace(written)) = new.write else { panic!("{new:?}") };
        assert_eq!(
            (&written["spec"], new.hash),
            (&pulled(&changed(), "west")["spec"], schema::pull(&changed(), "x").unwrap().hash)
        );
        for policy in [policy(PullPolicy::Bound, UpdatePolicy::Once), policy(PullPolicy::None, UpdatePolicy::Always)] {
            let kept = decide(&changed(), Some(&ours), "west", &policy);
            assert!(kept.write.is_none() && !kept.in_sync && kept.usable.is_some(), "{kept:?}");
        }
        let missing = decide(&offered(), None, "west", &policy(PullPolicy::None, UpdatePolicy::Always));
        assert_eq!((missing.write, missing.problem.unwrap().reason), (None, PENDING));
    }

    #[test]
    fn what_somebody_else_installed_is_never_written() {
        let plan = |there: &Value| decide(&offered(), Some(there), "west", &SchemaPolicy::default());
        let same = plan(&offered());
        assert!(same.write.is_none() && same.problem.is_none() && same.usable.is_some(), "it serves as it is");
        let mut contract = changed();
        contract["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": "old"}]);
        for (there, reason, says) in [
            (changed(), FOREIGN_CRD, "somebody else"),
            (pulled(&offered(), "east"), API_MANAGED_BY_OTHER, "Connection east"),
            (contract, API_MANAGED_BY_OTHER, "APIServiceBinding old"),
        ] {
            let plan = plan(&there);
            let problem = plan.problem.unwrap();
            assert!(plan.write.is_none() && plan.usable.is_none());
            assert!(problem.reason == reason && problem.message.contains(says), "{problem:?}");
            assert!(!is_ours(&there, "west"));
        }
        assert!(is_ours(&pulled(&offered(), "west"), "west"));
    }

    #[test]
    fn what_ends_reads_objects_by_its_own_crd_or_by_one_that_belongs_to_no_contract() {
        let (ours, theirs) = (pulled(&changed(), "west"), pulled(&offered(), "east"));
        assert_eq!(draining(&ours, None, "west"), Some(ours.clone()), "even if the provider offers it no more");
        assert_eq!(draining(&theirs, Some(&offered()), "west"), None);
        assert_eq!(draining(&offered(), Some(&offered()), "west"), Some(pulled(&offered(), "west")));
        assert_eq!(draining(&changed(), Some(&offered()), "west"), None, "it does not serve the same");
        let mut contract = offered();
        contract["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": "old"}]);
        assert_eq!(draining(&contract, Some(&offered()), "west"), None);
        let held = [&ours, &theirs, &offered(), &contract].map(|there| may_hold(there, "west"));
        assert_eq!(held, [true, false, true, false]);
    }

    #[test]
    fn a_crd_changes_hands_and_nothing_else_of_it_changes() {
        let theirs = pulled(&offered(), "east");
        let CrdWrite::Replace(new) = handed_over(&theirs, "west") else { panic!() };
        assert_eq!(new, pulled(&offered(), "west"));
    }

    #[test]
    fn a_conversion_webhook_is_named() {
        let mut crd = offered();
        crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
        let plan = decide(&crd, None, "west", &SchemaPolicy::default());
        assert!(plan.write.is_none() && plan.problem.unwrap().reason == CONVERSION_WEBHOOK);
    }
}
