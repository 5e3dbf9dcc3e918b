//! `carrick init`: reads a CRD and writes files that offer it in kcp.
//!
//! ```text
//!  --crd, --from-cluster ──▶ Offer (names, versions, schema)
//!                              ├─ files    RBAC, PublishedResource, APIExport, APIBinding, a first order
//!                              ├─ sample   the smallest object its schema allows
//!                              └─ mesh     what Platform Mesh's portal shows
//! ```

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

mod files;
mod mesh;
mod offer;
mod sample;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use carrick_client::{Overrides, Server};
use carrick_syncagent::api::PublishedResource;
use serde_json::{Value, json};

use crate::logs;
use crate::ui::Ui;
use offer::{Choices, Offer};

/// Write all manifests that are needed to offer a kind in kcp, commented and ready to apply.
///
/// Reads a CRD and writes a folder: the PublishedResource and the agent's rights for the service cluster, the APIExport and the agent's rights for the
/// provider's workspace, an APIBinding and a first order for consumers, and what Platform Mesh's portal shows. Nothing is applied.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["crd", "from_cluster", "agent_crd"])))]
pub struct Args {
    /// File with the CRD of the kind to offer, in YAML or JSON
    #[arg(long, value_name = "FILE")]
    crd: Option<PathBuf>,
    /// Kind to offer, as the service cluster knows it: <group>/<Kind>, or <Kind> for the core group
    #[arg(long, value_name = "GROUP/KIND")]
    from_cluster: Option<String>,
    /// Only print the CRD of PublishedResources, which the agent needs on the service cluster
    #[arg(long)]
    agent_crd: bool,
    /// Kubeconfig of the service cluster, for --from-cluster; by default $KUBECONFIG, or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Folder to write to; must not exist yet [default: ./<plural>.<group>]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Name of the APIExport, and of its slice [default: the API group]
    #[arg(long, value_name = "NAME")]
    export: Option<String>,
    /// Workspace of the provider, which holds the APIExport
    #[arg(long, value_name = "PATH", default_value = "root:provider")]
    workspace: String,
    /// Namespace of the agent on the service cluster
    #[arg(long, value_name = "NAME", default_value = "kcp-system")]
    namespace: String,
    /// Name of the agent, and of its ServiceAccount [default: <export>-syncagent]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The agent's user name in kcp
    #[arg(long, value_name = "NAME", default_value = "api-syncagent")]
    kcp_user: String,
}

const EXAMPLES: &str = "\
Examples:
  carrick init --crd buckets.yaml --workspace root:providers:storage
  carrick init --from-cluster example.com/Bucket --kubeconfig service.kubeconfig
  carrick init --agent-crd | kubectl apply -f -";

/// Writes the files and prints what to do with them.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let ui = Ui::new(true);
    if args.agent_crd {
        ui.line(serde_saphyr::to_string(&carrick_syncagent::api::crd())?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let crd = match (&args.crd, &args.from_cluster) {
        (Some(file), _) => read(file)?,
        (None, Some(kind)) => ask(kind, args.kubeconfig.as_deref()).await?,
        (None, None) => anyhow::bail!("give --crd a file, or --from-cluster a kind"),
    };
    let choices = Choices {
        export: args.export,
        workspace: args.workspace,
        namespace: args.namespace,
        agent: args.agent,
        kcp_user: args.kcp_user,
    };
    let offer = Offer::new(&crd, choices)?;
    let folder = args.out.unwrap_or_else(|| PathBuf::from(offer.crd_name()));
    if folder.exists() {
        anyhow::bail!("{} exists already; remove it, or choose another folder with --out", folder.display());
    }
    for (name, text) in files::all(&offer)? {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot create the folder {}", parent.display()))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        ui.line(format_args!("wrote {}", path.display()));
    }
    ui.heading("Read them, then apply them");
    for line in files::commands(&offer, &folder) {
        ui.command(&line);
    }
    Ok(ExitCode::SUCCESS)
}

/// The smallest order that the schema of a CRD allows, in one line of JSON.
pub fn first_order(crd: &Value) -> anyhow::Result<String> {
    let offer = Offer::new(crd, Choices::default())?;
    Ok(files::order(&offer).to_string())
}

fn read(file: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let documents =
        carrick_json::yaml::values(&text).with_context(|| format!("{} is not valid YAML", file.display()))?;
    let is_crd = |object: &Value| object["kind"] == "CustomResourceDefinition";
    let mut found: Vec<Value> = documents.into_iter().filter(is_crd).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => anyhow::bail!("{} contains no CustomResourceDefinition", file.display()),
        several => {
            anyhow::bail!("{} contains {several} CustomResourceDefinitions; give --crd one at a time", file.display())
        }
    }
}

/// The CRD of a kind, or one built from the API server's description of the kind.
async fn ask(kind: &str, kubeconfig: Option<&Path>) -> anyhow::Result<Value> {
    let (group, kind) = kind.split_once('/').unwrap_or(("", kind));
    let server = Server::infer(kubeconfig, &Overrides::default())?;
    let pr = json!({ "spec": { "resource": { "apiGroup": group, "kind": kind } } });
    let pr: PublishedResource = serde_json::from_value(pr)?;
    Ok(carrick_syncagent::toolkit::crd(&server.client(), &pr, false).await?)
}
