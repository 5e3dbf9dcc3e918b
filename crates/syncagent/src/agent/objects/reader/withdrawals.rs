//! What is to be withdrawn: determined by asking the servers themselves, and only if it stays that way for a while.
//!
//! ```text
//!  primary stays   what is remembered or marked, but not named ──▶ both primaries there? ──▶ read anew ──▶ grace ──▶ dropped, strays
//!  primary goes    all that is named, remembered or marked; what is out of reach for good holds nobody up
//! ```

use std::collections::HashSet;

use carrick_client::{Client, ListOptions};
use carrick_sync::executor::refusal::is_unserved;
use serde_json::Value;
use tokio::time::Instant;

use super::error::{Forbidden, ReadError, no_kind, way_out};
use super::{RelatedRead, RelatedReader, Unseen, sides};
use crate::agent::objects::related::gvr_of;
use crate::agent::objects::related::held;
use crate::agent::objects::related::kinds::resource;
use crate::agent::objects::related::withheld::Reaching;
use crate::api::{CleanupPolicy, Origin};
use crate::decide::state::{RememberedObject, entry_key};
use crate::decide::{
    DroppedSeen, ObjectAddress, OtherUser, Record, RelatedSeen, Role, Side, Stray, is_placed, is_stray, unnamed,
};
use crate::rules::ApiKind;
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE};
use crate::rules::provenance::Provenance;
use crate::rules::related::{Gvr, Related};

