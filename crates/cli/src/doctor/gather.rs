//! Asks both servers, once. Nothing is written: access reviews are queries, although they are sent by POST.

mod accepting;
mod copies;
mod origins;

use std::path::Path;
use std::time::Duration;

use carrick_client::{Client, ConnectError, Error, ListOptions, Overrides, Resource, Server};
use carrick_kcp::apis::v1alpha1::ApiExportEndpointSlice;
use carrick_kcp::apis::v1alpha2::ApiBinding;
use carrick_kcp::token::AccountToken;
use carrick_syncagent::agent::explain;
use carrick_syncagent::agent::keeper::cluster_id;
use carrick_syncagent::agent::rights::allowed;
use carrick_syncagent::options;
use carrick_syncagent::rules::renewal;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::facts::{
    Access, AgentArguments, CheckedRight, Endpoint, Facts, FailureKind, FixLogin, Lookup, Published, ServerAnswer,
};
use super::needs;
use super::right::{NeededRight, RightScope};
use crate::agent_flags::{Identified, deployment};

/// How many access reviews are sent at once.
const AT_ONCE: usize = 16;

/// Gathers everything that the checks need.
pub async fn gather(agent: &Identified, patience: Duration) -> Facts {
    let options = &agent.options;
    let asked = AgentArguments {
        kubeconfig: agent.given.0.clone(),
        context: agent.given.1.clone(),
        kcp_kubeconfig: options.kcp_kubeconfig.clone(),
        slice: agent.slice().to_owned(),
        namespace: options.namespace.clone(),
        agent_name: options.agent_name.clone(),
        login: agent.login.clone(),
        renewed: Some(options.renew_kcp_token.clone()).filter(|secret| !secret.is_empty()),
        deployment: agent.deployment.clone(),
        selector: options.published_resource_selector.clone(),
        staging_root: options::staging_root(&options.broker_staging_root, &options.release_after),
    };
    let mut facts = Facts { asked, now: jiff::Timestamp::now().as_second(), ..Facts::default() };
    let file = Some(options.kubeconfig.as_str()).filter(|file| !file.is_empty()).map(Path::new);
    let local = Server::infer(file, &Overrides::default());
    let kcp = Server::from_kubeconfig(options.kcp_kubeconfig.as_ref(), &Overrides::default());
    if let Ok(kcp) = &kcp {
        kcp.redirect(options.endpoint_overrides());
    }
    let patient = TimedRequests { limit: patience };
    let (service, kcp_access) =
        tokio::join!(patient.access(&options.kubeconfig, &local), patient.access(&options.kcp_kubeconfig, &kcp),);
    (facts.service, facts.kcp) = (service, kcp_access);
    if !facts.asked.context.is_empty() && !facts.asked.kubeconfig.is_empty() {
        facts.service.origin.clone_from(&facts.asked.kubeconfig);
    }
    match &facts.asked.login {
        FixLogin::Given => {}
        FixLogin::InSecret(secret) => facts.kcp.origin = format!("the kubeconfig in {}", secret.shown()),
        // The server in there may be one for the agent alone.
        FixLogin::Own { agents, .. } => facts.kcp.origin = format!("the agent's token in {}", agents.shown()),
    }
    facts.token = token(&options.kcp_kubeconfig);
    if let (Ok(local), ServerAnswer::Works) = (&local, &facts.service.answer) {
        // What runs counts more than what is planned. Whoever may not see it gets no answer here.
        let (namespace, slice) = (&facts.asked.namespace, &facts.asked.slice);
        match patient.within(deployment::find(&local.client(), namespace, slice)).await {
            Ok(Some(found)) => {
                let flag = |name: &str| deployment::flag(&found.flags, name);
                let [root, time] =
                    ["--broker-staging-root", "--release-after"].map(|name| flag(name).unwrap_or_default());
                facts.asked.renewed = flag("--renew-kcp-token");
                facts.asked.staging_root = options::staging_root(&root, &time);
            }
            Ok(None) => {
                let all = tokio::time::timeout(patience, deployment::all(&options.kubeconfig)).await;
                let all = all.ok().and_then(Result::ok).unwrap_or_default();
                let same = all.into_iter().filter(|agent| agent.slice == *slice).map(|agent| agent.name);
                facts.elsewhere = same.collect();
            }
            Err(_) => {}
        }
    }
    let mut consumers = Vec::new();
    if let (Ok(kcp), ServerAnswer::Works, Ok(_)) =
        (&kcp, &facts.kcp.answer, carrick_kcp::url::workspace(&facts.kcp.url))
    {
        consumers = patient.look_at_kcp(kcp, &mut facts).await;
    }
    if let (Ok(local), ServerAnswer::Works) = (&local, &facts.service.answer) {
        let client = local.client();
        facts.cluster = patient.within(cluster_id(&client)).await.unwrap_or_default();
        if let (Some(export), false) = (facts.export.object(), agent.is_named) {
            let name = explain::agent_of(export, &facts.cluster);
            facts.asked.agent_name = name.unwrap_or(facts.asked.agent_name);
        }
        let selector = &options.published_resource_selector;
        Box::pin(patient.look_at_service(local, selector, &consumers, &mut facts)).await;
        if let (Ok(kcp), ServerAnswer::Works) = (&kcp, &facts.kcp.answer) {
            facts.origins = patient.origins(kcp, facts.published()).await;
            patient.look_at_broker(kcp, &mut facts).await;
        }
    }
    facts
}

