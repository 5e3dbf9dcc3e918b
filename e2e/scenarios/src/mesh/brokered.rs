//! Orders behind a broker: two providers with an agent each serve one API of a platform.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, ListOptions, Resource};
use carrick_e2e_stage::agent::Agent;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, condition, shown};
use carrick_e2e_stage::world::World;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::broker::names::GROUP;
use super::broker::{Broker, MigrationStage, Provider, Running, Setup};
use super::examples::{CERTIFICATES, Example, POSTGRES, node_port};
use super::platform::{self, EXPORT};
use super::word;
use crate::related::encoded;

/// A platform with a broker, and two providers.
pub(super) struct Market {
    /// The platform and its consumers.
    pub(super) platform: Stage,
    pub(super) providers: [Stage; 2],
    example: Example,
    pub(super) kind: Resource,
    pub(super) running: Running,
    operators: Vec<JoinHandle<()>>,
}

/// Who says which orders a provider takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepting {
    /// Somebody creates an AcceptAPI.
    ByHand,
    /// The agent keeps one, as the PublishedResource says.
    ByAgent,
}

pub(super) fn accept_apis() -> Resource {
    Resource::cluster_wide(GROUP, "v1alpha1", "AcceptAPI", "acceptapis")
}

/// Changes the PublishedResource of a provider.
async fn edit(provider: &Stage, example: &Example, patch: &Value) -> anyhow::Result<()> {
    let name = provider.published_name(&example.local(provider).kind);
    provider.service.merge_patch(&kinds::published_resources(), None, &name, patch).await?;
    Ok(())
}

impl Market {
    /// Changes the PublishedResource of a provider.
    pub(super) async fn edit(&self, provider: usize, patch: &Value) -> anyhow::Result<()> {
        edit(&self.providers[provider], &self.example, patch).await
    }

    /// Waits for a condition of the PublishedResource of a provider.
    pub(super) async fn says(&self, provider: usize, kind: &str, reason: &str) -> anyhow::Result<Value> {
        let provider = &self.providers[provider];
        let name = provider.published_name(&self.example.local(provider).kind);
        let at = (&provider.service, &kinds::published_resources(), None, &*name);
        let what = format!("{kind} is {reason}");
        let found = provider.object(&what, at, |it| condition(it, kind)["reason"] == reason).await?;
        Ok(condition(&found, kind).clone())
    }

    /// Everything but agents. Each provider takes what its filters say.
    async fn open(
        world: Arc<dyn World>,
        example: Example,
        filters: [Value; 2],
        migration: Option<MigrationStage>,
    ) -> anyhow::Result<Self> {
        Self::prepare(world, example, (filters, Accepting::ByHand), migration).await
    }

    /// The same, with whoever says what is taken.
    pub(super) async fn prepare(
        world: Arc<dyn World>,
        example: Example,
        (filters, accepting): ([Value; 2], Accepting),
        migration: Option<MigrationStage>,
    ) -> anyhow::Result<Self> {
        let platform = Stage::bare(Arc::clone(&world)).await?;
        let providers = [Stage::bare(Arc::clone(&world)).await?, Stage::bare(world).await?];
        let (own, staging, compute) =
            futures::try_join!(platform.team("platform"), platform.team("staging"), platform.team("compute"))?;
        let (kind, plural) = example.names;
        platform::export_of(&platform, &own, &[("v1", kind, plural, example.schema())]).await?;
        platform::export_accept_apis(&own).await?;
        let group = platform::group(&platform);
        for (at, (provider, filters)) in providers.iter().zip(&filters).enumerate() {
            example.publish(provider, &group, at == 1).await?;
            platform::bind(provider, &provider.provider, (&own, platform::ACCEPT), &[]).await?;
            if accepting == Accepting::ByAgent {
                edit(provider, &example, &json!({ "spec": { "implements": { "accept": { "filters": filters } } } }))
                    .await?;
                continue;
            }
            let accept = json!({
                "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "AcceptAPI", "metadata": { "name": plural },
                "spec": {
                    "gvr": { "group": group, "version": "v1alpha1", "resource": plural },
                    "apiExportName": provider.export_name(), "filters": filters,
                },
            });
            platform
                .eventually("AcceptAPIs are served", async || {
                    match provider.provider.client.create(&accept_apis(), None, &accept).await {
                        Err(error) if !error.is_already_exists() => Err(error.into()),
                        _ => Ok(()),
                    }
                })
                .await?;
        }
        for team in [&platform.team_a, &platform.team_b] {
            platform::bind(&platform, team, (&own, EXPORT), &["secrets", "namespaces"]).await?;
        }
        let operators = providers.iter().map(|provider| example.operate(provider)).collect();
        let kind = Resource::namespaced(&group, "v1alpha1", kind, plural);
        let of = |provider: &Stage| Provider {
            client: provider.provider.client.clone(),
            cluster: provider.provider.cluster.clone(),
            export: provider.export_name().to_owned(),
        };
        let setup = Setup {
            platform: own,
            staging,
            compute,
            providers: providers.iter().map(of).collect(),
            kind: kind.clone(),
            migration,
        };
        let running = Broker::start(&platform, setup).await?;
        Ok(Self { platform, providers, example, kind, running, operators })
    }

