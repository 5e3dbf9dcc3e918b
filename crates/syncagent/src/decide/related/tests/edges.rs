//! Cases that single planted bugs once slipped through.

use super::*;

/// A world in which one primary has a settled related Secret.
fn settled(rules: &Rules, origin: &str) -> World {
    let mut world = World::with(rules, &[("a", "s")]);
    world.secret(origin, "s");
    world.settle(rules, "a");
    world
}

/// Somebody else's object in the place of the copy.
fn replaced(world: &mut World, side: &str, annotations: Value) {
    let namespace = if side == "kcp" { "default" } else { CLUSTER };
    world.objects.remove(&name(side, "Secret", namespace, "s"));
    world.secret(side, "s");
    let patch =
        json!({"data": {"k": "theirs", "more": "1"}, "metadata": {"uid": "theirs", "annotations": annotations}});
    world.edit(side, "Secret", "s", patch);
}

#[test]
fn labels_of_a_copy_without_the_name_of_an_agent_prove_nothing() {
    let rules = rules(json!([governed("kcp", Some("MatchOrigin"))]));
    let mut world = settled(&rules, "kcp");
    let labels = world.get("service", "Secret", "s").unwrap()["metadata"]["labels"].clone();
    replaced(&mut world, "service", json!({}));
    world.edit("service", "Secret", "s", json!({"metadata": {"labels": labels}}));
    world.edit("service", "Secret", "s", json!({"metadata": {"labels": {"syncagent.kcp.io/agent-name": null}}}));
    assert_eq!(world.plan(&rules, "a").problems.len(), 1);
}

#[test]
fn a_shared_copy_that_somebody_has_changed_is_everybodys_copy_all_the_same() {
    for (origin, destination) in [("kcp", "service"), ("service", "kcp")] {
        let rules = rules(json!([referred(origin)]));
        let mut world = settled(&rules, origin);
        world.edit(destination, "Secret", "s", json!({"data": {"local": "1"}}));
        let source = json!({"apiVersion": "example.com/v1", "kind": "CronTab", "spec": {"image": "s"},
            "metadata": {"name": "b", "namespace": "default", "uid": "b"}});
        world.put("kcp", "CronTab", "default", source);
        world.settle(&rules, "b");
        let plan = world.plan(&rules, "b");
        assert!(plan.problems.is_empty(), "{origin}: {plan:?}");
        assert_eq!(world.states["b"].records().count(), 1, "{origin}");
    }
}

#[test]
fn only_the_word_take_over_gives_an_object_away() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = settled(&rules, "kcp");
    for word in ["Refuse", "takeover", ""] {
        replaced(&mut world, "service", json!({"syncagent.kcp.io/adoption": word}));
        world.settle(&rules, "a");
        assert_eq!(world.get("service", "Secret", "s").unwrap()["data"]["k"], "theirs", "{word}");
    }
}

#[test]
fn an_object_that_was_offered_and_not_taken_stays_when_the_order_goes() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = settled(&rules, "kcp");
    replaced(&mut world, "service", json!({"syncagent.kcp.io/adoption": "TakeOver"}));
    world.delete("kcp", "CronTab", "a");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "CronTab", "a").is_none());
    assert_eq!(world.get("service", "Secret", "s").unwrap()["data"]["k"], "theirs");
}

#[test]
fn an_object_that_is_taken_over_gets_the_content_although_that_was_written_to_its_predecessor() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = settled(&rules, "kcp");
    replaced(&mut world, "service", json!({"syncagent.kcp.io/adoption": "TakeOver"}));
    world.settle(&rules, "a");
    assert_eq!(world.get("service", "Secret", "s").unwrap()["data"]["k"], "v");
}

#[test]
fn an_original_that_another_order_remembers_is_left_to_that_one() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = settled(&rules, "kcp");
    let source = json!({"apiVersion": "example.com/v1", "kind": "CronTab", "spec": {"image": "s"},
        "metadata": {"name": "b", "namespace": "default", "uid": "b"}});
    world.put("kcp", "CronTab", "default", source);
    world.settle(&rules, "b");
    let state = world.states.get_mut("b").unwrap();
    let keys: Vec<String> = state.records().map(|(key, _)| key.to_owned()).collect();
    for key in &keys {
        state.drop_entry(key);
    }
    world.delete("kcp", "Secret", "s");
    let plan = world.plan(&rules, "b");
    assert!(plan.is_settled(), "{plan:?}");
    world.settle(&rules, "a");
    assert!(world.get("kcp", "Secret", "s").is_none() && world.get("service", "Secret", "s").is_none());
}

#[test]
fn without_valid_rules_copies_of_the_services_objects_stay() {
    let valid = rules(json!([referred("service")]));
    let mut world = settled(&valid, "service");
    let broken = published(json!({"naming": {"name": "{{"}}));
    let broken = Rules::afterwards(crate::rules::Duty::End, &broken, &crontab(), "agent").unwrap();
    world.delete("kcp", "CronTab", "a");
    world.settle(&broken, "a");
    assert!(world.get("kcp", "CronTab", "a").is_none());
    assert!(world.get("kcp", "Secret", "s").is_some(), "nobody can tell whether it was to go");
}

