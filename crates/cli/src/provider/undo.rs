//! Takes away what was made, unless somebody uses it.

use std::process::ExitCode;

use anyhow::{Context, bail};
use carrick_client::{ListOptions, Resource};
use carrick_kcp::apis::v1alpha1::{ApiBinding, ApiExportEndpointSlice};
use serde_json::Value;

use super::plan::{Side, Wanted};
use super::{Setup, everywhere, login, plan};
use crate::agent_flags::deployment::{self, Installed};
use crate::ui::{Done, Failed, Step, Ui};
use crate::workspaces;

/// Deletes everything that bears the label of this command, the last first.
pub async fn undo(ui: &Ui, setup: &Setup, force: bool) -> anyhow::Result<Result<ExitCode, Failed>> {
    let path = &setup.plan.choices.workspace;
    let exists = workspaces::exists(&setup.kcp.server, path).await?;
    if exists && !force {
        let users = bindings(setup).await?;
        if !users.is_empty() {
            bail!(
                "consumers have bound APIExport {}: {}; ask them to delete their APIBindings, see who orders what with \
                 carrick withdraw, or say --force, which leaves their objects behind",
                setup.plan.export,
                users.join(", ")
            );
        }
    }
    refuse_running_agent(setup).await?;
    Ok(take_away(ui, setup, exists).await)
}

async fn take_away(ui: &Ui, setup: &Setup, exists: bool) -> Result<ExitCode, Failed> {
    let plan = &setup.plan;
    let path = &plan.choices.workspace;
    let mut objects = vec![login::secret_named(&plan.choices.namespace, &plan.secret)];
    objects.extend(plan.objects.iter().rev().cloned());
    for (side, what) in [(Side::Service, "on the service cluster"), (Side::Workspace, "in kcp")] {
        if side == Side::Workspace && !exists {
            continue;
        }
        let target = setup.target(side);
        ui.step(Step::new(format!("objects {what}"), "all that was made is gone"), async |seen| {
            let mut lines = Vec::new();
            for one in objects.iter().filter(|one| one.side == side) {
                if is_shared(one) && still_used(setup).await? {
                    lines.push(format!("kept      {}: there are other PublishedResources", one.shown()));
                } else if target.remove(one, seen).await? {
                    lines.push(format!("deleted   {}", one.shown()));
                }
            }
            Ok(Done::new(format!("took away what was made {what}")).details(lines))
        })
        .await?;
    }
    if !plan.elsewhere.is_empty() {
        ui.step(Step::new("objects of Platform Mesh", "all that was made is gone"), async |seen| {
            let mut lines = Vec::new();
            for (path, wanted) in plan.elsewhere.iter().rev() {
                if setup.kcp.workspace(path).remove(wanted, seen).await? {
                    lines.push(format!("deleted   {} in workspace {path}", wanted.shown()));
                }
            }
            Ok(Done::new("took away what was made for Platform Mesh").details(lines))
        })
        .await?;
    }
    ui.step(Step::new(format!("workspace {path}"), "the workspace is gone, if it was made"), async |_| {
        let gone = workspaces::remove_marked(&setup.kcp.server, path, plan::mark()).await?;
        Ok(Done::new(if !exists {
            format!("there is no workspace {path}")
        } else if gone.is_empty() {
            format!("workspace {path} stays: it was there before, or others use it")
        } else {
            format!("deleted workspace {}", gone.join(", "))
        }))
    })
    .await?;
    Ok(ExitCode::SUCCESS)
}

/// Whether other agents may need an object: the CRD of PublishedResources, and the namespace.
fn is_shared(wanted: &Wanted) -> bool {
    wanted.side == Side::Service && matches!(wanted.text("/kind"), "CustomResourceDefinition" | "Namespace")
}

/// Whether there are PublishedResources left.
async fn still_used(setup: &Setup) -> anyhow::Result<bool> {
    let all = Resource::cluster_wide(
        carrick_syncagent::api::GROUP,
        carrick_syncagent::api::VERSION,
        "PublishedResource",
        "publishedresources",
    );
    match setup.service.client.list(&all, None, &ListOptions::default()).await {
        Ok(left) => Ok(!left.is_empty()),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error).context("cannot list PublishedResources on the service cluster"),
    }
}

/// Who has bound the export: workspaces and the names of their bindings.
async fn bindings(setup: &Setup) -> anyhow::Result<Vec<String>> {
    let export = &setup.plan.export;
    let slice: Option<ApiExportEndpointSlice> = setup
        .workspace
        .client
        .get_kcp(export)
        .await
        .with_context(|| format!("cannot read APIExportEndpointSlice {export} in {}", setup.workspace.name))?;
    let mut users = Vec::new();
    for endpoint in slice.unwrap_or_default().status.endpoints {
        let client = everywhere(&setup.kcp.server, &endpoint.url)?;
        let found: Vec<ApiBinding> = client.list_kcp(&ListOptions::default()).await.with_context(|| {
            format!("cannot see who has bound the export at {}; with --force nobody is asked", endpoint.url)
        })?;
        users.extend(found.iter().filter(|binding| is_of(binding, export)).map(|binding| {
            let place = binding.metadata.annotation("kcp.io/path").or(binding.metadata.annotation("kcp.io/cluster"));
            format!("{} in {}", binding.metadata.name, place.unwrap_or("an unknown workspace"))
        }));
    }
    Ok(users)
}

fn is_of(binding: &ApiBinding, export: &str) -> bool {
    let value = serde_json::to_value(binding).unwrap_or_default();
    value.pointer("/spec/reference/export/name").and_then(Value::as_str) == Some(export)
}

/// An agent that runs would write again what is taken away.
async fn refuse_running_agent(setup: &Setup) -> anyhow::Result<()> {
    let namespace = &setup.plan.choices.namespace;
    let found = deployment::find(&setup.service.client, namespace, &setup.plan.export).await;
    match found.with_context(|| format!("cannot list Deployments in namespace {namespace}"))? {
        None => Ok(()),
        Some(installed) => bail!(
            "the agent is installed, as Deployment {namespace}/{}, and would go on without any rights; first run\n  {}",
            installed.name,
            uninstall(&installed, setup)
        ),
    }
}

/// The command that takes the agent away.
fn uninstall(installed: &Installed, setup: &Setup) -> String {
    let kubeconfig = setup.kubeconfig.as_ref().map(|file| format!(" --kubeconfig {}", file.display()));
    let (kubeconfig, namespace) = (kubeconfig.unwrap_or_default(), &setup.plan.choices.namespace);
    match &installed.release {
        Some((release, home)) => format!("helm{kubeconfig} uninstall {release} -n {home}"),
        None => format!("kubectl{kubeconfig} delete deployment {} -n {namespace}", installed.name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_others_may_need_is_looked_at_twice() {
        let wanted = |side, kind: &str| Wanted { side, object: json!({ "kind": kind }) };
        assert!(is_shared(&wanted(Side::Service, "Namespace")));
        assert!(!is_shared(&wanted(Side::Service, "ClusterRole")));
        assert!(!is_shared(&wanted(Side::Workspace, "CustomResourceDefinition")));
    }
}
