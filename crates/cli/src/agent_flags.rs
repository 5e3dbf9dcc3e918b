//! The flags that commands such as `doctor` and `explain` share with the agent: given one by one, in a file, or taken from a running
//! Deployment.

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

mod contexts;
pub mod deployment;
mod file;
mod forward;
pub mod running;
pub mod search;

use std::path::PathBuf;

use carrick_syncagent::options::Options;
use clap::Parser;

use crate::doctor::facts::FixLogin;
use crate::kubeconfig::Temporary;
use crate::ui::print_error;

/// Identifies an agent by the flags it is started with.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct AgentFlags {
    /// Take the agent's flags, and its kubeconfig for kcp, from a running Deployment; those given here win
    #[arg(long, value_name = "NAMESPACE/NAME", help_heading = HEADING)]
    pub from_deployment: Option<String>,
    /// File with the agent's flags: YAML with one "name-of-the-flag: value" in each line; those given here win
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub config: Option<PathBuf>,
    /// Kubeconfig of the service cluster; by default $KUBECONFIG, or the pod's service account, or ~/.kube/config
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub kubeconfig: String,
    /// Context of the kubeconfig of the service cluster, if not the current one
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub context: String,
    /// Kubeconfig whose current context points at the workspace that holds the APIExportEndpointSlice
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub kcp_kubeconfig: String,
    /// Name of the APIExportEndpointSlice in kcp
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub apiexportendpointslice_ref: String,
    /// Older alternative: name of an APIExport whose slice has the same name, as kcp makes it
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, help_heading = HEADING,
          conflicts_with = "apiexportendpointslice_ref")]
    pub apiexport_ref: String,
    /// Namespace of the agent
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub namespace: String,
    /// Name of the agent [default: the agent that keeps the export, else <apiexportendpointslice-ref>-syncagent]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub agent_name: String,
    /// Label selector for PublishedResources; empty means all of them
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub published_resource_selector: String,
    /// Address to use instead of one in the URLs of the APIExportEndpointSlice: original-host:port=new-host:port; may be repeated
    #[arg(long, value_name = "OVERRIDES", help_heading = HEADING)]
    pub apiexport_hostport_override: Vec<String>,
    /// Name of the Secret whose token the agent renews
    #[arg(long, value_name = "SECRET", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub renew_kcp_token: String,
    /// Path of the workspace below which a broker of Platform Mesh makes its staging workspaces
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub broker_staging_root: String,
    /// For how long deleted orders there wait for a service cluster that cannot be reached
    #[arg(long, value_name = "DURATION", default_value = "", hide_default_value = true, help_heading = HEADING)]
    pub release_after: String,
    /// How whoever reads findings gets to kcp, if not with the kubeconfig above.
    #[arg(skip)]
    pub login: FixLogin,
}

/// Where these flags are in --help.
const HEADING: &str = "The agent";

/// An agent, identified.
#[derive(Debug)]
pub struct Identified {
    /// Its options, complete and checked.
    pub options: Options,
    /// Whether its name was given, and not derived from the slice.
    pub is_named: bool,
    /// The Deployment that its flags were taken from.
    pub deployment: Option<String>,
    /// Where its kubeconfig for kcp was read from, if that is no file that was given.
    pub login: FixLogin,
    /// The kubeconfig of the service cluster and its context, as they were given.
    pub given: (String, String),
    /// The kubeconfig that was read from a Secret, and that with another current context, as long as they are needed.
    _kubeconfigs: [Option<Temporary>; 2],
}

impl Identified {
    /// The slice that the agent serves, or the export that it is named after.
    pub fn slice(&self) -> &str {
        match self.options.apiexportendpointslice_ref.as_str() {
            "" => &self.options.apiexport_ref,
            slice => slice,
        }
    }
}

impl AgentFlags {
    /// These flags, with what they leave open: the agent on the service cluster or on this machine, its slice, its namespace. May ask.
    pub async fn resolved(&self) -> anyhow::Result<Self> {
        let found = if self.names_none() { search::agent(self).await? } else { self.clone() };
        let found = search::completed(found).await?;
        if found.given().ne(self.given()) {
            let flags = found.given().map(|flag| {
                flag.split_once('=').map_or(flag.clone(), |(flag, value)| format!("{flag} {}", quoted(value)))
            });
            let terminal = console::Term::stderr();
            let width = if terminal.is_term() { usize::from(terminal.size().1) } else { usize::MAX };
            // Standard output is for the answer.
            print_error(&shown(flags, width));
        }
        Ok(found)
    }

    /// The agent, with its flags from wherever they are.
    pub async fn identify(&self) -> anyhow::Result<Identified> {
        let mut flags = Vec::new();
        let (mut kubeconfig, mut login) = (None, self.login.clone());
        let local = self.local()?;
        let file = local.as_ref().map_or(self.kubeconfig.clone(), |file| file.path().display().to_string());
        if let Some(name) = &self.from_deployment {
            let found = deployment::read(&file, name, self.kcp_kubeconfig.is_empty()).await?;
            flags = found.flags;
            if let Some((file, secret)) = found.kcp_kubeconfig {
                (kubeconfig, login) = (Some(file), FixLogin::InSecret(secret));
            }
        }
        if let Some(path) = &self.config {
            flags.extend(file::read(path)?);
        }
        let ours = ["--from-deployment=", "--context="];
        let given = self.given().filter(|flag| !ours.iter().any(|ours| flag.starts_with(ours)));
        let mut options = parse(flags.into_iter().chain(given))?;
        if self.from_deployment.is_some() {
            // The Deployment's own access to its cluster works from inside only.
            options.kubeconfig.clone_from(&file);
            options.kubeconfig_host_override.clear();
            options.kubeconfig_ca_file_override.clear();
        }
        let mut given = (options.kubeconfig.clone(), self.context.clone());
        if local.is_some() {
            (given.0, options.kubeconfig) = (self.kubeconfig.clone(), file);
        }
        let is_named = !options.agent_name.is_empty() || self.from_deployment.is_some();
        let options = options.complete().map_err(|problems| anyhow::anyhow!("{problems}{}", self.hint()))?;
        let deployment = self.from_deployment.clone();
        Ok(Identified { options, is_named, deployment, login, given, _kubeconfigs: [kubeconfig, local] })
    }

