//! Decisions about related objects, executed on a small model of both clusters with several primaries.

mod edges;
mod owning;

use std::collections::BTreeMap;

use carrick_json::merge;
use carrick_sync::Acquired;
use carrick_sync::memory::{Applied, CopyNote};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::{FINALIZER, HELD_BY, RELATED_PREFIX};
use crate::decide::edit;
use crate::decide::ownership::applied;
use crate::decide::{Copies, Dependents, Event, NOBODY, PrimaryView, decide, has_finalizer};
use crate::rules::Rules;
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE};
use crate::rules::related::{Gvr, NameSource, Primaries};
use crate::rules::tests::{crontab, published};

const CLUSTER: &str = "c1";

/// Everything in one workspace and on the service cluster, by address; and the state of each primary.
#[derive(Default)]
struct World {
    objects: BTreeMap<String, Value>,
    states: BTreeMap<String, PrimaryState>,
    events: Vec<Event>,
    /// What was deleted, and with which propagation policy.
    deleted: Vec<(String, Dependents)>,
    revision: u64,
    /// Which fields the agent owns, as the servers record it.
    owned: BTreeMap<String, Value>,
    /// Whether the kinds of copies have a status subresource.
    status: bool,
    /// Whether originals are orders themselves, with copies in the same place.
    ordered: bool,
}

fn rules(related: Value) -> Rules {
    Rules::compile(&published(json!({ "related": related })), &crontab(), "agent").unwrap()
}

/// A Secret that the primary names in its spec.
fn referred(origin: &str) -> Value {
    json!({"identifier": "creds", "origin": origin, "kind": "Secret", "object": {"reference": {"path": "spec.image"}}})
}

fn name(at: &str, kind: &str, namespace: &str, name: &str) -> String {
    format!("{at} {kind} {namespace}/{name}")
}

fn kind(gvr: &Gvr) -> Arc<ApiKind> {
    let kind = if gvr.resource == "secrets" { "Secret" } else { "ConfigMap" };
    Arc::new(ApiKind {
        group: gvr.group.clone(),
        version: gvr.version.clone(),
        kind: kind.into(),
        plural: gvr.resource.clone(),
        namespaced: true,
    })
}

impl World {
    /// A world with settled primaries that name a Secret each.
    fn with(rules: &Rules, primaries: &[(&str, &str)]) -> Self {
        let mut world = Self { status: true, ..Self::default() };
        for (primary, image) in primaries {
            let source = json!({"apiVersion": "example.com/v1", "kind": "CronTab", "spec": {"image": image},
                "metadata": {"name": primary, "namespace": "default", "uid": primary}});
            world.put("kcp", "CronTab", "default", source);
            world.settle(rules, primary);
        }
        world
    }

    fn put(&mut self, at: &str, kind: &str, namespace: &str, mut object: Value) {
        object["metadata"]["namespace"] = namespace.into();
        let name = name(at, kind, namespace, object["metadata"]["name"].as_str().unwrap());
        self.objects.insert(name.clone(), object);
        self.touch(&name);
    }

