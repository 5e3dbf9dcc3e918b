//! The laws of a pair, for either memory: a plan that was executed leaves nothing to do, and a crash after any step does no harm.

use std::sync::Arc;

use carrick_json::merge;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::address::{Role, Side};
use crate::edit;
use crate::kind::ApiKind;
use crate::memory::{Applied, PrimaryState};
use crate::ownership::applied;
use crate::transform::Unchanged;
use crate::vocabulary::tests::WORDS;

/// Both objects of a pair, as their servers have them, and what is remembered.
struct Model {
    source: Option<Value>,
    copy: Option<Value>,
    state: PrimaryState,
    /// The fields that the agent owns by applying them.
    owned: Value,
    revision: u64,
    apply: bool,
}

fn at(side: Side) -> ObjectAddress {
    let kind = ApiKind {
        group: "g".into(),
        version: "v1".into(),
        kind: "Thing".into(),
        plural: "things".into(),
        namespaced: true,
    };
    ObjectAddress { side, kind: Arc::new(kind), namespace: Some("ns".into()), name: "n".into() }
}

fn link() -> Link {
    Link { labels: Vec::new(), annotations: vec![("test/source", "s".into())], marks: Vec::new(), notes: Vec::new() }
}

impl Model {
    fn new(spec: &Value, apply: bool) -> Self {
        let metadata = json!({"name": "n", "namespace": "ns", "resourceVersion": "1", "uid": "s"});
        let source = json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": metadata, "spec": spec});
        let owned = json!({});
        Self { source: Some(source), copy: None, state: PrimaryState::default(), owned, revision: 1, apply }
    }

    fn steps(&self) -> Vec<Step> {
        let Some(source) = &self.source else { return Vec::new() };
        let link = link();
        let pair = Pair {
            vocabulary: &WORDS,
            source,
            source_at: at(WORDS.consumer),
            copy: self.copy.as_ref(),
            copy_at: at(WORDS.provider),
            entry: "e".into(),
            remembered: self.state.entry("e"),
            partial: false,
            copy_uid: None,
            how: None,
            proof: None,
            shared: false,
            vouched: true,
            ordered: false,
            circular: false,
            holder: Some("agent".into()),
            primary: true,
            link: Some((&link, "agent")),
            subresources: &["status"],
            status: StatusFlow::Back,
            transform: &Unchanged,
            offered: false,
            schema: "schema",
            apply: self.apply,
        };
        let mut steps = Vec::new();
        if is_deleting(source) {
            pair.remove(&mut steps);
        } else {
            let mut status = Vec::new();
            pair.keep(&mut steps, &mut status).unwrap();
            steps.append(&mut status);
        }
        steps.retain(|step| !matches!(step, Step::Report { .. }));
        steps
    }

    fn slot(&mut self, at: &ObjectAddress) -> &mut Option<Value> {
        match at.side.role {
            Role::Consumer => &mut self.source,
            Role::Provider => &mut self.copy,
        }
    }

    /// The server's part of a write.
    fn touch(&mut self, at: &ObjectAddress) {
        self.revision += 1;
        let revision = self.revision.to_string();
        let slot = self.slot(at);
        let Some(object) = slot else { return };
        object["metadata"]["resourceVersion"] = revision.into();
        let is_held = object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if is_deleting(object) && !is_held {
            *slot = None;
        }
    }

    fn execute(&mut self, step: Step) {
        match step {
            Step::SetFinalizers { at, finalizers, held_by, resource_version } => {
                let object = self.slot(&at).as_mut().unwrap();
                assert_eq!(object["metadata"]["resourceVersion"], resource_version.as_str());
                object["metadata"]["finalizers"] = finalizers.into();
                if let Some(held_by) = held_by {
                    merge::apply(object, &json!({"metadata": {"annotations": {WORDS.held_by: held_by}}}));
                }
                self.touch(&at);
            }
            Step::Create { at, mut object } => {
                self.owned = object.clone();
                object["metadata"]["uid"] = "u".into();
                assert!(self.slot(&at).replace(object).is_none(), "a copy is not created twice");
                self.touch(&at);
            }
            Step::Edit { at, edits, guard } => {
                let object = self.slot(&at).as_mut().unwrap();
                assert!(guard.holds(object));
                edit::apply(&edits, object);
                edit::apply(&edits, &mut self.owned);
                self.touch(&at);
            }
            Step::Apply { at, object, .. } => {
                let owned = std::mem::replace(&mut self.owned, object.clone());
                applied(&owned, &object, self.slot(&at).as_mut().unwrap());
                self.touch(&at);
            }
            Step::Replace { at, object } => {
                self.owned = object.clone();
                *self.slot(&at) = Some(object);
                self.touch(&at);
            }
            Step::WriteStatus { at, object, .. } => {
                self.slot(&at).as_mut().unwrap()["status"] = object["status"].clone();
                self.touch(&at);
            }
            Step::Delete { at, uid, .. } => {
                let object = self.slot(&at).as_mut().unwrap();
                assert_eq!(object["metadata"]["uid"], uid.as_str());
                object["metadata"]["deletionTimestamp"] = "now".into();
                self.touch(&at);
            }
            Step::RememberNext { entry, value } => self.state.note_next(&entry, value),
            Step::Remember { entry, value, copy, how, instead, .. } => {
                let copy = copy.and_then(|at| CopyNote::of(&WORDS, self.slot(&at).as_ref()?, how));
                self.state.note_written(&entry, instead.map_or(Applied::Whole(value), Applied::Sum), copy);
            }
            Step::Forget => self.state = PrimaryState::default(),
            Step::ConfirmNoCopy => assert!(self.copy.is_none()),
            Step::EnsureNamespace { .. } => {}
            other => panic!("a pair alone has no use for {other:?}"),
        }
        // What is remembered must survive a restart.
        let data = self.state.to_data();
        self.state = PrimaryState::from_data(&WORDS, data.iter().map(|(key, text)| (key.as_str(), text.as_slice())));
    }