/// Sends requests with a time limit.
struct TimedRequests {
    limit: Duration,
}

impl TimedRequests {
    async fn within<T>(&self, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::time::timeout(self.limit, asked).await.unwrap_or_else(|_| {
            let problem = format!("not answered within {} s", self.limit.as_secs());
            Err(Error::Transport { request: "request".to_owned(), problem })
        })
    }

    async fn get(&self, client: &Client, resource: &Resource, namespace: Option<&str>, name: &str) -> Lookup {
        Lookup::of(self.within(client.get(resource, namespace, name)).await)
    }

    /// Where a kubeconfig leads, and whether the server there answers.
    async fn access(&self, file: &str, server: &Result<Server, ConnectError>) -> Access {
        let (context, cluster) = context(file);
        let mut access = Access { origin: file.to_owned(), context, cluster, ..Access::default() };
        if access.origin.is_empty() {
            access.origin = match std::env::var("KUBECONFIG") {
                Ok(files) if !files.is_empty() => files,
                _ => "the usual place".to_owned(),
            };
        }
        let server = match server {
            Ok(server) => server,
            Err(error) => {
                access.unusable = Some(error.to_string());
                return access;
            }
        };
        server.url().clone_into(&mut access.url);
        let client = server.client();
        let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let reviews = Resource::cluster_wide("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews");
        access.answer = match self.within(client.create(&reviews, None, &review)).await {
            Ok(answer) => {
                let user = &answer["status"]["userInfo"]["username"];
                user.as_str().unwrap_or_default().clone_into(&mut access.user);
                ServerAnswer::Works
            }
            // Servers before 1.28 cannot say who the caller is.
            Err(error) if error.is_not_found() => match self.within(client.raw_get("/version")).await {
                Ok(_) => ServerAnswer::Works,
                Err(error) => ServerAnswer::Fails(FailureKind::of(&error), error.to_string()),
            },
            Err(error) => ServerAnswer::Fails(FailureKind::of(&error), error.to_string()),
        };
        if access.answer == ServerAnswer::Works
            && let Ok(Some(date)) = self.within(client.date()).await
        {
            let now = jiff::Timestamp::now().as_second();
            let server = jiff::fmt::rfc2822::parse(&date).ok();
            access.ahead = server.map(|then| then.timestamp().as_second() - now);
        }
        access
    }

    async fn look_at_service(&self, local: &Server, selector: &str, consumers: &[Client], facts: &mut Facts) {
        let client = local.client();
        let crds = Resource::cluster_wide(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        );
        let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
        let leases = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
        let own = facts.asked.namespace.clone();
        let lease = format!("syncagent.{}", facts.asked.agent_name);
        (facts.crd, facts.namespace, facts.lease) = tokio::join!(
            self.get(&client, &crds, None, "publishedresources.syncagent.kcp.io"),
            self.get(&client, &namespaces, None, &own),
            self.get(&client, &leases, Some(&own), &lease),
        );
        if facts.crd.object().is_some() {
            facts.published = Some(self.published(local, &client, selector, consumers, facts).await);
        }
        let needs = needs::on_the_service_cluster(&facts.asked, facts.published());
        // Those of the service cluster come first.
        let rights = self.review(&client, needs).await;
        facts.rights.splice(0..0, rights);
        let powers = needs::for_fixes().into_iter().filter(|need| need.place == RightScope::Service).collect();
        facts.powers.extend(self.review(&client, powers).await);
    }

