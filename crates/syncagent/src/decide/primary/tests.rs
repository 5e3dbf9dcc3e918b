//! Decisions, executed on a small model of both clusters.

mod drifted;
mod edges;
mod imported;
mod narrowed;
mod paused;
mod refusals;
mod reported;
mod restored;

use std::collections::{BTreeMap, HashSet};

use carrick_json::merge;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::{AGENT_NAME, DELETION_PROPAGATION, FINALIZER, HELD_BY, Origin, RELATED_PREFIX};
use crate::decide::RelatedSeen;
use crate::decide::adopt::{Adoption, adopt};
use crate::decide::edit;
use crate::decide::ownership::applied;
use crate::decide::state::{Applied, CopyNote};
use crate::decide::{Dependents, Event, NOBODY, Role, Step};
use crate::rules::ApiKind;
use crate::rules::crd::Crd;
use crate::rules::metadata::{KCP_SIDE, source_of};
use crate::rules::tests::{crontab, published};

/// One object of a consumer, its copy, one related Secret on each side, and the state.
#[derive(Default)]
struct Model {
    source: Option<Value>,
    copy: Option<Value>,
    origin: Option<Value>,
    destination: Option<Value>,
    state: PrimaryState,
    others: Vec<(ObjectAddress, Value)>,
    released: bool,
    ahead: usize,
    ended: bool,
    /// What `spec.reads` finds, which of its entries cannot be read, and which of `spec.related` are not known.
    objects: Value,
    unread: BTreeSet<String>,
    unknown: HashSet<usize>,
    events: Vec<Event>,
    revision: u64,
    /// The time, if it matters.
    now: String,
    /// Who has written which field of the copy.
    managed: Value,
    /// Which fields the agent owns, as the servers record it.
    owned: BTreeMap<String, Value>,
}

fn key() -> SourceKey {
    SourceKey { cluster: "c1".into(), namespace: "default".into(), name: "my-cron".into() }
}

fn with_status() -> Crd {
    let mut crd = crontab();
    crd.spec.versions[0].subresources = serde_json::from_value(json!({"status": {}})).unwrap();
    crd
}

fn rules(spec: Value) -> Rules {
    Rules::compile(&published(spec), &with_status(), "agent").unwrap()
}

fn secret_rules() -> Rules {
    rules(json!({"related": [{"identifier": "creds", "origin": "service", "kind": "Secret", "cleanup": true,
        "object": {"template": {"template": "creds"}}}]}))
}

impl Model {
    fn with_source(spec: Value) -> Self {
        let source = json!({"apiVersion": "example.com/v1", "kind": "CronTab", "spec": spec,
            "metadata": {"name": "my-cron", "namespace": "default", "resourceVersion": "1", "uid": "s"}});
        Self { source: Some(source), ..Self::default() }
    }

    fn plan(&self, rules: &Rules) -> Plan {
        self.try_plan(rules).unwrap()
    }

    fn try_plan(&self, rules: &Rules) -> Result<Plan, DecideError> {
        let secret = Arc::new(ApiKind {
            group: String::new(),
            version: "v1".into(),
            kind: "Secret".into(),
            plural: "secrets".into(),
            namespaced: true,
        });
        let from_kcp = rules.related.first().is_some_and(|r| r.origin == Origin::Kcp);
        let (origin, destination) =
            if from_kcp { (&self.destination, &self.origin) } else { (&self.origin, &self.destination) };
        let seen: Vec<RelatedSeen> = (!rules.related.is_empty())
            .then_some(origin.as_ref())
            .flatten()
            .map(|origin| RelatedSeen {
                entry: 0,
                origin_kind: secret.clone(),
                destination_kind: secret,
                origin: origin.clone(),
                destination_namespace: "default".into(),
                destination_name: "creds".into(),
                destination: destination.clone(),
                destination_status: false,
                others: Vec::new(),
                rival: None,
                ordered: false,
                wanted: false,
            })
            .into_iter()
            .collect();
        let (objects, unread, unknown) = (self.objects.clone(), self.unread.clone(), self.unknown.clone());
        let related = RelatedView { seen, unknown, objects, unread, ..RelatedView::default() };
        let seen = PrimaryView {
            key: &key(),
            workspace: crate::rules::naming::Workspace::default(),
            source: self.source.as_ref(),
            namespace: None,
            copies: self.copy.as_ref().map_or(Copies::None, Copies::One),
            state: &self.state,
            related: Some(&related),
            others: &self.others,
            released: self.released,
            ahead: self.ahead,
            ended: self.ended,
            former: &NOBODY,
            now: if self.now.is_empty() { "2026-01-01T00:00:00Z" } else { &self.now },
            managed: Some(&self.managed),
        };
        decide(rules, seen)
    }

