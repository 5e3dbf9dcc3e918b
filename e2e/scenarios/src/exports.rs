//! Exports and bindings that others write: in the newest version of kcp's API, with all that it has and the older one lacks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{Stage, Workspace, condition, shown};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::{API_BINDING_V2, API_EXPORT, API_EXPORT_ENDPOINT_SLICE, API_EXPORT_V2, API_RESOURCE_SCHEMA};
use serde_json::{Value, json};

use super::doctor;
use super::related::{credentials, encoded, secret};

/// A stage with a CRD of Buckets, and an export that somebody else has made in v1alpha2 and filled with kinds and claims of their own.
async fn foreign_export(world: Arc<dyn World>, with_virtual: bool) -> anyhow::Result<(Stage, Value)> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    let client = &stage.provider.client;
    let mut resources = Vec::new();
    for (kind, plural, ordinary) in [("Zebra", "zebras", true), ("Cache", "caches", false), ("Ape", "apes", true)] {
        if !ordinary && !with_virtual {
            continue;
        }
        let crd = fixtures::crd(&stage.group, kind);
        let name = format!("v1.{plural}.{}", stage.group);
        let schema = json!({
            "apiVersion": API_RESOURCE_SCHEMA.api_version(), "kind": API_RESOURCE_SCHEMA.kind,
            "metadata": { "name": name },
            "spec": {
                "group": stage.group, "names": crd["spec"]["names"], "scope": "Namespaced",
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                    "schema": crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
                }],
            },
        });
        client.create(&kinds::kcp(&API_RESOURCE_SCHEMA), None, &schema).await?;
        let storage = if ordinary {
            json!({ "crd": {} })
        } else {
            let reference =
                json!({ "apiGroup": "cache.kcp.io", "kind": "CachedResourceEndpointSlice", "name": "caches" });
            json!({ "virtual": { "reference": reference, "identityHash": "0123abcd" } })
        };
        resources.push(json!({ "group": stage.group, "name": plural, "schema": name, "storage": storage }));
    }
    let export = json!({
        "apiVersion": API_EXPORT_V2.api_version(), "kind": API_EXPORT_V2.kind,
        "metadata": { "name": stage.export_name(), "annotations": { "example.com/owner": "terraform" }, "labels": { "team": "platform" } },
        "spec": {
            "resources": resources,
            "permissionClaims": [
                { "group": "", "resource": "serviceaccounts", "verbs": ["get", "list"], "defaultSelector": { "matchLabels": { "app": "x" } } },
                { "group": "", "resource": "configmaps", "verbs": ["*"] },
                { "group": "rbac.authorization.k8s.io", "resource": "roles", "verbs": ["create", "get"] },
            ],
        },
    });
    client.create(&kinds::kcp(&API_EXPORT_V2), None, &export).await?;
    let slices = kinds::kcp(&API_EXPORT_ENDPOINT_SLICE);
    stage.object("the slice exists", (client, &slices, None, stage.export_name()), |_| true).await?;
    let before = newest(&stage).await?;
    Ok((stage, before))
}

/// The export in the version that kcp stores.
async fn newest(stage: &Stage) -> anyhow::Result<Value> {
    let at = (&stage.provider.client, &kinds::kcp(&API_EXPORT_V2), None, stage.export_name());
    stage.object("kcp has completed the export", at, |export| export["status"]["identityHash"].is_string()).await
}

/// That everything of others is in an export as it was.
fn is_left_alone(before: &Value, after: &Value) -> anyhow::Result<()> {
    for list in ["resources", "permissionClaims"] {
        let after = after["spec"][list].as_array().context("the list is gone")?;
        for theirs in before["spec"][list].as_array().into_iter().flatten() {
            ensure!(after.contains(theirs), "{theirs} has become {}", json!(after));
        }
    }
    for path in ["/spec/maximalPermissionPolicy", "/spec/identity", "/metadata/labels", "/metadata/uid"] {
        ensure!(before.pointer(path) == after.pointer(path), "{path}: {}", shown(after));
    }
    for (name, value) in before["metadata"]["annotations"].as_object().into_iter().flatten() {
        ensure!(after["metadata"]["annotations"][name] == *value, "{name}: {}", shown(after));
    }
    Ok(())
}