    fn settle(&mut self) {
        for _ in 0..10 {
            let steps = self.steps();
            if steps.is_empty() {
                return;
            }
            for step in steps {
                self.execute(step);
            }
        }
        panic!("no end of steps: {:?}", self.steps());
    }

    /// Executes only the first steps, as if the agent died after them.
    fn crash_after(&mut self, count: usize) {
        self.steps().into_iter().take(count).for_each(|step| self.execute(step));
    }

    fn set_spec(&mut self, spec: Value) {
        self.source.as_mut().unwrap()["spec"] = spec;
        self.touch(&at(WORDS.consumer));
    }
}

#[test]
fn a_copy_that_is_made_again_is_not_taken_for_the_one_before() {
    let (first, second) = (json!({"a": 1}), json!({"b": 2}));
    let mut model = Model::new(&first, false);
    model.settle();
    model.copy = None;
    model.set_spec(second);
    let created = model.steps().iter().position(|step| matches!(step, Step::Create { .. })).unwrap();
    model.crash_after(created + 1);
    model.set_spec(first.clone());
    model.settle();
    assert_eq!(model.copy.unwrap()["spec"], first);
}

#[test]
fn a_late_write_is_refused_although_everything_is_as_it_was() {
    for apply in [false, true] {
        let mut model = Model::new(&json!({"a": 1}), apply);
        model.settle();
        model.set_spec(json!({"a": 2}));
        let is_write = |step: &Step| matches!(step, Step::Edit { .. } | Step::Apply { .. });
        let late = model.steps().into_iter().find(is_write).unwrap();
        model.settle();
        model.set_spec(json!({"a": 1}));
        model.settle();
        let copy = model.copy.as_ref().unwrap();
        assert_eq!(copy["spec"], json!({"a": 1}));
        match late {
            Step::Edit { guard, .. } => assert!(!guard.holds(copy)),
            Step::Apply { object, .. } => {
                assert_ne!(object["metadata"]["resourceVersion"], copy["metadata"]["resourceVersion"]);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Objects with few fields, so that they have some in common.
fn spec() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!([1, 2])), Just(json!({})), Just(Value::Null)];
    let tree = leaf.prop_recursive(3, 12, 3, |inner| {
        prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|fields| json!(fields))
    });
    prop::collection::btree_map("[abc]", tree, 0..4).prop_map(|fields| json!(fields))
}

proptest! {
    #[test]
    fn a_plan_that_was_executed_leaves_nothing_to_do([first, second] in [spec(), spec()], apply: [bool; 2]) {
        let mut model = Model::new(&first, apply[0]);
        model.settle();
        model.apply = apply[1];
        model.settle();
        model.set_spec(second.clone());
        model.settle();
        prop_assert_eq!(&model.copy.as_ref().unwrap()["spec"], &second);
    }

    #[test]
    fn a_crash_after_any_step_does_no_harm([first, second, third] in [spec(), spec(), spec()], at in 0usize..6, apply: bool) {
        let mut model = Model::new(&first, apply);
        model.crash_after(at);
        model.settle();
        model.set_spec(second);
        model.crash_after(at);
        model.set_spec(third.clone());
        model.crash_after(at / 2);
        model.settle();
        prop_assert_eq!(&model.copy.as_ref().unwrap()["spec"], &third);
        model.source.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "now".into();
        model.crash_after(at);
        model.settle();
        prop_assert!(model.copy.is_none() && model.source.is_none() && model.state.is_empty());
    }

    #[test]
    fn what_the_provider_sets_stays_until_the_consumer_changes_it([first, second] in [spec(), spec()], apply: bool) {
        let mut model = Model::new(&first, apply);
        model.settle();
        model.copy.as_mut().unwrap()["spec"]["theirs"] = json!("kept");
        model.copy.as_mut().unwrap()["status"] = json!({"ready": true});
        model.touch(&at(WORDS.provider));
        model.settle();
        prop_assert_eq!(&model.source.as_ref().unwrap()["status"], &json!({"ready": true}));
        model.set_spec(second);
        model.settle();
        prop_assert_eq!(&model.copy.as_ref().unwrap()["spec"]["theirs"], "kept");
    }
}

