//! `carrick provider up`: from an operator and a login at kcp to an API that consumers can bind.
//!
//! ```text
//!  CRDs, PublishedResources ──▶ plan   pure: every object, and where it belongs
//!                                 ├─ target  creates, changes or deletes one of them
//!                                 ├─ crate::mesh  what Platform Mesh needs, here and elsewhere
//!                                 ├─ values  values of the Helm chart, and the command that installs the agent
//!                                 ├─ manifest  the agent's Deployment, where there is no Helm
//!                                 ├─ login   the agent's kubeconfig, with a token of a ServiceAccount in the workspace
//!                                 ├─ standing  what is there already: where the Secret leads, whether the agent runs
//!                                 ├─ undo    takes away what was made, unless somebody uses it
//!                                 └─ check   the doctor looks at all of it with the agent's eyes
//! ```

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

mod args;
mod check;
mod login;
pub(crate) mod manifest;
pub(crate) mod plan;
mod standing;
pub(crate) mod target;
mod undo;
mod values;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use carrick_client::kube::config::Cluster;
use carrick_client::{Client, ListOptions, Overrides, Server};

use crate::init::offer::{Choices, Offer, label_of};
use crate::mesh::managed::{Act, ChartChoice};
use crate::mesh::{broker, home, managed, served};
use crate::ui::{Done, Failed, Step, Ui, confirmed};
use crate::{kubeconfig, logs, workspaces};
use args::{Output, UpArgs};
use login::Login;
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
    let mut plan = plan(&args).await?;
    let managed = match &args.mesh.managed_by {
        Some(mesh) => Some(managed_provider(&args, mesh, &plan)?),
        None => None,
    };
    if let Some(managed) = &managed {
        plan.objects = vec![managed.clone()];
    }
    if args.output == Some(Output::Yaml) {
        ui.line(plan.yaml()?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(image) = args.image.as_deref().filter(|_| args.print_manifests) {
        let deployment = plan.deployment(image, &args.apiexport_hostport_override);
        ui.line(serde_saphyr::to_string(&deployment)?.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(managed) = &managed {
        let act = match (args.undoing.undo, args.dry_run) {
            (_, true) => Act::Preview,
            (true, false) => Act::Undo,
            (false, false) => Act::Up,
        };
        if act == Act::Undo && !args.undoing.yes && !confirmed(&format!("Delete {}?", managed.shown()))? {
            ui.line("Nothing was deleted.");
            return Ok(ExitCode::FAILURE);
        }
        let service = service_target(&args)?;
        return Ok(managed::run(&ui, &service, managed, act).await?.unwrap_or(ExitCode::FAILURE));
    }
    let needed = check::needed_here(&args.apiexport_hostport_override).await;
    let setup = Setup::new(&args, plan, needed)?;
    if !args.undoing.undo && !args.repoint && !args.bootstrap && args.mesh.provider_in.is_none() {
        setup.refuse_repointing().await?;
    }
    let ended = if args.undoing.undo {
        undo::undo(&ui, &setup, &args.undoing, args.dry_run).await?
    } else if args.dry_run {
        setup.preview(&ui, args.bootstrap).await?
    } else {
        up(&ui, setup, &args).await
    };
    match ended {
        Ok(code) => Ok(code),
        // Said already.
        Err(Failed) => Ok(ExitCode::FAILURE),
    }
}

/// The ManagedProvider that stands for all of a plan.
fn managed_provider(args: &UpArgs, mesh: &managed::MeshReference, plan: &Plan) -> anyhow::Result<Wanted> {
    let wishes = args.mesh.wishes()?.context("--managed-by needs --platform-mesh")?;
    let choice = ChartChoice {
        chart: args.offer.chart.as_deref().context("--managed-by needs --chart")?,
        version: args.mesh.chart_version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION")),
        image: args.image.as_deref(),
        overrides: &args.apiexport_hostport_override,
        broker: args.mesh.broker.as_deref(),
    };
    managed::object(mesh, plan, &choice, &wishes)
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
    let mut choices = args.offer.choices("system:serviceaccount")?;
    let kcp = match &args.offer.implements {
        Some(_) => Some(args.login()?.server),
        None => None,
    };
    if args.bootstrap {
        let login = args.login()?;
        let here = carrick_kcp::url::workspace(login.server.url());
        here.context("with --bootstrap, --kcp-kubeconfig must lead to a workspace")?.clone_into(&mut choices.workspace);
    }
    let wishes = args.mesh.wishes()?;
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
    let mut plan = Plan::new(&offers, &published, &choices, wishes.as_ref())?;
    if let Some(place) = &args.mesh.provider_in {
        // Its name follows from that of the export, which is known only now.
        let workspace = home::workspace_of(&args.login()?.server, place, &plan.export).await?;
        plan = Plan::new(&offers, &published, &Choices { workspace, ..choices }, wishes.as_ref())?;
    } else if args.mesh.platform_mesh && args.mesh.managed_by.is_none() {
        plan.home = served::workspace(&plan.choices.workspace);
    }
    // What is taken away is known by its name; what a ManagedProvider prepares, the chart's Job does.
    if let (Some(platform), false, None) = (&args.mesh.broker, args.undoing.undo, &args.mesh.managed_by) {
        plan.objects.extend(broker::objects(&args.login()?.server, platform, &plan.agent).await?);
    }
    plan.elsewhere = home::elsewhere(&args.mesh, &plan.export, &plan.choices.workspace);
    if args.bootstrap {
        plan.keep_bootstrap();
    }
    Ok(plan)
}

/// The service cluster.
fn service_target(args: &UpArgs) -> anyhow::Result<Target> {
    let service = Server::infer(args.offer.kubeconfig.as_deref(), &Overrides::default())
        .context("the service cluster cannot be found; name its kubeconfig with --kubeconfig")?;
    Ok(Target::new(service.client(), format!("the service cluster {}", service.url())))
}

impl UpArgs {
    /// The login at kcp.
    fn login(&self) -> anyhow::Result<KcpLogin> {
        KcpLogin::read(self.kcp_kubeconfig.as_deref().context("name your kubeconfig for kcp with --kcp-kubeconfig")?)
    }
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
    /// Whether the portal of Platform Mesh is to show what is published.
    portal: bool,
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
        let kcp = args.login()?;
        let service = service_target(args)?;
        let (workspace, portal) = (kcp.workspace(&plan.choices.workspace), args.mesh.platform_mesh);
        let setup =
            Self { plan, kcp, service, workspace, kubeconfig: args.offer.kubeconfig.clone(), overrides, portal };
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

    /// What may surprise the owner of a kind on Platform Mesh.
    fn notes(&self) -> Vec<String> {
        if self.portal { self.plan.mesh_notes() } else { Vec::new() }
    }

    /// What would be done.
    async fn preview(&self, ui: &Ui, bootstrap: bool) -> anyhow::Result<Result<ExitCode, Failed>> {
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
        for note in self.notes() {
            ui.line(format_args!("note: {note}"));
        }
        if bootstrap {
            return Ok(Ok(ExitCode::SUCCESS));
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
    let platform = args.mesh.provider_in.as_deref().map(|place| setup.kcp.workspace(place));
    let policies: Vec<(Target, Wanted)> = setup
        .plan
        .elsewhere
        .iter()
        .filter(|(_, wanted)| wanted.text("/kind") != "Provider")
        .map(|(path, wanted)| (setup.kcp.workspace(path), wanted.clone()))
        .collect();
    if let Some(place) = platform {
        let step = Step::new("the Provider of Platform Mesh", "a Provider that is Ready")
            .hint(format!("bind providers.platform-mesh.io in {}", place.name))
            .limit(PATIENCE);
        let export = setup.plan.export.clone();
        let kcp = ui.step(step, async |seen| {
            let (change, text) = home::login(&place, &export, seen).await?;
            let told = format!("{change} {} in {}, which is Ready", home::provider(&export).shown(), place.name);
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
        let kind = if setup.portal { served::type_of(kcp, path).await? } else { None };
        let made = workspaces::ensure_marked(kcp, path, plan::mark(), kind.as_ref()).await?;
        Ok(Done::new(if made.is_empty() {
            format!("workspace {path} is there")
        } else {
            format!("created workspace {}", made.join(", "))
        }))
    })
    .await?;
    if setup.portal {
        let step = Step::new("kinds of Platform Mesh", "the workspace serves them").limit(PATIENCE);
        let hint = format!("a login that administers {}", setup.workspace.name);
        ui.step(step.hint(hint), async |seen| {
            let lines = served::ensure(kcp, &setup.workspace, &plan.objects, seen).await?;
            let notes = setup.notes().into_iter().map(|note| format!("note: {note}"));
            Ok(Done::new("the workspace serves the kinds of Platform Mesh").details(lines.into_iter().chain(notes)))
        })
        .await?;
    }
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
    if broker::is_wanted(plan) {
        let hint = "see the APIBinding acceptapis: does its export serve AcceptAPIs?";
        let step = Step::new("AcceptAPIs of the broker", "the workspace serves them").hint(hint).limit(PATIENCE);
        ui.step(step, async |seen| {
            broker::served(&setup.workspace, seen).await?;
            Ok(Done::new("the workspace serves AcceptAPIs").details(broker::notes(plan)))
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
    if args.bootstrap {
        return Ok(ExitCode::SUCCESS);
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