/// That orders travel, with the Secret that comes with them.
async fn orders_travel(stage: &Stage, team: &Workspace) -> anyhow::Result<()> {
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, name) = carrick_e2e_stage::stage::place(&copy);
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(name, "first")).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |source| source["status"]["url"] == "here").await?;
    let at = (&team.client, &kinds::secrets(), Some(carrick_e2e_stage::stage::NAMESPACE), "bucket-credentials");
    let arrived = |secret: &Value| secret["data"]["password"] == encoded("first");
    stage.object("the Secret reaches the consumer", at, arrived).await?;
    Ok(())
}

/// Waits until the export lists Buckets, and returns it.
async fn publishes(stage: &Stage) -> anyhow::Result<Value> {
    let at = (&stage.provider.client, &kinds::kcp(&API_EXPORT_V2), None, stage.export_name());
    stage
        .object("the export lists buckets", at, |export| {
            export["spec"]["resources"].as_array().into_iter().flatten().any(|one| one["name"] == "buckets")
        })
        .await
}

async fn published_into(world: Arc<dyn World>, with_virtual: bool) -> anyhow::Result<()> {
    let (stage, before) = foreign_export(world, with_virtual).await?;
    stage.publish("Bucket", json!({ "related": [credentials()] })).await?;
    let agent = stage.start_agent()?;
    let after = publishes(&stage).await?;
    is_left_alone(&before, &after)?;
    let ours: Vec<&Value> = after["spec"]["permissionClaims"].as_array().into_iter().flatten().collect();
    for resource in ["events", "namespaces", "secrets"] {
        let claim = json!({ "group": "", "resource": resource, "identityHash": "", "verbs": ["*"] });
        ensure!(ours.contains(&&claim), "{resource} is not claimed: {}", shown(&after));
    }
    // Whoever reads the older version sees what was always there.
    let older = stage.export().await?;
    let claims = older["spec"]["permissionClaims"].as_array().context("no claims")?;
    ensure!(claims.contains(&json!({ "resource": "events", "all": true })), "{}", shown(&older));
    let listed = older["spec"]["latestResourceSchemas"].as_array().map_or(0, Vec::len);
    ensure!(listed == 3, "{}", shown(&older));

    stage.bind(&stage.team_a).await?;
    orders_travel(&stage, &stage.team_a).await?;
    is_left_alone(&before, &newest(&stage).await?)?;
    agent.stop().await
}

pub(super) async fn an_export_that_others_wrote_in_the_newest_version_is_published_into_and_left_as_it_was(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    published_into(world, false).await
}

pub(super) async fn beside_a_kind_from_a_virtual_workspace_others_are_published(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    published_into(world, true).await
}

