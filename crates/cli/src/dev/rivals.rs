//! Other agents on a cluster that existed before: they must not publish what somebody is only trying out.

use anyhow::{Context, bail};
use carrick_client::{Client, ListOptions, Resource};
use carrick_go::labels::Selector;
use serde_json::Value;

use super::applier::{LABEL, published_resources};
use crate::agent_flags::deployment;

/// A lease that was not renewed for this many times its duration belongs to an agent that is gone.
const EXPIRED: i64 = 4;

/// What a cluster tells about agents.
#[derive(Debug, Default)]
struct Traces {
    deployments: Vec<Value>,
    leases: Vec<Value>,
    published: Vec<Value>,
    /// Seconds since 1970.
    now: i64,
}

/// Refuses to go on if another agent would serve the PublishedResources of this run.
pub async fn refuse_others(service: &Client, run: &str, has_crd: bool) -> anyhow::Result<()> {
    let everything = ListOptions::default();
    let list = async |kind: Resource| match service.list(&kind, None, &everything).await {
        // Whoever may not look, or finds no such kind, learns nothing from it.
        Err(error) if error.is_forbidden() || error.is_not_found() => Ok(Vec::new()),
        found => found.context("cannot find out whether another agent works on the cluster of --service-kubeconfig"),
    };
    if !has_crd {
        return Ok(());
    }
    let traces = Traces {
        deployments: list(Resource::namespaced("apps", "v1", "Deployment", "deployments")).await?,
        leases: list(Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases")).await?,
        published: list(published_resources()).await?,
        now: jiff::Timestamp::now().as_second(),
    };
    if let Some(who) = rival(&traces, run) {
        bail!(
            "{who} and would publish your files to its consumers; let it run with --published-resource-selector='!{LABEL}', or take \
             another cluster, or start with --beside-other-agents if it does not matter"
        );
    }
    Ok(())
}

/// An agent that would serve this run's PublishedResources, in words. Pure.
fn rival(traces: &Traces, run: &str) -> Option<String> {
    let agents: Vec<(String, String)> = traces.deployments.iter().filter_map(agent).collect();
    let takes = |selector: &str| {
        Selector::parse(selector).is_ok_and(|selector| selector.matches(|key| (key == LABEL).then_some(run)))
    };
    if let Some((name, _)) = agents.iter().find(|(_, selector)| takes(selector)) {
        return Some(format!("Deployment {name} is an agent that serves every PublishedResource of this cluster"));
    }
    // Agents in the cluster are accounted for; those outside leave a lease, or what they wrote.
    if !agents.is_empty() {
        return None;
    }
    if let Some(holder) = traces.leases.iter().find_map(|lease| holder(lease, traces.now)) {
        return Some(format!("agent {holder} works on this cluster"));
    }
    let served =
        traces.published.iter().filter(|pr| !pr["status"]["resourceSchemaName"].as_str().unwrap_or("").is_empty());
    let mut names = served.filter_map(|pr| pr["metadata"]["name"].as_str());
    names.next().map(|name| format!("an agent serves PublishedResource {name} on this cluster"))
}

/// Name and selector of the agent that a Deployment runs.
fn agent(deployment: &Value) -> Option<(String, String)> {
    let metadata = &deployment["metadata"];
    let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
    let flags = deployment::agent_flags(deployment, namespace)?;
    let runs = deployment["spec"]["replicas"].as_i64().unwrap_or(1) > 0;
    let selector = deployment::flag(&flags, "--published-resource-selector").unwrap_or_default();
    runs.then(|| (format!("{namespace}/{name}"), selector))
}

/// Who holds the lease of an agent.
fn holder(lease: &Value, now: i64) -> Option<String> {
    let agent = lease["metadata"]["name"].as_str()?.strip_prefix("syncagent.")?;
    let spec = &lease["spec"];
    let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
    let renewed = spec["renewTime"].as_str()?.parse::<jiff::Timestamp>().ok()?.as_second();
    let lasts = spec["leaseDurationSeconds"].as_i64().unwrap_or(15) * EXPIRED;
    (now - renewed <= lasts).then(|| format!("{agent} at {holder}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(replicas: i64, selector: &str) -> Value {
        let args = ["--kcp-kubeconfig=/k".to_owned(), format!("--published-resource-selector={selector}")];
        json!({
            "metadata": { "namespace": "kcp-system", "name": "agent" },
            "spec": { "replicas": replicas, "template": { "spec": { "containers": [{ "args": args }] } } },
        })
    }

    #[test]
    fn an_agent_that_would_serve_these_files_is_a_rival() {
        let of = |deployments: Vec<Value>| rival(&Traces { deployments, ..Traces::default() }, "r");
        assert!(of(vec![deployment(1, "")]).unwrap().starts_with("Deployment kcp-system/agent"));
        assert!(of(vec![deployment(1, "dev.carrick.io/run")]).is_some());
        for selector in ["!dev.carrick.io/run", "team=blue"] {
            assert_eq!(of(vec![deployment(1, selector)]), None, "{selector}");
        }
        assert_eq!(of(vec![deployment(0, "")]), None, "nobody runs");
        assert_eq!(of(vec![json!({ "metadata": { "namespace": "a", "name": "b" } })]), None, "some other Deployment");
    }

    #[test]
    fn agents_outside_of_the_cluster_are_known_by_what_they_leave() {
        let lease = |renewed: &str| {
            let spec = json!({ "holderIdentity": "host", "renewTime": renewed, "leaseDurationSeconds": 15 });
            Traces {
                leases: vec![json!({ "metadata": { "name": "syncagent.a" }, "spec": spec })],
                now: 1_000_000_000,
                ..Traces::default()
            }
        };
        assert_eq!(rival(&lease("2001-09-09T01:46:30Z"), "r").unwrap(), "agent a at host works on this cluster");
        assert_eq!(rival(&lease("2001-09-09T01:40:30Z"), "r"), None);
        let published = |schema: &str| Traces {
            published: vec![json!({ "metadata": { "name": "p" }, "status": { "resourceSchemaName": schema } })],
            ..Traces::default()
        };
        assert!(rival(&published("v1.a.b"), "r").unwrap().contains("PublishedResource p"));
        assert_eq!(rival(&published(""), "r"), None);
        let known = Traces { deployments: vec![deployment(1, "!dev.carrick.io/run")], ..published("v1.a.b") };
        assert_eq!(rival(&known, "r"), None, "the one that serves it is known");
    }
}