    fn secret(&mut self, at: &str, name: &str) {
        let namespace = if at == "kcp" { "default" } else { CLUSTER };
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "uid": name}, "data": {"k": "v"}});
        self.put(at, "Secret", namespace, secret);
    }

    fn get(&self, at: &str, kind: &str, object: &str) -> Option<&Value> {
        self.objects.get(&name(at, kind, if at == "kcp" { "default" } else { CLUSTER }, object))
    }

    fn edit(&mut self, at: &str, kind: &str, object: &str, patch: Value) {
        let name = name(at, kind, if at == "kcp" { "default" } else { CLUSTER }, object);
        merge::apply(self.objects.get_mut(&name).unwrap(), &patch);
        self.touch(&name);
    }

    fn delete(&mut self, at: &str, kind: &str, object: &str) {
        self.edit(at, kind, object, json!({"metadata": {"deletionTimestamp": "now"}}));
    }

    fn is_held(&self, secret: &str) -> bool {
        self.get("kcp", "Secret", secret).unwrap()["metadata"]["finalizers"] == json!([FINALIZER])
    }

    /// What a server records when the agent writes content.
    fn written(&mut self, name: &str) {
        let entry = json!({"manager": "api-syncagent", "operation": "Update", "fieldsV1": {"f:data": {}}});
        if let Some(object) = self.objects.get_mut(name) {
            object["metadata"]["managedFields"] = json!([entry]);
        }
        self.touch(name);
    }

    fn touch(&mut self, name: &str) {
        self.revision += 1;
        let object = self.objects.get_mut(name).unwrap();
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
        if is_deleting(object) && !held {
            self.objects.remove(name);
        }
    }

    fn key(primary: &str) -> SourceKey {
        SourceKey { cluster: CLUSTER.into(), namespace: "default".into(), name: primary.into() }
    }

    /// The copy of a primary: this model has only one object of its kind for each UID.
    fn copy(&self, primary: &str) -> Option<&Value> {
        let copies = self.objects.iter().filter(|(name, _)| name.starts_with("service CronTab"));
        copies
            .map(|(_, copy)| copy)
            .find(|copy| copy["metadata"]["annotations"]["syncagent.kcp.io/remote-object-name"] == primary)
    }

    fn others(&self, primary: &str, record: &Record) -> Vec<OtherUser> {
        let staying = self.states.iter().filter(|(name, _)| {
            *name != primary && self.get("kcp", "CronTab", name).is_some_and(|source| !is_deleting(source))
        });
        let records = staying.flat_map(|(_, state)| state.records().map(|(_, theirs)| theirs));
        let other = |theirs: &Record| OtherUser {
            origin: theirs.origin.is_same_object(&record.origin),
            copy: theirs.copy.is_same_object(&record.copy),
        };
        records.map(other).filter(|other| other.origin || other.copy).collect()
    }

    fn rival(&self, primary: &str, record: &Record) -> Option<String> {
        let others = self.states.iter().filter(|(name, _)| *name != primary);
        let mut records = others.flat_map(|(_, state)| state.records().map(|(_, theirs)| theirs));
        let rival = records
            .find(|theirs| theirs.copy.is_same_object(&record.copy) && !theirs.origin.is_same_object(&record.origin));
        rival.map(|theirs| theirs.origin.to_string())
    }

    fn view(&self, rules: &Rules, primary: &str, source: &Value, state: &PrimaryState) -> RelatedView {
        let mut view = RelatedView::default();
        let copy = self.copy(primary);
        for (entry, related) in rules.related.iter().enumerate() {
            let Some(copy) = copy else { break };
            let primaries = Primaries { remote: source, local: copy, cluster: CLUSTER, path: None };
            let NameSource::Pairs(names) = related.names(primaries).unwrap() else { panic!("not in this model") };
            let (from, from_namespace, to, to_namespace) = match related.origin {
                Origin::Kcp => ("kcp", "default", "service", CLUSTER),
                Origin::Service => ("service", CLUSTER, "kcp", "default"),
            };
            let (origin_kind, destination_kind) = (kind(&related.source), kind(&related.destination));
            for (origin, destination) in names {
                let Some(object) = self.objects.get(&name(from, &origin_kind.kind, from_namespace, &origin)) else {
                    continue;
                };
                let mut seen = RelatedSeen {
                    entry,
                    destination: self
                        .objects
                        .get(&name(to, &destination_kind.kind, to_namespace, &destination))
                        .cloned(),
                    origin_kind: origin_kind.clone(),
                    destination_kind: destination_kind.clone(),
                    destination_status: self.status,
                    origin: object.clone(),
                    destination_namespace: to_namespace.into(),
                    destination_name: destination,
                    others: Vec::new(),
                    rival: None,
                    ordered: self.ordered,
                    wanted: false,
                };
                let record = seen.record(related);
                seen.others = self.others(primary, &record);
                seen.rival = self.rival(primary, &record);
                view.seen.push(seen);
            }
        }
        for (key, record) in unnamed(state, &rules.related, &view.seen) {
            let get = |at: &ObjectAddress| self.objects.get(&at.to_string()).cloned();
            let (origin, copy, others) = (get(&record.origin), get(&record.copy), self.others(primary, &record));
            view.dropped.push(DroppedSeen { key, record, origin, copy, others });
        }
        view.strays = self.strays(rules, primary);
        view
    }

    /// Everything that could be a stray; the decision under test says which ones are.
    fn strays(&self, rules: &Rules, primary: &str) -> Vec<Stray> {
        let mut strays = Vec::new();
        for (entry, related) in rules.related.iter().enumerate() {
            let (to, side) = match related.origin {
                Origin::Kcp => ("service", SERVICE_SIDE),
                Origin::Service => ("kcp", KCP_SIDE),
            };
            let kind = kind(&related.destination);
            let prefix = format!("{to} {} ", kind.kind);
            for (_, object) in self.objects.iter().filter(|(name, _)| name.starts_with(&prefix)) {
                let text = |key: &str| object["metadata"][key].as_str().unwrap().to_owned();
                let (namespace, name) = (Some(text("namespace")), text("name"));
                let at = ObjectAddress { side, kind: kind.clone(), namespace, name };
                let record =
                    Record { identifier: String::new(), origin: at.clone(), copy: at.clone(), uid: None, how: None };
                strays.push(Stray { entry, at, object: object.clone(), others: self.others(primary, &record) });
            }
        }
        strays
    }

    fn plan(&self, rules: &Rules, primary: &str) -> Plan {
        let source = self.get("kcp", "CronTab", primary);
        let state = self.states.get(primary).cloned().unwrap_or_default();
        let mut seen = PrimaryView {
            key: &Self::key(primary),
            workspace: crate::rules::naming::Workspace::default(),
            source,
            namespace: None,
            copies: self.copy(primary).map_or(Copies::None, Copies::One),
            state: &state,
            related: None,
            others: &[],
            released: false,
            ahead: 0,
            ended: false,
            former: &NOBODY,
            now: "2026-01-01T00:00:00Z",
            managed: None,
        };
        let plan = decide(rules, seen).unwrap();
        let Some(source) = source.filter(|source| plan.steps.is_empty() || is_deleting(source)) else { return plan };
        let related = self.view(rules, primary, source, &state);
        seen.related = Some(&related);
        decide(rules, seen).unwrap()
    }

    fn execute(&mut self, primary: &str, step: Step) {
        let mut state = self.states.remove(primary).unwrap_or_default();
        match step {
            Step::SetFinalizers { at, finalizers, held_by, resource_version } => {
                let object = self.objects.get_mut(&at.to_string()).unwrap();
                assert_eq!(object["metadata"]["resourceVersion"], resource_version.as_str());
                object["metadata"]["finalizers"] = finalizers.into();
                if let Some(held_by) = held_by {
                    merge::apply(object, &json!({"metadata": {"annotations": {HELD_BY: held_by}}}));
                }
                self.touch(&at.to_string());
            }
            Step::Create { at, mut object } => {
                if !self.objects.contains_key(&at.to_string()) {
                    self.revision += 1;
                    self.owned.insert(at.to_string(), object.clone());
                    object["metadata"]["uid"] = self.revision.to_string().into();
                    if self.status {
                        object.as_object_mut().unwrap().remove("status");
                    }
                    self.objects.insert(at.to_string(), object);
                    self.written(&at.to_string());
                }
            }
            Step::Edit { at, edits, guard, .. } => {
                let object = self.objects.get_mut(&at.to_string()).unwrap();
                assert!(guard.holds(object));
                edit::apply(&edits, object);
                edit::apply(&edits, self.owned.entry(at.to_string()).or_insert(json!({})));
                self.written(&at.to_string());
            }
            Step::Apply { at, object, primary, .. } => {
                assert_eq!(primary, at.kind.kind == "CronTab");
                let owned = self.owned.insert(at.to_string(), object.clone()).unwrap_or(json!({}));
                applied(&owned, &object, self.objects.get_mut(&at.to_string()).unwrap());
                self.written(&at.to_string());
            }
            Step::Patch { at, patch } => {
                merge::apply(self.objects.get_mut(&at.to_string()).unwrap(), &patch);
                self.touch(&at.to_string());
            }
            Step::Replace { at, object } | Step::WriteStatus { at, object, .. } => {
                self.objects.insert(at.to_string(), object);
                self.written(&at.to_string());
            }
            Step::Delete { at, uid, dependents, .. } => {
                assert_eq!(self.objects[&at.to_string()]["metadata"]["uid"], uid.as_str(), "{at}");
                self.deleted.push((at.to_string(), dependents));
                self.objects.get_mut(&at.to_string()).unwrap()["metadata"]["deletionTimestamp"] = "now".into();
                self.touch(&at.to_string());
            }
            Step::RememberNext { entry, value } => state.note_next(&entry, value),
            Step::Remember { entry, value, copy, how, instead, seen } => {
                let stored = copy.and_then(|at| self.objects.get(&at.to_string()).cloned());
                let copy = stored.as_ref().and_then(|stored| CopyNote::of(&WORDS, stored, how));
                let seen = seen.and_then(|seen| seen.resolve(&value, stored.as_ref()));
                state.note_written(&entry, instead.map_or(Applied::Whole(value), Applied::Sum), copy);
                if let Some(seen) = seen {
                    state.note_seen(&entry, seen);
                }
            }
            Step::RememberSeen { entry, value, copy: at, seen } => {
                let seen = seen.resolve(&value, self.objects.get(&at.to_string()).cloned().as_ref());
                if let Some(seen) = seen {
                    state.note_seen(&entry, seen);
                }
            }
            Step::Track { records } => state.track_all(records),
            Step::Drop { entry } => state.drop_entry(&entry),
            Step::Forget => state = PrimaryState::default(),
            Step::Report { at, event } => {
                assert_eq!(at.side, KCP_SIDE, "consumers are told in their workspace");
                self.events.push(event);
            }
            Step::ConfirmNoCopy => assert!(self.copy(primary).is_none()),
            Step::EnsureNamespace { .. } => {}
        }
        if !state.is_empty() {
            self.states.insert(primary.to_owned(), state);
        }
    }

    /// Decides and executes until nothing is left to do.
    fn settle(&mut self, rules: &Rules, primary: &str) {
        for _ in 0..20 {
            let plan = self.plan(rules, primary);
            let settled = plan.is_settled();
            self.run(primary, plan, usize::MAX);
            if settled {
                return;
            }
        }
        panic!("no end of steps: {:?}", self.plan(rules, primary));
    }

    fn run(&mut self, primary: &str, plan: Plan, count: usize) {
        let steps = plan.steps.into_iter().chain(plan.strands.into_iter().flatten());
        steps.take(count).for_each(|step| self.execute(primary, step));
    }
}

