//! Objects that exist on the service cluster are handed over to consumers, and nothing is written to their content.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::agent::config;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Snapshot, Stage, Workspace, changes, condition, shown};
use carrick_e2e_stage::world::World;
use carrick_syncagent::agent::import::{Action, ImportOutcome, ImportedObject, Imports, Request, Selected, import};
use carrick_syncagent::api;
use carrick_syncagent::decide::import::OnDelete;
use carrick_syncagent::rules::metadata::{SourceKey, link_to_object, write_link};
use serde_json::{Value, json};

/// Namespace of a provider's own objects.
fn own(stage: &Stage) -> String {
    format!("own-{}", stage.id)
}

async fn create_namespace(stage: &Stage, name: &str) -> anyhow::Result<()> {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    stage.service.create(&kinds::namespaces(), None, &namespace).await?;
    Ok(())
}

/// An object that somebody has had for a while: it was changed once, its operator has reported, and a tool has left a note.
async fn existing(stage: &Stage, name: &str, labels: Value) -> anyhow::Result<Value> {
    let (buckets, namespace) = (stage.buckets(), own(stage));
    let object = json!({
        "apiVersion": buckets.api_version(), "kind": "Bucket",
        "metadata": { "name": name, "labels": labels, "annotations": { "tool.example.com/id": name } },
        "spec": { "size": 1, "region": "eu" },
    });
    stage.service.create(&buckets, Some(&namespace), &object).await?;
    let patch = json!({ "spec": { "size": 2 } });
    let object = stage.service.merge_patch(&buckets, Some(&namespace), name, &patch).await?;
    ensure!(object["metadata"]["generation"] == 2, "{}", shown(&object));
    stage.operator_reports(&object, json!({ "url": format!("https://{name}") })).await
}

async fn object(stage: &Stage, name: &str) -> anyhow::Result<Value> {
    let object = stage.service.get(&stage.buckets(), Some(&own(stage)), name).await?;
    object.with_context(|| format!("{name} is gone"))
}

/// An object without what links it: whatever else is in it must never change.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut();
    if let Some(metadata) = metadata {
        metadata.retain(|key, _| !["resourceVersion", "managedFields"].contains(&key.as_str()));
        for field in ["labels", "annotations"] {
            if let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) {
                entries.retain(|key, _| !key.starts_with("syncagent.kcp.io/"));
            }
            if metadata.get(field).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
                metadata.remove(field);
            }
        }
    }
    object
}

/// What differs, but for what the agent counts and reports a moment later.
fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    changes(before, after).into_iter().filter(|line| !line.contains("publishedresources.")).collect()
}

/// Whether an object bears anything of the agent, but for what its provider has said about its end.
fn is_marked(object: &Value) -> bool {
    let metadata = object["metadata"].to_string().replace(&format!("\"{}\"", api::ON_DELETE), "");
    metadata.contains("\"syncagent.kcp.io/")
}

fn request(stage: &Stage, team: &Workspace, names: &[&str]) -> Request {
    let named = names.iter().map(|name| format!("{}/{name}", own(stage))).collect();
    let patience = stage.world.pace().patience;
    Request {
        selected: Selected::Named(named),
        patience,
        wait: patience,
        ..Request::new(&stage.published_name("Bucket"), &team.path)
    }
}

async fn done(stage: &Stage, request: &Request, action: Action) -> anyhow::Result<Imports> {
    let done = import(config(stage)?, request, action, &|_| ()).await?;
    ensure!(done.incomplete.is_none(), "{done}");
    Ok(done)
}

/// The one object that was asked about.
async fn one(stage: &Stage, request: &Request, action: Action) -> anyhow::Result<ImportedObject> {
    let mut done = done(stage, request, action).await?;
    ensure!(done.objects.len() == 1, "{done}");
    Ok(done.objects.remove(0))
}

fn is(report: &ImportedObject, outcome: ImportOutcome) -> anyhow::Result<()> {
    ensure!(report.outcome == outcome, "{report:?} is not {outcome:?}");
    Ok(())
}

/// A refusal, with these words in its reason.
fn is_refused(report: &ImportedObject, words: &str) -> anyhow::Result<()> {
    is(report, ImportOutcome::Refused)?;
    ensure!(report.reason.as_ref().is_some_and(|reason| reason.contains(words)), "{report:?} does not say {words:?}");
    Ok(())
}

