//! Content: the writes that bring a copy in line with what the rules make of its source.

use serde_json::{Map, Value};

use crate::drift::Field;
use crate::edit::{Edit, Guard, apply, edits, set as set_field};
use crate::kind::ApiKind;
use crate::link::Link;
use crate::mark::Mark;
use crate::memory::{Applied, StateEntry, sum};
use crate::object::{annotation, label, set};
use crate::vocabulary::Vocabulary;

/// How many writes that were refused or never answered are remembered before the copy gets a new mark: each takes as much room as its content.
const MOST_BEGUN: usize = 2;

/// Keys that never belong to the desired state of a copy.
const IDENTITY: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Metadata that identifies an object.
const PLACE: [&str; 3] = ["name", "namespace", "generateName"];

/// How the content of a copy is brought in line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ContentChange {
    /// It is in line, and that is remembered.
    None,
    /// It is in line, but that is not remembered yet.
    Remember,
    /// Make these changes, if nobody else has written the copy in the meantime.
    Edit {
        /// What changes.
        edits: Vec<Edit>,
        /// The precondition: the copy they were computed for.
        guard: Guard,
    },
    /// Change nothing but the mark, so that other writes that were once begun cannot arrive any more, or nothing at all, only to make sure;
    /// and remember what is there then.
    Void {
        /// The new mark, if it needs one.
        edits: Vec<Edit>,
        /// The precondition.
        guard: Guard,
        /// The desired state that the copy is in.
        state: Value,
    },
    /// Apply the desired state.
    Apply {
        /// Top-level fields that differ.
        fields: Vec<Edit>,
        /// Whether it may have been written in another way before.
        first: bool,
    },
    /// It is not known what was written before: overwrite the copy with the whole desired state.
    Replace(Value),
    /// More of the memory must be read first.
    Unknown,
}

/// A copy and its desired state.
pub(crate) struct CopyContent<'a> {
    /// What the agent writes into metadata.
    pub vocabulary: &'static Vocabulary,
    /// The desired state.
    pub desired: &'a Value,
    /// The copy.
    pub copy: &'a Value,
    /// What is remembered.
    pub entry: Option<&'a StateEntry>,
    /// Whether the memory holds more than has been read.
    pub partial: bool,
    /// Link and agent name, for copies that carry them.
    pub link: Option<(&'a Link, &'a str)>,
    /// Whether the copy carries the checksum of what was written last.
    pub is_marked: bool,
    /// Top-level fields that are not content.
    pub subresources: &'a [&'a str],
    /// The number of the last write that is remembered; a copy that was restored carries a lower one.
    pub floor: u64,
}

/// The state to remember for a source: stripped metadata, no subresources.
pub fn remembered(vocabulary: &Vocabulary, source: &Value, subresources: &[&str]) -> Value {
    let mut state = vocabulary.strip(source);
    drop_keys(&mut state, subresources);
    state
}