/// A Secret that the primary names in its spec, and when its copy is deleted.
fn governed(origin: &str, policy: Option<&str>) -> Value {
    let mut entry = referred(origin);
    entry["cleanupPolicy"] = json!(policy);
    entry
}

fn other_side(side: &str) -> &'static str {
    if side == "kcp" { "service" } else { "kcp" }
}

/// Labels and annotations of an object that agents have put there.
fn marks(object: &Value) -> Vec<String> {
    let maps =
        ["labels", "annotations"].map(|field| object["metadata"][field].as_object().cloned().unwrap_or_default());
    let keys = maps.into_iter().flat_map(|map| map.into_iter().map(|(key, _)| key));
    keys.filter(|key| key.starts_with("syncagent.kcp.io/")).collect()
}

/// What a plan writes, without its reports.
fn writes(plan: &Plan) -> Vec<&Step> {
    let steps = plan.steps.iter().chain(plan.strands.iter().flatten());
    steps.filter(|step| !matches!(step, Step::Report { .. })).collect()
}

#[test]
fn copies_are_marked_only_where_they_are_cleaned_up() {
    for origin in ["kcp", "service"] {
        for (policy, marked) in
            [(None, false), (Some("Orphan"), false), (Some("OnPrimaryDeletion"), true), (Some("MatchOrigin"), true)]
        {
            let rules = rules(json!([governed(origin, policy)]));
            let mut world = World::with(&rules, &[("a", "s")]);
            world.secret(origin, "s");
            world.settle(&rules, "a");
            let copy = world.get(other_side(origin), "Secret", "s").unwrap();
            let expected = [
                "syncagent.kcp.io/agent-name",
                "syncagent.kcp.io/related-identifier",
                "syncagent.kcp.io/related-owner",
                "syncagent.kcp.io/related-primary-name",
                "syncagent.kcp.io/related-primary-namespace",
            ];
            assert_eq!(marks(copy), if marked { &expected[..] } else { &[] }, "{origin} {policy:?}");
            let held = if origin == "kcp" { &[HELD_BY][..] } else { &[] };
            assert_eq!(marks(world.get(origin, "Secret", "s").unwrap()), held, "the original is left alone");
            let remembered = world.states["a"].entries().filter_map(|(_, entry)| entry.last.clone());
            assert!(remembered.into_iter().all(|last| marks(last.whole().unwrap()).is_empty()), "marks are no content");
            if marked {
                let primary = &world.get("kcp", "CronTab", "a").unwrap()["metadata"]["name"];
                assert_eq!(copy["metadata"]["annotations"]["syncagent.kcp.io/related-primary-name"], *primary);
            }
        }
    }
}

#[test]
fn marks_come_with_the_content_or_by_one_write_of_their_own() {
    for origin in ["kcp", "service"] {
        let (unmarked, marked) =
            (rules(json!([referred(origin)])), rules(json!([governed(origin, Some("MatchOrigin"))])));
        let side = other_side(origin);
        let mut world = World::with(&unmarked, &[("a", "s")]);
        world.secret(origin, "s");
        world.settle(&unmarked, "a");
        let plan = world.plan(&marked, "a");
        assert!(matches!(writes(&plan)[..], [Step::Edit { .. }]), "a new policy costs one write: {plan:?}");
        world.settle(&marked, "a");
        let uid = world.get(side, "Secret", "s").unwrap()["metadata"]["uid"].clone();
        for gone in ["agent-name", "related-owner", "related-identifier"] {
            world.edit(
                side,
                "Secret",
                "s",
                json!({"metadata": {"labels": {format!("syncagent.kcp.io/{gone}"): null}}}),
            );
            let plan = world.plan(&marked, "a");
            assert!(matches!(writes(&plan)[..], [Step::Edit { .. }]), "{gone}: {plan:?}");
            world.settle(&marked, "a");
            assert_eq!(marks(world.get(side, "Secret", "s").unwrap()).len(), 5, "{gone}");
        }
        world.edit(side, "Secret", "s", json!({"metadata": {"labels": null}}));
        world.edit(origin, "Secret", "s", json!({"data": {"k": "w"}}));
        let plan = world.plan(&marked, "a");
        let patches: Vec<_> = writes(&plan).into_iter().filter(|step| matches!(step, Step::Edit { .. })).collect();
        assert_eq!(patches.len(), 1, "content and marks are one write: {plan:?}");
        world.settle(&marked, "a");
        let copy = world.get(side, "Secret", "s").unwrap();
        assert_eq!((marks(copy).len(), &copy["data"]["k"], &copy["metadata"]["uid"]), (5, &json!("w"), &uid));
        world.settle(&unmarked, "a");
        assert_eq!(marks(world.get(side, "Secret", "s").unwrap()).len(), 5, "nobody takes them off again");
    }
}

#[test]
fn a_shared_copy_has_the_marks_of_one_primary_and_comes_to_rest() {
    let rules = rules(json!([governed("kcp", Some("MatchOrigin"))]));
    let mut world = World::with(&rules, &[("a", "s"), ("b", "s")]);
    world.secret("kcp", "s");
    for primary in ["a", "b", "a", "b"] {
        world.settle(&rules, primary);
    }
    let owner = |world: &World| world.get("service", "Secret", "s").unwrap()["metadata"]["annotations"].clone();
    assert_eq!(owner(&world)["syncagent.kcp.io/related-primary-name"], "a");
    assert!(world.plan(&rules, "a").is_settled() && world.plan(&rules, "b").is_settled());
    world.delete("kcp", "CronTab", "a");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "CronTab", "a").is_none() && world.is_held("s"));
    world.settle(&rules, "b");
    assert_eq!(owner(&world)["syncagent.kcp.io/related-primary-name"], "b", "whoever is left has it for itself");
    world.edit("service", "Secret", "s", json!({"metadata": {"labels": {"syncagent.kcp.io/agent-name": "other"}}}));
    assert!(world.plan(&rules, "b").is_settled(), "nobody fights with another agent");
}

