//! `carrick provider up`, run as a provider would, and what comes after it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, ListOptions, Resource, Server};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, place};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{binary, fixtures, kinds};
use carrick_kcp::kinds::API_BINDING;
use carrick_kcp::token::SHORTEST;
use carrick_syncagent::agent::Timing;
use carrick_syncagent::rules::renewal::{HeldToken, held, holding};
use serde_json::{Value, json};
use tokio::process::Command;

use super::related::{credentials, encoded, secret};
use super::renewals::refused;

/// The file of the agent's kubeconfig is never replaced here: what a kubelet would do late is not needed.
pub(super) async fn the_agent_renews_its_token_for_kcp_before_it_ends_and_orders_keep_flowing(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let provider = Provider::up(world, &[]).await?;
    let (stage, team) = (&provider.stage, &provider.stage.team_a);
    // Long enough for an agent to start and to renew it.
    let left = stage.world.pace().patience / 3;
    let first = provider.hold(&stage.world.ending_soon(&provider.held().await?.token, left)?).await?;
    let kcp = provider.folder.write("mounted", &first.kubeconfig)?;
    let timing = Timing { token: Duration::from_millis(200), ..Timing::default() };
    let setup = Setup { probes: true, timing, ..Setup::default() };
    let service = provider.service_account().await?;
    let agent = Agent::start_renewing(stage, setup, (&service, &kcp), &provider.secret())?;
    stage.bind(team).await?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;

    let second = provider.renewed_since(&first).await?;
    ensure!(second.about.lifetime() >= SHORTEST, "{:?}", second.about);
    ensure!(second.about.is_of_the_same_account(&first.about), "{:?} after {:?}", second.about, first.about);
    stage.copy_is("the order is placed", team, "bucket", |copy| copy["spec"]["size"] == 1).await?;
    refused(stage, &Server::from_kubeconfig_yaml(&first.kubeconfig)?).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("a change arrives with the second token", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;

    let second = provider.hold(&stage.world.ending_soon(&second.token, left)?).await?;
    let third = provider.renewed_since(&second).await?;
    refused(stage, &Server::from_kubeconfig_yaml(&second.kubeconfig)?).await?;
    stage.reorder(team, "bucket", json!({ "size": 3 })).await?;
    stage.copy_is("a change arrives with the third token", team, "bucket", |copy| copy["spec"]["size"] == 3).await?;
    stage.ready(&agent).await?;

    let log = agent.log();
    let told = |words: &str| log.iter().filter(|line| line.contains(words)).count();
    ensure!(told("Renewed the token for kcp") == 2 && told("is not renewed") == 0, "{log:#?}");
    ensure!(!log.iter().any(|line| line.contains(&third.token) || line.contains(&second.token)), "a token is told");
    let metrics = agent.metrics().await?;
    let seconds = metrics.lines().find_map(|line| line.strip_prefix("sync_agent_kcp_token_seconds "));
    let seconds: i64 = seconds.context("no metric tells when the token ends")?.parse()?;
    ensure!((1..=third.about.lifetime()).contains(&seconds), "{seconds}");
    agent.stop().await?;
    provider.works(&["--undo", "--force", "--delete-state", stage.export_name()]).await?;
    Ok(())
}

pub(super) async fn a_token_that_cannot_be_renewed_is_told_with_the_way_out_and_hinders_nothing(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let provider = Provider::up(world, &[]).await?;
    let (stage, team) = (&provider.stage, &provider.stage.team_a);
    let roles = Resource::namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles");
    let role = format!("{}:token", stage.agent_name());
    stage.provider.client.delete(&roles, Some("default"), &role, &DeleteOptions::default()).await?;
    let late = stage.world.ending_soon(&provider.held().await?.token, Duration::from_mins(10))?;
    let late = provider.hold(&late).await?;
    let client = Server::from_kubeconfig_yaml(&late.kubeconfig)?.client();
    stage
        .eventually("the account may not get tokens any more", async || {
            let answer = client.request_token(&late.about.namespace, &late.about.name, SHORTEST).await;
            ensure!(answer.is_err_and(|error| error.is_forbidden()), "it may");
            Ok(())
        })
        .await?;
    let kcp = provider.folder.write("mounted", &late.kubeconfig)?;
    let setup = Setup { probes: true, ..Setup::default() };
    let service = provider.service_account().await?;
    let agent = Agent::start_renewing(stage, setup, (&service, &kcp), &provider.secret())?;
    stage.bind(team).await?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the order is placed", team, "bucket", |_| true).await?;
    let failures = "sync_agent_errors_total{controller=\"syncagent-token\",reason=\"Forbidden\"}";
    stage
        .eventually("the failure is counted", async || {
            let metrics = agent.metrics().await?;
            ensure!(metrics.contains(failures) && metrics.contains("sync_agent_kcp_token_seconds "), "{metrics}");
            Ok(())
        })
        .await?;
    stage.ready(&agent).await?;
    let told: Vec<_> = agent.log().into_iter().filter(|line| line.contains("is not renewed")).collect();
    let way_out = "create serviceaccounts/token for itself, as carrick provider up does when it is run again";
    ensure!(told.len() == 1 && told[0].contains(way_out), "{told:#?}");
    let told = provider.works(&[]).await?;
    ensure!(says(&told, "a new token, valid until"), "{told}");
    ensure!(provider.held().await?.token != late.token, "the token is the same");
    let granted = stage.provider.client.get(&roles, Some("default"), &role).await?;
    ensure!(granted.is_some(), "the right was not granted again");
    agent.stop().await?;
    provider.works(&["--undo", "--force", "--delete-state", stage.export_name()]).await?;
    Ok(())
}

/// The agent is elsewhere: it gets to kcp by another server than whoever runs the command.
pub(super) async fn published_resources_of_ones_own_and_an_agent_elsewhere_until_the_agent_is_uninstalled(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let provider = Provider::prepare(world, str::to_owned).await?;
    let (stage, team) = (&provider.stage, &provider.stage.team_a);
    let server = format!("https://{}", direct(&*stage.world));
    provider.works(&["--agent-kcp-server", &server]).await?;
    let held = provider.held().await?;
    let leads = Server::from_kubeconfig_yaml(&held.kubeconfig)?.url().to_owned();
    ensure!(leads == format!("{server}/clusters/{}", stage.provider.path), "{leads}");
    let kcp = provider.folder.write("mounted", &held.kubeconfig)?;
    let service = provider.service_account().await?;
    let setup = Setup { probes: true, ..Setup::default() };
    let agent = Agent::start_renewing(stage, setup, (&service, &kcp), &provider.secret())?;
    stage.bind(team).await?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the order is placed", team, "bucket", |_| true).await?;
    let (namespace, name) = place(&copy);
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(name, "first")).await?;
    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), "bucket-credentials");
    stage.object("its Secret reaches the consumer", at, |it| it["data"]["password"] == encoded("first")).await?;
    let refused: Vec<_> = agent.log().into_iter().filter(|line| line.contains("forbidden")).collect();
    ensure!(refused.is_empty(), "what the agent may not do: {refused:#?}");

    // What consumers use, and what an agent works on, is not taken away.
    let (works, told) = provider.run(&["--undo"]).await?;
    let binding = format!("{} in {}", stage.export_name(), team.path);
    ensure!(!works && says(&told, &format!("consumers have bound APIExport {}", stage.export_name())), "{told}");
    ensure!(says(&told, &binding), "{binding} is not in {told}");
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    team.client.delete(&kinds::kcp(&API_BINDING), None, stage.export_name(), &DeleteOptions::default()).await?;
    stage.gone("the binding goes", (&team.client, &kinds::kcp(&API_BINDING), None, stage.export_name())).await?;
    let deployments = Resource::namespaced("apps", "v1", "Deployment", "deployments");
    let own = stage.agent_namespace();
    let deployment = deployment(stage, &provider.secret());
    stage.service.create(&deployments, Some(&own), &deployment).await?;
    let (works, told) = provider.run(&["--undo"]).await?;
    let kubeconfig = provider.folder.path().join("service.kubeconfig");
    let line = format!("helm --kubeconfig {} uninstall storage -n {own}", kubeconfig.display());
    ensure!(!works && told.contains(&line) && says(&told, "would go on without any rights"), "{line}: {told}");
    provider.held().await?;
    let (_, told) = provider.run(&[]).await?;
    ensure!(says(&told, &format!("the agent renews it in Secret {own}/{}", provider.secret())), "{told}");
    ensure!(!told.contains(".kubeconfig, context kcp"), "a file that is gone is named: {told}");

    stage.service.delete(&deployments, Some(&own), "agent", &DeleteOptions::default()).await?;
    let (works, told) = provider.run(&["--undo", "--yes"]).await?;
    ensure!(!works && says(&told, &format!("agent {} was seen at", stage.agent_name())), "{told}");
    agent.stop().await?;
    provider.works(&["--undo", "--yes", "--force"]).await?;
    ensure!(provider.held().await.is_err(), "the Secret is left");
    let marked = ListOptions::labels("app.kubernetes.io/managed-by=carrick-provider-up");
    let left = stage.service.list(&kinds::cluster_roles(), None, &marked).await?;
    let left: Vec<_> = left.iter().filter(|role| role.to_string().contains(&stage.id)).collect();
    ensure!(left.is_empty(), "{left:#?}");
    Ok(())
}