impl CopyContent<'_> {
    /// Compares the remembered state with the desired one. Fields that were changed only on the copy are left alone.
    pub fn compare(&self) -> ContentChange {
        let desired_sum = sum(self.desired);
        let change = self.change(&desired_sum);
        if change != ContentChange::Remember {
            return change;
        }
        // Whatever was begun before may still arrive, and would find the copy that it was meant for.
        let may_arrive = self.entry.is_some_and(|entry| entry.intends_other_than(&desired_sum));
        match (self.is_marked, self.entry.and_then(|entry| entry.last.as_ref())) {
            (false, None) => change,
            // Nothing but content can be changed: what may arrive stays remembered, and is undone if it does.
            (false, Some(_)) if may_arrive => ContentChange::None,
            // The copy may be another one than a cache shows: nothing is taken for written that no write has found there.
            _ => self.void(self.desired, may_arrive),
        }
    }

    fn change(&self, desired_sum: &str) -> ContentChange {
        let mark = self.mark().map(Mark::read);
        let is_written = self.is_marked && mark.as_ref().is_some_and(|mark| mark.sum == desired_sum);
        let Some(last) = self.entry.and_then(|entry| entry.last.as_ref()) else {
            // The state was lost, but the checksum on the copy shows that this was written to it.
            return if is_written && self.repairs().is_empty() { ContentChange::Remember } else { self.overwrite() };
        };
        let next = self.entry.map(|entry| entry.next.as_slice()).unwrap_or_default();
        // The checksum is written together with the content: if it matches the last state, later ones have not arrived.
        let certain =
            next.is_empty() || mark.is_some_and(|mark| self.is_marked && !mark.applied && mark.sum == last.sum());
        let mut changes = self.repairs();
        if changes.is_empty() && certain && last.sum() == desired_sum {
            return if next.is_empty() { ContentChange::None } else { ContentChange::Remember };
        }
        if let Some(last) = last.whole().filter(|_| certain && self.is_marked && next.len() >= MOST_BEGUN) {
            return self.void(last, true);
        }
        let mut before = vec![last];
        if !certain {
            before.extend(next);
        }
        let Some(before) = before.into_iter().map(Applied::whole).collect::<Option<Vec<_>>>() else {
            // The server remembers what was applied, and that is exactly what is desired.
            if is_written && changes.is_empty() && self.entry.is_some_and(StateEntry::is_applied) {
                return ContentChange::Remember;
            }
            return if self.partial { ContentChange::Unknown } else { self.overwrite() };
        };
        let before: Vec<Value> = before.into_iter().map(|state| self.comparable(state)).collect();
        let mut content = edits(&before.iter().collect::<Vec<_>>(), &self.comparable(self.desired), self.copy);
        content.append(&mut changes);
        if content.is_empty() {
            let is_same = before.iter().all(|state| *state == self.comparable(self.desired));
            return if is_same && next.is_empty() { ContentChange::None } else { ContentChange::Remember };
        }
        for (key, value) in self.link.iter().flat_map(|(link, _)| link.marks.iter().chain(&link.notes)) {
            set_field(&mut content, self.copy, &["metadata", "annotations", key], value);
        }
        if self.is_marked {
            self.count(desired_sum, &mut content);
        }
        ContentChange::Edit { edits: content, guard: self.guard() }
    }

    /// Sets fields back to what is desired, and leaves all others alone.
    pub fn revert(&self, fields: &[Field]) -> (Vec<Edit>, Guard) {
        let mut before = self.comparable(self.desired);
        let lost: Vec<Edit> = fields.iter().map(|field| Edit { path: field.keys.clone(), value: None }).collect();
        apply(&lost, &mut before);
        let mut edits = edits(&[&before], &self.comparable(self.desired), self.copy);
        if self.is_marked {
            self.count(&sum(self.desired), &mut edits);
        }
        (edits, self.guard())
    }

    /// The mark on the copy as it is.
    fn mark(&self) -> Option<&str> {
        annotation(self.copy, self.vocabulary.applied_state)
    }

    /// The next mark, which was never seen on this copy before, not even before it was restored.
    fn next_mark(&self, sum: &str) -> Mark {
        let mut mark = Mark::after(self.mark(), sum.to_owned(), false);
        mark.number = mark.number.max(self.floor.saturating_add(u64::from(self.floor > 0)));
        mark
    }

    /// Adds the next mark to edits.
    fn count(&self, sum: &str, edits: &mut Vec<Edit>) {
        let next = self.next_mark(sum).to_string();
        set_field(edits, self.copy, &["metadata", "annotations", self.vocabulary.applied_state], &next);
    }

    /// What must still hold when an edit arrives: no mark is ever seen twice, but that there is none can be seen again.
    fn guard(&self) -> Guard {
        let text = |field: &str| self.copy["metadata"][field].as_str().unwrap_or_default().to_owned();
        match self.mark().filter(|_| self.is_marked) {
            Some(mark) => Guard::Mark { key: self.vocabulary.applied_state, value: mark.to_owned(), uid: text("uid") },
            None => Guard::Version(text("resourceVersion")),
        }
    }

    /// Makes sure that a copy is in a state, and by a new mark that nothing else arrives on it. Where nothing can, a write that changes
    /// nothing is enough; if nothing is remembered, nobody knows.
    fn void(&self, state: &Value, may_arrive: bool) -> ContentChange {
        let mut edits = Vec::new();
        let is_forgotten = self.entry.is_none_or(|entry| entry.last.is_none());
        if self.is_marked && (may_arrive || is_forgotten && self.mark().is_some()) {
            self.count(&sum(state), &mut edits);
        }
        ContentChange::Void { edits, guard: self.guard(), state: state.clone() }
    }

    /// Compares what was applied last, according to the copy or else to the remembered state, with what is desired. Fields that were
    /// changed only on the copy are left alone until something else is desired.
    pub fn apply(&self) -> ContentChange {
        let last = self.entry.and_then(|entry| entry.last.as_ref()).map(Applied::sum);
        let next = self.entry.is_some_and(|entry| !entry.next.is_empty());
        let mark = self.mark().filter(|_| self.is_marked);
        let written = mark.or(last.as_deref().filter(|_| !next)).map(Mark::read).unwrap_or_default();
        let desired_sum = sum(self.desired);
        if written.sum == desired_sum && self.repairs().is_empty() {
            let is_known = last.is_some() && (self.is_marked || !next);
            return if is_known { ContentChange::None } else { ContentChange::Remember };
        }
        if !self.is_marked && self.is_unmoved(last.as_deref(), &desired_sum) {
            return ContentChange::None;
        }
        let desired = self.comparable(self.desired);
        let changed =
            desired.as_object().into_iter().flatten().filter(|(key, value)| self.copy.get(key) != Some(value));
        let fields = changed.map(|(key, value)| Edit { path: vec![key.clone()], value: Some(value.clone()) }).collect();
        ContentChange::Apply { fields, first: !written.applied }
    }

    /// Whether a copy without a mark is as desired, and nothing of what was begun since has arrived on it.
    fn is_unmoved(&self, last: Option<&str>, desired_sum: &str) -> bool {
        let Some(entry) = self.entry.filter(|entry| entry.intends_other_than(desired_sum)) else { return false };
        let intended: Option<Vec<Value>> = entry.next.iter().map(|next| Some(self.comparable(next.whole()?))).collect();
        let is_last = last.is_some_and(|last| Mark::read(last).sum == desired_sum);
        is_last
            && self.repairs().is_empty()
            && intended.is_some_and(|intended| {
                edits(&intended.iter().collect::<Vec<_>>(), &self.comparable(self.desired), self.copy).is_empty()
            })
    }

    /// The part of a state that is content, always with labels and annotations, even if they are empty: removing the last label of a
    /// source must not remove labels that only the copy has, such as its link.
    fn comparable(&self, state: &Value) -> Value {
        let mut state = state.clone();
        drop_keys(&mut state, self.subresources);
        // Renaming the kind on the consumers' side does not change the copy.
        drop_keys(&mut state, &["apiVersion", "kind"]);
        if let Some(metadata) = state.get_mut("metadata").and_then(Value::as_object_mut) {
            // A copy keeps its namespace and name, whatever the rules make of the name of its source.
            metadata.retain(|key, _| !PLACE.contains(&key.as_str()));
            for field in ["labels", "annotations"] {
                metadata.entry(field).or_insert_with(|| Map::new().into());
            }
        }
        state
    }

    /// Edits that restore labels and annotations of the link where the copy lacks them or leads to another source.
    fn repairs(&self) -> Vec<Edit> {
        let mut edits = Vec::new();
        let Some((link, agent_name)) = self.link else { return edits };
        for (key, value) in link
            .labels
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .chain([(self.vocabulary.agent_name, agent_name)])
        {
            if label(self.copy, key) != Some(value) {
                set_field(&mut edits, self.copy, &["metadata", "labels", key], value);
            }
        }
        for (key, value) in &link.annotations {
            if annotation(self.copy, key) != Some(value) {
                set_field(&mut edits, self.copy, &["metadata", "annotations", key], value);
            }
        }
        for (key, value) in wrong_marks(link, self.copy) {
            set_field(&mut edits, self.copy, &["metadata", "annotations", key], value);
        }
        edits
    }

    /// Overwrites the copy with the whole desired state; nothing if that changes nothing.
    pub fn overwrite(&self) -> ContentChange {
        match overwritten(self.vocabulary, self.desired, self.copy, self.link, self.subresources) {
            Some(mut object) => {
                if self.is_marked {
                    let mark = self.next_mark(&sum(self.desired));
                    set(&mut object, "annotations", self.vocabulary.applied_state, &mark.to_string());
                }
                ContentChange::Replace(object)
            }
            None => ContentChange::Remember,
        }
    }
}

