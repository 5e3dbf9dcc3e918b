//! The flags that commands such as `doctor` and `explain` share with the agent.

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

use carrick_syncagent::options::Options;
use clap::Parser;

/// Identifies an agent by the flags it is started with.
#[derive(Debug, clap::Args)]
pub struct AgentFlags {
    /// Kubeconfig of the service cluster; by default $KUBECONFIG, or the pod's service account, or ~/.kube/config
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub kubeconfig: String,
    /// Kubeconfig whose current context points at the workspace that holds the APIExportEndpointSlice
    #[arg(long, value_name = "FILE")]
    pub kcp_kubeconfig: String,
    /// Name of the APIExportEndpointSlice in kcp
    #[arg(long, value_name = "NAME")]
    pub apiexportendpointslice_ref: String,
    /// Namespace of the agent
    #[arg(long, value_name = "NAME")]
    pub namespace: String,
    /// Name of the agent [default: <apiexportendpointslice-ref>-syncagent]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub agent_name: String,
    /// Label selector for PublishedResources; empty means all of them
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub published_resource_selector: String,
}

impl AgentFlags {
    /// The options of an agent started with these flags, with defaults filled in and checked.
    pub fn options(&self) -> anyhow::Result<Options> {
        let flags = [
            ("--kubeconfig", &self.kubeconfig),
            ("--kcp-kubeconfig", &self.kcp_kubeconfig),
            ("--apiexportendpointslice-ref", &self.apiexportendpointslice_ref),
            ("--namespace", &self.namespace),
            ("--agent-name", &self.agent_name),
            ("--published-resource-selector", &self.published_resource_selector),
        ];
        let flags = flags.iter().map(|(flag, value)| format!("{flag}={value}"));
        let options = Options::try_parse_from(std::iter::once("api-syncagent".to_owned()).chain(flags))?;
        options.complete().map_err(|problems| anyhow::anyhow!("{problems}"))
    }
}

/// The same, where they are not always needed, and where only the servers and the export matter.
#[derive(Debug, clap::Args)]
pub struct OptionalAgentFlags {
    /// Kubeconfig of the service cluster; by default $KUBECONFIG, or the pod's service account, or ~/.kube/config
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    kubeconfig: String,
    /// Kubeconfig whose current context points at the workspace that holds the APIExportEndpointSlice
    #[arg(long, value_name = "FILE")]
    kcp_kubeconfig: Option<String>,
    /// Name of the APIExportEndpointSlice in kcp
    #[arg(long, value_name = "NAME")]
    apiexportendpointslice_ref: Option<String>,
    /// Label selector for PublishedResources; empty means all of them
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    published_resource_selector: String,
}

impl OptionalAgentFlags {
    /// The options of an agent started with these flags.
    pub fn options(&self) -> anyhow::Result<Options> {
        let wanted = |value: &Option<String>, flag: &str| {
            value.clone().ok_or_else(|| anyhow::anyhow!("{flag} is needed to find the APIExport"))
        };
        let flags = AgentFlags {
            kubeconfig: self.kubeconfig.clone(),
            kcp_kubeconfig: wanted(&self.kcp_kubeconfig, "--kcp-kubeconfig")?,
            apiexportendpointslice_ref: wanted(&self.apiexportendpointslice_ref, "--apiexportendpointslice-ref")?,
            // Nothing of the agent's own is read or written.
            namespace: "default".to_owned(),
            agent_name: String::new(),
            published_resource_selector: self.published_resource_selector.clone(),
        };
        flags.options()
    }
}