#[test]
fn objects_of_different_kinds_and_one_name_have_a_memory_each() {
    let mut map = referred("kcp");
    (map["identifier"], map["kind"]) = ("map".into(), "ConfigMap".into());
    let rules = rules(json!([referred("kcp"), map]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "uid": "m"}, "data": {"x": "y"}});
    world.put("kcp", "ConfigMap", "default", map);
    let plan = world.plan(&rules, "a");
    let [Step::Track { records }] = plan.steps.as_slice() else { panic!("{plan:?}") };
    assert_ne!(records[0].0, records[1].0);
    world.settle(&rules, "a");
    assert_eq!(world.states["a"].records().count(), 2);
    world.edit("kcp", "Secret", "s", json!({"data": {"k": null}}));
    world.settle(&rules, "a");
    assert_eq!(world.get("service", "Secret", "s").unwrap()["data"], json!({}));
    assert_eq!(world.get("service", "ConfigMap", "s").unwrap()["data"], json!({"x": "y"}));
}

#[test]
fn the_reference_agent_finds_what_is_remembered_of_the_services_objects() {
    let world = settled(&rules(json!([referred("service")])), "service");
    assert!(world.states["a"].entry(&entry_key("", CLUSTER, "s")).is_some());
}

#[test]
fn an_original_is_not_a_stray_whatever_marks_it_carries() {
    let rules = rules(json!([governed("kcp", Some("MatchOrigin"))]));
    let world = settled(&rules, "kcp");
    let source = world.get("kcp", "CronTab", "a").unwrap();
    let view = world.view(&rules, "a", source, &PrimaryState::default());
    let record = view.seen[0].record(&rules.related[0]);
    for at in [&record.origin, &record.copy] {
        assert!(!is_stray(at, &PrimaryState::default(), &rules.related, &view.seen), "named: {at}");
        assert!(!is_stray(at, &world.states["a"], &rules.related, &[]), "remembered: {at}");
        assert!(is_stray(at, &PrimaryState::default(), &rules.related, &[]));
    }
}

#[test]
fn what_is_being_deleted_is_not_announced_any_more() {
    let rules = rules(json!([referred("service")]));
    let mut world = settled(&rules, "service");
    let announced = |world: &World| {
        world.get("kcp", "CronTab", "a").unwrap()["metadata"]["annotations"].to_string().contains(RELATED_PREFIX)
    };
    assert!(announced(&world));
    world.edit("service", "Secret", "s", json!({"metadata": {"finalizers": ["operator"]}}));
    world.delete("service", "Secret", "s");
    world.settle(&rules, "a");
    assert!(!announced(&world) && world.get("service", "Secret", "s").is_some());
}

#[test]
fn an_entry_that_cannot_be_read_keeps_its_copies_and_annotations() {
    let rules = rules(json!([governed("service", Some("MatchOrigin"))]));
    let world = settled(&rules, "service");
    let (source, copy) = (world.get("kcp", "CronTab", "a").unwrap(), world.copy("a").unwrap());
    let view = RelatedView { unknown: HashSet::from([0]), ..RelatedView::default() };
    let seen = PrimaryView {
        key: &World::key("a"),
        workspace: crate::rules::naming::Workspace::default(),
        source: Some(source),
        namespace: None,
        copies: Copies::One(copy),
        state: &world.states["a"],
        related: Some(&view),
        others: &[],
        released: false,
        ahead: 0,
        ended: false,
        former: &NOBODY,
        now: "2026-01-01T00:00:00Z",
        managed: None,
    };
    let plan = decide(&rules, seen).unwrap();
    assert!(plan.is_settled(), "{plan:?}");
}

#[test]
fn an_object_that_is_taken_over_is_written_as_a_whole_before_anything_is_applied_to_it() {
    let rules = Rules { apply: true, ..rules(json!([referred("kcp")])) };
    let mut world = settled(&rules, "kcp");
    replaced(&mut world, "service", json!({"syncagent.kcp.io/adoption": "TakeOver"}));
    world.settle(&rules, "a");
    assert_eq!(world.get("service", "Secret", "s").unwrap()["data"], json!({"k": "v"}));
}

#[test]
fn an_immutable_copy_is_created_again_however_it_is_written() {
    for apply in [false, true] {
        let rules = Rules { apply, ..rules(json!([referred("kcp")])) };
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret("kcp", "s");
        world.edit("kcp", "Secret", "s", json!({"immutable": true}));
        world.settle(&rules, "a");
        let before = world.get("service", "Secret", "s").unwrap()["metadata"]["uid"].clone();
        world.edit("kcp", "Secret", "s", json!({"data": {"k": "w"}}));
        world.settle(&rules, "a");
        let after = world.get("service", "Secret", "s").unwrap();
        assert_eq!(after["data"]["k"], "w", "{apply}");
        assert_ne!(after["metadata"]["uid"], before, "{apply}");
    }
}