/// The annotations that name another source on the copy, such as an earlier one that it was handed over from. Missing ones do not count:
/// the reference agent writes none.
fn wrong_marks<'a>(link: &'a Link, copy: &Value) -> impl Iterator<Item = (&'static str, &'a str)> {
    let is_wrong = |(key, value): &&(&'static str, String)| annotation(copy, key).is_some_and(|there| there != value);
    link.marks.iter().filter(is_wrong).map(|(key, value)| (*key, value.as_str()))
}

/// The copy with the desired content and nothing else changed; `None` if nothing is desired.
pub(crate) fn with_content(desired: &Value, copy: &Value, subresources: &[&str]) -> Option<Value> {
    let mut out = copy.clone();
    for (key, value) in desired.as_object()? {
        if !IDENTITY.contains(&key.as_str()) && !subresources.contains(&key.as_str()) {
            out[key] = value.clone();
        }
    }
    for field in ["labels", "annotations"] {
        for (key, value) in desired["metadata"][field].as_object().unwrap_or(&Map::new()) {
            set(&mut out, field, key, value.as_str().unwrap_or_default());
        }
    }
    Some(out)
}

/// The copy with the whole desired state; `None` if it has that already.
pub(crate) fn overwritten(
    vocabulary: &Vocabulary,
    desired: &Value,
    copy: &Value,
    link: Option<(&Link, &str)>,
    subresources: &[&str],
) -> Option<Value> {
    let mut out = with_content(desired, copy, subresources)?;
    let Some((link, agent_name)) = link else { return (out != *copy).then_some(out) };
    let unmarked = Link { marks: Vec::new(), notes: Vec::new(), ..link.clone() };
    unmarked.write(&mut out, vocabulary, agent_name);
    if out == *copy && wrong_marks(link, copy).next().is_none() {
        return None;
    }
    link.write(&mut out, vocabulary, agent_name);
    Some(out)
}

/// Whether a copy has exactly the desired state and no other content.
pub fn is_exact(desired: &Value, copy: &Value, subresources: &[&str]) -> bool {
    let is_content = |key: &str| !IDENTITY.contains(&key) && !subresources.contains(&key);
    let mut content = copy.as_object().into_iter().flat_map(Map::keys).filter(|key| is_content(key));
    content.all(|key| desired.get(key).is_some())
        && with_content(desired, copy, subresources).is_none_or(|out| out == *copy)
}

/// Whether the server would refuse edits because the fields are immutable: the type of a Secret, and the content of immutable objects.
pub(crate) fn is_refused(kind: &ApiKind, copy: &Value, edits: &[Edit]) -> bool {
    let changes =
        |keys: &[&str]| edits.iter().any(|edit| edit.path.first().is_some_and(|key| keys.contains(&key.as_str())));
    let frozen = copy["immutable"] == true && changes(&["immutable", "data", "binaryData", "stringData"]);
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Secret") => frozen || changes(&["type"]),
        ("", "ConfigMap") => frozen,
        _ => false,
    }
}

