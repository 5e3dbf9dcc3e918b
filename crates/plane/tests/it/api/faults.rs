//! Injected faults, as clients see them.

use std::time::{Duration, Instant};

use carrick_plane::faults::{Effect, Match, Rule, Turn};
use carrick_plane::{Config, Mode};
use futures::FutureExt;
use serde_json::{Value, json};

use super::client::{Answer, Client, MAPS, World, map};

fn maps(verbs: &[&str]) -> Match {
    Match::any().resource("", "configmaps").verbs(verbs)
}

fn one(name: &str) -> String {
    format!("{MAPS}/{name}")
}

/// The code of the answer to a creation, if there is an answer at all.
async fn create(client: &Client, name: &str) -> Option<u16> {
    let headers = [("content-type", "application/json")];
    let body = map(name, json!({})).to_string().into_bytes();
    client.try_send("POST", MAPS, &headers, body).await.ok().map(|answer| answer.status().as_u16())
}

#[tokio::test]
async fn refusals_do_nothing_and_look_like_those_of_a_server_in_trouble() {
    let world = World::start().await;
    let faults = world.plane.faults();
    for (code, reason) in [
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (409, "AlreadyExists"),
        (410, "Expired"),
        (422, "Invalid"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
    ] {
        let rule = faults.add(Rule::new(maps(&["create"]), Effect::refuse(code)).on(Turn::Nth(1)));
        let answer = world.admin.post(MAPS, map("a", json!({}))).await;
        assert_eq!((answer.code, answer.body["reason"].as_str()), (code, Some(reason)), "{}", answer.text);
        assert_eq!(answer.headers.contains_key("retry-after"), matches!(code, 429 | 503), "{code}");
        assert_eq!(faults.remove(rule), 1);
    }
    world.admin.get(&one("a")).await.expect(404);
    assert_eq!(faults.counts().refused, 10);
    faults.add(Rule::new(maps(&["create"]), Effect::throttle(7)).on(Turn::First(1)));
    assert_eq!(world.admin.post(MAPS, map("a", json!({}))).await.headers["retry-after"], "7");
    world.admin.post(MAPS, map("a", json!({}))).await.expect(201);
}

#[tokio::test]
async fn a_lost_answer_hides_a_write_that_happened() {
    let world = World::start().await;
    let faults = world.plane.faults();
    for (effect, answer, exists) in [
        (Effect::Cut, None, false),
        (Effect::refuse(500), Some(500), false),
        (Effect::ApplyThenCut, None, true),
        (Effect::apply_then_refuse(504), Some(504), true),
    ] {
        faults.add(Rule::new(maps(&["create"]), effect).on(Turn::Nth(1)));
        assert_eq!(create(&world.admin, "lost").await, answer, "{effect:?}");
        faults.clear();
        assert_eq!(world.admin.get(&one("lost")).await.code == 200, exists, "{effect:?}");
        world.admin.delete(&one("lost")).await;
    }
    let counts = faults.counts();
    assert_eq!((counts.cut, counts.refused, counts.applied_then_cut, counts.applied_then_refused), (1, 1, 1, 1));
}

#[tokio::test]
async fn one_object_alone_is_refused_whatever_is_done_to_it() {
    let world = World::start().await;
    let faults = world.plane.faults();
    world.admin.post(MAPS, map("other", json!({}))).await.expect(201);
    let only = |code: u16| {
        Rule::new(Match::writes().resource("", "configmaps").namespace("default").name("a"), Effect::refuse(code))
    };
    let rule = faults.add(only(403));
    let why = "User \"admin\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    let answer = world.admin.post(MAPS, map("a", json!({}))).await;
    answer.refused(403, &format!("configmaps \"a\" is forbidden: {why}"));
    world.admin.patch(&one("other"), "merge", json!({"data": {"n": "1"}})).await.expect(200);
    faults.remove(rule);
    world.admin.post(MAPS, map("a", json!({}))).await.expect(201);
    let rule = faults.add(only(422));
    let refusal = "configmaps \"a\" is invalid: spec: Forbidden: refused on purpose";
    for _ in 0..3 {
        world.admin.patch(&one("a"), "merge", json!({"data": {"n": "1"}})).await.refused(422, refusal);
    }
    world.admin.put(&one("a"), map("a", json!({}))).await.expect(422);
    world.admin.delete(&one("a")).await.expect(422);
    assert_eq!(faults.remove(rule), 5);
    world.admin.delete(&one("a")).await.expect(200);
}

#[tokio::test]
async fn a_late_write_is_done_when_it_is_released_with_all_that_it_demands() {
    let world = World::start().await;
    let faults = world.plane.faults();
    let first = world.admin.post(MAPS, map("a", json!({"n": "1"}))).await.expect(201);
    let rule = faults.add(Rule::new(maps(&["patch", "update", "get"]).name("a"), Effect::late()));
    let headers = [("content-type", "application/merge-patch+json")];
    let patch = async |body: Value| world.admin.try_call("PATCH", &one("a"), &headers, body.to_string().into()).await;
    // Nobody gets a response, and nothing happens.
    assert!(patch(json!({"data": {"n": "2"}})).await.is_none());
    let pinned = json!({"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "data": {"n": "3"}});
    assert!(patch(pinned).await.is_none());
    assert_eq!(world.admin.get(&one("a")).await.expect(200)["data"]["n"], "1", "reads are not held back");
    assert_eq!(faults.held().len(), 2);
    faults.remove(rule);
    world.admin.patch(&one("a"), "merge", json!({"data": {"n": "4"}})).await.expect(200);
    // The first one has no precondition, the second one requires a revision that is outdated by now.
    let done = faults.release(&maps(&["patch"])).await;
    assert_eq!(done.iter().map(|(_, code)| *code).collect::<Vec<_>>(), [200, 409]);
    assert_eq!(world.admin.get(&one("a")).await.expect(200)["data"]["n"], "2");
    assert!(faults.held().is_empty());
    assert!(faults.release(&Match::any()).await.is_empty());
    let counts = faults.counts();
    assert_eq!((counts.held_back, counts.applied_late), (2, 2));
}

#[tokio::test]
async fn a_late_write_finds_the_workspace_that_exists_when_it_comes() {
    let world = World::kcp(&[]).await;
    let faults = world.plane.faults();
    let workspaces = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
    let inside = "/clusters/root:late/api/v1/namespaces/default/configmaps";
    let rule = faults.add(Rule::new(maps(&["create"]), Effect::late()));
    let headers = [("content-type", "application/json")];
    let body = map("a", json!({})).to_string().into_bytes();
    assert!(world.admin.try_call("POST", inside, &headers, body).await.is_none());
    faults.remove(rule);
    world.admin.get(inside).await.expect(404);
    let workspace = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "late"},
        "spec": {"type": {"name": "universal", "path": "root"}}});
    world.admin.post(workspaces, workspace).await.expect(201);
    let ready = |answer: &Answer| answer.body["status"]["phase"] == "Ready";
    world.admin.until(&format!("{workspaces}/late"), ready).await;
    let done = faults.release(&Match::any()).await;
    assert_eq!(done.iter().map(|(_, code)| *code).collect::<Vec<_>>(), [201]);
    world.admin.get(&format!("{inside}/a")).await.expect(200);
}

