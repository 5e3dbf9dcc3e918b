//! Ends: of bindings, of workspaces, of the contract, and of konnectors at any write.

use carrick_client::DeleteOptions;
use carrick_plane::faults::{Effect, Match, Rule, Sample, Turn};
use futures::StreamExt;
use serde_json::json;

use super::world::{EXPORT, KONNECTOR, Shape, World, api_bindings, api_exports, api_schemas, until, workspaces};
use crate::clusters::{BINDER, bindings, namespaces};

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_that_unbinds_or_is_deleted_takes_exactly_its_copies_along() {
    let world = World::new(Shape::namespaced()).await;
    let mut clusters = Vec::new();
    for workspace in ["unbinds", "goes", "stays"] {
        let cluster = world.consumer(workspace, None).await;
        world.order(workspace, "db", "x").await;
        world.until_copied(&cluster, "db", "x").await;
        clusters.push(cluster);
    }
    let there = &world.provider.cluster;
    let homes = async || {
        let mut homes = Vec::new();
        for cluster in &clusters {
            let copy = world.copy(cluster, "db").await;
            homes.push(copy.map(|copy| copy["metadata"]["namespace"].as_str().unwrap().to_owned()));
        }
        homes
    };
    let before: Vec<String> = homes().await.into_iter().flatten().collect();
    world.at("unbinds").delete(&api_bindings(), None, "wild", &DeleteOptions::default()).await.unwrap();
    until("the copy of what unbinds is gone", async || world.copies(&clusters[0]).await.is_empty()).await;
    until("the binding is gone", async || {
        world.at("unbinds").get(&api_bindings(), None, "wild").await.unwrap().is_none()
    })
    .await;
    until("its namespace there is gone", async || there.get(&namespaces(), None, &before[0]).await.is_none()).await;
    let root = carrick_client::Server::from_kubeconfig_yaml(&world.kcp.kubeconfig("kcp-admin", None).unwrap()).unwrap();
    let root = root.at_path("/clusters/root");
    root.delete(&workspaces(), None, "goes", &DeleteOptions::default()).await.unwrap();
    until("the copy of what goes is gone", async || world.copies(&clusters[1]).await.is_empty()).await;
    until("the workspace is gone", async || root.get(&workspaces(), None, "goes").await.unwrap().is_none()).await;
    world.calm().await;
    assert_eq!(world.copies(&clusters[2]).await.len(), 1);
    assert!(there.get(&namespaces(), None, &before[2]).await.is_some());
    assert_eq!(world.source("stays", "db").await.unwrap()["spec"]["intent"], "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_of_the_providers_binding_drains_all_workspaces_and_withdraws_its_apis() {
    let world = World::new(Shape::namespaced()).await;
    let one = world.consumer("one", None).await;
    let two = world.consumer("two", None).await;
    for (workspace, cluster) in [("one", &one), ("two", &two)] {
        world.order(workspace, "db", "x").await;
        world.until_copied(cluster, "db", "x").await;
    }
    let home = world.at("prov");
    home.delete(&bindings(), None, "widgets", &DeleteOptions::default()).await.unwrap();
    until("the binding is gone", async || home.get(&bindings(), None, "widgets").await.unwrap().is_none()).await;
    for (workspace, cluster) in [("one", &one), ("two", &two)] {
        assert!(world.copies(cluster).await.is_empty());
        // Its objects stay, and nobody holds them.
        if let Some(source) = world.source(workspace, "db").await {
            assert_eq!(source["metadata"].get("finalizers"), None);
        }
    }
    let export = home.get(&api_exports(), None, EXPORT).await.unwrap().unwrap();
    assert_eq!(export["spec"].get("resources").and_then(|it| it.as_array()).map_or(0, Vec::len), 0);
    let schemas = home.list(&api_schemas(), None, &carrick_client::ListOptions::default()).await.unwrap();
    assert_eq!(schemas.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_whose_source_went_unseen_goes_and_those_of_unknown_workspaces_stay() {
    let mut world = World::new(Shape::namespaced()).await;
    let one = world.consumer("one", None).await;
    world.order("one", "db", "x").await;
    world.order("one", "other", "x").await;
    let copy = world.until_copied(&one, "db", "x").await;
    world.until_copied(&one, "other", "x").await;
    world.calm().await;
    world.kill().await;
    world.change("one", "db", &json!({"metadata": {"finalizers": null}})).await;
    world.cancel("one", "db").await;
    // A copy of a workspace that nobody knows: its shard may be away.
    let mut lost = copy.clone();
    lost["metadata"] = json!({"name": "lost", "namespace": copy["metadata"]["namespace"], "annotations": {
        "kube-bind.io/cluster-namespace": "c-1", "kube-bind.io/consumer-cluster": "elsewhere",
        "kube-bind.io/consumer-name": "lost", "kube-bind.io/consumer-namespace": "team", "kube-bind.io/consumer-uid": "x"}});
    let there = &world.provider.cluster.client;
    there.create(&world.widgets()[1], lost["metadata"]["namespace"].as_str(), &lost).await.unwrap();
    world.start();
    until("its copy is gone", async || world.copy(&one, "db").await.is_none()).await;
    world.calm().await;
    assert_eq!(world.copies(&one).await.len(), 1);
    assert_eq!(world.copies("elsewhere").await.len(), 1);
}

/// A konnector dies at one of its writes to one of the planes, before or after that is done.
#[derive(Clone, Copy, Debug)]
struct Death {
    side: usize,
    write: u64,
    is_done: bool,
}

/// Waits for something; a konnector that dies meanwhile is replaced.
async fn survive(world: &mut World, death: &mut Option<Death>, what: &str, is: impl AsyncFn(&World) -> bool) {
    let planned = *death;
    if let Some(Death { side, .. }) = *death {
        let faults = [world.kcp.faults(), world.provider.cluster.plane().faults()][side].clone();
        let has_died = || faults.counts().cut + faults.counts().applied_then_cut > 0;
        until(&format!("{what} ({death:?}, alive)"), async || has_died() || is(world).await).await;
        if has_died() {
            *death = None;
            world.kill().await;
            faults.clear();
            world.start();
        }
    }
    until(&format!("{what} ({planned:?})"), async || is(world).await).await;
}

/// The life of a widget, from the binding of the provider to its end. Returns how many writes there were on either side, and whether the konnector
/// has died.
async fn life(death: Option<Death>) -> ([usize; 2], bool) {
    let mut world = World::at_rest(Shape::namespaced(), &[0]).await;
    let recordings = world.record();
    let planned = death;
    if let Some(Death { side, write, is_done }) = death {
        let faults = [world.kcp.faults(), world.provider.cluster.plane().faults()][side];
        let ours = || Match::writes().user([KONNECTOR, BINDER][side]);
        // What would come after its death does not happen.
        faults.add(Rule::new(ours(), Effect::Cut).on(Turn::After(if is_done { write } else { write - 1 })));
        if is_done {
            faults.add(Rule::new(ours(), Effect::ApplyThenCut).on(Turn::Nth(write)));
        }
    }
    let mut death = death;
    world.start();
    survive(&mut world, &mut death, "the provider can be bound", async |world| world.ask().await).await;
    survive(&mut world, &mut death, "the export offers widgets", async |world| world.is_offered().await).await;
    let one = world.consumer("one", None).await;
    world.order("one", "db", "x").await;
    survive(&mut world, &mut death, "it is copied", async |world| world.copy(&one, "db").await.is_some()).await;
    world.tell(&world.copy(&one, "db").await.unwrap(), "up").await;
    survive(&mut world, &mut death, "its status comes back", async |world| {
        world.source("one", "db").await.is_some_and(|it| it["status"]["result"] == "up")
    })
    .await;
    world.cancel("one", "db").await;
    survive(&mut world, &mut death, "it ends", async |world| {
        world.source("one", "db").await.is_none() && world.copies(&one).await.is_empty()
    })
    .await;
    let home = world.at("prov");
    home.delete(&bindings(), None, "widgets", &DeleteOptions::default()).await.unwrap();
    survive(&mut world, &mut death, "the binding ends", async |world| {
        world.at("prov").get(&bindings(), None, "widgets").await.unwrap().is_none()
    })
    .await;
    let schemas = home.list(&api_schemas(), None, &carrick_client::ListOptions::default()).await.unwrap();
    assert_eq!(schemas.len(), 0, "{planned:?}");
    let counts =
        recordings.each_ref().map(|recording| super::world::writes(&[recording.clone(), recording.clone()]).len() / 2);
    (counts, planned.is_some() && death.is_none())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_that_is_killed_at_any_write_leaves_nothing_behind() {
    let (counts, _) = life(None).await;
    assert!(counts[0] >= 8 && counts[1] >= 4, "{counts:?}");
    let mut lives = Vec::new();
    for (side, count) in counts.into_iter().enumerate() {
        for write in 1..=count as u64 {
            lives.extend([false, true].map(|is_done| Death { side, write, is_done }));
        }
    }
    let sample = Sample::one_in(4);
    println!("killed at {counts:?} writes: {sample}");
    let lives: Vec<Death> = (0..).zip(lives).filter(|(case, _)| sample.takes(*case)).map(|(_, death)| death).collect();
    let all = lives.len();
    let lived = futures::stream::iter(lives).map(|death| life(Some(death))).buffer_unordered(8);
    let deaths = lived.filter(|(_, died)| std::future::ready(*died)).count().await;
    // What is written before a konnector dies may be one write more or less.
    assert!(deaths + 1 + all / 5 >= all && deaths > 0, "only {deaths} of {all}; {sample}");
}
