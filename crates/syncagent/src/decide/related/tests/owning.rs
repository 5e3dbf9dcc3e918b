//! Owning is recorded, never inferred: what equals a copy is not one, and what was taken over is let go.

use super::*;
use crate::rules::metadata::{annotation, label, link_to_object, write_link};

fn with_adoption(policy: &str, related: Value) -> Rules {
    Rules::compile(&published(json!({ "adoption": policy, "related": related })), &crontab(), "agent").unwrap()
}

/// Ends the order, and fails unless it is really gone.
fn end(world: &mut World, rules: &Rules) {
    world.delete("kcp", "CronTab", "a");
    world.settle(rules, "a");
    assert!(world.get("kcp", "CronTab", "a").is_none());
}

/// Everything about an object but its version.
fn essence(object: Option<&Value>) -> Value {
    let mut object = object.cloned().unwrap_or_default();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    object
}

#[test]
fn an_object_that_equals_the_copy_is_not_the_copy() {
    for apply in [false, true] {
        for (origin, destination) in [("kcp", "service"), ("service", "kcp")] {
            for policy in [None, Some("MatchOrigin")] {
                let rules = Rules { apply, ..rules(json!([governed(origin, policy)])) };
                let mut world = World::with(&rules, &[("a", "s")]);
                world.secret(destination, "s");
                world.secret(origin, "s");
                let before = essence(world.get(destination, "Secret", "s"));
                assert_eq!(world.plan(&rules, "a").problems.len(), 1, "{origin} {policy:?}");
                world.settle(&rules, "a");
                world.edit(origin, "Secret", "s", json!({"data": {"k": "changed"}}));
                world.settle(&rules, "a");
                assert_eq!(essence(world.get(destination, "Secret", "s")), before, "{origin} {policy:?}: overwritten");
                end(&mut world, &rules);
                assert_eq!(
                    essence(world.get(destination, "Secret", "s")),
                    before,
                    "{origin} {policy:?}: not theirs any more"
                );
            }
        }
    }
}

#[test]
fn an_object_that_appears_while_the_copy_is_made_is_not_the_copy_however_equal_it_is() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    // What is about to be created is recorded, and then somebody else is faster.
    let plan = world.plan(&rules, "a");
    world.secret("service", "s");
    let before = essence(world.get("service", "Secret", "s"));
    for step in plan.steps {
        world.execute("a", step);
    }
    assert_eq!(world.plan(&rules, "a").problems.len(), 1);
    world.settle(&rules, "a");
    end(&mut world, &rules);
    assert_eq!(essence(world.get("service", "Secret", "s")), before);
}

#[test]
fn a_providers_policy_takes_nothing_on_the_consumers_side() {
    for policy in ["TakeOver", "Link"] {
        let rules = with_adoption(policy, json!([governed("service", Some("OnPrimaryDeletion"))]));
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret("service", "s");
        world.secret("kcp", "s");
        world.edit("kcp", "Secret", "s", json!({"data": {"k": "mine"}}));
        let before = essence(world.get("kcp", "Secret", "s"));
        assert_eq!(world.plan(&rules, "a").problems.len(), 1, "{policy}");
        world.settle(&rules, "a");
        end(&mut world, &rules);
        assert_eq!(essence(world.get("kcp", "Secret", "s")), before, "{policy}");
    }
}

#[test]
fn the_original_of_another_entry_is_taken_by_no_policy() {
    let mut onward = governed("service", Some("OnPrimaryDeletion"));
    onward["identifier"] = "onward".into();
    onward["object"] =
        json!({"template": {"template": "{{ if eq .Side \"kcp\" }}shown{{ else }}{{ .Object.spec.image }}{{ end }}"}});
    for apply in [false, true] {
        let rules = with_adoption("TakeOver", json!([governed("kcp", Some("OnPrimaryDeletion")), onward]));
        let rules = Rules { apply, ..rules };
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret("service", "s");
        world.edit("service", "Secret", "s", json!({"data": {"k": "theirs"}}));
        world.secret("kcp", "s");
        world.settle(&rules, "a");
        assert_eq!(world.plan(&rules, "a").problems.len(), 1, "{apply}");
        assert_eq!(world.get("service", "Secret", "s").unwrap()["data"], json!({"k": "theirs"}), "{apply}: taken");
        assert_eq!(world.get("kcp", "Secret", "shown").unwrap()["data"], json!({"k": "theirs"}), "{apply}: not shown");
        end(&mut world, &rules);
        assert!(world.get("service", "Secret", "s").is_some(), "{apply}: the operator's Secret was deleted");
    }
}

