//! A konnector that is killed before or after any of its writes, and another one that makes good for it.

use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_konnector::agent::objects::SyncMode;
use carrick_plane::faults::{Effect, Rule, Sample, Turn};
use serde_json::{Value, json};

use super::world::{Shape, World, konnectors_writes, secret, secrets, until, writes};

#[derive(Clone, Copy, Debug)]
enum Moment {
    Before,
    After,
}

/// Whether a konnector dies at one of its writes to one of the planes.
#[derive(Clone, Copy, Debug)]
struct Death {
    side: usize,
    write: u64,
    moment: Moment,
}

fn claim() -> Value {
    json!({"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "shop"}}}})
}

/// Waits for something; a konnector that dies meanwhile is replaced.
async fn survive(
    world: &mut World,
    death: Option<Death>,
    died: &mut bool,
    what: &str,
    is: impl AsyncFn(&World) -> bool,
) {
    if let Some(Death { side, .. }) = death.filter(|_| !*died) {
        let faults = [world.consumer.faults(), world.provider.faults()][side].clone();
        until(&format!("{what} ({death:?}, alive)"), async || {
            is(world).await || faults.counts().cut + faults.counts().applied_then_cut > 0
        })
        .await;
        if faults.counts().cut + faults.counts().applied_then_cut > 0 {
            *died = true;
            world.kill();
            faults.clear();
            world.start();
        }
    }
    until(&format!("{what} ({death:?})"), async || is(world).await).await;
}

/// The life of an object and of a Secret, and the end of their binding. Returns how many writes there were on either side.
async fn life(shape: Shape, death: Option<Death>) -> ([usize; 2], bool) {
    let mut world = World::at_rest(shape).await;
    world.want(SyncMode::Keep, &[claim()]);
    let recordings = world.record();
    if let Some(Death { side, write, moment }) = death {
        let faults = [world.consumer.faults(), world.provider.faults()][side].clone();
        let before = if let Moment::Before = moment { write - 1 } else { write };
        // What would come after its death does not happen.
        faults.add(Rule::new(konnectors_writes(), Effect::Cut).on(Turn::After(before)));
        if let Moment::After = moment {
            faults.add(Rule::new(konnectors_writes(), Effect::ApplyThenCut).on(Turn::Nth(write)));
        }
    }
    let mut died = false;
    world.start();
    world.order("db", &json!({"size": 1, "old": true})).await;
    let here = secret("creds", &json!({"a": "MQ=="}), &json!({"app": "shop"}));
    world.here.create(&secrets(), Some("team"), &here).await.unwrap();
    survive(&mut world, death, &mut died, "it is copied", async |world| {
        world.copy("db").await.is_some() && world.secret_there("creds").await.is_some()
    })
    .await;
    let (there, (_, namespace, name)) = (world.widgets()[1].clone(), world.places("db"));
    let status = json!({"status": {"phase": "Up"}});
    world.there.merge_patch_status(&there, namespace, &name, &status).await.unwrap();
    world.change("db", &json!({"spec": {"size": 2, "old": null}})).await;
    survive(&mut world, death, &mut died, "it is followed", async |world| {
        let source = world.source("db").await.unwrap();
        world.copy("db").await.unwrap()["spec"] == json!({"size": 2})
            && source["status"] == json!({"phase": "Up"})
            && source["metadata"]["annotations"]["kube-bind.io/provider-uid"].is_string()
    })
    .await;
    world.order("other", &json!({})).await;
    survive(&mut world, death, &mut died, "another one is copied", async |world| world.copy("other").await.is_some())
        .await;
    world.cancel("db").await;
    survive(&mut world, death, &mut died, "it ends", async |world| {
        world.source("db").await.is_none() && world.copy("db").await.is_none()
    })
    .await;
    world.want(SyncMode::Drain, &[claim()]);
    survive(&mut world, death, &mut died, "all is drained", async |world| {
        world.told().is_some_and(|told| told.drained)
    })
    .await;
    assert!(world.copy("other").await.is_none() && world.secret_there("creds").await.is_none(), "{death:?}");
    assert_eq!(world.source("other").await.unwrap()["metadata"].get("finalizers"), None, "{death:?}");
    assert_eq!(world.secret_here("creds").await.unwrap()["data"], json!({"a": "MQ=="}));
    let counts = recordings.each_ref().map(|recording| writes(&[recording.clone(), recording.clone()]).len() / 2);
    (counts, died)
}

async fn every_write(shape: Shape) {
    let (counts, _) = life(shape.clone(), None).await;
    assert!(counts.iter().all(|count| *count >= 5), "{counts:?}");
    let sample = Sample::one_in(6);
    println!("killed at {counts:?} writes: {sample}");
    let writes =
        counts.into_iter().enumerate().flat_map(|(side, count)| (1..=count as u64).map(move |write| (side, write)));
    let all =
        writes.flat_map(|(side, write)| [Moment::Before, Moment::After].map(|moment| Death { side, write, moment }));
    let tried: Vec<Death> = (0..).zip(all).filter(|(case, _)| sample.takes(*case)).map(|(_, death)| death).collect();
    let mut deaths = 0;
    for death in &tried {
        deaths += usize::from(life(shape.clone(), Some(*death)).await.1);
    }
    // What is written before a konnector dies may be one write more or less.
    assert!(deaths + 1 + tried.len() / 5 >= tried.len() && deaths > 0, "only {deaths} of {tried:?}; {sample}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_that_is_killed_at_any_write_leaves_nothing_behind() {
    every_write(Shape::namespaced(InformerScope::Namespaced)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_one_of_cluster_scoped_objects() {
    every_write(Shape::cluster(Isolation::Prefixed)).await;
}