#[test]
fn a_copy_that_two_entries_share_has_the_marks_of_the_first() {
    let mut second = governed("service", Some("MatchOrigin"));
    second["identifier"] = "second".into();
    let rules = rules(json!([governed("service", Some("MatchOrigin")), second]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("service", "s");
    world.settle(&rules, "a");
    let labels = &world.get("kcp", "Secret", "s").unwrap()["metadata"]["labels"];
    assert_eq!(labels["syncagent.kcp.io/related-identifier"], "creds");
    assert!(world.plan(&rules, "a").is_settled());
}

#[test]
fn the_policy_decides_what_becomes_of_a_copy_whose_original_is_not_named_any_more() {
    // Whether the copy outlives the reference to its original, and whether it outlives the primary.
    for (origin, policy, outlives) in [
        ("kcp", None, (false, false)),
        ("kcp", Some("Orphan"), (true, true)),
        ("kcp", Some("OnPrimaryDeletion"), (true, false)),
        ("kcp", Some("MatchOrigin"), (false, false)),
        ("service", None, (false, false)),
        ("service", Some("Orphan"), (true, true)),
        ("service", Some("OnPrimaryDeletion"), (true, false)),
        ("service", Some("MatchOrigin"), (false, false)),
    ] {
        let rules = rules(json!([governed(origin, policy)]));
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret(origin, "s");
        world.settle(&rules, "a");
        world.edit("kcp", "CronTab", "a", json!({"spec": {"image": "t"}}));
        world.settle(&rules, "a");
        let there = |world: &World| world.get(other_side(origin), "Secret", "s").is_some();
        assert_eq!(there(&world), outlives.0, "{origin} {policy:?}");
        assert!(!has_finalizer(world.get(origin, "Secret", "s").unwrap()), "{origin} {policy:?}: the original is free");
        assert_eq!(world.states["a"].records().count(), 0, "{origin} {policy:?}");
        world.delete("kcp", "CronTab", "a");
        world.settle(&rules, "a");
        assert!(world.get("kcp", "CronTab", "a").is_none(), "{origin} {policy:?}");
        assert_eq!(there(&world), outlives.1, "{origin} {policy:?}");
        assert!(world.get(origin, "Secret", "s").is_some(), "{origin} {policy:?}: an original is never deleted");
    }
}

#[test]
fn a_copy_that_is_deleted_with_its_primary_is_remembered_if_its_marks_are_lost() {
    let rules = rules(json!([governed("service", Some("OnPrimaryDeletion"))]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("service", "s");
    world.settle(&rules, "a");
    world.edit("kcp", "Secret", "s", json!({"metadata": {"labels": null}}));
    world.edit("kcp", "CronTab", "a", json!({"spec": {"image": "t"}}));
    world.settle(&rules, "a");
    assert_eq!(world.states["a"].records().count(), 1);
    world.delete("kcp", "CronTab", "a");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "Secret", "s").is_none());
}

#[test]
fn marked_copies_of_which_nothing_is_remembered_are_pruned() {
    for origin in ["kcp", "service"] {
        // Whether they are deleted while the primary stays, and with it.
        for (policy, goes) in [("OnPrimaryDeletion", (false, true)), ("MatchOrigin", (true, true))] {
            for copy_of_primary in [true, false] {
                let rules = rules(json!([governed(origin, Some(policy))]));
                let mut world = World::with(&rules, &[("a", "s")]);
                world.secret(origin, "s");
                world.settle(&rules, "a");
                let primary = World::with(&rules, &[("a", "t")]).states.remove("a").unwrap();
                world.states.insert("a".into(), primary);
                world.edit("kcp", "CronTab", "a", json!({"spec": {"image": "t"}}));
                let copy = world.copy("a").unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
                world.edit("service", "CronTab", &copy, json!({"spec": {"image": "t"}}));
                world.events.clear();
                world.settle(&rules, "a");
                let there = |world: &World| world.get(other_side(origin), "Secret", "s").is_some();
                let case = format!("{origin} {policy} {copy_of_primary}");
                assert_eq!(there(&world), !goes.0, "{case}");
                let told = world.events.iter().filter(|event| **event == Event::Pruned).count();
                assert_eq!(told, usize::from(goes.0), "{case}");
                if !copy_of_primary {
                    world.objects.retain(|name, _| !name.starts_with("service CronTab"));
                }
                world.delete("kcp", "CronTab", "a");
                world.settle(&rules, "a");
                assert!(world.get("kcp", "CronTab", "a").is_none(), "{case}");
                assert_eq!(there(&world), !goes.1, "{case}");
                assert!(world.get(origin, "Secret", "s").is_some(), "{case}");
            }
        }
    }
}

#[test]
fn a_copy_is_known_by_its_marks_although_nothing_is_remembered() {
    for origin in ["kcp", "service"] {
        for marked in [true, false] {
            let rules = rules(json!([governed(origin, Some("OnPrimaryDeletion"))]));
            let mut world = World::with(&rules, &[("a", "s")]);
            world.secret(origin, "s");
            world.settle(&rules, "a");
            world.states.clear();
            let edit = if marked { json!({}) } else { json!({"metadata": {"labels": null, "managedFields": null}}) };
            world.edit(other_side(origin), "Secret", "s", edit);
            world.edit(other_side(origin), "Secret", "s", json!({"data": {"more": "content"}}));
            world.delete("kcp", "CronTab", "a");
            world.settle(&rules, "a");
            assert!(world.get("kcp", "CronTab", "a").is_none());
            assert_eq!(world.get(other_side(origin), "Secret", "s").is_none(), marked, "{origin}");
            let kinds: Vec<_> = world.deleted.iter().map(|(name, _)| name.contains("Secret")).collect();
            assert_eq!(
                kinds,
                if marked { &[true, false][..] } else { &[false] },
                "{origin}: it goes before the primary"
            );
            assert!(!has_finalizer(world.get(origin, "Secret", "s").unwrap()), "{origin}");
        }
    }
}

#[test]
fn nothing_is_pruned_that_is_not_marked_or_that_somebody_uses() {
    let rules = rules(json!([governed("service", Some("MatchOrigin"))]));
    let marked = |world: &mut World, name: &str, primary: &str, agent: &str, identifier: &str| {
        world.secret("kcp", name);
        let marks = Provenance::of(&World::key(primary), &rules.name, identifier, agent);
        crate::rules::metadata::write_link(
            &marks.link,
            world.objects.get_mut(&super::tests::name("kcp", "Secret", "default", name)).unwrap(),
            agent,
        );
    };
    let mut world = World::with(&rules, &[("a", "s"), ("b", "used")]);
    world.secret("service", "s");
    world.secret("service", "used");
    world.settle(&rules, "a");
    world.settle(&rules, "b");
    world.secret("kcp", "unmarked");
    marked(&mut world, "theirs", "b", "agent", "creds");
    marked(&mut world, "other-agent", "a", "other", "creds");
    marked(&mut world, "other-entry", "a", "agent", "other");
    marked(&mut world, "used", "a", "agent", "creds");
    marked(&mut world, "stray", "a", "agent", "creds");
    world.written("kcp Secret default/stray");
    // Whoever makes a Secret from the manifest of a copy copies its labels, too.
    marked(&mut world, "from-manifest", "a", "agent", "creds");
    world.settle(&rules, "a");
    let left = |world: &World| -> Vec<String> {
        let all = world.objects.keys().filter_map(|name| name.strip_prefix("kcp Secret default/"));
        all.map(str::to_owned).collect()
    };
    assert_eq!(left(&world), ["from-manifest", "other-agent", "other-entry", "s", "theirs", "unmarked", "used"]);
    assert_eq!(world.deleted, [("kcp Secret default/stray".to_owned(), Dependents::Later)]);
    world.delete("kcp", "CronTab", "a");
    world.settle(&rules, "a");
    assert_eq!(left(&world), ["from-manifest", "other-agent", "other-entry", "theirs", "unmarked", "used"]);
    assert!(world.get("kcp", "CronTab", "a").is_none(), "what is left does not hold the primary");
}

#[test]
fn a_stray_that_somebody_holds_is_waited_for() {
    let rules = rules(json!([governed("service", Some("OnPrimaryDeletion"))]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "stray");
    let marks = Provenance::of(&World::key("a"), &rules.name, "creds", "agent");
    crate::rules::metadata::write_link(
        &marks.link,
        world.objects.get_mut("kcp Secret default/stray").unwrap(),
        "agent",
    );
    world.written("kcp Secret default/stray");
    world.edit("kcp", "Secret", "stray", json!({"metadata": {"finalizers": ["other"]}}));
    world.delete("kcp", "CronTab", "a");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "CronTab", "a").is_some());
    assert_eq!(world.plan(&rules, "a").next, Next::Soon);
    world.edit("kcp", "Secret", "stray", json!({"metadata": {"finalizers": null}}));
    world.settle(&rules, "a");
    assert!(world.get("kcp", "CronTab", "a").is_none());
    assert_eq!(world.deleted.len(), 2, "the stray was deleted once: {:?}", world.deleted);
}

#[test]
fn a_renamed_entry_or_published_resource_keeps_its_copies_and_marks_them_again() {
    let before = rules(json!([governed("service", Some("MatchOrigin"))]));
    let mut world = World::with(&before, &[("a", "s")]);
    world.secret("service", "s");
    world.settle(&before, "a");
    let (uid, owner) = {
        let metadata = &world.get("kcp", "Secret", "s").unwrap()["metadata"];
        (metadata["uid"].clone(), metadata["labels"]["syncagent.kcp.io/related-owner"].clone())
    };
    let mut entry = governed("service", Some("MatchOrigin"));
    entry["identifier"] = "renamed".into();
    let mut after = rules(json!([entry]));
    after.name = "publish-crontabs-anew".into();
    world.settle(&after, "a");
    let metadata = &world.get("kcp", "Secret", "s").unwrap()["metadata"];
    assert_eq!(
        (&metadata["uid"], &metadata["labels"]["syncagent.kcp.io/related-identifier"]),
        (&uid, &json!("renamed"))
    );
    assert_ne!(metadata["labels"]["syncagent.kcp.io/related-owner"], owner);
    assert_eq!(world.states["a"].records().count(), 1);
}

#[test]
fn dependents_of_a_copy_end_as_the_owner_of_its_original_wishes() {
    let wish =
        |value: &str| json!({"metadata": {"annotations": {"syncagent.kcp.io/deletion-propagation-policy": value}}});
    for (origin, of_secret, of_primary, expected) in [
        ("kcp", "foreground", "orphan", [Dependents::First, Dependents::Stay]),
        ("kcp", "", "foreground", [Dependents::Later, Dependents::First]),
        ("kcp", "Foreground", "nonsense", [Dependents::Later, Dependents::Later]),
        ("service", "foreground", "orphan", [Dependents::Later, Dependents::Stay]),
        ("service", "orphan", "background", [Dependents::Later, Dependents::Later]),
    ] {
        let rules = rules(json!([governed(origin, Some("OnPrimaryDeletion"))]));
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret(origin, "s");
        world.settle(&rules, "a");
        world.edit(origin, "Secret", "s", wish(of_secret));
        world.edit("kcp", "CronTab", "a", wish(of_primary));
        world.settle(&rules, "a");
        assert!(world.get(other_side(origin), "Secret", "s").unwrap()["metadata"]["annotations"]
            ["syncagent.kcp.io/deletion-propagation-policy"].is_null(), "the wish itself does not travel");
        world.delete("kcp", "CronTab", "a");
        world.settle(&rules, "a");
        let found: Vec<Dependents> = world.deleted.iter().map(|(_, dependents)| *dependents).collect();
        assert_eq!(found, expected, "{origin} {of_secret} {of_primary}");
    }
}

#[test]
fn a_shared_original_is_released_by_the_last_of_its_primaries() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = World::with(&rules, &[("a", "s"), ("b", "s")]);
    world.secret("kcp", "s");
    for primary in ["a", "b"] {
        world.settle(&rules, primary);
    }
    world.delete("kcp", "CronTab", "a");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "CronTab", "a").is_none());
    assert!(world.is_held("s") && world.get("service", "Secret", "s").is_some(), "b still needs it");
    world.delete("kcp", "CronTab", "b");
    world.settle(&rules, "b");
    assert_eq!(world.get("kcp", "Secret", "s").unwrap()["metadata"]["finalizers"], json!([]));
    assert!(world.get("service", "Secret", "s").is_none());
}