/// A stage with an agent at work and a namespace of the provider's own.
async fn set(world: Arc<dyn World>, spec: Value) -> anyhow::Result<Stage> {
    let stage = Stage::bound(world, |group| carrick_e2e_stage::fixtures::crd(group, "Bucket")).await?;
    stage.publish("Bucket", spec).await?;
    create_namespace(&stage, &own(&stage)).await?;
    Ok(stage)
}

/// Waits until the agent serves orders: what it has published can be ordered.
async fn at_work(stage: &Stage, team: &Workspace) -> anyhow::Result<()> {
    stage.order(team, "probe", json!({ "size": 1 })).await?;
    stage.copy_is("the probe is placed", team, "probe", |_| true).await?;
    stage.cancel(team, "probe").await?;
    stage.all_gone(team, "probe").await
}

pub(super) async fn an_object_that_exists_gets_an_order_and_nothing_is_written_to_its_content(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = set(world, json!({})).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    at_work(&stage, team).await?;
    let before = existing(&stage, "db", json!({ "app": "x" })).await?;
    let mut wish = request(&stage, team, &["db"]);
    wish.without = vec!["tool.example.com/*".to_owned()];

    // A dry run says what would be, and writes nothing.
    let rest = stage.at_rest().await?;
    let report = one(&stage, &wish, Action::Show).await?;
    is(&report, ImportOutcome::Ready)?;
    ensure!(report.order.as_deref() == Some("default/db") && report.changes.is_empty(), "{report:?}");
    let changed = differences(&rest, &stage.at_rest().await?);
    ensure!(changed.is_empty(), "a dry run changed {changed:?}");

    is(&one(&stage, &wish, Action::Import).await?, ImportOutcome::Imported)?;
    let order =
        stage.source_is("the status comes back", team, "db", |order| order["status"]["url"] == "https://db").await?;
    ensure!(order["spec"] == before["spec"], "{}", shown(&order));
    ensure!(order["metadata"]["labels"] == json!({ "app": "x" }), "{}", shown(&order));
    ensure!(order["metadata"]["annotations"].get("tool.example.com/id").is_none(), "{}", shown(&order));
    ensure!(order["metadata"]["annotations"][api::IMPORTED].is_string(), "{}", shown(&order));
    let rest = stage.at_rest().await?;
    let after = object(&stage, "db").await?;
    ensure!(content(&after) == content(&before), "{} became {}", shown(&before), shown(&after));
    ensure!(stage.remembered_of(team, "db").await?.is_some(), "nothing is remembered");

    // Asked again, nothing is done; and a restart writes nothing.
    is(&one(&stage, &wish, Action::Import).await?, ImportOutcome::Already)?;
    agent.stop().await?;
    let agent = stage.start_agent()?;
    at_work(&stage, &stage.team_b).await?;
    let mut changed = differences(&rest, &stage.at_rest().await?);
    changed.retain(|line| line.contains("/db"));
    ensure!(changed.is_empty(), "a restart changed {changed:?}");

    // From now on, the order is the source.
    stage.reorder(team, "db", json!({ "size": 5 })).await?;
    let edited = stage.copy_is("the edit arrives", team, "db", |copy| copy["spec"]["size"] == 5).await?;
    ensure!(edited["metadata"]["generation"] == 3 && edited["spec"]["region"] == "eu", "{}", shown(&edited));
    ensure!(edited["metadata"]["annotations"]["tool.example.com/id"] == "db", "{}", shown(&edited));

    // The end of the order leaves the object, and nothing of ours on it.
    stage.cancel(team, "db").await?;
    stage.gone("the order ends", (&team.client, &stage.buckets(), Some(NAMESPACE), "db")).await?;
    let left = object(&stage, "db").await?;
    ensure!(!is_marked(&left) && content(&left) == content(&edited), "{} became {}", shown(&edited), shown(&left));
    ensure!(stage.remembered_of(team, "db").await?.is_none(), "it is still remembered");
    agent.stop().await
}

