//! The agent's way into kcp: a token of its ServiceAccount in the provider's workspace, in a kubeconfig, in a Secret.

use std::path::Path;

use anyhow::Context;
use carrick_client::kube::config::{Cluster, Kubeconfig};
use carrick_kcp::token::AccountToken;
use carrick_syncagent::rules::renewal;
use data_encoding::BASE64;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::plan::{ACCOUNTS, Side, Wanted};
use super::target::Change;
use super::{Setup, standing};
use crate::ui::Observed;

/// The agent's kubeconfig.
pub struct Login {
    /// With the server that is used here.
    pub kubeconfig_from_here: String,
    /// When its token ends.
    until: Timestamp,
    /// Whether the token is a new one.
    is_new: bool,
    /// The server of the agent, if that is not the one that is used here.
    elsewhere: Option<String>,
}

impl Login {
    /// Uses the token that is there, or gets another one if half of its time is over or the agent is to serve another workspace, and
    /// writes the Secret. The agent keeps its way to the server unless another one is named.
    pub async fn make(
        setup: &Setup,
        duration: SignedDuration,
        server: Option<&str>,
        repointed: bool,
        seen: &Observed,
    ) -> anyhow::Result<Self> {
        let (plan, now) = (&setup.plan, Timestamp::now());
        // What leads to another workspace gives neither its server nor its token.
        let path = &plan.choices.workspace;
        let standing = standing::read(setup).await?.filter(|standing| !repointed && standing.is_of(path));
        let here = setup.workspace_url();
        let known = standing.as_ref().map(|standing| standing.url.clone());
        let there = server.map(|server| at_workspace(server, &plan.choices.workspace)).or(known);
        let there = there.unwrap_or_else(|| here.clone());
        let known = standing.and_then(|standing| standing.held).filter(|held| !held.is_due(now.as_second()));
        let is_new = known.is_none();
        let token = match known {
            Some(held) => held.token,
            None => request(setup, duration).await?,
        };
        let template = &setup.kcp.cluster;
        let text = kubeconfig(template, &there, &token)?;
        let object = secret_with(&plan.choices.namespace, &plan.secret, &text);
        let change = setup.service.ensure(&Wanted { side: Side::Service, object }, seen).await?;
        let until = AccountToken::read(&token).context("kcp has given a token that cannot be renewed")?.ends;
        Ok(Self {
            kubeconfig_from_here: kubeconfig(template, &here, &token)?,
            until: Timestamp::from_second(until)?,
            is_new: is_new || change == Change::Create,
            elsewhere: Some(there).filter(|there| *there != here),
        })
    }

    /// A line for people.
    pub fn told(&self, namespace: &str, secret: &str) -> String {
        let until = self.until.strftime("%Y-%m-%d %H:%M UTC");
        let what = if self.is_new { "a new token" } else { "the token stays" };
        let server = self.elsewhere.as_ref().map(|server| format!("; for {server}, see --agent-kcp-server"));
        let server = server.unwrap_or_default();
        format!("Secret {namespace}/{secret}: {what}, valid until {until}; the agent renews it{server}")
    }
}

/// A token for the agent's ServiceAccount.
async fn request(setup: &Setup, duration: SignedDuration) -> anyhow::Result<String> {
    let agent = &setup.plan.agent;
    let what = || {
        format!(
            "cannot get a token for ServiceAccount {ACCOUNTS}/{agent} in {}; your user needs to create \
             serviceaccounts/token there, and --token-duration must be at least 10m",
            setup.workspace.name
        )
    };
    setup.workspace.client.request_token(ACCOUNTS, agent, duration.as_secs()).await.with_context(what)
}

fn secret(namespace: &str, name: &str, content: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": namespace }, "type": "Opaque",
        "data": { renewal::KEY: content },
    })
}

fn secret_with(namespace: &str, name: &str, kubeconfig: &str) -> Value {
    secret(namespace, name, &BASE64.encode(kubeconfig.as_bytes()))
}

/// The Secret, for deletion.
pub fn secret_named(namespace: &str, name: &str) -> Wanted {
    Wanted { side: Side::Service, object: secret(namespace, name, "") }
}

/// The URL of a workspace on the server of another URL.
pub fn at_workspace(url: &str, path: &str) -> String {
    let base = url.split("/clusters/").next().unwrap_or(url);
    carrick_kcp::url::in_workspace(base, path)
}

/// The cluster of the current context of a kubeconfig, with its CA inside.
pub fn cluster_of(file: &Path) -> anyhow::Result<Cluster> {
    let place = file.display();
    let read = Kubeconfig::read_from(file).with_context(|| format!("cannot read {place}"))?;
    let current = read.current_context.with_context(|| format!("{place} has no current context"))?;
    let context = read.contexts.into_iter().find(|context| context.name == current).and_then(|it| it.context);
    let name = context.with_context(|| format!("{place} has no context {current}"))?.cluster;
    let cluster = read.clusters.into_iter().find(|cluster| cluster.name == name).and_then(|it| it.cluster);
    let mut cluster = cluster.with_context(|| format!("{place} has no cluster {name}"))?;
    if let Some(ca) = cluster.certificate_authority.take() {
        let path = file.parent().unwrap_or(Path::new(".")).join(ca);
        let content = std::fs::read(&path).with_context(|| format!("cannot read the CA {}", path.display()))?;
        cluster.certificate_authority_data = Some(BASE64.encode(&content));
    }
    Ok(cluster)
}

/// A kubeconfig with one of everything.
pub fn kubeconfig(cluster: &Cluster, server: &str, token: &str) -> anyhow::Result<String> {
    let cluster = Cluster { server: Some(server.to_owned()), ..cluster.clone() };
    let made = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "kcp", "cluster": cluster }],
        "users": [{ "name": "agent", "user": { "token": token } }],
        "contexts": [{ "name": "kcp", "context": { "cluster": "kcp", "user": "agent" } }],
        "current-context": "kcp",
    });
    Ok(serde_saphyr::to_string(&made)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_leads_to_the_workspace_and_gives_its_token_back() {
        let cluster = Cluster { certificate_authority_data: Some("Q0E=".to_owned()), ..Cluster::default() };
        let server = at_workspace("https://kcp:6443/clusters/root", "root:a");
        assert_eq!(server, "https://kcp:6443/clusters/root:a");
        let text = kubeconfig(&cluster, &server, "t").unwrap();
        let read = Kubeconfig::from_yaml(&text).unwrap();
        let found = read.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(
            (found.server.as_deref(), found.certificate_authority_data.as_deref()),
            (Some(server.as_str()), Some("Q0E="))
        );
        assert_eq!(renewal::token(&text).as_deref(), Ok("t"));
        assert_eq!(secret_with("n", "s", &text)["data"][renewal::KEY], BASE64.encode(text.as_bytes()));
    }
}
