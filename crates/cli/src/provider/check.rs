//! What was set up, seen by the doctor.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use carrick_syncagent::rules::renewal;

use super::Setup;
use super::args::UpArgs;
use super::login::Login;
use crate::agent_flags::AgentFlags;
use crate::doctor::facts::{FixLogin, SecretKey};
use crate::{doctor, kubeconfig};

/// How long an address of kcp has for an answer before another one is used.
const REACH: Duration = Duration::from_secs(3);

/// The doctor's view. Amber is fine here: before the agent is installed and somebody has bound the export, there is no other.
pub async fn check(setup: &Setup, args: &UpArgs, login: &Login) -> anyhow::Result<ExitCode> {
    let file = kubeconfig::Temporary::new(login.kubeconfig_from_here.as_bytes())?;
    let plan = &setup.plan;
    let agents = SecretKey {
        namespace: plan.choices.namespace.clone(),
        name: plan.secret.clone(),
        key: renewal::KEY.to_owned(),
    };
    let flags = AgentFlags {
        kubeconfig: shown(args.offer.kubeconfig.as_deref()),
        kcp_kubeconfig: file.path().display().to_string(),
        apiexportendpointslice_ref: plan.export.clone(),
        namespace: plan.choices.namespace.clone(),
        agent_name: plan.agent.clone(),
        apiexport_hostport_override: setup.overrides.clone(),
        renew_kcp_token: plan.secret.clone(),
        published_resource_selector: plan.selector(),
        login: match args.mesh.provider_in {
            None => FixLogin::Own { file: shown(args.kcp_kubeconfig.as_deref()), agents },
            // The kubeconfig that was given is not for the workspace that Platform Mesh has made.
            Some(_) => FixLogin::InSecret(agents),
        },
        ..AgentFlags::default()
    };
    doctor::report_on(&flags).await
}

fn shown(path: Option<&Path>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// Of the addresses for the agent, those that are needed here, too, because nobody answers at the ones of kcp. The agent may be where they are the only
/// way, or where they lead nowhere from here.
pub async fn needed_here(overrides: &[String]) -> Vec<String> {
    let mut needed = Vec::new();
    for text in overrides {
        let published = text.split('=').next().unwrap_or_default();
        let answered = tokio::time::timeout(REACH, tokio::net::TcpStream::connect(published)).await;
        if !matches!(answered, Ok(Ok(_))) {
            needed.push(text.clone());
        }
    }
    needed
}
