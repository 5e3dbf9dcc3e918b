//! The flags of `carrick provider up`.

use std::path::PathBuf;

use clap::ValueEnum;
use jiff::SignedDuration;

use crate::init::flags::OfferFlags;
use crate::mesh::flags::MeshFlags;
use crate::withdraw;

/// Create all that a provider needs, on both sides, so that consumers can bind.
///
/// In kcp: the workspace, the APIExport, who may bind it, a ServiceAccount for the agent and its rights. On the service cluster: the CRD of
/// PublishedResources, the agent's rights, PublishedResources, and a Secret with the agent's kubeconfig. What is there already stays, and is changed only
/// where it differs. Then the doctor checks all of it. The agent itself is installed by the helm command that is printed.
///
/// The kubeconfig holds a token that ends after --token-duration. The agent renews it by itself whenever half of its time is over; so does this command when
/// it is run again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["crd", "from_cluster", "published_resource"])))]
#[allow(clippy::struct_excessive_bools, reason = "one per flag")]
pub struct UpArgs {
    /// Kubeconfig of kcp, with the right to create the workspace, or to administer it if it exists
    #[arg(long, value_name = "FILE", required_unless_present = "managed_by")]
    pub kcp_kubeconfig: Option<PathBuf>,
    /// Prepare the workspace that --kcp-kubeconfig leads to, and publish, but leave the agent with its rights and its login to the chart, which runs this as
    /// a Job
    #[arg(long, conflicts_with_all = ["workspace", "undo", "managed_by", "provider_in", "values", "print_manifests", "repoint"])]
    pub bootstrap: bool,
    #[command(flatten)]
    pub offer: OfferFlags,
    /// PublishedResources of your own, in YAML or JSON, instead of those that follow from CRDs; may be repeated
    #[arg(long, value_name = "FILE")]
    pub published_resource: Vec<PathBuf>,
    /// How long the agent's token is valid: 30d, 12h, 90m
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = withdraw::duration)]
    pub token_duration: SignedDuration,
    /// Server that the agent uses for kcp, if that is not the one of the kubeconfig: https://<host>:<port>
    #[arg(long, value_name = "URL")]
    pub agent_kcp_server: Option<String>,
    /// Address that the agent uses instead of one in the URLs of the APIExportEndpointSlice: original-host:port=new-host:port; may be repeated
    #[arg(long, value_name = "OVERRIDES")]
    pub apiexport_hostport_override: Vec<String>,
    /// Image of the agent, such as registry.example.com/api-syncagent:0.1.0
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Print the agent's Deployment, for kubectl apply instead of Helm, and do nothing
    #[arg(long, requires = "image", conflicts_with_all = ["output", "values", "dry_run"])]
    pub print_manifests: bool,
    #[command(flatten)]
    pub mesh: MeshFlags,
    /// File to write the values for the Helm chart to
    #[arg(long, value_name = "FILE")]
    pub values: Option<PathBuf>,
    /// Say what would be created and changed, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print all objects, and do nothing
    #[arg(short, long, value_enum)]
    pub output: Option<Output>,
    /// Let the agent of this name serve this workspace from now on, although it serves another one; it gets a new token
    #[arg(long, conflicts_with = "undo")]
    pub repoint: bool,
    #[command(flatten)]
    pub undoing: UndoFlags,
}

/// How to take it all away.
#[derive(Debug, clap::Args)]
pub struct UndoFlags {
    /// Take away what this command has made, unless consumers use it; asks first
    #[arg(long, conflicts_with_all = ["output", "values"])]
    pub undo: bool,
    /// With --undo: even if consumers have bound the export, or the agent was seen a moment ago
    #[arg(long, requires = "undo")]
    pub force: bool,
    /// With --undo: do not ask
    #[arg(short, long, requires = "undo")]
    pub yes: bool,
    /// With --undo: delete what the agent remembers of its orders, too; the name of the APIExport says that you mean it
    #[arg(long, value_name = "EXPORT", requires = "undo")]
    pub delete_state: Option<String>,
}

/// How to print objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// As kubectl takes it.
    Yaml,
}

const USAGE: &str = "\
carrick provider up --crd <FILE> [OPTIONS]
       carrick provider up --from-cluster <GROUP/KIND> [OPTIONS]
       carrick provider up --published-resource <FILE> [OPTIONS]";

const EXAMPLES: &str = "\
Examples:
  carrick provider up --kcp-kubeconfig kcp.kubeconfig \\
    --kubeconfig service.kubeconfig \\
    --workspace root:providers:storage --crd buckets.yaml
  carrick provider up … --published-resource certificates.yaml \\
    --implements root:platform:certificates
      with the API that a platform has defined; again when it has changed
  carrick provider up … --dry-run       what it would do
  carrick provider up … -o yaml         all objects, to be kept in Git
  carrick provider up … --print-manifests \\
    --image registry.example.com/api-syncagent:0.1.0 | kubectl apply -f -
      the agent, without Helm
  carrick provider up … --undo          takes it all away again, after asking
  carrick provider up … --undo --dry-run";
