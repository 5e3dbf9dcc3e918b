//! Creating workspaces and granting administrator rights on them.

use std::time::Duration;

use anyhow::Context;
use carrick_client::{Resource, Server};
use carrick_kcp::tenancy::v1alpha1::Workspace;
use serde_json::{Value, json};

const PAUSE: Duration = Duration::from_millis(10);

/// Creates a workspace and its parents, and waits until they are ready. Existing ones stay as they are.
pub async fn ensure(admin: &Server, path: &str) -> anyhow::Result<()> {
    for (at, _) in path.match_indices(':') {
        let (parent, rest) = (&path[..at], &path[at + 1..]);
        let name = rest.split(':').next().unwrap_or_default();
        let client = admin.at_path(&format!("/clusters/{parent}"));
        match client.create_kcp(&Workspace::new(name)).await {
            Err(error) if !error.is_already_exists() => {
                return Err(error).with_context(|| format!("cannot create workspace {parent}:{name}"));
            }
            _ => {}
        }
        loop {
            let found: Option<Workspace> = client.get_kcp(name).await?;
            if found.is_some_and(|workspace| workspace.is_ready()) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
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
