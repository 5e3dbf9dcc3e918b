//! The agent's flags and its kubeconfig for kcp, as a running Deployment has them.

use std::path::Path;

use anyhow::{Context, bail};
use carrick_client::{Client, Error, ListOptions, Overrides, Resource, Server};
use serde_json::Value;

use super::forward::{self, Dashboard};
use crate::doctor::facts::SecretKey;
use crate::kubeconfig;

/// What a Deployment says.
#[derive(Debug)]
pub struct DeployedAgent {
    /// The flags of its container.
    pub flags: Vec<String>,
    /// Its kubeconfig for kcp, if it was wanted, and where that is.
    pub kcp_kubeconfig: Option<(kubeconfig::Temporary, SecretKey)>,
}

/// The Deployment of an agent.
#[derive(Debug)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// The Helm release that it belongs to, and the namespace of that, if Helm has made it.
    pub release: Option<(String, String)>,
    /// The flags of the agent.
    pub flags: Vec<String>,
}

/// An agent that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Namespace and name of its Deployment.
    pub name: String,
    /// The slice or export that it serves.
    pub slice: String,
    /// Where it serves its dashboard, if it does.
    pub dashboard: Option<Dashboard>,
}

/// All agents that are installed on a service cluster, by name.
pub async fn all(kubeconfig: &str) -> anyhow::Result<Vec<Agent>> {
    let file = Some(kubeconfig).filter(|file| !file.is_empty()).map(Path::new);
    let client = Server::infer(file, &Overrides::default())?.client();
    let deployments = Resource::namespaced("apps", "v1", "Deployment", "deployments");
    let found = client.list(&deployments, None, &ListOptions::default()).await.context(
        "cannot look for agents on the service cluster; say which one is meant, with --from-deployment <namespace>/<name>",
    )?;
    let mut agents: Vec<Agent> = found.iter().filter_map(agent).collect();
    agents.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(agents)
}

/// The agent that a Deployment runs, if it runs one.
fn agent(deployment: &Value) -> Option<Agent> {
    let text = |key: &str| deployment["metadata"][key].as_str().unwrap_or_default();
    let flags = agent_flags(deployment, text("namespace"))?;
    let slice = flag(&flags, "--apiexportendpointslice-ref").or_else(|| flag(&flags, "--apiexport-ref"))?;
    let dashboard = forward::dashboard(&flags, deployment);
    Some(Agent { name: format!("{}/{}", text("namespace"), text("name")), slice, dashboard })
}

/// The Deployment in a namespace whose agent is for a slice.
pub async fn find(client: &Client, namespace: &str, slice: &str) -> Result<Option<Installed>, Error> {
    let deployments = Resource::namespaced("apps", "v1", "Deployment", "deployments");
    let all = match client.list(&deployments, Some(namespace), &ListOptions::default()).await {
        Ok(all) => all,
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => return Err(error),
    };
    Ok(all.iter().find_map(|deployment| installed(deployment, namespace, slice)))
}

