//! `carrick init`: reads a CRD and writes files that offer it in kcp.
//!
//! ```text
//!  source: --crd, --from-cluster ──▶ Offer (names, versions, schema)
//!                                      ├─ files    RBAC, PublishedResource, APIExport, APIBinding, a first order
//!  an export: --implements ──▶ implements  the API of a platform, and first steps that lead to the kind
//!                                      ├─ sample   an order that its schema allows
//!                                      ├─ crate::mesh  what Platform Mesh's portal shows
//!                                      ├─ notes    what may surprise its owner
//!                                      └─ steps    what to type then
//! ```

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

pub(crate) mod chart;
pub(crate) mod files;
pub(crate) mod flags;
pub(crate) mod implements;
mod notes;
pub(crate) mod offer;
mod sample;
pub(crate) mod source;
mod steps;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use carrick_client::{Overrides, Server};
use serde_json::Value;

use crate::logs;
use crate::ui::Ui;
use flags::OfferFlags;
use offer::{Choices, Offer, one_export};

/// Write all manifests that offer a kind in kcp, with comments.
///
/// Reads a CRD and writes a folder: the PublishedResource and the agent's rights for the service cluster, the APIExport and the agent's rights for the
/// provider's workspace, an APIBinding and a first order for consumers, and what Platform Mesh's portal shows. Nothing is applied.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE, arg_required_else_help = true)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["crd", "from_cluster", "agent_crd"])))]
pub struct Args {
    #[command(flatten)]
    offer: OfferFlags,
    /// Only print the CRD of PublishedResources, which the agent needs on the service cluster
    #[arg(long)]
    agent_crd: bool,
    /// Folder to write to; must not exist yet. Several kinds get a folder each in it [default: ./<plural>.<group>]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The agent's user name in kcp
    #[arg(long, value_name = "NAME", default_value = "api-syncagent")]
    kcp_user: String,
    /// Kubeconfig of kcp, to read the API of --implements with
    #[arg(long, value_name = "FILE", requires = "implements")]
    kcp_kubeconfig: Option<PathBuf>,
}

const USAGE: &str = "\
carrick init --crd <FILE> [OPTIONS]
       carrick init --from-cluster <GROUP/KIND> [OPTIONS]
       carrick init --agent-crd";

const EXAMPLES: &str = "\
Examples:
  carrick init --crd buckets.yaml --workspace root:providers:storage
  kubectl get crd buckets.example.com -o yaml | carrick init --crd -
  carrick init --crd config/crd/bases --out offer
  carrick init --from-cluster example.com/Bucket --kubeconfig service.kubeconfig
  carrick init --from-cluster cert-manager.io/Certificate \\
    --implements root:platform:certificates --kcp-kubeconfig kcp.kubeconfig
      an API that a platform has defined, served by a kind of yours
  carrick init --agent-crd | kubectl apply -f -";

/// Writes the files and prints what to do with them.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let ui = Ui::new(true);
    if args.agent_crd {
        ui.line(serde_saphyr::to_string(&carrick_syncagent::api::crd())?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let choices = args.offer.choices(&args.kcp_user)?;
    let kcp = match (&args.kcp_kubeconfig, &args.offer.implements) {
        (None, None) => None,
        (None, Some(_)) => {
            anyhow::bail!("--implements is read from kcp; name your kubeconfig for it with --kcp-kubeconfig")
        }
        (Some(file), _) => Some(
            Server::from_kubeconfig(file, &Overrides::default())
                .context("the login at kcp cannot be used; name another kubeconfig with --kcp-kubeconfig")?,
        ),
    };
    let offers = args.offer.offers(&choices, kcp.as_ref()).await?;
    one_export(offers.iter())?;
    distinct(&offers)?;
    let several = offers.len() > 1;
    let placed = |offer: Offer| {
        let folder = match &args.out {
            Some(out) if several => out.join(offer.crd_name()),
            Some(out) => out.clone(),
            None => PathBuf::from(offer.crd_name()),
        };
        (offer, folder)
    };
    let offers: Vec<(Offer, PathBuf)> = offers.into_iter().map(placed).collect();
    for folder in args.out.iter().chain(offers.iter().map(|(_, folder)| folder)) {
        if folder.exists() {
            anyhow::bail!("{} exists already; remove it, or choose another folder with --out", folder.display());
        }
    }
    for (offer, folder) in &offers {
        write(&ui, offer, folder)?;
    }
    let notes: Vec<String> = offers.iter().flat_map(|(offer, _)| notes::notes(offer)).collect();
    if !notes.is_empty() {
        ui.heading("Note");
        for note in notes {
            ui.line(format_args!("  - {note}"));
        }
    }
    let Some((first, _)) = offers.first() else { return Ok(ExitCode::SUCCESS) };
    ui.heading("Read the files, then say where your kubeconfigs are");
    for line in steps::kubeconfigs(first, args.offer.kubeconfig.as_deref()) {
        ui.command(&line);
    }
    ui.heading("and apply them");
    let chart = args.offer.chart();
    for line in steps::commands(&offers, &chart.reference) {
        ui.command(&line);
    }
    if let Some(text) = chart.way_out("carrick provider up …") {
        ui.line(text);
    }
    ui.line(
        "The repository has a Dockerfile for the agent's image: push one to your registry, and name it with --set \
         image.repository=…,image.tag=….",
    );
    Ok(ExitCode::SUCCESS)
}

/// Objects of several kinds are named after the plural, which two of them must not share.
pub(crate) fn distinct(offers: &[Offer]) -> anyhow::Result<()> {
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    for offer in offers {
        let name = offer.crd_name();
        if let Some(other) = known.insert(&offer.plural, name.clone()) {
            if other == name {
                anyhow::bail!("CRD {name} is there twice; give it once");
            }
            anyhow::bail!(
                "{other} and {name} share a plural name; run carrick init for each of them, with an --export of its own"
            );
        }
    }
    Ok(())
}

fn write(ui: &Ui, offer: &Offer, folder: &Path) -> anyhow::Result<()> {
    for (name, text) in files::all(offer)? {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot create the folder {}", parent.display()))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        ui.line(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

/// A small order that the schema of a CRD allows, in one line of JSON.
pub fn first_order(crd: &Value) -> anyhow::Result<String> {
    let order = Offer::new(crd, Choices::default())?.order();
    match order.problem {
        None => Ok(order.object.to_string()),
        Some(problem) => anyhow::bail!("{problem}"),
    }
}