#[test]
fn what_was_taken_over_is_let_go_without_a_trace_of_ours() {
    for apply in [false, true] {
        for (policy, forgotten) in
            [(None, false), (Some("MatchOrigin"), false), (None, true), (Some("MatchOrigin"), true)]
        {
            let rules = Rules { apply, ..with_adoption("TakeOver", json!([governed("kcp", policy)])) };
            let mut world = World::with(&rules, &[("a", "s")]);
            world.secret("service", "s");
            world.edit("service", "Secret", "s", json!({"data": {"k": "theirs"}}));
            world.secret("kcp", "s");
            world.settle(&rules, "a");
            assert_eq!(world.get("service", "Secret", "s").unwrap()["data"], json!({"k": "v"}), "it is taken over");
            world.edit("kcp", "Secret", "s", json!({"data": {"k": "w"}}));
            world.settle(&rules, "a");
            assert_eq!(world.get("service", "Secret", "s").unwrap()["data"], json!({"k": "w"}), "and follows");
            if forgotten {
                world.states.clear();
            }
            end(&mut world, &rules);
            let left = world
                .get("service", "Secret", "s")
                .unwrap_or_else(|| panic!("{apply} {policy:?} {forgotten}: deleted"));
            assert_eq!(left["data"], json!({"k": "w"}));
            assert_eq!(left["metadata"]["uid"], "s");
            assert!(!left["metadata"].to_string().contains("syncagent.kcp.io"), "{left}");
            assert!(!has_finalizer(world.get("kcp", "Secret", "s").unwrap()));
        }
    }
}

/// Two entries that are each other's way back, by rules of which nobody can see that before they are applied.
fn circle() -> Value {
    let (mut there, mut back) =
        (governed("kcp", Some("OnPrimaryDeletion")), governed("service", Some("OnPrimaryDeletion")));
    there["identifier"] = "there".into();
    back["identifier"] = "back".into();
    back["object"] = json!({"template": {"template": "{{ .Object.spec.image }}"}});
    json!([there, back])
}

#[test]
fn entries_that_lead_in_a_circle_end_nobodys_original() {
    for policy in ["Refuse", "TakeOver"] {
        for original in ["kcp", "service"] {
            let rules = with_adoption(policy, circle());
            let mut world = World::with(&rules, &[("a", "s")]);
            world.secret(original, "s");
            for _ in 0..3 {
                world.settle(&rules, "a");
            }
            assert!(world.get(other_side(original), "Secret", "s").is_some(), "it has a copy");
            let plan = world.plan(&rules, "a");
            assert!(plan.problems[0].contains("circle"), "{plan:?}");
            end(&mut world, &rules);
            assert!(world.get(original, "Secret", "s").is_some(), "{policy}: the original in {original} was deleted");
            assert!(world.get(other_side(original), "Secret", "s").is_none(), "{policy}: the copy was left");
        }
    }
}

#[test]
fn where_nothing_says_who_was_first_in_a_circle_nothing_is_deleted() {
    let (rules, started) = (with_adoption("Refuse", circle()), circle());
    let first = with_adoption("Refuse", json!([started[0]]));
    let mut world = World::with(&first, &[("a", "s")]);
    world.secret("kcp", "s");
    world.settle(&first, "a");
    // As an earlier version left it: both are remembered as copies, and neither says how it became one.
    let state = world.states.get_mut("a").unwrap();
    let (key, record) = state.records().map(|(key, record)| (key.to_owned(), record.clone())).next().unwrap();
    let known = state.entry(&key).unwrap().last.clone().unwrap();
    state.drop_entry(&key);
    let back = Record {
        identifier: "back".into(),
        origin: record.copy.clone(),
        copy: record.origin.clone(),
        uid: Some("s".into()),
        how: None,
    };
    for (key, record) in [("there", Record { how: None, ..record }), ("back", back)] {
        state.track(key, record);
        state.note_as(key, known.clone());
    }
    world.edit("service", "Secret", "s", json!({"metadata": {"annotations": {"syncagent.kcp.io/acquired": null}}}));
    end(&mut world, &rules);
    for side in ["kcp", "service"] {
        assert!(world.get(side, "Secret", "s").is_some(), "{side}");
    }
}

