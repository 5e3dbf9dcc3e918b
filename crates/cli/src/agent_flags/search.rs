//! Which agent is meant if no flag says so, and what is missing if only some do.
//!
//! ```text
//!  no flag        ─▶ Deployments on the service cluster, demo --keep, dev and plane on this machine ─▶ one, or somebody chooses
//!                    none: Deployments in the other contexts of the kubeconfig
//!                    none: contexts that lead to workspaces with slices are named
//!  kcp's kubeconfig only ─▶ slice: those in its workspace
//!                           namespace: Leases of agents, Deployments, states, kcp-system
//! ```

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use carrick_client::{Client, Error, ListOptions, Overrides, Resource, Server};
use carrick_kcp::apis::v1alpha1::ApiExportEndpointSlice;
use carrick_syncagent::api::OBJECT_STATE;
use carrick_syncagent::options::default_agent_name;

use super::deployment::Agent;
use super::{AgentFlags, contexts, deployment, quoted, running};
use crate::ui::print_error;

/// Where an agent serves its dashboard if --dashboard-address names no other port.
const DASHBOARD: &str = "127.0.0.1:8086";
/// The port on this machine that leads to the first agent in a cluster.
const FIRST_PORT: u16 = 8086;
/// How long a server may take that is only asked for what is missing.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where the chart and the book put agents.
const USUAL: &str = "kcp-system";

/// The one agent on the service cluster or on this machine, or the one that somebody chooses.
pub async fn agent(given: &AgentFlags) -> anyhow::Result<AgentFlags> {
    let local = given.local()?;
    let file = local.as_ref().map_or(given.kubeconfig.clone(), |file| file.path().display().to_string());
    let (found, problem) = match tokio::time::timeout(PATIENCE, deployment::all(&file)).await {
        Ok(Ok(found)) => (found, None),
        Ok(Err(error)) => (Vec::new(), Some(error)),
        Err(_) => {
            let problem = format!("the service cluster has not answered within {} s", PATIENCE.as_secs());
            (Vec::new(), Some(anyhow::anyhow!(problem)))
        }
    };
    let deployed = found.into_iter().map(|agent| {
        let shown = format!("Deployment {}, for {}", agent.name, agent.slice);
        (shown, AgentFlags { from_deployment: Some(agent.name), ..given.clone() })
    });
    let running = running::all().into_iter().filter(|it| leads_there(&it.kubeconfig, &given.kubeconfig));
    let running = running.map(|it| {
        let shown = format!("carrick {}, {}", it.command, it.kubeconfig.display());
        (shown, AgentFlags { login: given.login.clone(), ..it.flags() })
    });
    let mut all: Vec<(String, AgentFlags)> = deployed.chain(running).collect();
    if all.is_empty() && given.context.is_empty() {
        all = elsewhere(given).await;
    }
    let hint = if all.is_empty() && given.context.is_empty() { workspaces(given).await } else { String::new() };
    match (all.len(), problem) {
        (0, Some(error)) => bail!(
            "no flag says which agent is meant, such as --kcp-kubeconfig and --apiexportendpointslice-ref, and none can be \
             looked for: {error:#}{hint}"
        ),
        (0, None) => bail!(
            "no Deployment of an agent was found on the service cluster, and no carrick demo --keep, dev or plane runs here, so say \
             which agent is meant, with --kcp-kubeconfig; another cluster is chosen with --kubeconfig{hint}"
        ),
        (1, _) => Ok(all.remove(0).1),
        _ => {
            let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
            let at = choose("agents", "--from-deployment <namespace>/<name>, --context or --kubeconfig", &names)?;
            Ok(all.swap_remove(at).1)
        }
    }
}

