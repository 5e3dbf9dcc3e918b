//! Faults: rights that are missing, answers that get lost, and a konnector that is killed.

use carrick_plane::faults::{Effect, Match, Rule, Turn};
use serde_json::{Value, json};

use super::world::{World, has, message};
use crate::clusters::{BINDER, Cluster, KONNECTOR, Provider, bindings, crd_kind, sheriff_crd, sheriffs};

pub(super) fn sheriff(name: &str) -> Value {
    json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": name}, "spec": {"intent": "x"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_is_named() {
    let (mut world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    // The role of the binding is taken away, so its CRD cannot follow.
    world.revoke("sheriffs").await;
    let mut changed = sheriff_crd();
    changed["spec"]["names"]["shortNames"] = json!(["sh"]);
    provider.write_schema(&changed).await;
    let binding = world.binding("sheriffs", "SchemaInSync", "False", "CustomResourceDefinitionUpdateFailed").await;
    let said = message(&binding, "SchemaInSync");
    assert!(said.contains(KONNECTOR) && said.contains("cannot update resource"), "{said}");
    assert!(said.ends_with("grants it with: konnector roles | kubectl apply -f -"), "{said}");
    world.grant();
    let followed = |crd: &Value| crd["spec"]["names"]["shortNames"] == json!(["sh"]);
    world.consumer.until(&crd_kind(), None, "sheriffs.wild.io", followed).await;
    world.ready("sheriffs").await;
}

/// One write in four is refused, and of one in five nobody hears the answer.
fn disturb(cluster: &Cluster, user: &str, seed: u64) {
    let writes = || {
        Match::writes().filter({
            let user = user.to_owned();
            move |ask| ask.user == user
        })
    };
    let faults = cluster.plane().faults();
    faults.add(Rule::new(writes(), Effect::refuse(503)).on(Turn::Chance { seed, per_mille: 250 }));
    faults.add(Rule::new(writes(), Effect::ApplyThenCut).on(Turn::Chance { seed: seed + 1, per_mille: 200 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_and_refusals_change_nothing_in_the_end() {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    disturb(&world.consumer, KONNECTOR, 7);
    disturb(&provider.cluster, BINDER, 11);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bundle("all", "provider").await;
    world.ready("sheriffs").await;
    world.consumer.apply(&sheriffs(), &sheriff("wyatt")).await;
    provider.cluster.until(&sheriffs(), None, "c-1-wyatt", |copy| copy["spec"]["intent"] == "x").await;
    world.consumer.delete(&crate::clusters::bundles(), None, "all").await;
    world.consumer.until_gone(&bindings(), None, "sheriffs").await;
    assert_eq!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await, None);
    assert_eq!(provider.cluster.get(&sheriffs(), None, "c-1-wyatt").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_that_is_killed_after_any_write_goes_on_where_it_was() {
    let (mut world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    let mut kills = 0;
    let mut killed = async |world: &mut World, done: &mut dyn FnMut(&Value) -> bool| loop {
        let rules = [(&*world.consumer, KONNECTOR), (&provider.cluster, BINDER)].map(|(cluster, user)| {
            let writes = Match::writes().filter(move |ask| ask.user == user);
            (
                cluster.plane().faults().clone(),
                cluster.plane().faults().add(Rule::new(writes, Effect::ApplyThenCut).on(Turn::Nth(1))),
            )
        });
        let hit = async {
            while rules.iter().all(|(faults, rule)| faults.hits(*rule) == 0) {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        let came = tokio::time::timeout(std::time::Duration::from_secs(2), hit).await.is_ok();
        for (faults, rule) in &rules {
            faults.remove(*rule);
        }
        if !came {
            let binding = world.consumer.get(&bindings(), None, "sheriffs").await.unwrap_or_default();
            assert!(done(&binding), "it has come to rest too early: {binding:#}");
            return;
        }
        kills += 1;
        world.kill_konnector().await;
        world.start_konnector().await;
    };
    world.bind("sheriffs", "provider").await;
    killed(&mut world, &mut |binding| has(binding, "Ready", "True", "") && has(binding, "InformersSynced", "True", ""))
        .await;
    world.consumer.apply(&sheriffs(), &sheriff("wyatt")).await;
    killed(&mut world, &mut |_| true).await;
    provider.cluster.until(&sheriffs(), None, "c-1-wyatt", |copy| copy["spec"]["intent"] == "x").await;
    world.consumer.delete(&bindings(), None, "sheriffs").await;
    killed(&mut world, &mut Value::is_null).await;
    assert_eq!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await, None);
    assert_eq!(provider.cluster.get(&sheriffs(), None, "c-1-wyatt").await, None);
    assert!(kills >= 12, "only {kills} writes");
}
