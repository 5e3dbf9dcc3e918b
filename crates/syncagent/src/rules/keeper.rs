//! Who keeps an export: one entry for each agent that serves it, in an annotation of the APIExport. Pure.
//!
//! ```text
//!  syncagent.kcp.io/keeper: [{agent, cluster, identity, renewed, keeps: [buckets.example.com], waits: []}, …]
//! ```
//!
//! Two agents that serve the same resource would make two copies of every object and fight over each. So a resource belongs to the agent that
//! has it in `keeps`, as long as it renews its entry; others wait. Agents that share an export and serve different resources do not
//! get in each other's way. The reference agent writes no entry and is not detected.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One agent that serves an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Keeper {
    /// Name of the agent.
    pub agent: String,
    /// Its service cluster: the UID of the namespace `kube-system`; empty if it may not read that.
    pub cluster: String,
    /// Where it runs, for people.
    pub identity: String,
    /// When it last renewed this entry.
    pub renewed: String,
    /// Resources in kcp that it keeps, as `<plural>.<group>`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub keeps: BTreeSet<String>,
    /// Resources that it waits for because another agent keeps them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub waits: BTreeSet<String>,
}

impl Keeper {
    /// Whether both are the same agent, perhaps before and after a restart.
    pub fn is(&self, other: &Self) -> bool {
        let clusters = [&self.cluster, &other.cluster];
        self.agent == other.agent && (self.cluster == other.cluster || clusters.iter().any(|id| id.is_empty()))
    }

    /// How long ago it was renewed, in milliseconds; the maximum if that is not known.
    pub fn age(&self, now: i64) -> i64 {
        self.renewed.parse::<Timestamp>().map_or(i64::MAX, |renewed| now.saturating_sub(renewed.as_millisecond()))
    }

    /// How to name it in a message that also names another agent.
    pub fn shown(&self, beside: &Self) -> String {
        let Self { agent, cluster, .. } = self;
        if *agent == beside.agent {
            format!("agent {agent} for service cluster {cluster}")
        } else {
            format!("agent {agent}")
        }
    }
}

/// How often entries are renewed, and when they expire, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// Age at which an entry is renewed.
    pub renew: i64,
    /// Age at which an entry has expired.
    pub old: i64,
}

/// All entries of an annotation. One that cannot be read counts as empty, and is overwritten.
pub fn read(annotation: Option<&str>) -> Vec<Keeper> {
    annotation.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The agent that keeps an export for a service cluster, from its entries and its older annotation; nothing if that is not clear.
pub fn agent_of(recorded: &[Keeper], owner: Option<&str>, cluster: &str) -> Option<String> {
    let here: BTreeSet<&str> = recorded
        .iter()
        .filter(|keeper| [cluster, ""].contains(&keeper.cluster.as_str()) || cluster.is_empty())
        .map(|keeper| keeper.agent.as_str())
        .collect();
    match here.iter().collect::<Vec<_>>().as_slice() {
        [one] => Some((**one).to_owned()),
        // The reference agent writes no entries.
        [] if recorded.is_empty() => owner.map(str::to_owned),
        [] => None,
        several => owner.filter(|owner| several.contains(&owner)).map(str::to_owned),
    }
}

/// What an agent does with an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keeping {
    /// The annotation to write; `None` if it stays as it is.
    pub write: Option<String>,
    /// Resources that are already recorded as kept by this agent.
    pub kept: BTreeSet<String>,
    /// Resources that another agent keeps, and which one.
    pub blocked: BTreeMap<String, Keeper>,
    /// Resources that this agent keeps and another one waits for.
    pub awaited: BTreeMap<String, Keeper>,
    /// Names of other agents that serve the export.
    pub others: BTreeSet<String>,
    /// Everything that others keep.
    pub elsewhere: BTreeSet<String>,
    /// When to check again at the latest, in milliseconds from now.
    pub next: Option<i64>,
}

