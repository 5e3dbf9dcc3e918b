//! The life of objects of many workspaces.

use carrick_bind_api::v1alpha2::Isolation;
use serde_json::json;

use super::world::{EXPORT, Shape, World, api_exports, api_schemas, slices, until, writes};
use crate::clusters::{bindings, namespaces, secret, secrets};

#[tokio::test(flavor = "multi_thread")]
async fn equal_names_of_two_workspaces_stay_apart_and_each_gets_its_own_status_in_every_mapping() {
    let mut shapes: Vec<Shape> =
        [Isolation::Prefixed, Isolation::Namespaced, Isolation::None].into_iter().map(Shape::cluster).collect();
    shapes.insert(0, Shape::namespaced());
    for shape in shapes {
        let world = World::new(shape.clone()).await;
        let (one, two) = (world.consumer("one", None).await, world.consumer("two", None).await);
        let source = world.order("one", "db", "of one").await;
        world.order("two", "db", "of two").await;
        let first = world.until_copied(&one, "db", "of one").await;
        let second = world.until_copied(&two, "db", "of two").await;
        let annotations = &first["metadata"]["annotations"];
        assert_eq!(annotations["kube-bind.io/cluster-namespace"], "c-1", "{shape:?}");
        assert_eq!(annotations["kube-bind.io/consumer-uid"], source["metadata"]["uid"]);
        world.tell(&first, "done for one").await;
        world.tell(&second, "done for two").await;
        world.until_told("one", "db", "done for one").await;
        world.until_told("two", "db", "done for two").await;
        world.change("one", "db", &json!({"spec": {"intent": "changed"}})).await;
        world.until_copied(&one, "db", "changed").await;
        assert_eq!(world.copy(&two, "db").await.unwrap()["spec"]["intent"], "of two");
        // What somebody there changes of ours is brought back.
        let (namespace, name) = (first["metadata"]["namespace"].as_str(), first["metadata"]["name"].as_str().unwrap());
        let drift = json!({"spec": {"intent": "drift"}});
        world.provider.cluster.client.merge_patch(&world.widgets()[1], namespace, name, &drift).await.unwrap();
        world.until_copied(&one, "db", "changed").await;
        world.cancel("one", "db").await;
        until("it ends", async || world.source("one", "db").await.is_none() && world.copy(&one, "db").await.is_none())
            .await;
        assert_eq!(world.copy(&two, "db").await.unwrap()["spec"]["intent"], "of two");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_at_rest_writes_nothing_and_neither_does_a_new_one() {
    let mut world = World::new(Shape::namespaced()).await;
    for workspace in ["one", "two"] {
        let cluster = world.consumer(workspace, None).await;
        for number in 0..5 {
            let name = format!("db-{number}");
            world.order(workspace, &name, "x").await;
            let copy = world.until_copied(&cluster, &name, "x").await;
            world.tell(&copy, "up").await;
            world.until_told(workspace, &name, "up").await;
        }
    }
    world.calm().await;
    let recordings = world.record();
    world.kill().await;
    world.start();
    // Something new proves that it works.
    let three = world.consumer("three", None).await;
    world.order("three", "db", "x").await;
    world.until_copied(&three, "db", "x").await;
    world.calm().await;
    let clusters = [world.at("one"), world.at("two")].map(|client| client.url().to_owned());
    let old: Vec<String> = writes(&recordings)
        .into_iter()
        .filter(|write| write.contains("widgets/db-") || write.contains("apiexports") || write.contains("schemas"))
        .collect();
    assert_eq!(old, Vec::<String>::new(), "{clusters:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_follow_the_provider_and_what_others_offer_stays() {
    let world = World::new(Shape::namespaced()).await;
    let home = world.at("prov");
    let export = home.get(&api_exports(), None, EXPORT).await.unwrap().unwrap();
    let before = export["spec"]["resources"][0]["schema"].as_str().unwrap().to_owned();
    assert!(before.ends_with(".widgets.wild.io"), "{before}");
    assert_eq!(export["spec"]["permissionClaims"][0]["resource"], "namespaces");
    let one = world.consumer("one", None).await;
    world.order("one", "db", "x").await;
    world.until_copied(&one, "db", "x").await;
    world.offer(&world.widget_crd("more")).await;
    until("the export offers the new schema", async || {
        let export = home.get(&api_exports(), None, EXPORT).await.unwrap().unwrap();
        export["spec"]["resources"][0]["schema"] != before.as_str()
    })
    .await;
    until("consumers may use it", async || {
        world
            .at("one")
            .merge_patch(&world.widgets()[0], Some("team"), "db", &json!({"spec": {"more": "y"}}))
            .await
            .is_ok()
            && world.source("one", "db").await.unwrap()["spec"]["more"] == "y"
    })
    .await;
    until("it arrives", async || world.copy(&one, "db").await.unwrap()["spec"]["more"] == "y").await;
    assert_eq!(home.list(&api_schemas(), None, &carrick_client::ListOptions::default()).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn claimed_secrets_travel_in_both_directions_and_stay_in_their_workspace() {
    let claim = json!([{"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "shop"}},
        "references": [{"group": "wild.io", "resource": "widgets", "versions": ["v1"], "jsonPath": {"name": "spec.intent"}}]}}]);
    let world = World::new(Shape::namespaced().claiming(claim)).await;
    let (one, two) = (world.consumer("one", None).await, world.consumer("two", None).await);
    // A widget of the first names Secret `creds`; the second has one of that name, which nobody names.
    for (workspace, cluster, intent) in [("one", &one, "creds"), ("two", &two, "nothing")] {
        let mut creds = secret("team", "creds", workspace);
        creds["metadata"]["labels"] = json!({"x": "y"});
        world.at(workspace).create(&secrets(), Some("team"), &creds).await.unwrap();
        world.order(workspace, "db", intent).await;
        world.until_copied(cluster, "db", intent).await;
    }
    let there = &world.provider.cluster;
    let home_of = async |cluster: &str| {
        let copy = world.copy(cluster, "db").await.unwrap();
        copy["metadata"]["namespace"].as_str().unwrap().to_owned()
    };
    let (first, second) = (home_of(&one).await, home_of(&two).await);
    until("the Secret of the first is there", async || there.get(&secrets(), Some(&first), "creds").await.is_some())
        .await;
    let copied = there.get(&secrets(), Some(&first), "creds").await.unwrap();
    assert_eq!(copied["data"], secret("team", "creds", "one")["data"]);
    // What the provider answers with goes to the second only.
    let mut answer = secret(&second, "answer", "for two");
    answer["metadata"]["labels"] = json!({"app": "shop"});
    there.apply(&secrets(), &answer).await;
    until("the answer is there", async || {
        world.at("two").get(&secrets(), Some("team"), "answer").await.unwrap().is_some()
    })
    .await;
    world.calm().await;
    assert_eq!(there.get(&secrets(), Some(&second), "creds").await, None, "nobody there names it");
    assert_eq!(world.at("one").get(&secrets(), Some("team"), "answer").await.unwrap(), None);
    there.delete(&secrets(), Some(&second), "answer").await;
    until("the answer is gone", async || {
        world.at("two").get(&secrets(), Some("team"), "answer").await.unwrap().is_none()
    })
    .await;
    // A namespace that ends takes its part of the provider along, and no other.
    world.cancel("one", "db").await;
    until("the widget is gone", async || world.source("one", "db").await.is_none()).await;
    world.at("one").delete(&namespaces(), None, "team", &carrick_client::DeleteOptions::default()).await.unwrap();
    until("its namespace there is gone", async || there.get(&namespaces(), None, &first).await.is_none()).await;
    assert!(there.get(&namespaces(), None, &second).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_is_missing_and_objects_that_are_in_the_way_are_told() {
    let mut world = World::at_rest(Shape::namespaced(), &[0]).await;
    let home = world.at("prov");
    home.delete(&api_exports(), None, EXPORT, &carrick_client::DeleteOptions::default()).await.unwrap();
    until("the slice is gone", async || home.get(&slices(), None, EXPORT).await.unwrap().is_none()).await;
    world.start();
    until("the konnector has made its CRDs", async || world.ask().await).await;
    let has = async |type_: &str, reason: &str, words: &str| {
        let binding = home.get(&bindings(), None, "widgets").await.unwrap().unwrap();
        let mut conditions = binding["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|it| {
            it["type"] == type_ && it["reason"] == reason && it["message"].as_str().unwrap_or_default().contains(words)
        })
    };
    let words = "APIExportEndpointSlice wild.io does not exist";
    until("the missing slice is told", async || has("Connected", "APIExportUnavailable", words).await).await;
    let export =
        json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": EXPORT}, "spec": {}});
    home.create(&api_exports(), None, &export).await.unwrap();
    until("the export offers widgets", async || world.is_offered().await).await;
    let show = json!({"metadata": {"annotations": {"kube-bind.io/existing-objects": "Show"}}});
    home.merge_patch(&bindings(), None, "widgets", &show).await.unwrap();
    let words = "the consumers are workspaces";
    until("nothing can be shown", async || has("ExistingObjects", "UnknownExistingObjects", words).await).await;

    // The provider has a widget of its own where a copy belongs.
    let one = world.consumer("one", None).await;
    world.order("one", "first", "x").await;
    let namespace = world.until_copied(&one, "first", "x").await["metadata"]["namespace"].as_str().unwrap().to_owned();
    let theirs =
        json!({"apiVersion": "wild.io/v1", "kind": "Widget", "metadata": {"name": "db"}, "spec": {"intent": "theirs"}});
    let there = &world.provider.cluster.client;
    there.create(&world.widgets()[1], Some(&namespace), &theirs).await.unwrap();
    world.order("one", "db", "ours").await;
    let words = format!("widgets.wild.io team/db of workspace {one}");
    until("the conflict is told", async || has("PermissionClaim", "ClaimConflict", &words).await).await;
    // Whichever of the two the konnector saw first: the order can be taken back, and theirs stays as it was.
    world.cancel("one", "db").await;
    until("the order is gone", async || world.source("one", "db").await.is_none()).await;
    let left = there.get(&world.widgets()[1], Some(&namespace), "db").await.unwrap().unwrap();
    assert_eq!((&left["spec"], left["metadata"].get("annotations")), (&theirs["spec"], None));
}
