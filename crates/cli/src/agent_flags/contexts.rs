//! The other contexts of a kubeconfig: whoever works with several clusters has the agent's among them, but perhaps not as the current one.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use crate::kubeconfig::Temporary;

/// Keys whose values are paths, relative to the kubeconfig.
const PATHS: [&str; 4] = ["certificate-authority", "client-certificate", "client-key", "tokenFile"];

/// The file behind --kubeconfig: the one given, else $KUBECONFIG if that is one file, else the usual one.
fn file(given: &str) -> Option<PathBuf> {
    if !given.is_empty() {
        return Some(given.into());
    }
    match std::env::var("KUBECONFIG") {
        Ok(files) if !files.is_empty() => Some(PathBuf::from(files)).filter(|file| file.is_file()),
        _ => Some(std::env::home_dir()?.join(".kube").join("config")),
    }
}

fn read(given: &str) -> anyhow::Result<(PathBuf, Value)> {
    let path = file(given).context("--context needs one kubeconfig; name it with --kubeconfig")?;
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let config = carrick_json::yaml::value(&text).with_context(|| format!("{} is no kubeconfig", path.display()))?;
    Ok((path, config))
}

/// The current context.
pub fn current(given: &str) -> Option<String> {
    read(given).ok()?.1["current-context"].as_str().map(str::to_owned)
}

/// The contexts that are not the current one and can be tried: no program asks anybody to log in.
pub fn others(given: &str) -> Vec<String> {
    let Ok((_, config)) = read(given) else { return Vec::new() };
    let entries = |key: &str| config[key].as_array().cloned().unwrap_or_default();
    let is_silent = |user: &Value| {
        let users = entries("users");
        let found = users.iter().find(|it| it["name"] == *user).map(|it| &it["user"]);
        found.is_some_and(|user| user["exec"].is_null() && user["auth-provider"].is_null())
    };
    let others = entries("contexts").into_iter().filter(|it| it["name"] != config["current-context"]);
    let silent = others.filter(|it| is_silent(&it["context"]["user"]));
    silent.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect()
}

/// The same kubeconfig with another current context, for programs that know no contexts.
pub fn with_current(given: &str, context: &str) -> anyhow::Result<Temporary> {
    let (path, mut config) = read(given)?;
    let known = config["contexts"].as_array().is_some_and(|all| all.iter().any(|it| it["name"] == context));
    anyhow::ensure!(known, "{} has no context {context:?}; see kubectl config get-contexts", path.display());
    config["current-context"] = Value::from(context);
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or(folder);
    for (list, one) in [("clusters", "cluster"), ("users", "user")] {
        for entry in config[list].as_array_mut().into_iter().flatten() {
            for key in PATHS {
                if let Some(value) = entry[one].get_mut(key)
                    && let Some(text) = value.as_str().filter(|text| !text.is_empty())
                {
                    *value = Value::from(folder.join(text).display().to_string());
                }
            }
        }
    }
    Temporary::new(config.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "
current-context: a
clusters:
- {name: x, cluster: {server: 'https://h:1', certificate-authority: ca.crt}}
users:
- {name: u, user: {token: t, client-key: /k}}
- {name: asks, user: {exec: {command: login}}}
contexts:
- {name: a, context: {cluster: x, user: u}}
- {name: b, context: {cluster: x, user: u}}
- {name: c, context: {cluster: x, user: asks}}
";

    #[test]
    fn other_contexts_are_tried_unless_somebody_would_be_asked_to_log_in() {
        let kept = Temporary::new(CONFIG.as_bytes()).unwrap();
        let name = kept.path().display().to_string();
        assert_eq!(others(&name), ["b"]);
        assert!(with_current(&name, "d").unwrap_err().to_string().contains("get-contexts"));
        let other = with_current(&name, "b").unwrap();
        let config: Value = serde_json::from_slice(&std::fs::read(other.path()).unwrap()).unwrap();
        assert_eq!(config["current-context"], "b");
        let folder = kept.path().parent().unwrap().canonicalize().unwrap();
        let authority = folder.join("ca.crt").display().to_string();
        assert_eq!(config["clusters"][0]["cluster"]["certificate-authority"], authority);
        assert_eq!(config["users"][0]["user"]["client-key"], "/k");
    }
}
