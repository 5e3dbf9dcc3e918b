//! Controllers over all workspaces, with the library alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use carrick_client::{Client, DeleteOptions, Error, ListOptions, Server};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace};
use carrick_e2e_stage::world::{User, World};
use carrick_kcp::kinds::{
    API_BINDING, API_BINDING_V2, API_EXPORT, API_RESOURCE_SCHEMA, Kind, LOGICAL_CLUSTER, WORKSPACE, WORKSPACE_TYPE,
};
use carrick_multicluster::providers::kcp::{
    ApiExport, HookError, InitializingWorkspaces, TerminatingWorkspaces, remove_initializer, remove_terminator,
};
use carrick_multicluster::{Action, Cluster, ClusterError, Context, Fleet, MultiClusterController, WatchConfig};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::watch;

pub(super) async fn a_workspace_takes_part_from_its_first_binding_to_its_last(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    export_buckets(&stage).await?;
    let client = provider_client(&stage)?;
    // Bindings are served in two versions; both tell the same.
    let slice = stage.export_name();
    let fleet = Fleet::builder(ApiExport::new(client.clone(), slice)).build();
    let newer = Fleet::builder(ApiExport::new(client, slice).binding_version(API_BINDING_V2.version)).build();
    stage
        .eventually("a fleet without consumers is complete", async || {
            ensure!(fleet.is_synced() && fleet.clusters().is_empty(), "it is {:?}", fleet.health());
            Ok(())
        })
        .await?;

    stage.bind(&stage.team_a).await?;
    bind_in_the_old_version(&stage, &stage.team_b).await?;
    for (fleet, team) in [(&fleet, &stage.team_a), (&fleet, &stage.team_b), (&newer, &stage.team_a)] {
        let engaged = engaged(&stage, fleet, team).await?;
        let found = stage.eventually("it is found by its path", async || Ok(fleet.by_path(&team.path)?)).await?;
        ensure!(found == engaged && found.name().as_str() == team.cluster, "{found:?}");
    }
    let first = engaged(&stage, &fleet, &stage.team_a).await?;

    // A binding that is being deleted serves finalizers until nothing is left.
    let buckets = stage.buckets();
    stage.order(&stage.team_a, "held", json!({ "size": 1 })).await?;
    let hold = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    first.json_client().merge_patch(&buckets, Some(NAMESPACE), "held", &hold).await?;
    unbind(&stage, &stage.team_a).await?;
    stage
        .object(
            "the bucket waits for its finalizer",
            (first.json_client(), &buckets, Some(NAMESPACE), "held"),
            |bucket| bucket["metadata"]["deletionTimestamp"].is_string(),
        )
        .await?;
    ensure!(fleet.cluster(&stage.team_a.cluster)? == first, "the workspace left too early");
    let release = json!({ "metadata": { "finalizers": null } });
    first.json_client().merge_patch(&buckets, Some(NAMESPACE), "held", &release).await?;
    gone(&stage, &fleet, &stage.team_a).await?;
    gone(&stage, &newer, &stage.team_a).await?;
    ensure!(first.gone().is_cancelled(), "the cluster was not told that it is gone");

    // The last consumer takes the endpoints along, and the next one brings them back.
    unbind(&stage, &stage.team_b).await?;
    gone(&stage, &fleet, &stage.team_b).await?;
    stage
        .eventually("no endpoint is left", async || {
            ensure!(fleet.health().endpoints.is_empty(), "it is {:?}", fleet.health());
            Ok(())
        })
        .await?;
    stage.bind(&stage.team_a).await?;
    let again = engaged(&stage, &fleet, &stage.team_a).await?;
    ensure!(again.epoch() > first.epoch(), "{again:?} is not newer than {first:?}");
    stage.order(&stage.team_a, "again", json!({ "size": 2 })).await?;
    stage
        .object("the rebound workspace serves", (again.json_client(), &buckets, Some(NAMESPACE), "again"), |_| true)
        .await?;
    Ok(())
}