    /// Starts both agents, and waits for what their exports claim: the broker accepts that once, as it is when the first order comes.
    pub(super) async fn agents(&self) -> anyhow::Result<[Agent; 2]> {
        let agents = [self.providers[0].start_agent()?, self.providers[1].start_agent()?];
        for provider in 0..agents.len() {
            self.claimed(provider).await?;
        }
        Ok(agents)
    }

    /// Waits for what the export of a provider claims.
    pub(super) async fn claimed(&self, provider: usize) -> anyhow::Result<()> {
        let provider = &self.providers[provider];
        let claims = async || {
            let export = provider.export().await?;
            let claims = export["spec"]["permissionClaims"].as_array();
            let is_there = claims.is_some_and(|all| all.iter().any(|claim| claim["resource"] == "secrets"));
            ensure!(is_there, "{}", export["spec"]);
            Ok(())
        };
        provider.eventually("the export claims Secrets", claims).await
    }

    /// Name of the PublishedResource of a provider.
    pub(super) fn published_name(&self, provider: usize) -> String {
        let provider = &self.providers[provider];
        provider.published_name(&self.example.local(provider).kind)
    }

    /// The workspace of the platform's export.
    pub(super) fn own(&self) -> &Workspace {
        self.running.broker.platform()
    }

    /// The workspace above the staging workspaces.
    pub(super) fn staging(&self) -> &Workspace {
        self.running.broker.staging_root()
    }

    pub(super) async fn order(&self, name: &str, spec: Value) -> anyhow::Result<()> {
        self.platform.order_kind(&self.kind, &self.platform.team_a, name, spec).await.map(drop)
    }

    pub(super) async fn order_is(
        &self,
        what: &str,
        name: &str,
        good: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let at = (&self.platform.team_a.client, &self.kind, Some(NAMESPACE), name);
        let found = self.platform.object(what, at, good).await;
        found.with_context(|| format!("the broker says {:#?}", self.running.broker.errors().last()))
    }

    /// Waits until an order is served by one of the providers, and nothing is left at the other.
    pub(super) async fn settled(&self, name: &str, provider: usize) -> anyhow::Result<()> {
        let (broker, team) = (&self.running.broker, &self.platform.team_a);
        let wanted = (self.providers[provider].export_name().to_owned(), false);
        self.platform
            .eventually(&format!("{name} is served by provider {provider}"), async || {
                let serving = broker.serving(team, name);
                ensure!(serving.as_ref() == Some(&wanted), "{serving:?}; the broker says {:?}", broker.errors().last());
                Ok(())
            })
            .await
    }

    /// What a consumer has of her Secret.
    async fn secret_is(&self, what: &str, name: &str, good: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let (secrets, name) = (kinds::secrets(), (self.example.secret)(name));
        self.platform.object(what, (&self.platform.team_a.client, &secrets, Some(NAMESPACE), &name), good).await
    }

