//! Who relies on the finalizer of a consumer's object. All agents share one finalizer, and an object may be the primary of one agent and a
//! related object of another: the finalizer stays until all of them are done.
//!
//! ```text
//!  finalizer   held-by             who holds the object
//!  there       absent              whoever finds it, as before the list existed
//!  there       a, b/related        agent a, for which it is a primary, and agent b, for which it is a related object
//!  there       *, b/related        b, and somebody unnamed who held it before
//! ```
//!
//! Nobody lets go under a name that no agent bears any more: one that was copied with a manifest, or that an agent had before. Such a name has
//! an heir, who holds and lets go in its stead. A kind has one agent at a time, so whoever serves an order is the heir of all names but those
//! of related objects; for these it has to be known that the name is a former one, because agents of other exports are not seen.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::address::ObjectAddress;
use crate::object::annotation;
use crate::step::Step;
use crate::vocabulary::Vocabulary;

/// Somebody who held the object before the list existed.
const UNNAMED: &str = "*";

/// The end of names by which agents hold related objects.
const RELATED: &str = "/related";

/// The name by which an agent holds a related object.
pub fn of_related(agent: &str) -> String {
    format!("{agent}{RELATED}")
}

/// Who holds an object, and in whose stead.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    name: &'a str,
    former: Option<&'a BTreeSet<String>>,
}

impl<'a> Holder<'a> {
    /// The holder of this name, and the names of agents that are no more.
    pub fn new(name: &'a str, former: &'a BTreeSet<String>) -> Self {
        Self { name, former: Some(former) }
    }

    /// Whether it is the heir of a name.
    fn inherits(&self, name: &str) -> bool {
        let is_former = |name: &str| self.former.is_some_and(|former| former.contains(name));
        match (self.name.strip_suffix(RELATED), name.strip_suffix(RELATED)) {
            _ if name == self.name => false,
            (None, None) => name != UNNAMED,
            (_, Some(agent)) => is_former(agent),
            (Some(_), None) => name == UNNAMED && is_former(name),
        }
    }
}

impl<'a> From<&'a str> for Holder<'a> {
    fn from(name: &'a str) -> Self {
        Self { name, former: None }
    }
}

/// Whether the object carries the finalizer.
pub fn has_finalizer(vocabulary: &Vocabulary, object: &Value) -> bool {
    finalizers(object).iter().any(|f| f == vocabulary.finalizer)
}

/// Whether the finalizer is there on behalf of a holder.
pub fn is_held_by<'a>(vocabulary: &Vocabulary, object: &Value, holder: impl Into<Holder<'a>>) -> bool {
    let (holder, holders) = (holder.into(), holders(vocabulary, object));
    has_finalizer(vocabulary, object)
        && (holders.is_empty()
            || holders.iter().any(|name| name == holder.name || name == UNNAMED || holder.inherits(name)))
}

/// Whether the list names a holder, or a name that it is the heir of.
pub fn names<'a>(vocabulary: &Vocabulary, object: &Value, holder: impl Into<Holder<'a>>) -> bool {
    let holder = holder.into();
    has_finalizer(vocabulary, object)
        && holders(vocabulary, object).iter().any(|name| name == holder.name || holder.inherits(name))
}

/// All names in the list of an object that carries the finalizer.
pub fn of(vocabulary: &Vocabulary, object: &Value) -> Vec<String> {
    if has_finalizer(vocabulary, object) { holders(vocabulary, object) } else { Vec::new() }
}

