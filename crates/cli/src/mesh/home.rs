//! What Platform Mesh needs beside a provider's workspace: the Provider that makes the workspace, and the policy that says who may bind.

use std::time::Duration;

use anyhow::Context;
use carrick_client::{Resource, Server};
use carrick_kcp::core::v1alpha1::LogicalCluster;
use data_encoding::BASE64;
use serde_json::json;

use super::flags::MeshFlags;
use super::{CORE, PROVIDERS, api_version};
use crate::provider::plan::{Elsewhere, Side, Wanted};
use crate::provider::target::{Change, Target};
use crate::ui::Observed;

const PAUSE: Duration = Duration::from_millis(200);
/// Where Platform Mesh keeps the workspaces of providers.
pub const HOME: &str = "root:providers";

/// The Provider for an export. Its workspace is named after it, and names of workspaces have no dots.
pub fn provider(export: &str) -> Wanted {
    Wanted {
        side: Side::Workspace,
        object: json!({
            "apiVersion": api_version(PROVIDERS),
            "kind": "Provider",
            "metadata": { "name": provider_name(export) },
            "spec": {},
        }),
    }
}

/// The name of the Provider, and of what is made for it.
pub fn provider_name(export: &str) -> String {
    export.replace('.', "-")
}

/// The Secret that Platform Mesh writes a Provider's kubeconfig into.
pub fn kubeconfig_secret(export: &str) -> String {
    format!("{}-provider-kubeconfig", provider_name(export))
}

/// The workspace that Platform Mesh makes for a Provider.
pub async fn workspace_of(kcp: &Server, home: &str, export: &str) -> anyhow::Result<String> {
    let client = kcp.at_path(&format!("/clusters/{home}"));
    let found: Option<LogicalCluster> =
        client.get_kcp("cluster").await.with_context(|| format!("cannot look into workspace {home}"))?;
    let found = found.with_context(|| format!("there is no workspace {home}"))?;
    let cluster = found.metadata.annotation("kcp.io/cluster").unwrap_or_default();
    Ok(format!("{HOME}:{}-{cluster}", provider_name(export)))
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
    let name = text("name", kubeconfig_secret(export));
    let (namespace, key) = (text("namespace", "default".to_owned()), text("key", "kubeconfig".to_owned()));
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    let what = || format!("Secret {namespace}/{name} in {}, with the kubeconfig of the Provider", home.name);
    let secret = home.client.get(&secrets, Some(&namespace), &name).await.with_context(what)?;
    let content = secret.unwrap_or_default()["data"][&key].as_str().map(|text| BASE64.decode(text.as_bytes()));
    let content = content.with_context(what)?.with_context(what)?;
    Ok((change, String::from_utf8(content).with_context(what)?))
}

/// The policy, if somebody is to be let in.
fn policy(flags: &MeshFlags, export: &str, workspace: &str) -> Option<Wanted> {
    (!flags.allow_path.is_empty()).then(|| Wanted {
        side: Side::Workspace,
        object: json!({
            "apiVersion": api_version(CORE),
            "kind": "APIExportPolicy",
            "metadata": { "name": export },
            "spec": {
                "apiExportRef": { "name": export, "clusterPath": workspace },
                "allowPathExpressions": flags.allow_path,
            },
        }),
    })
}

/// Everything of Platform Mesh that is not in the provider's workspace.
pub fn elsewhere(flags: &MeshFlags, export: &str, workspace: &str) -> Vec<Elsewhere> {
    let provider = flags.provider_in.iter().map(|home| (home.clone(), provider(export)));
    provider.chain(policy(flags, export, workspace).map(|policy| (flags.policy_in.clone(), policy))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::flags::tests::flags;
    use super::*;

    #[test]
    fn a_policy_names_the_export_and_its_workspace() {
        let mesh = MeshFlags { provider_in: Some("root:mine".to_owned()), ..flags(&[":root:orgs:*"]) };
        let all = elsewhere(&mesh, "example.com", "root:providers:p");
        let shown: Vec<(&str, String)> = all.iter().map(|(path, wanted)| (path.as_str(), wanted.shown())).collect();
        let wanted =
            [("root:mine", "Provider example-com".to_owned()), ("root:orgs", "APIExportPolicy example.com".to_owned())];
        assert_eq!(shown, wanted);
        let spec = &all[1].1.object["spec"];
        assert_eq!(spec["apiExportRef"], json!({ "name": "example.com", "clusterPath": "root:providers:p" }));
        assert_eq!(elsewhere(&flags(&[]), "e", "w").len(), 0, "nobody is let in unless it is said");
    }
}
