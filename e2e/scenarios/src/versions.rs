//! Several versions of a kind: rules convert between them, on the way and for kcp.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use carrick_client::{ListOptions, Resource};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, condition, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds, ports};
use carrick_syncagent::agent::conversion::ConversionServer;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

/// v1 has `size`, `region` and `phase`.
fn crd(group: &str) -> Value {
    let mut crd = fixtures::crd(group, "Bucket");
    let properties = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    properties["spec"] = json!({ "type": "object", "properties": {
        "size": { "type": "integer" }, "region": { "type": "string", "enum": ["EU", "US"] } } });
    properties["status"] = json!({ "type": "object", "properties": { "phase": { "type": "string" } } });
    crd
}

/// v2 has `capacity.size`, `region` in small letters, `color` and `state`.
fn v2() -> Value {
    let capacity = json!({ "type": "object", "properties": { "size": { "type": "integer" } } });
    let spec = json!({
        "capacity": capacity, "region": { "type": "string", "enum": ["eu", "us"] }, "color": { "type": "string" },
    });
    let status = json!({ "type": "object", "properties": { "state": { "type": "string" } } });
    let properties = json!({ "spec": { "type": "object", "properties": spec }, "status": status });
    json!({
        "name": "v2", "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
    })
}

/// Rules that lose nothing.
fn rules() -> Value {
    let cel = |function: &str| {
        let expression = format!("self.spec.region.{function}()");
        json!({ "when": "has(self.spec) && has(self.spec.region)", "cel": { "path": "spec.region", "expression": expression } })
    };
    let moved = |from: &str, to: &str| json!({ "move": { "from": from, "to": to } });
    json!([
        { "from": "v1", "to": "v2", "steps": [
            moved("spec.size", "spec.capacity.size"), cel("lowerAscii"), moved("status.phase", "status.state"),
        ] },
        { "from": "v2", "to": "v1", "preserve": ["spec.color"], "steps": [
            moved("spec.capacity.size", "spec.size"), cel("upperAscii"), moved("status.state", "status.phase"),
        ] },
    ])
}

/// Buckets in version v2.
fn newer(stage: &Stage) -> Resource {
    Resource::namespaced(&stage.group, "v2", "Bucket", "buckets")
}

/// A stage on which Buckets are published with a conversion.
async fn set(world: Arc<dyn World>, conversion: Value) -> anyhow::Result<Stage> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&crd(&stage.group)).await?;
    stage.create_export().await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    stage.publish("Bucket", json!({ "conversion": conversion })).await?;
    Ok(stage)
}

/// An object of a team once it is so.
async fn order_is(
    stage: &Stage,
    what: &str,
    (kind, team, name): (&Resource, &Workspace, &str),
    is_so: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    stage.object(what, (&team.client, kind, Some(NAMESPACE), name), is_so).await
}

/// The PublishedResource once it is so.
async fn published(stage: &Stage, what: &str, is_so: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    let name = stage.published_name("Bucket");
    stage.object(what, (&stage.service, &kinds::published_resources(), None, &name), is_so).await
}

async fn patch(stage: &Stage, conversion: Value) -> anyhow::Result<()> {
    let patch = json!({ "spec": { "conversion": conversion } });
    let name = stage.published_name("Bucket");
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
    Ok(())
}

/// What whoever lists Buckets of a version is warned of.
pub(super) async fn warnings(stage: &Stage, team: &Workspace, version: &str) -> anyhow::Result<Vec<String>> {
    let path = format!("/apis/{}/{version}/namespaces/{NAMESPACE}/buckets", stage.group);
    let request = http::Request::get(path).body(kube::client::Body::empty())?;
    let answer = team.client.kube().send(request).await?;
    ensure!(answer.status().is_success(), "{}", answer.status());
    let warnings = answer.headers().get_all(http::header::WARNING).iter();
    Ok(warnings.filter_map(|warning| warning.to_str().ok().map(str::to_owned)).collect())
}

/// Certificates for a webhook on loopback.
struct Certificates {
    folder: Scratch,
    authority: String,
}

impl Certificates {
    fn make() -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);
        let own = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&own, &issuer)?;
        let folder = Scratch::new()?;
        folder.write("tls.crt", &certificate.pem())?;
        folder.write("tls.key", &own.serialize_pem())?;
        Ok(Self { folder, authority: data_encoding::BASE64.encode(authority.as_bytes()) })
    }

    /// An agent that answers at that port.
    fn start_agent(&self, stage: &Stage, port: u16) -> anyhow::Result<Agent> {
        let (cert, key) = (self.folder.path().join("tls.crt"), self.folder.path().join("tls.key"));
        let address = format!("127.0.0.1:{port}");
        Agent::start_converting(stage, Setup::default(), ConversionServer { address, cert, key })
    }
}