    /// Copies at a provider.
    pub(super) async fn copies(&self, provider: usize) -> anyhow::Result<Vec<Value>> {
        let provider = &self.providers[provider];
        Ok(provider.service.list(&self.example.local(provider), None, &ListOptions::default()).await?)
    }

    pub(super) async fn cancel(&self, name: &str) -> anyhow::Result<()> {
        let client = &self.platform.team_a.client;
        Ok(client.delete(&self.kind, Some(NAMESPACE), name, &DeleteOptions::default()).await?)
    }

    /// Waits until nothing of an order is left anywhere.
    pub(super) async fn ended(&self, name: &str) -> anyhow::Result<()> {
        let (client, secrets) = (&self.platform.team_a.client, kinds::secrets());
        self.platform.gone("the order goes", (client, &self.kind, Some(NAMESPACE), name)).await?;
        let secret = (self.example.secret)(name);
        self.platform.gone("her Secret goes", (client, &secrets, Some(NAMESPACE), &secret)).await
    }

    /// Ends everything; the broker has never missed a related object that a status named.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        let missing: Vec<String> = self.missing();
        ensure!(
            missing.is_empty(),
            "{} related objects were named before they were there: {missing:#?}",
            missing.len()
        );
        for operator in &self.operators {
            operator.abort();
        }
        self.running.stop().await
    }

    fn missing(&self) -> Vec<String> {
        let errors = self.running.broker.errors().into_iter();
        errors.filter(|error| error.contains("copying related resource")).collect()
    }
}

/// Looks at all orders of a consumer all the time: whoever was served stays served, and keeps her Secret.
struct Witness {
    task: JoinHandle<()>,
    seen: Arc<Mutex<(usize, Vec<String>)>>,
}

