//! From kube-bind 0.8 to v2 and back, with the same objects and the same copies.

use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::Isolation;
use carrick_client::{Client, DeleteOptions, Resource};
use carrick_plane::Plane;
use carrick_plane::faults::{Effect, Match, Recording, RequestInfo, Rule, Turn};
use serde_json::{Value, json};

use super::kills::killed;
use super::v2::{done, label, refused};
use super::world::{World, crd_kind, of, sheriffs, until, words};
use super::{PERSON, isolated};

/// Where the objects are, on both sides.
const TEAM: &str = "team";

/// A sheriff under 0.8 with its copy, and a Connection beside it. Returns the copy.
async fn bound(world: &World) -> Value {
    bound_by(world, "sheriffs").await
}

/// The same by a template of the provider.
async fn bound_by(world: &World, template: &str) -> Value {
    assert!(world.login().await);
    done(world, &["apiservice", "law", "--template-name", template, "--skip-konnector"]).await;
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let team = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}});
    world.consumer.create(&namespaces, None, &team).await.unwrap();
    let copy = ordered(world).await;
    label(world).await;
    done(world, &["connect", "west", "-f", &world.provider_file(), "--source", "crd", "--skip-konnector"]).await;
    copy
}

/// Orders a sheriff; returns its copy once the two know each other.
async fn ordered(world: &World) -> Value {
    let sheriff = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff",
        "metadata": {"name": "wyatt", "namespace": TEAM, "labels": {"app": "law"}},
        "spec": {"town": "Tombstone", "horse": "Dick"}});
    until("the kind is served", async || world.consumer.create(&sheriffs(), Some(TEAM), &sheriff).await.ok()).await;
    let copy = until("the copy", async || {
        let all = world.provider.list(&sheriffs(), None, &carrick_client::ListOptions::default()).await.ok()?;
        all.into_iter().find(|copy| copy["spec"]["town"] == "Tombstone")
    })
    .await;
    until("the object knows its copy", async || {
        let object = world.consumer.get(&sheriffs(), Some(TEAM), "wyatt").await.ok()??;
        object["metadata"]["annotations"]["kube-bind.io/provider-uid"].is_string().then_some(())
    })
    .await;
    copy
}

async fn get(client: &Client) -> Value {
    named(client, "wyatt").await
}

async fn named(client: &Client, name: &str) -> Value {
    client.get(&sheriffs(), Some(TEAM), name).await.unwrap().expect("it is there")
}

/// Whether an object is the same as before: nobody has created it anew or changed its spec.
fn assert_untouched(before: &Value, after: &Value) {
    for field in ["uid", "generation", "creationTimestamp"] {
        assert_eq!(before["metadata"][field], after["metadata"][field], "{field}: {after}");
    }
    assert_eq!(before["spec"], after["spec"]);
    assert_eq!(after["metadata"]["labels"]["app"], "law", "labels stay");
}

/// Content follows, also what is taken away, and a status returns.
async fn assert_alive(world: &World, town: &str, horse: Option<&str>) {
    let patch = json!({"spec": {"town": town, "horse": horse}});
    world.consumer.merge_patch(&sheriffs(), Some(TEAM), "wyatt", &patch).await.unwrap();
    until("the copy follows", async || {
        let copy = world.provider.get(&sheriffs(), Some(TEAM), "wyatt").await.ok()??;
        (copy["spec"]["town"] == town && copy["spec"]["horse"].as_str() == horse).then_some(())
    })
    .await;
    let status = json!({"status": {"result": town}});
    world.provider.merge_patch_status(&sheriffs(), Some(TEAM), "wyatt", &status).await.unwrap();
    until("the status returns", async || {
        let object = world.consumer.get(&sheriffs(), Some(TEAM), "wyatt").await.ok()??;
        (object["status"]["result"] == town).then_some(())
    })
    .await;
}