#[test]
fn a_shared_original_that_its_owner_deletes_is_gone_at_once() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = World::with(&rules, &[("a", "s"), ("b", "s")]);
    world.secret("kcp", "s");
    for primary in ["a", "b"] {
        world.settle(&rules, primary);
    }
    world.delete("kcp", "Secret", "s");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "Secret", "s").is_none() && world.get("service", "Secret", "s").is_none());
    assert_eq!(world.states["a"].records().count(), 0);
    world.settle(&rules, "b");
    assert_eq!(world.states["b"].records().count(), 0);
}

#[test]
fn what_the_rules_no_longer_select_is_released() {
    let named = rules(json!([referred("kcp")]));
    for (change, now) in [("another name", rules(json!([referred("kcp")]))), ("no entry", rules(json!([])))] {
        let mut world = World::with(&named, &[("a", "s")]);
        world.secret("kcp", "s");
        world.secret("kcp", "t");
        world.settle(&named, "a");
        assert!(world.is_held("s") && !world.is_held("t"));
        world.edit("kcp", "CronTab", "a", json!({"spec": {"image": "t"}}));
        world.settle(&now, "a");
        assert_eq!(world.get("kcp", "Secret", "s").unwrap()["metadata"]["finalizers"], json!([]), "{change}");
        assert!(world.get("service", "Secret", "s").is_none(), "{change}");
        let named_now = !now.related.is_empty();
        assert_eq!(world.is_held("t"), named_now, "{change}");
        assert_eq!(world.states["a"].records().count(), usize::from(named_now), "{change}");
    }
}

