//! Flags for Platform Mesh.

use std::path::PathBuf;

use anyhow::bail;

use super::card::Card;
use super::managed::MeshReference;
use super::permissions::Permissions;

/// Flags for Platform Mesh.
#[derive(Debug, clap::Args)]
pub struct MeshFlags {
    /// Also create what Platform Mesh's portal shows: a ProviderMetadata, and a ContentConfiguration for each kind
    #[arg(long, help_heading = HEADING)]
    pub platform_mesh: bool,
    /// What the ProviderMetadata says, in YAML, instead of placeholders: displayName, description, contacts, documentation, icon …
    #[arg(long, value_name = "FILE", requires = "platform_mesh", help_heading = HEADING)]
    pub provider_metadata: Option<PathBuf>,
    /// Picture for the ProviderMetadata; a second one is for dark themes
    #[arg(long, value_name = "FILE", requires = "platform_mesh", help_heading = HEADING)]
    pub icon: Vec<PathBuf>,
    /// Micro frontend on the provider's page in the marketplace; may be repeated, in this order
    #[arg(long, value_name = "URL", requires = "platform_mesh", help_heading = HEADING)]
    pub detail_view: Vec<String>,
    /// Roles of people in the portal, for a ProviderPermissions: its roles and permissions in YAML, with the plurals of kinds as keys
    #[arg(long, value_name = "FILE", requires = "platform_mesh", help_heading = HEADING)]
    pub roles: Option<PathBuf>,
    /// Let a broker bring orders: bind the APIExport acceptapis of this workspace, which is the platform's, and let the agent keep the AcceptAPIs that
    /// PublishedResources ask for in spec.implements.accept
    #[arg(long, value_name = "PATH", help_heading = HEADING)]
    pub broker: Option<String>,
    /// Have Platform Mesh make the workspace: create a Provider in this workspace, which has bound providers.platform-mesh.io
    #[arg(long, value_name = "PATH", requires = "platform_mesh", help_heading = HEADING)]
    pub provider_in: Option<String>,
    /// Have Platform Mesh do all of it: create just a ManagedProvider on the service cluster, for the PlatformMesh of this name. It makes the workspace and
    /// installs --chart, which prepares it
    #[arg(long, value_name = "NAMESPACE/NAME", requires_all = ["platform_mesh", "chart"], help_heading = HEADING,
        conflicts_with_all = ["provider_in", "allow_path", "values", "print_manifests", "implements"])]
    pub managed_by: Option<MeshReference>,
    /// With --managed-by: version of the chart [default: that of this command]
    #[arg(long, value_name = "VERSION", requires = "managed_by", help_heading = HEADING)]
    pub chart_version: Option<String>,
    /// Who may bind the export, in an APIExportPolicy: a path such as :root:orgs:acme, or :root:orgs:* for all; may be repeated
    #[arg(long, value_name = "PATH", requires = "platform_mesh", help_heading = HEADING)]
    pub allow_path: Vec<String>,
    /// Workspace of the APIExportPolicy
    #[arg(long, value_name = "PATH", default_value = ORGS, help_heading = HEADING)]
    pub policy_in: String,
}

/// What a person wants the portal to show and to allow.
pub struct PortalWishes {
    /// What the provider says of itself.
    pub card: Card,
    /// What people may do.
    pub permissions: Option<Permissions>,
}

const HEADING: &str = "Platform Mesh";
/// Where Platform Mesh keeps the workspaces of consumers.
const ORGS: &str = "root:orgs";
const BELOW_ORGS: &str = "root:orgs:";

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
        let paths = [
            ("--provider-in", self.provider_in.as_deref()),
            ("--policy-in", Some(&*self.policy_in)),
            ("--broker", self.broker.as_deref()),
        ];
        for (flag, path) in paths {
            if path.is_some_and(|path| path == "*" || carrick_kcp::path::check(path).is_err()) {
                bail!("{flag} {:?} is no path of a workspace; write it as root:orgs", path.unwrap_or_default());
            }
        }
        if self.icon.len() > 2 {
            bail!(
                "--icon is given {} times; give one picture, or one for light and one for dark themes",
                self.icon.len()
            );
        }
        Ok(())
    }

    /// What was said for the portal; none without Platform Mesh.
    pub fn wishes(&self) -> anyhow::Result<Option<PortalWishes>> {
        if !self.platform_mesh {
            return Ok(None);
        }
        let card = Card::read(self.provider_metadata.as_deref(), &self.icon, &self.detail_view)?;
        Ok(Some(PortalWishes { card, permissions: self.roles.as_deref().map(Permissions::read).transpose()? }))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Flags with just these paths.
    pub fn flags(allow: &[&str]) -> MeshFlags {
        MeshFlags {
            platform_mesh: true,
            provider_metadata: None,
            icon: Vec::new(),
            detail_view: Vec::new(),
            roles: None,
            broker: None,
            provider_in: None,
            managed_by: None,
            chart_version: None,
            allow_path: allow.iter().map(|path| (*path).to_owned()).collect(),
            policy_in: ORGS.to_owned(),
        }
    }

    #[test]
    fn paths_are_checked() {
        for good in [":root:orgs:acme", ":root:orgs:*", ":root:orgs:acme:team:*"] {
            flags(&[good]).check().unwrap();
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
            let error = flags(&[bad]).check().unwrap_err().to_string();
            assert!(error.contains("--allow-path") && error.contains(":root:orgs:*"), "{bad}: {error}");
        }
        let elsewhere = MeshFlags { policy_in: "Root".to_owned(), ..flags(&[]) };
        assert!(elsewhere.check().unwrap_err().to_string().contains("--policy-in"));
        let broker = MeshFlags { broker: Some("root:platform:*".to_owned()), ..flags(&[]) };
        assert!(broker.check().unwrap_err().to_string().contains("--broker"));
    }
}