/// Decides from the recorded entries, given what the agent wants to serve.
pub fn decide(
    recorded: &[Keeper],
    me: &Keeper,
    wants: &BTreeSet<String>,
    (now, beat, take_over): (i64, Beat, bool),
) -> Keeping {
    let is_fresh = |keeper: &&Keeper| keeper.age(now) < beat.old;
    let own = recorded.iter().find(|keeper| keeper.is(me));
    let others: Vec<&Keeper> = recorded.iter().filter(|keeper| !keeper.is(me)).filter(is_fresh).collect();
    let of = |resource: &String, list: fn(&Keeper) -> &BTreeSet<String>| {
        others.iter().find(|keeper| list(keeper).contains(resource)).map(|keeper| (resource.clone(), (*keeper).clone()))
    };
    let blocked: BTreeMap<String, Keeper> = if take_over {
        BTreeMap::new()
    } else {
        wants.iter().filter_map(|it| of(it, |keeper| &keeper.keeps)).collect()
    };
    let keeps: BTreeSet<String> = wants.iter().filter(|resource| !blocked.contains_key(*resource)).cloned().collect();
    let waits: BTreeSet<String> = blocked.keys().cloned().collect();

    let robbed = take_over && others.iter().any(|keeper| !keeper.keeps.is_disjoint(wants));
    let changed = match own {
        Some(own) => own.keeps != keeps || own.waits != waits,
        None => !wants.is_empty(),
    };
    let due = own.is_some_and(|own| own.age(now) >= beat.renew) && !wants.is_empty();
    let write = (robbed || changed || due).then(|| {
        let rest = others.iter().map(|keeper| {
            let mut keeper = (*keeper).clone();
            if take_over {
                keeper.keeps.retain(|resource| !wants.contains(resource));
            }
            keeper
        });
        let mine = Keeper { renewed: stamp(now), keeps: keeps.clone(), waits, ..me.clone() };
        let mut all: Vec<Keeper> = rest.chain((!wants.is_empty()).then_some(mine)).collect();
        all.sort_by(|a, b| (&a.agent, &a.cluster).cmp(&(&b.agent, &b.cluster)));
        serde_json::to_string(&all).unwrap_or_default()
    });
    // An entry that has expired does not count.
    let recorded = own.filter(is_fresh).map(|own| own.keeps.intersection(&keeps).cloned().collect());
    let renewal = (!wants.is_empty()).then(|| own.map_or(beat.renew, |own| beat.renew - own.age(now)).max(0));
    let next = others.iter().map(|keeper| beat.old - keeper.age(now)).chain(renewal).min();
    Keeping {
        kept: recorded.unwrap_or_default(),
        awaited: keeps.iter().filter_map(|it| of(it, |keeper| &keeper.waits)).collect(),
        others: others.iter().map(|keeper| keeper.agent.clone()).collect(),
        elsewhere: others.iter().flat_map(|keeper| &keeper.keeps).cloned().collect(),
        blocked,
        write,
        next,
    }
}

/// The message of both agents about a resource that both want to serve.
pub fn rivalry(resource: &str, keeper: &Keeper, waiter: &Keeper) -> String {
    let (keeps, waits) = (keeper.shown(waiter), waiter.shown(keeper));
    format!(
        "{keeps} keeps {resource} in this APIExport and {waits} stays out of it, because both together would make two copies of everything; \
         stop one of them, or give it another APIExport or other PublishedResources, or start {waits} with --take-over"
    )
}