#[test]
fn the_copy_and_annotation_of_a_vanished_original_of_the_service_are_removed() {
    let rules = rules(json!([referred("service")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("service", "s");
    world.settle(&rules, "a");
    let annotation = format!("{RELATED_PREFIX}creds.0");
    let annotations = |world: &World| world.get("kcp", "CronTab", "a").unwrap()["metadata"]["annotations"].clone();
    assert!(annotations(&world)[&annotation].is_string() && world.get("kcp", "Secret", "s").is_some());
    world.objects.remove(&name("service", "Secret", CLUSTER, "s"));
    world.settle(&rules, "a");
    assert!(world.get("kcp", "Secret", "s").is_none());
    assert_eq!(annotations(&world), json!({HELD_BY: "agent"}));
    assert_eq!(world.states["a"].records().count(), 0);
}

#[test]
fn a_consumers_object_that_was_never_synced_is_never_deleted() {
    let rules = rules(json!([referred("service")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    world.settle(&rules, "a");
    world.secret("service", "s");
    world.edit("service", "Secret", "s", json!({"metadata": {"finalizers": ["operator"]}}));
    world.delete("service", "Secret", "s");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "Secret", "s").is_some());
    world.delete("kcp", "CronTab", "a");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "Secret", "s").is_some());
}

#[test]
fn without_state_only_what_the_agent_wrote_is_deleted() {
    let rules = rules(json!([referred("kcp")]));
    let ends: [(Value, bool); 5] = [
        (json!({}), true),
        (json!({"metadata": {"labels": {"by": "operator"}}}), true),
        (json!({"data": {"more": "content"}}), true),
        (json!({"metadata": {"managedFields": null}}), false),
        (json!({"metadata": {"managedFields": [{"manager": "kubectl", "fieldsV1": {"f:data": {}}}]}}), false),
    ];
    for (edit, goes) in ends {
        for what in ["original", "primary"] {
            let mut world = World::with(&rules, &[("a", "s")]);
            world.secret("kcp", "s");
            world.settle(&rules, "a");
            world.edit("service", "Secret", "s", edit.clone());
            world.states.clear();
            let (kind, name) = if what == "original" { ("Secret", "s") } else { ("CronTab", "a") };
            world.delete("kcp", kind, name);
            world.settle(&rules, "a");
            assert_eq!(world.get("service", "Secret", "s").is_none(), goes, "{what} {edit}");
            match world.get("kcp", "Secret", "s") {
                Some(original) => assert!(what == "primary" && !has_finalizer(original), "{what} {edit}"),
                None => assert_eq!(what, "original"),
            }
        }
    }
}

#[test]
fn an_original_that_somebody_else_holds_is_left_to_them() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = World::with(&rules, &[("a", "s"), ("b", "s")]);
    world.secret("kcp", "s");
    world.settle(&rules, "b");
    world.states.remove("a");
    world.delete("kcp", "Secret", "s");
    assert!(
        world
            .plan(&rules, "a")
            .strands
            .iter()
            .flatten()
            .all(|step| !matches!(step, Step::Delete { .. } | Step::SetFinalizers { .. }))
    );
    world.settle(&rules, "b");
    assert!(world.get("kcp", "Secret", "s").is_none() && world.get("service", "Secret", "s").is_none());
}

#[test]
fn two_originals_for_one_copy_are_refused_unless_one_was_there_first() {
    let to_one = |identifier: &str, original: &str| {
        let template = format!("{{{{ if eq .Side \"kcp\" }}}}{original}{{{{ else }}}}copy{{{{ end }}}}");
        json!({"identifier": identifier, "origin": "kcp", "kind": "Secret", "object": {"template": {"template": template}}})
    };
    let rules = rules(json!([to_one("first", "s"), to_one("second", "t")]));
    let mut world = World::with(&rules, &[("a", "-")]);
    world.secret("kcp", "s");
    world.secret("kcp", "t");
    let plan = world.plan(&rules, "a");
    assert!(plan.steps.is_empty() && plan.strands.is_empty(), "{plan:?}");
    assert_eq!(plan.problems.len(), 2, "{:?}", plan.problems);
    assert!(plan.problems[0].contains("Secret default/s and kcp Secret default/t would both become"));

    world.delete("kcp", "Secret", "t");
    world.settle(&rules, "a");
    assert!(world.get("service", "Secret", "copy").is_some() && world.is_held("s"));
    world.secret("kcp", "t");
    let plan = world.plan(&rules, "a");
    assert!(plan.strands.is_empty() && plan.problems.len() == 1, "the first one stays: {plan:?}");
    assert!(plan.problems[0].contains("\"second\""));
    world.delete("kcp", "Secret", "s");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "Secret", "s").is_none() && world.is_held("t"), "the place is free");
}

#[test]
fn another_primarys_copy_is_not_taken_for_another_original() {
    let template = "{{ if eq .Side \"kcp\" }}{{ .Object.spec.image }}{{ else }}copy{{ end }}";
    let rules = rules(
        json!([{"identifier": "creds", "origin": "kcp", "kind": "Secret", "object": {"template": {"template": template}}}]),
    );
    let mut world = World::with(&rules, &[("a", "s"), ("b", "t"), ("c", "s")]);
    world.secret("kcp", "s");
    world.secret("kcp", "t");
    world.settle(&rules, "a");
    let plan = world.plan(&rules, "b");
    assert!(plan.strands.is_empty() && plan.problems[0].contains("kcp Secret default/s"), "{plan:?}");
    world.settle(&rules, "c");
    assert!(world.plan(&rules, "c").problems.is_empty(), "the same original may be shared");
}

#[test]
fn an_original_in_kcp_that_is_out_of_sight_changes_nothing_unless_copies_must_match() {
    for (policy, goes) in
        [(None, false), (Some("Orphan"), false), (Some("OnPrimaryDeletion"), false), (Some("MatchOrigin"), true)]
    {
        let rules = rules(json!([governed("kcp", policy)]));
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret("kcp", "s");
        world.settle(&rules, "a");
        let hidden = world.objects.remove(&name("kcp", "Secret", "default", "s")).unwrap();
        assert_eq!(world.plan(&rules, "a").is_settled(), !goes, "{policy:?}");
        world.settle(&rules, "a");
        assert_eq!(world.get("service", "Secret", "s").is_none(), goes, "{policy:?}");
        world.objects.insert(name("kcp", "Secret", "default", "s"), hidden);
        world.settle(&rules, "a");
        assert!(world.get("service", "Secret", "s").is_some() && world.is_held("s"), "{policy:?}");
    }
}

#[test]
fn a_primary_whose_copy_is_gone_still_releases_its_related_objects() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    world.settle(&rules, "a");
    world.objects.retain(|name, _| !name.starts_with("service CronTab"));
    world.delete("kcp", "CronTab", "a");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "CronTab", "a").is_none() && world.get("service", "Secret", "s").is_none());
    assert_eq!(world.get("kcp", "Secret", "s").unwrap()["metadata"]["finalizers"], json!([]));
    assert!(world.states.is_empty());
}

#[test]
fn copies_of_the_services_objects_stay_unless_cleanup_is_asked_for() {
    for cleanup in [false, true] {
        let mut entry = referred("service");
        entry["cleanup"] = cleanup.into();
        let rules = rules(json!([entry]));
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret("service", "s");
        world.settle(&rules, "a");
        world.delete("kcp", "CronTab", "a");
        world.settle(&rules, "a");
        assert!(world.get("kcp", "CronTab", "a").is_none());
        assert_eq!(world.get("kcp", "Secret", "s").is_none(), cleanup);
        assert!(world.get("service", "Secret", "s").is_some(), "the original is never deleted");
    }
}

#[test]
fn keys_stay_when_other_objects_come_and_go() {
    let maps = json!({"identifier": "maps", "origin": "kcp", "kind": "ConfigMap",
        "object": {"reference": {"path": "spec.image"}}});
    let rules = rules(json!([referred("kcp"), maps]));
    let mut world = World::with(&rules, &[("a", "s")]);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"k": "v"}});
    world.put("kcp", "ConfigMap", "default", map);
    world.settle(&rules, "a");
    let key_of = |world: &World, identifier: &str| {
        let mut records = world.states["a"].records().filter(|(_, record)| record.identifier == identifier);
        records.next().map(|(key, _)| key.to_owned())
    };
    let plain = Some(entry_key(CLUSTER, "default", "s"));
    assert_eq!(key_of(&world, "maps"), plain, "without a collision it is the reference's key");
    world.secret("kcp", "s");
    world.settle(&rules, "a");
    let own = key_of(&world, "creds");
    assert!(own.is_some() && own != plain && key_of(&world, "maps") == plain);
    world.delete("kcp", "ConfigMap", "s");
    world.settle(&rules, "a");
    assert_eq!((key_of(&world, "maps"), key_of(&world, "creds")), (None, own));
}