impl Witness {
    fn of(market: &Market) -> Self {
        let seen: Arc<Mutex<(usize, Vec<String>)>> = Arc::default();
        let (client, kind, told) = (market.platform.team_a.client.clone(), market.kind.clone(), Arc::clone(&seen));
        let secret = market.example.secret;
        let task = tokio::spawn(async move {
            let mut served = BTreeMap::new();
            loop {
                let (all, secrets_kind) = (ListOptions::default(), kinds::secrets());
                let (orders, secrets) =
                    tokio::join!(client.list(&kind, None, &all), client.list(&secrets_kind, Some(NAMESPACE), &all));
                let (Ok(orders), Ok(secrets)) = (orders, secrets) else { continue };
                let mut wrong = Vec::new();
                for order in orders {
                    let name = order["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                    let has_secret = secrets.iter().any(|it| it["metadata"]["name"] == secret(&name).as_str());
                    let is_served = word(&order) == "Available";
                    let was = served.entry(name.clone()).or_insert((false, false));
                    if (was.0 && !is_served) || (was.1 && !has_secret) {
                        wrong.push(format!("{name}: secret {has_secret}, {}", shown(&order["status"])));
                    }
                    *was = (was.0 || is_served, was.1 || has_secret);
                }
                if let Ok(mut told) = told.lock() {
                    told.0 += 1;
                    told.1.extend(wrong);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        Self { task, seen }
    }

    /// How often it has looked; an error if anything was wrong.
    fn verdict(self) -> anyhow::Result<usize> {
        self.task.abort();
        let seen = self.seen.lock().map_err(|_| anyhow::anyhow!("the witness is gone"))?;
        ensure!(seen.1.is_empty(), "{:#?}", seen.1);
        Ok(seen.0)
    }
}

pub(crate) async fn a_certificate_moves_from_one_issuer_to_another_and_is_never_without(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let filters = ["internal.corp", "corp.com"].map(|suffix| json!([{ "key": "fqdn", "suffix": suffix }]));
    let market = Market::open(world, CERTIFICATES, filters, None).await?;
    let agents = market.agents().await?;
    market.order("web", json!({ "fqdn": "web.internal.corp" })).await?;
    market.order("nobodys", json!({ "fqdn": "web.example.org" })).await?;
    let order = market.order_is("it is available", "web", |order| word(order) == "Available").await?;
    ensure!(condition(&order, "Ready")["reason"] == "Unknown", "{}", shown(&order));
    ensure!(order["status"]["relatedResources"]["secret"]["name"] == "web", "{}", shown(&order));
    market.settled("web", 0).await?;
    let signed = |text: &str| json!({ "tls.crt": encoded(text), "tls.key": encoded("key") });
    market
        .secret_is("the first issuer has signed it", "web", |it| {
            it["data"] == signed("web.internal.corp by internal-issuer")
        })
        .await?;

    let witness = Witness::of(&market);
    let patch = json!({ "spec": { "fqdn": "web.corp.com" } });
    market.platform.team_a.client.merge_patch(&market.kind, Some(NAMESPACE), "web", &patch).await?;
    market.settled("web", 1).await?;
    market.secret_is("the second one has", "web", |it| it["data"] == signed("web.corp.com by external-issuer")).await?;
    ensure!(market.copies(0).await?.is_empty(), "the first provider keeps a copy");
    ensure!(witness.verdict()? > 0, "nobody has looked");
    let nobodys = market.order_is("an order for nobody waits", "nobodys", |_| true).await?;
    ensure!(nobodys.get("status").is_none(), "{}", shown(&nobodys));

    for name in ["web", "nobodys"] {
        market.cancel(name).await?;
        market.ended(name).await?;
    }
    ensure!(market.copies(1).await?.is_empty(), "the second provider keeps a copy");
    let left = market.running.broker.staging_left();
    ensure!(left.is_empty(), "staging workspaces are left: {left:?}");
    for agent in agents {
        agent.stop().await?;
    }
    market.close().await
}

/// What dumps one database into another: a ConfigMap here, which somebody marks as done.
const DUMP: MigrationStage = MigrationStage {
    precondition: |_, to| to["status"]["status"] == "Available",
    template: |from, to| {
        let of = |copy: &Value| {
            copy["status"]["relatedResources"]["credentials"]["name"].as_str().unwrap_or_default().to_owned()
        };
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "from": format!("from-{}", of(from)), "to": format!("to-{}", of(to)) } })
    },
    resource: kinds::config_maps,
    success: |object| object["data"]["done"] == "yes",
};

pub(crate) async fn a_database_moves_after_its_content_was_copied(world: Arc<dyn World>) -> anyhow::Result<()> {
    let filters = ["dev", "production"].map(|tier| json!([{ "key": "tier", "valueIn": [tier] }]));
    let market = Market::open(world, POSTGRES, filters, Some(DUMP)).await?;
    let agents = market.agents().await?;
    market.order("db", json!({ "tier": "dev", "version": "17", "database": "shop" })).await?;
    market.order_is("it is available", "db", |order| word(order) == "Available").await?;
    market.settled("db", 0).await?;
    let has = |key: &'static str, text: &'static str| move |secret: &Value| secret["data"][key] == encoded(text);
    let secret = market.secret_is("the address is in the Secret", "db", has("host", "databases.example.com")).await?;
    let copies = market.copies(0).await?;
    let port = copies.first().map(|copy| node_port(copy).to_string()).context("there is no copy")?;
    ensure!(secret["data"]["port"] == encoded(&port) && secret["data"]["dbname"] == encoded("shop"), "{secret}");
    ensure!(secret["type"].is_null() || secret["type"] == "Opaque", "{secret}");

    let witness = Witness::of(&market);
    let (team, compute) = (&market.platform.team_a.client, market.running.broker.compute());
    team.merge_patch(&market.kind, Some(NAMESPACE), "db", &json!({ "spec": { "tier": "production" } })).await?;
    // The stage waits for somebody; meanwhile nothing changes for the consumer.
    let config_maps = kinds::config_maps();
    let staged = market
        .platform
        .eventually("the content is being copied", async || {
            let all = compute.list(&config_maps, Some("default"), &ListOptions::default()).await?;
            let found = all.into_iter().find(|it| it["data"]["from"].is_string());
            found.with_context(|| {
                format!("there is no stage object; the broker says {:?}", market.running.broker.errors().last())
            })
        })
        .await?;
    ensure!(staged["data"] == json!({ "from": "from-db", "to": "to-db" }), "{staged}");
    for (name, host) in [("from-db", "databases.example.com"), ("to-db", "production.example.com")] {
        let mirrored = compute.get(&kinds::secrets(), Some("default"), name).await?.context("it is not mirrored")?;
        ensure!(mirrored["data"]["host"] == encoded(host), "{mirrored}");
    }
    market.secret_is("the consumer has the old address", "db", has("host", "databases.example.com")).await?;
    let name = staged["metadata"]["name"].as_str().unwrap_or_default();
    compute.merge_patch(&config_maps, Some("default"), name, &json!({ "data": { "done": "yes" } })).await?;
    market.settled("db", 1).await?;
    market.secret_is("the new address follows", "db", has("host", "production.example.com")).await?;
    ensure!(market.copies(0).await?.is_empty(), "the first provider keeps a copy");
    witness.verdict()?;
    market.cancel("db").await?;
    market.ended("db").await?;
    for agent in agents {
        agent.stop().await?;
    }
    market.close().await
}

/// How many orders move at once, in a sample and with `CARRICK_WIDE=1`.
const MANY: [usize; 2] = [24, 100];

pub(crate) async fn all_orders_of_a_provider_move_although_agents_are_killed_again_and_again(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let filters = [json!([{ "key": "fqdn", "suffix": ".corp" }]), json!([{ "key": "fqdn", "suffix": ".corp" }])];
    let many = MANY[usize::from(std::env::var_os("CARRICK_WIDE").is_some())];
    let market = Market::open(world, CERTIFICATES, filters, None).await?;
    // At first only one of them takes orders.
    let accept = market.providers[1].provider.client.get(&accept_apis(), None, "certificates").await?;
    let mut accept = accept.context("no AcceptAPI")?;
    let options = DeleteOptions::default();
    market.providers[1].provider.client.delete(&accept_apis(), None, "certificates", &options).await?;
    let mut agents = market.agents().await?.map(Some);
    let names: Vec<String> = (0..many).map(|number| format!("order-{number}")).collect();
    for name in &names {
        market.order(name, json!({ "fqdn": format!("{name}.corp") })).await?;
    }
    for name in &names {
        market.order_is("it is available", name, |order| word(order) == "Available").await?;
        market.secret_is("and has its Secret", name, |_| true).await?;
    }

    // The first provider withdraws: the broker moves everything at once.
    let witness = Witness::of(&market);
    if let Some(metadata) = accept["metadata"].as_object_mut() {
        metadata.retain(|key, _| key == "name");
    }
    market.providers[1].provider.client.create(&accept_apis(), None, &accept).await?;
    market.providers[0].provider.client.delete(&accept_apis(), None, "certificates", &options).await?;
    let (broker, team) = (&market.running.broker, &market.platform.team_a);
    let there = market.providers[1].export_name();
    let (mut moved, mut kills) = (0, 0);
    while moved < many {
        // Whenever some have moved, and before the first.
        for (agent, provider) in agents.iter_mut().zip(&market.providers) {
            if let Some(agent) = agent.take() {
                agent.kill().await?;
                kills += 1;
            }
            *agent = Some(provider.start_agent()?);
        }
        let served = |name: &&String| broker.serving(team, name) == Some((there.to_owned(), false));
        moved = market
            .platform
            .eventually("more orders are served by the second provider", async || {
                let now = names.iter().filter(served).count();
                ensure!(now > moved, "{now} of {many} after {kills} kills; {:?}", broker.errors().last());
                Ok(now)
            })
            .await?;
    }
    for name in &names {
        let signed = encoded(&format!("{name}.corp by external-issuer"));
        market.secret_is("the second issuer has signed it", name, |it| it["data"]["tls.crt"] == signed).await?;
    }
    ensure!(market.copies(0).await?.is_empty() && market.copies(1).await?.len() == many, "not one copy for each order");
    let looks = witness.verdict()?;
    ensure!(looks > kills, "the witness has looked {looks} times");
    for agent in agents.into_iter().flatten() {
        agent.stop().await?;
    }
    market.close().await
}
