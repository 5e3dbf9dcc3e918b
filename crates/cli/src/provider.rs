//! `carrick provider up`: from an operator and a login at kcp to an API that consumers can bind.
//!
//! ```text
//!  CRDs, PublishedResources ──▶ plan   pure: every object, and where it belongs
//!                                 ├─ target  creates, changes or deletes one of them
//!                                 ├─ mesh    what Platform Mesh needs elsewhere
//!                                 ├─ manifest  the agent's Deployment, where there is no Helm
//!                                 ├─ login   the agent's kubeconfig, with a token of a ServiceAccount in the workspace
//!                                 ├─ standing  what is there already: where the Secret leads, whether the agent runs
//!                                 ├─ undo    takes away what was made, unless somebody uses it
//!                                 └─ check   the doctor looks at all of it with the agent's eyes
//! ```

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

mod check;
mod login;
mod manifest;
mod mesh;
mod plan;
mod standing;
mod target;
mod undo;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use carrick_client::kube::config::Cluster;
use carrick_client::{Client, ListOptions, Overrides, Server};
use clap::ValueEnum;
use jiff::SignedDuration;

use crate::init::flags::OfferFlags;
use crate::init::offer::{Choices, Offer, label_of};
use crate::ui::{Done, Failed, Step, Ui};
use crate::{kubeconfig, logs, withdraw, workspaces};
use login::Login;
use mesh::MeshFlags;
use plan::{Plan, Side, Wanted};
use target::{Change, Target};

/// Real servers take their time for new workspaces and kinds.
const PATIENCE: Duration = Duration::from_mins(2);

/// Set up a provider in kcp.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Up(Box<UpArgs>),
}

/// Create all that a provider needs, on both sides, so that consumers can bind.
///
/// In kcp: the workspace, the APIExport, who may bind it, a ServiceAccount for the agent and its rights. On the service cluster: the CRD of
/// PublishedResources, the agent's rights, PublishedResources, and a Secret with the agent's kubeconfig. What is there already stays, and is changed only
/// where it differs. Then the doctor checks all of it. The agent itself is installed by the helm command that is printed.
///
/// The kubeconfig holds a token that ends after --token-duration. The agent renews it by itself whenever half of its time is over; so does this command when
/// it is run again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["crd", "from_cluster", "published_resource"])))]
struct UpArgs {
    /// Kubeconfig of kcp, with the right to create the workspace, or to administer it if it exists
    #[arg(long, value_name = "FILE")]
    kcp_kubeconfig: PathBuf,
    #[command(flatten)]
    offer: OfferFlags,
    /// PublishedResources of your own, in YAML or JSON, instead of those that follow from CRDs; may be repeated
    #[arg(long, value_name = "FILE")]
    published_resource: Vec<PathBuf>,
    /// How long the agent's token is valid: 30d, 12h, 90m
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = withdraw::duration)]
    token_duration: SignedDuration,
    /// Server that the agent uses for kcp, if that is not the one of the kubeconfig: https://<host>:<port>
    #[arg(long, value_name = "URL")]
    agent_kcp_server: Option<String>,
    /// Address that the agent uses instead of one in the URLs of the APIExportEndpointSlice: original-host:port=new-host:port; may be repeated
    #[arg(long, value_name = "OVERRIDES")]
    apiexport_hostport_override: Vec<String>,
    /// Image of the agent, such as registry.example.com/api-syncagent:0.1.0
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Print the agent's Deployment, for kubectl apply instead of Helm, and do nothing
    #[arg(long, requires = "image", conflicts_with_all = ["output", "values", "dry_run"])]
    print_manifests: bool,
    #[command(flatten)]
    mesh: MeshFlags,
    /// File to write the values for the Helm chart to
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// Say what would be created and changed, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print all objects, and do nothing
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// Let the agent of this name serve this workspace from now on, although it serves another one; it gets a new token
    #[arg(long, conflicts_with = "undo")]
    repoint: bool,
    #[command(flatten)]
    undoing: UndoFlags,
}