/// A mistyped path neither re-points an agent that serves consumers nor takes it away, and nobody deletes by accident what it remembers.
pub(super) async fn a_live_agent_is_neither_pointed_elsewhere_nor_taken_away_by_a_mistyped_path(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let provider = Provider::up(world, &[]).await?;
    let (stage, team) = (&provider.stage, &provider.stage.team_a);
    let before = provider.held().await?;
    let kcp = provider.folder.write("mounted", &before.kubeconfig)?;
    let service = provider.service_account().await?;
    let setup = Setup { probes: true, ..Setup::default() };
    let agent = Agent::start_renewing(stage, setup, (&service, &kcp), &provider.secret())?;
    stage.bind(team).await?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the order is placed", team, "bucket", |_| true).await?;

    let other = provider.instead("--workspace", &stage.team_b.path);
    for more in [&[][..], &["--dry-run"], &["--undo", "--yes", "--force"], &["--undo", "--dry-run"]] {
        let (works, told) = provider.run_with(&other, more).await?;
        let named = [stage.provider.path.as_str(), &stage.team_b.path].iter().all(|path| told.contains(path));
        ensure!(!works && named && says(&told, "holds the kubeconfig of an agent that serves"), "{more:?}: {told}");
    }
    ensure!(provider.held().await?.kubeconfig == before.kubeconfig, "the agent was pointed elsewhere");

    let (works, told) = provider.run(&["--undo", "--yes", "--force"]).await?;
    ensure!(!works && says(&told, "keeps the state of 1 orders"), "{told}");
    let (works, told) = provider.run(&["--undo", "--force", "--delete-state", "other"]).await?;
    ensure!(!works && says(&told, "is not the name of the APIExport"), "{told}");
    let told = provider.works(&["--undo", "--force", "--dry-run"]).await?;
    ensure!(told.lines().filter(|line| line.starts_with("delete ")).count() > 5, "{told}");
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("the agent goes on", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;

    // Told to, it goes elsewhere, with a token of that workspace.
    agent.stop().await?;
    let (works, told) = provider.run_with(&other, &["--repoint"]).await?;
    ensure!(says(&told, "a new token"), "{works}: {told}");
    let after = provider.held().await?;
    let leads = Server::from_kubeconfig_yaml(&after.kubeconfig)?.url().to_owned();
    ensure!(leads.ends_with(&format!("/clusters/{}", stage.team_b.path)), "{leads}");
    ensure!(after.token != before.token, "the old token is used in another workspace");
    Ok(())
}

/// What the chart would install, as Helm marks it.
fn deployment(stage: &Stage, secret: &str) -> Value {
    let labels = json!({ "app": "agent" });
    let container = json!({
        "name": "agent", "image": "agent",
        "args": [
            format!("--apiexportendpointslice-ref={}", stage.export_name()), "--kcp-kubeconfig=/kcp/kubeconfig",
            format!("--renew-kcp-token={secret}"),
        ],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "agent", "annotations": { "meta.helm.sh/release-name": "storage" } },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    })
}

