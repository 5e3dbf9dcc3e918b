//! What Platform Mesh needs beside a provider's workspace: the Provider that makes the workspace, and the policy that says who may bind.

use std::time::Duration;

use anyhow::{Context, bail};
use carrick_client::{Resource, Server};
use carrick_kcp::core::v1alpha1::LogicalCluster;
use data_encoding::BASE64;
use serde_json::json;

use super::plan::{Side, Wanted};
use super::target::{Change, Target};
use crate::ui::Observed;

const PAUSE: Duration = Duration::from_millis(200);
/// Where Platform Mesh keeps the workspaces of providers.
const PROVIDERS: &str = "root:providers";

/// Flags for Platform Mesh.
#[derive(Debug, clap::Args)]
pub struct MeshFlags {
    /// Also create what Platform Mesh's portal shows: a ProviderMetadata, and a ContentConfiguration for each kind
    #[arg(long, help_heading = HEADING)]
    pub platform_mesh: bool,
    /// Have Platform Mesh make the workspace: create a Provider in this workspace, which has bound providers.platform-mesh.io
    #[arg(long, value_name = "PATH", requires = "platform_mesh", help_heading = HEADING)]
    pub provider_in: Option<String>,
    /// Who may bind the export, in an APIExportPolicy: a path such as :root:orgs:acme, or :root:orgs:* for all; may be repeated
    #[arg(long, value_name = "PATH", requires = "platform_mesh", help_heading = HEADING)]
    pub allow_path: Vec<String>,
    /// Workspace of the APIExportPolicy
    #[arg(long, value_name = "PATH", default_value = "root:orgs", help_heading = HEADING)]
    pub policy_in: String,
}

/// Where Platform Mesh keeps the workspaces of consumers.
const ORGS: &str = "root:orgs";
const BELOW_ORGS: &str = "root:orgs:";

const HEADING: &str = "Platform Mesh";

impl MeshFlags {
    /// Whether paths can be what they are meant to be.
    pub fn check(&self) -> anyhow::Result<()> {
        for path in &self.allow_path {
            let end = path.strip_suffix(":*").unwrap_or(path);
            let Some(end) = end.strip_prefix(':').filter(|end| carrick_kcp::path::check(end).is_ok()) else {
                bail!(
                    "--allow-path {path:?} is no path expression; write it as :root:orgs:acme, or :root:orgs:* for all"
                );
            };
            // Platform Mesh refuses others, and says so only in the status of the policy.
            let is_below = end.starts_with(BELOW_ORGS) || (end == ORGS && path.ends_with(":*"));
            if !is_below {
                bail!(
                    "--allow-path {path:?} is refused by Platform Mesh, which lets in organisations only; write it as \
                     :root:orgs:acme, or :root:orgs:* for all"
                );
            }
        }
        for (flag, path) in [("--provider-in", self.provider_in.as_deref()), ("--policy-in", Some(&*self.policy_in))] {
            if path.is_some_and(|path| path == "*" || carrick_kcp::path::check(path).is_err()) {
                bail!("{flag} {:?} is no path of a workspace; write it as root:orgs", path.unwrap_or_default());
            }
        }
        Ok(())
    }

    /// The policy, if somebody is to be let in.
    pub fn policy(&self, export: &str, workspace: &str) -> Option<Wanted> {
        (!self.allow_path.is_empty()).then(|| Wanted {
            side: Side::Workspace,
            object: json!({
                "apiVersion": "core.platform-mesh.io/v1alpha1",
                "kind": "APIExportPolicy",
                "metadata": { "name": export },
                "spec": {
                    "apiExportRef": { "name": export, "clusterPath": workspace },
                    "allowPathExpressions": self.allow_path,
                },
            }),
        })
    }
}

/// The Provider for an export. Its workspace is named after it, and names of workspaces have no dots.
pub fn provider(export: &str) -> Wanted {
    Wanted {
        side: Side::Workspace,
        object: json!({
            "apiVersion": "providers.platform-mesh.io/v1alpha1",
            "kind": "Provider",
            "metadata": { "name": provider_name(export) },
            "spec": {},
        }),
    }
}

fn provider_name(export: &str) -> String {
    export.replace('.', "-")
}