#[test]
fn annotations_stand_for_objects_that_exist_and_others_are_left_alone() {
    let entry = json!({"identifier": "creds", "origin": "service", "kind": "Secret",
        "object": {"reference": {"path": "spec.items"}}});
    let rules = rules(json!([entry]));
    let mut world = World::with(&rules, &[("a", "s")]);
    let foreign = format!("{RELATED_PREFIX}creds.x");
    world.edit("kcp", "CronTab", "a", json!({"spec": {"items": ["s", "t"]}}));
    world.edit("kcp", "CronTab", "a", json!({"metadata": {"annotations": {foreign.clone(): "{}", "other": "1"}}}));
    world.secret("service", "s");
    world.secret("service", "t");
    world.settle(&rules, "a");
    let annotations = |world: &World| -> Vec<String> {
        let all = &world.get("kcp", "CronTab", "a").unwrap()["metadata"]["annotations"];
        all.as_object().unwrap().keys().filter(|key| *key != HELD_BY).cloned().collect()
    };
    let key = |index: &str| format!("{RELATED_PREFIX}creds.{index}");
    assert_eq!(annotations(&world), ["other".into(), key("0"), key("1"), foreign.clone()]);
    world.edit("kcp", "CronTab", "a", json!({"spec": {"items": ["t"]}}));
    world.settle(&rules, "a");
    assert_eq!(annotations(&world), ["other".into(), key("0"), foreign]);
    assert!(world.get("kcp", "Secret", "s").is_none() && world.get("kcp", "Secret", "t").is_some());
}