/// Removes top-level keys.
pub(crate) fn drop_keys(object: &mut Value, keys: &[&str]) {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|key, _| !keys.contains(&key.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::apply;
    use crate::vocabulary::tests::WORDS;
    use serde_json::json;

    fn entry(last: &Value, next: &[&Value]) -> StateEntry {
        let whole = |value: &Value| Applied::Whole(value.clone());
        StateEntry {
            last: Some(whole(last)),
            next: next.iter().map(|value| whole(value)).collect(),
            ..StateEntry::default()
        }
    }

    fn compare(desired: &Value, copy: &Value, entry: Option<&StateEntry>, subresources: &[&str]) -> ContentChange {
        CopyContent {
            vocabulary: &WORDS,
            desired,
            copy,
            entry,
            partial: false,
            link: None,
            is_marked: false,
            subresources,
            floor: 0,
        }
        .compare()
    }

    /// What becomes of the copy.
    fn changed(desired: &Value, copy: &Value, entry: &StateEntry) -> Value {
        let mut out = copy.clone();
        if let ContentChange::Edit { edits, .. } = compare(desired, copy, Some(entry), &[]) {
            apply(&edits, &mut out);
        }
        out
    }

    #[test]
    fn only_what_changed_in_the_source_is_changed() {
        let last = json!({"spec": {"a": 1, "b": 2}});
        let desired = json!({"spec": {"a": 1, "b": 3}});
        let copy = json!({"spec": {"a": 99, "b": 2}});
        assert_eq!(changed(&desired, &copy, &entry(&last, &[])), json!({"spec": {"a": 99, "b": 3}}));
        assert_eq!(compare(&last, &copy, Some(&entry(&last, &[])), &[]), ContentChange::None);
    }

    #[test]
    fn what_a_server_never_changes_is_known() {
        let kind = |kind: &str| ApiKind {
            group: String::new(),
            version: "v1".into(),
            kind: kind.into(),
            plural: String::new(),
            namespaced: true,
        };
        let edit =
            |path: &[&str]| Edit { path: path.iter().map(|key| (*key).to_owned()).collect(), value: Some(json!(1)) };
        for (kind, copy, edits, refused) in [
            (kind("Secret"), json!({}), vec![edit(&["type"])], true),
            (kind("Secret"), json!({}), vec![edit(&["data", "a"]), edit(&["immutable"])], false),
            (kind("Secret"), json!({"immutable": true}), vec![edit(&["data", "a"])], true),
            (kind("Secret"), json!({"immutable": true}), vec![edit(&["metadata", "labels", "a"])], false),
            (kind("ConfigMap"), json!({"immutable": true}), vec![edit(&["immutable"])], true),
            (kind("ConfigMap"), json!({}), vec![edit(&["type"])], false),
            (kind("Other"), json!({"immutable": true}), vec![edit(&["data"])], false),
        ] {
            assert_eq!(is_refused(&kind, &copy, &edits), refused, "{} {edits:?}", kind.kind);
        }
    }

    #[test]
    fn after_a_crash_both_possible_states_lead_to_the_desired_one() {
        let last = json!({"spec": {"a": 1}});
        let next = json!({"spec": {"a": 2, "b": 5}});
        for desired in [&last, &next] {
            for copy in [&last, &next] {
                assert_eq!(changed(desired, copy, &entry(&last, &[&next])), *desired);
            }
        }
    }

    #[test]
    fn what_was_begun_is_forgotten_only_with_a_new_mark() {
        let last = json!({"metadata": {}, "spec": {"a": 1}});
        let next = json!({"metadata": {}, "spec": {"a": 2}});
        let entry = entry(&last, &[&next]);
        let marked = |mark: String| json!({"metadata": {"uid": "u", "annotations": {WORDS.applied_state: mark}}, "spec": {"a": 7}});
        let of = compare_marked;
        for (before, after) in [(sum(&last), 1), (format!("{}.4", sum(&last)), 5)] {
            let copy = marked(before.clone());
            let ContentChange::Void { edits, guard, state } = of(&last, &copy, &entry, true) else { panic!() };
            let mark = json!(format!("{}.{after}", sum(&last)));
            assert_eq!((edits.len(), edits[0].value.as_ref()), (1, Some(&mark)), "whatever else is on it stays");
            assert_eq!((guard, state), (guard_of(&before), last.clone()));
            let ContentChange::Edit { edits, guard } = of(&next, &copy, &entry, true) else { panic!() };
            assert_eq!((edits.len(), guard), (2, guard_of(&before)), "the operator's change counts as the last state");
        }
        let arrived =
            json!({"metadata": {"uid": "u", "annotations": {WORDS.applied_state: sum(&next)}}, "spec": {"a": 2}});
        let ContentChange::Void { edits, guard, state } = of(&next, &arrived, &entry, true) else { panic!() };
        assert_eq!((edits, guard), (Vec::new(), guard_of(&sum(&next))), "a cache may show what was there before");
        assert_eq!(state, next);
        let unmarked = json!({"metadata": {"resourceVersion": "7"}, "spec": {"a": 1}});
        assert_eq!(of(&last, &unmarked, &entry, false), ContentChange::None, "it stays remembered, in case it arrives");
        let late = json!({"metadata": {"resourceVersion": "8"}, "spec": {"a": 2}});
        let ContentChange::Edit { guard, .. } = of(&last, &late, &entry, false) else { panic!() };
        assert_eq!(guard, Guard::Version("8".into()), "and is undone then");
        let ContentChange::Edit { guard, .. } = of(&next, &unmarked, &entry, true) else { panic!() };
        assert_eq!(guard, Guard::Version("7".into()), "that there is no mark may be seen twice");
    }

    #[test]
    fn writes_that_are_refused_again_and_again_do_not_make_the_copy_unknown() {
        let last = json!({"metadata": {}, "spec": {"a": 0}});
        let refused: Vec<Value> = (1..=MOST_BEGUN).map(|a| json!({"metadata": {}, "spec": {"a": a}})).collect();
        let entry = entry(&last, &refused.iter().collect::<Vec<_>>());
        let copy =
            json!({"metadata": {"annotations": {WORDS.applied_state: sum(&last)}}, "spec": {"a": 0, "theirs": 1}});
        let desired = json!({"metadata": {}, "spec": {"a": 9}});
        let ContentChange::Void { state, .. } = compare_marked(&desired, &copy, &entry, true) else { panic!() };
        assert_eq!(state, last);
    }

    fn compare_marked(desired: &Value, copy: &Value, entry: &StateEntry, is_marked: bool) -> ContentChange {
        let (vocabulary, entry) = (&WORDS, Some(entry));
        CopyContent {
            vocabulary,
            desired,
            copy,
            entry,
            partial: false,
            link: None,
            is_marked,
            subresources: &[],
            floor: 0,
        }
        .compare()
    }

    fn guard_of(mark: &str) -> Guard {
        Guard::Mark { key: WORDS.applied_state, value: mark.to_owned(), uid: "u".into() }
    }

    #[test]
    fn a_checksum_alone_shows_only_whether_something_changed() {
        let (last, desired) = (json!({"spec": {"a": 1}}), json!({"spec": {"a": 2}}));
        let entry = StateEntry { last: Some(Applied::Sum(sum(&last))), ..StateEntry::default() };
        let compare = |desired: &Value, partial| {
            CopyContent {
                vocabulary: &WORDS,
                desired,
                copy: &last,
                entry: Some(&entry),
                partial,
                link: None,
                is_marked: false,
                subresources: &[],
                floor: 0,
            }
            .compare()
        };
        assert_eq!(compare(&last, true), ContentChange::None);
        assert_eq!(compare(&desired, true), ContentChange::Unknown);
        assert_eq!(compare(&desired, false), ContentChange::Replace(desired.clone()));
    }

    #[test]
    fn a_new_name_of_the_source_does_not_move_the_copy() {
        let last = json!({"metadata": {"name": "a", "namespace": "x", "labels": {"l": "1"}}, "spec": {}});
        let renamed = json!({"metadata": {"name": "b", "namespace": "y", "labels": {"l": "1"}}, "spec": {}});
        let copy = json!({"metadata": {"name": "c", "labels": {"l": "1", "theirs": "2"}}, "spec": {}});
        assert_eq!(compare(&renamed, &copy, Some(&entry(&last, &[])), &[]), ContentChange::None);
        let relabelled = json!({"metadata": {"name": "b", "namespace": "y"}, "spec": {}});
        let labels = &changed(&relabelled, &copy, &entry(&last, &[]))["metadata"]["labels"];
        assert_eq!(*labels, json!({"theirs": "2"}), "other labels stay");
    }

    #[test]
    fn without_memory_the_whole_state_is_written_unless_it_is_there() {
        let desired =
            json!({"apiVersion": "x", "metadata": {"name": "n", "labels": {"l": "1"}}, "spec": {"a": 1}, "status": {}});
        let copy = json!({"metadata": {"name": "other"}, "spec": {"a": 2}, "data": 1});
        let change = compare(&desired, &copy, None, &["status"]);
        let expected = json!({"metadata": {"name": "other", "labels": {"l": "1"}}, "spec": {"a": 1}, "data": 1});
        assert_eq!(change, ContentChange::Replace(expected.clone()));
        assert_eq!(compare(&desired, &expected, None, &["status"]), ContentChange::Remember);
    }
}
