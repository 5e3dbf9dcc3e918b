//! What an agent may do: the rights that its documentation asks for, given and taken back.

use carrick_client::{Client, DeleteOptions, ListOptions, Server};
use carrick_kcp::kinds::API_EXPORT_ENDPOINT_SLICE;
use serde_json::{Value, json};

use crate::kinds;
use crate::stage::Stage;
use crate::world::{AGENT, User};

/// What the documentation asks for on the service cluster.
pub fn service_rules(group: &str) -> Value {
    json!([
        rule(&["apiextensions.k8s.io"], &["customresourcedefinitions"], "get list watch"),
        rule(&["syncagent.kcp.io"], &["publishedresources"], "get list watch"),
        rule(&["syncagent.kcp.io"], &["publishedresources/status"], "get update patch"),
        rule(&[""], &["namespaces"], "get list watch create"),
        rule(&[""], &["events"], "create update patch"),
        rule(&[""], &["secrets"], "get list watch create update"),
        rule(&[group], &["buckets"], "get list watch create update patch delete"),
    ])
}

/// What the documentation asks for in the workspace of the export.
pub fn kcp_rules(export: &str) -> Value {
    let named = |mut rule: Value, name: &str| {
        rule["resourceNames"] = json!([name]);
        rule
    };
    json!([
        { "nonResourceURLs": ["/"], "verbs": ["access"] },
        named(rule(&["core.kcp.io"], &["logicalclusters"], "get"), "cluster"),
        named(rule(&["apis.kcp.io"], &["apiexportendpointslices"], "get list watch"), export),
        named(rule(&["apis.kcp.io"], &["apiexports"], "get list watch update patch"), export),
        named(rule(&["apis.kcp.io"], &["apiexports/content"], "*"), export),
        rule(&["apis.kcp.io"], &["apiresourceschemas"], "get list watch create"),
        rule(&[""], &["events"], "get create update patch"),
    ])
}

/// A rule; verbs are separated by spaces.
pub fn rule(groups: &[&str], resources: &[&str], verbs: &str) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs.split(' ').collect::<Vec<_>>() })
}

/// Gives the rules to the agent's user.
pub async fn grant(stage: &Stage, client: &Client, rules: &Value) -> anyhow::Result<()> {
    let (api, name) = ("rbac.authorization.k8s.io", stage.agent_name());
    let api_version = format!("{api}/v1");
    let metadata = json!({ "name": name });
    let role = json!({ "apiVersion": api_version, "kind": "ClusterRole", "metadata": metadata, "rules": rules });
    client.create(&kinds::cluster_roles(), None, &role).await?;
    let binding = json!({
        "apiVersion": api_version,
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": { "apiGroup": api, "kind": "ClusterRole", "name": name },
        "subjects": [{ "apiGroup": api, "kind": "User", "name": AGENT }],
    });
    client.create(&kinds::cluster_role_bindings(), None, &binding).await?;
    Ok(())
}

/// Takes back what was granted: on real servers all scenarios share the agent's user.
pub async fn revoke(stage: &Stage, client: &Client) -> anyhow::Result<()> {
    let (name, everything) = (stage.agent_name(), DeleteOptions::default());
    client.delete(&kinds::cluster_role_bindings(), None, &name, &everything).await?;
    client.delete(&kinds::cluster_roles(), None, &name, &everything).await?;
    Ok(())
}

/// Waits until both servers know what the agent may do, which takes them a moment: its first request should not be refused.
pub async fn are_known(stage: &Stage) -> anyhow::Result<()> {
    let kcp = stage.world.kcp_kubeconfig(User::Agent, &stage.provider.path);
    let kcp = Server::from_kubeconfig_yaml(&kcp)?.client();
    let service = Server::from_kubeconfig_yaml(&stage.world.service_kubeconfig(User::Agent))?.client();
    stage
        .eventually("the agent has its rights", async || {
            kcp.get(&kinds::kcp(&API_EXPORT_ENDPOINT_SLICE), None, stage.export_name()).await?;
            service.list(&kinds::published_resources(), None, &ListOptions::default()).await?;
            Ok(())
        })
        .await
}