/// The step that holds an object, unless that is done already. `known` says whether an existing finalizer may be the holder's own.
pub fn hold<'a>(
    vocabulary: &Vocabulary,
    at: &ObjectAddress,
    object: &Value,
    holder: impl Into<Holder<'a>>,
    known: bool,
) -> Option<Step> {
    let (holder, mut finalizers) = (holder.into(), finalizers(object));
    if !has_finalizer(vocabulary, object) {
        finalizers.push(vocabulary.finalizer.to_owned());
        finalizers.sort();
        return Some(step(vocabulary, at, object, finalizers, &[holder.name.to_owned()]));
    }
    let mut holders = holders(vocabulary, object);
    let inherited = holders.iter().any(|name| holder.inherits(name));
    if !inherited
        && (holders.iter().any(|name| name == holder.name) || known && (holders.is_empty() || holders[0] == UNNAMED))
    {
        return None;
    }
    if holders.is_empty() {
        holders.push(UNNAMED.to_owned());
    }
    holders.retain(|name| name != holder.name && !holder.inherits(name));
    holders.push(holder.name.to_owned());
    Some(step(vocabulary, at, object, finalizers, &holders))
}

/// The step by which a holder releases an object; the last holder removes the finalizer.
pub fn release<'a>(vocabulary: &Vocabulary, at: &ObjectAddress, object: &Value, holder: impl Into<Holder<'a>>) -> Step {
    let (holder, mut finalizers, mut holders) = (holder.into(), finalizers(object), holders(vocabulary, object));
    let before = holders.len();
    holders.retain(|name| name != holder.name && !holder.inherits(name));
    if holders.len() == before {
        holders.retain(|name| name != UNNAMED);
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
    fn an_heir_holds_and_lets_go_in_the_stead_of_names_that_nobody_bears() {
        let former = BTreeSet::from(["old".to_owned()]);
        let related = of_related("new");
        for (holder, list, after) in [
            (Holder::new("new", &former), "old", ""),
            (Holder::new("new", &former), "anybody,new", ""),
            (Holder::new("new", &former), "old,old/related", ""),
            (Holder::new("new", &former), "old,other/related", "other/related"),
            (Holder::new(&related, &former), "old/related", ""),
            (Holder::new(&related, &former), "*,old/related", "*"),
            (Holder::new(&related, &former), "new/related,other/related", "other/related"),
            (Holder::new(&related, &former), "old/related,old", "old"),
        ] {
            let held = |list: &str| json!({"metadata": {"finalizers": [WORDS.finalizer], "annotations": {WORDS.held_by: list}}});
            let mut object = held(list);
            assert!(is_held_by(&WORDS, &object, holder) && names(&WORDS, &object, holder), "{list}");
            let step = release(&WORDS, &at(), &object, holder);
            execute(&mut object, Some(step));
            assert_eq!(annotation(&object, WORDS.held_by).unwrap_or_default(), after, "{list}");
            assert_eq!(has_finalizer(&WORDS, &object), !after.is_empty(), "{list}");
            let mut object = held(list);
            let step = hold(&WORDS, &at(), &object, holder, true);
            execute(&mut object, step);
            assert_eq!(hold(&WORDS, &at(), &object, holder, true), None, "{list}: once is enough");
            let wanted: BTreeSet<&str> = after.split(',').filter(|it| !it.is_empty()).chain([holder.name]).collect();
            let names = of(&WORDS, &object);
            assert_eq!(names.iter().map(String::as_str).collect::<BTreeSet<_>>(), wanted, "{list}");
        }
        let object =
            json!({"metadata": {"finalizers": [WORDS.finalizer], "annotations": {WORDS.held_by: "other/related"}}});
        assert!(!is_held_by(&WORDS, &object, Holder::new("new", &former)), "it may be an agent of another export");
    }

    #[test]
    fn an_agent_may_hold_an_object_twice() {
        let mut object = json!({"metadata": {"resourceVersion": "1"}});
        let related = of_related("a");
        for holder in ["a", &related] {
            let step = hold(&WORDS, &at(), &object, holder, false);
            execute(&mut object, step);
        }
        let step = release(&WORDS, &at(), &object, related.as_str());
        execute(&mut object, Some(step));
        assert!(is_held_by(&WORDS, &object, "a") && !names(&WORDS, &object, related.as_str()));
    }
}