    async fn published(
        &self,
        local: &Server,
        client: &Client,
        selector: &str,
        consumers: &[Client],
        facts: &mut Facts,
    ) -> Result<Vec<Published>, String> {
        let agent_name = facts.asked.agent_name.clone();
        let resource = Resource::cluster_wide(
            carrick_syncagent::api::GROUP,
            carrick_syncagent::api::VERSION,
            "PublishedResource",
            "publishedresources",
        );
        let options = ListOptions {
            label_selector: (!selector.is_empty()).then(|| selector.to_owned()),
            ..ListOptions::default()
        };
        let objects = self.within(client.list(&resource, None, &options)).await.map_err(|error| error.to_string())?;
        let catalog = explain::catalog(local, selector, &agent_name, self.limit).await;
        let catalog = catalog.map_err(|error| error.to_string())?;
        let export = facts.export.object().cloned().unwrap_or_default();
        let doubts = tokio::time::timeout(self.limit, explain::doubts(client, &export, &agent_name, &catalog)).await;
        let mut doubts = doubts.unwrap_or_default();
        if facts.export.object().is_some() {
            facts.unneeded_claims = explain::unneeded_claims(&export, &catalog);
        }
        let all_answer = facts.endpoints.iter().all(|endpoint| endpoint.answer == ServerAnswer::Works);
        if !consumers.is_empty() && all_answer {
            let brokered = copies::Brokered::new(facts.asked.staging_root.as_ref(), &facts.bindings);
            let copies = copies::copies(&catalog, &agent_name, client, consumers, &brokered);
            facts.copies = tokio::time::timeout(self.limit, copies).await.unwrap_or_default();
        }
        let published = objects.into_iter().map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let entry = catalog.entries.get(&name);
            Published {
                problem: catalog.problems.get(&name).map(|problem| problem.message.clone()),
                doubts: doubts.remove(&name).unwrap_or_default(),
                pr: catalog.resources.get(&name).cloned(),
                crd: entry.map(|entry| entry.crd.clone()),
                schema: entry.map(|entry| entry.schema_name.clone()),
                object,
                name,
            }
        });
        Ok(published.collect())
    }

    /// Looks around in kcp; returns a client for all workspaces of each endpoint.
    async fn look_at_kcp(&self, kcp: &Server, facts: &mut Facts) -> Vec<Client> {
        let client = kcp.client();
        let everything = ListOptions::default();
        facts.slice = Lookup::of(self.within(client.get_kcp(&facts.asked.slice)).await);
        let Some(slice) = facts.slice.object() else {
            let all: Option<Vec<ApiExportEndpointSlice>> = self.within(client.list_kcp(&everything)).await.ok();
            facts.slices = all.map(|all| all.into_iter().map(|slice| slice.metadata.name).collect());
            return Vec::new();
        };
        let (path, export) = (slice.spec.export.path.clone(), slice.spec.export.name.clone());
        let urls: Vec<String> = slice.urls().map(str::to_owned).collect();

        let url = if path.is_empty() { Ok(kcp.url().to_owned()) } else { carrick_kcp::url::retarget(kcp.url(), &path) };
        let Ok(workspace) = url.map_err(drop).and_then(|url| kcp.at_url(&url).map_err(drop)) else {
            return Vec::new();
        };
        workspace.url().clone_into(&mut facts.export_url);
        facts.export = Lookup::of(self.within(workspace.get_newest(&export)).await);
        facts.schemas = self.within(workspace.metadata_only().list_kcp(&everything)).await.unwrap_or_default();

        let everywhere = |url: &String| kcp.at_published_url(&carrick_kcp::url::in_endpoint(url, "*")).ok();
        let consumers = urls.iter().filter_map(everywhere).collect();
        for url in urls {
            let (answer, bindings) = self.endpoint(kcp, &url).await;
            facts.bindings.extend(bindings);
            facts.endpoints.push(Endpoint { url, answer });
        }
        let (at_slice, at_export): (Vec<_>, Vec<_>) =
            needs::in_kcp(&facts.asked.slice, &export).into_iter().partition(|need| need.place == RightScope::Slice);
        facts.rights.extend(self.review(&client, at_slice).await);
        if let (Some(token), Some(_)) = (&facts.token, &facts.asked.renewed) {
            facts.rights.extend(self.review(&client, vec![needs::of_renewals(token)]).await);
        }
        facts.rights.extend(self.review(&workspace, at_export).await);
        for (place, client) in [(RightScope::Slice, &client), (RightScope::Export, &workspace)] {
            let powers = needs::for_fixes().into_iter().filter(|need| need.place == place).collect();
            facts.powers.extend(self.review(client, powers).await);
        }
        consumers
    }

    /// Whether an endpoint answers, and the bindings it knows.
    async fn endpoint(&self, kcp: &Server, url: &str) -> (ServerAnswer, Vec<ApiBinding>) {
        let client = match kcp.at_published_url(&carrick_kcp::url::in_endpoint(url, "*")) {
            Ok(client) => client,
            Err(error) => return (ServerAnswer::Fails(FailureKind::Other, error.to_string()), Vec::new()),
        };
        match self.within(client.list_newest(&ListOptions::default())).await {
            Ok(bindings) => (ServerAnswer::Works, bindings),
            Err(error) => (ServerAnswer::Fails(FailureKind::of(&error), error.to_string()), Vec::new()),
        }
    }

    /// Asks for every verb of every needed right whether it is allowed.
    async fn review(&self, client: &Client, needs: Vec<NeededRight>) -> Vec<CheckedRight> {
        let questions: Vec<_> =
            needs.iter().enumerate().flat_map(|(at, need)| need.verbs.iter().map(move |verb| (at, *verb))).collect();
        let answers = stream::iter(questions).map(|(at, verb)| {
            let need = &needs[at];
            async move {
                let (namespace, name) = (need.namespace.as_deref(), need.name.as_deref());
                (at, verb, self.within(allowed(client, (&need.group, &need.resource, verb), namespace, name)).await)
            }
        });
        let mut answers: Vec<_> = answers.buffer_unordered(AT_ONCE).collect().await;
        answers.sort_by_key(|(at, verb, _)| (*at, needs[*at].verbs.iter().position(|it| it == verb)));
        let mut rights: Vec<CheckedRight> =
            needs.iter().map(|need| CheckedRight { need: need.clone(), denied: Ok(Vec::new()) }).collect();
        for (at, verb, answer) in answers {
            match (answer, &mut rights[at].denied) {
                (Ok(false), Ok(denied)) => denied.push(verb),
                (Err(error), denied) => *denied = Err(error.to_string()),
                _ => {}
            }
        }
        rights
    }
}