impl RelatedReader<'_> {
    /// All related objects of a primary that stays.
    pub async fn read(&self) -> Result<RelatedRead, ReadError> {
        let Some(copy) = self.copy else { return Ok(RelatedRead::nothing()) };
        let mut read = self.named(copy, false).await;
        let strange = self.strange(&read);
        let is_doubtful = !strange.is_empty() || !self.unnamed(&read).is_empty() || !self.unrecorded(&read).is_empty();
        // Nothing is withdrawn on the word of a cache, nor unless both primaries are really there.
        if is_doubtful && self.are_there(copy).await? {
            read = self.named(copy, true).await;
            self.add_absent(&mut read, &strange).await;
        } else {
            self.shared.related.absences.forget(&self.user);
        }
        self.add_others(&mut read);
        self.examine(&mut read).await;
        for seen in &mut read.view.seen {
            if let Some(rules) = self.rules.related.get(seen.entry) {
                let record = seen.record(rules);
                seen.rival = self.shared.rival(self.rules, self.key, &record);
                seen.wanted = self.users_of(&record.copy).iter().any(|other| other.origin);
                seen.ordered = self.is_ordered(&record, &seen.origin);
            }
        }
        Ok(read)
    }

    /// Asks the server who wrote objects in the places of copies that are not recorded as copies: caches do not keep that.
    async fn examine(&self, read: &mut RelatedRead) {
        for seen in &mut read.view.seen {
            let Some(rules) = self.rules.related.get(seen.entry) else { continue };
            let Some(there) = &seen.destination else { continue };
            let record = seen.record(rules);
            let uid = there["metadata"]["uid"].as_str();
            let mut known = self.state.records().filter(|(_, known)| known.copy.is_same_object(&record.copy));
            if known.any(|(_, known)| known.uid.is_some() && known.uid.as_deref() == uid) {
                continue;
            }
            // Without an answer, nobody knows: it is left alone.
            if let Ok(Some(live)) = self.object(&record, &record.copy).await
                && live["metadata"]["uid"].as_str() == uid
            {
                seen.destination = Some(live);
            }
        }
    }

    /// Whether an original is an order itself, whose own copy goes to the same place.
    fn is_ordered(&self, record: &Record, origin: &Value) -> bool {
        let theirs = self.shared.related.primaries.rules_of(&record.origin.kind);
        theirs.iter().any(|theirs| is_placed(theirs, &self.key.cluster, self.path, record, origin))
    }

    /// All related objects of a primary that is being deleted.
    pub async fn read_last(&self) -> Result<RelatedRead, ReadError> {
        let mut read = match self.copy {
            Some(copy) => self.named(copy, true).await,
            None => RelatedRead::nothing(),
        };
        // A server that does not answer may hide what must be withdrawn. Rules that fail hide nothing: what was done is remembered.
        for (entry, rules) in self.rules.related.iter().enumerate() {
            if !read.view.unknown.contains(&entry) {
                self.is_granted("resolve", &rules.identifier);
            }
        }
        // All of them are checked, so that the grace period starts for each.
        let mut hiding = None;
        for (at, problem) in read.problems.iter().enumerate() {
            let may_hide = match problem {
                ReadError::Server { .. } => true,
                ReadError::Forbidden(_) => !self.is_final("resolve", problem).await,
                _ => false,
            };
            if may_hide {
                hiding = hiding.or(Some(at));
            }
        }
        if let Some(at) = hiding {
            return Err(read.problems.swap_remove(at));
        }
        for (key, record) in unnamed(self.state, &self.rules.related, &read.view.seen) {
            let dropped = self.last_of_dropped(key, record, &mut read.problems).await?;
            read.view.dropped.push(dropped);
        }
        self.add_others(&mut read);
        self.leave_behind(&mut read);
        for (entry, rules) in self.rules.related.iter().enumerate().filter(|(_, rules)| rules.marks_copies()) {
            if is_busy(&read, entry, rules) {
                continue;
            }
            match self.strays(entry, rules, &read.view.seen).await {
                Ok(mut strays) => {
                    self.is_granted("list", &rules.identifier);
                    strays.retain(|stray| self.can_reach(rules, &stray.at, &mut read.problems));
                    read.view.strays.append(&mut strays);
                }
                // There is no such kind, so there are no such copies.
                Err(ReadError::NoKind { .. }) => {}
                Err(problem) if self.is_final("list", &problem).await => read.problems.push(problem),
                Err(problem) => return Err(problem),
            }
        }
        let is_loss = |problem: &&ReadError| {
            matches!(problem, ReadError::Forbidden(_) | ReadError::LeftBehind { .. } | ReadError::Hidden { .. })
        };
        read.lost = read.problems.iter().filter(is_loss).map(ToString::to_string).collect();
        Ok(read)
    }

    /// Positions of entries with marked copies that are neither named nor remembered, nor used by anybody else.
    fn strange(&self, read: &RelatedRead) -> Vec<usize> {
        let mut strange = Vec::new();
        for (entry, rules) in self.rules.related.iter().enumerate() {
            if rules.policy != CleanupPolicy::MatchOrigin || read.view.unknown.contains(&entry) {
                continue;
            }
            let ((_, side), gvr) = (sides(rules.origin), &rules.destination);
            let marks = self.marks(rules);
            let marked = self.shared.related.marked(&self.user, side, gvr, &self.key.cluster, &marks.key());
            let addresses =
                marked.unwrap_or_default().into_iter().map(|(namespace, name)| address(side, gvr, namespace, name));
            let mut strays = addresses.filter(|at| is_stray(at, self.state, &self.rules.related, &read.view.seen));
            if strays.any(|at| self.users_of(&at).is_empty()) {
                strange.push(entry);
            }
        }
        strange
    }

    /// Adds what is no longer named, and has not been for a while.
    async fn add_absent(&self, read: &mut RelatedRead, strange: &[usize]) {
        let unnamed = self.unnamed(read);
        if !unnamed.is_empty()
            && let Err(source) = self.shared.ask_about_others(self.kcp, self.rules, self.key, self.state).await
        {
            let identifier = self.rules.name.clone();
            read.problems.push(ReadError::Server { identifier, source });
        }
        let mut strays = Vec::new();
        for (entry, rules) in self.rules.related.iter().enumerate() {
            if strange.contains(&entry) && !read.view.unknown.contains(&entry) {
                match self.strays(entry, rules, &read.view.seen).await {
                    Ok(mut found) => strays.append(&mut found),
                    Err(problem) => read.problems.push(problem),
                }
            }
        }
        let unrecorded = self.unrecorded(read);
        let record_name = |record: &Record| format!("{} {} {}", record.identifier, record.origin, record.copy);
        let stray_name = |stray: &Stray| format!("{} {}", stray.at, stray.object["metadata"]["uid"]);
        let records = unnamed.iter().map(|(_, record)| record_name(record));
        let names: Vec<String> = records
            .chain(strays.iter().map(stray_name))
            .chain(unrecorded.iter().map(RememberedObject::to_string))
            .collect();
        let context = &self.shared.context;
        let lasting = self.shared.related.absences.all(&self.user, &names, Instant::now(), context.timing.grace);
        if lasting.len() < names.len() {
            read.unseen = Unseen::Appearance;
        }
        for (key, record) in unnamed {
            if !lasting.contains(&record_name(&record)) {
                read.view.unknown.extend(self.entry_of(&record));
                continue;
            }
            match self.dropped(key, record).await {
                Ok(dropped) => read.view.dropped.push(dropped),
                Err(problem) => read.problems.push(problem),
            }
        }
        read.view.strays.extend(strays.into_iter().filter(|stray| lasting.contains(&stray_name(stray))));
        for remembered in unrecorded.into_iter().filter(|it| lasting.contains(&it.to_string())) {
            match self.held_by_another_agent(&remembered).await {
                Ok(dropped) => read.view.dropped.extend(dropped),
                Err(problem) => read.problems.push(problem),
            }
        }
    }

    /// Originals in kcp that the reference agent has held for this primary, without a record, and that are no longer named.
    fn unrecorded(&self, read: &RelatedRead) -> Vec<RememberedObject> {
        let related = &self.rules.related;
        let is_unknown = |entry: &usize| related.get(*entry).is_some_and(|rules| rules.origin == Origin::Kcp);
        if read.view.unknown.iter().any(is_unknown) {
            return Vec::new();
        }
        let is_named = |remembered: &RememberedObject| {
            read.view.seen.iter().any(|seen| {
                let metadata = &seen.origin["metadata"];
                related.get(seen.entry).is_some_and(|rules| rules.origin == Origin::Kcp)
                    && seen.origin_kind.kind == remembered.kind
                    && seen.origin_kind.group == remembered.group()
                    && metadata["namespace"].as_str().unwrap_or_default() == remembered.namespace
                    && metadata["name"] == *remembered.name
            })
        };
        let mut unrecorded = self.state.others_of_consumer(self.key);
        unrecorded.retain(|remembered| !is_named(remembered));
        unrecorded
    }

    /// One of them as it is now. Nobody knows where its copy is; marks lead there. One that may be a primary itself is left alone.
    async fn held_by_another_agent(&self, remembered: &RememberedObject) -> Result<Option<DroppedSeen>, ReadError> {
        let failed = |source| ReadError::Server { identifier: self.rules.name.clone(), source };
        let Some(kind) = held::kind_of(self.kcp, remembered).await.map_err(failed)? else { return Ok(None) };
        if self.shared.related.primaries.are_of(&kind) {
            return Ok(None);
        }
        let namespace = kind.namespaced.then(|| remembered.namespace.clone());
        let at = ObjectAddress { side: KCP_SIDE, kind: kind.into(), namespace, name: remembered.name.clone() };
        let key = entry_key(&self.key.cluster, &remembered.namespace, &remembered.name);
        let record = Record { identifier: String::new(), origin: at.clone(), copy: at.clone(), uid: None, how: None };
        let origin = self.original(&record).await?;
        Ok(Some(DroppedSeen { key, origin, copy: None, others: self.users_of(&at), record }))
    }

    /// What is remembered but no longer named, as far as that is known.
    fn unnamed(&self, read: &RelatedRead) -> Vec<(String, Record)> {
        let mut unnamed = unnamed(self.state, &self.rules.related, &read.view.seen);
        unnamed.retain(|(_, record)| self.entry_of(record).is_none_or(|entry| !read.view.unknown.contains(&entry)));
        unnamed
    }

    fn entry_of(&self, record: &Record) -> Option<usize> {
        self.rules.related.iter().position(|rules| rules.identifier == record.identifier)
    }

    /// Whether the servers themselves have both primaries.
    async fn are_there(&self, copy: &Value) -> Result<bool, ReadError> {
        let there = async |client: &Client, kind: &ApiKind, object: &Value| {
            let text = |key: &str| object["metadata"][key].as_str();
            let found = client.get(&resource(kind), text("namespace"), text("name").unwrap_or_default()).await;
            let found = found.map_err(|source| ReadError::Server { identifier: self.rules.name.clone(), source })?;
            Ok::<_, ReadError>(found.is_some_and(|found| found["metadata"]["uid"] == object["metadata"]["uid"]))
        };
        Ok(there(self.kcp, &self.rules.remote, self.source).await?
            && there(self.client(SERVICE_SIDE), &self.rules.local, copy).await?)
    }

    async fn dropped(&self, key: String, record: Record) -> Result<DroppedSeen, ReadError> {
        let (origin, copy) = (self.original(&record).await?, self.object(&record, &record.copy).await?);
        Ok(DroppedSeen { key, origin, copy, others: self.shared.others(self.rules, self.key, &record), record })
    }

    /// The same for a primary that goes: what is out of reach for good is not waited for.
    async fn last_of_dropped(
        &self,
        key: String,
        record: Record,
        problems: &mut Vec<ReadError>,
    ) -> Result<DroppedSeen, ReadError> {
        let (mut found, told) = (Vec::new(), problems.len());
        for (at, answer) in
            [(&record.origin, self.original(&record).await), (&record.copy, self.object(&record, &record.copy).await)]
        {
            found.push(match answer {
                Err(problem) if at.side == KCP_SIDE && self.is_final("get", &problem).await => {
                    problems.push(problem);
                    None
                }
                answer => answer?,
            });
        }
        let (copy, origin) = (found.pop().flatten(), found.pop().flatten());
        // Our finalizer keeps it from the moment on when it is copied, unless it was let go just now.
        let at = &record.origin;
        let was_held = at.side == KCP_SIDE && self.state.entry(&key).is_some_and(|entry| entry.last.is_some());
        let is_missing = was_held && origin.is_none() && told == problems.len();
        if is_missing && !self.shared.let_go.has(self.key, at) && self.may_be_hidden(&record).await? {
            problems.push(ReadError::Hidden { identifier: record.identifier.clone(), at: at.to_string() });
        }
        Ok(DroppedSeen { key, origin, copy, others: self.shared.others(self.rules, self.key, &record), record })
    }

    /// The original, if it can be held. Nothing depends on those of the service.
    async fn original(&self, record: &Record) -> Result<Option<Value>, ReadError> {
        match record.origin.side.role {
            Role::Consumer => self.object(record, &record.origin).await,
            Role::Provider => Ok(None),
        }
    }

    async fn object(&self, record: &Record, at: &ObjectAddress) -> Result<Option<Value>, ReadError> {
        let gvr = gvr_of(at);
        match self.client(at.side).get_served(&resource(&at.kind), at.namespace.as_deref(), &at.name).await {
            // Where there is no such kind, there are no such objects.
            Err(error) if error.is_not_found() && !self.is_served(&record.identifier, at.side, &gvr).await? => Ok(None),
            found => found.map_err(|source| ReadError::of(&record.identifier, at.side, &gvr, source)),
        }
    }

    /// Adds who else uses the objects.
    fn add_others(&self, read: &mut RelatedRead) {
        for seen in &mut read.view.seen {
            if let Some(rules) = self.rules.related.get(seen.entry) {
                seen.others = self.shared.others(self.rules, self.key, &seen.record(rules));
            }
        }
    }

    /// All copies with the marks of an entry that are neither named nor remembered, as the server says.
    async fn strays(&self, entry: usize, rules: &Related, seen: &[RelatedSeen]) -> Result<Vec<Stray>, ReadError> {
        let ((_, side), gvr, marks) = (sides(rules.origin), &rules.destination, self.marks(rules));
        let failed = |source| ReadError::of(&rules.identifier, side, gvr, source);
        let kind = self.shared.related.kinds.find(side, self.client(side), gvr).await.map_err(failed)?;
        let Some(kind) = kind else { return Err(no_kind(rules, side, gvr)) };
        let listed = self.client(side).list(&resource(&kind.kind), None, &ListOptions::labels(marks.selector())).await;
        let listed = match listed {
            Err(error) if is_unserved(&error) => return Err(no_kind(rules, side, gvr)),
            listed => listed.map_err(failed)?,
        };
        let mut strays = Vec::new();
        for object in listed {
            let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
            let namespace = kind.kind.namespaced.then(|| text("namespace"));
            let at = ObjectAddress { side, kind: kind.kind.clone(), namespace, name: text("name") };
            if is_stray(&at, self.state, &self.rules.related, seen) {
                // Lists do not say who wrote what.
                let found = self.client(side).get(&resource(&kind.kind), at.namespace.as_deref(), &at.name).await;
                let Some(object) = found.map_err(failed)? else { continue };
                let others = self.users_of(&at);
                strays.push(Stray { entry, at, object, others });
            }
        }
        Ok(strays)
    }

    /// Other primaries that use an object, as a copy or as an original.
    fn users_of(&self, at: &ObjectAddress) -> Vec<OtherUser> {
        let record = Record { identifier: String::new(), origin: at.clone(), copy: at.clone(), uid: None, how: None };
        self.shared.others(self.rules, self.key, &record)
    }

    fn marks(&self, rules: &Related) -> Provenance {
        Provenance::of(self.key, &self.rules.name, &rules.identifier, &self.rules.agent_name)
    }

    /// Whether a right is missing so clearly, or has been for so long, that the end of a primary no longer waits for it.
    async fn is_final(&self, deed: &str, problem: &ReadError) -> bool {
        let ReadError::Forbidden(problem) = problem else { return false };
        let Forbidden { identifier, side, gvr, source, .. } = &**problem;
        if *side == KCP_SIDE {
            return self.reaching().is_lost(&address(*side, gvr, String::new(), identifier.clone()), source).await;
        }
        let (related, grace) = (&self.shared.related, self.shared.context.timing.grace);
        related.refusals.one(&self.user, &format!("{deed} {identifier}"), Instant::now(), grace)
    }

    /// Whether the consumer's claims may hide an original that the server does not show. An agent that was killed after it had let one go
    /// finds neither the original nor a word about it.
    async fn may_be_hidden(&self, record: &Record) -> Result<bool, ReadError> {
        let failed = |source| ReadError::Server { identifier: record.identifier.clone(), source };
        self.reaching().may_be_hidden(&record.origin).await.map_err(failed)
    }

    fn reaching(&self) -> Reaching<'_> {
        Reaching { reach: &self.shared.reach, kcp: self.kcp, order: self.key }
    }

    /// The right is there: the grace period starts anew should it be missing later.
    fn is_granted(&self, deed: &str, identifier: &str) {
        self.shared.related.refusals.forget_one(&self.user, &format!("{deed} {identifier}"));
    }

    /// Whether an object may be written, as far as is known. One that may not is reported.
    fn can_reach(&self, rules: &Related, at: &ObjectAddress, problems: &mut Vec<ReadError>) -> bool {
        if !self.shared.related.is_given_up(&self.user, &at.to_string()) {
            return true;
        }
        let (identifier, way_out) = (rules.identifier.clone(), way_out(at.side, &gvr_of(at)));
        problems.push(ReadError::LeftBehind { identifier, side: at.side, at: at.to_string(), way_out });
        false
    }

    /// Leaves out what consumers no longer let the agent write: nobody can withdraw it.
    fn leave_behind(&self, read: &mut RelatedRead) {
        let mut lost = HashSet::new();
        let (related, problems) = (&self.rules.related, &mut read.problems);
        for (number, seen) in read.view.seen.iter_mut().enumerate() {
            let Some(rules) = related.get(seen.entry) else { continue };
            let record = seen.record(rules);
            for at in [&record.origin, &record.copy] {
                if at.side == KCP_SIDE && !self.can_reach(rules, at, problems) {
                    if at == &record.copy {
                        seen.destination = None;
                    } else {
                        lost.insert(number);
                    }
                }
            }
        }
        let mut number = 0;
        read.view.seen.retain(|_| {
            number += 1;
            !lost.contains(&(number - 1))
        });
        for dropped in &mut read.view.dropped {
            let record = &dropped.record;
            let Some(rules) = related.iter().find(|rules| rules.identifier == record.identifier) else { continue };
            if record.copy.side == KCP_SIDE && !self.can_reach(rules, &record.copy, problems) {
                dropped.copy = None;
            }
            if record.origin.side == KCP_SIDE && !self.can_reach(rules, &record.origin, problems) {
                dropped.origin = None;
            }
        }
    }
}

/// Whether known copies of an entry are still being deleted. Marked ones are looked for only after that.
fn is_busy(read: &RelatedRead, entry: usize, rules: &Related) -> bool {
    let seen = read.view.seen.iter().filter(|seen| seen.entry == entry);
    let seen = seen.map(|seen| (&seen.destination, &seen.others));
    let dropped = read.view.dropped.iter().filter(|dropped| dropped.record.identifier == rules.identifier);
    let dropped = dropped.map(|dropped| (&dropped.copy, &dropped.others));
    seen.chain(dropped).any(|(copy, others)| copy.is_some() && !others.iter().any(|other| other.copy))
}

/// The address of an object of which only names are known.
fn address(side: Side, gvr: &Gvr, namespace: String, name: String) -> ObjectAddress {
    let kind = ApiKind {
        group: gvr.group.clone(),
        version: gvr.version.clone(),
        kind: String::new(),
        plural: gvr.resource.clone(),
        namespaced: !namespace.is_empty(),
    };
    ObjectAddress {
        side,
        kind: kind.into(),
        namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
        name,
    }
}
