//! Who relies on the finalizer of a consumer's object. All agents share one finalizer, and an object may be the primary of one agent and a
//! related object of another: the finalizer stays until all of them are done.
//!
//! ```text
//!  finalizer   held-by             who holds the object
//!  there       absent              whoever finds it, as before the list existed
//!  there       a, b/related        agent a, for which it is a primary, and agent b, for which it is a related object
//!  there       *, b/related        b, and somebody unnamed who held it before
//! ```

use serde_json::{Value, json};

use crate::address::ObjectAddress;
use crate::object::annotation;
use crate::step::Step;
use crate::vocabulary::Vocabulary;

/// Somebody who held the object before the list existed.
const UNNAMED: &str = "*";

/// The name by which an agent holds a related object.
pub fn of_related(agent: &str) -> String {
    format!("{agent}/related")
}

/// Whether the object carries the finalizer.
pub fn has_finalizer(vocabulary: &Vocabulary, object: &Value) -> bool {
    finalizers(object).iter().any(|f| f == vocabulary.finalizer)
}

/// Whether the finalizer is there on behalf of a holder.
pub fn is_held_by(vocabulary: &Vocabulary, object: &Value, holder: &str) -> bool {
    let holders = holders(vocabulary, object);
    has_finalizer(vocabulary, object)
        && (holders.is_empty() || holders.iter().any(|name| name == holder || name == UNNAMED))
}

/// Whether the list names a holder.
pub fn names(vocabulary: &Vocabulary, object: &Value, holder: &str) -> bool {
    has_finalizer(vocabulary, object) && holders(vocabulary, object).iter().any(|name| name == holder)
}

/// The step that holds an object, unless that is done already. `known` says whether an existing finalizer may be the holder's own.
pub fn hold(vocabulary: &Vocabulary, at: &ObjectAddress, object: &Value, holder: &str, known: bool) -> Option<Step> {
    let mut finalizers = finalizers(object);
    if !has_finalizer(vocabulary, object) {
        finalizers.push(vocabulary.finalizer.to_owned());
        finalizers.sort();
        return Some(step(vocabulary, at, object, finalizers, &[holder.to_owned()]));
    }
    let mut holders = holders(vocabulary, object);
    if holders.iter().any(|name| name == holder) || known && (holders.is_empty() || holders[0] == UNNAMED) {
        return None;
    }
    if holders.is_empty() {
        holders.push(UNNAMED.to_owned());
    }
    holders.push(holder.to_owned());
    Some(step(vocabulary, at, object, finalizers, &holders))
}

/// The step by which a holder releases an object; the last holder removes the finalizer.
pub fn release(vocabulary: &Vocabulary, at: &ObjectAddress, object: &Value, holder: &str) -> Step {
    let (mut finalizers, mut holders) = (finalizers(object), holders(vocabulary, object));
    let own = holders.iter().position(|name| name == holder);
    if let Some(own) = own.or_else(|| holders.iter().position(|name| name == UNNAMED)) {
        holders.remove(own);
    }
    if holders.is_empty() {
        finalizers.retain(|f| f != vocabulary.finalizer);
    }
    step(vocabulary, at, object, finalizers, &holders)
}

fn step(
    vocabulary: &Vocabulary,
    at: &ObjectAddress,
    object: &Value,
    finalizers: Vec<String>,
    holders: &[String],
) -> Step {
    let resource_version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let held_by = match holders {
        _ if vocabulary.held_by.is_empty() => None,
        [] if annotation(object, vocabulary.held_by).is_none() => None,
        [] => Some(Value::Null),
        holders => Some(json!(holders.join(","))),
    };
    Step::SetFinalizers { at: at.clone(), finalizers, held_by, resource_version }
}

fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter().flatten().filter_map(|f| f.as_str().map(str::to_owned)).collect()
}

