//! `carrick toolkit crd`.

use std::path::PathBuf;

use carrick_client::{Overrides, Server};
use carrick_syncagent::toolkit;

use super::complaint::Complaint;
use super::source;
use crate::ui::waiting;

/// Print the CRD that a PublishedResource publishes, as it will look in kcp. Warnings about its rules go to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// File with PublishedResources, in YAML or JSON; - is standard input.
    #[arg(value_name = "FILE")]
    file: String,
    /// Show the CRD as it is on the service cluster.
    #[arg(long)]
    no_projection: bool,
    /// Show the APIResourceSchema that the agent creates in kcp instead.
    #[arg(long)]
    ars: bool,
    /// Kubeconfig of the service cluster; by default $KUBECONFIG.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; by default the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  carrick toolkit crd --kubeconfig service.kubeconfig published-resource.yaml
  carrick toolkit crd --ars published-resource.yaml
      the schema in kcp, under the name the agent gives it
  carrick toolkit crd --no-projection published-resource.yaml
      also for kinds that have no CRD, such as Deployments";

/// Prints the answer as YAML.
pub fn run(args: &Args) -> Result<(), Complaint> {
    let document = source::data_text(&args.file)?;
    let published = toolkit::parse_all(&document.content).map_err(complain)?;
    let nothing = args.kubeconfig.is_none() && std::env::var_os("KUBECONFIG").is_none_or(|value| value.is_empty());
    if nothing {
        return Err(Complaint::new("--kubeconfig or $KUBECONFIG are required for this command"));
    }
    let overrides = Overrides { context: args.context.clone(), ..Overrides::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(complain)?;
    let asking = async {
        let client = Server::infer(args.kubeconfig.as_deref(), &overrides).map_err(complain)?.client();
        let mut answers = Vec::new();
        for pr in &published {
            let answer = if args.ars {
                toolkit::resource_schema(&client, pr, !args.no_projection).await
            } else {
                toolkit::crd(&client, pr, !args.no_projection).await
            };
            let answer = serde_saphyr::to_string(&answer.map_err(complain)?).map_err(complain)?;
            answers.push((answer, toolkit::doubts(&client, pr).await.map_err(complain)?));
        }
        Ok::<_, Complaint>(answers)
    };
    let answers = runtime.block_on(waiting("asking the service cluster", asking))?;
    // On stderr, so that the answers can be piped.
    for doubt in answers.iter().flat_map(|(_, doubts)| doubts) {
        eprintln!("{doubt}");
    }
    let answers: Vec<&str> = answers.iter().map(|(answer, _)| answer.as_str()).collect();
    super::print(&answers.join("---\n"))
}

fn complain(error: impl std::fmt::Display) -> Complaint {
    Complaint::new(error.to_string())
}