#[test]
fn a_copy_that_was_restored_from_a_backup_is_brought_up_to_date() {
    for apply in [false, true] {
        for uid in ["u", "restored"] {
            let mut model = Model::new(&json!({"a": 1}), apply);
            model.settle();
            model.set_spec(json!({"a": 2}));
            model.settle();
            let backup = model.copy.clone();
            model.set_spec(json!({"a": 3}));
            model.settle();
            model.copy = backup;
            model.copy.as_mut().unwrap()["metadata"]["uid"] = uid.into();
            model.touch(&at(WORDS.provider));
            model.settle();
            let copy = model.copy.as_ref().unwrap();
            assert_eq!(copy["spec"], json!({"a": 3}), "{apply} {uid}");
            let mark = Mark::read(annotation(copy, WORDS.applied_state).unwrap());
            assert!(apply || mark.number > 2, "the mark of a write is not seen again: {mark}");
        }
    }
}

#[test]
fn a_copy_whose_annotations_were_wiped_was_not_restored() {
    let mut model = Model::new(&json!({"a": 1}), false);
    model.settle();
    model.set_spec(json!({"a": 2}));
    model.settle();
    let copy = model.copy.as_mut().unwrap();
    copy["metadata"]["annotations"] = json!({"test/source": "s"});
    copy["spec"]["theirs"] = json!("kept");
    model.touch(&at(WORDS.provider));
    model.settle();
    assert_eq!(model.copy.unwrap()["spec"], json!({"a": 2, "theirs": "kept"}));
}

#[test]
fn only_a_copy_that_was_made_is_deleted_with_its_source() {
    for apply in [false, true] {
        for (how, forgotten) in [("made", false), ("adopted", false), ("linked", false), ("adopted", true), ("", true)]
        {
            let mut model = Model::new(&json!({"a": 1}), apply);
            model.settle();
            let mut note = model.state.entry("e").unwrap().copy.clone().unwrap();
            assert_eq!((note.uid.as_str(), note.how), ("u", Some(Acquired::Made)));
            let copy = model.copy.as_mut().unwrap();
            if !how.is_empty() {
                set(copy, "annotations", WORDS.acquired, how);
            }
            note.how = Acquired::of(&WORDS, copy);
            model.state.note_copy("e", note);
            model.set_spec(json!({"a": 2}));
            model.settle();
            if forgotten {
                model.state = PrimaryState::default();
            } else {
                // Somebody has removed it, but it is remembered.
                model.copy.as_mut().unwrap()["metadata"]["annotations"].as_object_mut().unwrap().remove(WORDS.acquired);
            }
            model.source.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "now".into();
            let steps = model.steps();
            let deletes = steps.iter().any(|step| matches!(step, Step::Delete { .. }));
            assert_eq!(deletes, ["made", ""].contains(&how), "{how} {forgotten}: {steps:?}");
            if !deletes {
                for step in steps {
                    model.execute(step);
                }
                assert_eq!(model.copy.as_ref().unwrap()["spec"], json!({"a": 2}));
                assert!(!model.copy.unwrap()["metadata"].to_string().contains("test/"));
            }
        }
    }
}

/// A copy on the service cluster, ended with what it says about its end.
fn ended(on_delete: Option<&str>, apply: bool) -> (Vec<Step>, Model) {
    let mut model = Model::new(&json!({"a": 1}), apply);
    model.settle();
    if let Some(word) = on_delete {
        set(model.copy.as_mut().unwrap(), "annotations", WORDS.on_delete, word);
    }
    model.set_spec(json!({"a": 2}));
    model.settle();
    model.source.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "now".into();
    (model.steps(), model)
}

#[test]
fn a_copy_stays_without_its_link_if_its_provider_says_so() {
    for apply in [false, true] {
        for (word, stays) in [(None, false), (Some("Delete"), false), (Some("keep"), false), (Some("Keep"), true)] {
            let (steps, mut model) = ended(word, apply);
            let deletes = steps.iter().any(|step| matches!(step, Step::Delete { .. }));
            assert_eq!(deletes, !stays, "{word:?} {apply}: {steps:?}");
            if !stays {
                continue;
            }
            let guarded = steps.iter().all(|step| matches!(step, Step::Edit { guard: Guard::Version(_), .. }));
            assert!(guarded && steps.len() == 1, "{steps:?}");
            for step in steps {
                model.execute(step);
            }
            let copy = model.copy.as_ref().unwrap();
            assert_eq!(copy["spec"], json!({"a": 2}));
            assert_eq!(
                copy["metadata"]["annotations"],
                json!({WORDS.on_delete: "Keep"}),
                "what its provider said stays"
            );
            assert_eq!(copy["metadata"]["labels"], json!({}));
        }
    }
}
