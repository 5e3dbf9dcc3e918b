//! From kube-bind 0.8 to v2 and back, with the same objects and the same copies.

use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::Isolation;
use carrick_client::{DeleteOptions, Resource};
use carrick_plane::faults::{Effect, Match, Rule, Turn};
use serde_json::{Value, json};

use super::kills::killed;
use super::v2::{done, label, refused};
use super::world::{World, crd_kind, of, sheriffs, until, words};
use super::{PERSON, isolated};

/// Where the objects are, on both sides.
const TEAM: &str = "team";

/// A sheriff under 0.8 with its copy, and a Connection beside it. Returns the copy.
async fn bound(world: &World) -> Value {
    assert!(world.login().await);
    done(world, &["apiservice", "law", "--template-name", "sheriffs", "--skip-konnector"]).await;
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let team = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}});
    world.consumer.create(&namespaces, None, &team).await.unwrap();
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
    label(world).await;
    done(world, &["connect", "west", "-f", &world.provider_file(), "--source", "crd", "--skip-konnector"]).await;
    copy
}

async fn get(client: &carrick_client::Client) -> Value {
    client.get(&sheriffs(), Some(TEAM), "wyatt").await.unwrap().expect("it is there")
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
    let copy = bound(&world).await;
    assert_eq!(copy["metadata"]["namespace"], TEAM);
    let (source, crd) = (get(&world.consumer).await, uid_of_crd(&world).await);
    let upgrade = UPGRADE;
    let said = done(&world, &[&upgrade[..], &["--dry-run"]].concat()).await;
    assert!(said.contains("1 objects and their copies stay as they are"), "{said}");
    assert_eq!(get(&world.consumer).await, source, "nothing was written");

    let said = done(&world, &upgrade).await;
    assert!(said.contains("clusterbinding/law is ready"), "{said}");
    let bindings = of(kinds::API_SERVICE_BINDING);
    assert_eq!(world.consumer.get(&bindings, None, "law").await.unwrap(), None);
    assert_untouched(&copy, &get(&world.provider).await);
    assert_untouched(&source, &get(&world.consumer).await);
    assert_eq!(uid_of_crd(&world).await, crd);
    assert_eq!(get(&world.consumer).await["metadata"]["finalizers"], json!(["core.kbind.io/syncer"]));
    assert_alive(&world, "Dodge", None).await;
    let second = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "bat", "namespace": TEAM}, "spec": {"town": "Dodge"}});
    world.consumer.create(&sheriffs(), Some(TEAM), &second).await.unwrap();
    until("a new copy", async || world.provider.get(&sheriffs(), Some(TEAM), "bat").await.ok()?).await;
    let bat = world.provider.get(&sheriffs(), Some(TEAM), "bat").await.unwrap().unwrap();
    done(&world, &upgrade).await;

    // And back.
    let (before, here) = (get(&world.provider).await, get(&world.consumer).await);
    let said = done(&world, &["upgrade", "law", "--undo"]).await;
    assert!(said.ends_with("apiservicebinding/law is ready\n"), "{said}");
    assert_untouched(&before, &get(&world.provider).await);
    assert_untouched(&here, &get(&world.consumer).await);
    assert_eq!(uid_of_crd(&world).await, crd);
    assert_alive(&world, "Wichita", Some("Dan")).await;
    assert_alive(&world, "Wichita", None).await;
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
    assert_eq!(done(&world, &["upgrade", "law", "--undo"]).await, "apiservicebinding/law is one of 0.8\n");
    let said = done(&world, &["unbind", "law"]).await;
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

/// Kills a command at each of its writes and repeats it.
async fn interrupted(args: &[&str]) {
    for write in 1.. {
        let (world, planes) = isolated(Isolation::None).await;
        bound(&world).await;
        if *args == UNDO {
            done(&world, &UPGRADE).await;
        }
        let (copy, source) = (get(&world.provider).await, get(&world.consumer).await);
        let writes = Match::writes().filter(|ask| ask.user == PERSON);
        let rule = Rule::new(writes, Effect::ApplyThenCut).on(Turn::Nth(write));
        let hit = killed(&world, &planes[1], args, rule).await;
        let output = world.run(args).await;
        assert!(output.status.success(), "killed at write {write}: {}", words(&output));
        assert_untouched(&copy, &get(&world.provider).await);
        assert_untouched(&source, &get(&world.consumer).await);
        assert_alive(&world, "Dodge", None).await;
        if !hit {
            assert!(write > 4, "only {write} writes");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_is_killed_at_any_write_is_whole_when_it_is_repeated() {
    interrupted(&UPGRADE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_back_that_is_killed_at_any_write_is_whole_when_it_is_repeated() {
    interrupted(&UNDO).await;
}
