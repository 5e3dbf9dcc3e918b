//! What stands already: where the agent's kubeconfig leads, whether the agent runs, and whose state it keeps.

use anyhow::{Context, bail};
use carrick_client::{ListOptions, Resource, Server};
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_syncagent::agent::Timing;
use carrick_syncagent::api::{KEEPER, OBJECT_STATE};
use carrick_syncagent::rules::keeper::{self, Keeper};
use carrick_syncagent::rules::renewal::{self, HeldToken};
use jiff::Timestamp;
use serde_json::Value;

use super::plan::Wanted;
use super::{Setup, login, plan};

/// The agent's kubeconfig as it is in its Secret.
pub struct Standing {
    /// The Secret, for people.
    secret: String,
    /// The server that it leads to, with the path of the workspace.
    pub url: String,
    /// The token in it, if that is one that can be renewed.
    pub held: Option<HeldToken>,
}

/// Reads the Secret; nothing if there is none, or nothing in it that leads anywhere.
pub async fn read(setup: &Setup) -> anyhow::Result<Option<Standing>> {
    let wanted = login::secret_named(&setup.plan.choices.namespace, &setup.plan.secret);
    let Some(found) = setup.service.get(&wanted).await? else { return Ok(None) };
    if !plan::is_marked(&found) {
        bail!(
            "{} on the service cluster was not made by this command: {}; delete it, or choose another agent name with \
             --agent",
            wanted.shown(),
            found["type"].as_str().unwrap_or_default()
        );
    }
    Ok(standing(&wanted, &found))
}

fn standing(wanted: &Wanted, secret: &Value) -> Option<Standing> {
    let content = secret["data"][renewal::KEY].as_str()?;
    let content = data_encoding::BASE64.decode(content.as_bytes()).ok()?;
    let server = Server::from_kubeconfig_yaml(&String::from_utf8(content).ok()?).ok()?;
    Some(Standing { secret: wanted.shown(), url: server.url().to_owned(), held: renewal::held(secret).ok() })
}

impl Standing {
    /// Whether the kubeconfig leads to a workspace.
    pub fn is_of(&self, workspace: &str) -> bool {
        carrick_kcp::url::workspace(&self.url).is_ok_and(|path| path == workspace)
    }

    /// Why another workspace or another kcp must not be written into the Secret, if it must not.
    pub async fn leads_elsewhere(&self, setup: &Setup) -> Option<String> {
        let (secret, url, wanted) = (&self.secret, &self.url, setup.workspace_url());
        let path = &setup.plan.choices.workspace;
        if !self.is_of(path) {
            return Some(format!("{secret} holds the kubeconfig of an agent that serves {url}, not {wanted}"));
        }
        let is_other = host(url) != host(&wanted) && !self.is_accepted_here(setup).await;
        is_other.then(|| format!("{secret} holds the kubeconfig of an agent that serves {url}; {wanted} is another kcp, which does not accept its token"))
    }

    /// Whether the kcp that is used here knows the token: one kcp may have several addresses.
    async fn is_accepted_here(&self, setup: &Setup) -> bool {
        let Some(held) = self.held.as_ref().filter(|held| held.about.ends > Timestamp::now().as_second()) else {
            return false;
        };
        let Ok(text) = login::kubeconfig(&setup.kcp.cluster, &setup.workspace_url(), &held.token) else { return false };
        let Ok(server) = Server::from_kubeconfig_yaml(&text) else { return false };
        // Whoever is known there may be refused, but not for being unknown.
        let answer = server.client().get_newest::<ApiExport>(&setup.plan.export).await;
        !answer.is_err_and(|error| error.status().is_some_and(|status| status.code == 401))
    }
}

/// Host and port of a URL.
fn host(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default()
}

/// Where the agent runs.
pub enum Running {
    /// It holds its lease.
    Leads(String),
    /// It has no lease, and left a sign of life on the export so many seconds ago.
    Seen(String, i64),
}

/// Where the agent runs, as far as its lease or, without one, its sign of life on the export tells.
pub async fn running(setup: &Setup) -> anyhow::Result<Option<Running>> {
    let leases = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    let (namespace, name) = (&setup.plan.choices.namespace, format!("syncagent.{}", setup.plan.agent));
    let lease = setup.service.client.get(&leases, Some(namespace), &name).await;
    let lease = lease.with_context(|| format!("cannot read Lease {namespace}/{name}"))?;
    let now = Timestamp::now();
    if let Some(lease) = lease {
        return Ok(leader(&lease["spec"], now).map(Running::Leads));
    }
    let export = setup.workspace.client.get_newest::<ApiExport>(&setup.plan.export).await;
    let export = match export {
        Err(error) if error.is_forbidden() || error.is_not_found() => None,
        export => export.with_context(|| format!("cannot read APIExport {}", setup.plan.export))?,
    };
    let entries = keeper::read(export.as_ref().and_then(|export| export.metadata.annotation(KEEPER)));
    let old = i64::try_from(Timing::default().heartbeat_old.as_millis()).unwrap_or(i64::MAX);
    let own = entries.into_iter().find(|entry| entry.agent == setup.plan.agent);
    let age = |entry: &Keeper| entry.age(now.as_millisecond());
    Ok(own.filter(|entry| age(entry) < old).map(|entry| Running::Seen(entry.identity.clone(), age(&entry) / 1000)))
}

/// Who holds a lease that has not ended.
fn leader(spec: &Value, now: Timestamp) -> Option<String> {
    let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
    let renewed = spec["renewTime"].as_str()?.parse::<Timestamp>().ok()?;
    let valid = spec["leaseDurationSeconds"].as_i64().unwrap_or(15);
    (now.as_second() - renewed.as_second() <= valid).then(|| holder.to_owned())
}

/// How many orders the agent keeps state of.
pub async fn states(setup: &Setup) -> anyhow::Result<usize> {
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    let namespace = &setup.plan.choices.namespace;
    let found = setup.service.client.list(&secrets, Some(namespace), &ListOptions::labels(OBJECT_STATE)).await;
    match found {
        Err(error) if error.is_not_found() => Ok(0),
        found => Ok(found.with_context(|| format!("cannot list Secrets in namespace {namespace}"))?.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_holds_the_lease_runs_until_it_ends() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let spec = |holder: &str, renewed: &str| json!({ "holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15 });
        assert_eq!(leader(&spec("pod", "2026-01-01T00:00:50Z"), now).as_deref(), Some("pod"));
        assert_eq!(leader(&spec("pod", "2026-01-01T00:00:40Z"), now), None);
        assert_eq!(leader(&spec("", "2026-01-01T00:00:50Z"), now), None);
    }

    #[test]
    fn a_host_is_compared_with_its_port_and_without_the_path() {
        assert_eq!(host("https://kcp:6443/clusters/root:a"), "kcp:6443");
        assert_ne!(host("https://kcp:6443"), host("https://kcp:6444"));
    }
}
