//! Ends: of bindings, of workspaces, of the contract, and of konnectors at any write.

use carrick_client::DeleteOptions;
use carrick_plane::faults::{Effect, Match, Rule, Turn};
use serde_json::json;

use crate::clusters::{BINDER, bindings, namespaces};
use crate::world::{EXPORT, KONNECTOR, Shape, World, api_bindings, api_exports, api_schemas, until, workspaces};

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

/// The life of a widget, with a konnector that dies at one of its writes to one of the planes.
async fn life(death: Option<(usize, u64, Effect)>) -> [usize; 2] {
    let mut world = World::at_rest(Shape::namespaced(), 1).await;
    let recordings = world.record();
    if let Some((side, write, effect)) = &death {
        let faults = [world.kcp.faults(), world.provider.cluster.plane().faults()][*side];
        let ours = Match::writes().user([KONNECTOR, BINDER][*side]);
        faults.add(Rule::new(ours, effect.clone()).on(Turn::Nth(*write)));
    }
    world.start();
    let mut died = death.is_none();
    let mut survive = async |world: &mut World| {
        if died {
            return;
        }
        let side = death.as_ref().map_or(0, |(side, ..)| *side);
        let faults = [world.kcp.faults(), world.provider.cluster.plane().faults()][side].clone();
        if faults.counts().cut + faults.counts().applied_then_cut > 0 {
            died = true;
            world.kill().await;
            faults.clear();
            world.start();
        }
    };
    world.bind().await;
    survive(&mut world).await;
    let one = world.consumer("one", None).await;
    world.order("one", "db", "x").await;
    survive(&mut world).await;
    let copy = world.until_copied(&one, "db", "x").await;
    world.tell(&copy, "up").await;
    world.until_told("one", "db", "up").await;
    survive(&mut world).await;
    world.cancel("one", "db").await;
    until("it ends", async || world.source("one", "db").await.is_none() && world.copies(&one).await.is_empty()).await;
    survive(&mut world).await;
    let home = world.at("prov");
    home.delete(&bindings(), None, "widgets", &DeleteOptions::default()).await.unwrap();
    until("the binding is gone", async || home.get(&bindings(), None, "widgets").await.unwrap().is_none()).await;
    let schemas = home.list(&api_schemas(), None, &carrick_client::ListOptions::default()).await.unwrap();
    assert_eq!(schemas.len(), 0, "{death:?}");
    recordings.each_ref().map(|recording| crate::world::writes(&[recording.clone(), recording.clone()]).len() / 2)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_lost_at_any_moment_leaves_nothing_behind() {
    let counts = life(None).await;
    assert!(counts[0] >= 8 && counts[1] >= 4, "{counts:?}");
    for (side, count) in counts.into_iter().enumerate() {
        for write in 1..=count as u64 {
            for effect in [Effect::Cut, Effect::ApplyThenCut] {
                life(Some((side, write, effect))).await;
            }
        }
    }
}