/// The workspace that Platform Mesh makes for a Provider.
pub async fn workspace_of(kcp: &Server, home: &str, export: &str) -> anyhow::Result<String> {
    let client = kcp.at_path(&format!("/clusters/{home}"));
    let found: Option<LogicalCluster> =
        client.get_kcp("cluster").await.with_context(|| format!("cannot look into workspace {home}"))?;
    let found = found.with_context(|| format!("there is no workspace {home}"))?;
    let cluster = found.metadata.annotation("kcp.io/cluster").unwrap_or_default();
    Ok(format!("{PROVIDERS}:{}-{cluster}", provider_name(export)))
}

/// Creates the Provider, waits until its workspace is there, and returns the kubeconfig that Platform Mesh has made for it.
pub async fn login(home: &Target, export: &str, seen: &Observed) -> anyhow::Result<(Change, String)> {
    let wanted = provider(export);
    let change = home.ensure(&wanted, seen).await?;
    let found = loop {
        let found = home.get(&wanted).await?.unwrap_or_default();
        if found["status"]["phase"] == "Ready" {
            break found;
        }
        seen.note(format_args!("{} is in phase {}", wanted.shown(), found["status"]["phase"]));
        tokio::time::sleep(PAUSE).await;
    };
    let given = &found["status"]["providerKubeconfigSecretRef"];
    let text = |key: &str, other: String| given[key].as_str().map_or(other, str::to_owned);
    let name = text("name", format!("{}-provider-kubeconfig", provider_name(export)));
    let (namespace, key) = (text("namespace", "default".to_owned()), text("key", "kubeconfig".to_owned()));
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    let what = || format!("Secret {namespace}/{name} in {}, with the kubeconfig of the Provider", home.name);
    let secret = home.client.get(&secrets, Some(&namespace), &name).await.with_context(what)?;
    let content = secret.unwrap_or_default()["data"][&key].as_str().map(|text| BASE64.decode(text.as_bytes()));
    let content = content.with_context(what)?.with_context(what)?;
    Ok((change, String::from_utf8(content).with_context(what)?))
}

/// An object with the place it belongs to.
pub type Elsewhere = (String, Wanted);

/// Everything of Platform Mesh that is not in the provider's workspace.
pub fn elsewhere(flags: &MeshFlags, export: &str, workspace: &str) -> Vec<Elsewhere> {
    let provider = flags.provider_in.iter().map(|home| (home.clone(), provider(export)));
    provider.chain(flags.policy(export, workspace).map(|policy| (flags.policy_in.clone(), policy))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(allow: &[&str], policy_in: &str) -> MeshFlags {
        MeshFlags {
            platform_mesh: true,
            provider_in: Some("root:mine".to_owned()),
            allow_path: allow.iter().map(|path| (*path).to_owned()).collect(),
            policy_in: policy_in.to_owned(),
        }
    }

    #[test]
    fn paths_are_checked() {
        for good in [":root:orgs:acme", ":root:orgs:*", ":root:orgs:acme:team:*"] {
            flags(&[good], "root:orgs").check().unwrap();
        }
        for bad in [
            "root:orgs:acme",
            ":root:orgs:",
            "*",
            ":",
            ":root:*:a",
            "",
            ":root",
            ":root:*",
            ":root:orgs",
            ":root:providers:x",
        ] {
            let error = flags(&[bad], "root:orgs").check().unwrap_err().to_string();
            assert!(error.contains("--allow-path") && error.contains(":root:orgs:*"), "{bad}: {error}");
        }
        assert!(flags(&[], "Root").check().unwrap_err().to_string().contains("--policy-in"));
    }

    #[test]
    fn a_policy_names_the_export_and_its_workspace() {
        let all = elsewhere(&flags(&[":root:orgs:*"], "root:orgs"), "example.com", "root:providers:p");
        let shown: Vec<(&str, String)> = all.iter().map(|(path, wanted)| (path.as_str(), wanted.shown())).collect();
        let wanted =
            [("root:mine", "Provider example-com".to_owned()), ("root:orgs", "APIExportPolicy example.com".to_owned())];
        assert_eq!(shown, wanted);
        let spec = &all[1].1.object["spec"];
        assert_eq!(spec["apiExportRef"], json!({ "name": "example.com", "clusterPath": "root:providers:p" }));
        assert_eq!(elsewhere(&flags(&[], "root:orgs"), "e", "w").len(), 1, "nobody is let in unless it is said");
    }
}
