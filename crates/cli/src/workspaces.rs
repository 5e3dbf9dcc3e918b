//! Creating workspaces and granting administrator rights on them.

use std::time::Duration;

use anyhow::Context;
use carrick_client::{DeleteOptions, ListOptions, Resource, Server};
use carrick_kcp::core::v1alpha1::LogicalCluster;
use carrick_kcp::kinds::WORKSPACE;
use carrick_kcp::tenancy::v1alpha1::{Workspace, WorkspaceTypeReference};
use serde_json::{Value, json};

const PAUSE: Duration = Duration::from_millis(10);

/// Creates a workspace and its parents, and waits until they are ready. Existing ones stay as they are.
pub async fn ensure(admin: &Server, path: &str) -> anyhow::Result<()> {
    make(admin, path, None, None).await.map(drop)
}

/// The same with a label on those that are created, and a type for the last one; returns their paths. Whoever administers the workspace needs no
/// rights around it.
pub async fn ensure_marked(
    admin: &Server,
    path: &str,
    label: (&str, &str),
    kind: Option<&WorkspaceTypeReference>,
) -> anyhow::Result<Vec<String>> {
    if exists(admin, path).await? { Ok(Vec::new()) } else { make(admin, path, Some(label), kind).await }
}

/// Whether there is a workspace that the user may enter.
pub async fn exists(admin: &Server, path: &str) -> anyhow::Result<bool> {
    match admin.at_path(&format!("/clusters/{path}")).get_kcp::<LogicalCluster>("cluster").await {
        Ok(found) => Ok(found.is_some()),
        Err(error) if error.is_forbidden() || error.is_not_found() => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot look into workspace {path}")),
    }
}

/// Deletes a workspace and its parents as far as they bear a label and hold no other workspaces; returns the paths of those that are gone.
pub async fn remove_marked(admin: &Server, path: &str, label: (&str, &str)) -> anyhow::Result<Vec<String>> {
    let mut gone = Vec::new();
    let mut here = path;
    while let (Some(parent), name) = carrick_kcp::path::split(here) {
        let client = admin.at_path(&format!("/clusters/{parent}"));
        let found: Option<Workspace> = match client.get_kcp(name).await {
            // Whoever may not look there has made nothing there.
            Err(error) if error.is_forbidden() => None,
            found => found.with_context(|| format!("cannot read workspace {here}"))?,
        };
        let is_marked = found.is_some_and(|found| found.metadata.label(label.0) == Some(label.1));
        if !is_marked {
            break;
        }
        let inside: Vec<Workspace> =
            admin.at_path(&format!("/clusters/{here}")).list_kcp(&ListOptions::default()).await.unwrap_or_default();
        if !inside.is_empty() {
            break;
        }
        let workspaces = Resource::cluster_wide(WORKSPACE.group, WORKSPACE.version, WORKSPACE.kind, WORKSPACE.plural);
        match client.delete(&workspaces, None, name, &DeleteOptions::default()).await {
            Err(error) if !error.is_not_found() => {
                return Err(error).with_context(|| format!("cannot delete workspace {here}"));
            }
            _ => {}
        }
        while client.get_kcp::<Workspace>(name).await?.is_some() {
            tokio::time::sleep(PAUSE).await;
        }
        gone.push(here.to_owned());
        here = parent;
    }
    Ok(gone)
}

async fn make(
    admin: &Server,
    path: &str,
    label: Option<(&str, &str)>,
    kind: Option<&WorkspaceTypeReference>,
) -> anyhow::Result<Vec<String>> {
    let mut made = Vec::new();
    for (at, _) in path.match_indices(':') {
        let (parent, rest) = (&path[..at], &path[at + 1..]);
        let name = rest.split(':').next().unwrap_or_default();
        let client = admin.at_path(&format!("/clusters/{parent}"));
        let mut workspace = Workspace::new(name);
        if at + 1 + name.len() == path.len() {
            workspace.spec.type_ = kind.cloned();
        }
        if let Some((key, value)) = label {
            workspace.metadata.set_label(key, value);
        }
        match client.create_kcp(&workspace).await {
            Ok(_) => made.push(format!("{parent}:{name}")),
            Err(error) if error.is_already_exists() => {}
            // The parents may be there and belong to others, who let nobody look.
            Err(error) if error.is_forbidden() && at + 1 + name.len() < path.len() => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot create workspace {parent}:{name}")),
        }
        loop {
            let found: Option<Workspace> = client.get_kcp(name).await?;
            if found.is_some_and(|workspace| workspace.is_ready()) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(made)
}

/// Makes a user the administrator of one workspace.
pub async fn grant_admin(admin: &Server, path: &str, user: &str) -> anyhow::Result<()> {
    let resource =
        Resource::cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings");
    let client = admin.at_path(&format!("/clusters/{path}"));
    match client.create(&resource, None, &admin_binding(user)).await {
        Err(error) if !error.is_already_exists() => {
            Err(error).with_context(|| format!("cannot make {user} an administrator of workspace {path}"))
        }
        _ => Ok(()),
    }
}

fn admin_binding(user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{user}-admin")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}