async fn uid_of_crd(world: &World) -> Value {
    let crd = world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.unwrap().expect("the CRD");
    crd["metadata"]["uid"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_goes_to_v2_and_back_and_its_objects_and_copies_stay_what_they_are() {
    let (world, _planes) = isolated(Isolation::None).await;
    there_and_back(&world).await;
}

/// A binding of 0.8 goes to v2 and back; both sides have the same names.
pub async fn there_and_back(world: &World) {
    let copy = bound(world).await;
    assert_eq!(copy["metadata"]["namespace"], TEAM);
    let (source, crd) = (get(&world.consumer).await, uid_of_crd(world).await);
    let upgrade = UPGRADE;
    let said = done(world, &[&upgrade[..], &["--dry-run"]].concat()).await;
    assert!(said.contains("1 objects and their copies stay as they are"), "{said}");
    assert_eq!(get(&world.consumer).await, source, "nothing was written");

    let said = done(world, &upgrade).await;
    assert!(said.contains("clusterbinding/law is ready"), "{said}");
    let bindings = of(kinds::API_SERVICE_BINDING);
    assert_eq!(world.consumer.get(&bindings, None, "law").await.unwrap(), None);
    assert_untouched(&copy, &get(&world.provider).await);
    assert_untouched(&source, &get(&world.consumer).await);
    assert_eq!(uid_of_crd(world).await, crd);
    assert_eq!(get(&world.consumer).await["metadata"]["finalizers"], json!(["core.kbind.io/syncer"]));
    assert_alive(world, "Dodge", None).await;
    let second = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "bat", "namespace": TEAM}, "spec": {"town": "Dodge"}});
    world.consumer.create(&sheriffs(), Some(TEAM), &second).await.unwrap();
    until("a new copy", async || world.provider.get(&sheriffs(), Some(TEAM), "bat").await.ok()?).await;
    let bat = world.provider.get(&sheriffs(), Some(TEAM), "bat").await.unwrap().unwrap();
    done(world, &upgrade).await;

    // And back.
    let (before, here) = (get(&world.provider).await, get(&world.consumer).await);
    let said = done(world, &["upgrade", "law", "--undo"]).await;
    assert!(said.ends_with("apiservicebinding/law is ready\n"), "{said}");
    assert_untouched(&before, &get(&world.provider).await);
    assert_untouched(&here, &get(&world.consumer).await);
    assert_eq!(uid_of_crd(world).await, crd);
    assert_alive(world, "Wichita", Some("Dan")).await;
    assert_alive(world, "Wichita", None).await;
    let there = world.provider.get(&sheriffs(), Some(TEAM), "bat").await.unwrap().unwrap();
    assert_eq!(there["metadata"]["uid"], bat["metadata"]["uid"]);
    for name in ["wyatt", "bat"] {
        world.consumer.delete(&sheriffs(), Some(TEAM), name, &DeleteOptions::default()).await.unwrap();
        for client in [&world.provider, &world.consumer] {
            until("all of it goes", async || {
                client.get(&sheriffs(), Some(TEAM), name).await.ok()?.is_none().then_some(())
            })
            .await;
        }
    }
    assert_eq!(done(world, &["upgrade", "law", "--undo"]).await, "apiservicebinding/law is one of 0.8\n");
    let said = done(world, &["unbind", "law"]).await;
    assert!(said.ends_with("apiservicebinding/law is gone\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_v2_has_no_word_for_is_named_and_nothing_is_written() {
    let (world, _planes) = isolated(Isolation::Prefixed).await;
    bound(&world).await;
    let before = get(&world.consumer).await;
    let said = refused(&world, &["upgrade", "law", "--connection", "west"]).await;
    assert!(said.contains("APIServiceBinding law stays what it is") && said.contains("isolation Prefixed"), "{said}");
    assert!(said.contains("team/wyatt is cluster-"), "{said}");
    assert_eq!(get(&world.consumer).await, before);
    assert!(refused(&world, &["upgrade", "law", "--connection", "east"]).await.contains("there is no Connection east"));
    assert!(
        refused(&world, &["upgrade", "order", "--connection", "west"]).await.contains("no APIServiceBinding order")
    );
    assert!(
        refused(&world, &["upgrade", "order", "--undo"]).await.contains("no ClusterBinding order that was upgraded")
    );
}

const UPGRADE: [&str; 5] = ["upgrade", "law", "--connection", "west", "--skip-roles"];
const UNDO: [&str; 3] = ["upgrade", "law", "--undo"];

/// The planes of a world.
const PROVIDER: usize = 0;
const CONSUMER: usize = 1;

/// Whether the command sends a request: it is another user than the konnector here, and another field manager there.
fn is_own(ask: &RequestInfo) -> bool {
    ask.user == PERSON || ask.query.contains("fieldManager=kubectl-bind")
}

/// A second sheriff under 0.8, so that the command may be killed between two copies. Returns its copy.
async fn second(world: &World) -> Value {
    let bat = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "bat", "namespace": TEAM, "labels": {"app": "law"}},
        "spec": {"town": "Dodge"}});
    world.consumer.create(&sheriffs(), Some(TEAM), &bat).await.unwrap();
    until("the second object knows its copy", async || {
        let object = world.consumer.get(&sheriffs(), Some(TEAM), "bat").await.ok()??;
        object["metadata"]["annotations"]["kube-bind.io/provider-uid"].is_string().then_some(())
    })
    .await;
    named(&world.provider, "bat").await
}

