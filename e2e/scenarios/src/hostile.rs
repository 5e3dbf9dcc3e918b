//! Consumers who write whatever suits them get nothing that is not theirs.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, condition, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::rules::access::Budget;
use serde_json::{Value, json};

/// Both teams can order Buckets by these rules.
async fn published(world: Arc<dyn World>, spec: Value) -> anyhow::Result<Stage> {
    open(Stage::bare(world).await?, spec).await
}

async fn open(stage: Stage, spec: Value) -> anyhow::Result<Stage> {
    stage.install_crd(&fixtures::roomy(&stage.group)).await?;
    stage.create_export().await?;
    stage.publish("Bucket", spec).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    Ok(stage)
}

fn secret(name: &str, kind: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": { "name": name },
            "stringData": { "password": name } })
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// Creates a namespace, unless there is one.
async fn make_room(client: &carrick_client::Client, name: &str) -> anyhow::Result<()> {
    match client.create(&kinds::namespaces(), None, &namespace(name)).await {
        Err(error) if !error.is_already_exists() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Waits until the condition of the PublishedResource says something.
async fn says(stage: &Stage, kind: &str, words: &str) -> anyhow::Result<Value> {
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let is_said = |pr: &Value| condition(pr, kind)["message"].as_str().is_some_and(|message| message.contains(words));
    stage.object(&format!("{kind} says {words:?}"), at, is_said).await
}

/// Waits until an event in a workspace names a flag, for each of these orders.
async fn warned(stage: &Stage, team: &Workspace, orders: &[&str], flag: &str) -> anyhow::Result<()> {
    stage
        .eventually("the consumer is told", async || {
            let all = carrick_client::ListOptions::default();
            let events = team.client.list(&kinds::events(), Some(NAMESPACE), &all).await?;
            let names = |event: &Value| event["message"].as_str().is_some_and(|message| message.contains(flag));
            let is_told = |order: &str| events.iter().any(|it| names(it) && it["involvedObject"]["name"] == order);
            ensure!(orders.iter().all(|order| is_told(order)), "there is no such event");
            Ok(())
        })
        .await
}

/// Whether a team has a Secret.
async fn has(team: &Workspace, name: &str) -> anyhow::Result<bool> {
    Ok(team.client.get(&kinds::secrets(), Some(NAMESPACE), name).await?.is_some())
}

/// An entry whose objects the consumer names in an annotation.
fn by_annotation(origin: &str) -> Value {
    json!({ "identifier": "chosen", "origin": origin, "version": "v1", "resource": "secrets",
            "object": { "reference": { "path": "metadata.annotations.secret" } } })
}

async fn annotate(stage: &Stage, team: &Workspace, name: &str, annotations: Value) -> anyhow::Result<()> {
    let patch = json!({ "metadata": { "annotations": annotations } });
    team.client.merge_patch(&stage.buckets(), Some(NAMESPACE), name, &patch).await?;
    Ok(())
}

pub(super) async fn only_what_belongs_to_her_copy_is_handed_to_a_consumer(world: Arc<dyn World>) -> anyhow::Result<()> {
    let mut entry = by_annotation("service");
    entry["access"] = "Owned".into();
    let stage = Stage::bare(world).await?;
    let shared = format!("shared-{}", stage.id);
    let stage = open(stage, json!({ "naming": { "namespace": shared }, "related": [entry] })).await?;
    let agent = stage.start_agent()?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.order(&stage.team_b, "other", json!({ "size": 1 })).await?;
    let ours = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let theirs = stage.copy_is("the other copy is there", &stage.team_b, "other", |_| true).await?;
    let owned = |name: &str, copy: &Value| {
        let mut secret = secret(name, "Opaque");
        secret["metadata"]["ownerReferences"] = json!([{ "apiVersion": copy["apiVersion"], "kind": copy["kind"],
            "name": copy["metadata"]["name"], "uid": copy["metadata"]["uid"] }]);
        secret
    };
    let mut labelled = secret("labelled", "Opaque");
    labelled["metadata"]["labels"] = json!({ "belongs-to": ours["metadata"]["uid"] });
    for object in [secret("operator", "Opaque"), owned("theirs", &theirs), owned("ours", &ours), labelled] {
        stage.service.create(&secrets, Some(&shared), &object).await?;
    }
    for name in ["operator", "theirs", "ours", "labelled"] {
        annotate(&stage, team, "bucket", json!({ "secret": name })).await?;
        stage
            .copy_is("the choice arrives", team, "bucket", |copy| copy["metadata"]["annotations"]["secret"] == name)
            .await?;
        stage.at_rest().await?;
        let belongs = ["ours", "labelled"].contains(&name);
        ensure!(has(team, name).await? == belongs, "{name} reached the consumer: {}", !belongs);
    }
    agent.stop().await
}

pub(super) async fn what_consumers_choose_is_said_in_amber(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = published(world, json!({ "related": [by_annotation("service")] })).await?;
    let agent = stage.start_agent()?;
    let told = says(&stage, "RulesPlausible", "spec.related[0].access").await?;
    let message = condition(&told, "RulesPlausible")["message"].as_str().unwrap_or_default();
    ensure!(message.contains("metadata.annotations.secret"), "{message}");
    let mut entry = by_annotation("service");
    entry["access"] = "Namespace".into();
    let name = stage.published_name("Bucket");
    let related = json!({ "spec": { "related": [entry] } });
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &related).await?;
    says(&stage, "RulesPlausible", "name nothing that cannot be there").await?;
    agent.stop().await
}

pub(super) async fn no_order_leads_into_namespaces_of_the_cluster_or_of_the_agent(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let by_template = "{{ .Object.metadata.namespace }}";
    let stage =
        published(world, json!({ "naming": { "namespace": by_template }, "related": [by_annotation("service")] }))
            .await?;
    let agent = stage.start_agent()?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    let own = stage.agent_namespace();
    make_room(&stage.service, &own).await?;
    stage.service.create(&secrets, Some(&own), &secret("kubeconfig", "Opaque")).await?;
    stage.order(team, "first", json!({ "size": 1 })).await?;
    stage.copy_is("an honest order is placed", team, "first", |_| true).await?;
    let bucket = json!({ "apiVersion": stage.buckets().api_version(), "kind": "Bucket",
        "metadata": { "name": "bad", "annotations": { "secret": "kubeconfig" } }, "spec": { "size": 1 } });
    for there in ["kube-system", &own] {
        make_room(&team.client, there).await?;
        team.client.create(&stage.buckets(), Some(there), &bucket).await?;
        says(&stage, "ObjectsSynced", &format!("{there:?}, which is reserved")).await?;
        let copy = stage.service.list(&stage.buckets(), Some(there), &carrick_client::ListOptions::default()).await?;
        ensure!(copy.is_empty(), "it was placed: {}", shown(&copy[0]));
        let stolen = team.client.get(&secrets, Some(there), "kubeconfig").await?;
        ensure!(stolen.is_none(), "the consumer got it");
        team.client.delete(&stage.buckets(), Some(there), "bad", &carrick_client::DeleteOptions::default()).await?;
    }
    agent.stop().await
}

pub(super) async fn related_objects_stay_out_of_reserved_namespaces(world: Arc<dyn World>) -> anyhow::Result<()> {
    let chosen = json!({ "template": { "template":
        "{{ if eq .Side \"kcp\" }}{{ .Object.metadata.namespace }}{{ else }}{{ .Object.metadata.annotations.place }}{{ end }}" } });
    let (mut up, mut down) = (by_annotation("service"), by_annotation("kcp"));
    up["object"]["namespace"] = chosen.clone();
    down["object"]["namespace"] = chosen;
    down["identifier"] = "squatter".into();
    down["object"]["reference"]["path"] = "metadata.annotations.squatter".into();
    let stage = published(world, json!({ "related": [up, down] })).await?;
    let agent = stage.start_agent()?;
    let (team, secrets, own) = (&stage.team_a, kinds::secrets(), stage.agent_namespace());
    make_room(&stage.service, &own).await?;
    stage.service.create(&secrets, Some(&own), &secret("kubeconfig", "Opaque")).await?;
    team.client.create(&secrets, Some(NAMESPACE), &secret("squatter", "Opaque")).await?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    annotate(&stage, team, "bucket", json!({ "place": own, "secret": "kubeconfig", "squatter": "squatter" })).await?;
    says(&stage, "ObjectsSynced", &format!("{own:?}, which is reserved")).await?;
    ensure!(!has(team, "kubeconfig").await?, "the agent's Secret reached the consumer");
    let squatter = stage.service.get(&secrets, Some(&own), "squatter").await?;
    ensure!(squatter.is_none(), "the consumer's Secret is beside the agent");
    agent.stop().await
}

pub(super) async fn credentials_of_the_cluster_do_not_travel(world: Arc<dyn World>) -> anyhow::Result<()> {
    let (up, mut down) = (by_annotation("service"), by_annotation("kcp"));
    down["identifier"] = "down".into();
    down["object"]["reference"]["path"] = "metadata.annotations.down".into();
    let stage = published(world, json!({ "related": [up, down] })).await?;
    let agent = stage.start_agent()?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (there, _) = place(&copy);
    stage.service.create(&secrets, Some(there), &secret("token", "bootstrap.kubernetes.io/token")).await?;
    stage.service.create(&secrets, Some(there), &secret("plain", "Opaque")).await?;
    team.client.create(&secrets, Some(NAMESPACE), &secret("mint", "bootstrap.kubernetes.io/token")).await?;
    annotate(&stage, team, "bucket", json!({ "secret": "token", "down": "mint" })).await?;
    stage
        .copy_is("the choice arrives", team, "bucket", |copy| copy["metadata"]["annotations"]["down"] == "mint")
        .await?;
    stage.at_rest().await?;
    ensure!(!has(team, "token").await?, "the credentials reached the consumer");
    ensure!(stage.service.get(&secrets, Some(there), "mint").await?.is_none(), "the consumer minted a token");
    annotate(&stage, team, "bucket", json!({ "secret": "plain" })).await?;
    let at = (&team.client, &secrets, Some(NAMESPACE), "plain");
    stage.object("an ordinary Secret travels", at, |_| true).await?;

    // Whoever names the type means it.
    let name = stage.published_name("Bucket");
    let published = stage.service.get(&kinds::published_resources(), None, &name).await?.context("it is gone")?;
    let mut related = published["spec"]["related"].clone();
    related[1]["secretTypes"] = json!(["bootstrap.kubernetes.io/token"]);
    stage
        .service
        .merge_patch(&kinds::published_resources(), None, &name, &json!({ "spec": { "related": related } }))
        .await?;
    stage.object("it travels once it is named", (&stage.service, &secrets, Some(there), "mint"), |_| true).await?;
    agent.stop().await
}

pub(super) async fn an_order_that_names_too_many_objects_is_refused_and_holds_up_nobody(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let entry = json!({ "identifier": "listed", "origin": "kcp", "version": "v1", "resource": "configmaps",
        "object": { "reference": { "path": "spec.free.names" } } });
    let stage = published(world, json!({ "related": [entry] })).await?;
    let agent = stage.start_agent()?;
    let (team, config_maps) = (&stage.team_a, kinds::config_maps());
    let names: Vec<String> = (0..20_000).map(|number| format!("name-{number}")).collect();
    stage.order(team, "greedy", json!({ "free": { "names": names } })).await?;
    let told = says(&stage, "ObjectsSynced", "20000 names, and the agent allows 1000 (--max-related-names)").await?;
    ensure!(condition(&told, "ObjectsSynced")["status"] == "False", "{}", shown(&told));
    warned(&stage, team, &["greedy"], "--max-related-names").await?;

    // As many as one may name travel.
    let few: Vec<String> = names[..3].to_vec();
    for name in &few {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
        team.client.create(&config_maps, Some(NAMESPACE), &object).await?;
    }
    stage.order(team, "modest", json!({ "free": { "names": few } })).await?;
    let copy = stage.copy_is("the copy is there", team, "modest", |_| true).await?;
    for name in &few {
        stage.object("it travels", (&stage.service, &config_maps, Some(place(&copy).0), name), |_| true).await?;
    }
    agent.stop().await
}

pub(super) async fn an_order_with_too_many_related_objects_is_refused_and_holds_up_nobody(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let entry = |list: &str| {
        json!({ "identifier": list, "origin": "kcp", "version": "v1", "resource": "configmaps",
            "object": { "reference": { "path": format!("spec.free.{list}") } } })
    };
    let stage = published(world, json!({ "related": [entry("first"), entry("second")] })).await?;
    let budget = Budget { objects: 3, ..Budget::default() };
    let agent = Agent::start(&stage, Setup { budget, ..Setup::default() })?;
    let (team, other, config_maps) = (&stage.team_a, &stage.team_b, kinds::config_maps());
    for name in ["a", "b", "c", "d"] {
        for team in [team, other] {
            team.client.create(&config_maps, Some(NAMESPACE), &config_map(name, 10)).await?;
        }
    }
    let names = |first: &[&str], second: &[&str]| json!({ "free": { "first": first, "second": second } });
    stage.order(team, "greedy", names(&["a", "b"], &["c", "d"])).await?;
    let told = says(&stage, "ObjectsSynced", "4 related objects of one order").await?;
    let message = condition(&told, "ObjectsSynced")["message"].as_str().unwrap_or_default();
    ensure!(message.contains("spec.related[1]") && message.contains("allows 3 (--max-related-objects)"), "{message}");
    warned(&stage, team, &["greedy"], "--max-related-objects").await?;
    let arrives = async |team: &Workspace, order: &str, name: &str| {
        let copy = stage.copy_is("the order is placed", team, order, |_| true).await?;
        let namespace = place(&copy).0.to_owned();
        stage.object("it travels", (&stage.service, &config_maps, Some(&namespace), name), |_| true).await?;
        anyhow::Ok(namespace)
    };
    let namespace = arrives(team, "greedy", "a").await?;
    stage.order(other, "modest", names(&["a"], &["c", "d"])).await?;
    arrives(other, "modest", "d").await?;
    let beyond = stage.service.get(&config_maps, Some(&namespace), "c").await?;
    ensure!(beyond.is_none(), "one was placed that is beyond the budget");

    // Once it names fewer, all of them travel.
    stage.reorder(team, "greedy", names(&["a"], &["c", "d"])).await?;
    arrives(team, "greedy", "d").await?;
    agent.stop().await
}

/// The spec of an order that cannot be compressed.
fn large(seed: u64) -> Value {
    let mut state = seed;
    let letters = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap_or_default())
    });
    json!({ "blob": letters.take(150_000).collect::<String>() })
}

