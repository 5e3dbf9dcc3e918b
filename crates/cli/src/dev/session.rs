//! The loop: read the files, do what they ask for, show the result.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use carrick_kcp::LOGICAL_CLUSTER_NAME;
use carrick_kcp::core::v1alpha1::LogicalCluster;
use serde_json::Value;

use super::board;
use super::ledger::{Action, Ledger};
use super::screen::{Mark, Screen, addresses};
use super::sources::{Side, Sources};
use super::stage::{CONSUMER, Cluster, EXPORT, PROVIDER, Stage};
use crate::agent_flags::running::{Note, Running};
use crate::demo::fetch;
use crate::doctor::wrap;
use crate::init;
use crate::ui::Ui;

/// Time between two rounds.
const EVERY: Duration = Duration::from_millis(250);

/// Everything that one run knows.
pub struct Session {
    stage: Stage,
    sources: Sources,
    ledger: Ledger,
    ui: Ui,
    screen: Screen,
    /// Namespaces of copies that were seen.
    used: BTreeSet<String>,
    /// Whether anything may have been written to the service cluster.
    begun: bool,
}

impl Session {
    /// A session that has done nothing yet.
    pub fn new(stage: Stage, sources: Sources, ledger: Ledger, ui: Ui) -> Self {
        let screen = Screen::new(ui.clone());
        Self { stage, sources, ledger, ui, screen, used: BTreeSet::new(), begun: false }
    }

    /// Runs until something fails that cannot be repaired.
    pub async fn run(&mut self, folder: &Path, service: Option<&Path>) -> anyhow::Result<Infallible> {
        self.begun = true;
        self.stage.prepare().await?;
        for change in self.sources.first() {
            self.ledger.take(change);
        }
        let home = self.home().await?;
        self.greet(folder, service);
        let _note = Note::leave(&Running {
            command: "dev".to_owned(),
            kubeconfig: service
                .and_then(|path| path.canonicalize().ok())
                .unwrap_or_else(|| folder.join("service.kubeconfig")),
            kcp_kubeconfig: folder.join("provider.kubeconfig"),
            slice: EXPORT.to_owned(),
            namespace: self.stage.namespace(),
            agent: EXPORT.to_owned(),
            selector: self.stage.selector(),
            dashboard: self.stage.agent.as_ref().map(|agent| agent.dashboard().to_owned()).unwrap_or_default(),
        });
        for folder in self.sources.empty() {
            let text = format!(
                "{} holds no *.yaml, *.yml or *.json (folders in it are not read); put one in",
                folder.display()
            );
            self.screen.say(Mark::Wrong, &text);
        }
        loop {
            self.work().await;
            self.stage.accept().await.context("cannot bind the consumer to the export")?;
            self.look(&home).await;
            tokio::time::sleep(EVERY).await;
            if let Some(problem) = self.stage.agent.as_ref().and_then(crate::embedded::RunningAgent::problem) {
                bail!("the agent ended: {problem}");
            }
            for change in self.sources.look() {
                if change.content.is_none() {
                    self.screen.say(Mark::News, &format!("{} is gone", change.file.display()));
                }
                self.ledger.take(change);
            }
        }
    }

    /// Does everything that is due now.
    async fn work(&mut self) {
        for step in self.ledger.steps(Instant::now()) {
            match step {
                Action::Remove(id) => {
                    let Some(place) = self.ledger.place(&id).cloned() else { continue };
                    if !place.ours && id.side == Side::Service {
                        self.ledger.removed(&id);
                        self.screen.say(Mark::News, &format!("kept {id}, which existed before"));
                        continue;
                    }
                    match self.stage.applier.remove(id.side, &place, &id.name).await {
                        Ok(()) => {
                            self.ledger.removed(&id);
                            self.screen.say(Mark::Done, &format!("removed {id}"));
                        }
                        // Retried in the next round.
                        Err(error) => tracing::info!(object = %id, %error, "cannot be removed yet"),
                    }
                }
                Action::Apply(file, document) => {
                    let applied = match self.stage.applier.find(&document).await {
                        Ok(place) => {
                            // Recorded before it is done: if we are stopped in between, it must still be removed.
                            self.ledger.begun(document.id.clone(), place.clone(), file.clone());
                            self.stage.applier.apply(&document, &place).await
                        }
                        Err(trouble) => Err(trouble),
                    };
                    match applied {
                        Ok(()) => {
                            self.screen.say(Mark::Done, &format!("applied {} from {}", document.id, file.display()));
                            self.ledger.applied(document);
                        }
                        Err(trouble) => self.ledger.failed(&document, trouble, Instant::now()),
                    }
                }
            }
        }
        self.screen.complain(self.ledger.problems(Instant::now()));
    }

    /// Asks the agent for the state of everything, and shows it.
    async fn look(&mut self, home: &str) {
        let Some(agent) = &self.stage.agent else { return };
        let state = fetch::get(&format!("{}/state.json", agent.dashboard()), None).await;
        let found = fetch::get(&format!("{}/find.json?q=", agent.dashboard()), None).await;
        // The agent does not answer until it has started; if it has exited, the next round reports that.
        let (Ok((200, state)), Ok((200, found))) = (state, found) else { return };
        for journey in found["found"].as_array().into_iter().flatten() {
            let namespace = journey["copy"]["place"].as_str().and_then(|place| place.split_once('/'));
            self.used.extend(namespace.map(|(namespace, _)| namespace.to_owned()));
        }
        self.screen.show(board::entries(&state, &found, home));
    }