pub(super) async fn an_export_that_claims_bindings_counts_only_its_own(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    export_buckets(&stage).await?;
    let claim = json!({ "group": "apis.kcp.io", "resource": "apibindings", "all": true });
    let patch = json!({ "spec": { "permissionClaims": [claim] } });
    stage.provider.client.merge_patch(&kinds::kcp(&API_EXPORT), None, stage.export_name(), &patch).await?;
    let (counted, names) = watch::channel(BTreeSet::<String>::new());
    let provider = ApiExport::new(provider_client(&stage)?, stage.export_name()).hooks(move |_, binding, _| {
        counted.send_if_modified(|names| names.insert(binding.metadata.name));
        std::future::ready(())
    });
    let fleet = Fleet::from(provider);
    bind_with(&stage, &stage.team_a, &json!([{
        "group": "apis.kcp.io", "resource": "apibindings", "verbs": ["*"], "selector": { "matchAll": true }, "state": "Accepted",
    }]))
    .await?;
    let cluster = engaged(&stage, &fleet, &stage.team_a).await?;
    let bindings = kinds::kcp(&API_BINDING);
    // Every workspace binds some of kcp's own exports from the start.
    stage
        .eventually("bindings to other exports are visible", async || {
            let all = cluster.json_client().list(&bindings, None, &ListOptions::default()).await?;
            ensure!(all.len() > 1, "{} binding is", all.len());
            Ok(())
        })
        .await?;
    unbind(&stage, &stage.team_a).await?;
    gone(&stage, &fleet, &stage.team_a).await?;
    ensure!(names.borrow().iter().eq([stage.export_name()]), "counted were {:?}", names.borrow());
    Ok(())
}

pub(super) async fn workspaces_wait_for_their_initializer_and_their_terminator(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    create_type(&stage).await?;
    let client = provider_client(&stage)?;
    let initializing = Fleet::builder(InitializingWorkspaces::new(client.clone(), "prepared")).build();
    let terminating = Fleet::builder(TerminatingWorkspaces::new(client, "prepared")).build();
    // The initializer prepares, and says that it is done.
    let (words, heard) = watch::channel(Vec::<&'static str>::new());
    let logical_clusters = kinds::kcp(&LOGICAL_CLUSTER);
    let controller = MultiClusterController::compact(&initializing, WatchConfig::default(), logical_clusters);
    let run = controller.run_keyed(
        async |_, object, context: Context<watch::Sender<Vec<&'static str>>>| {
            context
                .data
                .send_modify(|words| words.push(if object.is_some() { "called" } else { "called for nothing" }));
            prepare(&context.cluster).await?;
            remove_initializer(&context.cluster).await?;
            context.data.send_modify(|words| words.push("removed"));
            Ok::<_, HookError>(Action::await_change())
        },
        |_, _, _| Action::backoff(),
        Arc::new(words),
    );
    let running = tokio::spawn(run.for_each(async |_| {}));

    let workspaces = kinds::kcp(&WORKSPACE);
    let parent = &stage.provider.client;
    let kind = json!({ "name": "prepared", "path": stage.provider.path });
    let object = object_of(&WORKSPACE, "new", &json!({ "type": kind }));
    stage
        .eventually("the workspace can be created", async || match parent.create(&workspaces, None, &object).await {
            Err(error) if !error.is_already_exists() => Err(error.into()),
            _ => Ok(()),
        })
        .await?;
    let at = (parent, &workspaces, None, "new");
    let ready = stage.object("the workspace is ready", at, |it| it["status"]["phase"] == "Ready").await?;
    let cluster = ready["spec"]["cluster"].as_str().unwrap_or_default().to_owned();
    let path = format!("{}:new", stage.provider.path);
    let new = stage.world.kcp().at_path(&format!("/clusters/{path}"));
    ensure!(new.get(&kinds::namespaces(), None, "prepared").await?.is_some(), "nothing was prepared");
    is_gone(&stage, &initializing, &cluster).await?;
    // The watches may show it before the initializer has its answer.
    stage
        .eventually("the initializer has ended in peace", async || {
            ensure!(heard.borrow().last() == Some(&"removed"), "{:?}", heard.borrow());
            Ok(())
        })
        .await?;

    parent.delete(&workspaces, None, "new", &DeleteOptions::default()).await?;
    let leaving = stage
        .eventually("the terminator sees the workspace", async || {
            Ok(terminating.wait_cluster(&cluster, Duration::from_secs(1)).await?)
        })
        .await?;
    ensure!(parent.get(&workspaces, None, "new").await?.is_some(), "the workspace did not wait");
    remove_terminator(&leaving).await?;
    ensure!(leaving.gone().is_cancelled(), "the cluster was not told that it is gone");
    stage.gone("the workspace is deleted", at).await?;
    is_gone(&stage, &terminating, &cluster).await?;
    running.abort();
    Ok(())
}

/// A client of the export's workspace, by way of the cable.
pub(super) fn provider_client(stage: &Stage) -> anyhow::Result<Client> {
    let kubeconfig = stage.world.kcp_kubeconfig(User::Admin, &stage.provider.path);
    Ok(Server::from_kubeconfig_yaml(&kubeconfig)?.client())
}