pub(super) async fn orders_beyond_the_memory_of_a_workspace_wait_and_hold_up_nobody(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = published(world, json!({})).await?;
    let setup = || Setup { budget: Budget { cached_bytes: 200_000, ..Budget::default() }, ..Setup::default() };
    let agent = Agent::start(&stage, setup())?;
    let team = &stage.team_a;
    stage.order(team, "first", large(1)).await?;
    let placed = stage.copy_is("there is room for one", team, "first", |_| true).await?;
    for name in ["second", "third"] {
        stage.order(team, name, large(2)).await?;
    }
    let told = says(&stage, "ObjectsSynced", "2 objects cannot be synchronized").await?;
    let message = condition(&told, "ObjectsSynced")["message"].as_str().unwrap_or_default();
    ensure!(message.contains("200000 bytes") && message.contains("--max-cached-bytes"), "{message}");
    warned(&stage, team, &["second", "third"], "--max-cached-bytes").await?;
    stage.order(&stage.team_b, "first", large(3)).await?;
    stage.copy_is("others have room of their own", &stage.team_b, "first", |_| true).await?;
    stage.order(team, "small", json!({ "size": 1 })).await?;
    stage.copy_is("a small order is placed", team, "small", |_| true).await?;
    stage.reorder(team, "small", json!({ "size": 2 })).await?;
    stage.copy_is("a change of it arrives", team, "small", |copy| copy["spec"]["size"] == 2).await?;

    // Whichever comes first after a restart: what is placed stays as it is.
    agent.stop().await?;
    let agent = Agent::start(&stage, setup())?;
    says(&stage, "ObjectsSynced", "--max-cached-bytes").await?;
    stage.at_rest().await?;
    let is_same = |copy: &Value| copy["metadata"]["uid"] == placed["metadata"]["uid"] && copy["spec"] == placed["spec"];
    stage.copy_is("what was placed is as it was", team, "first", is_same).await?;

    // Nor is what it keeps of one that waits ever long; and others' finalizers stay when it lets go.
    let buckets = stage.buckets();
    let small = (&team.client, &buckets, Some(NAMESPACE), "small");
    let theirs: Vec<Value> = (0..2_000).map(|number| json!(format!("example.com/finalizer-{number}"))).collect();
    let held = |source: &Value| source["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let source = stage.object("it is held", small, |source| held(source).len() == 1).await?;
    let all: Vec<Value> = held(&source).into_iter().chain(theirs.clone()).collect();
    let grown = json!({ "metadata": { "finalizers": all }, "spec": large(4) });
    team.client.merge_patch(&buckets, Some(NAMESPACE), "small", &grown).await?;
    warned(&stage, team, &["small"], "--max-cached-bytes").await?;
    stage.cancel(team, "small").await?;
    stage.object("the agent lets go of it", small, |source| held(source) == theirs).await?;
    let none = json!({ "metadata": { "finalizers": null } });
    team.client.merge_patch(&buckets, Some(NAMESPACE), "small", &none).await?;
    stage.all_gone(team, "small").await?;

    // One that waits can go, and so can one that is placed: then there is room for the next.
    stage.cancel(team, "second").await?;
    stage.all_gone(team, "second").await?;
    stage.cancel(team, "first").await?;
    stage.all_gone(team, "first").await?;
    stage.copy_is("the next one is placed as a whole", team, "third", |copy| copy["spec"] == large(2)).await?;
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    stage.object("nothing waits any more", at, |pr| condition(pr, "ObjectsSynced")["status"] == "True").await?;
    agent.stop().await
}

/// A ConfigMap of so many bytes, more or less.
fn config_map(name: &str, bytes: usize) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "blob": "x".repeat(bytes) } })
}