/// What a Deployment says, if its agent is for a slice.
fn installed(deployment: &Value, namespace: &str, slice: &str) -> Option<Installed> {
    let flags = agent_flags(deployment, namespace)?;
    let refers = |name: &str| flag(&flags, name).as_deref() == Some(slice);
    if !refers("--apiexportendpointslice-ref") && !refers("--apiexport-ref") {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let metadata = &deployment["metadata"];
    let noted = |key: &str| text(&metadata["annotations"][format!("meta.helm.sh/{key}")]);
    let home = noted("release-namespace").unwrap_or_else(|| namespace.to_owned());
    let release = noted("release-name").map(|release| (release, home));
    Some(Installed { name: text(&metadata["name"]).unwrap_or_default(), release, flags })
}

/// Reads a Deployment, given as `namespace/name`, and the Secret with its kubeconfig.
pub async fn read(file: &str, name: &str, with_kubeconfig: bool) -> anyhow::Result<DeployedAgent> {
    let Some((namespace, name)) =
        name.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
    else {
        bail!("--from-deployment {name:?}: say <namespace>/<name>");
    };
    let file = Some(file).filter(|file| !file.is_empty()).map(Path::new);
    let client = Server::infer(file, &Overrides::default())?.client();
    let deployments = Resource::namespaced("apps", "v1", "Deployment", "deployments");
    let what = || format!("cannot read Deployment {namespace}/{name}");
    let found = client.get(&deployments, Some(namespace), name).await.with_context(what)?;
    let Some(deployment) = found else {
        bail!("there is no Deployment {name} in namespace {namespace}; see kubectl -n {namespace} get deployments");
    };
    let container = container(&deployment)
        .with_context(|| format!("no container of Deployment {namespace}/{name} has the flags of an agent"))?;
    let mut flags = flags(container, namespace);
    let mut kcp_kubeconfig = None;
    if with_kubeconfig {
        let inside = flag(&flags, "--kcp-kubeconfig").unwrap_or_default();
        let (secret, key) = mounted(&deployment, container, &inside).with_context(|| {
            format!(
                "{inside:?}, the kubeconfig for kcp of Deployment {namespace}/{name}, is not mounted from a Secret; give one with --kcp-kubeconfig"
            )
        })?;
        let content = secret_value(&client, namespace, &secret, &key).await?;
        let file = kubeconfig::Temporary::new(&content)?;
        flags.push(format!("--kcp-kubeconfig={}", file.path().display()));
        kcp_kubeconfig = Some((file, SecretKey { namespace: namespace.to_owned(), name: secret, key }));
    }
    Ok(DeployedAgent { flags, kcp_kubeconfig })
}

async fn secret_value(
    client: &carrick_client::Client,
    namespace: &str,
    name: &str,
    key: &str,
) -> anyhow::Result<Vec<u8>> {
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    let way_out = || format!("cannot read Secret {namespace}/{name}; give its kubeconfig with --kcp-kubeconfig");
    let secret = client.get(&secrets, Some(namespace), name).await.with_context(way_out)?;
    let secret = secret.with_context(|| format!("Secret {namespace}/{name} does not exist, so no pod can start"))?;
    let text = secret["data"][key].as_str().with_context(|| format!("Secret {namespace}/{name} has no key {key:?}"))?;
    data_encoding::BASE64.decode(text.as_bytes()).with_context(|| format!("key {key:?} of Secret {namespace}/{name}"))
}

/// The container that runs the agent.
fn container(deployment: &Value) -> Option<&Value> {
    let all = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
    all.iter().find(|container| words(container).any(|word| word.starts_with("--kcp-kubeconfig")))
}

fn words(container: &Value) -> impl Iterator<Item = &str> {
    ["command", "args"]
        .into_iter()
        .flat_map(|key| container[key].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
}

/// The flags of a container, with its variables filled in.
fn flags(container: &Value, namespace: &str) -> Vec<String> {
    let variables: Vec<(String, String)> = container["env"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|variable| {
            let field = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str();
            let value = match field {
                Some("metadata.namespace") => namespace,
                Some(_) => return None,
                None => variable["value"].as_str()?,
            };
            Some((format!("$({})", variable["name"].as_str()?), value.to_owned()))
        })
        .collect();
    let fill = |word: &str| variables.iter().fold(word.to_owned(), |word, (name, value)| word.replace(name, value));
    // Whatever comes before the first flag is the program.
    words(container).skip_while(|word| !word.starts_with('-')).map(fill).collect()
}

/// The flags of the agent that a Deployment runs, if it runs one.
pub fn agent_flags(deployment: &Value, namespace: &str) -> Option<Vec<String>> {
    Some(flags(container(deployment)?, namespace))
}

/// The last value of a flag, written with or without an equals sign.
pub fn flag(flags: &[String], name: &str) -> Option<String> {
    let mut value = None;
    for (at, word) in flags.iter().enumerate() {
        match word.strip_prefix(name) {
            Some("") => value = flags.get(at + 1).cloned(),
            Some(rest) => value = rest.strip_prefix('=').map(str::to_owned).or(value),
            None => {}
        }
    }
    value
}

/// The Secret, and its key, that a container sees as a file.
fn mounted(deployment: &Value, container: &Value, file: &str) -> Option<(String, String)> {
    let mounts = container["volumeMounts"].as_array()?.iter();
    let (mount, rest) = mounts
        .filter_map(|mount| {
            let path = mount["mountPath"].as_str()?.trim_end_matches('/');
            let rest = file.strip_prefix(path)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| (mount, rest.trim_start_matches('/')))
        })
        .min_by_key(|(_, rest)| rest.len())?;
    let below = match (mount["subPath"].as_str(), rest) {
        (Some(below), "") => below.to_owned(),
        (Some(below), rest) => format!("{below}/{rest}"),
        (None, rest) => rest.to_owned(),
    };
    let volumes = deployment.pointer("/spec/template/spec/volumes")?.as_array()?;
    let secret = &volumes.iter().find(|volume| volume["name"] == mount["name"])?["secret"];
    let items = secret["items"].as_array().into_iter().flatten();
    let key = match items.clone().find(|item| item["path"] == below.as_str()) {
        Some(item) => item["key"].as_str()?.to_owned(),
        None => below,
    };
    Some((secret["secretName"].as_str()?.to_owned(), key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployed(mounts: &Value, secret: &Value) -> Value {
        let container = json!({
            "name": "agent",
            "command": ["/usr/local/bin/api-syncagent"],
            "args": ["--namespace=$(POD_NAMESPACE)", "--agent-name", "$(AGENT_NAME)", "--kcp-kubeconfig=/etc/kcp/kubeconfig", "--enable-leader-election=true"],
            "env": [
                { "name": "POD_NAMESPACE", "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } },
                { "name": "AGENT_NAME", "value": "mine" },
            ],
            "volumeMounts": mounts,
        });
        let sidecar = json!({ "name": "first", "args": ["--other"] });
        let volumes = json!([{ "name": "v", "secret": secret }, { "name": "w", "emptyDir": {} }]);
        json!({ "spec": { "template": { "spec": { "containers": [sidecar, container], "volumes": volumes } } } })
    }

    #[test]
    fn flags_are_those_of_the_container_with_its_variables_filled_in() {
        let deployment = deployed(&json!([]), &json!({}));
        let flags = flags(container(&deployment).unwrap(), "kcp-system");
        let wanted = [
            "--namespace=kcp-system",
            "--agent-name",
            "mine",
            "--kcp-kubeconfig=/etc/kcp/kubeconfig",
            "--enable-leader-election=true",
        ];
        assert_eq!(flags, wanted);
        assert_eq!(flag(&flags, "--agent-name").as_deref(), Some("mine"));
        assert_eq!(flag(&flags, "--kcp-kubeconfig").as_deref(), Some("/etc/kcp/kubeconfig"));
        assert_eq!(flag(&flags, "--nothing"), None);
    }

    #[test]
    fn an_agent_is_found_by_its_slice_and_so_is_its_release() {
        let mut deployment = deployed(&json!([]), &json!({}));
        let container = &mut deployment["spec"]["template"]["spec"]["containers"][1];
        container["args"].as_array_mut().unwrap().push(json!("--apiexportendpointslice-ref=example.com"));
        deployment["metadata"] = json!({ "name": "agent" });
        assert!(installed(&deployment, "own", "other.com").is_none());
        let found = installed(&deployment, "own", "example.com").unwrap();
        assert_eq!((found.name.as_str(), found.release), ("agent", None));
        deployment["metadata"]["annotations"] =
            json!({ "meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "n" });
        let found = installed(&deployment, "own", "example.com").unwrap();
        assert_eq!(found.release, Some(("r".to_owned(), "n".to_owned())));
    }

    #[test]
    fn only_deployments_that_serve_a_slice_are_agents() {
        let mut deployment = deployed(&json!([]), &json!({}));
        deployment["metadata"] = json!({ "name": "agent", "namespace": "own" });
        assert_eq!(agent(&deployment), None);
        let container = &mut deployment["spec"]["template"]["spec"]["containers"][1];
        container["args"].as_array_mut().unwrap().push(json!("--apiexportendpointslice-ref=example.com"));
        let (name, slice) = ("own/agent".to_owned(), "example.com".to_owned());
        assert_eq!(agent(&deployment), Some(Agent { name, slice, dashboard: None }));
    }

    #[test]
    fn a_kubeconfig_is_found_in_the_secret_that_is_mounted() {
        let folder = json!([{ "name": "w", "mountPath": "/etc" }, { "name": "v", "mountPath": "/etc/kcp/" }]);
        let file = json!([{ "name": "v", "mountPath": "/etc/kcp/kubeconfig", "subPath": "config" }]);
        let cases = [
            (&folder, json!({ "secretName": "s" }), Some(("s", "kubeconfig"))),
            (&folder, json!({ "secretName": "s", "items": [{ "key": "k", "path": "kubeconfig" }] }), Some(("s", "k"))),
            (&file, json!({ "secretName": "s" }), Some(("s", "config"))),
            (&folder, json!({}), None),
        ];
        for (mounts, secret, wanted) in cases {
            let deployment = deployed(mounts, &secret);
            let found = mounted(&deployment, container(&deployment).unwrap(), "/etc/kcp/kubeconfig");
            let found = found.as_ref().map(|(name, key)| (name.as_str(), key.as_str()));
            assert_eq!(found, wanted, "{mounts} {secret}");
        }
    }
}