/// Exports Buckets without any agent.
pub(super) async fn export_buckets(stage: &Stage) -> anyhow::Result<()> {
    let crd = carrick_e2e_stage::fixtures::crd(&stage.group, "Bucket");
    let version = &crd["spec"]["versions"][0];
    let name = format!("v1.buckets.{}", stage.group);
    let spec = json!({
            "group": stage.group, "names": crd["spec"]["names"], "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": version["schema"]["openAPIV3Schema"],
            }],
    });
    let schema = object_of(&API_RESOURCE_SCHEMA, &name, &spec);
    let client = &stage.provider.client;
    client.create(&kinds::kcp(&API_RESOURCE_SCHEMA), None, &schema).await?;
    stage.create_export().await?;
    let patch = json!({ "spec": { "latestResourceSchemas": [name] } });
    client.merge_patch(&kinds::kcp(&API_EXPORT), None, stage.export_name(), &patch).await?;
    Ok(())
}

/// Binds the export and accepts what it claims.
async fn bind_with(stage: &Stage, team: &Workspace, claims: &Value) -> anyhow::Result<()> {
    let reference = json!({ "export": { "path": stage.provider.path, "name": stage.export_name() } });
    let spec = json!({ "reference": reference, "permissionClaims": claims });
    let binding = object_of(&API_BINDING_V2, stage.export_name(), &spec);
    // kcp learns of new exports a moment after they were created, and refuses until then.
    stage
        .eventually(&format!("{} can be bound", team.path), async || {
            match team.client.create(&kinds::kcp(&API_BINDING_V2), None, &binding).await {
                Err(error) if !error.is_already_exists() => Err(error.into()),
                _ => Ok(()),
            }
        })
        .await
}

async fn bind_in_the_old_version(stage: &Stage, team: &Workspace) -> anyhow::Result<()> {
    let reference = json!({ "export": { "path": stage.provider.path, "name": stage.export_name() } });
    let binding = object_of(&API_BINDING, stage.export_name(), &json!({ "reference": reference }));
    team.client.create(&kinds::kcp(&API_BINDING), None, &binding).await?;
    Ok(())
}

async fn unbind(stage: &Stage, team: &Workspace) -> anyhow::Result<()> {
    let bindings = kinds::kcp(&API_BINDING_V2);
    Ok(team.client.delete(&bindings, None, stage.export_name(), &DeleteOptions::default()).await?)
}

async fn engaged(stage: &Stage, fleet: &Fleet, team: &Workspace) -> anyhow::Result<Cluster> {
    stage.eventually(&format!("{} is engaged", team.path), async || Ok(fleet.cluster(&team.cluster)?)).await
}

async fn gone(stage: &Stage, fleet: &Fleet, team: &Workspace) -> anyhow::Result<()> {
    is_gone(stage, fleet, &team.cluster).await
}

async fn is_gone(stage: &Stage, fleet: &Fleet, cluster: &str) -> anyhow::Result<()> {
    stage
        .eventually(&format!("{cluster} has left"), async || match fleet.cluster(cluster) {
            Err(ClusterError::Gone { .. } | ClusterError::Unknown { .. }) => Ok(()),
            other => anyhow::bail!("it is {other:?}"),
        })
        .await
}

/// A type of workspaces that wait for an initializer and a terminator.
async fn create_type(stage: &Stage) -> anyhow::Result<Value> {
    let client = &stage.provider.client;
    let extend = json!({ "with": [{ "name": "universal", "path": "root" }] });
    let spec = json!({ "initializer": true, "terminator": true, "extend": extend });
    let kind = object_of(&WORKSPACE_TYPE, "prepared", &spec);
    let types = kinds::kcp(&WORKSPACE_TYPE);
    client.create(&types, None, &kind).await?;
    stage
        .object("the type lists its virtual workspaces", (client, &types, None, "prepared"), |kind| {
            kind["status"]["virtualWorkspaces"].as_array().is_some_and(|all| all.len() >= 2)
        })
        .await
}

fn object_of(kind: &Kind, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": { "name": name }, "spec": spec })
}

/// What an initializer does: puts something into the new workspace.
async fn prepare(cluster: &Cluster) -> Result<(), Error> {
    let namespace = json!({ "metadata": { "name": "prepared" } });
    match cluster.json_client().create(&kinds::namespaces(), None, &namespace).await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}
