//! `carrick import`: orders for objects that exist on the service cluster.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use carrick_syncagent::agent::import::{Action, Imports, Request, Selected, import};
use carrick_syncagent::decide::import::OnDelete;
use clap::ValueEnum;

use crate::agent_flags::AgentFlags;
use crate::logs;
use crate::ui::{Output, confirmed, print, print_error, print_json, telling};

/// Hand existing objects over to a consumer, as orders, unchanged.
///
/// Shows what would become of each object first, and asks. An object is linked, then its order is created in the consumer's workspace; the
/// running agent takes it as the copy of that order and writes nothing to it. What its order would change is refused, with the fields.
/// Whoever was stopped goes on by the same command. Exit code 1: not everything was imported.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools)] // one for each flag
pub struct Args {
    /// The PublishedResource whose rules lead from orders to such objects
    #[arg(value_name = "PUBLISHED_RESOURCE")]
    published_resource: String,
    /// Objects on the service cluster: namespace/name, or name for kinds without namespaces
    #[arg(value_name = "OBJECT", conflicts_with_all = ["selector", "from_file", "all"])]
    objects: Vec<String>,
    /// Objects with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with_all = ["from_file", "all"])]
    selector: Option<String>,
    /// Objects named in this file, one in each line; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    from_file: Option<PathBuf>,
    /// All objects of the kind
    #[arg(long)]
    all: bool,
    /// The consumer's workspace: a path such as root:orgs:acme, or a logical cluster; may be a template
    #[arg(long, value_name = "WORKSPACE", required_unless_present = "undo", conflicts_with = "undo")]
    to: Option<String>,
    /// Namespace of the orders; may be a template
    #[arg(long, value_name = "NAMESPACE", default_value = Request::NAMESPACE)]
    order_namespace: String,
    /// Name of the orders; may be a template
    #[arg(long, alias = "name", value_name = "NAME", default_value = Request::NAME)]
    order_name: String,
    /// Let the order change this field of the object, and those below it; may be repeated
    #[arg(long, value_name = "FIELD")]
    accept: Vec<String>,
    /// Leave this label or annotation on the object alone; may end in *, and may be repeated
    #[arg(long, value_name = "KEY")]
    without: Vec<String>,
    /// What becomes of the object when its order is deleted
    #[arg(long, value_enum, default_value_t = AtEnd::Keep)]
    on_delete: AtEnd,
    /// Take an import back: the link or the order goes, and the object stays
    #[arg(long)]
    undo: bool,
    /// Only show what would be done
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    #[command(flatten)]
    agent: AgentFlags,
    /// How long to wait for the servers, and for the agent, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// What becomes of an object when its order is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AtEnd {
    /// It stays, without its link.
    #[value(name = "Keep")]
    Keep,
    /// It is deleted, as every copy is.
    #[value(name = "Delete")]
    Delete,
}

const EXAMPLES: &str = "\
Examples:
  carrick import databases prod/acme-db --to root:orgs:acme --dry-run
  carrick import databases -l tenant=acme --to root:orgs:acme
  carrick import databases --all --to 'root:{{ .Object.metadata.namespace }}'
  carrick import databases prod/acme-db --undo";

/// Imports objects, or takes that back.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let mut request = request(&args)?;
    let flags = args.agent.resolved().await?;
    let (show, act) = if args.undo { (Action::ShowUndo, Action::Undo) } else { (Action::Show, Action::Import) };
    if args.dry_run || !args.yes {
        let planned = work(&flags, &mut request, show).await?;
        if args.dry_run {
            return answer(&args, &planned);
        }
        // Standard output is for the answer.
        match args.output {
            Output::Text => print(&planned.to_string()),
            Output::Json => print_error(&planned.to_string()),
        }
        if planned.due() == 0 || planned.incomplete.is_some() {
            if args.output == Output::Json {
                print_json(&planned)?;
            }
            return Ok(code(&planned));
        }
        if !confirmed(&question(args.undo, planned.due()))? {
            anyhow::bail!("nothing was changed");
        }
    }
    answer(&args, &work(&flags, &mut request, act).await?)
}

fn question(undo: bool, due: usize) -> String {
    let objects = if due == 1 { "this object".to_owned() } else { format!("these {due} objects") };
    if undo { format!("Take the import of {objects} back?") } else { format!("Import {objects}?") }
}

