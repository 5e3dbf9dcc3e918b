//! Flags that say what is offered, and under which names.

use std::path::{Path, PathBuf};

use carrick_client::Server;

use super::chart::Chart;
use super::implements::ApiReference;
use super::offer::{Choices, Offer};
use super::source;

/// What is offered, and under which names.
#[derive(Debug, clap::Args)]
pub struct OfferFlags {
    /// CRD of the kind to offer, in YAML or JSON: a file, a folder of files, or - for standard input; may be repeated
    #[arg(long, value_name = "FILE")]
    pub crd: Vec<PathBuf>,
    /// Kind to offer, as the service cluster knows it: <group>/<Kind>, or <Kind> for the core group; may be repeated
    #[arg(long, value_name = "GROUP/KIND")]
    pub from_cluster: Vec<String>,
    /// Kubeconfig of the service cluster; by default $KUBECONFIG, or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// API that a platform has defined, to be served by the kind: <path>:<export>, and /<plural>.<group> if that export has several
    #[arg(long, value_name = "EXPORT", conflicts_with = "group")]
    pub implements: Option<ApiReference>,
    /// API group in kcp [default: that of the CRD]
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Name of the APIExport, and of its slice [default: the API group]
    #[arg(long, value_name = "NAME")]
    pub export: Option<String>,
    /// Workspace of the provider, which holds the APIExport
    #[arg(long, value_name = "PATH", default_value = "root:provider")]
    pub workspace: String,
    /// Namespace of the agent on the service cluster
    #[arg(long, value_name = "NAME", default_value = "kcp-system")]
    pub namespace: String,
    /// Name of the agent, and of its ServiceAccount [default: <export>-syncagent]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The agent's Helm chart in the commands that are printed: a folder, or oci://… [default: charts/api-syncagent]
    #[arg(long, value_name = "CHART")]
    pub chart: Option<String>,
}

impl OfferFlags {
    /// What was chosen, checked.
    pub fn choices(&self, kcp_user: &str) -> anyhow::Result<Choices> {
        let choices = Choices {
            group: self.group.clone(),
            export: self.export.clone(),
            workspace: self.workspace.clone(),
            namespace: self.namespace.clone(),
            agent: self.agent.clone(),
            kcp_user: kcp_user.to_owned(),
        };
        choices.check()?;
        Ok(choices)
    }

    /// The chart in the commands that are printed.
    pub fn chart(&self) -> Chart {
        Chart::new(self.chart.as_deref(), Path::new("."))
    }

    /// The CRDs, from wherever they are, and what they implement.
    pub async fn offers(&self, choices: &Choices, kcp: Option<&Server>) -> anyhow::Result<Vec<Offer>> {
        let mut crds = Vec::new();
        for path in &self.crd {
            crds.extend(source::read(path)?);
        }
        for kind in &self.from_cluster {
            crds.push(source::ask(kind, self.kubeconfig.as_deref()).await?);
        }
        let offers = crds.iter().map(|crd| Offer::new(crd, choices.clone()));
        let (Some(reference), Some(kcp)) = (&self.implements, kcp) else { return offers.collect() };
        anyhow::ensure!(crds.len() < 2, "--implements is for one kind; give --crd or --from-cluster just that one");
        if crds.is_empty() {
            return Ok(Vec::new());
        }
        let exported = reference.read(kcp).await?;
        offers.zip(&crds).map(|(offer, crd)| offer?.implementing(exported.one(None)?, crd)).collect()
    }
}