#[test]
fn a_copy_of_an_order_is_never_taken_for_a_related_copy() {
    for policy in ["Refuse", "TakeOver"] {
        let rules = with_adoption(policy, json!([governed("kcp", Some("OnPrimaryDeletion"))]));
        let mut world = World::with(&rules, &[("a", "s")]);
        world.secret("kcp", "s");
        world.secret("service", "s");
        let link = link_to_object(&World::key("b"), None, "networks.g", &json!({"metadata": {"uid": "b"}}));
        write_link(&link, world.objects.get_mut(&name("service", "Secret", CLUSTER, "s")).unwrap(), "agent");
        // The owner's word does not help either: it is the copy of an order that lives.
        world.edit(
            "service",
            "Secret",
            "s",
            json!({"metadata": {"annotations": {"syncagent.kcp.io/adoption": "TakeOver"}}}),
        );
        let before = essence(world.get("service", "Secret", "s"));
        world.settle(&rules, "a");
        assert_eq!(world.plan(&rules, "a").problems.len(), 1, "{policy}");
        end(&mut world, &rules);
        assert_eq!(essence(world.get("service", "Secret", "s")), before, "{policy}");
    }
}

#[test]
fn an_object_that_is_an_order_itself_has_its_copy_already() {
    let rules = rules(json!([governed("kcp", Some("OnPrimaryDeletion"))]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    world.ordered = true;
    world.settle(&rules, "a");
    assert!(world.get("service", "Secret", "s").is_none(), "its own order makes the copy");
    assert!(world.plan(&rules, "a").problems.is_empty());
    world.secret("service", "s");
    let link = link_to_object(&World::key("s"), None, "secrets", &json!({"metadata": {"uid": "s"}}));
    write_link(&link, world.objects.get_mut(&name("service", "Secret", CLUSTER, "s")).unwrap(), "agent");
    let before = essence(world.get("service", "Secret", "s"));
    world.settle(&rules, "a");
    assert!(world.plan(&rules, "a").problems.is_empty());
    end(&mut world, &rules);
    assert_eq!(essence(world.get("service", "Secret", "s")), before);
}

#[test]
fn how_the_agent_came_to_a_copy_is_recorded_whatever_a_consumer_says() {
    let rules = rules(json!([referred("kcp")]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("kcp", "s");
    world.edit("kcp", "Secret", "s", json!({"metadata": {"annotations": {"syncagent.kcp.io/acquired": "adopted"}}}));
    world.settle(&rules, "a");
    let copy = world.get("service", "Secret", "s").unwrap();
    assert!(annotation(copy, "syncagent.kcp.io/acquired").is_none(), "{copy}");
    assert!(label(copy, "syncagent.kcp.io/agent-name").is_none(), "without a policy, copies get no labels");
    let uid = copy["metadata"]["uid"].as_str().unwrap().to_owned();
    let (_, record) = world.states["a"].records().next().unwrap();
    assert_eq!((record.uid.as_deref(), record.how), (Some(uid.as_str()), Some(Acquired::Made)));
    end(&mut world, &rules);
    assert!(world.get("service", "Secret", "s").is_none(), "what was made goes");
}

#[test]
fn a_consumer_cannot_claim_an_object_of_the_operator_by_what_stands_on_the_original() {
    let rules = rules(json!([governed("kcp", Some("OnPrimaryDeletion"))]));
    let mut world = World::with(&rules, &[("a", "s")]);
    world.secret("service", "s");
    let before = essence(world.get("service", "Secret", "s"));
    world.secret("kcp", "s");
    let forged = json!({"finalizers": [FINALIZER], "annotations": {HELD_BY: "agent/related"}});
    world.edit("kcp", "Secret", "s", json!({ "metadata": forged }));
    assert_eq!(world.plan(&rules, "a").problems.len(), 1);
    world.settle(&rules, "a");
    end(&mut world, &rules);
    assert_eq!(essence(world.get("service", "Secret", "s")), before);
}
