//! Feedback: what annotations tell consumers about their objects.

use serde_json::{Map, Value, json};

use super::waits::Waiting;
use super::{ObjectAddress, Step};
use crate::api::{AFTER_RESTORE, PLACED_GENERATION, REFUSAL, WAITS_FOR, WITHDRAWAL};
use crate::rules::metadata::annotation;
use crate::rules::{Duty, Rules};

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate<'a> {
    /// Its copy is in line with it. What comes with it may still be waited for.
    Placed(&'a Waiting),
    /// It, or its last change, was refused for this reason.
    Refused(&'a str),
}

/// The step that tells the consumer what became of an object; none if the object says so already. Annotations change no generation, so
/// telling leads to nothing else to tell.
pub fn tell(rules: &Rules, at: &ObjectAddress, source: &Value, fate: Fate<'_>) -> Option<Step> {
    let there = |name| annotation(source, name);
    let (placed, refusal) = match fate {
        _ if !rules.feedback => (None, None),
        Fate::Placed(_) => (source["metadata"]["generation"].as_i64().map(|number| number.to_string()), None),
        // What has arrived before is still there.
        Fate::Refused(why) => (there(PLACED_GENERATION).map(str::to_owned), Some(why.to_owned())),
    };
    let waits = match fate {
        _ if !rules.feedback => None,
        Fate::Placed(waiting) => waiting.words(there(WAITS_FOR)),
        Fate::Refused(_) => there(WAITS_FOR).map(str::to_owned),
    };
    // Whatever was decided after a restore has been carried out.
    let restored = there(AFTER_RESTORE).filter(|_| !matches!(fate, Fate::Placed(_))).map(str::to_owned);
    let wanted = [
        (PLACED_GENERATION, placed),
        (REFUSAL, refusal),
        (WAITS_FOR, waits),
        (WITHDRAWAL, rules.withdrawal.clone()),
        (AFTER_RESTORE, restored),
    ];
    annotate(at, source, wanted)
}

/// The step that tells the consumer, before an object is released, that its kind is withdrawn; none if that is not why, or was told.
pub fn withdraw(rules: &Rules, at: &ObjectAddress, source: &Value) -> Option<Step> {
    let notice = rules.withdrawal.clone().filter(|_| rules.duty == Duty::Release)?;
    annotate(at, source, [(WITHDRAWAL, Some(notice))])
}

/// The step that tells the consumer on whom the deletion of an object waits; none if it was told, or nobody wants to be told. What the provider
/// has made, and how it is called, is not said.
pub fn leaving(rules: &Rules, at: &ObjectAddress, source: &Value, copy: &Value) -> Option<Step> {
    let since = copy["metadata"]["deletionTimestamp"].as_str().filter(|_| rules.feedback)?;
    let why = format!(
        "the provider, whose operator has not finished deleting what it made for this object; it was asked to at {since}"
    );
    annotate(at, source, [(WAITS_FOR, Some(why))])
}

fn annotate<const N: usize>(
    at: &ObjectAddress,
    source: &Value,
    wanted: [(&'static str, Option<String>); N],
) -> Option<Step> {
    let differing = wanted.into_iter().filter(|(name, wanted)| annotation(source, name) != wanted.as_deref());
    let changed: Map<String, Value> = differing.map(|(name, wanted)| (name.to_owned(), json!(wanted))).collect();
    if changed.is_empty() {
        return None;
    }
    // Another object of the same name has its own fate, and so has another generation.
    let (uid, version) = (&source["metadata"]["uid"], &source["metadata"]["resourceVersion"]);
    let patch = json!({ "metadata": { "uid": uid, "resourceVersion": version, "annotations": changed } });
    Some(Step::Patch { at: at.clone(), patch })
}

/// What a step announces about the withdrawal of the kind.
pub fn announced(step: &Step) -> Option<&str> {
    let Step::Patch { patch, .. } = step else { return None };
    patch["metadata"]["annotations"].get(WITHDRAWAL)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::metadata::{KCP_SIDE, SourceKey};
    use crate::rules::tests::{crontab, published};

    #[test]
    fn a_deletion_that_hangs_says_on_whom_it_waits() {
        let key = SourceKey { cluster: "c".into(), namespace: "n".into(), name: "a".into() };
        let rules =
            |feedback: &str| Rules::compile(&published(json!({ "feedback": feedback })), &crontab(), "agent").unwrap();
        let source =
            |annotations: Value| json!({ "metadata": { "name": "a", "uid": "u", "annotations": annotations } });
        let copy = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["internal.example.com/x"] } });
        let told = |feedback: &str, source: &Value, copy: &Value| {
            let rules = rules(feedback);
            leaving(&rules, &ObjectAddress::of_source(KCP_SIDE, &rules.remote, &key), source, copy)
        };
        assert_eq!(told("None", &source(json!({})), &copy), None);
        assert_eq!(told("Annotations", &source(json!({})), &json!({ "metadata": {} })), None, "nobody deletes it yet");
        let Some(Step::Patch { patch, .. }) = told("Annotations", &source(json!({})), &copy) else {
            panic!("not told")
        };
        let annotations = &patch["metadata"]["annotations"];
        let text = annotations[WAITS_FOR].as_str().unwrap();
        assert!(
            text.contains("the provider") && text.ends_with("2026-01-01T00:00:00Z") && !text.contains("internal"),
            "{text}"
        );
        assert_eq!(told("Annotations", &source(annotations.clone()), &copy), None, "once is enough");
    }

    #[test]
    fn an_object_is_told_once() {
        let key = SourceKey { cluster: "c".into(), namespace: "n".into(), name: "a".into() };
        let rules = |feedback: &str, withdrawal: Option<&str>| Rules {
            withdrawal: withdrawal.map(str::to_owned),
            ..Rules::compile(&published(json!({ "feedback": feedback })), &crontab(), "agent").unwrap()
        };
        let (silent, telling) = (rules("None", None), rules("Annotations", None));
        let (ending, both) = (rules("", Some("soon")), rules("Annotations", Some("soon")));
        let (refused, placed) = (Fate::Refused("too large"), Fate::Placed(&Waiting::No));
        let secret = Waiting::For("a Secret".to_owned());
        let waiting = Fate::Placed(&secret);
        for (rules, there, fate, wanted) in [
            (&silent, json!({}), placed, None),
            (&silent, json!({}), refused, None),
            (&telling, json!({}), placed, Some(json!({ PLACED_GENERATION: "3" }))),
            (&telling, json!({ PLACED_GENERATION: "3" }), placed, None),
            (&telling, json!({ PLACED_GENERATION: "2" }), placed, Some(json!({ PLACED_GENERATION: "3" }))),
            (&telling, json!({ PLACED_GENERATION: "2" }), refused, Some(json!({ REFUSAL: "too large" }))),
            (&telling, json!({ PLACED_GENERATION: "2", REFUSAL: "too large" }), refused, None),
            (
                &telling,
                json!({ PLACED_GENERATION: "2", REFUSAL: "too large" }),
                placed,
                Some(json!({ PLACED_GENERATION: "3", REFUSAL: null })),
            ),
            (&telling, json!({}), waiting, Some(json!({ PLACED_GENERATION: "3", WAITS_FOR: "a Secret" }))),
            (&telling, json!({ PLACED_GENERATION: "3", WAITS_FOR: "a Secret" }), waiting, None),
            (&telling, json!({ PLACED_GENERATION: "3", WAITS_FOR: "x" }), Fate::Placed(&Waiting::Unknown), None),
            (&telling, json!({ PLACED_GENERATION: "3", WAITS_FOR: "x" }), placed, Some(json!({ WAITS_FOR: null }))),
            (&telling, json!({ PLACED_GENERATION: "2", WAITS_FOR: "x", REFUSAL: "too large" }), refused, None),
            (&silent, json!({}), waiting, None),
            // Whoever does not tell any more takes back what was told.
            (&silent, json!({ PLACED_GENERATION: "3" }), placed, Some(json!({ PLACED_GENERATION: null }))),
            (&ending, json!({}), placed, Some(json!({ WITHDRAWAL: "soon" }))),
            (&ending, json!({ WITHDRAWAL: "soon" }), refused, None),
            (&silent, json!({ WITHDRAWAL: "soon" }), placed, Some(json!({ WITHDRAWAL: null }))),
            (&both, json!({}), placed, Some(json!({ PLACED_GENERATION: "3", WITHDRAWAL: "soon" }))),
        ] {
            let at = ObjectAddress::of_source(KCP_SIDE, &rules.remote, &key);
            let source = json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "generation": 3, "annotations": there } });
            let patch = wanted.map(
                |annotations| json!({ "metadata": { "uid": "u", "resourceVersion": "7", "annotations": annotations } }),
            );
            let step = tell(rules, &at, &source, fate);
            let announces = step.as_ref().and_then(announced).is_some();
            assert_eq!(
                announces,
                patch.as_ref().is_some_and(|patch| patch["metadata"]["annotations"][WITHDRAWAL] == "soon")
            );
            assert_eq!(step, patch.map(|patch| Step::Patch { at, patch }), "{there} {fate:?}");
        }
    }
}
