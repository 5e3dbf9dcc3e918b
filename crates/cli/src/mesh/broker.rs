//! What a broker needs to find a provider: the platform's AcceptAPIs, bound in the provider's workspace, and the agent's right to keep them.

use std::time::Duration;

use anyhow::Context;
use carrick_client::discovery::find_kind;
use carrick_client::{ListOptions, Resource, Server};
use carrick_kcp::apis::v1alpha2::ApiExport;
use serde_json::{Value, json};

use super::{VERSION, served};
use crate::provider::plan::{ACCOUNTS, Plan, Side, Wanted};
use crate::provider::target::Target;
use crate::ui::Observed;

/// Group of AcceptAPIs.
pub const GROUP: &str = "broker.platform-mesh.io";
const KIND: &str = "AcceptAPI";
pub const PLURAL: &str = "acceptapis";
/// What the agent does with them.
pub const VERBS: &[&str] = &["get", "list", "watch", "create", "update", "delete"];
/// The platform's export of them, and its binding.
const EXPORT: &str = PLURAL;
const ROLES: &str = "rbac.authorization.k8s.io";
const PAUSE: Duration = Duration::from_millis(100);

/// AcceptAPIs.
pub fn accept_apis() -> Resource {
    Resource::cluster_wide(GROUP, VERSION, KIND, PLURAL)
}

/// The binding to the export in the platform's workspace, with all claims accepted, and the agent's rights.
pub async fn objects(kcp: &Server, platform: &str, agent: &str) -> anyhow::Result<Vec<Wanted>> {
    let login =
        "--broker is the path of the platform's workspace, and your login needs the verb get for apiexports there";
    let binding = served::binding_to(kcp, platform, EXPORT).await?;
    let binding = binding
        .with_context(|| format!("there is no APIExport {EXPORT} to be seen in workspace {platform}; {login}"))?;
    let [role, grant] = rights(agent);
    Ok(vec![binding, role, grant])
}

/// The same objects by their names alone, the last first: what may be left of them.
pub fn left(agent: &str) -> Vec<Wanted> {
    let binding = json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": EXPORT } });
    let [role, grant] = rights(agent);
    vec![grant, role, Wanted { side: Side::Workspace, object: binding }]
}

/// Whether an object is the binding, which all providers of a workspace share.
pub fn is_binding(wanted: &Wanted) -> bool {
    wanted.text("/kind") == "APIBinding" && wanted.text("/metadata/name") == EXPORT
}

/// Whether other providers may need the binding: another export is in the workspace.
pub async fn is_used(workspace: &Target, own: &str) -> anyhow::Result<bool> {
    let exports: Vec<ApiExport> = workspace
        .client
        .list_newest(&ListOptions::default())
        .await
        .with_context(|| format!("cannot list APIExports in {}", workspace.name))?;
    Ok(exports.iter().any(|export| export.metadata.name != own))
}

/// Waits until AcceptAPIs are served.
pub async fn served(workspace: &Target, seen: &Observed) -> anyhow::Result<()> {
    loop {
        let found = find_kind(&workspace.client, GROUP, KIND).await;
        let found = found.with_context(|| format!("cannot ask {} for {KIND}", workspace.name))?;
        if found.is_some_and(|found| found.resource(VERSION).is_some()) {
            return Ok(());
        }
        seen.note(format_args!("{} does not serve {KIND} of {GROUP}/{VERSION} yet", workspace.name));
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether a plan is for a broker.
pub fn is_wanted(plan: &Plan) -> bool {
    plan.objects.iter().any(is_binding)
}

/// What is still missing before orders come.
pub fn notes(plan: &Plan) -> Option<String> {
    let accepts = |wanted: &Wanted| !wanted.object["spec"]["implements"]["accept"].is_null();
    let none = !plan.objects.iter().any(accepts);
    none.then(|| {
        "note: no PublishedResource says in spec.implements.accept which orders it takes; none comes yet".to_owned()
    })
}

/// What the agent may do with AcceptAPIs.
fn rights(agent: &str) -> [Wanted; 2] {
    let name = format!("{agent}:{PLURAL}");
    let rule = json!({ "apiGroups": [GROUP], "resources": [PLURAL], "verbs": VERBS });
    let user = format!("system:serviceaccount:{ACCOUNTS}:{agent}");
    let role: Value = json!({
        "apiVersion": format!("{ROLES}/v1"), "kind": "ClusterRole", "metadata": { "name": name }, "rules": [rule],
    });
    let grant = json!({
        "apiVersion": format!("{ROLES}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": ROLES, "kind": "ClusterRole", "name": name },
        "subjects": [{ "apiGroup": ROLES, "kind": "User", "name": user }],
    });
    [role, grant].map(|object| Wanted { side: Side::Workspace, object })
}
