//! `--keep`: leaves everything running, for a look around with kubectl.

use std::path::{Path, PathBuf};

use super::manifests::{AGENT_NAMESPACE, EXPORT, NAME, NAMESPACE, PROVIDER_PATH, SECRET};
use super::stage::{AGENT, PROVIDER, Stage};
use crate::agent_flags::running::{Note, Running};
use crate::kubeconfig;
use crate::signals::StopSignals;
use crate::ui::{Done, Failed, Step, Ui};

/// Writes kubeconfigs, says what to type, waits for Ctrl-C, and stops.
pub async fn hold(stage: Stage, folder: Option<&Path>, urls: &[String; 2]) -> Result<(), Failed> {
    let ui = stage.ui.clone();
    ui.heading("Everything keeps running");
    let temporary = std::env::temp_dir().join(format!("carrick-demo-{}", std::process::id()));
    let wanted = folder.unwrap_or(&temporary);
    let step = Step::new("writing kubeconfigs", format!("kubeconfigs in {}", wanted.display()))
        .hint("give --data-dir a folder you may write to");
    let written = ui
        .step(step, async |_| {
            let written = write(&stage, wanted)?;
            Ok(Done::new(format!("kubeconfigs are in {}", written.display())).with(written))
        })
        .await?;
    if let Some(agent) = stage.agent() {
        ui.heading("In a browser");
        ui.command(agent.dashboard());
    }
    commands(&ui, &written, &urls[0]);
    let _note = Note::leave(&Running {
        command: "demo".to_owned(),
        kubeconfig: written.join("service.kubeconfig"),
        kcp_kubeconfig: written.join("provider.kubeconfig"),
        slice: EXPORT.to_owned(),
        namespace: AGENT_NAMESPACE.to_owned(),
        agent: AGENT.to_owned(),
        dashboard: stage.agent().map(|agent| agent.dashboard().to_owned()).unwrap_or_default(),
        ..Running::default()
    });
    let signals = StopSignals::listen();
    ui.line("\nRunning until Ctrl-C.");
    tokio::select! {
        told = async { signals?.next().await } => if let Err(error) = told {
            ui.line(format_args!("stopping at once: {error:#}"));
        },
        problem = ended(&stage) => ui.line(format_args!("stopping: the agent ended: {problem}")),
    }
    ui.line("");
    let stopped = stage.stop().await;
    if folder.is_none() {
        // The servers are gone, so the tokens are worthless; a leftover file does no harm.
        let _ = std::fs::remove_dir_all(&temporary);
    }
    stopped
}

/// Waits until the agent exits unexpectedly, and says why.
async fn ended(stage: &Stage) -> String {
    match stage.agent() {
        Some(agent) => agent.ended().await,
        None => std::future::pending().await,
    }
}

fn write(stage: &Stage, folder: &Path) -> anyhow::Result<PathBuf> {
    let folder = kubeconfig::folder(folder)?;
    let put = |name: &str, text: String| kubeconfig::write(&folder.join(format!("{name}.kubeconfig")), &text);
    for team in &stage.teams {
        put(team.name, stage.kcp.kubeconfig(team.name, Some(team.path))?)?;
    }
    put("provider", stage.kcp.kubeconfig(PROVIDER, Some(PROVIDER_PATH))?)?;
    put("service", stage.service.kubeconfig("admin", None)?)?;
    put("kcp-admin", stage.kcp.kubeconfig("kcp-admin", None)?)?;
    Ok(folder)
}

fn commands(ui: &Ui, folder: &Path, url: &str) {
    let kubectl = |name: &str, rest: &str| {
        ui.command(&format!("kubectl --kubeconfig {}/{name}.kubeconfig {rest}", folder.display()));
    };
    ui.heading("As the consumer team-a");
    kubectl("team-a", "get httpbins");
    kubectl("team-a", &format!("get secret {SECRET} -o yaml"));
    kubectl("team-a", "get events");
    ui.command(&format!("curl {url}/get"));
    ui.heading("As the provider, on the service cluster");
    kubectl("service", "get publishedresources");
    kubectl("service", "get httpbins -A --show-labels");
    kubectl("service", "get secrets -A");
    ui.heading("As the provider, in kcp");
    kubectl("provider", "get apiexports,apiresourceschemas");
    ui.heading("What carrick says of it, without flags");
    ui.command("carrick doctor");
    ui.command(&format!("carrick trace {NAMESPACE}/{NAME}"));
    ui.command("carrick top");
    ui.heading("Change something and watch it travel");
    kubectl("team-a", &format!("patch httpbin {NAME} --type merge -p '{{\"spec\":{{\"region\":\"ap-south\"}}}}'"));
    kubectl("team-a", "get httpbins -w");
    ui.command(&format!("curl {url}/get"));
    kubectl("team-a", &format!("delete httpbin {NAME}"));
}
