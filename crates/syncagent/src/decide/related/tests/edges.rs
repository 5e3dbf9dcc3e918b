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
fn a_shared_copy_that_an_operator_has_changed_is_everybodys_copy_all_the_same() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = settled(&rules, "kcp");
    world.edit("service", "Secret", "s", json!({"data": {"local": "1"}}));
    let source = json!({"apiVersion": "example.com/v1", "kind": "CronTab", "spec": {"image": "s"},
        "metadata": {"name": "b", "namespace": "default", "uid": "b"}});
    world.put("kcp", "CronTab", "default", source);
    world.settle(&rules, "b");
    let plan = world.plan(&rules, "b");
    assert!(plan.problems.is_empty(), "{plan:?}");
    assert_eq!(world.states["b"].records().count(), 1);
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
fn whose_an_object_is_waits_for_all_that_is_remembered() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    let plan = world.plan(&rules, "a");
    // The agent died after it had created the copy, and its Secret is not in memory.
    let tracked = plan.steps.into_iter().find(|step| matches!(step, Step::Track { .. })).unwrap();
    world.execute("a", tracked);
    let all = world.states["a"].clone();
    replaced(&mut world, "service", json!({}));
    world.states.insert("a".into(), all.sums());
    let plan = world.plan(&rules, "a");
    assert!(plan.needs_memory && writes(&plan).is_empty() && plan.problems.is_empty(), "{plan:?}");
    world.states.insert("a".into(), all);
    let plan = world.plan(&rules, "a");
    assert!(!plan.needs_memory && plan.problems.len() == 1, "{plan:?}");
}
