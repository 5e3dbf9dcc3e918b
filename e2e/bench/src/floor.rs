//! What the servers allow: the three writes that place an object, sent directly, with nothing decided and nothing watched.

use std::time::{Duration, Instant};

use anyhow::Context;
use carrick_client::{Client, Server};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Workspace};
use carrick_syncagent::api;
use carrick_syncagent::rules::metadata::sha1_hex;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use super::field::Field;
use super::process::own_memory;
use super::report::{CatchUp, Latency, Requests};

/// As many as an agent may have in flight.
const IN_FLIGHT: usize = 32;
/// How many objects are placed one after the other.
const IN_A_ROW: usize = 30;

/// Places objects that exist; returns how long that took, and how long one takes when nothing else is done.
pub async fn floor(field: &Field, objects: usize) -> anyhow::Result<(CatchUp, Latency)> {
    let [kcp, service] = field.kubeconfigs()?;
    let hands = Hands {
        field,
        kcp: Server::from_kubeconfig_yaml(&kcp)?,
        service: Server::from_kubeconfig_yaml(&service)?.client(),
    };
    let names: Vec<String> = (0..objects + IN_A_ROW).map(|i| format!("order-{i}")).collect();
    field.order(&names, &field.teams, 0).await?;
    for team in &field.teams {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": team.cluster } });
        hands.service.create(&kinds::namespaces(), None, &namespace).await?;
    }
    let all: Vec<(&String, &Workspace)> = names.iter().zip(field.teams.iter().cycle()).collect();
    let (many, few) = all.split_at(objects);

    field.kcp.take();
    field.service.take();
    let started = Instant::now();
    let placing = stream::iter(many).map(|(name, team)| hands.place(name, team)).buffer_unordered(IN_FLIGHT);
    let mut placing = std::pin::pin!(placing);
    placing.try_next().await?.context("nothing to place")?;
    let first = started.elapsed();
    while placing.try_next().await?.is_some() {}
    let seconds = started.elapsed().as_secs_f64();
    let requests = Requests { kcp: field.kcp.take(), service: field.service.take() };

    let mut times: Vec<Duration> = Vec::new();
    for (name, team) in few {
        let started = Instant::now();
        hands.place(name, team).await?;
        times.push(started.elapsed());
    }
    let counted = CatchUp {
        objects,
        workspaces: field.teams.len(),
        seconds,
        first_seconds: first.as_secs_f64(),
        processor_ms: None,
        memory: None,
        peak: None,
        servers_memory: own_memory(),
        requests,
    };
    Ok((counted, Latency::of(&mut times)))
}

struct Hands<'a> {
    field: &'a Field,
    kcp: Server,
    service: Client,
}

impl Hands<'_> {
    /// The finalizer, the copy and the state, as an agent writes them.
    async fn place(&self, name: &str, team: &Workspace) -> anyhow::Result<()> {
        let stage = &self.field.stage;
        let workspace = self.kcp.at_path(&format!(
            "/services/apiexport/{}/{}/clusters/{}",
            stage.provider.cluster,
            stage.export_name(),
            team.cluster
        ));
        let kind = stage.buckets();
        let finalizers = json!({ "metadata": { "finalizers": [api::FINALIZER] } });
        workspace.merge_patch(&kind, Some(NAMESPACE), name, &finalizers).await?;
        let hash = sha1_hex(name);
        let labels = json!({
            api::AGENT_NAME: stage.agent_name(),
            api::REMOTE_CLUSTER: team.cluster,
            api::REMOTE_NAME_HASH: hash,
            api::REMOTE_NAMESPACE_HASH: sha1_hex(NAMESPACE),
        });
        let spec = json!({ "region": "eu", "size": 1 });
        let copy = json!({
            "apiVersion": kind.api_version(),
            "kind": &*kind.kind,
            "metadata": {
                "name": hash, "namespace": team.cluster, "labels": labels,
                "annotations": { api::REMOTE_NAME: name, api::REMOTE_NAMESPACE: NAMESPACE },
            },
            "spec": spec,
        });
        self.service.create(&kind, Some(&team.cluster), &copy).await?;
        let remembered = json!({
            "apiVersion": kind.api_version(), "kind": &*kind.kind, "metadata": { "name": hash }, "spec": spec,
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": { "name": format!("obj-state-{hash}"), "labels": { api::OBJECT_STATE: "true" } },
            "stringData": { "bench": remembered.to_string() },
        });
        self.service.create(&kinds::secrets(), Some(&stage.agent_namespace()), &secret).await?;
        Ok(())
    }
}
