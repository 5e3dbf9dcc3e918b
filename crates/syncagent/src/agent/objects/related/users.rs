//! Which primaries use which related objects, across all PublishedResources.
//!
//! The answer is in the state Secrets, all of which are known: a record is written before anything is done for a related object, and is
//! removed after everything has been undone. So the answer is right from the start of a new process.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::Value;

use crate::api::{REMOTE_CLUSTER, REMOTE_KIND, STATE_OF_NAME, STATE_OF_NAMESPACE};
use crate::decide::state::{Applied, PrimaryState, entry_key, secret_labels};
use crate::decide::{ObjectAddress, OtherUser, Record, Side};
use crate::rules::metadata::{KCP_SIDE, SourceKey};

/// An object that some primary uses; the version of its API does not matter.
#[derive(Clone, PartialEq, Eq, Hash)]
enum UsedObject {
    /// An object that a record names.
    At { side: Side, cluster: String, group: String, resource: String, namespace: String, name: String },
    /// A key of the reference agent, which keeps no records.
    Key(String),
}

impl fmt::Display for UsedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At { side, cluster, group, resource, namespace, name } => {
                let dot = if group.is_empty() { "" } else { "." };
                let place = if *side == KCP_SIDE { format!("kcp workspace {cluster}") } else { "service".to_owned() };
                write!(f, "{place} {resource}{dot}{group} {namespace}/{name}")
            }
            Self::Key(key) => f.write_str(key),
        }
    }
}

/// What a state Secret notes about related objects.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::agent::objects) struct SecretUses {
    /// Logical cluster of the primary.
    pub cluster: String,
    /// The primary, unless the Secret does not say.
    pub primary: Option<Primary>,
    records: Vec<Record>,
    /// Keys and kinds of the reference agent's entries.
    entries: Vec<(String, String)>,
}

/// A primary as its state Secret knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agent::objects) struct Primary {
    /// API group in kcp.
    pub group: String,
    /// Kind in kcp.
    pub kind: String,
    /// Where it is.
    pub source: SourceKey,
}

impl Primary {
    /// The primary that annotations of a state Secret name. Those of other agents, and older ones, do not.
    fn named(cluster: &str, annotations: &Value) -> Option<Self> {
        let (kind, group) = annotations[REMOTE_KIND].as_str()?.split_once('.')?;
        let source = SourceKey {
            cluster: cluster.into(),
            namespace: annotations[STATE_OF_NAMESPACE].as_str().unwrap_or_default().into(),
            name: annotations[STATE_OF_NAME].as_str()?.into(),
        };
        Some(Self { group: group.to_owned(), kind: kind.to_owned(), source })
    }
}

/// How an order stops using what it shares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent::objects) enum Leaving {
    /// It ends, and its copies with it.
    Ends,
    /// It is released: its copies stay, but it holds nothing in kcp.
    Released,
}

impl SecretUses {
    /// What a state Secret notes; nothing if it knows of no related objects.
    pub fn by(metadata: &Value, state: &PrimaryState) -> Option<Self> {
        let labels = &metadata["labels"];
        let cluster = labels[REMOTE_CLUSTER].as_str()?.to_owned();
        let primary = Primary::named(&cluster, &metadata["annotations"]);
        let mut noted = Self { cluster, primary, records: Vec::new(), entries: Vec::new() };
        noted.records.extend(state.records().map(|(_, record)| record.clone()));
        for (key, entry) in state.entries().filter(|(key, _)| state.record(key).is_none()) {
            let last = entry.last.as_ref().and_then(Applied::whole).unwrap_or(&Value::Null);
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (kind, metadata) = (text(&last["kind"]), &last["metadata"]);
            let source = SourceKey {
                cluster: noted.cluster.as_str().into(),
                namespace: text(&metadata["namespace"]).into(),
                name: text(&metadata["name"]).into(),
            };
            let is_primary = key == entry_key(&noted.cluster, &source.namespace, &source.name)
                && secret_labels(&source).iter().all(|(key, value)| labels[key] == value.as_str());
            let api_version = text(&last["apiVersion"]);
            let group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
            let own = noted
                .primary
                .as_ref()
                .map(|known| entry_key(&noted.cluster, &known.source.namespace, &known.source.name));
            match &noted.primary {
                None if is_primary => noted.primary = Some(Primary { group, kind, source }),
                // What was applied by the server, or is too large to be kept, does not say its kind.
                Some(known) if own.as_deref() == Some(key) && (kind.is_empty() || known.kind == kind) => {}
                _ => noted.entries.push((key.to_owned(), kind)),
            }
        }
        (!noted.records.is_empty() || !noted.entries.is_empty()).then_some(noted)
    }