    /// The same where nothing of the agent's own is read or written, so that its namespace does not matter.
    pub async fn identify_export(&self) -> anyhow::Result<Identified> {
        let mut flags = self.resolved().await?;
        if flags.from_deployment.is_none() && flags.config.is_none() && flags.namespace.is_empty() {
            "default".clone_into(&mut flags.namespace);
        }
        flags.identify().await
    }

    /// The kubeconfig of the service cluster, if another context than its current one is meant.
    fn local(&self) -> anyhow::Result<Option<Temporary>> {
        if self.context.is_empty() {
            return Ok(None);
        }
        contexts::with_current(&self.kubeconfig, &self.context).map(Some)
    }

    /// Whether nothing says which agent is meant.
    fn names_none(&self) -> bool {
        let texts = [&self.kcp_kubeconfig, self.slice(), &self.agent_name, &self.namespace];
        self.from_deployment.is_none() && self.config.is_none() && texts.iter().all(|text| text.is_empty())
    }

    /// The slice that is named, or the export whose slice has its name; may be empty.
    fn slice(&self) -> &String {
        if self.apiexportendpointslice_ref.is_empty() { &self.apiexport_ref } else { &self.apiexportendpointslice_ref }
    }

    /// What was given on the command line.
    fn given(&self) -> impl Iterator<Item = String> {
        let from_deployment = self.from_deployment.iter().map(|value| ("--from-deployment", value));
        let flags = [
            ("--kubeconfig", &self.kubeconfig),
            ("--context", &self.context),
            ("--kcp-kubeconfig", &self.kcp_kubeconfig),
            ("--apiexportendpointslice-ref", &self.apiexportendpointslice_ref),
            ("--apiexport-ref", &self.apiexport_ref),
            ("--namespace", &self.namespace),
            ("--agent-name", &self.agent_name),
            ("--published-resource-selector", &self.published_resource_selector),
            ("--renew-kcp-token", &self.renew_kcp_token),
            ("--broker-staging-root", &self.broker_staging_root),
            ("--release-after", &self.release_after),
        ];
        let overrides = self.apiexport_hostport_override.iter().map(|value| ("--apiexport-hostport-override", value));
        flags
            .into_iter()
            .chain(overrides)
            .chain(from_deployment)
            .filter(|(_, value)| !value.is_empty())
            .map(|(flag, value)| format!("{flag}={value}"))
    }

    fn hint(&self) -> &'static str {
        if self.from_deployment.is_none() && self.config.is_none() {
            "; or take all of them from the agent's Deployment with --from-deployment <namespace>/<name>"
        } else {
            ""
        }
    }
}

/// Flags as a comment, in lines that fit the terminal; a flag and its value stay together. Pure.
fn shown(flags: impl Iterator<Item = String>, width: usize) -> String {
    let mut lines = vec!["#".to_owned()];
    for flag in flags {
        match lines.last_mut() {
            Some(line) if line.len() == 1 || line.chars().count() + 1 + flag.chars().count() < width => {
                line.push(' ');
                line.push_str(&flag);
            }
            _ => lines.push(format!("# {flag}")),
        }
    }
    lines.join("\n") + "\n"
}

/// A value as a shell takes it.
pub(crate) fn quoted(value: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=./:,@%+".contains(letter);
    if value.chars().all(plain) { value.to_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
}

fn parse(flags: impl Iterator<Item = String>) -> anyhow::Result<Options> {
    Ok(Options::try_parse_from(std::iter::once("api-syncagent".to_owned()).chain(flags))?)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        agent: AgentFlags,
    }

    #[test]
    fn flags_that_were_found_fit_the_terminal() {
        let flags =
            || ["--kubeconfig service.kubeconfig", "--namespace kcp-system", "--agent-name a"].map(str::to_owned);
        let one = "# --kubeconfig service.kubeconfig --namespace kcp-system --agent-name a\n";
        assert_eq!(shown(flags().into_iter(), usize::MAX), one);
        let two = "# --kubeconfig service.kubeconfig\n# --namespace kcp-system --agent-name a\n";
        assert_eq!(shown(flags().into_iter(), 50), two);
        assert_eq!(shown(flags().into_iter(), 10).lines().count(), 3);
    }

    #[tokio::test]
    async fn an_export_names_the_agent_as_the_agents_own_flag_does() {
        let flags = ["carrick", "--kcp-kubeconfig=k", "--namespace=n", "--apiexport-ref=example.com"];
        let line = Line::try_parse_from(flags).unwrap();
        assert!(!line.agent.names_none());
        let found = line.agent.identify().await.unwrap();
        assert_eq!((found.slice(), found.options.agent_name.as_str()), ("example.com", "example.com-syncagent"));
        let both = flags.into_iter().chain(["--apiexportendpointslice-ref=example.com"]);
        assert!(Line::try_parse_from(both).is_err());
    }
}