#[tokio::test]
async fn a_late_write_may_come_by_itself_and_its_client_may_hear_an_error() {
    let world = World::start().await;
    let faults = world.plane.faults();
    let effect = Effect::ApplyLate { millis: Some(20), code: Some(504) };
    faults.add(Rule::new(maps(&["create"]).name("a"), effect));
    world.admin.post(MAPS, map("a", json!({}))).await.expect(504);
    world.admin.until(&one("a"), |answer| answer.code == 200).await;
    assert_eq!(faults.counts().applied_late, 1);
    let effect = Effect::ApplyLate { millis: None, code: Some(500) };
    faults.add(Rule::new(maps(&["delete"]).name("a"), effect));
    world.admin.delete(&one("a")).await.expect(500);
    faults.forget_held();
    assert!(faults.release(&Match::any()).await.is_empty());
    world.admin.get(&one("a")).await.expect(200);
}

#[tokio::test]
async fn a_delay_delays_only_what_it_is_meant_for() {
    let world = World::start().await;
    let pause = Duration::from_millis(200);
    world.plane.faults().add(Rule::new(maps(&["get"]).name("slow"), Effect::delay(pause)));
    let begin = Instant::now();
    world.admin.get(&one("slow")).await.expect(404);
    assert!(begin.elapsed() >= pause);
    assert_eq!(world.plane.faults().counts().delayed, 1);
    world.admin.get(&one("quick")).await.expect(404);
    assert_eq!(world.plane.faults().counts().delayed, 1);
}