/// Kills a command at each of its writes to one side and repeats it.
async fn interrupted(args: &[&str], side: usize) {
    for write in 1.. {
        let (world, planes) = isolated(Isolation::None).await;
        bound(&world).await;
        let bat = second(&world).await;
        if *args == UNDO {
            done(&world, &UPGRADE).await;
        }
        let (copy, source) = (get(&world.provider).await, get(&world.consumer).await);
        let rule = Rule::new(Match::writes().filter(is_own), Effect::ApplyThenCut).on(Turn::Nth(write));
        let hit = killed(&world, &planes[side], args, rule).await;
        let output = world.run(args).await;
        assert!(output.status.success(), "killed at write {write}: {}", words(&output));
        assert_untouched(&copy, &get(&world.provider).await);
        assert_untouched(&bat, &named(&world.provider, "bat").await);
        assert_untouched(&source, &get(&world.consumer).await);
        assert_alive(&world, "Dodge", None).await;
        if !hit {
            // One for each of the copies, and here some more.
            assert!(write > [2, 4][side], "only {write} writes");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_is_killed_at_any_write_is_whole_when_it_is_repeated() {
    interrupted(&UPGRADE, CONSUMER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_back_that_is_killed_at_any_write_is_whole_when_it_is_repeated() {
    interrupted(&UNDO, CONSUMER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_is_killed_at_any_write_to_the_provider_is_whole_when_it_is_repeated() {
    interrupted(&UPGRADE, PROVIDER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_back_that_is_killed_at_any_write_to_the_provider_is_whole_when_it_is_repeated() {
    interrupted(&UNDO, PROVIDER).await;
}

/// The upgrade names what stands against it, writes nothing on either side, and the object goes on under 0.8.
async fn assert_refused(world: &World, planes: &[Plane; 2], reason: &str) {
    let sent = planes.each_ref().map(|plane| plane.faults().record());
    let said = refused(world, &UPGRADE).await;
    assert!(said.contains("APIServiceBinding law stays what it is") && said.contains(reason), "{said}");
    let written = sent.iter().flat_map(Recording::writes).filter(|it| is_own(&it.ask));
    assert_eq!(written.map(|it| it.ask.path).collect::<Vec<_>>(), Vec::<String>::new());
    assert_alive(world, "Dodge", Some("Dick")).await;
}

/// A bound sheriff of a world whose names are the same on both sides.
async fn unmapped() -> (World, [Plane; 2]) {
    let (world, planes) = isolated(Isolation::None).await;
    bound(&world).await;
    (world, planes)
}

async fn annotate(world: &World, annotations: Value) {
    let patch = json!({"metadata": {"annotations": annotations}});
    world.consumer.merge_patch(&of(kinds::API_SERVICE_BINDING), None, "law", &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_whose_provider_claims_something_stays_one_of_0_8() {
    let (world, planes) = isolated(Isolation::None).await;
    bound_by(&world, "claiming").await;
    let bindings = of(kinds::API_SERVICE_BINDING);
    until("the claims are known", async || {
        let binding = world.consumer.get(&bindings, None, "law").await.ok()??;
        binding["status"]["permissionClaims"].as_array().filter(|claims| !claims.is_empty()).map(drop)
    })
    .await;
    assert_refused(&world, &planes, "its provider claims secrets: permission claims cannot be carried over").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_of_a_bundle_stays_one_of_0_8_because_the_bundle_would_bring_it_back() {
    let (world, planes) = unmapped().await;
    let bindings = of(kinds::API_SERVICE_BINDING);
    let bound = world.consumer.get(&bindings, None, "law").await.unwrap().unwrap();
    let bundle = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBindingBundle", "metadata": {"name": "all"},
        "spec": {"kubeconfigSecretRef": bound["spec"]["kubeconfigSecretRef"]}});
    world.consumer.create(&of(kinds::API_SERVICE_BINDING_BUNDLE), None, &bundle).await.unwrap();
    done(&world, &["unbind", "law", "--delete-objects"]).await;
    until("the bundle has bound it again", async || {
        let binding = world.consumer.get(&bindings, None, "law").await.ok()??;
        (binding["metadata"]["ownerReferences"][0]["name"] == "all").then_some(())
    })
    .await;
    ordered(&world).await;
    assert_refused(&world, &planes, "it belongs to APIServiceBindingBundle all, which would create it again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_that_shows_objects_of_the_provider_stays_one_of_0_8() {
    let (world, planes) = unmapped().await;
    let theirs = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "doc", "namespace": TEAM},
        "spec": {"town": "Tucson"}});
    world.provider.create(&sheriffs(), Some(TEAM), &theirs).await.unwrap();
    annotate(&world, json!({"kube-bind.io/existing-objects": "Show"})).await;
    until("the mirror", async || world.consumer.get(&sheriffs(), Some(TEAM), "doc").await.ok()?).await;
    let reason = "objects are shown from the provider (existing-objects), which v2 does not do: team/doc";
    assert_refused(&world, &planes, reason).await;
    // Without them it goes on.
    annotate(&world, json!({"kube-bind.io/existing-objects": null})).await;
    until("the mirror goes", async || {
        world.consumer.get(&sheriffs(), Some(TEAM), "doc").await.ok()?.is_none().then_some(())
    })
    .await;
    let said = done(&world, &UPGRADE).await;
    assert!(said.contains("clusterbinding/law is ready"), "{said}");
    assert!(world.provider.get(&sheriffs(), Some(TEAM), "doc").await.unwrap().is_some(), "it was the provider's");
}