    fn slot(&mut self, at: &ObjectAddress) -> &mut Option<Value> {
        match (at.kind.kind.as_str(), at.side.role) {
            ("Secret", Role::Provider) => &mut self.origin,
            ("Secret", Role::Consumer) => &mut self.destination,
            (_, Role::Consumer) => &mut self.source,
            (_, Role::Provider) => &mut self.copy,
        }
    }

    fn touch(&mut self, at: &ObjectAddress) {
        self.revision += 1;
        let revision = self.revision.to_string();
        let slot = self.slot(at);
        if let Some(object) = slot {
            object["metadata"]["resourceVersion"] = revision.into();
            let finalizers = object["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
            if object["metadata"]["deletionTimestamp"].is_string() && !finalizers {
                *slot = None;
            }
        }
    }

    fn execute(&mut self, step: Step) {
        match step {
            Step::SetFinalizers { at, finalizers, held_by, .. } => {
                let object = self.slot(&at).as_mut().unwrap();
                object["metadata"]["finalizers"] = finalizers.into();
                if let Some(held_by) = held_by {
                    merge::apply(object, &json!({"metadata": {"annotations": {HELD_BY: held_by}}}));
                }
                self.touch(&at);
            }
            Step::Create { at, mut object } => match self.slot(&at).clone() {
                None => {
                    self.owned.insert(at.to_string(), object.clone());
                    object["metadata"]["uid"] = "u".into();
                    *self.slot(&at) = Some(object);
                    self.touch(&at);
                }
                Some(existing) => {
                    if let Adoption::Take(taken) =
                        adopt(&existing, &object, crate::rules::Adoption::Refuse, &["status"])
                    {
                        *self.slot(&at) = Some(taken);
                    }
                }
            },
            Step::Edit { at, edits, guard } => {
                let object = self.slot(&at).as_mut().unwrap();
                assert!(guard.holds(object));
                edit::apply(&edits, object);
                edit::apply(&edits, self.owned.entry(at.to_string()).or_insert(json!({})));
                self.touch(&at);
            }
            Step::Apply { at, object, primary, .. } => {
                assert_eq!(primary, at.kind.kind == "CronTab");
                let owned = self.owned.insert(at.to_string(), object.clone()).unwrap_or(json!({}));
                applied(&owned, &object, self.slot(&at).as_mut().unwrap());
                self.touch(&at);
            }
            Step::Patch { at, patch } => {
                merge::apply(self.slot(&at).as_mut().unwrap(), &patch);
                self.touch(&at);
            }
            Step::Replace { at, object } => {
                self.owned.insert(at.to_string(), object.clone());
                *self.slot(&at) = Some(object);
                self.touch(&at);
            }
            Step::WriteStatus { at, object, .. } => {
                assert_ne!(object.get("status"), Some(&Value::Null), "servers refuse null where an object belongs");
                self.slot(&at).as_mut().unwrap()["status"] = object["status"].clone();
                self.touch(&at);
            }
            Step::Delete { at, .. } => {
                self.slot(&at).as_mut().unwrap()["metadata"]["deletionTimestamp"] = "now".into();
                self.touch(&at);
            }
            Step::RememberNext { entry, value } => self.state.note_next(&entry, value),
            Step::Remember { entry, value, copy, how, instead, seen } => {
                let stored = copy.and_then(|at| self.slot(&at).clone());
                let copy = stored.as_ref().and_then(|stored| CopyNote::of(&WORDS, stored, how));
                let seen = seen.and_then(|seen| seen.resolve(&value, stored.as_ref()));
                self.state.note_written(&entry, instead.map_or(Applied::Whole(value), Applied::Sum), copy);
                if let Some(seen) = seen {
                    self.state.note_seen(&entry, seen);
                }
            }
            Step::RememberSeen { entry, value, copy: at, seen } => {
                let seen = seen.resolve(&value, self.slot(&at).clone().as_ref());
                if let Some(seen) = seen {
                    self.state.note_seen(&entry, seen);
                }
            }
            Step::Track { records } => self.state.track_all(records),
            Step::Drop { entry } => self.state.drop_entry(&entry),
            Step::Forget => self.state = PrimaryState::default(),
            Step::Report { event, .. } => self.events.push(event),
            Step::ConfirmNoCopy => assert!(self.copy.is_none()),
            Step::EnsureNamespace { .. } => {}
        }
        // The state must survive a restart.
        let data = self.state.to_data();
        self.state = crate::decide::state::read(data.iter().map(|(k, v)| (k.as_str(), v.as_slice())));
    }

    /// Decides and executes until nothing is left to do.
    fn settle(&mut self, rules: &Rules) {
        for _ in 0..10 {
            let plan = self.plan(rules);
            if plan.is_settled() {
                return;
            }
            plan.steps.into_iter().chain(plan.strands.into_iter().flatten()).for_each(|step| self.execute(step));
        }
        panic!("no end of steps: {:?}", self.plan(rules).steps);
    }

    /// Executes only the first steps of the next plan, as if the agent died after them. Returns whether there were that many.
    fn crash_after(&mut self, rules: &Rules, count: usize) -> bool {
        let steps = self.plan(rules).steps;
        let enough = steps.len() > count;
        steps.into_iter().take(count).for_each(|step| self.execute(step));
        enough
    }

    fn set_spec(&mut self, spec: Value) {
        self.source.as_mut().unwrap()["spec"] = spec;
    }

    fn delete_source(&mut self) {
        self.source.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "now".into();
    }
}

#[test]
fn a_new_object_is_held_copied_and_remembered() {
    let mut model = Model::with_source(json!({"replicas": 1}));
    let verbs: Vec<_> = model.plan(&rules(json!({}))).steps.iter().map(Step::verb).collect();
    assert_eq!(verbs, ["set-finalizers", "report", "ensure-namespace", "create", "remember", "report"]);
    model.settle(&rules(json!({})));
    let copy = model.copy.clone().unwrap();
    assert_eq!(copy["spec"], json!({"replicas": 1}));
    assert_eq!(copy["metadata"]["namespace"], "c1");
    assert_eq!(copy["metadata"]["labels"][AGENT_NAME], "agent");
    assert_eq!(model.source.as_ref().unwrap()["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(model.events, [Event::Accepted, Event::Placed]);
}

#[test]
fn a_change_of_the_source_arrives_and_local_changes_survive() {
    let mut model = Model::with_source(json!({"replicas": 1, "image": "a"}));
    model.settle(&rules(json!({})));
    model.copy.as_mut().unwrap()["spec"]["image"] = "local".into();
    model.set_spec(json!({"replicas": 2, "image": "a"}));
    model.settle(&rules(json!({})));
    assert_eq!(model.copy.as_ref().unwrap()["spec"], json!({"replicas": 2, "image": "local"}));
    model.set_spec(json!({"replicas": 2, "image": "b"}));
    model.settle(&rules(json!({})));
    assert_eq!(model.copy.as_ref().unwrap()["spec"]["image"], "b");
}

#[test]
fn the_status_comes_back_and_never_goes_down() {
    let mut model = Model::with_source(json!({}));
    model.source.as_mut().unwrap()["status"] = json!({"forged": true});
    model.settle(&rules(json!({})));
    model.copy.as_mut().unwrap()["status"] = json!({"ready": true});
    model.settle(&rules(json!({})));
    assert_eq!(model.source.as_ref().unwrap()["status"], json!({"ready": true}));
    assert_eq!(model.copy.as_ref().unwrap()["status"], json!({"ready": true}));
}

#[test]
fn without_a_status_subresource_a_status_comes_back_as_a_field() {
    let rules = Rules::compile(&published(json!({})), &crontab(), "agent").unwrap();
    let mut model = Model::with_source(json!({}));
    model.settle(&rules);
    for status in [json!({"ready": true, "url": "x"}), json!({"ready": false})] {
        // The agent may die after each step.
        for crash in 0..3 {
            let mut status = status.clone();
            status["try"] = crash.into();
            model.copy.as_mut().unwrap()["status"] = status.clone();
            model.crash_after(&rules, crash);
            model.settle(&rules);
            assert_eq!(model.source.as_ref().unwrap()["status"], status);
            assert_eq!(model.copy.as_ref().unwrap()["status"], status);
        }
    }
    // What the consumer writes there is content like any other.
    model.source.as_mut().unwrap()["status"] = json!({"mine": 1});
    model.settle(&rules);
    assert_eq!(model.copy.as_ref().unwrap()["status"], json!({"mine": 1}));
    assert_eq!(model.source.as_ref().unwrap()["status"], json!({"mine": 1}));
}

#[test]
fn rules_see_the_copy_that_is_about_to_be() {
    let cel = |path: &str, expression: &str| json!({"cel": {"path": path, "expression": expression}});
    let rules = rules(json!({
        "naming": {"name": "{{ .Object.metadata.name }}-x", "namespace": "ns"},
        "mutation": {"spec": [cel("spec.place", "other.metadata.namespace + '/' + other.metadata.name")]},
    }));
    let mut model = Model::with_source(json!({}));
    model.settle(&rules);
    assert_eq!(model.copy.as_ref().unwrap()["spec"], json!({"place": "ns/my-cron-x"}));
    assert_eq!(model.events, [Event::Accepted, Event::Placed], "it is right from the start");
}

#[test]
fn a_rule_on_the_name_names_the_copy_and_nothing_else() {
    let renamed = |to: &str| {
        rules(json!({
            "naming": {"name": "{{ .Object.metadata.name }}", "namespace": "$remoteNamespace"},
            "mutation": {"spec": [{"regex": {"path": "metadata.name", "replacement": to}}]},
        }))
    };
    let mut model = Model::with_source(json!({"replicas": 1}));
    model.settle(&renamed("first"));
    let copy = model.copy.clone().unwrap();
    assert_eq!(copy["metadata"]["name"], "first");
    assert_eq!(source_of(&copy), Some(key()), "the link leads to the real source");
    model.copy.as_mut().unwrap()["status"] = json!({"ready": true});
    model.settle(&renamed("first"));
    assert_eq!(model.source.as_ref().unwrap()["status"], json!({"ready": true}));
    assert_eq!(model.source.as_ref().unwrap()["metadata"]["name"], "my-cron");
    // A copy keeps its name.
    model.set_spec(json!({"replicas": 2}));
    model.settle(&renamed("second"));
    let copy = model.copy.clone().unwrap();
    assert_eq!((&copy["metadata"]["name"], &copy["spec"]["replicas"]), (&json!("first"), &json!(2)));
}

#[test]
fn rules_that_yield_numbers_come_to_rest() {
    let cel = |path: &str, expression: &str| json!({"cel": {"path": path, "expression": expression}});
    let rules = rules(json!({"mutation": {
        "spec": [cel("spec.size", "double(self.spec.replicas) * 2.0")],
        "status": [cel("status.size", "double(self.spec.size) * 2.0")],
    }}));
    let mut model = Model::with_source(json!({"replicas": 3, "big": 9_007_199_254_740_993_i64}));
    model.settle(&rules);
    model.copy.as_mut().unwrap()["status"] = json!({});
    model.settle(&rules);
    assert_eq!(
        model.copy.as_ref().unwrap()["spec"],
        json!({"replicas": 3, "big": 9_007_199_254_740_993_i64, "size": 6})
    );
    assert_eq!(model.source.as_ref().unwrap()["status"], json!({"size": 12}));
}

#[test]
fn removing_the_last_label_of_the_source_keeps_those_of_the_copy() {
    let mut model = Model::with_source(json!({}));
    model.source.as_mut().unwrap()["metadata"]["labels"] = json!({"mine": "1"});
    model.settle(&rules(json!({})));
    model.copy.as_mut().unwrap()["metadata"]["labels"]["theirs"] = "2".into();
    model.source.as_mut().unwrap()["metadata"]["labels"] = json!({});
    let steps = model.plan(&rules(json!({}))).steps;
    model.settle(&rules(json!({})));
    let labels = &model.copy.as_ref().unwrap()["metadata"]["labels"];
    assert_eq!((labels.get("mine"), &labels["theirs"], &labels[AGENT_NAME]), (None, &json!("2"), &json!("agent")));
    let edits =
        steps.iter().find_map(|step| if let Step::Edit { edits, .. } = step { Some(edits) } else { None }).unwrap();
    let paths: Vec<String> = edits.iter().map(|edit| edit.path.join(".")).collect();
    assert_eq!(paths, ["metadata.labels.mine", "metadata.annotations.syncagent.kcp.io/applied-state"]);
}

#[test]
fn deletion_removes_the_copy_then_the_finalizer_then_the_memory() {
    let mut model = Model::with_source(json!({}));
    model.settle(&rules(json!({})));
    model.delete_source();
    model.settle(&rules(json!({})));
    assert!(model.copy.is_none() && model.source.is_none() && model.state.is_empty());
    assert_eq!(model.events[2..], [Event::Cleanup, Event::Deleted]);
}

#[test]
fn the_finalizer_stays_until_the_copy_is_really_gone() {
    let mut model = Model::with_source(json!({}));
    model.settle(&rules(json!({})));
    model.copy.as_mut().unwrap()["metadata"]["finalizers"] = json!(["operator"]);
    model.delete_source();
    model.settle(&rules(json!({})));
    assert!(model.source.is_some());
    assert_eq!(model.plan(&rules(json!({}))).next, Next::Soon);
}

#[test]
fn the_owner_decides_about_the_dependents_of_the_copy() {
    for (wish, dependents) in [
        (json!(null), Dependents::Later),
        (json!("background"), Dependents::Later),
        (json!("foreground"), Dependents::First),
        (json!("orphan"), Dependents::Stay),
        (json!("Foreground"), Dependents::Later),
        (json!("nonsense"), Dependents::Later),
    ] {
        let mut model = Model::with_source(json!({}));
        model.source.as_mut().unwrap()["metadata"]["annotations"] = json!({ DELETION_PROPAGATION: wish });
        model.settle(&rules(json!({})));
        assert!(!model.copy.as_ref().unwrap().to_string().contains(DELETION_PROPAGATION));
        model.delete_source();
        let steps = model.plan(&rules(json!({}))).steps;
        let found = steps.iter().find_map(|step| match step {
            Step::Delete { dependents, .. } => Some(*dependents),
            _ => None,
        });
        assert_eq!(found, Some(dependents), "{wish}");
    }
}

#[test]
fn a_source_out_of_sight_changes_nothing() {
    let mut model = Model::with_source(json!({}));
    model.settle(&rules(json!({})));
    model.source = None;
    assert_eq!(model.plan(&rules(json!({}))), Plan::default());
}

fn filtered() -> Rules {
    rules(json!({"filter": {"resource": {"matchLabels": {"include": "me"}}}}))
}

fn releasing(spec: Value) -> Rules {
    afterwards(Duty::Release, spec)
}

fn afterwards(duty: Duty, spec: Value) -> Rules {
    Rules::afterwards(duty, &published(spec), &with_status(), "agent").unwrap()
}

#[test]
fn without_valid_rules_everything_stays_as_it_is() {
    let broken = afterwards(Duty::End, json!({"naming": {"name": "{{"}}));
    let mut model = Model::with_source(json!({"replicas": 1}));
    assert_eq!(model.plan(&broken), Plan::default(), "nothing is begun");
    model.settle(&rules(json!({})));
    model.set_spec(json!({"replicas": 2}));
    assert_eq!(model.plan(&broken), Plan::default(), "nothing is changed or released");
}

#[test]
fn objects_that_are_no_longer_selected_are_released_and_may_come_back() {
    for without in [filtered(), releasing(json!({}))] {
        let mut model = Model::with_source(json!({"replicas": 1}));
        assert_eq!(model.plan(&without), Plan::default(), "what was never selected is left alone");
        model.settle(&rules(json!({})));
        let (copy, state) = (model.copy.clone(), model.state.clone());
        model.settle(&without);
        assert_eq!(model.source.as_ref().unwrap()["metadata"]["finalizers"], json!([]));
        assert_eq!((&model.copy, &model.state), (&copy, &state), "copy and memory stay");
        assert_eq!(model.events.last(), Some(&Event::Released));
        model.set_spec(json!({"replicas": 2}));
        assert_eq!(model.plan(&without), Plan::default());
        model.settle(&rules(json!({})));
        assert_eq!(model.copy.as_ref().unwrap()["spec"], json!({"replicas": 2}));
        assert_eq!(model.copy.as_ref().unwrap()["metadata"]["uid"], copy.unwrap()["metadata"]["uid"]);
        assert_eq!(model.source.as_ref().unwrap()["metadata"]["finalizers"], json!([FINALIZER]));
    }
}

#[test]
fn the_copy_of_an_object_that_is_released_during_its_deletion_is_deleted() {
    for without in [filtered(), releasing(json!({})), afterwards(Duty::End, json!({"naming": {"name": "{{"}}))] {
        for crash in 0..5 {
            let mut model = Model::with_source(json!({}));
            model.settle(&rules(json!({})));
            model.delete_source();
            model.crash_after(&without, crash);
            model.settle(&without);
            assert!(model.source.is_none() && model.copy.is_none() && model.state.is_empty());
        }
    }
}

#[test]
fn a_finalizer_that_others_need_is_left_to_them() {
    for without in [filtered(), releasing(json!({}))] {
        // Held as a related object of another primary: we have neither a copy nor state.
        let mut model = Model::with_source(json!({}));
        model.source.as_mut().unwrap()["metadata"]["finalizers"] = json!([FINALIZER]);
        assert_eq!(model.plan(&without), Plan::default());
        model.delete_source();
        assert_eq!(model.plan(&without), Plan::default());
        // Released, and held again by somebody else since.
        let mut model = Model::with_source(json!({}));
        model.settle(&rules(json!({})));
        model.released = true;
        model.source.as_mut().unwrap()["metadata"]["annotations"] = json!({HELD_BY: "somebody"});
        assert_eq!(model.plan(&without), Plan::default());
        model.source.as_mut().unwrap()["metadata"]["annotations"] = json!({});
        assert_eq!(model.plan(&without), Plan::default(), "nor if they do not say who they are");
    }
}

#[test]
fn an_order_is_not_held_by_names_that_nobody_bears() {
    let related = format!("somebody/related,{}", rules(json!({})).agent_name);
    for (names, without, left) in [
        ("somebody", rules(json!({})), false),
        ("somebody", filtered(), false),
        ("somebody", releasing(json!({})), false),
        (related.as_str(), rules(json!({})), true),
    ] {
        // Made from the manifest of another one: we have neither a copy nor state.
        let mut model = Model::with_source(json!({}));
        model.source.as_mut().unwrap()["metadata"]["finalizers"] = json!([FINALIZER]);
        model.source.as_mut().unwrap()["metadata"]["annotations"] = json!({HELD_BY: names});
        model.delete_source();
        model.settle(&without);
        assert_eq!(model.source.is_some(), left, "{names}");
        let told = model.plan(&without).notices;
        assert_eq!(told.iter().any(|notice| notice.contains("held by somebody/related;")), left, "{told:?}");
    }
}

#[test]
fn a_namespace_out_of_sight_changes_nothing() {
    let by_namespace = rules(json!({"filter": {"namespace": {"matchLabels": {"include": "me"}}}}));
    let mut model = Model::with_source(json!({}));
    assert_eq!(model.plan(&by_namespace), Plan::default());
    model.settle(&rules(json!({})));
    assert_eq!(model.plan(&by_namespace), Plan::default());
    model.delete_source();
    model.settle(&by_namespace);
    assert!(model.source.is_none() && model.copy.is_none());
}

#[test]
fn objects_held_together_with_their_primary_are_released_with_it() {
    let secret = json!({"metadata": {"name": "creds", "namespace": "default", "resourceVersion": "7",
        "finalizers": ["theirs", FINALIZER]}});
    let kind = ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "Secret".into(),
        plural: "secrets".into(),
        namespaced: true,
    };
    let at =
        ObjectAddress { side: KCP_SIDE, kind: kind.into(), namespace: Some("default".into()), name: "creds".into() };
    let mut model = Model::with_source(json!({}));
    model.settle(&rules(json!({})));
    model.others = vec![(at.clone(), secret)];
    let finalizers = vec!["theirs".into()];
    let expected = Step::SetFinalizers { at, finalizers, held_by: None, resource_version: "7".into() };
    assert_eq!(model.plan(&filtered()).steps[0], expected);
    model.delete_source();
    assert_eq!(model.plan(&releasing(json!({}))).steps[0], expected);
}

#[test]
fn several_copies_do_not_keep_an_object_from_being_released() {
    let mut source = Model::with_source(json!({})).source.unwrap();
    source["metadata"]["finalizers"] = json!([FINALIZER]);
    let names = ["a/x".to_owned(), "b/y".to_owned()];
    let seen = PrimaryView {
        key: &key(),
        workspace: crate::rules::naming::Workspace::default(),
        source: Some(&source),
        namespace: None,
        copies: Copies::Many(&names),
        state: &PrimaryState::default(),
        related: None,
        others: &[],
        released: false,
        ahead: 0,
        ended: false,
        former: &NOBODY,
        now: "2026-01-01T00:00:00Z",
        managed: None,
    };
    assert_eq!(decide(&filtered(), seen).unwrap().steps.len(), 2);
}

#[test]
fn a_deleted_copy_comes_back() {
    let mut model = Model::with_source(json!({"replicas": 1}));
    model.settle(&rules(json!({})));
    model.copy = None;
    let verbs: Vec<_> = model.plan(&rules(json!({}))).steps.iter().map(Step::verb).collect();
    assert_eq!(verbs, ["confirm-no-copy", "ensure-namespace", "create", "remember", "report"]);
    model.settle(&rules(json!({})));
    assert_eq!(model.copy.as_ref().unwrap()["spec"], json!({"replicas": 1}));
}

#[test]
fn removed_links_are_repaired() {
    let mut model = Model::with_source(json!({}));
    model.settle(&rules(json!({})));
    let before = model.copy.clone().unwrap();
    model.copy.as_mut().unwrap()["metadata"]["labels"] = json!({});
    model.settle(&rules(json!({})));
    assert_eq!(model.copy.unwrap()["metadata"]["labels"], before["metadata"]["labels"]);
}

#[test]
fn a_related_secret_is_copied_up_and_deleted_with_its_primary() {
    let mut model = Model::with_source(json!({}));
    model.origin = Some(json!({"metadata": {"name": "creds", "namespace": "c1", "uid": "o"}, "data": {"k": "v"}}));
    model.settle(&secret_rules());
    let destination = model.destination.clone().unwrap();
    assert_eq!(destination["data"], json!({"k": "v"}));
    assert_eq!(destination["metadata"]["namespace"], "default");
    assert_eq!(source_of(&destination), None, "related objects carry no link");
    assert_eq!(
        model.source.as_ref().unwrap()["metadata"]["annotations"][format!("{RELATED_PREFIX}creds.0")],
        r#"{"namespace":"default","name":"creds","apiVersion":"v1","kind":"Secret"}"#
    );
    model.delete_source();
    model.settle(&secret_rules());
    assert!(model.destination.is_none() && model.copy.is_none() && model.source.is_none());
    assert!(model.origin.is_some(), "the original belongs to the provider");
}

#[test]
fn a_related_object_named_like_its_primary_has_a_memory_of_its_own() {
    let rules = rules(json!({"related": [{"identifier": "twin", "origin": "kcp", "kind": "Secret",
        "object": {"template": {"template": "my-cron"}}}]}));
    let mut model = Model::with_source(json!({"replicas": 1}));
    // The original of this one is in kcp.
    model.destination =
        Some(json!({"metadata": {"name": "my-cron", "namespace": "default", "uid": "o"}, "data": {"k": "v"}}));
    model.settle(&rules);
    assert_eq!(model.state.to_data().len(), 4, "two entries, a record, and which object the copy is");
    model.set_spec(json!({}));
    model.settle(&rules);
    assert_eq!(model.copy.as_ref().unwrap()["spec"], json!({}), "a removed field is removed from the copy");
    assert_eq!(model.origin.as_ref().unwrap()["data"], json!({"k": "v"}));
}

#[test]
fn a_source_that_was_created_again_does_not_inherit_the_copy() {
    let mut model = Model::with_source(json!({"replicas": 1}));
    model.settle(&rules(json!({})));
    let copy = model.copy.clone();
    let mut anew = Model::with_source(json!({"replicas": 2})).source.unwrap();
    anew["metadata"]["uid"] = "another".into();
    model.source = Some(anew.clone());
    let error = model.try_plan(&rules(json!({}))).unwrap_err().to_string();
    assert!(error.contains("earlier object of the same name (UID s)"), "{error}");
    // It can be deleted, but the data behind the copy stays.
    model.source.as_mut().unwrap()["metadata"]["finalizers"] = json!([FINALIZER]);
    model.delete_source();
    let verbs: Vec<_> = model.plan(&rules(json!({}))).steps.iter().map(Step::verb).collect();
    assert_eq!(verbs, ["confirm-no-copy", "forget", "set-finalizers", "report"]);
    assert_eq!(model.copy, copy);
    // Its owner may hand the copy over.
    model.source = Some(anew);
    model.settle(&rules(json!({"adoption": "TakeOver"})));
    let copy = model.copy.clone().unwrap();
    assert_eq!((&copy["spec"], &copy["metadata"]["uid"]), (&json!({"replicas": 2}), &json!("u")));
    model.settle(&rules(json!({})));
}

#[test]
fn a_status_that_the_server_changes_or_refuses_is_sent_once() {
    for stored in [Some(json!({"ready": true})), None] {
        let mut model = Model::with_source(json!({}));
        model.origin = Some(json!({"metadata": {"name": "creds", "namespace": "c1", "uid": "o"}, "data": {"k": "v"}}));
        model.settle(&rules(json!({})));
        model.copy.as_mut().unwrap()["status"] = json!({"ready": true, "unknown": 1});
        let plan = model.plan(&secret_rules());
        let [strand, ..] = plan.strands.as_slice() else { panic!("{plan:?}") };
        let Step::WriteStatus { object, entry, .. } = &strand[0] else { panic!("{strand:?}") };
        assert!(plan.strands.len() > 1, "related objects do not wait for it");
        let (checksum, entry) = (crate::decide::state::checksum, entry.clone());
        let note = crate::decide::state::StatusNote {
            sent: checksum(&object["status"]),
            stored: stored.as_ref().map(checksum),
            schema: String::new(),
        };
        model.state.note_status(&entry, Some(note));
        if let Some(stored) = &stored {
            model.source.as_mut().unwrap()["status"] = stored.clone();
        }
        model.settle(&secret_rules());
        let plan = model.plan(&secret_rules());
        assert!(plan.is_settled(), "{plan:?}");
        assert_eq!(plan.notices.len(), usize::from(stored.is_none()), "a refusal stays known");
        model.copy.as_mut().unwrap()["status"] = json!({"ready": false, "unknown": 1});
        assert!(!model.plan(&secret_rules()).is_settled(), "another status is sent");
    }
}

#[test]
fn the_finalizer_is_ours_by_name_even_if_nothing_is_remembered() {
    let mut model = Model::with_source(json!({}));
    model.crash_after(&rules(json!({})), 1);
    assert!(model.state.is_empty() && model.copy.is_none());
    model.settle(&releasing(json!({})));
    assert_eq!(model.source.as_ref().unwrap()["metadata"]["finalizers"], json!([]));
}

#[test]
fn several_copies_are_an_error_that_names_them() {
    let source = Model::with_source(json!({})).source.unwrap();
    let names = ["a/x".to_owned(), "b/y".to_owned()];
    let seen = PrimaryView {
        key: &key(),
        workspace: crate::rules::naming::Workspace::default(),
        source: Some(&source),
        namespace: None,
        copies: Copies::Many(&names),
        state: &PrimaryState::default(),
        related: None,
        others: &[],
        released: false,
        ahead: 0,
        ended: false,
        former: &NOBODY,
        now: "2026-01-01T00:00:00Z",
        managed: None,
    };
    assert!(decide(&rules(json!({})), seen).unwrap_err().to_string().contains("a/x, b/y"));
}

/// The rules of an agent that uses server-side apply.
fn applying(spec: Value) -> Rules {
    Rules { apply: true, ..rules(spec) }
}

#[test]
fn by_apply_a_change_is_one_write_and_what_operators_added_survives() {
    let rules = applying(json!({}));
    let mut model = Model::with_source(json!({"replicas": 1, "image": "a"}));
    model.settle(&rules);
    assert!(model.state.entries().all(|(_, entry)| entry.is_applied()), "no content is remembered: {:?}", model.state);
    let copy = model.copy.as_mut().unwrap();
    copy["spec"]["paused"] = true.into();
    copy["spec"]["replicas"] = 7.into();
    assert!(model.plan(&rules).is_settled(), "what operators change stays until something else is wanted");

    model.set_spec(json!({"replicas": 2}));
    let verbs: Vec<_> = model.plan(&rules).steps.iter().map(Step::verb).collect();
    assert_eq!(verbs, ["apply", "report"]);
    let first = |plan: &Plan| plan.steps.iter().any(|step| matches!(step, Step::Apply { first: true, .. }));
    assert!(first(&model.plan(&rules)), "it was created, so its fields are not owned by an apply yet");
    model.settle(&rules);
    assert_eq!(model.copy.as_ref().unwrap()["spec"], json!({"replicas": 2, "paused": true}));
    model.set_spec(json!({"replicas": 3}));
    assert!(!first(&model.plan(&rules)));
    model.settle(&rules);
    assert_eq!(model.events.iter().filter(|event| **event == Event::Synced).count(), 2);
}

#[test]
fn by_apply_a_lost_memory_and_lost_links_do_no_harm() {
    let rules = applying(json!({}));
    let mut model = Model::with_source(json!({"replicas": 1}));
    model.settle(&rules);
    model.copy.as_mut().unwrap()["spec"]["paused"] = true.into();
    model.state = PrimaryState::default();
    let verbs: Vec<_> = model.plan(&rules).steps.iter().map(Step::verb).collect();
    assert_eq!(verbs, ["remember"]);
    model.settle(&rules);
    model.copy.as_mut().unwrap()["metadata"]["labels"].as_object_mut().unwrap().remove(AGENT_NAME);
    model.settle(&rules);
    let copy = model.copy.as_ref().unwrap();
    assert_eq!((&copy["metadata"]["labels"][AGENT_NAME], &copy["spec"]["paused"]), (&json!("agent"), &json!(true)));
}

#[test]
fn by_apply_a_related_object_is_known_by_its_checksum() {
    let rules = Rules { apply: true, ..secret_rules() };
    let mut model = Model::with_source(json!({"replicas": 1}));
    model.origin = Some(json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "MQ==", "b": "Mg=="},
        "metadata": {"name": "creds", "namespace": "default", "resourceVersion": "1", "uid": "o"}}));
    model.settle(&rules);
    model.destination.as_mut().unwrap()["data"]["c"] = "Mw==".into();
    assert!(model.plan(&rules).is_settled());
    model.origin.as_mut().unwrap()["data"] = json!({"a": "NA=="});
    model.settle(&rules);
    assert_eq!(model.destination.as_ref().unwrap()["data"], json!({"a": "NA==", "c": "Mw=="}));
    assert!(model.state.entries().all(|(_, entry)| entry.last.as_ref().unwrap().whole().is_none()));
    model.delete_source();
    model.settle(&rules);
    assert!(model.destination.is_none() && model.copy.is_none() && model.state.is_empty());
}