pub(super) async fn what_its_order_would_change_is_named_and_refused_unless_it_is_accepted(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let rule = json!({ "mutation": { "spec": [{ "template": { "path": "spec.owner", "template": "team" } }] } });
    let stage = set(world, rule).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    at_work(&stage, team).await?;
    let before = existing(&stage, "db", json!({})).await?;
    let mut wish = request(&stage, team, &["db"]);
    for action in [Action::Show, Action::Import] {
        let report = one(&stage, &wish, action).await?;
        is_refused(&report, "--accept 'spec.owner'")?;
        let change = &report.changes[0];
        ensure!(change.path == "spec.owner" && change.to.as_deref() == Some("\"team\""), "{report:?}");
    }
    let after = object(&stage, "db").await?;
    ensure!(after == before, "{} became {}", shown(&before), shown(&after));
    ensure!(stage.source(team, "db").await?.is_none(), "there is an order");

    wish.accept = vec!["spec.owner".to_owned()];
    is(&one(&stage, &wish, Action::Import).await?, ImportOutcome::Imported)?;
    let copy = stage.copy_is("what was accepted is written", team, "db", |it| it["spec"]["owner"] == "team").await?;
    ensure!(copy["metadata"]["uid"] == before["metadata"]["uid"] && copy["spec"]["size"] == 2, "{}", shown(&copy));
    agent.stop().await
}

/// Links an object as an import does, and does no more.
async fn link_alone(stage: &Stage, team: &Workspace, name: &str) -> anyhow::Result<Value> {
    let key =
        SourceKey { cluster: team.cluster.as_str().into(), namespace: NAMESPACE.into(), name: name.to_owned().into() };
    let resource = format!("buckets.{}", stage.group);
    let mut patch = json!({ "metadata": { "annotations": { api::ON_DELETE: "Keep" } } });
    write_link(&link_to_object(&key, None, &resource, &Value::Null), &mut patch, &stage.agent_name());
    Ok(stage.service.merge_patch(&stage.buckets(), Some(&own(stage)), name, &patch).await?)
}

pub(super) async fn a_linked_object_without_an_order_is_left_alone_until_the_import_goes_on_or_is_taken_back(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = set(world, json!({})).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    at_work(&stage, team).await?;
    for name in ["goes-on", "goes-back"] {
        existing(&stage, name, json!({})).await?;
        link_alone(&stage, team, name).await?;
    }
    let rest = stage.at_rest().await?;
    agent.stop().await?;
    let agent = stage.start_agent()?;
    at_work(&stage, &stage.team_b).await?;
    let before = object(&stage, "goes-on").await?;
    let rest_again = stage.at_rest().await?;
    let touched: Vec<String> = changes(&rest, &rest_again).into_iter().filter(|line| line.contains("/goes-")).collect();
    ensure!(touched.is_empty(), "the agent has touched {touched:?}");

    let wish = request(&stage, team, &["goes-on"]);
    is(&one(&stage, &wish, Action::Show).await?, ImportOutcome::Resumes)?;
    is(&one(&stage, &wish, Action::Import).await?, ImportOutcome::Imported)?;
    let after = object(&stage, "goes-on").await?;
    ensure!(content(&after) == content(&before), "{} became {}", shown(&before), shown(&after));

    let wish = request(&stage, team, &["goes-back"]);
    is(&one(&stage, &wish, Action::ShowUndo).await?, ImportOutcome::UndoLink)?;
    ensure!(is_marked(&object(&stage, "goes-back").await?), "showing what would be done has done it");
    is(&one(&stage, &wish, Action::Undo).await?, ImportOutcome::Undone)?;
    ensure!(!is_marked(&object(&stage, "goes-back").await?), "it is linked still");
    is(&one(&stage, &wish, Action::Undo).await?, ImportOutcome::NotImported)?;
    agent.stop().await
}