pub(super) async fn a_version_that_the_service_cluster_does_not_have_is_served_by_rules(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let mut only = v2();
    only["storage"] = json!(true);
    let versions = json!([only, { "name": "v1", "served": false }]);
    let stage = set(world, json!({ "versions": versions, "rules": rules() })).await?;
    let agent = stage.start_agent()?;
    let (kind, team) = (newer(&stage), &stage.team_a);
    let spec = json!({ "capacity": { "size": 3 }, "region": "eu", "color": "blue" });
    stage.order_kind(&kind, team, "mine", spec).await?;
    let copy = stage
        .copy_is("the copy is in the older version", team, "mine", |copy| {
            copy["spec"] == json!({ "size": 3, "region": "EU" })
        })
        .await?;
    stage.operator_reports(&copy, json!({ "phase": "Ready" })).await?;
    let at = (&kind, team, "mine");
    order_is(&stage, "the status returns in the newer version", at, |it| it["status"] == json!({ "state": "Ready" }))
        .await?;
    let patch = json!({ "spec": { "capacity": { "size": 5 }, "region": null } });
    team.client.merge_patch(&kind, Some(NAMESPACE), "mine", &patch).await?;
    stage
        .copy_is("changes arrive", team, "mine", |copy| {
            copy["spec"] == json!({ "size": 5 }) && copy["status"]["phase"] == "Ready"
        })
        .await?;
    order_is(&stage, "the order stays what it is", at, |it| it["spec"]["color"] == "blue").await?;
    // Everything is said to be fine, and a restart finds nothing to do.
    published(&stage, "the rules lose nothing", |it| {
        condition(it, "RulesPlausible")["status"] == "True" && condition(it, "ObjectsSynced")["status"] == "True"
    })
    .await?;
    let versions = async || {
        let source = order_is(&stage, "the order is there", at, |_| true).await?;
        let copy = stage.copy(team, "mine").await?.context("no copy")?;
        anyhow::Ok([source, copy].map(|object| object["metadata"]["resourceVersion"].clone()))
    };
    let (mut before, mut since) = (versions().await?, Instant::now());
    stage
        .eventually("nothing changes any more", async || {
            let now = versions().await?;
            if now != before {
                (before, since) = (now, Instant::now());
            }
            ensure!(since.elapsed() >= stage.world.pace().rest, "it has changed not long ago");
            Ok(())
        })
        .await?;
    agent.stop().await?;
    let agent = stage.start_agent()?;
    stage.order_kind(&kind, team, "next", json!({ "capacity": { "size": 1 } })).await?;
    stage.copy_is("the next agent is at work", team, "next", |copy| copy["spec"]["size"] == 1).await?;
    let after = versions().await?;
    ensure!(before == after, "a restart has written {before:?} {after:?}");
    team.client.delete(&kind, Some(NAMESPACE), "mine", &carrick_client::DeleteOptions::default()).await?;
    stage.gone("the order ends", (&team.client, &kind, Some(NAMESPACE), "mine")).await?;
    ensure!(stage.copy(team, "mine").await?.is_none(), "its copy is still there");
    agent.stop().await
}

