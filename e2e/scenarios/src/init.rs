//! `carrick init`, run as a user would: what it writes is applied as it is, and an order travels.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::discovery::find_kind;
use carrick_client::{Client, Resource};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::rights;
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::{Stage, place};
use carrick_e2e_stage::world::{AGENT, User, World};
use carrick_e2e_stage::{binary, fixtures};
use serde_json::{Value, json};
use tokio::process::Command;

/// The doctor, which ends `carrick provider up`, looks with the agent's own token.
pub(super) async fn one_command_sets_a_provider_up_and_takes_it_away_again(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let crd = with_required_fields(fixtures::crd(&stage.group, "Bucket"));
    stage.install_crd(&crd).await?;
    let folder = Scratch::new()?;
    let file = folder.write("crd.yaml", &crd.to_string())?;
    let service = folder.write("service.kubeconfig", &stage.world.service_kubeconfig(User::Admin))?;
    let org = stage.provider.path.rsplit_once(':').context("no organization")?.0;
    let kcp = folder.write("kcp.kubeconfig", &stage.world.kcp_kubeconfig(User::Admin, org))?;
    let (path, namespace) = (format!("{org}:storage"), stage.agent_namespace());
    let run = async |more: &[&str]| -> anyhow::Result<String> {
        let output = Command::new(binary::carrick().await?)
            .args(["provider", "up", "--workspace", &path, "--namespace", &namespace])
            .arg("--crd")
            .arg(&file)
            .arg("--kubeconfig")
            .arg(&service)
            .arg("--kcp-kubeconfig")
            .arg(&kcp)
            .args(more)
            .output()
            .await?;
        let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        ensure!(output.status.success(), "{:?} {told}", output.status.code());
        Ok(told)
    };
    let told = run(&[]).await?;
    ensure!(told.contains("created workspace") && told.contains("helm") && told.contains("0 red"), "{told}");
    let again = run(&[]).await?;
    ensure!(again.contains("the token stays") && again.matches(", 0 of them new or changed").count() == 2, "{again}");
    let gone = run(&["--undo", "--yes"]).await?;
    ensure!(gone.contains("deleted workspace"), "{gone}");
    let org = stage.world.kcp().at_path(&format!("/clusters/{org}"));
    let workspaces = carrick_e2e_stage::kinds::kcp(&carrick_kcp::kinds::WORKSPACE);
    stage.gone("the workspace goes", (&org, &workspaces, None, "storage")).await
}

pub(super) async fn what_it_writes_offers_a_kind_with_the_rights_it_names(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let crd = with_required_fields(fixtures::crd(&stage.group, "Bucket"));
    stage.install_crd(&crd).await?;
    let folder = Scratch::new()?;
    let file = folder.write("crd.yaml", &crd.to_string())?;
    let kubeconfig = folder.write("service.kubeconfig", &stage.world.service_kubeconfig(User::Admin))?;
    let [offer, again] = ["offer", "again"].map(|name| folder.path().join(name));
    init(&stage, &offer, &["--crd", &file.display().to_string()]).await?;
    let kind = format!("{}/Bucket", stage.group);
    let from_cluster = ["--from-cluster", &kind, "--kubeconfig", &kubeconfig.display().to_string()];
    init(&stage, &again, &from_cluster).await?;
    for part in ["service-cluster", "provider-workspace", "consumer-workspace", "platform-mesh"] {
        let (a, b) = (objects(&offer.join(part))?, objects(&again.join(part))?);
        ensure!(!a.is_empty() && a == b, "{part} differs: {a:#?} and {b:#?}");
    }

    for mut object in objects(&offer.join("service-cluster"))? {
        // Agents of scenarios are users, and look only at what bears the label of their stage.
        if let Some(subjects) = object["subjects"].as_array_mut() {
            *subjects = vec![json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": AGENT })];
        }
        if object["kind"] == "PublishedResource" {
            object["metadata"]["labels"] = json!({ "stage": stage.id });
            object["metadata"]["name"] = json!(stage.published_name("Bucket"));
        }
        apply(&stage, &stage.service, &object).await?;
    }
    for object in objects(&offer.join("provider-workspace"))? {
        apply(&stage, &stage.provider.client, &object).await?;
    }
    rights::are_known(&stage).await?;
    let agent = Agent::start(&stage, Setup { user: User::Agent, probes: true, ..Setup::default() })?;
    let team = &stage.team_a;
    for object in objects(&offer.join("consumer-workspace"))? {
        apply(&stage, &team.client, &object).await?;
    }
    let copy = stage.copy_is("the order is placed", team, "my-bucket", |copy| copy["spec"]["size"] == 3).await?;
    ensure!(place(&copy).0 == team.cluster, "the copy is not in the consumer's namespace: {copy}");
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "my-bucket", |order| order["status"]["url"] == "here").await?;
    stage.cancel(team, "my-bucket").await?;
    let order = (&team.client, &stage.buckets(), Some("default"), "my-bucket");
    stage.gone("the order is gone", order).await?;
    ensure!(stage.copy(team, "my-bucket").await?.is_none(), "the copy is left");
    let refused: Vec<_> = agent.log().into_iter().filter(|line| line.contains("forbidden")).collect();
    ensure!(refused.is_empty(), "what the agent may not do: {refused:#?}");
    agent.stop().await
}

fn with_required_fields(mut crd: Value) -> Value {
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["required"] = json!(["size", "region"]);
    spec["properties"]["size"]["minimum"] = json!(3);
    spec["properties"]["region"]["enum"] = json!(["eu", "us"]);
    crd
}

async fn init(stage: &Stage, folder: &Path, what: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(binary::carrick().await?)
        .arg("init")
        .args(what)
        .arg(format!("--out={}", folder.display()))
        .arg(format!("--workspace={}", stage.provider.path))
        .arg(format!("--namespace={}", stage.agent_namespace()))
        .arg(format!("--agent={}", stage.agent_name()))
        .arg(format!("--kcp-user={AGENT}"))
        .output()
        .await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// All objects in the files of a folder, in order.
fn objects(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let files = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<_> = files.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    let mut objects = Vec::new();
    for file in files {
        objects.extend(documents(&std::fs::read_to_string(file.path())?)?);
    }
    Ok(objects)
}

/// The objects of a file.
pub(super) fn documents(text: &str) -> anyhow::Result<Vec<Value>> {
    let documents = text.trim_start_matches("---\n").split("\n---\n").filter(|text| !text.trim().is_empty());
    documents.map(|document| Ok(serde_saphyr::from_str(document)?)).collect()
}

/// What `kubectl apply` would do with something new. Kinds and permissions may take a moment to be known.
pub(super) async fn apply(stage: &Stage, client: &Client, object: &Value) -> anyhow::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (group, version) = api.split_once('/').unwrap_or(("", &api));
    let what = format!("{kind} {} can be created", object["metadata"]["name"]);
    stage
        .eventually(&what, async || {
            let found = find_kind(client, group, &kind).await?.context("the kind is not served")?;
            let resource =
                Resource { namespaced: found.namespaced, ..Resource::namespaced(group, version, &kind, &found.plural) };
            match client.create(&resource, object["metadata"]["namespace"].as_str(), object).await {
                Err(error) if !error.is_already_exists() => Err(error.into()),
                _ => Ok(()),
            }
        })
        .await
}
