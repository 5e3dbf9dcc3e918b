//! Whether a workspace is one that Platform Mesh takes for a provider's: of the right type, with the mesh's kinds in it.

use std::time::Duration;

use anyhow::{Context, bail};
use carrick_client::discovery::find_kind;
use carrick_client::{Client, ListOptions, Server};
use carrick_kcp::apis::ExportReference;
use carrick_kcp::apis::v1alpha2::{AcceptablePermissionClaim, ApiBinding, ApiExport};
use carrick_kcp::tenancy::v1alpha1::{WorkspaceType, WorkspaceTypeReference};
use serde_json::{Value, json};

use super::home::HOME;
use super::{CORE, PROVIDERS, UI};
use crate::provider::plan::{Elsewhere, Side, Wanted};
use crate::provider::target::{Change, Target};
use crate::ui::Observed;

const PAUSE: Duration = Duration::from_millis(100);
/// The workspace with the mesh's own exports.
const SYSTEM: &str = "root:platform-mesh-system";
/// Where the mesh's types of workspaces are.
const TYPES: &str = "root";
/// The type of a provider's workspace.
const PROVIDER: &str = "provider";

/// The type that a new workspace must have: below the mesh's home of providers no other is let in. None elsewhere, and where kcp has no such type.
pub async fn type_of(kcp: &Server, path: &str) -> anyhow::Result<Option<WorkspaceTypeReference>> {
    let (parent, _) = carrick_kcp::path::split(path);
    if parent != Some(HOME) {
        return Ok(None);
    }
    let root = kcp.at_path(&format!("/clusters/{TYPES}"));
    match root.get_kcp::<WorkspaceType>(PROVIDER).await {
        Ok(found) => Ok(found.map(|_| typed())),
        // Whoever may not look may still create.
        Err(error) if error.is_forbidden() => Ok(Some(typed())),
        Err(error) => Err(error).with_context(|| format!("cannot read WorkspaceType {PROVIDER} in {TYPES}")),
    }
}

fn typed() -> WorkspaceTypeReference {
    WorkspaceTypeReference::new(TYPES, PROVIDER)
}

/// The workspace itself, for people who create it by hand; only where it needs a type.
pub fn workspace(path: &str) -> Option<Elsewhere> {
    let (parent, name) = carrick_kcp::path::split(path);
    let parent = parent.filter(|parent| *parent == HOME)?;
    let object = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": { "name": name },
        "spec": { "type": { "name": PROVIDER, "path": TYPES } },
    });
    Some((parent.to_owned(), Wanted { side: Side::Workspace, object }))
}

/// The binding of the portal's kinds, where it was made by hand.
pub fn binding() -> Wanted {
    let object = json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": UI } });
    Wanted { side: Side::Workspace, object }
}

/// Waits until all of the mesh's kinds that are wanted are served; binds those of the portal, if their export can be seen. Returns lines for people.
pub async fn ensure(kcp: &Server, target: &Target, wanted: &[Wanted], seen: &Observed) -> anyhow::Result<Vec<String>> {
    let (mut lines, mut tried) = (Vec::new(), false);
    loop {
        let missing = missing(&target.client, wanted).await?;
        let Some((group, kind)) = missing.first() else { break };
        let is_coming = (tried && group == UI) || is_bound(&target.client, group).await?;
        if !is_coming {
            let binding = if group == UI { from_the_system(kcp).await? } else { None };
            let Some(binding) = binding else { bail!("{}", unbound(target, group, kind)) };
            if target.ensure(&binding, seen).await? == Change::Create {
                lines.push(format!("create    {}", binding.shown()));
            }
            tried = true;
        }
        seen.note(format_args!("{} does not serve {kind} of {group} yet", target.name));
        tokio::time::sleep(PAUSE).await;
    }
    if find_kind(&target.client, PROVIDERS, "ProviderPermissions").await?.is_none() {
        lines.push(format!(
            "note: {PROVIDERS} is not bound in {}; until it is, Platform Mesh makes no authorization model for whoever binds \
             the export",
            target.name
        ));
    }
    Ok(lines)
}

/// The mesh's kinds among what is wanted that nobody serves, by group.
async fn missing(client: &Client, wanted: &[Wanted]) -> anyhow::Result<Vec<(String, String)>> {
    let mut missing = Vec::new();
    for one in wanted {
        let ((group, version), kind) = (one.api(), one.text("/kind"));
        let is_known = missing.iter().any(|(_, known)| known == kind);
        if is_known || !(group == UI || group == PROVIDERS) {
            continue;
        }
        let found = find_kind(client, group, kind).await.with_context(|| format!("cannot ask for {kind}"))?;
        if found.and_then(|found| found.resource(version)).is_none() {
            missing.push((group.to_owned(), kind.to_owned()));
        }
    }
    Ok(missing)
}

/// Whether a binding brings a group, now or in a moment: discovery follows bindings with a delay.
async fn is_bound(client: &Client, group: &str) -> anyhow::Result<bool> {
    let bindings: Vec<ApiBinding> =
        client.list_newest(&ListOptions::default()).await.context("cannot list APIBindings")?;
    Ok(bindings.iter().any(|binding| {
        let export = &binding.spec.reference.export;
        // The export of accounts has the portal's kinds, too, until they have one of their own.
        let is_candidate = export.name == group || (group == UI && export.name == CORE);
        let brings = binding.status.bound_resources.iter().any(|resource| resource.group == group);
        brings || (is_candidate && !binding.is_ready())
    }))
}

/// A binding to the export of the portal's kinds, all claims accepted; none where the mesh has no such export of its own yet, or nobody may see it.
async fn from_the_system(kcp: &Server) -> anyhow::Result<Option<Wanted>> {
    binding_to(kcp, SYSTEM, UI).await
}

/// A binding to an export, with its name and with all claims accepted; none where there is no such export, or nobody may see it.
pub(super) async fn binding_to(kcp: &Server, path: &str, name: &str) -> anyhow::Result<Option<Wanted>> {
    let there = kcp.at_path(&format!("/clusters/{path}"));
    let export: Option<ApiExport> = match there.get_newest(name).await {
        Err(error) if error.is_forbidden() || error.is_not_found() => None,
        found => found.with_context(|| format!("cannot read APIExport {name} in {path}"))?,
    };
    let Some(export) = export else { return Ok(None) };
    let mut binding = ApiBinding::to_export(name, ExportReference::new(path, name));
    binding.spec.permission_claims =
        export.spec.permission_claims.iter().map(AcceptablePermissionClaim::accept).collect();
    let mut object: Value = serde_json::to_value(&binding)?;
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    Ok(Some(Wanted { side: Side::Workspace, object }))
}

/// What to do about a kind that is not served.
fn unbound(target: &Target, group: &str, kind: &str) -> String {
    let exports =
        if group == UI { "ui.platform-mesh.io, or core.platform-mesh.io where there is none," } else { group };
    format!(
        "{} does not serve {kind} of {group}: bind {exports} of {SYSTEM} there. Workspaces of type {PROVIDER} below {HOME} \
         have that from the beginning",
        target.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_workspaces_right_below_the_home_of_providers_need_a_type() {
        let (parent, made) = workspace("root:providers:storage").unwrap();
        assert_eq!((parent.as_str(), made.text("/metadata/name")), ("root:providers", "storage"));
        assert_eq!(made.object["spec"]["type"], json!({ "name": "provider", "path": "root" }));
        for path in ["root", "root:providers", "root:mine", "root:providers:a:b", "2ab3"] {
            assert_eq!(workspace(path), None, "{path}");
        }
    }
}
