//! The shell around the pure core: connections, watches, controllers.
//!
//! ```text
//!  run ─┬─ http      /metrics, /healthz, /readyz, and the dashboard, behind a login if others can reach it
//!       ├─ conversion  kcp's questions about versions, answered by the rules
//!       ├─ renewal   another token for kcp before the present one ends, if the agent is told to see to that
//!       ├─ connect   kubeconfig ─▶ slice ─▶ export
//!       ├─ election  only one of several replicas goes on from here (carrick-multicluster)
//!       ├─ catalog   PublishedResources + CRDs ─▶ Catalog ─▶ keeper ─┬─▶ schemas   APIResourceSchemas, status of PublishedResources
//!       │                                                            ├─▶ export    APIExport
//!       │                                                            ├─▶ platform_mesh  AcceptAPIs
//!       │                                                            ├─▶ rights    what the service cluster grants and serves
//!       │                                                            └─▶ objects   consumers' objects and their copies
//!       └─ events    written in the background
//! ```

pub mod catalog;
pub mod config;
pub mod connect;
pub mod conversion;
pub mod dashboard;
pub mod events;
pub mod explain;
pub mod health;
pub mod http;
pub mod import;
pub mod keeper;
pub mod login;
pub mod metrics;
pub mod restore;
pub mod retry;
pub mod rights;
pub mod timing;

mod discovery;
mod export;
mod objects;
pub mod platform_mesh;
mod renewal;
mod schemas;
mod withdrawals;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carrick_client::Client;
use carrick_multicluster::Pace;
use carrick_multicluster::coordination::{Election, Lost};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use catalog::Catalog;
use connect::{ConnectError, KcpLocations};
use dashboard::Dashboard;
use events::Recorder;
use export::Exported;
use health::{Health, Part};
use http::Pages;
use login::Login;
use metrics::Metrics;
use renewal::Renewal;
use rights::Granted;

pub use config::{AgentConfig, Controller};
pub use timing::Timing;

