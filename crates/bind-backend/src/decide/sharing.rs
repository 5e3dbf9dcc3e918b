//! Namespaces that several contracts share: who comes, and who goes.
//!
//! The first one stands where kube-bind notes it down, the others in an annotation of ours, which no consumer can write. The policy in
//! [`cluster`](super::cluster) reads the same two. When the first one goes, the next one takes its place, and the namespace with all that others have in it stays.

use carrick_bind_api::names::{MADE_FOR_ANNOTATION, SERVICE_NAMESPACE_ANNOTATION, SHARED_WITH_ANNOTATION};
use serde_json::{Value, json};

use super::objects::NamespaceFacts;

/// The Namespace with one more contract.
pub fn joined(facts: &NamespaceFacts, contract: &str, name: &str) -> Value {
    let mut shared = facts.shared.clone();
    shared.push((contract.to_owned(), name.to_owned()));
    with_shared(&facts.object, &shared)
}

/// The Namespace without those who are gone; none if nobody is left.
pub fn left(facts: &NamespaceFacts, is_gone: impl Fn(&(String, String)) -> bool) -> Option<Value> {
    let mut stay = facts.users().filter(|user| !is_gone(user)).cloned();
    let first = stay.next()?;
    let mut object = facts.object.clone();
    if facts.serves.as_ref() != Some(&first) {
        let serves = json!(text(&first));
        object["metadata"]["annotations"][SERVICE_NAMESPACE_ANNOTATION] = serves.clone();
        object["metadata"]["annotations"][MADE_FOR_ANNOTATION] = serves;
    }
    Some(with_shared(&object, &stay.collect::<Vec<_>>()))
}

fn text((contract, name): &(String, String)) -> String {
    format!("{contract}/{name}")
}

fn with_shared(object: &Value, shared: &[(String, String)]) -> Value {
    let mut object = object.clone();
    let Some(annotations) = object["metadata"]["annotations"].as_object_mut() else { return object };
    if shared.is_empty() {
        annotations.remove(SHARED_WITH_ANNOTATION);
    } else {
        let all: Vec<String> = shared.iter().map(text).collect();
        annotations.insert(SHARED_WITH_ANNOTATION.to_owned(), json!(all.join(",")));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> NamespaceFacts {
        let made = json!({"kind": "Namespace", "metadata": {"name": "team", "annotations": {
            SERVICE_NAMESPACE_ANNOTATION: "a/team", MADE_FOR_ANNOTATION: "a/team", "theirs": "x"}}});
        let two = joined(&NamespaceFacts::of(&made), "b", "team");
        NamespaceFacts::of(&joined(&NamespaceFacts::of(&two), "c", "team"))
    }

    fn without(facts: &NamespaceFacts, contract: &str) -> Option<NamespaceFacts> {
        left(facts, |(of, _)| of == contract).map(|object| NamespaceFacts::of(&object))
    }

    #[test]
    fn whoever_comes_may_work_there_and_the_first_one_stays_the_first() {
        let facts = shared();
        assert!(["a", "b", "c"].iter().all(|contract| facts.is_for(contract, "team")), "{facts:?}");
        assert!(facts.serves_first("a") && !facts.serves_first("b") && facts.made);
        assert!(!facts.is_for("d", "team") && !facts.is_for("b", "other"));
        assert_eq!(facts.object["metadata"]["annotations"]["theirs"], "x");
    }

    #[test]
    fn the_next_one_takes_the_place_of_the_first_and_the_last_one_leaves_nothing() {
        let facts = without(&shared(), "a").unwrap();
        assert!(facts.serves_first("b") && facts.made && facts.is_for("c", "team") && !facts.is_for("a", "team"));
        let facts = without(&facts, "c").unwrap();
        assert!(facts.serves_first("b") && facts.made && facts.shared.is_empty());
        assert!(facts.object["metadata"]["annotations"].get(SHARED_WITH_ANNOTATION).is_none());
        assert_eq!(without(&facts, "b"), None);
    }
}