/// Values as they occur in specs.
fn spec() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![(0i64..4).prop_map(Value::from), "[ab]".prop_map(Value::from), Just(Value::Null)];
    let value = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[xyz]", inner, 0..3)
                .prop_map(|map: BTreeMap<_, _>| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[abc]", value, 0..4)
        .prop_map(|map: BTreeMap<_, _>| Value::Object(map.into_iter().collect()))
}

proptest! {
    #[test]
    fn executing_a_plan_leaves_nothing_to_do(first in spec(), second in spec(), apply in any::<[bool; 2]>()) {
        let [before, after] = apply.map(|apply| Rules { apply, ..rules(json!({})) });
        let mut model = Model::with_source(first);
        model.settle(&before);
        // An edit without a change only makes sure that the copy is what the caches show.
        let is_memory = |step: &Step| match step {
            Step::Remember { .. } => true,
            Step::Edit { edits, .. } => edits.is_empty(),
            _ => false,
        };
        prop_assert!(model.plan(&after).steps.iter().all(is_memory), "another way of writing is no reason to write");
        model.set_spec(second.clone());
        model.settle(&after);
        prop_assert_eq!(&model.copy.as_ref().unwrap()["spec"], &second);
    }

    /// The agent dies after any number of steps, the source changes meanwhile, and the copy still ends up right.
    #[test]
    fn a_crash_after_any_step_is_harmless(
        [first, second, third] in [spec(), spec(), spec()],
        at in 0usize..7,
        apply in any::<bool>(),
    ) {
        let rules = Rules { apply, ..rules(json!({})) };
        let mut model = Model::with_source(first);
        model.crash_after(&rules, at);
        model.settle(&rules);
        model.set_spec(second);
        model.crash_after(&rules, at);
        model.set_spec(third.clone());
        model.crash_after(&rules, at / 2);
        model.settle(&rules);
        prop_assert_eq!(&model.copy.as_ref().unwrap()["spec"], &third);
        model.delete_source();
        model.crash_after(&rules, at);
        model.settle(&rules);
        prop_assert!(model.copy.is_none() && model.source.is_none() && model.state.is_empty());
    }
}