fn request(args: &Args) -> anyhow::Result<Request> {
    let selected = match (&args.selector, &args.from_file) {
        (Some(selector), _) => Selected::Labelled(selector.clone()),
        (None, Some(file)) => Selected::Named(names(&read(file)?)),
        (None, None) if args.all => Selected::All,
        (None, None) => Selected::Named(args.objects.clone()),
    };
    anyhow::ensure!(
        !matches!(&selected, Selected::Named(names) if names.is_empty()),
        "say which objects: namespace/name, -l SELECTOR, --from-file FILE or --all"
    );
    Ok(Request {
        selected,
        namespace: args.order_namespace.clone(),
        name: args.order_name.clone(),
        accept: args.accept.clone(),
        without: args.without.clone(),
        on_delete: match args.on_delete {
            AtEnd::Keep => OnDelete::Keep,
            AtEnd::Delete => OnDelete::Delete,
        },
        patience: Duration::from_secs(args.timeout),
        wait: Duration::from_secs(args.timeout),
        ..Request::new(&args.published_resource, args.to.as_deref().unwrap_or_default())
    })
}

fn read(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).context("cannot read names from standard input");
    }
    std::fs::read_to_string(file).with_context(|| format!("cannot read names from {}", file.display()))
}

/// The names in a file: one in each line; what follows a # is a comment.
fn names(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

async fn work(flags: &AgentFlags, request: &mut Request, action: Action) -> anyhow::Result<Imports> {
    telling("looking for the agent", async |doing| {
        let agent = flags.identify().await?;
        let config = agent.options.clone().into_config()?;
        request.as_keeper = !agent.is_named;
        anyhow::Ok(import(config, request, action, &|text| doing.now(text)).await?)
    })
    .await
}

fn answer(args: &Args, imports: &Imports) -> anyhow::Result<ExitCode> {
    match args.output {
        Output::Text => {
            print(&imports.to_string());
            if args.dry_run && imports.due() > 0 {
                print("Nothing was changed. To do it, repeat the command without --dry-run.\n");
            }
        }
        Output::Json => print_json(imports)?,
    }
    Ok(code(imports))
}

fn code(imports: &Imports) -> ExitCode {
    let is_whole = imports.incomplete.is_none() && !imports.objects.iter().any(|object| object.outcome.is_problem());
    if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(args: &[&str]) -> anyhow::Result<Request> {
        request(&Cli::try_parse_from(["import", "dbs"].iter().chain(args))?.args)
    }

    #[test]
    fn objects_are_chosen_in_exactly_one_way() {
        let selected = |args: &[&str]| parsed(args).map(|request| request.selected);
        assert_eq!(selected(&["--all", "--to", "root:a"]).unwrap(), Selected::All);
        assert_eq!(selected(&["-l", "a=b", "--to", "root:a"]).unwrap(), Selected::Labelled("a=b".to_owned()));
        let named = ["x/y", "x/z"].map(str::to_owned).to_vec();
        assert_eq!(selected(&["x/y", "x/z", "--undo"]).unwrap(), Selected::Named(named));
        for wrong in [
            &["--to", "root:a"][..],
            &["x/y"],
            &["x/y", "--all", "--to", "root:a"],
            &["-l", "a=b", "--all", "--to", "root:a"],
            &["x/y", "--to", "root:a", "--undo"],
            &["x/y", "--to", "root:a", "--dry-run", "--yes"],
        ] {
            assert!(selected(wrong).is_err(), "{wrong:?}");
        }
        let problem = parsed(&["--to", "root:a"]).unwrap_err().to_string();
        assert!(problem.contains("-l SELECTOR"), "{problem}");
    }

    #[test]
    fn objects_stay_at_the_end_of_their_orders_unless_somebody_says_otherwise() {
        assert_eq!(parsed(&["--all", "--to", "w"]).unwrap().on_delete, OnDelete::Keep);
        let delete = parsed(&["--all", "--to", "w", "--on-delete", "Delete"]).unwrap();
        assert_eq!((delete.on_delete, delete.namespace.as_str()), (OnDelete::Delete, "default"));
    }

    #[test]
    fn a_file_names_one_object_in_each_line() {
        assert_eq!(names("a/b\n\n  c/d  # ours\n# none\n"), ["a/b", "c/d"]);
    }

    #[test]
    fn people_are_asked_about_what_will_be_done() {
        assert_eq!(question(false, 1), "Import this object?");
        assert_eq!(question(true, 3), "Take the import of these 3 objects back?");
    }
}
