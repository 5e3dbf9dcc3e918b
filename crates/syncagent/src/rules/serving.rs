//! For which APIExports a PublishedResource is served: one entry for each in its status. Pure.
//!
//! ```text
//!  status.servedFor: [{export: root:providers:a|example.com, uid, agent, renewed}, …]
//! ```
//!
//! Two agents of one service cluster that select the same PublishedResource for two APIExports cannot see each other in kcp: each keeps an
//! export of its own. Here they meet. An entry that stands alone is not renewed, so that nothing is written at rest. Whoever adds an entry to
//! another one calls upon the agent of that: one that runs renews its entry at once, and from then on now and then; one that does not is
//! removed from the list.

use super::keeper::{Beat, age, stamp};
use crate::api::ServedFor;

/// What an agent does with the entries of a PublishedResource.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Serving {
    /// The entries to write; `None` if they stay as they are.
    pub write: Option<Vec<ServedFor>>,
    /// All for whom it is served now, this agent's export among them, if those are several.
    pub several: Vec<ServedFor>,
    /// Whether the agent of another export writes the rest of the status. Two that did would undo each other's all the time.
    pub defers: bool,
    /// When to check again at the latest, in milliseconds from now.
    pub next: Option<i64>,
}

/// Whether both entries are for one APIExport, perhaps before and after it was created again.
fn is_same(one: &ServedFor, other: &ServedFor) -> bool {
    one.export == other.export || one.uid == other.uid && !one.uid.is_empty()
}

/// Decides from the recorded entries.
pub fn decide(recorded: &[ServedFor], me: &ServedFor, (now, beat): (i64, Beat)) -> Serving {
    let own = recorded.iter().find(|entry| is_same(entry, me));
    let others: Vec<&ServedFor> = recorded.iter().filter(|entry| !is_same(entry, me)).collect();
    let alive: Vec<&ServedFor> = others.iter().copied().filter(|entry| is_fresh(entry, now, beat)).collect();
    let mine = ServedFor { renewed: stamp(now), ..me.clone() };
    let known = own.filter(|own| own.agent == me.agent && own.uid == me.uid && own.export == me.export);
    let (left, own_age, writes) = match known {
        Some(own) if others.is_empty() || age(&own.renewed, now) < beat.renew => {
            (others, age(&own.renewed, now), false)
        }
        // Whoever was called upon has had the time to answer.
        Some(_) => (alive.clone(), 0, true),
        None => (others, 0, true),
    };
    let write = writes.then(|| sorted(left.iter().copied().chain([&mine])));
    let expiries = alive.iter().map(|entry| beat.old - age(&entry.renewed, now));
    let renewal = (!left.is_empty()).then(|| (beat.renew - own_age).max(0));
    let several = if alive.is_empty() { Vec::new() } else { sorted(alive.iter().copied().chain([me])) };
    Serving {
        write,
        defers: several.first().is_some_and(|first| first != me),
        next: expiries.chain(renewal).min(),
        several,
    }
}

/// Whether somebody has renewed an entry recently enough to count as running.
pub fn is_fresh(entry: &ServedFor, now: i64, beat: Beat) -> bool {
    age(&entry.renewed, now) < beat.old
}

fn sorted<'a>(entries: impl Iterator<Item = &'a ServedFor>) -> Vec<ServedFor> {
    let mut all: Vec<ServedFor> = entries.cloned().collect();
    all.sort_by(|a, b| (&a.export, &a.uid).cmp(&(&b.export, &b.uid)));
    all
}

/// The message of all agents about a PublishedResource that is served for several APIExports.
pub fn several(name: &str, entries: &[ServedFor]) -> String {
    let shown: Vec<String> = entries.iter().map(|it| format!("{} by agent {}", it.export, it.agent)).collect();
    let first = entries.first().map(|entry| entry.agent.as_str()).unwrap_or_default();
    format!(
        "PublishedResource {name} is served for several APIExports: {}. Consumers of each can order it, and agent {first} writes the rest of this \
         status. If it is meant for one of them, label it, kubectl label publishedresource {name} {LABEL}=<export>, and let each agent select its \
         own: --published-resource-selector {LABEL}=<export>, in the chart publishedResourceSelector",
        shown.join(", ")
    )
}