    /// Which objects of another primary's record, in a cluster, this primary uses too.
    fn shares(&self, cluster: &str, record: &Record) -> Option<OtherUser> {
        let same = |a: &ObjectAddress, b: &ObjectAddress| used(cluster, a) == used(&self.cluster, b);
        let key = key(cluster, record);
        let kind = &record.origin.kind.kind;
        // The reference agent does not say where the copy is: it may be this one.
        let entry = cluster == self.cluster && self.entries.iter().any(|(k, theirs)| *k == key && theirs == kind);
        let other = OtherUser {
            origin: entry || self.records.iter().any(|theirs| same(&record.origin, &theirs.origin)),
            copy: entry || self.records.iter().any(|theirs| same(&record.copy, &theirs.copy)),
        };
        (other.origin || other.copy).then_some(other)
    }

    /// Copies and their originals.
    fn pairs(&self) -> impl Iterator<Item = (UsedObject, UsedObject)> {
        self.records.iter().map(|record| (used(&self.cluster, &record.copy), used(&self.cluster, &record.origin)))
    }

    fn objects(&self) -> Vec<UsedObject> {
        let records = self.records.iter().flat_map(|r| [used(&self.cluster, &r.origin), used(&self.cluster, &r.copy)]);
        records.chain(self.entries.iter().map(|(key, _)| UsedObject::Key(key.clone()))).collect()
    }
}

/// Which state Secrets note which objects.
#[derive(Default)]
pub(in crate::agent::objects) struct RelatedUses {
    by_object: HashMap<UsedObject, HashSet<String>>,
    /// How many records there are for each original of a copy.
    originals: HashMap<UsedObject, HashMap<UsedObject, usize>>,
    by_secret: HashMap<String, SecretUses>,
    /// Whose orders stop using what they share. Each of them notes that before it looks who else does not, so the last one sees that nobody is left.
    leaving: HashMap<String, Leaving>,
}

impl RelatedUses {
    /// Replaces what a state Secret notes; nothing, once it is gone.
    pub fn set(&mut self, secret: &str, noted: Option<SecretUses>) {
        let old = self.by_secret.remove(secret);
        for (copy, original) in old.iter().flat_map(SecretUses::pairs) {
            let Some(originals) = self.originals.get_mut(&copy) else { continue };
            if let Some(count) = originals.get_mut(&original) {
                *count -= 1;
            }
            originals.retain(|_, count| *count > 0);
            if originals.is_empty() {
                self.originals.remove(&copy);
            }
        }
        for old in old.iter().flat_map(SecretUses::objects) {
            if let Some(secrets) = self.by_object.get_mut(&old) {
                secrets.remove(secret);
                if secrets.is_empty() {
                    self.by_object.remove(&old);
                }
            }
        }
        let Some(noted) = noted else {
            self.leaving.remove(secret);
            return;
        };
        for (copy, original) in noted.pairs() {
            *self.originals.entry(copy).or_default().entry(original).or_default() += 1;
        }
        for object in noted.objects() {
            self.by_object.entry(object).or_default().insert(secret.to_owned());
        }
        self.by_secret.insert(secret.to_owned(), noted);
    }

    /// Another original that state Secrets other than this one name for the copy of a record, in words.
    pub fn rival(&self, secret: &str, cluster: &str, record: &Record) -> Option<String> {
        let (copy, original) = (used(cluster, &record.copy), used(cluster, &record.origin));
        let own = self.by_secret.get(secret);
        let is_rival = |(theirs, count): &(&UsedObject, &usize)| {
            let pair = |pair: &(UsedObject, UsedObject)| pair.0 == copy && pair.1 == **theirs;
            **theirs != original && **count > own.into_iter().flat_map(SecretUses::pairs).filter(pair).count()
        };
        self.originals.get(&copy)?.iter().find(is_rival).map(|(theirs, _)| theirs.to_string())
    }

    /// Notes how the order of a state Secret stops using what it shares; nothing if it goes on.
    pub fn leave(&mut self, secret: &str, leaving: Option<Leaving>) {
        // Who uses nothing leaves nothing, and would never be forgotten.
        match leaving.filter(|_| self.by_secret.contains_key(secret)) {
            Some(leaving) => self.leaving.insert(secret.to_owned(), leaving),
            None => self.leaving.remove(secret),
        };
    }

