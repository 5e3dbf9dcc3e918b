//! Takes away what was made, unless somebody uses it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use carrick_client::{ListOptions, Resource};
use carrick_kcp::apis::v1alpha1::ApiExportEndpointSlice;
use carrick_kcp::apis::v1alpha2::ApiBinding;
use serde_json::Value;

use super::args::UndoFlags;
use super::plan::{Side, Wanted};
use super::standing::Running;
use super::{Setup, everywhere, login, plan, standing};
use crate::agent_flags::deployment::{self, Installed};
use crate::mesh::{broker, served};
use crate::ui::{Done, Failed, Step, Ui, confirmed, typed};
use crate::workspaces;

/// kcp takes its time to delete workspaces and what is in them.
const PATIENCE: Duration = Duration::from_mins(15);

/// Deletes everything that bears the label of this command, the last first.
pub async fn undo(ui: &Ui, setup: &Setup, args: &UndoFlags, dry_run: bool) -> anyhow::Result<Result<ExitCode, Failed>> {
    let path = &setup.plan.choices.workspace;
    if let Some(standing) = standing::read(setup).await?
        && let Some(why) = standing.leads_elsewhere(setup).await
    {
        bail!("{why}; nothing was deleted. To take away that one, name its workspace with --workspace");
    }
    let exists = workspaces::exists(&setup.kcp.server, path).await?;
    if exists && !args.force {
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
    refuse_running_agent(setup, args.force).await?;
    let doomed = doomed(setup, exists).await?;
    if dry_run {
        for (wanted, place, fate) in &doomed {
            ui.line(format_args!("{fate} {} {place}", wanted.shown()));
        }
        return Ok(Ok(ExitCode::SUCCESS));
    }
    if !is_meant(setup, args, &doomed).await? {
        ui.line("Nothing was deleted.");
        return Ok(Err(Failed));
    }
    Ok(take_away(ui, setup, exists).await)
}

/// Whether a person wants all of it deleted. State of orders is deleted only on a word that nobody types by accident.
async fn is_meant(setup: &Setup, args: &UndoFlags, doomed: &[Doomed]) -> anyhow::Result<bool> {
    let (export, states) = (&setup.plan.export, standing::states(setup).await?);
    if states > 0 {
        let what = format!(
            "the agent's namespace {} keeps the state of {states} orders; without it their copies stay for ever, or are \
             deleted by hand",
            setup.plan.choices.namespace
        );
        return match &args.delete_state {
            Some(word) if word == export => Ok(true),
            Some(word) => bail!("{what}; --delete-state {word} is not the name of the APIExport, which is {export}"),
            None => {
                typed(export, &format!("{what}.")).with_context(|| format!("{what}; --delete-state {export} goes on"))
            }
        };
    }
    let count = doomed.iter().filter(|(_, _, fate)| *fate == DELETE).count();
    let question =
        format!("Delete {count} objects and, if it was made for them, workspace {}?", setup.plan.choices.workspace);
    Ok(args.yes || confirmed(&question)?)
}

const DELETE: &str = "delete   ";

/// An object, where it is, and what would happen to it.
type Doomed = (Wanted, String, &'static str);

/// What would be deleted, and what stays.
async fn doomed(setup: &Setup, exists: bool) -> anyhow::Result<Vec<Doomed>> {
    let mut doomed = Vec::new();
    for wanted in made(setup) {
        if wanted.side == Side::Workspace && !exists {
            continue;
        }
        let found = setup.target(wanted.side).get(&wanted).await?;
        let fate = match &found {
            None => continue,
            Some(found) if plan::is_marked(found) => DELETE,
            Some(_) => "keep     ",
        };
        let place = wanted.side.shown().to_owned();
        doomed.push((wanted, place, fate));
    }
    for (path, wanted) in setup.plan.elsewhere.iter().rev() {
        if setup.kcp.workspace(path).get(wanted).await?.is_some_and(|found| plan::is_marked(&found)) {
            doomed.push((wanted.clone(), format!("in workspace {path}"), DELETE));
        }
    }
    Ok(doomed)
}

/// All that the command makes, the last first.
fn made(setup: &Setup) -> Vec<Wanted> {
    let mut objects = vec![login::secret_named(&setup.plan.choices.namespace, &setup.plan.secret)];
    objects.extend(setup.plan.objects.iter().rev().cloned());
    objects.extend(broker::left(&setup.plan.agent));
    // What it brings goes last.
    objects.extend(setup.portal.then(served::binding));
    objects
}

async fn take_away(ui: &Ui, setup: &Setup, exists: bool) -> Result<ExitCode, Failed> {
    let plan = &setup.plan;
    let path = &plan.choices.workspace;
    let objects = made(setup);
    for (side, what) in [(Side::Service, "on the service cluster"), (Side::Workspace, "in kcp")] {
        if side == Side::Workspace && !exists {
            continue;
        }
        let target = setup.target(side);
        let step = Step::new(format!("objects {what}"), "all that was made is gone").limit(PATIENCE);
        ui.step(step, async |seen| {
            let mut lines = Vec::new();
            for one in objects.iter().filter(|one| one.side == side) {
                if is_shared(one) && still_used(setup).await? {
                    lines.push(format!("kept      {}: there are other PublishedResources", one.shown()));
                } else if broker::is_binding(one) && broker::is_used(target, &plan.export).await? {
                    // With it the AcceptAPIs of other providers would go, and their orders.
                    lines.push(format!("kept      {}: there are other APIExports", one.shown()));
                } else if target.remove(one, seen).await? {
                    lines.push(format!("deleted   {}", one.shown()));
                }
            }
            Ok(Done::new(format!("took away what was made {what}")).details(lines))
        })
        .await?;
    }
    if !plan.elsewhere.is_empty() {
        let step = Step::new("objects of Platform Mesh", "all that was made is gone").limit(PATIENCE);
        ui.step(step, async |seen| {
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
    let step = Step::new(format!("workspace {path}"), "the workspace is gone, if it was made").limit(PATIENCE);
    ui.step(step, async |_| {
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

/// The kind of PublishedResources.
pub fn published_resources() -> Resource {
    use carrick_syncagent::api::{GROUP, VERSION};
    Resource::cluster_wide(GROUP, VERSION, "PublishedResource", "publishedresources")
}

/// Whether there are PublishedResources left.
async fn still_used(setup: &Setup) -> anyhow::Result<bool> {
    match setup.service.client.list(&published_resources(), None, &ListOptions::default()).await {
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
        let found: Vec<ApiBinding> = client.list_newest(&ListOptions::default()).await.with_context(|| {
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
async fn refuse_running_agent(setup: &Setup, force: bool) -> anyhow::Result<()> {
    let namespace = &setup.plan.choices.namespace;
    let found = deployment::find(&setup.service.client, namespace, &setup.plan.export).await;
    if let Some(installed) = found.with_context(|| format!("cannot list Deployments in namespace {namespace}"))? {
        bail!(
            "the agent is installed, as Deployment {namespace}/{}, and would go on without any rights; first run\n  {}",
            installed.name,
            uninstall(&installed, setup)
        );
    }
    let agent = &setup.plan.agent;
    match standing::running(setup).await? {
        Some(Running::Leads(place)) => {
            bail!("agent {agent} runs at {place} and would go on without any rights; stop it first")
        }
        Some(Running::Seen(place, seconds)) if !force => bail!(
            "agent {agent} was seen at {place} {seconds} s ago and would go on without any rights; stop it first. If it is \
             stopped, say --force; five minutes after its last sign of life it counts as stopped"
        ),
        _ => Ok(()),
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