#[tokio::test]
async fn watches_break_off_expire_or_fall_silent_after_so_many_events() {
    let world = World::start().await;
    let faults = world.plane.faults();
    let revision = world.admin.get(MAPS).await.expect(200)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    for name in ["a", "b", "c"] {
        world.admin.post(MAPS, map(name, json!({}))).await.expect(201);
    }
    let path = format!("{MAPS}?watch=1&resourceVersion={revision}");
    for effect in [Effect::CutWatch(2), Effect::ExpireWatch(2), Effect::StallWatch(2)] {
        faults.add(Rule::new(maps(&["watch"]), effect));
        let mut watch = world.admin.watch(&path).await;
        assert_eq!(watch.event().await.1, "a");
        assert_eq!(watch.event().await.1, "b");
        match effect {
            Effect::CutWatch(_) => assert_eq!(watch.next().await, None),
            Effect::ExpireWatch(_) => {
                let last = watch.next().await.unwrap();
                assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(410)));
                assert_eq!(watch.next().await, None);
            }
            _ => {
                assert_eq!(faults.open_watches().len(), 1);
                while faults.counts().watches_stalled == 0 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(watch.next().now_or_never(), None);
                faults.resume_watches();
                assert_eq!(watch.event().await.1, "c");
            }
        }
        faults.clear();
    }
    let counts = faults.counts();
    assert_eq!((counts.watches_cut, counts.watches_expired, counts.watches_stalled), (1, 1, 1));
}