    /// Whether nobody leaves.
    pub fn all_stay(&self) -> bool {
        self.leaving.is_empty()
    }

    /// State Secrets of other primaries of the workspace that use the original of a record, and these primaries.
    pub fn users(&self, secret: &str, cluster: &str, record: &Record) -> Vec<(String, Primary)> {
        let origin = self.by_object.get(&used(cluster, &record.origin));
        let others =
            origin.into_iter().flatten().filter(|other| *other != secret && !self.leaving.contains_key(*other));
        let named = others.filter_map(|other| Some((other.clone(), self.by_secret.get(other)?.primary.clone()?)));
        named.filter(|(_, primary)| &*primary.source.cluster == cluster).collect()
    }

    /// What state Secrets other than this one note about the original or the copy of a record.
    pub fn others(&self, secret: &str, cluster: &str, record: &Record) -> Vec<(SecretUses, OtherUser)> {
        let objects =
            [used(cluster, &record.origin), used(cluster, &record.copy), UsedObject::Key(key(cluster, record))];
        let secrets: HashSet<&String> = objects.iter().filter_map(|used| self.by_object.get(used)).flatten().collect();
        let others = secrets.into_iter().filter(|other| *other != secret);
        let stays = |other: &String| {
            let noted = self.by_secret.get(other)?;
            let shared = noted.shares(cluster, record)?;
            let shared = match self.leaving.get(other) {
                None => shared,
                Some(Leaving::Released) => OtherUser { origin: false, copy: shared.copy },
                Some(Leaving::Ends) => return None,
            };
            (shared.origin || shared.copy).then(|| (noted.clone(), shared))
        };
        others.filter_map(stays).collect()
    }
}

fn used(cluster: &str, at: &ObjectAddress) -> UsedObject {
    UsedObject::At {
        side: at.side,
        // There is only one service cluster.
        cluster: if at.side == KCP_SIDE { cluster.to_owned() } else { String::new() },
        group: at.kind.group.clone(),
        resource: at.kind.plural.clone(),
        namespace: at.namespace.clone().unwrap_or_default(),
        name: at.name.clone(),
    }
}