/// The agents in the other contexts of the kubeconfig.
async fn elsewhere(given: &AgentFlags) -> Vec<(String, AgentFlags)> {
    let found = in_contexts(&given.kubeconfig, async |file| deployment::all(file).await.ok()).await;
    let all = found.into_iter().flat_map(|(context, agents)| agents.into_iter().map(move |it| (context.clone(), it)));
    all.map(|(context, agent)| {
        let shown = format!("context {context}: Deployment {}, for {}", agent.name, agent.slice);
        (shown, AgentFlags { from_deployment: Some(agent.name), context, ..given.clone() })
    })
    .collect()
}

/// What is found in each of the other contexts of a kubeconfig, as far as they answer.
async fn in_contexts<T>(kubeconfig: &str, ask: impl AsyncFn(&str) -> Option<T>) -> Vec<(String, T)> {
    let asked = contexts::others(kubeconfig).into_iter().map(async |context| {
        let file = contexts::with_current(kubeconfig, &context).ok()?;
        let name = file.path().display().to_string();
        let found = tokio::time::timeout(PATIENCE, ask(&name)).await.ok()??;
        Some((context, found))
    });
    // The order is that of the file.
    futures::future::join_all(asked).await.into_iter().flatten().collect()
}

/// Which contexts of the kubeconfig lead to a workspace with slices, and what that is good for; empty if none does.
async fn workspaces(given: &AgentFlags) -> String {
    let ask = async |file: &str| {
        let server = Server::infer(Some(Path::new(file)).filter(|_| !file.is_empty()), &Overrides::default()).ok()?;
        patiently(slices(&server.client())).await.filter(|slices| !slices.is_empty())
    };
    let (here, others) = futures::join!(ask(&given.kubeconfig), in_contexts(&given.kubeconfig, &ask));
    let here = here.and_then(|slices| Some((contexts::current(&given.kubeconfig)?, slices)));
    let found: Vec<(String, Vec<String>)> = here.into_iter().chain(others).collect();
    let file = if given.kubeconfig.is_empty() {
        String::new()
    } else {
        format!(" --kubeconfig {}", quoted(&given.kubeconfig))
    };
    let lines = found.iter().map(|(context, slices)| {
        format!(
            "\ncontext {context} leads to a workspace of kcp with slice {}; if an agent outside of the cluster serves it:\n  kubectl \
             config view{file} --raw --flatten --minify --context {} >kcp.kubeconfig\nthen add --kcp-kubeconfig kcp.kubeconfig, and \
             --context with the context of the service cluster if that is not the current one",
            slices.join(", "),
            quoted(context)
        )
    });
    lines.collect::<Vec<_>>().concat()
}

/// The address of the one dashboard on this machine, or of the one that somebody chooses; the usual one if nothing is known to run here.
pub fn dashboard() -> anyhow::Result<String> {
    let mut all: Vec<running::Running> = running::all().into_iter().filter(|it| !it.dashboard.is_empty()).collect();
    let at = match all.as_slice() {
        [] => return Ok(DASHBOARD.to_owned()),
        [_] => 0,
        several => {
            let names: Vec<String> =
                several.iter().map(|it| format!("{}  carrick {}", it.dashboard, it.command)).collect();
            choose("dashboards", "its address", &names.iter().map(String::as_str).collect::<Vec<_>>())?
        }
    };
    let url = all.swap_remove(at).dashboard;
    print_error(&format!("# {url}\n"));
    Ok(url)
}