pub(super) async fn related_objects_beyond_the_memory_of_a_workspace_are_refused_and_hold_up_nobody(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let entry = json!({ "identifier": "listed", "origin": "kcp", "version": "v1", "resource": "configmaps",
        "object": { "reference": { "path": "spec.free.names" } } });
    let stage = published(world, json!({ "related": [entry] })).await?;
    let setup = Setup { budget: Budget { cached_bytes: 300_000, ..Budget::default() }, ..Setup::default() };
    let agent = Agent::start(&stage, setup)?;
    let (team, other, config_maps) = (&stage.team_a, &stage.team_b, kinds::config_maps());
    for (team, name, bytes) in [(team, "fits", 100_000), (team, "large", 200_000), (other, "large", 100_000)] {
        team.client.create(&config_maps, Some(NAMESPACE), &config_map(name, bytes)).await?;
    }
    // Each counts twice: there is one in the workspace and one on the service cluster.
    let names = |names: &[&str]| json!({ "free": { "names": names } });
    stage.order(team, "honest", names(&["fits"])).await?;
    let honest = stage.copy_is("the copy is there", team, "honest", |_| true).await?;
    let there = |name: &'static str, copy: &Value| (place(copy).0.to_owned(), name);
    let (namespace, name) = there("fits", &honest);
    stage.object("there is room for it", (&stage.service, &config_maps, Some(&namespace), name), |_| true).await?;

    stage.order(team, "greedy", names(&["large"])).await?;
    let told = says(&stage, "ObjectsSynced", "bytes of related objects of this workspace").await?;
    let message = condition(&told, "ObjectsSynced")["message"].as_str().unwrap_or_default();
    ensure!(message.contains("allows 300000 (--max-cached-bytes)"), "{message}");
    ensure!(condition(&told, "ObjectsSynced")["status"] == "False", "{}", shown(&told));
    warned(&stage, team, &["greedy"], "--max-cached-bytes").await?;
    let greedy = stage.copy_is("the order itself is placed", team, "greedy", |_| true).await?;
    let (namespace, name) = there("large", &greedy);
    let large = stage.service.get(&config_maps, Some(&namespace), name).await?;
    ensure!(large.is_none(), "it was placed although there is no room");

    // Others have room of their own, and what is placed goes on.
    stage.order(other, "honest", names(&["large"])).await?;
    let theirs = stage.copy_is("the copy is there", other, "honest", |_| true).await?;
    let theirs = there("large", &theirs);
    stage.object("it travels", (&stage.service, &config_maps, Some(&theirs.0), theirs.1), |_| true).await?;
    let patch = json!({ "data": { "more": "1" } });
    team.client.merge_patch(&config_maps, Some(NAMESPACE), "fits", &patch).await?;
    let fits = there("fits", &honest);
    let at = (&stage.service, &config_maps, Some(fits.0.as_str()), fits.1);
    stage.object("a change of it arrives", at, |map| map["data"]["more"] == "1").await?;

    // Once the other order is gone there is room.
    team.client
        .merge_patch(&config_maps, Some(NAMESPACE), "large", &json!({ "data": { "blob": "x".repeat(120_000) } }))
        .await?;
    stage.cancel(team, "honest").await?;
    stage.all_gone(team, "honest").await?;
    stage.object("it travels now", (&stage.service, &config_maps, Some(&namespace), name), |_| true).await?;
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    stage.object("nothing waits any more", at, |pr| condition(pr, "ObjectsSynced")["status"] == "True").await?;
    agent.stop().await
}