fn key(cluster: &str, record: &Record) -> String {
    let at = &record.origin;
    let cluster = if at.side == KCP_SIDE { cluster } else { "" };
    entry_key(cluster, at.namespace.as_deref().unwrap_or_default(), &at.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(origin: &str, copy: &str) -> Record {
        let place = |name: &str| json!({"version": "v1", "kind": "Secret", "resource": "secrets", "namespace": "n", "name": name});
        let record = json!({"identifier": "i", "origin": "kcp", "source": place(origin), "copy": place(copy)});
        Record::read(&crate::rules::metadata::WORDS, record.to_string().as_bytes()).unwrap()
    }

    fn metadata(name: &str) -> Value {
        json!({"labels": secret_labels(&SourceKey { cluster: "c1".into(), namespace: "n".into(), name: name.into() })})
    }

    fn others(uses: &RelatedUses, cluster: &str, record: &Record) -> Option<OtherUser> {
        let mut others = uses.others("mine", cluster, record);
        assert!(others.len() < 2);
        others.pop().map(|(_, other)| other)
    }

    #[test]
    fn originals_are_shared_within_a_workspace_and_copies_over_all() {
        let mut uses = RelatedUses::default();
        let mut state = PrimaryState::default();
        state.track("k", record("a", "x"));
        uses.set("theirs", SecretUses::by(&metadata("primary"), &state));
        for (cluster, ours, expected) in [
            ("c1", record("a", "x"), Some(OtherUser { origin: true, copy: true })),
            ("c1", record("a", "y"), Some(OtherUser { origin: true, copy: false })),
            ("c1", record("b", "x"), Some(OtherUser { origin: false, copy: true })),
            ("c2", record("a", "x"), Some(OtherUser { origin: false, copy: true })),
            ("c2", record("a", "y"), None),
        ] {
            assert_eq!(others(&uses, cluster, &ours), expected, "{cluster} {ours:?}");
        }
        assert!(uses.others("theirs", "c1", &record("a", "x")).is_empty(), "nobody is another one to itself");
        uses.set("theirs", None);
        assert!(uses.by_object.is_empty() && uses.by_secret.is_empty() && uses.originals.is_empty());
    }

    #[test]
    fn another_original_of_the_same_copy_is_a_rival() {
        let mut uses = RelatedUses::default();
        for (secret, origins) in [("mine", vec!["a", "old"]), ("theirs", vec!["b"]), ("also theirs", vec!["b"])] {
            let mut state = PrimaryState::default();
            for origin in origins {
                state.track(origin, record(origin, "x"));
            }
            uses.set(secret, SecretUses::by(&metadata(secret), &state));
        }
        let rival = |uses: &RelatedUses, secret: &str, origin: &str, copy: &str| {
            uses.rival(secret, "c1", &record(origin, copy))
        };
        assert_eq!(rival(&uses, "mine", "a", "x").unwrap(), "kcp workspace c1 secrets n/b");
        assert_eq!(rival(&uses, "mine", "a", "y"), None);
        assert!(rival(&uses, "theirs", "b", "x").is_some(), "both are rivals");
        uses.set("theirs", None);
        assert!(rival(&uses, "mine", "a", "x").is_some(), "one of them is left");
        uses.set("also theirs", None);
        assert_eq!(rival(&uses, "mine", "a", "x"), None, "what the same primary had before does not count");
        assert!(uses.rival("other", "c2", &record("a", "x")).is_some(), "the same name in another workspace");
    }

    #[test]
    fn a_state_without_content_says_whose_it_is() {
        let own = entry_key("c1", "n", "primary");
        let mut metadata = metadata("primary");
        for content in ["apply", "a checksum of what is too large to be kept"] {
            let mut state = PrimaryState::default();
            state.note_written(&own, Applied::Sum(content.to_owned()), None);
            state.track("k", record("a", "x"));
            assert_eq!(SecretUses::by(&metadata, &state).unwrap().primary, None, "nobody can know");
            let named = json!({REMOTE_KIND: "CronTab.g", STATE_OF_NAMESPACE: "n", STATE_OF_NAME: "primary"});
            metadata["annotations"] = named;
            let noted = SecretUses::by(&metadata, &state).unwrap();
            let primary = noted.primary.unwrap();
            assert_eq!(
                (primary.group.as_str(), primary.kind.as_str(), &*primary.source.name),
                ("g", "CronTab", "primary")
            );
            assert!(noted.entries.is_empty(), "it is no related object of itself");
            metadata["annotations"] = Value::Null;
        }
    }

    #[test]
    fn of_several_that_go_at_once_the_last_one_sees_nobody() {
        for leaving in [Leaving::Ends, Leaving::Released] {
            let (mut uses, shared) = (RelatedUses::default(), record("a", "x"));
            let mut state = PrimaryState::default();
            state.track("k", shared.clone());
            for secret in ["one", "two", "three"] {
                uses.set(secret, SecretUses::by(&metadata(secret), &state));
            }
            let needed = |uses: &RelatedUses, secret: &str| {
                uses.others(secret, "c1", &shared).iter().any(|(_, other)| other.origin)
            };
            for (secret, left) in [("one", true), ("two", true), ("three", false)] {
                uses.leave(secret, Some(leaving));
                assert_eq!(needed(&uses, secret), left, "{secret}");
            }
            let copy = uses.others("three", "c1", &shared).iter().any(|(_, other)| other.copy);
            assert_eq!(copy, leaving == Leaving::Released, "copies of what is released stay");
            uses.leave("none", Some(leaving));
            uses.leave("one", None);
            assert!(needed(&uses, "three"), "one that stays after all is a user again");
            uses.set("two", None);
            uses.set("three", None);
            assert!(uses.all_stay(), "what is gone is forgotten");
        }
    }

    #[test]
    fn entries_of_the_reference_agent_count_too() {
        let mut state = PrimaryState::default();
        for (kind, name) in [("CronTab", "primary"), ("Secret", "a")] {
            let value = json!({"apiVersion": "g/v1", "kind": kind, "metadata": {"namespace": "n", "name": name}});
            state.note(&entry_key("c1", "n", name), value);
        }
        let noted = SecretUses::by(&metadata("primary"), &state).unwrap();
        let primary = noted.primary.clone().unwrap();
        assert_eq!((primary.group.as_str(), primary.kind.as_str()), ("g", "CronTab"));
        let mut uses = RelatedUses::default();
        uses.set("theirs", Some(noted));
        assert!(others(&uses, "c1", &record("a", "x")).is_some_and(|other| other.origin));
        assert_eq!(others(&uses, "c1", &record("primary", "x")), None, "the primary is no related object");
        assert_eq!(others(&uses, "c2", &record("a", "x")), None);
        state.drop_entry(&entry_key("c1", "n", "a"));
        assert_eq!(SecretUses::by(&metadata("primary"), &state), None);
    }
}