/// How to take it all away.
#[derive(Debug, clap::Args)]
struct UndoFlags {
    /// Take away what this command has made, unless consumers use it; asks first
    #[arg(long, conflicts_with_all = ["output", "values"])]
    undo: bool,
    /// With --undo: even if consumers have bound the export, or the agent was seen a moment ago
    #[arg(long, requires = "undo")]
    force: bool,
    /// With --undo: do not ask
    #[arg(short, long, requires = "undo")]
    yes: bool,
    /// With --undo: delete what the agent remembers of its orders, too; the name of the APIExport says that you mean it
    #[arg(long, value_name = "EXPORT", requires = "undo")]
    delete_state: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// As kubectl takes it.
    Yaml,
}

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

/// Runs a subcommand.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let Command::Up(args) = args.command;
    let ui = Ui::new(true);
    for text in &args.apiexport_hostport_override {
        text.parse::<carrick_client::HostPortOverride>()
            .map_err(|problem| anyhow::anyhow!("invalid --apiexport-hostport-override {text:?}: {problem}"))?;
    }
    if let Some(server) = &args.agent_kcp_server {
        check_server(server)?;
    }
    args.mesh.check()?;
    let plan = plan(&args).await?;
    if args.output == Some(Output::Yaml) {
        ui.line(plan.yaml()?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(image) = args.image.as_deref().filter(|_| args.print_manifests) {
        let deployment = plan.deployment(image, &args.apiexport_hostport_override);
        ui.line(serde_saphyr::to_string(&deployment)?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let needed = check::needed_here(&args.apiexport_hostport_override).await;
    let setup = Setup::new(&args, plan, needed)?;
    if !args.undoing.undo && !args.repoint && args.mesh.provider_in.is_none() {
        setup.refuse_repointing().await?;
    }
    let ended = if args.undoing.undo {
        undo::undo(&ui, &setup, &args.undoing, args.dry_run).await?
    } else if args.dry_run {
        setup.preview(&ui).await?
    } else {
        up(&ui, setup, &args).await
    };
    match ended {
        Ok(code) => Ok(code),
        // Said already.
        Err(Failed) => Ok(ExitCode::FAILURE),
    }
}

/// The server for the agent must be one, not only a host.
fn check_server(server: &str) -> anyhow::Result<()> {
    let url = server.parse::<http::Uri>().ok();
    let whole =
        url.is_some_and(|url| url.scheme_str() == Some("https") && url.host().is_some_and(|host| !host.is_empty()));
    anyhow::ensure!(whole, "invalid --agent-kcp-server {server:?}: say https://<host>:<port>");
    Ok(())
}

/// Whatever is written to the cluster must work: a draft that fails for some orders is completed by a person first.
fn check_drafts(offers: &[Offer]) -> anyhow::Result<()> {
    for (offer, implemented) in offers.iter().filter_map(|offer| Some((offer, offer.implemented.as_ref()?))) {
        let (kind, resource) = (&offer.kind, &implemented.api.resource);
        let guessed = implemented.draft.guessed().next();
        let guess = guessed.map(|path| format!("{kind} requires {path}, and a value for it was only guessed"));
        if let Some(problem) = implemented.doubts.first().cloned().or(guess) {
            bail!(
                "fields of the same name are not enough to serve {resource}: {problem}; write a first PublishedResource \
                 with carrick init --implements, complete its steps, and give it with --published-resource"
            );
        }
    }
    Ok(())
}

/// Everything that is wanted.
async fn plan(args: &UpArgs) -> anyhow::Result<Plan> {
    let choices = args.offer.choices("system:serviceaccount")?;
    let kcp = match &args.offer.implements {
        Some(_) => Some(KcpLogin::read(&args.kcp_kubeconfig)?.server),
        None => None,
    };
    let offers = args.offer.offers(&choices, kcp.as_ref()).await?;
    crate::init::distinct(&offers)?;
    check_drafts(&offers)?;
    let mut own = Vec::new();
    for path in &args.published_resource {
        own.extend(plan::read_published(path)?);
    }
    if let (Some(reference), Some(kcp), true) = (&args.offer.implements, &kcp, offers.is_empty()) {
        reference.read(kcp).await?.fill(&mut own)?;
    }
    let mut published = Vec::new();
    for pr in own {
        published.push(plan::Own::look_up(pr, args.offer.kubeconfig.as_deref(), &choices).await?);
    }
    let mut plan = Plan::new(&offers, &published, &choices, args.mesh.platform_mesh)?;
    if let Some(home) = &args.mesh.provider_in {
        // Its name follows from that of the export, which is known only now.
        let kcp = KcpLogin::read(&args.kcp_kubeconfig)?.server;
        let workspace = mesh::workspace_of(&kcp, home, &plan.export).await?;
        plan = Plan::new(&offers, &published, &Choices { workspace, ..choices }, true)?;
    }
    plan.elsewhere = mesh::elsewhere(&args.mesh, &plan.export, &plan.choices.workspace);
    Ok(plan)
}

/// Both servers, and what is wanted there.
struct Setup {
    plan: Plan,
    kcp: KcpLogin,
    service: Target,
    workspace: Target,
    /// The kubeconfig of the service cluster, if it was given.
    kubeconfig: Option<PathBuf>,
    /// Addresses to use here, too, instead of those in the URLs of the slice.
    overrides: Vec<String>,
}

/// A login at kcp.
struct KcpLogin {
    server: Server,
    /// The cluster in its kubeconfig, for that of the agent.
    cluster: Cluster,
}

impl KcpLogin {
    fn read(file: &Path) -> anyhow::Result<Self> {
        let server = Server::from_kubeconfig(file, &Overrides::default())
            .context("the login at kcp cannot be used; name another kubeconfig with --kcp-kubeconfig")?;
        Ok(Self { server, cluster: login::cluster_of(file)? })
    }

    /// The login that a kubeconfig gives.
    fn of(text: &str) -> anyhow::Result<Self> {
        let file = kubeconfig::Temporary::new(text.as_bytes())?;
        Ok(Self { server: Server::from_kubeconfig_yaml(text)?, cluster: login::cluster_of(file.path())? })
    }

    fn workspace(&self, path: &str) -> Target {
        Target::new(self.server.at_path(&format!("/clusters/{path}")), format!("workspace {path}"))
    }
}

impl Setup {
    fn new(args: &UpArgs, plan: Plan, overrides: Vec<String>) -> anyhow::Result<Self> {
        let kcp = KcpLogin::read(&args.kcp_kubeconfig)?;
        let service = Server::infer(args.offer.kubeconfig.as_deref(), &Overrides::default())
            .context("the service cluster cannot be found; name its kubeconfig with --kubeconfig")?;
        let workspace = kcp.workspace(&plan.choices.workspace);
        let service = Target::new(service.client(), format!("the service cluster {}", service.url()));
        let setup = Self { plan, kcp, service, workspace, kubeconfig: args.offer.kubeconfig.clone(), overrides };
        setup.redirect();
        Ok(setup)
    }

    /// Uses the addresses that are needed here.
    fn redirect(&self) {
        self.kcp.server.redirect(self.overrides.iter().filter_map(|text| text.parse().ok()).collect());
    }

    fn target(&self, side: Side) -> &Target {
        match side {
            Side::Service => &self.service,
            Side::Workspace => &self.workspace,
        }
    }

    /// The URL of the provider's workspace, from here.
    fn workspace_url(&self) -> String {
        login::at_workspace(self.kcp.server.url(), &self.plan.choices.workspace)
    }

    /// An agent that serves another workspace, perhaps for consumers, is not taken away from them by a mistyped path.
    async fn refuse_repointing(&self) -> anyhow::Result<()> {
        let Some(standing) = standing::read(self).await? else { return Ok(()) };
        if let Some(why) = standing.leads_elsewhere(self).await {
            bail!(
                "{why}; nothing was changed. For a second agent beside it, choose another name with --agent; to let this \
                 agent serve the other workspace from now on, and no longer {}, say --repoint",
                standing.url
            );
        }
        Ok(())
    }

    /// What would be done.
    async fn preview(&self, ui: &Ui) -> anyhow::Result<Result<ExitCode, Failed>> {
        let path = &self.plan.choices.workspace;
        let exists = workspaces::exists(&self.kcp.server, path).await?;
        ui.line(format_args!("{} workspace {path}", if exists { "unchanged" } else { "create   " }));
        for wanted in &self.plan.objects {
            let target = self.target(wanted.side);
            let change = match wanted.side {
                Side::Workspace if !exists => Change::Create,
                _ => target.compare(wanted).await?,
            };
            ui.line(format_args!("{change} {} {}", wanted.shown(), wanted.side.shown()));
        }
        for (path, wanted) in &self.plan.elsewhere {
            let change = self.kcp.workspace(path).compare(wanted).await?;
            ui.line(format_args!("{change} {} in workspace {path}", wanted.shown()));
        }
        ui.line(format_args!(
            "renew     Secret {}/{} on the service cluster, with the agent's kubeconfig",
            self.plan.choices.namespace, self.plan.secret
        ));
        Ok(Ok(ExitCode::SUCCESS))
    }
}

/// Creates and changes whatever differs, then looks at it with the doctor's eyes.
async fn up(ui: &Ui, mut setup: Setup, args: &UpArgs) -> Result<ExitCode, Failed> {
    let platform = args.mesh.provider_in.as_deref().map(|home| setup.kcp.workspace(home));
    let policies: Vec<(Target, Wanted)> = setup
        .plan
        .elsewhere
        .iter()
        .filter(|(_, wanted)| wanted.text("/kind") != "Provider")
        .map(|(path, wanted)| (setup.kcp.workspace(path), wanted.clone()))
        .collect();
    if let Some(home) = platform {
        let step = Step::new("the Provider of Platform Mesh", "a Provider that is Ready")
            .hint(format!("bind providers.platform-mesh.io in {}", home.name))
            .limit(PATIENCE);
        let export = setup.plan.export.clone();
        let kcp = ui.step(step, async |seen| {
            let (change, text) = mesh::login(&home, &export, seen).await?;
            let told = format!("{change} {} in {}, which is Ready", mesh::provider(&export).shown(), home.name);
            Ok(Done::new(told).with(KcpLogin::of(&text)?))
        });
        setup.kcp = kcp.await?;
        setup.redirect();
        setup.workspace = setup.kcp.workspace(&setup.plan.choices.workspace);
    }
    let setup = &setup;
    let (plan, kcp) = (&setup.plan, &setup.kcp.server);
    let path = &plan.choices.workspace;
    let step = Step::new(format!("workspace {path}"), "the workspace is Ready")
        .hint("a login that may create workspaces in its parent, or administer the workspace itself")
        .limit(PATIENCE);
    ui.step(step, async |_| {
        let made = workspaces::ensure_marked(kcp, path, plan::mark()).await?;
        Ok(Done::new(if made.is_empty() {
            format!("workspace {path} is there")
        } else {
            format!("created workspace {}", made.join(", "))
        }))
    })
    .await?;
    for (side, what) in [(Side::Workspace, "in kcp"), (Side::Service, "on the service cluster")] {
        let target = setup.target(side);
        let step = Step::new(format!("objects {what}"), "all objects are there")
            .hint(format!("a login that administers {}", target.name))
            .limit(PATIENCE);
        ui.step(step, async |seen| {
            let mut lines = Vec::new();
            let wanted: Vec<_> = plan.objects.iter().filter(|wanted| wanted.side == side).collect();
            for one in &wanted {
                let change = target.ensure(one, seen).await?;
                if change != Change::None {
                    lines.push(format!("{change} {}", one.shown()));
                }
            }
            let changed = lines.len();
            Ok(Done::new(format!("{} objects {what}, {changed} of them new or changed", wanted.len())).details(lines))
        })
        .await?;
    }
    if !policies.is_empty() {
        ui.step(Step::new("who may bind, on Platform Mesh", "an APIExportPolicy"), async |seen| {
            let mut lines = Vec::new();
            for (target, wanted) in &policies {
                lines.push(format!("{} {} in {}", target.ensure(wanted, seen).await?, wanted.shown(), target.name));
            }
            Ok(Done::new("the policies of Platform Mesh are there").details(lines))
        })
        .await?;
    }
    let login = ui
        .step(Step::new("the agent's kubeconfig", "a token, and a Secret that holds it"), async |seen| {
            let login = Login::make(setup, args.token_duration, args.agent_kcp_server.as_deref(), args.repoint, seen);
            let login = login.await?;
            Ok(Done::new(login.told(&plan.choices.namespace, &plan.secret)).with(login))
        })
        .await?;
    if let Some(file) = &args.values {
        let text = plan.values(&args.apiexport_hostport_override);
        ui.step(Step::new("chart values", "a file"), async |_| {
            std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
            Ok(Done::new(format!("wrote {}", file.display())))
        })
        .await?;
    }
    unlabelled(ui, setup).await;
    ui.heading("Install the agent, or upgrade it");
    let (overrides, image) = (&args.apiexport_hostport_override, args.image.as_deref());
    let chart = args.offer.chart();
    let (kubeconfig, values) = (args.offer.kubeconfig.as_deref(), args.values.as_deref());
    ui.command(&plan.helm(kubeconfig, values, overrides, image, &chart.reference));
    if let Some(text) = chart.way_out("the same command with") {
        ui.line(text);
    }
    if image.is_none() {
        ui.line(
            "A Dockerfile for the agent's image lies in the repository of carrick: push one to your registry, and name it with \
             --image. With --image and --print-manifests this command prints a Deployment for kubectl apply, without Helm.",
        );
    }
    ui.heading(
        "What the doctor says, with the agent's rights in kcp; amber until the agent runs and somebody has bound",
    );
    match check::check(setup, args, &login).await {
        Ok(code) => Ok(code),
        Err(error) => {
            ui.line(format_args!("error: {error:#}"));
            Err(Failed)
        }
    }
}

/// Says which PublishedResources no agent with a selector serves: people have made them, perhaps for this one.
async fn unlabelled(ui: &Ui, setup: &Setup) {
    let (label, _) = label_of(&setup.plan.export);
    let (kind, without) = (undo::published_resources(), ListOptions::labels(format!("!{label}")));
    // Whoever may not list them gets an answer from the doctor.
    let found = setup.service.client.list(&kind, None, &without).await.unwrap_or_default();
    let names: Vec<&str> = found.iter().filter_map(|one| one["metadata"]["name"].as_str()).collect();
    if names.is_empty() {
        return;
    }
    let kubeconfig = setup.kubeconfig.as_ref().map(|file| format!(" --kubeconfig {}", file.display()));
    ui.heading(
        "PublishedResources without the label of an export, which this agent does not serve; if they are for it",
    );
    ui.command(&format!(
        "kubectl{} label publishedresource {} {}",
        kubeconfig.unwrap_or_default(),
        names.join(" "),
        setup.plan.selector()
    ));
}

/// Where the bindings of consumers can be seen.
fn everywhere(kcp: &Server, endpoint: &str) -> anyhow::Result<Client> {
    Ok(kcp.at_published_url(&carrick_kcp::url::in_endpoint(endpoint, "*"))?)
}