/// How to get at the dashboards of the agents on the service cluster, or in the other contexts of the kubeconfig; empty if none is found.
pub async fn forwarding() -> String {
    let here = tokio::time::timeout(PATIENCE, deployment::all("")).await.ok().and_then(Result::ok).unwrap_or_default();
    let mut found: Vec<(String, Agent)> = here.into_iter().map(|agent| ("kubectl".to_owned(), agent)).collect();
    if found.is_empty() {
        let others = in_contexts("", async |file| deployment::all(file).await.ok()).await;
        for (context, agents) in others {
            let kubectl = format!("kubectl --context {}", quoted(&context));
            found.extend(agents.into_iter().map(|agent| (kubectl.clone(), agent)));
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let parts = found.iter().zip(FIRST_PORT..).map(|((kubectl, agent), local)| {
        let Agent { name, slice, dashboard } = agent;
        match dashboard {
            Some(dashboard) => format!("Deployment {name}, for {slice}:\n{}", dashboard.commands((kubectl, name), local)),
            None => format!(
                "Deployment {name}, for {slice}, serves no dashboard: start it with --dashboard-address :8086, in the chart with \
                 dashboard.enabled=true\n"
            ),
        }
    });
    format!("no dashboard answers here; of the agents in clusters:\n{}", parts.collect::<Vec<_>>().concat())
}

/// Whether a kubeconfig is the one that was given, if one was.
fn leads_there(kubeconfig: &Path, given: &str) -> bool {
    let same = |one: &Path, other: &Path| match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    given.is_empty() || same(kubeconfig, Path::new(given))
}

/// With the slice and the namespace of the agent, as far as they are missing and can be found. May ask.
pub async fn completed(mut flags: AgentFlags) -> anyhow::Result<AgentFlags> {
    if flags.kcp_kubeconfig.is_empty() || flags.from_deployment.is_some() || flags.config.is_some() {
        return Ok(flags);
    }
    // A server that cannot be used is reported by whoever needs it, with the way out.
    if flags.slice().is_empty()
        && let Ok(server) = Server::from_kubeconfig(flags.kcp_kubeconfig.as_ref(), &Overrides::default())
        && let Some(names) = patiently(slices(&server.client())).await
    {
        flags.apiexportendpointslice_ref = match names.as_slice() {
            [] => bail!(
                "the workspace of {} has no APIExportEndpointSlice, so no agent can serve anything from there; carrick provider up \
                 sets one up, and --apiexportendpointslice-ref names one that is still to come",
                flags.kcp_kubeconfig
            ),
            [one] => one.clone(),
            several => {
                let names: Vec<&str> = several.iter().map(String::as_str).collect();
                several[choose("slices", "--apiexportendpointslice-ref", &names)?].clone()
            }
        };
    }
    let local = flags.local()?;
    let file = local.as_ref().map_or(flags.kubeconfig.clone(), |file| file.path().display().to_string());
    let file = Some(file.as_str()).filter(|file| !file.is_empty()).map(Path::new);
    if flags.namespace.is_empty()
        && !flags.slice().is_empty()
        && let Ok(server) = Server::infer(file, &Overrides::default())
        && let Some(names) = patiently(namespaces(&server.client(), &flags, file)).await
    {
        flags.namespace = match names.iter().collect::<Vec<_>>().as_slice() {
            [] => String::new(),
            [one] => (*one).clone(),
            several => {
                let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
                several[choose("namespaces with agents", "--namespace", &names)?].clone()
            }
        };
    }
    Ok(flags)
}

async fn patiently<T>(asked: impl Future<Output = Result<T, Error>>) -> Option<T> {
    tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()
}

async fn slices(kcp: &Client) -> Result<Vec<String>, Error> {
    let all: Vec<ApiExportEndpointSlice> = kcp.list_kcp(&ListOptions::default()).await?;
    let mut names: Vec<String> = all.into_iter().map(|slice| slice.metadata.name).collect();
    names.sort();
    Ok(names)
}

/// Where agents for a slice are, by what they have left there: the surest sign decides.
async fn namespaces(cluster: &Client, flags: &AgentFlags, file: Option<&Path>) -> Result<BTreeSet<String>, Error> {
    let slice = flags.slice();
    let agent = if flags.agent_name.is_empty() { default_agent_name(slice) } else { flags.agent_name.clone() };
    let leases = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    let lease = format!("syncagent.{agent}");
    let named = ListOptions::fields(format!("metadata.name={lease}"));
    let leased = places(cluster, &leases, &named).await.unwrap_or_default();
    if !leased.is_empty() {
        return Ok(leased);
    }
    let file = file.map(|file| file.display().to_string()).unwrap_or_default();
    let deployed = deployment::all(&file).await.unwrap_or_default();
    let deployed = deployed.iter().filter(|agent| agent.slice == *slice);
    let deployed: BTreeSet<String> =
        deployed.filter_map(|agent| Some(agent.name.split_once('/')?.0.to_owned())).collect();
    if !deployed.is_empty() {
        return Ok(deployed);
    }
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    let states = ListOptions::labels(format!("{OBJECT_STATE}=true"));
    let states = places(cluster, &secrets, &states).await.unwrap_or_default();
    if !states.is_empty() {
        return Ok(states);
    }
    let usual = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let usual = cluster.metadata_only().get(&usual, None, USUAL).await?;
    Ok(usual.map(|_| USUAL.to_owned()).into_iter().collect())
}

/// The namespaces of some objects.
async fn places(cluster: &Client, kind: &Resource, which: &ListOptions) -> Result<BTreeSet<String>, Error> {
    let found = cluster.metadata_only().list(kind, None, which).await?;
    Ok(found.iter().filter_map(|one| one["metadata"]["namespace"].as_str()).map(str::to_owned).collect())
}

/// Lets somebody choose; an error that names all if nobody can be asked.
fn choose(what: &str, flag: &str, names: &[&str]) -> anyhow::Result<usize> {
    let lines = names.iter().enumerate().map(|(at, name)| format!("  {}  {name}", at + 1));
    let lines = lines.collect::<Vec<_>>().join("\n");
    if !std::io::stdin().is_terminal() {
        bail!("there are several {what}; say which one is meant, with {flag}:\n{lines}");
    }
    print_error(&format!("There are several {what}:\n{lines}\nWhich one? "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let number = answer.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    number.filter(|at| *at < names.len()).with_context(|| format!("{:?} is none of them", answer.trim()))
}

#[cfg(test)]
mod tests {
    use carrick_client::Resource;
    use serde_json::json;

    use super::*;
    use crate::kubeconfig::Temporary;

    #[tokio::test(flavor = "multi_thread")]
    async fn an_agent_in_another_context_of_the_kubeconfig_is_found_and_the_context_is_named() {
        let plane = crate::embedded::start(carrick_plane::Mode::Kube, &[]).await.unwrap();
        let text = plane.kubeconfig("admin", None).unwrap();
        let client = Server::from_kubeconfig_yaml(&text).unwrap().client();
        let deployments = Resource::namespaced("apps", "v1", "Deployment", "deployments");
        let args = ["--kcp-kubeconfig=/kcp/kubeconfig", "--apiexportendpointslice-ref=example.com"];
        let labels = json!({ "app": "agent" });
        let deployment = json!({ "metadata": { "name": "agent" }, "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "agent", "image": "i", "args": args }] } },
        } });
        client.create(&deployments, Some("default"), &deployment).await.unwrap();
        // The current context leads to a server that is not there.
        let mut config: serde_json::Value = carrick_json::yaml::value(&text).unwrap();
        let there = config["current-context"].as_str().unwrap().to_owned();
        let mut gone = config["clusters"][0].clone();
        (gone["name"], gone["cluster"]["server"]) = (json!("gone"), json!("https://127.0.0.1:1"));
        let user = config["users"][0]["name"].clone();
        config["clusters"].as_array_mut().unwrap().push(gone);
        config["contexts"]
            .as_array_mut()
            .unwrap()
            .push(json!({ "name": "gone", "context": { "cluster": "gone", "user": user } }));
        config["current-context"] = json!("gone");
        let file = Temporary::new(config.to_string().as_bytes()).unwrap();
        let given = AgentFlags { kubeconfig: file.path().display().to_string(), ..AgentFlags::default() };
        let found = agent(&given).await.unwrap();
        assert_eq!((found.context.as_str(), found.from_deployment.as_deref()), (there.as_str(), Some("default/agent")));
        assert!(found.given().any(|flag| flag == format!("--context={there}")));
    }
}