/// Whether a text has these words, wherever its lines end.
pub(super) fn says(told: &str, words: &str) -> bool {
    told.split_whitespace().collect::<Vec<_>>().join(" ").contains(words)
}

/// Where kcp is, past the cable.
pub(super) fn direct(world: &dyn World) -> String {
    let url = world.kcp().url();
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default().to_owned()
}

/// A provider that one command sets up for a stage.
pub(super) struct Provider {
    pub(super) stage: Stage,
    pub(super) folder: Scratch,
    arguments: Vec<String>,
}

impl Provider {
    /// Sets a provider up in the stage's own workspace, with more flags.
    async fn up(world: Arc<dyn World>, more: &[&str]) -> anyhow::Result<Self> {
        let provider = Self::prepare(world, str::to_owned).await?;
        let told = provider.works(more).await?;
        ensure!(told.contains("0 red"), "{told}");
        Ok(provider)
    }

    /// Everything that the command is told. The kubeconfig for kcp may be another one.
    pub(super) async fn prepare(world: Arc<dyn World>, change: impl Fn(&str) -> String) -> anyhow::Result<Self> {
        let stage = Stage::bare(world).await?;
        stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
        let folder = Scratch::new()?;
        let published = json!({
            "apiVersion": "syncagent.kcp.io/v1alpha1",
            "kind": "PublishedResource",
            // Agents of scenarios look only at what bears the label of their stage.
            "metadata": { "name": stage.published_name("Bucket"), "labels": { "stage": stage.id } },
            "spec": {
                "resource": { "apiGroup": stage.group, "kind": "Bucket", "versions": ["v1"] },
                "related": [credentials()],
            },
        });
        let kcp = stage.world.kcp_kubeconfig(User::Admin, &stage.provider.path);
        let file = |name: &str, text: &str| Ok::<_, anyhow::Error>(folder.write(name, text)?.display().to_string());
        let arguments = [
            ("--workspace", stage.provider.path.clone()),
            ("--namespace", stage.agent_namespace()),
            ("--agent", stage.agent_name()),
            ("--published-resource", file("published.yaml", &published.to_string())?),
            ("--kubeconfig", file("service.kubeconfig", &stage.world.service_kubeconfig(User::Admin))?),
            ("--kcp-kubeconfig", file("kcp.kubeconfig", &change(&kcp))?),
        ];
        let arguments = arguments.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect();
        Ok(Self { stage, folder, arguments })
    }