/// How long running work may take to finish after a stop.
const GRACE: Duration = Duration::from_secs(8);
/// How long to wait after that for answers to writes that are already sent.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// Why an agent ended.
#[derive(Debug, Error)]
pub enum AgentError {
    /// Metrics or probes cannot be served.
    #[error(transparent)]
    Http(#[from] carrick_process::HttpError),
    /// Conversions cannot be served.
    #[error(transparent)]
    Conversion(#[from] conversion::ConversionServerError),
    /// The slice or the export cannot be found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Another replica leads now.
    #[error(transparent)]
    Leader(#[from] Lost),
    /// A part of the agent has ended by itself: a defect.
    #[error("{part} ended unexpectedly{problem}; please report this")]
    Ended {
        /// Which part.
        part: String,
        /// How it ended, if that is known.
        problem: String,
    },
}

/// Runs an agent until it is told to stop, which is no error.
pub async fn run(config: AgentConfig, stop: CancellationToken) -> Result<(), AgentError> {
    tracing::info!(
        version = crate::VERSION,
        name = config.agent_name,
        apiexportendpointslice = %config.slice,
        "Moin, I'm the kcp Sync Agent"
    );
    // Stops whatever still runs, however this function returns.
    let end = CancellationToken::new();
    let _end = end.clone().drop_guard();
    let health = Arc::new(Health::default());
    let metrics = Arc::new(Metrics::default());
    let servers = [config.local.clone(), config.kcp.clone()];
    let _requests = metrics.show(move |page| metrics::show_requests(page, &servers));
    let dashboard =
        Dashboard::new(&config.agent_name, config.slice.to_string(), Arc::clone(&health), Arc::clone(&metrics));
    let dashboard = Arc::new(dashboard);
    if let Some(address) = &config.dashboard_address {
        tokio::spawn(Arc::clone(&dashboard).remember(end.clone()));
        let listener = carrick_process::bind(address, http::DASHBOARD_FLAG).await?;
        let login = Login::unless_loopback(&listener, &config);
        tokio::spawn(http::serve_dashboard(listener, Arc::clone(&dashboard), login, end.clone()));
    }
    let pages = [
        (&config.metrics_address, Pages::Metrics(Arc::clone(&metrics))),
        (&config.health_address, Pages::Health(Arc::clone(&health))),
    ];
    for (address, pages) in pages {
        if let Some(address) = address {
            let listener = carrick_process::bind(address, pages.flag()).await?;
            tokio::spawn(carrick_process::serve(listener, move |target| pages.answer(target), end.clone()));
        }
    }

    serve_conversions(&config, &health, &metrics, &end).await?;

    let leads = watch::Sender::new(!config.leader_election);
    if let Some(secret) = &config.renew_token {
        // Before there is a connection to kcp: the Secret may hold a token that the file of a restarted container lacks.
        tokio::spawn(Renewal::new(&config, secret, &metrics).run(leads.subscribe(), end.clone()));
    }

    let kcp_part = health.part("connection to kcp");
    let once = config.exit_on_startup_error;
    let Some(places) = connect::connect(&config.kcp, &config.slice, once, &kcp_part, &stop).await? else {
        return Ok(());
    };

    let pace = objects::pace(config.budget);
    let (recorder, writers) = Recorder::start("syncagent", &pace);
    let took_over = AtomicBool::new(false);
    let mut agent = Agent { config, places, health, metrics, dashboard, recorder, pace, kcp_part, took_over, leads };
    let ended = if agent.config.leader_election { agent.run_as_leader(&stop).await } else { agent.work(&stop).await };
    drop(agent);
    writers.finish().await;
    ended
}

/// Starts the conversion webhook, if there is to be one.
async fn serve_conversions(
    config: &AgentConfig,
    health: &Arc<Health>,
    metrics: &Arc<Metrics>,
    end: &CancellationToken,
) -> Result<(), AgentError> {
    let Some(server) = config.conversion.clone() else { return Ok(()) };
    let tls = server.load()?;
    let listener = carrick_process::bind(&server.address, conversion::FLAG).await?;
    let (sender, catalog) = watch::channel(Arc::new(Catalog::default()));
    let setup = catalog::Setup {
        local: config.local.client(),
        selector: config.selector.clone(),
        defaults: config.defaults(),
        timing: config.timing,
    };
    // What is wrong with the watches, the catalog of the controllers tells.
    let watches = catalog::run(setup, Arc::default(), Arc::clone(metrics), sender, end.clone());
    tokio::spawn(watches);
    let part = health.part("conversion webhook");
    tokio::spawn(server.serve(listener, tls, catalog, part, end.clone()));
    Ok(())
}

/// A connected agent.
struct Agent {
    config: AgentConfig,
    places: KcpLocations,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    dashboard: Arc<Dashboard>,
    recorder: Recorder,
    pace: Pace,
    kcp_part: Part,
    /// Whether other agents were replaced already: that happens once.
    took_over: AtomicBool,
    /// Whether this replica leads.
    leads: watch::Sender<bool>,
}

/// Why the controllers were halted.
enum Halt {
    /// The agent was told to stop.
    Stopped,
    /// The slice refers to another export now.
    Moved,
    /// A server has gone back in time.
    WentBack,
    /// A part has ended by itself.
    Ended(AgentError),
}

impl Agent {
    /// Waits for the lease, works while it is held, and releases it.
    async fn run_as_leader(&mut self, stop: &CancellationToken) -> Result<(), AgentError> {
        let part = self.health.part("leader election");
        let name = format!("syncagent.{}", self.config.agent_name);
        // A healthy standby is ready: otherwise no rollout with two replicas would ever finish.
        let report = |state: Result<(), &str>| match state {
            Ok(()) => part.works(),
            Err(problem) => part.fails(&problem),
        };
        let mut election = Election::new(self.config.local.client(), &name).namespace(&self.config.namespace);
        self.metrics.set_leader(&name, false);
        let leadership = tokio::select! {
            () = stop.cancelled() => None,
            leadership = election.acquire(&report) => Some(leadership),
        };
        let Some(leadership) = leadership else {
            election.release().await;
            return Ok(());
        };
        self.metrics.set_leader(&name, true);
        self.leads.send_replace(true);
        // Held until the work has finished. When it is lost, the work is aborted.
        let (local, kcp) = (self.config.local.clone(), self.config.kcp.clone());
        let ended = election.hold_while(&leadership, &report, self.work(stop)).await?;
        // A write that is still on its way could collide with those of a successor: then the lease is left to expire.
        if local.settle_writes(LAST_WRITES).await && kcp.settle_writes(LAST_WRITES).await {
            election.release().await;
        } else {
            tracing::warn!(
                lease = name,
                "A write may still arrive, so the lease is not released and expires by itself."
            );
        }
        ended
    }

    /// Runs the controllers until told to stop. When the slice refers to another export, they are restarted for that one.
    async fn work(&mut self, stop: &CancellationToken) -> Result<(), AgentError> {
        loop {
            tracing::info!("Starting kcp Sync Agent…");
            match self.run_controllers(stop).await {
                Halt::Stopped => return Ok(()),
                Halt::Ended(error) => return Err(error),
                Halt::Moved | Halt::WentBack => {}
            }
            let config = &self.config;
            match connect::connect(&config.kcp, &config.slice, false, &self.kcp_part, stop).await? {
                Some(places) => self.places = places,
                None => return Ok(()),
            }
        }
    }

    async fn run_controllers(&self, stop: &CancellationToken) -> Halt {
        let halt = stop.child_token();
        let mut rewound = [self.config.local.rewound(), self.config.kcp.rewound()];
        let mut parts = self.start(&halt);
        let [local, kcp] = &mut rewound;
        let why = tokio::select! {
            () = stop.cancelled() => Halt::Stopped,
            Ok(()) = local.changed() => Halt::WentBack,
            Ok(()) = kcp.changed() => Halt::WentBack,
            reference = connect::moved(&self.places) => {
                let (export, path) = (reference.name, reference.path);
                tracing::info!(export, path, "The APIExportEndpointSlice is for another APIExport now, following it.");
                Halt::Moved
            }
            Some(part) = parts.join_next() => match part {
                _ if stop.is_cancelled() => Halt::Stopped,
                Ok(part) => Halt::Ended(AgentError::Ended { part: part.to_owned(), problem: String::new() }),
                Err(error) => {
                    Halt::Ended(AgentError::Ended { part: "a controller".to_owned(), problem: format!(": {error}") })
                }
            }
        };
        if matches!(why, Halt::WentBack) {
            // What was remembered, written and waited for belongs to a time that has not been: state Secrets, caches, pauses.
            tracing::info!("Beginning again, because a server has gone back in time.");
        }
        halt.cancel();
        let all = async { while parts.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, all).await.is_err() {
            tracing::warn!("Some work did not finish in time and is aborted.");
        }
        why
    }

    /// Starts all parts that are not disabled. Each returns its name when it ends.
    fn start(&self, halt: &CancellationToken) -> JoinSet<&'static str> {
        let local = self.config.local.client();
        let (catalogs, everything) = watch::channel(Arc::new(Catalog::default()));
        let (kept_catalogs, kept) = watch::channel(Arc::new(Catalog::default()));
        let (exports, exported) = watch::channel(Exported::default());
        let (all_troubles, troubles) = watch::channel(objects::Troubles::default());
        let (grants, granted) = watch::channel(Granted::default());
        let (choices, chosen) = watch::channel(schemas::Chosen::default());
        let (releases, released) = watch::channel(objects::Released::default());
        let (accepts, accepted) = watch::channel(platform_mesh::Reports::default());
        let (refused, to_ask_again) = mpsc::unbounded_channel();
        self.dashboard.follow(&self.places, kept.clone(), troubles.clone());
        let mut parts = JoinSet::new();

        let (health, metrics) = (Arc::clone(&self.health), Arc::clone(&self.metrics));
        let catalog = catalog::run(self.catalog_setup(&local), health, metrics, catalogs, halt.clone());
        run_part(&mut parts, "the catalog", catalog);
        let keeper = keeper::run(self.keeper_setup(&local), everything, kept_catalogs, halt.clone());
        run_part(&mut parts, "the keeper", keeper);
        let rights = rights::run(local.clone(), kept.clone(), to_ask_again, grants, halt.clone());
        run_part(&mut parts, "the check of rights", rights);
        let withdrawals = withdrawals::run(local.clone(), kept.clone(), halt.clone());
        run_part(&mut parts, "the withdrawals controller", withdrawals);

        if self.enabled(Controller::ApiResourceSchema) {
            let schemas = self.schemas(&local, choices, (exported.clone(), troubles, granted.clone(), accepted));
            run_part(&mut parts, "the apiresourceschema controller", schemas.run(kept.clone(), halt.clone()));
        }
        if self.enabled(Controller::ApiExport) {
            let export = self.export(exports, chosen, released);
            run_part(&mut parts, "the apiexport controller", export.run(kept.clone(), halt.clone()));
            let accept_apis = self.accept_apis(&local, exported, accepts);
            run_part(&mut parts, "the acceptapi controller", accept_apis.run(kept.clone(), halt.clone()));
        }
        if self.enabled(Controller::Sync) {
            let context = self.objects_context(local, (all_troubles, refused, releases), granted);
            run_part(&mut parts, "the sync controller", objects::run(Arc::new(context), kept, halt.clone()));
        }
        parts
    }

    fn catalog_setup(&self, local: &Client) -> catalog::Setup {
        let config = &self.config;
        catalog::Setup {
            local: local.clone(),
            selector: config.selector.clone(),
            defaults: config.defaults(),
            timing: config.timing,
        }
    }

    fn keeper_setup(&self, local: &Client) -> keeper::Setup {
        let config = &self.config;
        keeper::Setup {
            local: local.clone(),
            export: self.places.export.client.clone(),
            name: self.places.export_name.clone(),
            agent_name: config.agent_name.clone(),
            take_over: config.take_over && !self.took_over.swap(true, Ordering::Relaxed),
            beat: config.timing.into(),
            health: Arc::clone(&self.health),
        }
    }

    /// The controller of APIResourceSchemas.
    fn schemas(
        &self,
        local: &Client,
        chosen: watch::Sender<schemas::Chosen>,
        (exported, troubles, granted, accepted): (
            watch::Receiver<Exported>,
            watch::Receiver<objects::Troubles>,
            watch::Receiver<Granted>,
            watch::Receiver<platform_mesh::Reports>,
        ),
    ) -> schemas::Schemas {
        let config = &self.config;
        schemas::Schemas {
            local: local.clone(),
            export: self.places.export.client.clone(),
            agent_name: config.agent_name.clone(),
            recorder: self.recorder.of(schemas::CONTROLLER),
            metrics: Arc::clone(&self.metrics),
            health: Arc::clone(&self.health),
            exported,
            troubles,
            granted,
            accepted,
            servers: [("the service cluster", config.local.clone()), ("kcp", config.kcp.clone())],
            syncs: !config.disabled.contains(&Controller::Sync),
            beat: config.timing.into(),
            gate: schemas::Gate {
                export: self.places.export.client.clone(),
                export_name: self.places.export_name.clone(),
                orders: self.dashboard.orders(),
                chosen: Arc::new(chosen),
                judged: Arc::default(),
            },
        }
    }

    /// The controller of the APIExport.
    fn export(
        &self,
        exported: watch::Sender<Exported>,
        chosen: watch::Receiver<schemas::Chosen>,
        released: watch::Receiver<objects::Released>,
    ) -> export::Export {
        export::Export {
            client: self.places.export.client.clone(),
            name: self.places.export_name.clone(),
            agent_name: self.config.agent_name.clone(),
            recorder: self.recorder.of(export::CONTROLLER),
            metrics: Arc::clone(&self.metrics),
            health: Arc::clone(&self.health),
            exported,
            chosen,
            released,
            warned: parking_lot::Mutex::default(),
            doubts: parking_lot::Mutex::default(),
            taken: parking_lot::Mutex::default(),
            concerned: parking_lot::Mutex::default(),
        }
    }

    /// The controller of AcceptAPIs.
    fn accept_apis(
        &self,
        local: &Client,
        exported: watch::Receiver<Exported>,
        reports: watch::Sender<platform_mesh::Reports>,
    ) -> platform_mesh::AcceptApis {
        platform_mesh::AcceptApis {
            local: local.clone(),
            workspace: self.places.export.client.clone(),
            export: self.places.export_name.clone(),
            agent: self.config.agent_name.clone(),
            recorder: self.recorder.of(platform_mesh::CONTROLLER),
            exported,
            reports,
        }
    }

    /// What the object half works with, and where it reports.
    fn objects_context(
        &self,
        local: Client,
        (troubles, refused, released): (
            watch::Sender<objects::Troubles>,
            mpsc::UnboundedSender<String>,
            watch::Sender<objects::Released>,
        ),
        granted: watch::Receiver<Granted>,
    ) -> objects::Context {
        let config = &self.config;
        objects::Context {
            local,
            slice_workspace: self.places.slice.client.clone(),
            slice: self.places.slice_name.clone(),
            export_workspace: self.places.export.client.clone(),
            export: self.places.export_name.clone(),
            agent_name: config.agent_name.clone(),
            namespace: config.namespace.clone(),
            timing: config.timing,
            budget: config.budget,
            staging_root: config.staging_root.clone(),
            recorder: self.recorder.of(objects::CONTROLLER),
            pace: self.pace.clone(),
            metrics: Arc::clone(&self.metrics),
            health: Arc::clone(&self.health),
            orders: self.dashboard.orders(),
            consumers: config.dashboard_address.is_some().then(|| self.dashboard.consumers()),
            troubles,
            refused,
            released,
            former: watch::Sender::default(),
            granted,
        }
    }

    fn enabled(&self, controller: Controller) -> bool {
        let enabled = !self.config.disabled.contains(&controller);
        if !enabled {
            tracing::info!("Not starting {} controller because it is disabled.", controller.name());
        }
        enabled
    }
}

/// Runs a part of the agent, which returns its name when it ends.
fn run_part(parts: &mut JoinSet<&'static str>, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
    parts.spawn(async move {
        part.await;
        name
    });
}
