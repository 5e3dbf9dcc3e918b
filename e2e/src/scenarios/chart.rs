//! What the Helm chart renders, as it is committed in `charts/tests`: API servers take it, and its rights are enough.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::init::{apply, documents};
use crate::agent::{Agent, Setup};
use crate::fixtures;
use crate::stage::Stage;
use crate::world::{AGENT, User, World};

/// Kinds that a bare API server does not have.
const ADDED: [&str; 1] = ["ServiceMonitor"];

fn rendered(name: &str) -> anyhow::Result<Vec<Value>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/tests").join(name);
    documents(&std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?)
}

pub(super) async fn what_it_renders_is_accepted(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    for name in ["kcp-system", "elsewhere"] {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        apply(&stage, &stage.service, &namespace).await?;
    }
    let mut seen = Vec::new();
    for name in ["minimal.yaml", "reference.yaml", "full.yaml"] {
        for mut object in rendered(name)? {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            if ADDED.contains(&kind.as_str()) || (kind == "Deployment" && !serves_deployments(&stage).await?) {
                continue;
            }
            // The same names are in several files, and only one of each can be there at a time.
            let own = format!(
                "{}-{}",
                name.trim_end_matches(".yaml"),
                object["metadata"]["name"].as_str().unwrap_or_default()
            );
            if kind != "CustomResourceDefinition" {
                object["metadata"]["name"] = json!(own);
            }
            apply(&stage, &stage.service, &object).await.with_context(|| format!("{kind} of {name}"))?;
            seen.push(kind);
        }
    }
    for kind in ["ClusterRole", "RoleBinding", "Service", "ServiceAccount", "PodDisruptionBudget", "NetworkPolicy"] {
        ensure!(seen.iter().any(|it| it == kind), "{kind} is not among {seen:?}");
    }
    Ok(())
}

/// The embedded plane has no workloads.
async fn serves_deployments(stage: &Stage) -> anyhow::Result<bool> {
    Ok(carrick_client::discovery::find_kind(&stage.service, "apps", "Deployment").await?.is_some())
}

pub(super) async fn its_rights_are_enough_for_the_agent(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "related": [super::related::credentials()] })).await?;
    super::rights::grant(&stage, &stage.provider.client, &super::rights::kcp_rules(stage.export_name())).await?;
    // The chart's own objects, in the namespace, for the user and for the group of this stage.
    let (namespace, id) = (stage.agent_namespace(), &stage.id);
    for object in rendered("full.yaml")? {
        let text = object.to_string().replace("kcp-system", &namespace).replace("example.com", &stage.group);
        let mut object: Value = serde_json::from_str(&text.replace("demo-", &format!("demo-{id}-")))?;
        if object["apiVersion"] != "rbac.authorization.k8s.io/v1" {
            continue;
        }
        if let Some(subjects) = object["subjects"].as_array_mut() {
            *subjects = vec![json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": AGENT })];
        }
        apply(&stage, &stage.service, &object).await?;
    }
    super::rights::are_known(&stage).await?;
    let agent =
        Agent::start(&stage, Setup { user: User::Agent, leader_election: true, probes: true, ..Setup::default() })?;
    stage.bind(&stage.team_a).await?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the order is placed", team, "bucket", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |order| order["status"]["url"] == "here").await?;
    stage.cancel(team, "bucket").await?;
    stage.gone("the order is gone", (&team.client, &stage.buckets(), Some("default"), "bucket")).await?;
    let refused: Vec<_> = agent.log().into_iter().filter(|line| line.contains("forbidden")).collect();
    ensure!(refused.is_empty(), "what the agent may not do: {refused:#?}");
    agent.stop().await
}
