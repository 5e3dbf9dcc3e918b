//! Which credential plugin to run for which access provider.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use kube::config::{
    AuthInfo, Cluster, Context, ExecConfig, ExecInteractiveMode, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::types::{AccessProvider, ClusterProfileStatus};

/// On the cluster of an access provider: further arguments for the plugin.
const MORE_ARGUMENTS: &str = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args";
/// On the cluster of an access provider: further environment variables for the plugin.
const MORE_VARIABLES: &str = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs";

/// The credential plugins of a program: one for each access provider it knows, in the form of the Cluster Inventory API's own library.
///
/// ```json
/// {"providers": [{
///   "name": "the access provider",
///   "execConfig": {"apiVersion": "client.authentication.k8s.io/v1", "command": "a-plugin", "args": [], "env": [], "provideClusterInfo": true},
///   "profileSourcedCLIArgsPolicy": "Ignore, or Append: whether profiles may add arguments",
///   "profileSourcedEnvVarsPolicy": "Ignore, AppendIfNotExists or Replace: whether profiles may add variables"
/// }]}
/// ```
///
/// Of several providers that a profile lists, the first one here is used.
#[derive(Clone, Debug, Deserialize)]
pub struct AccessConfig {
    providers: Vec<Plugin>,
}

/// Why there are no credential plugins.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessConfigError {
    /// The file cannot be read.
    #[error("cannot read the access providers in {}: {source}; check the path and its permissions", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not a configuration of access providers.
    #[error(
        "the access providers cannot be read: {0}; expected {{\"providers\": [{{\"name\": …, \"execConfig\": …}}]}}"
    )]
    Parse(#[from] serde_json::Error),
}

/// Why a profile leads to no kubeconfig.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccessError {
    /// The profile lists none of the access providers that the program knows.
    #[error("the profile lists none of the access providers that this program knows: {known}")]
    NoProvider { known: String },
    /// An extension of the profile cannot be read.
    #[error("access provider {provider:?}: extension {extension:?} cannot be read: {source}")]
    Extension { provider: String, extension: &'static str, source: serde_json::Error },
    /// The kubeconfig cannot be written.
    #[error("no kubeconfig can be made of access provider {provider:?}: {source}")]
    Kubeconfig { provider: String, source: serde_json::Error },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Plugin {
    name: String,
    exec_config: ExecConfig,
    #[serde(default, rename = "profileSourcedCLIArgsPolicy")]
    arguments: ArgumentPolicy,
    #[serde(default, rename = "profileSourcedEnvVarsPolicy")]
    variables: VariablePolicy,
}

/// Whether profiles may add arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum ArgumentPolicy {
    #[default]
    #[serde(alias = "")]
    Ignore,
    Append,
}

/// Whether profiles may add environment variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum VariablePolicy {
    #[default]
    #[serde(alias = "")]
    Ignore,
    AppendIfNotExists,
    Replace,
}

impl AccessConfig {
    /// Reads the configuration from JSON.
    pub fn from_json(text: &str) -> Result<Self, AccessConfigError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Reads the configuration from a file. Blocks.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, AccessConfigError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|source| AccessConfigError::Read { path: path.to_owned(), source })?;
        Self::from_json(&text)
    }

    /// The kubeconfig of a profile: the cluster as its access provider describes it, with the plugin for credentials.
    pub(super) fn kubeconfig(&self, profile: &ClusterProfileStatus) -> Result<String, AccessError> {
        let usable = self.providers.iter().find_map(|plugin| Some((plugin, profile.access_provider(&plugin.name)?)));
        let Some((plugin, provider)) = usable else {
            let known: Vec<&str> = self.providers.iter().map(|plugin| plugin.name.as_str()).collect();
            return Err(AccessError::NoProvider { known: known.join(", ") });
        };
        let name = || "cluster".to_owned();
        let user = AuthInfo { exec: Some(plugin.exec_for(provider)?), ..AuthInfo::default() };
        let context = Context { cluster: name(), user: Some(name()), ..Context::default() };
        let kubeconfig = Kubeconfig {
            current_context: Some(name()),
            clusters: vec![NamedCluster {
                name: name(),
                cluster: Some(described_by(provider)),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo { name: name(), auth_info: Some(user), ..NamedAuthInfo::default() }],
            contexts: vec![NamedContext { name: name(), context: Some(context), ..NamedContext::default() }],
            ..Kubeconfig::default()
        };
        serde_json::to_string(&kubeconfig)
            .map_err(|source| AccessError::Kubeconfig { provider: provider.name.clone(), source })
    }
}