/// What the token of a kubeconfig says, if it has one.
fn token(file: &str) -> Option<AccountToken> {
    let token = renewal::token(&std::fs::read_to_string(file).ok()?).ok()?;
    AccountToken::read(&token).ok()
}

/// The current context of a kubeconfig, and its cluster; empty if it has none or cannot be read.
fn context(file: &str) -> (String, String) {
    let file = if file.is_empty() { std::env::var("KUBECONFIG").unwrap_or_default() } else { file.to_owned() };
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let config: Value = carrick_json::yaml::value(&text).unwrap_or_default();
    let context = config["current-context"].as_str().unwrap_or_default().to_owned();
    let contexts = config["contexts"].as_array().into_iter().flatten();
    let cluster = contexts.filter(|it| it["name"] == context).find_map(|it| it["context"]["cluster"].as_str());
    let cluster = cluster.unwrap_or_default().to_owned();
    (context, cluster)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_cluster_of_the_current_context_is_known_by_its_name() {
        let text =
            "{current-context: b, contexts: [{name: a, context: {cluster: one}}, {name: b, context: {cluster: two}}]}";
        let file = crate::kubeconfig::Temporary::new(text.as_bytes()).unwrap();
        let found = super::context(&file.path().display().to_string());
        assert_eq!(found, ("b".to_owned(), "two".to_owned()));
    }
}
