//! `carrick toolkit convert`.

use carrick_syncagent::toolkit;

use serde_json::json;

use super::complaint::Complaint;
use super::source;
use crate::ui::Output;

/// Try the conversion rules of a PublishedResource: on one object, or on many that the schemas allow, there and back again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// File with one PublishedResource, in YAML or JSON; - is standard input.
    #[arg(value_name = "FILE")]
    file: String,
    /// File with the CRD on the service cluster.
    #[arg(long, value_name = "FILE")]
    crd: String,
    /// File with an object to convert, in any published version.
    #[arg(long, value_name = "FILE", requires = "to")]
    object: Option<String>,
    /// Version to convert the object to, by its name in kcp.
    #[arg(long, value_name = "VERSION", requires = "object")]
    to: Option<String>,
    /// Output format; as text, an object is YAML.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

const EXAMPLES: &str = "\
Examples:
  carrick toolkit convert --crd crd.yaml published-resource.yaml
      what a round trip through each version loses; exit code 1 if anything
  carrick toolkit convert --crd crd.yaml published-resource.yaml -o json
      the same for programs: from, to, path, reason and example of each loss
  carrick toolkit convert --crd crd.yaml --object order.yaml --to v1 \\
    published-resource.yaml
      the object in version v1, as YAML";

/// Prints the converted object, or what is lost.
pub fn run(args: &Args) -> Result<(), Complaint> {
    source::at_most_one_from_stdin(&[Some(&args.file), Some(&args.crd), args.object.as_ref()]);
    let pr = toolkit::parse(&source::data_text(&args.file)?.content).map_err(complain)?;
    let crd = source::data(&args.crd)?;
    if let (Some(object), Some(to)) = (&args.object, &args.to) {
        let converted = toolkit::convert(&pr, &crd, &source::data(object)?, to).map_err(complain)?;
        return super::print(&match args.output {
            Output::Text => serde_saphyr::to_string(&converted).map_err(complain)?,
            Output::Json => serde_json::to_string_pretty(&converted).map_err(complain)?,
        });
    }
    let losses = toolkit::losses(&pr, &crd).map_err(complain)?;
    if args.output == Output::Json {
        super::print(&serde_json::to_string_pretty(&json!({ "losses": losses })).map_err(complain)?)?;
        return if losses.is_empty() { Ok(()) } else { Err(Complaint::new("not everything comes back as it was")) };
    }
    if losses.is_empty() {
        return super::print("nothing is lost between any two versions");
    }
    let told: Vec<String> = losses.iter().map(|loss| format!("{loss}\n    for example {}", loss.example)).collect();
    Err(Complaint::new(format!("not everything comes back as it was\n{}", told.join("\n"))))
}

fn complain(error: impl std::fmt::Display) -> Complaint {
    Complaint::new(error.to_string())
}
