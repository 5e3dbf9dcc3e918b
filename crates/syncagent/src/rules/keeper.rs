//! Who keeps an export: one entry for each agent that serves it, in an annotation of the APIExport. Pure.
//!
//! ```text
//!  syncagent.kcp.io/keeper: [{agent, cluster, identity, renewed, keeps: [buckets.example.com], waits: []}, …]
//! ```
//!
//! Two agents that serve the same resource would make two copies of every object and fight over each. So a resource belongs to the agent that
//! has it in `keeps`, as long as it renews its entry; others wait. Agents that share an export and serve different resources do not
//! get in each other's way. The reference agent writes no entry and is not detected.
//!
//! Whoever serves a resource after another agent notes the name of that one in `syncagent.kcp.io/former-agents`: orders are held under it, and
//! copies bear it, until they are reconciled.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// By how much clocks may differ, in milliseconds.
const FUTURE: i64 = 60 * 60 * 1000;

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

    /// How long ago it was renewed, in milliseconds.
    pub fn age(&self, now: i64) -> i64 {
        age(&self.renewed, now)
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

/// How long ago something was renewed, in milliseconds; the maximum if that is not known. A time far in the future says nothing: clocks
/// differ a little, but whoever wrote that would keep the export for ever.
pub(super) fn age(renewed: &str, now: i64) -> i64 {
    let renewed = renewed.parse::<Timestamp>().ok().map(Timestamp::as_millisecond);
    let renewed = renewed.filter(|renewed| renewed.saturating_sub(now) <= FUTURE);
    renewed.map_or(i64::MAX, |renewed| now.saturating_sub(renewed))
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

/// All names in an annotation of former agents.
pub fn read_former(annotation: Option<&str>) -> BTreeSet<String> {
    let names = annotation.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The annotation with these names.
pub fn write_former(names: &BTreeSet<String>) -> Option<String> {
    (!names.is_empty()).then(|| names.iter().map(String::as_str).collect::<Vec<_>>().join(","))
}

/// Names of agents that are no more: those that were noted, those of entries that have expired or are taken over, and the one that the export
/// bears. An agent that keeps something is none of them.
pub fn former(
    recorded: &[Keeper],
    (noted, owner): (&BTreeSet<String>, Option<&str>),
    me: &Keeper,
    wants: &BTreeSet<String>,
    (now, beat, take_over): (i64, Beat, bool),
) -> BTreeSet<String> {
    let is_fresh = |keeper: &&Keeper| keeper.age(now) < beat.old;
    let is_idle = |keeper: &&Keeper| keeper.keeps.is_empty() || take_over && keeper.keeps.is_subset(wants);
    let at_work: BTreeSet<&str> = recorded
        .iter()
        .filter(is_fresh)
        .filter(|keeper| !is_idle(keeper))
        .map(|keeper| keeper.agent.as_str())
        .collect();
    let gone = recorded.iter().filter(|keeper| !keeper.keeps.is_disjoint(wants)).map(|keeper| keeper.agent.as_str());
    let mut names: BTreeSet<String> = noted.clone();
    names.extend(gone.chain(owner).map(str::to_owned));
    names.retain(|name| *name != me.agent && !at_work.contains(name.as_str()));
    names
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

/// Why the entry of an agent could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwritten {
    /// The server said no: whatever others write can be seen.
    Refused,
    /// Nobody knows what the server has.
    Failed,
}

/// What an agent may serve whose entry cannot be written, given what it has served so far. Soon before others take it for dead it serves nothing that
/// they may take over; and nobody takes over what is recorded for another agent, however old that is, without a record.
pub fn without_entry(
    recorded: &[Keeper],
    me: &Keeper,
    (wants, served): (&BTreeSet<String>, &BTreeSet<String>),
    (now, beat): (i64, Beat),
    why: Unwritten,
) -> BTreeSet<String> {
    let own = recorded.iter().find(|keeper| keeper.is(me));
    let others = || recorded.iter().filter(|keeper| !keeper.is(me));
    // A write that is under way may take as long as the time between two of them.
    let lapses = own.is_some_and(|own| own.age(now) >= beat.old - beat.renew);
    let may_serve = |resource: &&String| {
        let is_own = own.is_some_and(|own| own.keeps.contains(*resource));
        let is_awaited = others().any(|keeper| keeper.keeps.contains(*resource) || keeper.waits.contains(*resource));
        let is_of_another = others().any(|keeper| keeper.keeps.contains(*resource));
        (is_own || !is_of_another) && !(lapses && (why == Unwritten::Failed || is_awaited))
    };
    let candidates = if why == Unwritten::Refused { wants } else { served };
    candidates.iter().filter(may_serve).cloned().collect()
}

/// In how many milliseconds an entry lapses that cannot be renewed; nothing if there is none, or if it has lapsed.
pub fn lapses_in(recorded: &[Keeper], me: &Keeper, (now, beat): (i64, Beat)) -> Option<i64> {
    let own = recorded.iter().find(|keeper| keeper.is(me))?;
    let left = (beat.old - beat.renew).saturating_sub(own.age(now));
    (left > 0).then_some(left)
}

/// The message of both agents about a resource that both want to serve.
pub fn rivalry(resource: &str, keeper: &Keeper, waiter: &Keeper) -> String {
    let (keeps, waits) = (keeper.shown(waiter), waiter.shown(keeper));
    format!(
        "{keeps} keeps {resource} in this APIExport and {waits} stays out of it, because both together would make two copies of everything; \
         stop one of them, or give it another APIExport or other PublishedResources, or start {waits} with --take-over"
    )
}

pub(super) fn stamp(now: i64) -> String {
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
    fn a_time_in_the_future_keeps_nothing_for_ever() {
        let far = [entry("b", "2", -FUTURE - 1, &["x"], &[])];
        let (keeping, after) = decided(&far, &me("a", "1"), &["x"], false);
        assert!(keeping.blocked.is_empty() && after.iter().any(|keeper| keeper.agent == "a"), "{keeping:?}");
        // Clocks differ a little.
        let near = [entry("b", "2", -60_000, &["x"], &[])];
        assert!(decided(&near, &me("a", "1"), &["x"], false).0.blocked.contains_key("x"));
        // An entry of our own that was written with a wrong clock is put right.
        let own = [entry("a", "1", -FUTURE - 1, &["x"], &[])];
        assert!(decided(&own, &me("a", "1"), &["x"], false).0.write.is_some());
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
    fn whoever_comes_after_another_agent_has_its_part() {
        let me = me("a", "1");
        let (wants, noted) = (set(&["x"]), set(&["a", "far"]));
        let names = |recorded: &[Keeper], owner, take_over| {
            let names = former(recorded, (&noted, owner), &me, &wants, (NOW, BEAT, take_over));
            write_former(&names).unwrap_or_default()
        };
        for (recorded, owner, take_over, wanted) in [
            (vec![], None, false, "far"),
            (vec![], Some("old"), false, "far,old"),
            (vec![entry("a", "1", 0, &["x"], &[])], Some("a"), false, "far"),
            // An agent that lives keeps what it has, unless it is taken over.
            (vec![entry("b", "1", 0, &["x"], &[])], Some("b"), false, "far"),
            (vec![entry("b", "1", 0, &["x"], &[])], Some("b"), true, "b,far"),
            (vec![entry("b", "1", 0, &["x", "y"], &[])], Some("b"), true, "far"),
            (vec![entry("b", "1", BEAT.old, &["x"], &[])], None, false, "b,far"),
            (vec![entry("b", "1", BEAT.old, &["y"], &[])], None, false, "far"),
            // One that waits is a former one, if it was noted; one that works is not.
            (vec![entry("far", "1", 0, &[], &["x"])], None, false, "far"),
            (vec![entry("far", "1", 0, &["y"], &[])], None, false, ""),
        ] {
            assert_eq!(names(&recorded, owner, take_over), wanted, "{recorded:?}");
        }
        assert_eq!(read_former(Some(" b, a,,")), set(&["a", "b"]));
        assert_eq!(read_former(None), set(&[]));
    }

    /// An agent and what it serves.
    struct Served(Keeper, BTreeSet<String>);

    impl Served {
        /// One look, as the agent does it.
        fn look(&mut self, recorded: &mut Vec<Keeper>, now: i64, cannot: Option<Unwritten>) {
            let (wants, keeping) = (set(&["x"]), decide(recorded, &self.0, &set(&["x"]), (now, BEAT, false)));
            let kept = match (&keeping.write, cannot) {
                (None, _) => keeping.kept,
                (Some(text), None) => {
                    *recorded = read(Some(text));
                    decide(recorded, &self.0, &wants, (now, BEAT, false)).kept
                }
                (Some(_), Some(why)) => {
                    let may = without_entry(recorded, &self.0, (&wants, &self.1), (now, BEAT), why);
                    self.1.retain(|resource| may.contains(resource));
                    if why == Unwritten::Refused { may } else { BTreeSet::new() }
                }
            };
            self.1.extend(kept);
            self.1.retain(|resource| !keeping.blocked.contains_key(resource));
        }
    }

    #[test]
    fn never_two_serve_a_resource_however_long_the_export_cannot_be_written() {
        use Unwritten::{Failed, Refused};
        let minute = 60_000;
        for (first, second, why, waits, blind) in [
            // Who cannot write for ten minutes, why, whether the second one was there before, and whether the first one sees nothing either.
            (true, false, Failed, true, true),
            (true, false, Failed, true, false),
            (true, false, Refused, true, false),
            (true, false, Failed, false, true),
            (true, true, Failed, true, false),
            (true, true, Refused, true, false),
            (true, true, Refused, false, false),
            (false, true, Refused, true, false),
        ] {
            let case = format!("{first} {second} {why:?} {waits} {blind}");
            let mut recorded = vec![entry("a", "1", 0, &["x"], &[])];
            let mut a = Served(me("a", "1"), set(&["x"]));
            let mut b = Served(me("b", "1"), set(&[]));
            let (mut late, mut changed) = (recorded.clone(), 0);
            for second_of_run in 0..20 * 60 {
                let now = NOW + second_of_run * 1_000;
                let broken = (2 * minute..12 * minute).contains(&(now - NOW));
                if waits || now - NOW > 3 * minute {
                    b.look(&mut recorded, now, (second && broken).then_some(why));
                }
                // Whoever may only look, and whom nobody waits for, learns of others by what they write.
                let is_sure = why == Failed || waits;
                assert!(!is_sure || a.1.is_empty() || b.1.is_empty(), "{case}: both after {second_of_run} s");
                let cannot = (first && broken).then_some(why);
                if blind && broken {
                    a.look(&mut late, now, cannot);
                } else {
                    a.look(&mut recorded, now, cannot);
                    late.clone_from(&recorded);
                }
                assert!(a.1.is_empty() || b.1.is_empty(), "{case}: both after {second_of_run} s");
                changed += usize::from(a.1.is_empty() && b.1.is_empty());
            }
            assert!(!a.1.is_empty() || !b.1.is_empty(), "{case}: nobody in the end");
            assert!(changed <= 9 * 60, "{case}: nobody for {changed} s");
        }
    }

    #[test]
    fn an_agent_that_cannot_renew_its_entry_knows_when_it_lapses() {
        let lapses = BEAT.old - BEAT.renew;
        let own = |age: i64| [entry("b", "1", 0, &["y"], &[]), entry("a", "1", age, &["x"], &[])];
        for (age, wanted) in [
            (-1_000, Some(lapses + 1_000)),
            (BEAT.renew, Some(lapses - BEAT.renew)),
            (lapses - 1, Some(1)),
            (lapses, None),
            (9 * BEAT.old, None),
        ] {
            assert_eq!(lapses_in(&own(age), &me("a", "1"), (NOW, BEAT)), wanted, "{age}");
            let serves =
                without_entry(&own(age), &me("a", "1"), (&set(&["x"]), &set(&["x"])), (NOW, BEAT), Unwritten::Failed);
            assert_eq!(serves.is_empty(), wanted.is_none(), "{age}");
        }
        assert_eq!(lapses_in(&[], &me("a", "1"), (NOW, BEAT)), None);
        let unread = Keeper { renewed: "yesterday".to_owned(), ..me("a", "1") };
        assert_eq!(lapses_in(&[unread], &me("a", "1"), (NOW, BEAT)), None);
    }

    #[test]
    fn an_agent_that_may_only_look_serves_what_nobody_else_wants() {
        let (a, wants) = (me("a", "1"), set(&["x", "y"]));
        let served = |recorded: &[Keeper], why| without_entry(recorded, &a, (&wants, &set(&["x"])), (NOW, BEAT), why);
        let old = BEAT.old * 9;
        for (recorded, refused, failed) in [
            (vec![], &["x", "y"][..], &["x"][..]),
            (vec![entry("a", "1", 0, &["x"], &[])], &["x", "y"], &["x"]),
            (vec![entry("a", "1", old, &["x"], &[])], &["x", "y"], &[]),
            (vec![entry("a", "1", old, &["x"], &[]), entry("b", "1", 0, &[], &["x"])], &["y"], &[]),
            (vec![entry("b", "1", old, &["x"], &[])], &["y"], &[]),
        ] {
            assert_eq!(served(&recorded, Unwritten::Refused), set(refused), "{recorded:?}");
            assert_eq!(served(&recorded, Unwritten::Failed), set(failed), "{recorded:?}");
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
