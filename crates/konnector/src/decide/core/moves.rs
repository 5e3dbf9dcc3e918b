//! Bindings that name another Connection than the one that they are bound by.
//!
//! Copies would be left behind if the new one simply took over. So a binding stays with the Connection by which it was bound until it says what becomes
//! of its copies there; then they are let go, or deleted, and the binding changes hands. Its CRDs follow if nobody else uses them there.

use carrick_bind_api::carrick_kcp::meta::ObjectMeta;
use carrick_bind_api::core::conditions::{API_MANAGED_BY_OTHER, Finding, READY};
use carrick_bind_api::core::names::{DELETE, DELETION_POLICY_ANNOTATION, ORPHAN};

/// What stands on a binding that a Connection has bound. With the uid it means nothing on another binding that was made from this one's text.
pub fn mark(connection: &str, binding: &ObjectMeta) -> String {
    format!("{connection}/{}", binding.uid)
}

/// Whether a binding says what becomes of its copies.
pub fn has_policy(binding: &ObjectMeta) -> bool {
    binding.annotation(DELETION_POLICY_ANNOTATION).is_some_and(|policy| [ORPHAN, DELETE].contains(&policy))
}

/// What is wrong with a binding that names another Connection and does not say what becomes of its copies.
pub fn stays(with: &str, named: &str) -> Finding {
    let words = format!(
        "it names Connection {named} and is still bound by Connection {with}, where its copies are; name that one again, or annotate this \
         binding with {DELETION_POLICY_ANNOTATION}={ORPHAN} (they stay there) or {DELETION_POLICY_ANNOTATION}={DELETE} (they are \
         deleted): it goes on with Connection {named} once that one offers the same APIs"
    );
    Finding::no(READY, API_MANAGED_BY_OTHER, words)
}

#[cfg(test)]
mod tests {
    use carrick_bind_api::core::ClusterBinding;
    use carrick_bind_api::core::names::BOUND_BY_ANNOTATION;

    use super::*;

    fn binding(annotations: &[(&str, &str)]) -> ObjectMeta {
        let mut binding = ObjectMeta::named("law");
        binding.uid = "u-1".to_owned();
        for (key, value) in annotations {
            binding.annotate(*key, *value);
        }
        binding
    }

    #[test]
    fn a_binding_belongs_to_whoever_has_bound_it_whatever_it_names() {
        let mark = mark("west", &binding(&[]));
        let owner = |metadata: ObjectMeta| {
            let mut binding = ClusterBinding::new("law");
            binding.metadata = metadata;
            "east".clone_into(&mut binding.spec.connection_ref.name);
            binding.connection().to_owned()
        };
        assert_eq!(owner(binding(&[])), "east");
        assert_eq!(owner(binding(&[(BOUND_BY_ANNOTATION, &mark)])), "west");
        let mut copied = binding(&[(BOUND_BY_ANNOTATION, &mark)]);
        copied.uid = "u-2".to_owned();
        assert_eq!(owner(copied), "east", "a mark that was copied with the rest means nothing");
        assert_eq!(owner(binding(&[(BOUND_BY_ANNOTATION, "west")])), "east");
    }

    #[test]
    fn a_binding_moves_on_once_it_says_what_becomes_of_its_copies() {
        let says = |policy: &str| has_policy(&binding(&[(DELETION_POLICY_ANNOTATION, policy)]));
        assert_eq!([says("Orphan"), says("Delete"), says("delete"), says("")], [true, true, false, false]);
        assert!(!has_policy(&binding(&[])));
        let finding = stays("west", "east");
        assert!(!finding.holds && finding.reason == API_MANAGED_BY_OTHER);
        for words in ["bound by Connection west", "deletion-policy=Orphan", "deletion-policy=Delete"] {
            assert!(finding.message.contains(words), "{}", finding.message);
        }
    }
}