pub(super) async fn an_import_is_taken_back_and_the_object_stays(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, json!({})).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    at_work(&stage, team).await?;
    let before = existing(&stage, "db", json!({})).await?;
    let wish = request(&stage, team, &["db"]);
    for _ in 0..2 {
        is(&one(&stage, &wish, Action::Import).await?, ImportOutcome::Imported)?;
        is(&one(&stage, &wish, Action::ShowUndo).await?, ImportOutcome::UndoOrder)?;
        is(&one(&stage, &wish, Action::Undo).await?, ImportOutcome::Undone)?;
        ensure!(stage.source(team, "db").await?.is_none(), "the order is there still");
        let after = object(&stage, "db").await?;
        ensure!(!is_marked(&after) && content(&after) == content(&before), "{}", shown(&after));
        ensure!(after["metadata"]["annotations"].get(api::ON_DELETE).is_none(), "{}", shown(&after));
    }

    // What was asked to go with its order is not deleted by taking that back.
    let mut delete = wish.clone();
    delete.on_delete = OnDelete::Delete;
    is(&one(&stage, &delete, Action::Import).await?, ImportOutcome::Imported)?;
    is_refused(&one(&stage, &wish, Action::Undo).await?, "syncagent.kcp.io/on-delete=Keep")?;
    stage.cancel(team, "db").await?;
    let at = (&stage.service, &stage.buckets(), Some(own(&stage)), "db");
    let gone = stage.gone("the object goes with its order", (at.0, at.1, at.2.as_deref(), at.3)).await;
    gone.with_context(|| agent.log().join("\n"))?;

    // What the agent made for an order was never imported.
    stage.order(team, "plain", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("it is placed", team, "plain", |_| true).await?;
    let (namespace, name) = carrick_e2e_stage::stage::place(&copy);
    let mut plain = wish.clone();
    plain.selected = Selected::Named(vec![format!("{namespace}/{name}")]);
    is_refused(&one(&stage, &plain, Action::Undo).await?, "it was placed for that order")?;
    plain.selected = Selected::All;
    for action in [Action::Show, Action::ShowUndo] {
        let all = done(&stage, &plain, action).await?;
        ensure!(all.objects.is_empty(), "{all}");
    }

    // But its provider may keep it, whoever made it.
    let keep = json!({ "metadata": { "annotations": { api::ON_DELETE: "Keep" } } });
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &keep).await?;
    stage.at_rest().await?;
    stage.cancel(team, "plain").await?;
    stage.gone("the order ends", (&team.client, &stage.buckets(), Some(NAMESPACE), "plain")).await?;
    let left = stage.service.get(&stage.buckets(), Some(namespace), name).await?.context("the copy is gone")?;
    ensure!(!is_marked(&left) && left["spec"] == copy["spec"], "{}", shown(&left));
    agent.stop().await
}

pub(super) async fn what_belongs_to_somebody_or_fits_nowhere_is_not_imported(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = set(world, json!({})).await?;
    let agent = stage.start_agent()?;
    let (team, namespace) = (&stage.team_a, own(&stage));
    at_work(&stage, team).await?;
    for name in ["free", "foreign", "elsewhere", "taken"] {
        existing(&stage, name, json!({})).await?;
    }
    let label = json!({ "metadata": { "labels": { api::AGENT_NAME: "somebody" } } });
    stage.service.merge_patch(&stage.buckets(), Some(&namespace), "foreign", &label).await?;
    link_alone(&stage, &stage.team_b, "elsewhere").await?;
    stage.order(team, "taken", json!({ "size": 9 })).await?;
    stage.copy_is("it is placed", team, "taken", |_| true).await?;
    let rest = stage.at_rest().await?;
    for (name, words) in [
        ("foreign", "it belongs to agent somebody"),
        ("elsewhere", "it is linked to default/elsewhere in logical cluster"),
        ("taken", "there is an order of that name already"),
        ("none", "there is no such object"),
    ] {
        is_refused(&one(&stage, &request(&stage, team, &[name]), Action::Import).await?, words)?;
    }
    let wish = request(&stage, team, &["free"]);
    let nowhere = Request { to: "root:nowhere".to_owned(), ..wish.clone() };
    is_refused(&one(&stage, &nowhere, Action::Import).await?, "no workspace root:nowhere has bound")?;
    let outside = Request { namespace: "missing".to_owned(), ..wish.clone() };
    is_refused(&one(&stage, &outside, Action::Import).await?, "there is no namespace missing in that workspace")?;
    let both = Request { name: "same".to_owned(), ..request(&stage, team, &["free", "taken"]) };
    let both = done(&stage, &both, Action::Show).await?;
    ensure!(both.count(ImportOutcome::Ready) == 1 && both.count(ImportOutcome::Refused) == 1, "{both}");
    let changed = differences(&rest, &stage.at_rest().await?);
    ensure!(changed.is_empty(), "refusals changed {changed:?}");

    // Without an agent, everything is in place, and it is said who is waited for.
    agent.stop().await?;
    let hasty = Request { wait: Duration::from_millis(200), ..wish.clone() };
    let report = one(&stage, &hasty, Action::Import).await?;
    is(&report, ImportOutcome::Waits)?;
    let agent = stage.start_agent()?;
    is(&one(&stage, &wish, Action::Import).await?, ImportOutcome::Already)?;
    agent.stop().await
}

/// How many tenants there are, and how many objects each has.
const TENANTS: (usize, usize) = (20, 3);