fn stamp(now: i64) -> String {
    let now = Timestamp::from_millisecond(now).unwrap_or_default();
    now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Beat = Beat { renew: 60_000, old: 300_000 };
    const NOW: i64 = 1_700_000_000_000;

    fn set(resources: &[&str]) -> BTreeSet<String> {
        resources.iter().map(|&it| it.to_owned()).collect()
    }

    fn me(agent: &str, cluster: &str) -> Keeper {
        Keeper {
            agent: agent.to_owned(),
            cluster: cluster.to_owned(),
            identity: "host".to_owned(),
            ..Keeper::default()
        }
    }

    fn entry(agent: &str, cluster: &str, age: i64, keeps: &[&str], waits: &[&str]) -> Keeper {
        Keeper { renewed: stamp(NOW - age), keeps: set(keeps), waits: set(waits), ..me(agent, cluster) }
    }

    fn decided(recorded: &[Keeper], agent: &Keeper, wants: &[&str], take_over: bool) -> (Keeping, Vec<Keeper>) {
        let keeping = decide(recorded, agent, &set(wants), (NOW, BEAT, take_over));
        let after = keeping.write.as_deref().map_or_else(|| recorded.to_vec(), |text| read(Some(text)));
        (keeping, after)
    }

    #[test]
    fn the_first_agent_records_itself_before_it_works_and_then_rests() {
        let (keeping, after) = decided(&[], &me("a", "1"), &["x", "y"], false);
        assert!(keeping.kept.is_empty() && keeping.blocked.is_empty());
        assert_eq!(after, [entry("a", "1", 0, &["x", "y"], &[])]);
        let (again, _) = decided(&after, &me("a", "1"), &["x", "y"], false);
        assert_eq!((again.write, again.kept, again.next), (None, set(&["x", "y"]), Some(BEAT.renew)));
        // Without anything to serve there is nothing to record.
        assert_eq!(decided(&[], &me("a", "1"), &[], false).0, Keeping::default());
        assert_eq!(decided(&after, &me("a", "1"), &[], false).1, []);
    }

    #[test]
    fn a_restart_writes_nothing_before_it_is_time_to_renew() {
        let other_host = Keeper { identity: "another".to_owned(), ..me("a", "1") };
        for (age, writes, works) in
            [(0, false, true), (59_999, false, true), (60_000, true, true), (300_000, true, false)]
        {
            let (keeping, after) = decided(&[entry("a", "1", age, &["x"], &[])], &other_host, &["x"], false);
            assert_eq!((keeping.write.is_some(), !keeping.kept.is_empty()), (writes, works), "{age}");
            assert_eq!(after[0].identity == "another", writes);
        }
    }

    #[test]
    fn an_agent_of_another_name_or_cluster_waits_until_the_first_one_is_silent() {
        for rival in [me("b", "1"), me("b", "2"), me("a", "2")] {
            let first = entry("a", "1", 1_000, &["x"], &[]);
            let (keeping, after) = decided(std::slice::from_ref(&first), &rival, &["x"], false);
            assert_eq!(keeping.blocked["x"], first);
            assert!(keeping.kept.is_empty());
            assert_eq!(keeping.next, Some(BEAT.renew));
            assert_eq!(after.iter().filter(|keeper| keeper.keeps == set(&["x"])).count(), 1);
            assert_eq!(after.iter().filter(|keeper| keeper.waits == set(&["x"])).count(), 1);
            // The first one continues, and knows about the other.
            let (own, _) = decided(&after, &me("a", "1"), &["x"], false);
            assert_eq!((own.kept, own.awaited["x"].agent.as_str()), (set(&["x"]), rival.agent.as_str()));
            // Both say the same.
            let waiter = after.iter().find(|keeper| keeper.is(&rival)).unwrap();
            assert_eq!(rivalry("x", &own.awaited["x"], &first), rivalry("x", waiter, &first));
            let silent = entry("a", "1", 300_000, &["x"], &[]);
            let (keeping, after) = decided(&[silent], &rival, &["x"], false);
            assert!(keeping.blocked.is_empty());
            assert_eq!(after, [Keeper { renewed: stamp(NOW), keeps: set(&["x"]), ..rival }]);
        }
    }

    #[test]
    fn whoever_does_not_know_its_cluster_is_known_by_its_name() {
        let (keeping, _) = decided(&[entry("a", "1", 0, &["x"], &[])], &me("a", ""), &["x"], false);
        assert_eq!(keeping.kept, set(&["x"]));
    }

    #[test]
    fn agents_that_serve_different_resources_share_an_export() {
        let recorded = [entry("a", "1", 0, &["x"], &[]), entry("b", "1", 0, &["y"], &[])];
        let (keeping, _) = decided(&recorded, &me("b", "1"), &["y"], false);
        assert_eq!((keeping.write, keeping.kept, keeping.blocked.len()), (None, set(&["y"]), 0));
        assert_eq!((keeping.others, keeping.elsewhere), (set(&["a"]), set(&["x"])));
        // If both want a resource, the one that has it keeps it.
        let (keeping, after) = decided(&recorded, &me("b", "1"), &["x", "y"], false);
        assert_eq!((keeping.kept, keeping.blocked.len()), (set(&["y"]), 1));
        assert_eq!(after[1], entry("b", "1", 0, &["y"], &["x"]));
        // When one no longer wants a resource, the other one gets it.
        let (_, after) = decided(&after, &me("a", "1"), &["z"], false);
        let (_, after) = decided(&after, &me("b", "1"), &["x", "y"], false);
        assert_eq!(after, [entry("a", "1", 0, &["z"], &[]), entry("b", "1", 0, &["x", "y"], &[])]);
    }

    #[test]
    fn whoever_takes_over_leaves_the_other_one_what_it_does_not_want() {
        let recorded = [entry("a", "1", 0, &["x", "z"], &[])];
        let (keeping, after) = decided(&recorded, &me("b", "1"), &["x"], true);
        assert!(keeping.blocked.is_empty());
        assert_eq!(after, [entry("a", "1", 0, &["z"], &[]), entry("b", "1", 0, &["x"], &[])]);
        let (robbed, after) = decided(&after, &me("a", "1"), &["x", "z"], false);
        assert_eq!((robbed.kept, robbed.blocked["x"].agent.as_str()), (set(&["z"]), "b"));
        assert_eq!(after[0], entry("a", "1", 0, &["z"], &["x"]));
    }

    #[test]
    fn an_agent_is_known_by_what_it_wrote_on_the_export() {
        let (a, b, c) =
            (entry("a", "1", 0, &["x"], &[]), entry("b", "1", 0, &["y"], &[]), entry("c", "2", 0, &[], &[]));
        for (recorded, owner, wanted) in [
            (vec![], None, None),
            (vec![], Some("old"), Some("old")),
            (vec![a.clone(), c.clone()], Some("c"), Some("a")),
            (vec![c], Some("c"), None),
            (vec![a.clone(), b.clone()], Some("b"), Some("b")),
            (vec![a, b], Some("other"), None),
        ] {
            assert_eq!(agent_of(&recorded, owner, "1").as_deref(), wanted, "{recorded:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_nobodys() {
        for text in [None, Some(""), Some("{}"), Some("nonsense")] {
            assert_eq!(read(text), []);
        }
        let odd = read(Some(r#"[{"agent": "b", "keeps": ["x"], "renewed": "yesterday", "later": 1}]"#));
        assert!(decided(&odd, &me("a", "1"), &["x"], false).0.blocked.is_empty());
    }
}