pub(super) async fn consumers_use_the_version_they_like_and_kcp_asks_the_agent(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let certificates = Certificates::make()?;
    let [port] = ports::free::<1>()?;
    let webhook = json!({ "url": format!("https://127.0.0.1:{port}/convert"), "caBundle": certificates.authority });
    let deprecated = json!({ "name": "v1", "deprecated": true, "deprecationWarning": "v1 goes away, use v2" });
    let conversion = json!({ "versions": [v2(), deprecated], "rules": rules(), "webhook": webhook });
    let stage = set(world, conversion.clone()).await?;
    let agent = certificates.start_agent(&stage, port)?;
    let (old, new) = (stage.buckets(), newer(&stage));
    let spec = json!({ "size": 3, "region": "EU" });
    stage.order_kind(&old, &stage.team_a, "ours", spec).await?;
    let spec = json!({ "capacity": { "size": 7 }, "color": "blue" });
    stage.order_kind(&new, &stage.team_b, "theirs", spec).await?;
    for (team, name, wanted) in
        [(&stage.team_a, "ours", json!({ "size": 3, "region": "EU" })), (&stage.team_b, "theirs", json!({ "size": 7 }))]
    {
        let copy = stage.copy_is("the copy is there", team, name, |copy| copy["spec"] == wanted).await?;
        stage.operator_reports(&copy, json!({ "phase": "Ready" })).await?;
        order_is(&stage, "v1 shows the status", (&old, team, name), |it| it["status"]["phase"] == "Ready").await?;
        order_is(&stage, "v2 shows the status", (&new, team, name), |it| it["status"]["state"] == "Ready").await?;
    }
    let seen = order_is(&stage, "v2 shows it", (&new, &stage.team_a, "ours"), |_| true).await?;
    ensure!(seen["spec"] == json!({ "capacity": { "size": 3 }, "region": "eu" }), "{}", shown(&seen));
    let seen = order_is(&stage, "v1 shows it", (&old, &stage.team_b, "theirs"), |_| true).await?;
    ensure!(seen["spec"] == json!({ "size": 7 }), "{}", shown(&seen));
    let seen = order_is(&stage, "nothing is lost", (&new, &stage.team_b, "theirs"), |_| true).await?;
    ensure!(seen["spec"] == json!({ "capacity": { "size": 7 }, "color": "blue" }), "{}", shown(&seen));
    published(&stage, "the rules lose nothing", |it| condition(it, "RulesPlausible")["status"] == "True").await?;

    let warned = warnings(&stage, &stage.team_a, "v1").await?;
    ensure!(warned == [r#"299 - "v1 goes away, use v2""#], "{warned:?}");
    let warned = warnings(&stage, &stage.team_a, "v2").await?;
    ensure!(warned.is_empty(), "{warned:?}");

    // kcp stores the newer version from now on; orders and copies stay what they are.
    let before = stage.copy(&stage.team_b, "theirs").await?.context("no copy")?;
    let first = published(&stage, "it is published", |_| true).await?["status"]["resourceSchemaName"].clone();
    let mut stored = v2();
    stored["storage"] = json!(true);
    patch(&stage, json!({ "versions": [stored, deprecated] })).await?;
    published(&stage, "another schema is exported", |it| {
        it["status"]["resourceSchemaName"] != first && condition(it, "ExportUpdated")["status"] == "True"
    })
    .await?;
    let change = json!({ "spec": { "capacity": { "size": 8 } } });
    stage
        .eventually("it can be changed", async || {
            Ok(stage.team_b.client.merge_patch(&new, Some(NAMESPACE), "theirs", &change).await?)
        })
        .await?;
    let after = stage.copy_is("the change arrives", &stage.team_b, "theirs", |it| it["spec"]["size"] == 8).await?;
    ensure!(before["metadata"]["uid"] == after["metadata"]["uid"], "it is another copy");
    let seen = order_is(&stage, "v1 is still served", (&old, &stage.team_a, "ours"), |_| true).await?;
    ensure!(seen["spec"] == json!({ "size": 3, "region": "EU" }), "{}", shown(&seen));
    stage.order_kind(&old, &stage.team_a, "late", json!({ "size": 1, "region": "US" })).await?;
    let wanted = json!({ "size": 1, "region": "US" });
    stage.copy_is("so are orders in it", &stage.team_a, "late", |copy| copy["spec"] == wanted).await?;
    agent.stop().await
}

pub(super) async fn copies_follow_when_the_service_cluster_stores_the_newer_version(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let mut only = v2();
    only["storage"] = json!(true);
    let versions = json!([only, { "name": "v1", "served": false }]);
    let stage = set(world, json!({ "versions": versions, "rules": rules() })).await?;
    let agent = stage.start_agent()?;
    let (kind, team) = (newer(&stage), &stage.team_a);
    let spec = json!({ "capacity": { "size": 3 }, "region": "eu" });
    stage.order_kind(&kind, team, "mine", spec.clone()).await?;
    let before = stage.copy_is("the copy is there", team, "mine", |copy| copy["spec"]["size"] == 3).await?;

    // The operator knows v2 now. Its CRD converts nothing, so that the rules have to do.
    let mut crd = crd(&stage.group);
    let mut newer_version = v2();
    newer_version["served"] = json!(true);
    newer_version["storage"] = json!(true);
    crd["spec"]["versions"][0]["storage"] = json!(false);
    let both = json!([crd["spec"]["versions"][0], newer_version]);
    let patch = json!({ "spec": { "versions": both } });
    let name = format!("buckets.{}", stage.group);
    stage.service.merge_patch(&kinds::crds(), None, &name, &patch).await?;
    let in_v2 = |it: &Value| it["spec"] == spec;
    let after = stage.copy_of_kind_is("the copy is in v2", (&kind, team, "mine"), in_v2).await?;
    ensure!(before["metadata"]["uid"] == after["metadata"]["uid"], "it is another copy");
    team.client.merge_patch(&kind, Some(NAMESPACE), "mine", &json!({ "spec": { "color": "red" } })).await?;
    stage.copy_of_kind_is("changes arrive", (&kind, team, "mine"), |it| it["spec"]["color"] == "red").await?;
    agent.stop().await
}

pub(super) async fn what_conversions_lose_and_mistakes_in_them_are_told(world: Arc<dyn World>) -> anyhow::Result<()> {
    let mut lossy = rules();
    lossy[1]["preserve"] = json!([]);
    let webhook = json!({ "url": "https://127.0.0.1:1/convert" });
    let conversion = json!({ "versions": [v2()], "rules": lossy, "webhook": webhook });
    let stage = set(world, conversion).await?;
    let agent = stage.start_agent()?;
    let told = |it: &Value, kind: &str| condition(it, kind)["message"].as_str().unwrap_or_default().to_owned();
    published(&stage, "the loss is named", |it| {
        condition(it, "RulesPlausible")["status"] == "False"
            && told(it, "RulesPlausible").contains("spec.conversion.rules: v2 → v1: spec.color: v1 has no such field")
    })
    .await?;
    patch(&stage, json!({ "webhook": null })).await?;
    published(&stage, "what kcp loses is named", |it| {
        told(it, "RulesPlausible")
            .contains("spec.conversion.webhook: without it, kcp changes nothing but the apiVersion")
    })
    .await?;
    let mut wrong = rules();
    wrong[0]["steps"][1]["when"] = json!("self.spec.(");
    for (rules, words) in [
        (wrong, "spec.conversion.rules[0].steps[1].when: "),
        (json!([rules()[0]]), "spec.conversion.rules: nothing leads from v2 to v1"),
    ] {
        patch(&stage, json!({ "rules": rules })).await?;
        published(&stage, "the mistake is named", |it| {
            condition(it, "RulesValid")["status"] == "False" && told(it, "RulesValid").contains(words)
        })
        .await?;
    }
    // Rules that were valid stay at work.
    stage.order(&stage.team_a, "mine", json!({ "size": 3 })).await?;
    stage.copy_is("orders are placed", &stage.team_a, "mine", |copy| copy["spec"]["size"] == 3).await?;
    agent.stop().await
}

pub(super) async fn an_order_that_cannot_be_converted_is_named_and_harms_no_other(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    // From v2 to v1 there is no way for sizes above 100: neither to the service cluster, nor for those who read v1.
    let certificates = Certificates::make()?;
    let [port] = ports::free::<1>()?;
    let webhook = json!({ "url": format!("https://127.0.0.1:{port}/convert"), "caBundle": certificates.authority });
    let mut rules = rules();
    let steps = rules[1]["steps"].as_array_mut().context("no steps")?;
    let fits = "self.spec.size <= 100 ? self.spec.size : [1][self.spec.size]";
    steps.insert(1, json!({ "cel": { "path": "spec.size", "expression": fits } }));
    let mut stored = v2();
    stored["storage"] = json!(true);
    let conversion = json!({ "versions": [stored, { "name": "v1" }], "rules": rules, "webhook": webhook });
    let stage = set(world, conversion).await?;
    let agent = certificates.start_agent(&stage, port)?;
    let (old, new) = (stage.buckets(), newer(&stage));
    let sized = |size: u32| json!({ "capacity": { "size": size } });
    stage.order_kind(&new, &stage.team_a, "bad", sized(101)).await?;
    for team in [&stage.team_a, &stage.team_b] {
        stage.order_kind(&new, team, "good", sized(7)).await?;
        stage.copy_is("others are placed", team, "good", |copy| copy["spec"]["size"] == 7).await?;
    }
    published(&stage, "the order is named", |it| {
        let told = condition(it, "ObjectsSynced")["message"].as_str().unwrap_or_default().to_owned();
        ["1 object cannot be synchronized", "/bad", "spec.conversion.rules[1].steps[1]"]
            .iter()
            .all(|it| told.contains(it))
    })
    .await?;
    ensure!(stage.copy(&stage.team_a, "bad").await?.is_none(), "half of the rules were applied");

    // API servers convert all objects of a list or none; whoever reads v1 is told which one it is.
    let listed = async |team: &Workspace| team.client.list(&old, Some(NAMESPACE), &ListOptions::default()).await;
    stage
        .eventually("the list names it", async || {
            let told = listed(&stage.team_a).await.err().context("it is listed")?.to_string();
            ensure!(
                told.contains(&format!("Bucket {NAMESPACE}/bad")) && told.contains("cannot be converted to v1"),
                "{told}"
            );
            Ok(())
        })
        .await?;
    ensure!(listed(&stage.team_b).await?.len() == 1, "another workspace is harmed");
    // The agent reads what kcp stores, and goes on; corrected, all is well.
    let patch = |size: u32| json!({ "spec": sized(size) });
    stage.team_a.client.merge_patch(&new, Some(NAMESPACE), "good", &patch(8)).await?;
    stage.copy_is("changes arrive", &stage.team_a, "good", |copy| copy["spec"]["size"] == 8).await?;
    stage.team_a.client.merge_patch(&new, Some(NAMESPACE), "bad", &patch(9)).await?;
    stage.copy_is("corrected, it is placed", &stage.team_a, "bad", |copy| copy["spec"]["size"] == 9).await?;
    ensure!(listed(&stage.team_a).await?.len() == 2, "something is missing");
    agent.stop().await
}