pub(super) async fn the_objects_of_twenty_tenants_are_imported_at_once(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, json!({})).await?;
    let agent = stage.start_agent()?;
    let mut teams = Vec::new();
    for tenant in 0..TENANTS.0 {
        let team = stage.team(&format!("tenant-{tenant}")).await?;
        stage.bind(&team).await?;
        teams.push(team);
    }
    for tenant in 0..TENANTS.0 {
        for number in 0..TENANTS.1 {
            existing(&stage, &format!("db-{tenant}-{number}"), json!({ "tenant": format!("tenant-{tenant}") })).await?;
        }
    }
    at_work(&stage, &teams[0]).await?;
    let (buckets, namespace) = (stage.buckets(), own(&stage));
    let all = ListOptions::default();
    let before = stage.service.list(&buckets, Some(&namespace), &all).await?;
    let org = stage.provider.path.rsplit_once(':').map_or("root", |(org, _)| org).to_owned();
    let wish = Request {
        selected: Selected::Labelled("tenant".to_owned()),
        to: format!("{org}:{{{{ .Object.metadata.labels.tenant }}}}"),
        ..request(&stage, &teams[0], &[])
    };
    // All workspaces are seen a moment after they have bound the export.
    stage
        .eventually("all can be imported", async || {
            let planned = done(&stage, &wish, Action::Show).await?;
            ensure!(planned.count(ImportOutcome::Ready) == TENANTS.0 * TENANTS.1, "{planned}");
            Ok(())
        })
        .await?;
    let imported = done(&stage, &wish, Action::Import).await?;
    ensure!(imported.count(ImportOutcome::Imported) == TENANTS.0 * TENANTS.1, "{imported}");
    for (before, after) in before.iter().zip(stage.service.list(&buckets, Some(&namespace), &all).await?) {
        ensure!(content(before) == content(&after), "{} became {}", shown(before), shown(&after));
    }
    for (tenant, team) in teams.iter().enumerate() {
        let orders = team.client.list(&buckets, Some(NAMESPACE), &all).await?;
        ensure!(orders.len() == TENANTS.1, "{} has {} orders", team.path, orders.len());
        let name = format!("db-{tenant}-0");
        stage.reorder(team, &name, json!({ "size": 7 })).await?;
    }
    for (tenant, team) in teams.iter().enumerate() {
        let name = format!("db-{tenant}-0");
        stage.copy_is("edits flow", team, &name, |copy| copy["spec"]["size"] == 7).await?;
        stage.source_is("the status came back", team, &name, |it| it["status"]["url"].is_string()).await?;
    }
    agent.stop().await
}

/// What a PublishedResource says about the imports that this provider wants.
fn policy(stage: &Stage, on_delete: &str) -> Value {
    let org = stage.provider.path.rsplit_once(':').map_or("root", |(org, _)| org);
    json!({ "import": {
        "selector": { "matchLabels": { "import": "yes" } }, "to": format!("{org}:{{{{ .Object.metadata.labels.tenant }}}}"),
        "onDelete": on_delete, "without": ["import", "tenant", "tool.example.com/*"],
    }})
}

/// Waits until an event on an object says that it is not imported, and why.
async fn import_is_refused(stage: &Stage, name: &str, words: &str) -> anyhow::Result<()> {
    stage
        .eventually(&format!("an event on {name} says {words:?}"), async || {
            let events = stage.service.list(&kinds::events(), Some(&own(stage)), &ListOptions::default()).await?;
            let is_it = |event: &Value| {
                event["reason"] == "ImportRefused"
                    && event["involvedObject"]["name"] == name
                    && event["message"].as_str().is_some_and(|text| text.contains(words))
            };
            ensure!(events.iter().any(is_it), "none of {}", events.iter().map(shown).collect::<Vec<_>>().join("\n"));
            Ok(())
        })
        .await
}

pub(super) async fn an_object_whose_consumer_has_not_bound_the_export_is_reported_and_imported_once_she_has(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&carrick_e2e_stage::fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", policy(&stage, "Keep")).await?;
    create_namespace(&stage, &own(&stage)).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    let tenant = team.path.rsplit(':').next().unwrap_or_default().to_owned();
    existing(&stage, "db", json!({ "import": "yes", "tenant": tenant })).await?;
    import_is_refused(&stage, "db", &format!("no workspace {} has bound the APIExport", team.path)).await?;
    stage.bind(team).await?;
    stage.source_is("it is imported", team, "db", |order| order["status"]["url"] == "https://db").await?;
    agent.stop().await
}

async fn relabel(stage: &Stage, name: &str, labels: Value) -> anyhow::Result<()> {
    let patch = json!({ "metadata": { "labels": labels } });
    stage.service.merge_patch(&stage.buckets(), Some(&own(stage)), name, &patch).await?;
    Ok(())
}