#[tokio::test]
async fn open_watches_can_be_cut_and_silenced_from_outside() {
    let world = World::start().await;
    let faults = world.plane.faults();
    let mut maps = world.admin.watch(&format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Da")).await;
    let mut secrets = world.admin.watch("/api/v1/secrets?watch=1").await;
    assert_eq!(faults.stall_watches(&Match::any().resource("", "configmaps")), 1);
    while faults.counts().watches_stalled == 0 {
        tokio::task::yield_now().await;
    }
    world.admin.post(MAPS, map("a", json!({}))).await.expect(201);
    assert_eq!(maps.next().now_or_never(), None);
    assert_eq!(faults.cut_watches(&Match::any().resource("", "secrets")), 1);
    assert_eq!(secrets.next().await, None);
    assert_eq!(faults.resume_watches(), 1);
    assert_eq!(maps.event().await, ("ADDED".into(), "a".into()));
}

#[tokio::test]
async fn stale_reads_show_an_older_state_but_never_one_older_than_asked_for() {
    let world = World::start().await;
    let faults = world.plane.faults();
    world.admin.post(MAPS, map("a", json!({"n": "1"}))).await.expect(201);
    let second = world.admin.patch(&one("a"), "merge", json!({"data": {"n": "2"}})).await.expect(200);
    let second = second["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    faults.add(Rule::new(maps(&["get", "list", "watch"]), Effect::Stale(1)));
    assert_eq!(world.admin.get(&one("a")).await.expect(200)["data"]["n"], "1");
    let by_name = format!("{MAPS}?fieldSelector=metadata.name%3Da");
    let listed = world.admin.get(&by_name).await.expect(200);
    assert_eq!(listed["items"][0]["data"]["n"], "1");
    assert!(listed["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() < second.parse().unwrap());
    let fresh = world.admin.get(&format!("{by_name}&resourceVersion={second}")).await.expect(200);
    assert_eq!(fresh["items"][0]["data"]["n"], "2");
    // A watch begins in the past and catches up.
    let mut watch = world.admin.watch(&format!("{by_name}&watch=1")).await;
    let numbers = [watch.next().await.unwrap(), watch.next().await.unwrap()];
    let numbers: Vec<&Value> = numbers.iter().map(|event| &event["object"]["data"]["n"]).collect();
    assert_eq!(numbers, ["1", "2"]);
    assert_eq!(faults.counts().stale, 4);
}

#[tokio::test]
async fn a_stopped_endpoint_refuses_connections_until_it_is_started_again() {
    let world = World::start().await;
    let endpoint = &world.plane.endpoints()[0];
    let mut watch = world.admin.watch(&format!("{MAPS}?watch=1&resourceVersion=1")).await;
    endpoint.stop().await;
    endpoint.stop().await;
    while watch.next().await.is_some() {}
    assert!(!endpoint.is_running().await);
    assert!(world.admin.try_send("GET", MAPS, &[], Vec::new()).await.is_err());
    endpoint.start().await.unwrap();
    endpoint.start().await.unwrap();
    world.admin.get(MAPS).await.expect(200);
    let mut watch = world.admin.watch(&format!("{MAPS}?watch=1")).await;
    endpoint.disconnect().await;
    while watch.next().await.is_some() {}
    world.admin.get(MAPS).await.expect(200);
}

#[tokio::test]
async fn a_recording_counts_requests_by_verb_and_ends_when_dropped() {
    let world = World::start().await;
    let recording = world.plane.faults().record();
    world.admin.get(MAPS).await.expect(200);
    world.admin.get(&one("a")).await.expect(404);
    world.admin.post(MAPS, map("a", json!({}))).await.expect(201);
    world.admin.watch(&format!("{MAPS}?watch=1")).await;
    world.admin.get("/apis").await.expect(200);
    let verbs = recording.by_verb();
    let count = |verb: &str| verbs.get(verb).copied().unwrap_or(0);
    assert_eq!((count("list"), count("get"), count("create"), count("watch")), (1, 2, 1, 1));
    assert_eq!(recording.count(|record| record.code == 404), 1);
    let writes = recording.writes();
    assert_eq!(writes.len(), 1);
    assert_eq!((writes[0].ask.resource.as_str(), writes[0].ask.namespace.as_str()), ("configmaps", "default"));
    recording.clear();
    assert!(recording.records().is_empty());
}

#[tokio::test]
async fn the_same_seed_fails_the_same_requests() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let world = World::start().await;
        let chance = Turn::Chance { seed: 11, per_mille: 300 };
        world.plane.faults().add(Rule::new(Match::writes().agent(""), Effect::refuse(500)).on(chance));
        let mut codes = Vec::new();
        for number in 0..40 {
            codes.push(create(&world.admin, &format!("m{number}")).await.unwrap());
            world.admin.get(MAPS).await.expect(200);
        }
        runs.push(codes);
    }
    assert_eq!(runs[0], runs[1]);
    assert!(runs[0].contains(&500) && runs[0].contains(&201));
}

#[tokio::test]
async fn the_control_endpoint_does_the_same_over_http_for_administrators() {
    let mut config = Config::new(Mode::Kube);
    config.control = Some(([127, 0, 0, 1], 0).into());
    let world = World::with(config).await;
    let base = world.plane.control_url().unwrap();
    let http = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let call = async |method: &str, path: &str, token: Option<String>, body: Value| {
        use http_body_util::BodyExt;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = http::Request::builder().method(method).uri(format!("{base}{path}"));
        let request = request.header("authorization", format!("Bearer {}", token.unwrap_or_default()));
        let answer = http.request(request.body(http_body_util::Full::new(bytes::Bytes::from(body))).unwrap()).await;
        let answer = answer.unwrap();
        let code = answer.status().as_u16();
        let content = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice::<Value>(&content).unwrap())
    };
    let token = || world.plane.token("admin");
    assert_eq!(call("GET", "/faults", None, Value::Null).await.0, 401);
    assert_eq!(call("POST", "/faults", token(), json!({"effect": "explode"})).await.0, 400);
    let rule = json!({"match": {"verbs": ["create"], "resource": "configmaps"}, "effect": {"refuse": {"code": 503}}});
    let (code, added) = call("POST", "/faults", token(), rule).await;
    assert_eq!(code, 200);
    world.admin.post(MAPS, map("a", json!({}))).await.expect(503);
    let (_, state) = call("GET", "/faults", token(), Value::Null).await;
    assert_eq!((&state["rules"][0]["hits"], &state["counts"]["refused"]), (&json!(1), &json!(1)));
    assert_eq!(call("DELETE", &format!("/faults/{}", added["id"]), token(), Value::Null).await.1["hits"], 1);
    world.admin.post(MAPS, map("a", json!({}))).await.expect(201);
    let late = json!({"match": {"verbs": ["patch"]}, "effect": {"applyLate": {"code": 500}}});
    let (_, added) = call("POST", "/faults", token(), late).await;
    world.admin.patch(&one("a"), "merge", json!({"data": {"n": "1"}})).await.expect(500);
    assert_eq!(call("GET", "/held", token(), Value::Null).await.1["held"][0]["name"], "a");
    assert_eq!(call("POST", "/held/release", token(), Value::Null).await.1["done"][0]["code"], 200);
    assert_eq!(call("DELETE", "/held", token(), Value::Null).await.0, 200);
    assert_eq!(world.admin.get(&one("a")).await.expect(200)["data"]["n"], "1");
    call("DELETE", &format!("/faults/{}", added["id"]), token(), Value::Null).await;
    let mut watch = world.admin.watch(&format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Da")).await;
    assert_eq!(watch.event().await.1, "a");
    let (_, reported) = call("POST", "/watches/cut", token(), json!({"resource": "configmaps"})).await;
    assert_eq!(reported["watches"], 1);
    assert_eq!(watch.next().await, None);
    assert_eq!(call("POST", "/endpoints/0/stop", token(), Value::Null).await.0, 200);
    assert!(world.admin.try_send("GET", MAPS, &[], Vec::new()).await.is_err());
    assert_eq!(call("GET", "/endpoints", token(), Value::Null).await.1["endpoints"][0]["running"], false);
    assert_eq!(call("POST", "/endpoints/0/start", token(), Value::Null).await.0, 200);
    world.admin.get(MAPS).await.expect(200);
    let (_, requests) = call("GET", "/requests", token(), Value::Null).await;
    assert!(requests["requests"].as_array().unwrap().iter().any(|record| record["code"] == 503));
    assert_eq!(call("GET", "/nothing", token(), Value::Null).await.0, 404);
}