#[test]
fn a_status_travels_with_its_mutation_and_never_back() {
    let mut entry = referred("kcp");
    entry["syncStatus"] = true.into();
    entry["mutation"] = json!({"status": [{"regex": {"path": "status.phase", "pattern": "^", "replacement": "was "}}]});
    let rules = rules(json!([entry]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    world.edit("kcp", "Secret", "s", json!({"status": {"phase": "Ready"}}));
    world.settle(&rules, "a");
    assert_eq!(world.get("service", "Secret", "s").unwrap()["status"], json!({"phase": "was Ready"}));
    world.edit("service", "Secret", "s", json!({"status": {"phase": "forged"}}));
    world.settle(&rules, "a");
    assert_eq!(world.get("service", "Secret", "s").unwrap()["status"], json!({"phase": "was Ready"}));
    assert_eq!(world.get("kcp", "Secret", "s").unwrap()["status"], json!({"phase": "Ready"}));

    world.edit("kcp", "Secret", "s", json!({"data": {"k": "w"}, "status": {"phase": "Done"}}));
    let plan = world.plan(&rules, "a");
    assert_eq!(plan.next, Next::Now, "a status follows its content at once");
    world.run("a", plan, usize::MAX);
    world.run("a", world.plan(&rules, "a"), usize::MAX);
    assert_eq!(world.get("service", "Secret", "s").unwrap()["status"], json!({"phase": "was Done"}));
    assert!(world.plan(&rules, "a").is_settled());
}

#[test]
fn a_status_that_has_nowhere_to_go_is_reported_and_nothing_else_happens() {
    let mut entry = referred("kcp");
    entry["syncStatus"] = true.into();
    let rules = rules(json!([entry]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.status = false;
    world.secret("kcp", "s");
    world.edit("kcp", "Secret", "s", json!({"status": {"phase": "Ready"}}));
    world.settle(&rules, "a");
    let plan = world.plan(&rules, "a");
    assert_eq!(plan.next, Next::OnChange);
    let [strand] = plan.strands.as_slice() else { panic!("{plan:?}") };
    assert!(matches!(strand[..], [Step::Report { event: Event::StatusSubresourceMissing, .. }]), "{strand:?}");
}

#[test]
fn a_secret_whose_type_changes_is_created_again() {
    let rules = rules(json!([referred("service")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("service", "s");
    world.settle(&rules, "a");
    let before = world.get("kcp", "Secret", "s").unwrap()["metadata"]["uid"].clone();
    world.edit("service", "Secret", "s", json!({"type": "example.com/other"}));
    world.settle(&rules, "a");
    let now = world.get("kcp", "Secret", "s").unwrap();
    assert_eq!(now["type"], "example.com/other");
    assert_ne!(now["metadata"]["uid"], before);
}

#[test]
fn an_entry_that_fails_does_not_hinder_the_others() {
    let mut broken = referred("kcp");
    broken["identifier"] = "broken".into();
    broken["object"] = json!({"template": {"template": "s"}});
    broken["mutation"] = json!({"spec": [{"cel": {"path": "data.k", "expression": "self.nope.nope"}}]});
    let rules = rules(json!([broken, referred("service")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    world.edit("kcp", "Secret", "s", json!({"metadata": {"name": "s"}}));
    world.objects.remove(&name("service", "Secret", CLUSTER, "s"));
    let plan = world.plan(&rules, "a");
    assert!(plan.problems[0].contains("broken"), "{plan:?}");
    world.settle(&rules, "a");
}

#[test]
fn an_object_that_was_there_before_is_neither_overwritten_nor_deleted() {
    for (origin, destination) in [("kcp", "service"), ("service", "kcp")] {
        let mut entry = referred(origin);
        entry["cleanup"] = true.into();
        let rules = rules(json!([entry]));
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret(destination, "s");
        world.edit(destination, "Secret", "s", json!({"data": {"mine": "1"}}));
        world.secret(origin, "s");
        let before = world.get(destination, "Secret", "s").cloned();
        let plan = world.plan(&rules, "a");
        assert!(plan.problems[0].contains("syncagent.kcp.io/adoption: TakeOver"), "{plan:?}");
        world.settle(&rules, "a");
        assert_eq!(world.get(destination, "Secret", "s").cloned(), before);
        assert!(!has_finalizer(world.get(origin, "Secret", "s").unwrap()), "nothing is held for it");
        world.delete("kcp", "CronTab", "a");
        world.settle(&rules, "a");
        assert!(world.get("kcp", "CronTab", "a").is_none());
        assert_eq!(world.get(destination, "Secret", "s").cloned(), before, "it stays when the order goes");
    }
}

#[test]
fn an_object_that_its_owner_offers_is_taken_over_with_the_content_of_the_original() {
    for by_rules in [false, true] {
        let mut spec = json!({ "related": [referred("kcp")] });
        if by_rules {
            spec["adoption"] = "TakeOver".into();
        }
        let rules = Rules::compile(&published(spec), &crontab(), "agent").unwrap();
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret("service", "s");
        let offer = if by_rules { json!({}) } else { json!({"syncagent.kcp.io/adoption": "TakeOver"}) };
        world.edit("service", "Secret", "s", json!({"data": {"mine": "1"}, "metadata": {"annotations": offer}}));
        world.secret("kcp", "s");
        world.settle(&rules, "a");
        assert_eq!(world.get("service", "Secret", "s").unwrap()["data"], json!({"k": "v"}));
        world.edit("kcp", "Secret", "s", json!({"data": {"k": "w"}}));
        world.settle(&rules, "a");
        assert_eq!(world.get("service", "Secret", "s").unwrap()["data"], json!({"k": "w"}), "it is a copy now");
    }
}

#[test]
fn an_object_that_replaces_a_copy_is_somebody_elses() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    world.settle(&rules, "a");
    world.objects.remove(&name("service", "Secret", CLUSTER, "s"));
    world.secret("service", "s");
    world.edit("service", "Secret", "s", json!({"data": {"k": "theirs"}, "metadata": {"uid": "theirs"}}));
    world.edit("kcp", "Secret", "s", json!({"data": {"k": "new"}}));
    assert_eq!(world.plan(&rules, "a").problems.len(), 1);
    world.settle(&rules, "a");
    world.delete("kcp", "CronTab", "a");
    world.settle(&rules, "a");
    assert_eq!(world.get("service", "Secret", "s").unwrap()["data"]["k"], "theirs");
    assert!(!has_finalizer(world.get("kcp", "Secret", "s").unwrap()), "the original is free all the same");
}

#[test]
fn a_related_object_that_is_another_agents_primary_keeps_that_agents_finalizer() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    // Held by an unnamed agent and by a named one.
    for held_by in [json!(null), json!("other")] {
        let held = json!({"finalizers": [FINALIZER], "annotations": {HELD_BY: held_by}});
        world.edit("kcp", "Secret", "s", json!({ "metadata": held }));
        world.settle(&rules, "a");
        assert!(world.get("service", "Secret", "s").is_some());
        world.edit("kcp", "CronTab", "a", json!({"spec": {"image": "t"}}));
        world.settle(&rules, "a");
        assert!(world.get("service", "Secret", "s").is_none(), "our copy is gone");
        assert!(has_finalizer(world.get("kcp", "Secret", "s").unwrap()), "{held_by}: the other one is not done");
        world.edit("kcp", "CronTab", "a", json!({"spec": {"image": "s"}}));
    }
}

#[test]
fn a_copy_is_known_again_when_the_memory_is_lost() {
    for (origin, destination) in [("kcp", "service"), ("service", "kcp")] {
        let rules = rules(json!([referred(origin)]));
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret(origin, "s");
        world.settle(&rules, "a");
        world.states.clear();
        world.edit(origin, "Secret", "s", json!({"data": {"k": "new"}}));
        world.settle(&rules, "a");
        assert_eq!(world.get(destination, "Secret", "s").unwrap()["data"]["k"], "new", "{origin}");
    }
}

#[test]
fn what_the_reference_agent_remembers_costs_no_write() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    world.settle(&rules, "a");
    let mut state = PrimaryState::default();
    for (key, entry) in world.states["a"].entries() {
        state.note(key, entry.last.as_ref().unwrap().whole().unwrap().clone());
    }
    world.states.insert("a".into(), state);
    for (at, object) in [("kcp", "a"), ("service", "a")] {
        if let Some(object) = world.objects.get_mut(&name(at, "CronTab", "default", object)) {
            object["metadata"]["annotations"].as_object_mut().unwrap().remove(HELD_BY);
        }
    }
    let plan = world.plan(&rules, "a");
    assert!(plan.is_settled(), "{plan:?}");
    assert_eq!(plan.implied.len(), 1);
}

proptest! {
    /// Names change and the agent dies after any number of steps: in the end exactly the selected objects are held and copied.
    #[test]
    fn nothing_is_left_behind_whatever_happens(
        names in prop::collection::vec("[stu]", 1..4),
        at in 0usize..9,
        apply in any::<bool>(),
    ) {
        let rules = Rules { apply, ..rules(json!([referred("kcp")])) };
        let mut world = World::with(&rules, &[("a", "s")]);
        for secret in ["s", "t", "u"] {
            world.secret("kcp", secret);
        }
        for name in &names {
            let plan = world.plan(&rules, "a");
            world.run("a", plan, at);
            world.edit("kcp", "CronTab", "a", json!({"spec": {"image": name}}));
        }
        world.settle(&rules, "a");
        for secret in ["s", "t", "u"] {
            let named = names.last().is_some_and(|name| name == secret);
            prop_assert_eq!(world.is_held(secret), named, "{}", secret);
            prop_assert_eq!(world.get("service", "Secret", secret).is_some(), named, "{}", secret);
        }
        world.delete("kcp", "CronTab", "a");
        let plan = world.plan(&rules, "a");
        world.run("a", plan, at);
        world.settle(&rules, "a");
        prop_assert!(world.states.is_empty() && world.get("kcp", "CronTab", "a").is_none());
        for secret in ["s", "t", "u"] {
            prop_assert!(!world.is_held(secret) && world.get("service", "Secret", secret).is_none());
        }
    }
}

#[test]
fn very_many_are_announced_by_one_write_and_beyond_a_limit_they_are_refused_by_name() {
    let rules = rules(json!([referred("service")]));
    let world = World::with(&rules, &[("a", "creds")]);
    let source = world.get("kcp", "CronTab", "a").unwrap();
    let secrets = kind(&Gvr { group: String::new(), version: "v1".into(), resource: "secrets".into() });
    let view = |count: usize, copied: bool| {
        let seen = |number: usize| {
            let name = format!("s{number:04}-{}", "x".repeat(240));
            let object = |namespace: &str| {
                json!({"apiVersion": "v1", "kind": "Secret", "data": {},
                "metadata": {"name": name, "namespace": namespace, "uid": name}})
            };
            RelatedSeen {
                entry: 0,
                origin_kind: secrets.clone(),
                destination_kind: secrets.clone(),
                destination_status: false,
                origin: object(CLUSTER),
                destination_namespace: "default".into(),
                destination_name: name.clone(),
                destination: copied.then(|| object("default")),
                others: Vec::new(),
                rival: None,
                ordered: false,
                wanted: false,
            }
        };
        RelatedView { seen: (0..count).map(seen).collect(), ..RelatedView::default() }
    };
    let plan = |state: &PrimaryState, related: &RelatedView| {
        let seen = PrimaryView {
            key: &World::key("a"),
            workspace: crate::rules::naming::Workspace::default(),
            source: Some(source),
            namespace: None,
            copies: world.copy("a").map_or(Copies::None, Copies::One),
            state,
            related: Some(related),
            others: &[],
            released: false,
            ahead: 0,
            ended: false,
            former: &NOBODY,
            now: "2026-01-01T00:00:00Z",
            managed: None,
        };
        decide(&rules, seen).unwrap()
    };
    let noted = |uid: &str| crate::decide::state::CopyNote {
        uid: uid.to_owned(),
        namespace: None,
        name: String::new(),
        source: None,
        how: Some(carrick_sync::Acquired::Made),
        write: 0,
    };
    let mut state = world.states["a"].clone();
    let first = plan(&state, &view(2_100, false));
    assert!(
        first.problems.iter().any(|problem| problem.contains("100 related objects are not copied")),
        "{:?}",
        first.problems
    );
    let creates = first.strands.iter().flatten().filter(|step| matches!(step, Step::Create { .. })).count();
    assert_eq!(creates, 2_000);
    for step in first.steps.into_iter().chain(first.strands.into_iter().flatten()) {
        match step {
            Step::Track { records } => state.track_all(records),
            Step::Remember { entry, value, .. } => {
                state.note_written(&entry, Applied::Whole(value), Some(noted("uid")));
            }
            _ => {}
        }
    }
    let uids: Vec<(String, String)> =
        state.records().map(|(key, record)| (key.to_owned(), record.copy.name.clone())).collect();
    for (key, uid) in &uids {
        state.note_copy(key, noted(uid));
    }
    let second = plan(&state, &view(2_000, true));
    let announcing: Vec<&Value> = second
        .strands
        .iter()
        .flatten()
        .filter_map(|step| if let Step::Patch { patch, .. } = step { Some(patch) } else { None })
        .collect();
    assert_eq!(announcing.len(), 1, "{} writes", announcing.len());
    assert!(announcing[0].to_string().len() < 200_000, "servers accept 256 KiB of annotations");
}