/// Waits until the PublishedResource says this about its imports.
async fn imports_are(stage: &Stage, status: &str, words: &str) -> anyhow::Result<()> {
    let name = stage.published_name("Bucket");
    let said = |it: &Value| {
        let condition = condition(it, "ObjectsImported");
        condition["status"] == status && condition["message"].as_str().is_some_and(|text| text.contains(words))
    };
    let at = (&stage.service, &kinds::published_resources(), None, &*name);
    stage.object(&format!("ObjectsImported is {status}: {words}"), at, said).await?;
    Ok(())
}

pub(super) async fn a_published_resource_imports_what_its_provider_labels_once_and_nothing_that_a_consumer_labels(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = set(world, json!({})).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    let tenant = team.path.rsplit(':').next().unwrap_or_default().to_owned();
    at_work(&stage, team).await?;
    let labelled = json!({ "import": "yes", "tenant": tenant, "app": "x" });
    let before = existing(&stage, "db", labelled.clone()).await?;

    // Off by default: a label alone does nothing.
    at_work(&stage, team).await?;
    ensure!(stage.source(team, "db").await?.is_none(), "nobody has asked for an import");
    let patch = json!({ "spec": policy(&stage, "Keep") });
    let name = stage.published_name("Bucket");
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
    let order =
        stage.source_is("the order is created", team, "db", |order| order["status"]["url"] == "https://db").await?;
    ensure!(
        order["spec"] == before["spec"] && order["metadata"]["labels"] == json!({ "app": "x" }),
        "{}",
        shown(&order)
    );
    imports_are(&stage, "True", "have their orders").await?;
    stage.at_rest().await?;
    let after = object(&stage, "db").await?;
    ensure!(content(&after) == content(&before), "{} became {}", shown(&before), shown(&after));

    // A restart writes nothing.
    let rest = stage.at_rest().await?;
    agent.stop().await?;
    let agent = stage.start_agent()?;
    at_work(&stage, &stage.team_b).await?;
    let mut changed = differences(&rest, &stage.at_rest().await?);
    changed.retain(|line| line.contains("/db"));
    ensure!(changed.is_empty(), "a restart changed {changed:?}");

    // One that is labelled later, and one that cannot be imported until its label is right.
    existing(&stage, "late", json!({})).await?;
    existing(&stage, "lost", json!({ "import": "yes", "tenant": "nobody" })).await?;
    relabel(&stage, "late", labelled.clone()).await?;
    stage.source_is("it follows", team, "late", |order| order["status"]["url"] == "https://late").await?;
    imports_are(&stage, "False", "1 object is not imported, the first is").await?;
    relabel(&stage, "lost", json!({ "tenant": tenant })).await?;
    stage.source_is("it is tried again", team, "lost", |order| order["status"]["url"].is_string()).await?;
    imports_are(&stage, "True", "have their orders").await?;

    // What its consumer deletes does not come back, also after a restart.
    stage.cancel(team, "late").await?;
    stage.gone("the order ends", (&team.client, &stage.buckets(), Some(NAMESPACE), "late")).await?;
    agent.stop().await?;
    let agent = stage.start_agent()?;
    at_work(&stage, &stage.team_b).await?;
    ensure!(stage.source(team, "late").await?.is_none(), "a deleted order has come back");
    ensure!(object(&stage, "late").await?["metadata"]["annotations"][api::ON_DELETE] == "Keep");

    // Labels that a consumer writes reach her copy, and import nothing, whatever becomes of it.
    stage.order(team, "own", json!({ "size": 1 })).await?;
    let patch = json!({ "metadata": { "labels": { "import": "yes", "tenant": "team-b" } } });
    team.client.merge_patch(&stage.buckets(), Some(NAMESPACE), "own", &patch).await?;
    let copy =
        stage.copy_is("the labels arrive", team, "own", |it| it["metadata"]["labels"]["import"] == "yes").await?;
    let (namespace, name) = carrick_e2e_stage::stage::place(&copy);
    let keep = json!({ "metadata": { "annotations": { api::ON_DELETE: "Keep" } } });
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &keep).await?;
    stage.at_rest().await?;
    stage.cancel(team, "own").await?;
    stage.gone("the order ends", (&team.client, &stage.buckets(), Some(NAMESPACE), "own")).await?;
    imports_are(&stage, "False", "was the copy of an order").await?;
    let left = json!({ "metadata": { "annotations": { api::ON_DELETE: null } } });
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &left).await?;
    imports_are(&stage, "False", "whose consumer may have written its labels").await?;
    agent.stop().await
}