/// Label of PublishedResources that says which APIExport they are for.
pub const LABEL: &str = "syncagent.kcp.io/export";

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Beat = Beat { renew: 120_000, old: 300_000 };
    const NOW: i64 = 1_700_000_000_000;

    fn me(export: &str) -> ServedFor {
        ServedFor {
            export: format!("root:{export}|e"),
            uid: export.to_owned(),
            agent: format!("agent-{export}"),
            renewed: String::new(),
        }
    }

    fn entry(export: &str, age: i64) -> ServedFor {
        ServedFor { renewed: stamp(NOW - age), ..me(export) }
    }

    fn exports(entries: &[ServedFor]) -> Vec<&str> {
        entries.iter().map(|entry| entry.uid.as_str()).collect()
    }

    #[test]
    fn an_agent_that_is_alone_writes_once_and_then_rests_for_ever() {
        let first = decide(&[], &me("a"), (NOW, BEAT));
        assert_eq!(first.write, Some(vec![entry("a", 0)]));
        assert!(first.several.is_empty() && first.next.is_none(), "{first:?}");
        for age in [0, BEAT.renew, BEAT.old, 1_000 * BEAT.old] {
            assert_eq!(decide(&[entry("a", age)], &me("a"), (NOW, BEAT)), Serving::default(), "{age}");
        }
    }

    #[test]
    fn one_that_comes_second_is_noticed_by_both_which_say_the_same() {
        let old = entry("a", 1_000 * BEAT.old);
        let second = decide(&[old], &me("b"), (NOW, BEAT));
        // Nobody knows yet whether the first one runs.
        assert_eq!((exports(&second.several), second.next), (vec![], Some(BEAT.renew)));
        let recorded = second.write.unwrap();
        let first = decide(&recorded, &me("a"), (NOW, BEAT));
        let recorded = first.write.unwrap();
        assert_eq!(
            (exports(&recorded), exports(&first.several), first.defers),
            (vec!["a", "b"], vec!["a", "b"], false)
        );
        let second = decide(&recorded, &me("b"), (NOW, BEAT));
        assert_eq!((second.write, exports(&second.several), second.defers), (None, vec!["a", "b"], true));
        let text = |entries: &[ServedFor]| several("buckets", entries);
        assert!(text(&first.several).contains("root:a|e by agent agent-a, root:b|e by agent agent-b"));
        assert_eq!(text(&first.several), text(&second.several));
    }

    #[test]
    fn one_that_does_not_answer_leaves_the_list_and_then_there_is_rest() {
        let silent = [entry("a", BEAT.old), entry("b", BEAT.renew)];
        let alone = decide(&silent, &me("b"), (NOW, BEAT));
        assert_eq!((alone.write.as_deref().map(exports), alone.next), (Some(vec!["b"]), None));
        assert!(alone.several.is_empty());
        // It comes back as one that comes second.
        let back = decide(&alone.write.unwrap(), &me("a"), (NOW, BEAT));
        assert_eq!(exports(&back.write.unwrap()), ["a", "b"]);
    }

    #[test]
    fn an_export_that_was_created_again_or_changed_hands_is_no_second_one() {
        let before = ServedFor { uid: "before".to_owned(), ..entry("a", 0) };
        let again = decide(&[before], &me("a"), (NOW, BEAT));
        assert_eq!(again.write, Some(vec![entry("a", 0)]));
        let heir = ServedFor { agent: "heir".to_owned(), ..me("a") };
        let handed = decide(&[entry("a", 0)], &heir, (NOW, BEAT));
        assert!(handed.several.is_empty() && handed.write.is_some_and(|entries| entries.len() == 1));
    }
}