impl Plugin {
    /// How the plugin is run for a cluster.
    fn exec_for(&self, provider: &AccessProvider) -> Result<ExecConfig, AccessError> {
        let mut exec = self.exec_config.clone();
        // Nobody sits in front of a controller.
        exec.interactive_mode = Some(ExecInteractiveMode::Never);
        if self.arguments == ArgumentPolicy::Append
            && let Some(more) = extension::<Vec<String>>(provider, MORE_ARGUMENTS)?
        {
            exec.args.get_or_insert_default().extend(more);
        }
        if self.variables != VariablePolicy::Ignore
            && let Some(more) = extension::<BTreeMap<String, String>>(provider, MORE_VARIABLES)?
        {
            let variables = exec.env.get_or_insert_default();
            for (name, value) in more {
                let known = variables.iter_mut().find(|variable| variable.get("name") == Some(&name));
                match known {
                    Some(known) if self.variables == VariablePolicy::Replace => {
                        known.insert("value".to_owned(), value);
                    }
                    Some(_) => {}
                    None => variables.push(HashMap::from([("name".to_owned(), name), ("value".to_owned(), value)])),
                }
            }
        }
        Ok(exec)
    }
}

/// The cluster as an access provider describes it. A profile can neither name files of this machine nor switch checks off.
fn described_by(provider: &AccessProvider) -> Cluster {
    let Cluster { server, certificate_authority_data, proxy_url, tls_server_name, extensions, .. } =
        provider.cluster.clone();
    Cluster { server, certificate_authority_data, proxy_url, tls_server_name, extensions, ..Cluster::default() }
}

fn extension<T: DeserializeOwned>(provider: &AccessProvider, name: &'static str) -> Result<Option<T>, AccessError> {
    let Cluster { extensions, .. } = &provider.cluster;
    let found = extensions.iter().flatten().find(|extension| extension.name == name);
    found.map(|found| T::deserialize(&found.extension)).transpose().map_err(|source| AccessError::Extension {
        provider: provider.name.clone(),
        extension: name,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn config(arguments: &str, variables: &str) -> AccessConfig {
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin", "args": ["--a"],
            "env": [{"name": "KNOWN", "value": "1"}], "provideClusterInfo": true});
        let plugin = json!({"name": "ocm", "execConfig": exec, "profileSourcedCLIArgsPolicy": arguments,
            "profileSourcedEnvVarsPolicy": variables});
        AccessConfig::from_json(&json!({"providers": [{"name": "none", "execConfig": {}}, plugin]}).to_string())
            .unwrap()
    }

    fn status() -> ClusterProfileStatus {
        let extensions = json!([
            {"name": MORE_ARGUMENTS, "extension": ["--b"]},
            {"name": MORE_VARIABLES, "extension": {"KNOWN": "2", "NEW": "3"}},
            {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "c"}},
        ]);
        let cluster = json!({"server": "https://c:6443", "certificate-authority-data": "YQ==", "extensions": extensions,
            "certificate-authority": "/a/file", "insecure-skip-tls-verify": true});
        let old = json!({"name": "ocm", "cluster": {"server": "https://old"}});
        let status = json!({"accessProviders": [{"name": "ocm", "cluster": cluster}], "credentialProviders": [old]});
        serde_json::from_value(status).unwrap()
    }

    fn exec(config: &AccessConfig) -> Value {
        let text = config.kubeconfig(&status()).unwrap();
        assert!(!text.contains("/a/file") && !text.contains("insecure"), "{text}");
        let kubeconfig: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], "https://c:6443");
        assert_eq!(kubeconfig["clusters"][0]["cluster"]["extensions"][2]["extension"]["clusterName"], "c");
        kubeconfig["users"][0]["user"]["exec"].clone()
    }

    #[test]
    fn profiles_add_arguments_and_variables_only_where_the_program_allows_it() {
        let known = json!([{"name": "KNOWN", "value": "1"}]);
        let cases = [
            ("", "", json!(["--a"]), known.clone()),
            ("Ignore", "Ignore", json!(["--a"]), known),
            (
                "Append",
                "AppendIfNotExists",
                json!(["--a", "--b"]),
                json!([{"name": "KNOWN", "value": "1"}, {"name": "NEW", "value": "3"}]),
            ),
            ("", "Replace", json!(["--a"]), json!([{"name": "KNOWN", "value": "2"}, {"name": "NEW", "value": "3"}])),
        ];
        for (arguments, variables, wanted_arguments, wanted_variables) in cases {
            let exec = exec(&config(arguments, variables));
            assert_eq!(exec["command"], "plugin");
            assert_eq!(exec["interactiveMode"], "Never");
            assert_eq!(
                (&exec["args"], &exec["env"]),
                (&wanted_arguments, &wanted_variables),
                "{arguments} {variables}"
            );
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let config = config("", "");
        let error = config.kubeconfig(&ClusterProfileStatus::default()).unwrap_err().to_string();
        assert_eq!(error, "the profile lists none of the access providers that this program knows: none, ocm");
        assert!(AccessConfig::from_json("{}").unwrap_err().to_string().contains("providers"));
        assert!(AccessConfig::from_file("/does/not/exist").unwrap_err().to_string().contains("/does/not/exist"));
    }
}