/// All holders; the unnamed one, if any, comes first.
fn holders(vocabulary: &Vocabulary, object: &Value) -> Vec<String> {
    let names = annotation(object, vocabulary.held_by).unwrap_or_default().split(',').map(str::trim);
    let mut holders: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    holders.sort_by_key(|name| name != UNNAMED);
    holders
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::address::Side;
    use crate::kind::ApiKind;
    use crate::vocabulary::tests::WORDS;

    fn at() -> ObjectAddress {
        let kind = ApiKind {
            group: "g".into(),
            version: "v1".into(),
            kind: "Thing".into(),
            plural: "things".into(),
            namespaced: false,
        };
        ObjectAddress { side: Side::consumer("kcp"), kind: Arc::new(kind), namespace: None, name: "n".into() }
    }

    fn execute(object: &mut Value, step: Option<Step>) {
        let Some(Step::SetFinalizers { finalizers, held_by, .. }) = step else { return };
        object["metadata"]["finalizers"] = json!(finalizers);
        match held_by {
            Some(Value::Null) => object["metadata"]["annotations"] = json!({}),
            Some(names) => object["metadata"]["annotations"] = json!({ WORDS.held_by: names }),
            None => {}
        }
    }

    #[test]
    fn the_last_holder_removes_the_finalizer() {
        for first in ["a", "b/related"] {
            let mut object = json!({"metadata": {"finalizers": ["x"]}});
            for holder in ["a", "b/related"] {
                let step = hold(&WORDS, &at(), &object, holder, false);
                execute(&mut object, step);
                assert!(is_held_by(&WORDS, &object, holder) && names(&WORDS, &object, holder));
                assert_eq!(hold(&WORDS, &at(), &object, holder, false), None, "once is enough");
            }
            let last = if first == "a" { "b/related" } else { "a" };
            let step = release(&WORDS, &at(), &object, first);
            execute(&mut object, Some(step));
            assert!(
                has_finalizer(&WORDS, &object)
                    && !is_held_by(&WORDS, &object, first)
                    && is_held_by(&WORDS, &object, last)
            );
            let step = release(&WORDS, &at(), &object, last);
            execute(&mut object, Some(step));
            assert_eq!(object["metadata"]["finalizers"], json!(["x"]));
            assert_eq!(annotation(&object, WORDS.held_by), None);
        }
    }

    #[test]
    fn whoever_was_there_before_without_a_name_keeps_its_hold() {
        let mut object = json!({"metadata": {"finalizers": [WORDS.finalizer]}});
        assert!(is_held_by(&WORDS, &object, "a") && !names(&WORDS, &object, "a"));
        assert_eq!(hold(&WORDS, &at(), &object, "a", true), None, "no list is written for what is held already");
        let step = hold(&WORDS, &at(), &object, "b/related", false);
        execute(&mut object, step);
        assert_eq!(hold(&WORDS, &at(), &object, "a", true), None, "that is the one without a name");
        let step = release(&WORDS, &at(), &object, "b/related");
        execute(&mut object, Some(step));
        assert!(is_held_by(&WORDS, &object, "a"));
        let step = release(&WORDS, &at(), &object, "a");
        execute(&mut object, Some(step));
        assert!(!has_finalizer(&WORDS, &object));
    }

    #[test]
    fn a_list_without_a_finalizer_is_an_old_one() {
        let object = json!({"metadata": {"annotations": {WORDS.held_by: "gone"}}});
        let Some(Step::SetFinalizers { held_by, .. }) = hold(&WORDS, &at(), &object, "a", false) else { panic!() };
        assert_eq!(held_by, Some(json!("a")));
    }

    #[test]
    fn an_agent_that_is_alone_with_its_finalizer_writes_no_list() {
        static ALONE: Vocabulary = Vocabulary { held_by: "", ..WORDS };
        let mut object = json!({"metadata": {"finalizers": ["x"]}});
        let step = hold(&ALONE, &at(), &object, "a", true);
        assert!(matches!(&step, Some(Step::SetFinalizers { held_by: None, .. })), "{step:?}");
        execute(&mut object, step);
        assert!(is_held_by(&ALONE, &object, "a") && hold(&ALONE, &at(), &object, "a", true).is_none());
        let step = release(&ALONE, &at(), &object, "a");
        assert!(matches!(&step, Step::SetFinalizers { held_by: None, .. }), "{step:?}");
        execute(&mut object, Some(step));
        assert_eq!(object["metadata"]["finalizers"], json!(["x"]));
    }

    #[test]
    fn an_agent_may_hold_an_object_twice() {
        let mut object = json!({"metadata": {"resourceVersion": "1"}});
        let related = of_related("a");
        for holder in ["a", &related] {
            let step = hold(&WORDS, &at(), &object, holder, false);
            execute(&mut object, step);
        }
        let step = release(&WORDS, &at(), &object, &related);
        execute(&mut object, Some(step));
        assert!(is_held_by(&WORDS, &object, "a") && !names(&WORDS, &object, &related));
    }
}