    /// The logical cluster of the consumer's workspace.
    async fn home(&self) -> anyhow::Result<String> {
        let cluster: Option<LogicalCluster> = self.stage.applier.consumer.get_kcp(LOGICAL_CLUSTER_NAME).await?;
        Ok(cluster.and_then(|cluster| cluster.metadata.cluster().map(str::to_owned)).unwrap_or_default())
    }

    /// A command to type, on several lines where one has no room for it.
    fn command(&self, text: &str) {
        let width = self.screen.width().map_or(usize::MAX, |width| width.saturating_sub(3));
        for line in wrap::command(text, width) {
            self.ui.command(&line);
        }
    }

    /// Says where everything is and what to type.
    fn greet(&self, folder: &Path, service: Option<&Path>) {
        let file = |name: &str| folder.join(format!("{name}.kubeconfig")).display().to_string();
        let service = service.map_or_else(|| file("service"), |path| path.display().to_string());
        let dashboard = self.stage.agent.as_ref().map_or("", |agent| agent.dashboard());
        let table = [
            ("consumer's workspace", format!("{}/clusters/{}", self.stage.kcp.url(), CONSUMER.0), file("consumer")),
            ("service cluster", self.stage.server.url().to_owned(), service.clone()),
            ("provider's workspace", format!("{}/clusters/{}", self.stage.kcp.url(), PROVIDER.0), file("provider")),
            ("dashboard", dashboard.to_owned(), String::new()),
        ];
        for line in addresses(&table, self.screen.width()) {
            self.ui.line(line);
        }
        let offers: Vec<(String, String)> =
            self.ledger.objects("PublishedResource").filter_map(|pr| self.plurals(pr)).collect();
        self.ui.heading("As the consumer, in another terminal");
        self.command(&format!("export KUBECONFIG={}", file("consumer")));
        for pr in self.ledger.objects("PublishedResource").filter(|pr| pr["spec"]["projection"].is_null()) {
            if let Some(order) = self.crd(pr).and_then(|crd| init::first_order(crd).ok()) {
                self.command(&format!("echo '{order}' | kubectl apply -f -"));
            }
        }
        for (_, consumer) in &offers {
            self.command(&format!("kubectl explain {consumer} --recursive"));
            self.command(&format!("kubectl get {consumer} -A"));
        }
        self.command("kubectl get events -A");
        self.ui.heading("As the provider");
        for (provider, _) in &offers {
            self.command(&format!("kubectl --kubeconfig {service} get {provider} -A --show-labels"));
        }
        self.command(&format!("kubectl --kubeconfig {service} get publishedresources"));
        self.command(&format!("kubectl --kubeconfig {} get apiexports,apiresourceschemas", file("provider")));
        self.ui.line("\nRunning until Ctrl-C. Edit your files.\n");
    }

    /// The names of a published kind on the service cluster and in kcp, if they can be found in the files.
    fn plurals(&self, pr: &Value) -> Option<(String, String)> {
        let plural = self.crd(pr)?["spec"]["names"]["plural"].as_str()?;
        let projected = pr["spec"]["projection"]["plural"].as_str().unwrap_or(plural);
        Some((plural.to_owned(), projected.to_owned()))
    }

    /// The CRD of a published kind, if a file has it.
    fn crd(&self, pr: &Value) -> Option<&Value> {
        let resource = &pr["spec"]["resource"];
        self.ledger.objects("CustomResourceDefinition").find(|crd| {
            crd["spec"]["group"] == resource["apiGroup"] && crd["spec"]["names"]["kind"] == resource["kind"]
        })
    }

    /// Stops everything; a cluster that existed before is left as it was.
    pub async fn close(mut self) -> anyhow::Result<()> {
        self.screen.end();
        self.ui.line("");
        let mut left = Vec::new();
        if self.begun && matches!(self.stage.cluster, Cluster::Existing { .. }) {
            self.screen.say(Mark::News, "cleaning up on the service cluster; press Ctrl-C again to leave it as it is");
            if self.stage.agent.is_some()
                && let Err(error) = self.stage.delete_orders().await
            {
                left.push(format!("{error:#}"));
            }
            let applied = self.ledger.places().into_iter();
            let applied = applied.filter(|(id, place)| id.side == Side::Service && place.ours);
            let mut all: Vec<_> = applied.map(|(id, place)| (place.clone(), id.name.clone())).collect();
            all.extend(self.stage.own(&self.used));
            let (refused, slow) = self.stage.remove(all).await;
            left.extend(refused);
            if !slow.is_empty() && left.is_empty() {
                self.screen.say(Mark::News, &format!("deleted, but not gone yet: {}", slow.join(", ")));
            }
        }
        self.stage.stop().await?;
        if !left.is_empty() {
            bail!("not everything could be removed from the service cluster: {}", left.join("; "));
        }
        Ok(())
    }
}
