//! What goes wrong again and again costs little: every loop has a brake, and much is remembered by few writes.

use std::time::Instant;

use anyhow::ensure;
use carrick_client::{DeleteOptions, ListOptions, Resource};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::seed::is_wide;
use carrick_plane::Mode;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::audit::Write;
use super::deed::Deed::{Change, Order};
use super::deed::Team::{A, B};
use super::flow::Flow;
use super::flows;
use super::lab::{LONG_CALM, Lab};
use super::state::State;

/// Whether the PublishedResource says that about its objects.
pub fn told(state: &State, status: &str, words: &str) -> bool {
    let published = state.places().find(|place| place.starts_with("service publishedresources "));
    let conditions = published.and_then(|place| state.at(place)["status"]["conditions"].as_array());
    conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "ObjectsSynced"
            && condition["status"] == status
            && condition["message"].as_str().is_some_and(|message| message.contains(words))
    })
}

fn written(lab: &Lab, since: usize, wanted: impl Fn(&Write) -> bool) -> usize {
    lab.audit.writes()[since..].iter().filter(|write| wanted(write)).count()
}

/// Something on the service cluster deletes each copy as soon as it is there. It is created again, but ever more rarely, and that is told;
/// when it ends, the copy stays.
pub async fn deleted_again_and_again(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    let (service, buckets, cluster) =
        (lab.stage.service.clone(), lab.stage.buckets(), lab.stage.team_a.cluster.clone());
    let begun = lab.audit.writes().len();
    let deletes = async {
        loop {
            let copies = service.list(&buckets, None, &ListOptions::default()).await.unwrap_or_default();
            for copy in copies.iter().filter(|copy| copy["metadata"]["namespace"] == *cluster) {
                let name = copy["metadata"]["name"].as_str().unwrap_or_default();
                // The agent may be faster; the next look shows that.
                let _ = service.delete(&buckets, Some(&cluster), name, &DeleteOptions::default()).await;
            }
        }
    };
    Order(A, "one", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    tokio::select! {
        () = deletes => {}
        reached = lab.until("the contest is told", None, |state| told(state, "False", "contested")) => drop(reached?),
    }
    let creates = written(&lab, begun, |write| {
        write.ask.resource == "buckets" && write.ask.verb == "create" && write.code == 201
    });
    ensure!(creates <= 8, "it was created {creates} times");
    lab.until("the copy stays", None, |state| !state.copy("team-a", "one").is_null() && told(state, "True", ""))
        .await?;
    lab.delete_source(&lab.stage.team_a, "one").await?;
    lab.until("the order is gone", None, |state| state.copy("team-a", "one").is_null()).await?;
    lab.close().await?;
    Ok(format!("{creates} creations until it was told"))
}

/// The service cluster refuses an order in words that are new each time. The order is told once.
pub async fn refused_in_other_words(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(Flow { rules: |_| json!({ "feedback": "Annotations" }), ..flow }).await?;
    let policies =
        |kind: &str, plural: &str| Resource::cluster_wide("admissionregistration.k8s.io", "v1", kind, plural);
    let kinds = [
        policies("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        policies("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ];
    let rules = json!([{ "apiGroups": [lab.stage.group], "apiVersions": ["*"], "resources": ["buckets"], "operations": ["CREATE"] }]);
    // A new object has another UID at each attempt.
    let validation =
        json!({ "expression": "false", "messageExpression": "'request ' + object.metadata.uid + ' is refused'" });
    let specs = [
        json!({ "matchConstraints": { "resourceRules": rules }, "validations": [validation] }),
        json!({ "policyName": "no", "validationActions": ["Deny"] }),
    ];
    for (kind, spec) in kinds.iter().zip(specs) {
        let object = json!({ "apiVersion": kind.api_version(), "kind": &*kind.kind, "metadata": { "name": "no" }, "spec": spec });
        lab.stage.service.create(kind, None, &object).await?;
    }
    let begun = lab.audit.writes().len();
    Order(A, "one", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    let is_attempt = |write: &Write| write.ask.resource == "buckets" && write.ask.verb == "create" && write.code == 422;
    let stage = &lab.stage;
    stage
        .eventually("it is refused again and again", async || {
            let attempts = written(&lab, begun, is_attempt);
            ensure!(attempts >= 8, "{attempts} attempts");
            Ok(())
        })
        .await?;
    let source = stage.source(&stage.team_a, "one").await?.unwrap_or_default();
    let why = source["metadata"]["annotations"]["syncagent.kcp.io/refusal"].as_str().unwrap_or_default().to_owned();
    let patches = written(&lab, begun, |write| {
        write.server == Mode::Kcp && write.ask.resource == "buckets" && write.ask.name == "one" && write.code == 200
    });
    ensure!(why.contains("is refused"), "it says {}", source["metadata"]["annotations"]);
    // The finalizer, and the refusal.
    ensure!(patches <= 2, "{patches} writes to the order: {:#?}", lab.audit.last(20));
    let events = written(&lab, begun, |write| write.server == Mode::Kcp && write.ask.resource == "events");
    ensure!(events <= 3, "{events} writes of events: {:#?}", lab.audit.last(20));
    for kind in kinds.iter().rev() {
        lab.stage.service.delete(kind, None, "no", &DeleteOptions::default()).await?;
    }
    lab.delete_source(&lab.stage.team_a, "one").await?;
    lab.until("the order is gone", None, |state| !state.has("/one")).await?;
    lab.close().await?;
    Ok(format!("{patches} writes to the order"))
}

/// An order with very many related objects: all arrive, its own change arrives, it ends, and few writes remember all that.
pub async fn many_related_objects(flow: Flow) -> anyhow::Result<String> {
    let many = if is_wide() { 900 } else { 240 };
    let rules = |_: &carrick_e2e_stage::stage::Stage| {
        json!({ "related": [{
            "identifier": "many", "origin": "service", "version": "v1", "resource": "configmaps", "cleanup": true,
            "object": { "selector": { "matchLabels": { "many": "yes" }, "rewrite": { "template": { "template": "{{ .Value }}" } } } },
            "watch": { "bySelector": {} },
        }] })
    };
    let mut lab = Lab::open(Flow { rules, related: &["configmaps"], heavy: true, ..flow }).await?;
    let team = lab.stage.team_a.client.clone();
    Order(A, "one", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    lab.until("the order is placed", None, |state| !state.copy("team-a", "one").is_null()).await?;
    lab.rest().await?;
    lab.kill_agent().await?;
    let (service, namespace) = (lab.stage.service.clone(), lab.stage.team_a.cluster.clone());
    // Names as long as they may be: what is noted about each is long as well.
    let put = |number: usize| {
        let name = format!("m{number:03}-{}", "x".repeat(240));
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "number": number.to_string() },
            "metadata": { "name": name, "labels": { "many": "yes" } } });
        let (service, namespace) = (service.clone(), namespace.clone());
        async move { service.create(&kinds::config_maps(), Some(&namespace), &map).await }
    };
    let made: Vec<_> = futures::stream::iter(0..many).map(put).buffer_unordered(16).collect().await;
    made.into_iter().collect::<Result<Vec<_>, _>>()?;
    let begun = lab.audit.writes().len();
    lab.start_agent()?;
    let arrived =
        |state: &State| state.places().filter(|place| place.starts_with("team-a configmaps default/m")).count();
    lab.until("all related objects arrive", None, |state| arrived(state) == many).await?;
    lab.rest().await?;
    let memories = written(&lab, begun, |write| write.server == Mode::Kube && write.ask.resource == "secrets");
    ensure!(memories <= many / 25 + 2, "{memories} writes remember {many} objects: {:#?}", lab.audit.last(20));
    let announced = written(&lab, begun, |write| {
        write.server == Mode::Kcp && write.ask.resource == "buckets" && write.ask.subresource.is_empty()
    });
    ensure!(announced <= 3, "{announced} writes to the order");
    Change(A, "one", json!({ "spec": { "size": 2 } })).act(&lab).await?;
    lab.until("the order's own change arrives", None, |state| state.copy("team-a", "one")["spec"]["size"] == 2).await?;
    lab.delete_source(&lab.stage.team_a, "one").await?;
    lab.until("the order ends", None, |state| state.copy("team-a", "one").is_null() && arrived(state) == 0).await?;
    let left: Vec<Value> = team.list(&kinds::config_maps(), Some("default"), &ListOptions::default()).await?;
    ensure!(!left.iter().any(|map| map["data"]["number"].is_string()), "{} are left", left.len());
    Ok(format!("{memories} writes of state and {announced} of the order for {many} objects"))
}

/// Somebody has made the memory of an order immutable. Its changes arrive all the same, and it ends.
pub async fn immutable_memory(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    Order(A, "one", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    lab.until("the order is placed", None, |state| !state.copy("team-a", "one").is_null()).await?;
    lab.rest().await?;
    let memory = lab.stage.remembered_of(&lab.stage.team_a, "one").await?.unwrap_or_default();
    let name = memory["metadata"]["name"].as_str().unwrap_or_default();
    let at = lab.stage.agent_namespace();
    lab.stage.service.merge_patch(&kinds::secrets(), Some(&at), name, &json!({ "immutable": true })).await?;
    for size in [2, 3] {
        Change(A, "one", json!({ "spec": { "size": size } })).act(&lab).await?;
        lab.until("a change arrives", None, |state| state.copy("team-a", "one")["spec"]["size"] == size).await?;
    }
    lab.delete_source(&lab.stage.team_a, "one").await?;
    lab.until("the order is gone", None, |state| !state.has("/one")).await?;
    lab.close().await?;
    Ok("written anew".to_owned())
}

/// The flows that these trials begin with: one for each memory.
pub fn flows() -> [Flow; 2] {
    [flows::short(), flows::short().applied("short_applied")]
}

/// More orders than a workspace may have, all at once: the first of them are warned of, the rest is left out, and another workspace has its own.
pub async fn very_many_refused() -> anyhow::Result<String> {
    let limited = Flow { rules: |_| json!({ "limits": { "objectsPerWorkspace": 1 } }), ..flows::short() };
    let lab = Lab::open(limited).await?;
    let begun = lab.audit.writes().len();
    let events = |cluster: &str| {
        let is_event = |write: &Write| write.ask.resource == "events" && write.ask.cluster_name == *cluster;
        written(&lab, begun, |write| is_event(write) && write.code == 201)
    };
    let (team_a, team_b) = (&lab.stage.team_a, &lab.stage.team_b);
    let started = Instant::now();
    let orders = futures::stream::iter(0..300)
        .map(async |number| lab.create_source(team_a, &format!("many-{number}"), &lab.flow.first.clone()).await);
    orders.buffer_unordered(32).try_collect::<Vec<()>>().await?;
    lab.stage
        .eventually("the first are warned of", async || {
            let first = events(&team_a.cluster);
            ensure!(first >= 60, "{first} events of 299 refused orders");
            Ok(())
        })
        .await?;
    lab.rest_for(LONG_CALM).await?;
    let first = events(&team_a.cluster);
    // So many in each minute.
    let minutes = usize::try_from(started.elapsed().as_secs() / 60)? + 1;
    ensure!(first <= 60 * minutes + 10, "{first} events of 299 refused orders in {minutes} minutes");
    for name in ["one", "two"] {
        Order(B, name, lab.flow.first.clone()).act(&lab).await?;
    }
    lab.stage
        .eventually("the other workspace is warned", async || {
            let warned = events(&team_b.cluster);
            ensure!(warned >= 2, "{warned} events");
            Ok(())
        })
        .await?;
    lab.close().await?;
    Ok(format!("{first} events"))
}
