//! Credentials that are replaced and rights that are granted under a working agent.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource, Server};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::rights::{are_known, grant, kcp_rules, revoke, rule, service_rules};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::{Stage, condition};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{fixtures, kinds};
use serde_json::{Value, json};

use super::outages::soon;

/// How long to leave an agent refused: longer than pauses that grow take to become long.
const REFUSED: Duration = Duration::from_secs(25);

pub(super) async fn a_token_file_that_was_replaced_is_used_soon(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let files = Scratch::new()?;
    let (token_file, kubeconfig) = (files.path().join("token"), files.path().join("kubeconfig"));
    let mut config: Value = serde_json::from_str(&stage.world.service_kubeconfig(User::Admin))?;
    config["users"][0]["user"] = json!({ "tokenFile": token_file });
    std::fs::write(&kubeconfig, config.to_string())?;
    let account = Account::make(&stage).await?;
    replace(&token_file, &account.token(&stage, "first").await?)?;
    let agent = Agent::start_with(&stage, Setup { probes: true, ..Setup::default() }, &kubeconfig)?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;

    account.revoke(&stage, "first").await?;
    refused(&stage, &Server::from_kubeconfig(&kubeconfig, &carrick_client::Overrides::default())?).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    // There is nothing to see while an agent is refused.
    tokio::time::sleep(REFUSED).await;
    replace(&token_file, &account.token(&stage, "second").await?)?;
    let replaced = Instant::now();
    stage.copy_is("the change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    soon(&stage, "the change arrived with the new token", replaced)?;
    stage.ready(&agent).await?;
    agent.stop().await?;
    account.remove(&stage).await
}

pub(super) async fn a_right_to_write_that_was_granted_is_used_soon(world: Arc<dyn World>) -> anyhow::Result<()> {
    let look_only = |group: &str| rule(&[group], &["buckets"], "get list watch");
    granted_late(world, look_only, "cannot be synchronized").await
}

pub(super) async fn a_right_to_watch_that_was_granted_is_used_soon(world: Arc<dyn World>) -> anyhow::Result<()> {
    let nothing = |group: &str| rule(&[group], &["others"], "get");
    granted_late(world, nothing, "").await
}

/// An agent that lacks rights on the copies for long.
async fn granted_late(world: Arc<dyn World>, before: impl Fn(&str) -> Value, told: &str) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    let published = stage.publish("Bucket", json!({})).await?;
    let mut rules = service_rules(&stage.group);
    let last = rules.as_array_mut().and_then(|rules| rules.last_mut()).context("no rules")?;
    let missing = std::mem::replace(last, before(&stage.group));
    grant(&stage, &stage.service, &rules).await?;
    grant(&stage, &stage.provider.client, &kcp_rules(stage.export_name())).await?;
    are_known(&stage).await?;
    let agent = Agent::start(&stage, Setup { user: User::Agent, probes: true, ..Setup::default() })?;
    stage.bind(&stage.team_a).await?;
    let team = &stage.team_a;
    for number in 0..20 {
        stage.order(team, &format!("bucket-{number}"), json!({ "size": 1 })).await?;
    }
    if told.is_empty() {
        stage.not_ready(&agent, "forbidden").await?;
    } else {
        let name = published["metadata"]["name"].as_str().unwrap_or_default();
        let at = (&stage.service, &kinds::published_resources(), None, name);
        let says = |published: &Value| condition(published, "ObjectsSynced").to_string().contains(told);
        stage.object("the PublishedResource says what is refused", at, says).await?;
    }
    tokio::time::sleep(REFUSED).await;

    *rules.as_array_mut().and_then(|rules| rules.last_mut()).context("no rules")? = missing;
    let patch = json!({ "rules": rules });
    stage.service.merge_patch(&kinds::cluster_roles(), None, &stage.agent_name(), &patch).await?;
    let granted = Instant::now();
    for number in 0..20 {
        stage.copy_is("the copy is there", team, &format!("bucket-{number}"), |_| true).await?;
    }
    soon(&stage, "20 copies were there after the right was granted", granted)?;
    stage.ready(&agent).await?;
    agent.stop().await?;
    revoke(&stage, &stage.service).await
}

/// A service account with all rights, whose tokens end with Secrets.
struct Account {
    name: String,
}

impl Account {
    async fn make(stage: &Stage) -> anyhow::Result<Self> {
        let (name, namespace) = (stage.agent_name(), stage.agent_namespace());
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } });
        stage.service.create(&service_accounts(), Some(&namespace), &account).await?;
        let api = "rbac.authorization.k8s.io";
        let binding = json!({
            "apiVersion": format!("{api}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": { "apiGroup": api, "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": namespace }],
        });
        stage.service.create(&kinds::cluster_role_bindings(), None, &binding).await?;
        Ok(Self { name })
    }

    /// A token that ends with a Secret.
    async fn token(&self, stage: &Stage, secret: &str) -> anyhow::Result<String> {
        let namespace = stage.agent_namespace();
        let object = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": secret } });
        let secret = stage.service.create(&kinds::secrets(), Some(&namespace), &object).await?;
        let bound = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "name": secret["metadata"]["name"],
            "uid": secret["metadata"]["uid"],
        });
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": { "boundObjectRef": bound, "expirationSeconds": 3600 },
        });
        // A subresource is a resource as far as paths are concerned.
        let tokens = format!("serviceaccounts/{}/token", self.name);
        let tokens = Resource::namespaced("", "v1", "TokenRequest", &tokens);
        let answer = stage.service.create(&tokens, Some(&namespace), &request).await?;
        Ok(answer["status"]["token"].as_str().context("no token")?.to_owned())
    }

    async fn revoke(&self, stage: &Stage, secret: &str) -> anyhow::Result<()> {
        let options = DeleteOptions::default();
        Ok(stage.service.delete(&kinds::secrets(), Some(&stage.agent_namespace()), secret, &options).await?)
    }

    async fn remove(&self, stage: &Stage) -> anyhow::Result<()> {
        let options = DeleteOptions::default();
        Ok(stage.service.delete(&kinds::cluster_role_bindings(), None, &self.name, &options).await?)
    }
}

/// Waits until a server refuses a token, which takes it a moment.
pub(super) async fn refused(stage: &Stage, server: &Server) -> anyhow::Result<()> {
    let client = server.client();
    stage
        .eventually("the old token is refused", async || {
            let answer = client.raw_get("/api").await;
            ensure!(answer.is_err_and(|error| error.status().is_some_and(|status| status.code == 401)), "it is not");
            Ok(())
        })
        .await
}

/// Replaces a file in one step, as the kubelet does.
fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    let next = file.with_extension("next");
    std::fs::write(&next, text)?;
    Ok(std::fs::rename(next, file)?)
}

fn service_accounts() -> Resource {
    Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts")
}