/// A provider can switch to the reference agent and back: that one reads and writes the older version, whole.
pub(super) async fn what_readers_of_the_older_version_see_stays_the_same(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
    stage.publish("Bucket", json!({ "related": [credentials()] })).await?;
    let agent = stage.start_agent()?;
    publishes(&stage).await?;
    orders_travel(&stage, &stage.team_a).await?;
    agent.stop().await?;
    let exports = kinds::kcp(&API_EXPORT);
    let mut older = stage.export().await?;
    let claims = |resources: &[&str]| -> Value {
        resources.iter().map(|resource| json!({ "resource": resource, "all": true })).collect()
    };
    ensure!(older["spec"]["permissionClaims"] == claims(&["events", "namespaces", "secrets"]), "{}", shown(&older));
    let schemas = older["spec"]["latestResourceSchemas"].clone();
    ensure!(schemas.as_array().is_some_and(|all| all.len() == 1), "{}", shown(&older));
    // As the reference agent would.
    older["spec"]["permissionClaims"] = claims(&["configmaps", "events", "namespaces", "secrets"]);
    older["metadata"]["annotations"]["example.com/written-by"] = json!("the other agent");
    stage.provider.client.replace(&exports, None, &older).await?;
    let before = newest(&stage).await?;
    let agent = stage.start_agent()?;
    stage.reorder(&stage.team_a, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("the change arrives", &stage.team_a, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    let after = newest(&stage).await?;
    ensure!(after["spec"] == before["spec"], "{} has become {}", shown(&before), shown(&after));
    agent.stop().await
}

/// Lets kcp refuse every change of the export, with these words.
async fn freeze(stage: &Stage, words: &str) -> anyhow::Result<[Resource; 2]> {
    let group = "admissionregistration.k8s.io";
    let kind = |kind: &str, plural: &str| Resource::cluster_wide(group, "v1", kind, plural);
    let policies = kind("ValidatingAdmissionPolicy", "validatingadmissionpolicies");
    let bindings = kind("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings");
    let rules = json!([{ "apiGroups": ["apis.kcp.io"], "apiVersions": ["*"], "resources": ["apiexports"], "operations": ["UPDATE"] }]);
    let policy = json!({ "apiVersion": policies.api_version(), "kind": &*policies.kind, "metadata": { "name": stage.id },
        "spec": { "matchConstraints": { "resourceRules": rules }, "validations": [{ "expression": "false", "message": words }] } });
    let binding = json!({ "apiVersion": bindings.api_version(), "kind": &*bindings.kind, "metadata": { "name": stage.id },
        "spec": { "policyName": stage.id, "validationActions": ["Deny"] } });
    let client = &stage.provider.client;
    client.create(&policies, None, &policy).await?;
    client.create(&bindings, None, &binding).await?;
    let mut tries = 0;
    stage
        .eventually("the policy is enforced", async || {
            tries += 1;
            let touched = json!({ "metadata": { "annotations": { "example.com/try": format!("{tries}") } } });
            let tried = client.merge_patch(&kinds::kcp(&API_EXPORT_V2), None, stage.export_name(), &touched).await;
            ensure!(tried.is_err(), "it is not");
            Ok(())
        })
        .await?;
    Ok([bindings, policies])
}

pub(super) async fn a_refused_write_of_the_export_is_told_on_what_it_was_for_and_by_the_doctor(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
    stage.publish("Bucket", json!({})).await?;
    newest(&stage).await?;
    let words = "nobody changes exports before Monday";
    let policy = freeze(&stage, words).await?;
    let began = Instant::now();
    let agent = stage.start_agent()?;
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let told = stage
        .object("the PublishedResource says that kcp refuses", at, |published| {
            let told = condition(published, "ExportUpdated");
            told["status"] == "False" && told["message"].as_str().is_some_and(|message| message.contains(words))
        })
        .await?;
    // Not only when everything is reconciled again.
    ensure!(began.elapsed() < Duration::from_secs(40), "it took {:?}", began.elapsed());
    ensure!(condition(&told, "ExportUpdated")["reason"] == "UpdateFailed", "{}", shown(&told));
    let report = doctor::ask(&stage, &doctor::Flags::of(&stage, User::Admin)).await?;
    let red = report.of("red");
    ensure!(red.iter().any(|line| line.contains(&name) && line.contains(words)), "{red:#?}");
    ensure!(report.fixes("red").iter().any(|line| line.contains("apiexports")), "{:#?}", report.fixes("red"));
    let amber = report.of("amber");
    ensure!(!red.iter().chain(&amber).any(|line| line.contains("no agent is running")), "{red:#?} {amber:#?}");

    for kind in policy {
        stage.provider.client.delete(&kind, None, &stage.id, &DeleteOptions::default()).await?;
    }
    publishes(&stage).await?;
    stage
        .object("and that it does so no longer", at, |published| {
            condition(published, "ExportUpdated")["status"] == "True"
        })
        .await?;
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the order is placed", &stage.team_a, "bucket", |_| true).await?;
    agent.stop().await
}

/// Binds a workspace as careful consumers do: few verbs, few objects, and no events.
async fn bind_with_care(stage: &Stage, team: &Workspace) -> anyhow::Result<Value> {
    let claim = |resource: &str, verbs: Value, selector: Value, state: &str| json!({ "group": "", "resource": resource, "identityHash": "", "verbs": verbs, "selector": selector, "state": state });
    let labelled = json!({ "matchLabels": { "shared": "yes" } });
    let object = json!({
        "apiVersion": API_BINDING_V2.api_version(), "kind": API_BINDING_V2.kind,
        "metadata": { "name": stage.export_name() },
        "spec": {
            "reference": { "export": { "path": stage.provider.path, "name": stage.export_name() } },
            "permissionClaims": [
                claim("configmaps", json!(["get", "list", "watch"]), labelled, "Accepted"),
                claim("events", json!(["*"]), json!({ "matchAll": true }), "Rejected"),
                claim("secrets", json!(["*"]), json!({ "matchAll": true }), "Accepted"),
                claim("namespaces", json!(["*"]), json!({ "matchAll": true }), "Accepted"),
            ],
        },
    });
    let bindings = kinds::kcp(&API_BINDING_V2);
    stage
        .eventually(&format!("{} can be bound", team.path), async || {
            match team.client.create(&bindings, None, &object).await {
                Err(error) if !error.is_already_exists() => Err(error.into()),
                _ => Ok(()),
            }
        })
        .await?;
    let at = (&team.client, &bindings, None, stage.export_name());
    stage.object("the binding is ready", at, |binding| condition(binding, "Ready")["status"] == "True").await
}

/// How many requests of an agent were refused.
async fn refusals(agent: &Agent) -> anyhow::Result<Vec<String>> {
    let text = agent.metrics().await?;
    let lines =
        text.lines().filter(|line| line.starts_with("rest_client_requests_total{") && line.contains("code=\"403\""));
    Ok(lines.map(str::to_owned).collect())
}

pub(super) async fn consumers_who_accept_no_events_are_sent_none_until_they_do(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (stage, _) = foreign_export(world, false).await?;
    stage.publish("Bucket", json!({ "related": [credentials()] })).await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    publishes(&stage).await?;
    let (quiet, loud) = (&stage.team_a, &stage.team_b);
    let bound = bind_with_care(&stage, quiet).await?;
    stage.bind(loud).await?;
    orders_travel(&stage, quiet).await?;
    for number in 0..20 {
        let name = format!("bucket-{number}");
        stage.order(quiet, &name, json!({ "size": number })).await?;
    }
    for number in 0..20 {
        stage.copy_is("every order is placed", quiet, &format!("bucket-{number}"), |_| true).await?;
    }
    // Events come last, so those of another workspace tell that all before them were written or left out.
    let placed = async |team: &Workspace, name: &str| {
        let wanted = format!("an event about {name} reaches its consumer");
        stage
            .eventually(&wanted, async || {
                let events = team.client.list(&kinds::events(), None, &carrick_client::ListOptions::default()).await?;
                let found =
                    events.iter().any(|it| it["involvedObject"]["name"] == name && it["reason"] == "ObjectPlaced");
                ensure!(found, "there are {}", events.len());
                Ok(())
            })
            .await
    };
    stage.order(loud, "heard", json!({ "size": 1 })).await?;
    placed(loud, "heard").await?;
    let refused = refusals(&agent).await?;
    ensure!(refused.is_empty(), "{refused:#?}");

    let at = (&quiet.client, &kinds::kcp(&API_BINDING_V2), None, stage.export_name());
    let now = stage.object("the binding is there", at, |_| true).await?;
    ensure!(now["spec"] == bound["spec"], "the binding is {}", shown(&now));
    stage.accept(quiet, &["configmaps", "events", "secrets", "namespaces"]).await?;
    // kcp knows of the decision a moment later.
    let mut tries = 0;
    stage
        .eventually("events are sent once they are accepted", async || {
            tries += 1;
            let name = format!("late-{tries}");
            stage.order(quiet, &name, json!({ "size": 1 })).await?;
            stage.copy_is("it is placed", quiet, &name, |_| true).await?;
            placed(quiet, &name).await
        })
        .await?;
    agent.stop().await
}