    /// Runs the command with more flags, which must end well; all that it says.
    pub(super) async fn works(&self, more: &[&str]) -> anyhow::Result<String> {
        let (works, told) = self.run(more).await?;
        ensure!(works, "{told}");
        Ok(told)
    }

    /// The flags with another value for one of them.
    fn instead(&self, flag: &str, value: &str) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        if let Some(at) = arguments.iter().position(|argument| argument == flag) {
            value.clone_into(&mut arguments[at + 1]);
        }
        arguments
    }

    /// Runs the command with more flags: whether it ends well, and all that it says.
    pub(super) async fn run(&self, more: &[&str]) -> anyhow::Result<(bool, String)> {
        self.run_with(&self.arguments, more).await
    }

    async fn run_with(&self, arguments: &[String], more: &[&str]) -> anyhow::Result<(bool, String)> {
        let mut command = Command::new(binary::carrick().await?);
        let output = command.args(["provider", "up"]).args(arguments).args(more).output().await?;
        let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        Ok((output.status.success(), told))
    }

    /// The name of the Secret with the agent's kubeconfig.
    fn secret(&self) -> String {
        format!("{}-kcp", self.stage.agent_name())
    }

    async fn read(&self) -> anyhow::Result<Value> {
        let namespace = self.stage.agent_namespace();
        let found = self.stage.service.get(&kinds::secrets(), Some(&namespace), &self.secret()).await?;
        found.context("there is no Secret with the agent's kubeconfig")
    }

    /// The token in the Secret.
    pub(super) async fn held(&self) -> anyhow::Result<HeldToken> {
        Ok(held(&self.read().await?)?)
    }

    /// Puts another token into the Secret.
    async fn hold(&self, token: &str) -> anyhow::Result<HeldToken> {
        let found = self.read().await?;
        let written = holding(&found, &held(&found)?.replaced_by(token));
        Ok(held(&self.stage.service.replace(&kinds::secrets(), Some(&self.stage.agent_namespace()), &written).await?)?)
    }

    /// Waits for another token in the Secret.
    async fn renewed_since(&self, before: &HeldToken) -> anyhow::Result<HeldToken> {
        self.stage
            .eventually("the token is renewed", async || {
                let now = self.held().await?;
                ensure!(now.token != before.token, "it is the same one");
                Ok(now)
            })
            .await
    }

    /// A kubeconfig for the service cluster with the rights that the command has given to the agent there.
    pub(super) async fn service_account(&self) -> anyhow::Result<PathBuf> {
        let (namespace, name) = (self.stage.agent_namespace(), self.stage.agent_name());
        let token = self.stage.service.request_token(&namespace, &name, 3600).await?;
        let mut config: Value = serde_json::from_str(&self.stage.world.service_kubeconfig(User::Admin))?;
        config["users"][0]["user"] = json!({ "token": token });
        self.folder.write("agent.kubeconfig", &config.to_string())
    }
}
