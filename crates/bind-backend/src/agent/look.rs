//! One look at one thing: read from caches, decide, write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use carrick_bind_api::identity::contract_namespace;
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::kinds::{API_SERVICE_EXPORT_TEMPLATE, API_SERVICE_NAMESPACE};
use carrick_bind_api::names::{
    BINDER, CLUSTER_BINDING_NAME, EXPORTS_ROLE, KUBECONFIG_KEY, ORDERED_TEMPLATES_ANNOTATION,
};
use carrick_bind_api::v1alpha2::{BindableResourcesRequest, ClusterBinding};
use carrick_client::{Error, Object};
use serde_json::Value;

use super::resources;
use super::session::ClusterSession;
use super::work::{Key, Outcome};
use super::writer;
use crate::decide::contract::{ContractView, kubeconfig_in, kubeconfig_secret};
use crate::decide::objects::{Contract, ContractObjects, NamespaceFacts};
use crate::decide::plan::{Plan, Write};
use crate::decide::request::{RequestView, answer_to};
use crate::decide::rights::{self, RoleKey};
use crate::decide::{cluster, contract, exports, health, namespaces, ordered, request, requests, withdrawal};

/// How often to look at what is not watched.
const CLUSTER_AGAIN: Duration = Duration::from_mins(5);
/// How soon to ask again whether a contract has its rights, which come with the contract.
const AFTER_GRANTS: Duration = Duration::from_millis(100);
/// After a conflict a watch event comes; if not, look again.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

impl ClusterSession {
    /// Looks at one thing.
    pub(super) async fn look(&self, key: &Key) -> Outcome {
        let result = match key {
            Key::Cluster => self.look_at_cluster().await,
            Key::Contract(namespace) => self.look_at_contract(namespace).await,
            Key::Request(namespace, name) => self.look_at_request(namespace, name).await,
        };
        match result {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::warn!(?key, %error, "Something could not be read or written, trying again.");
                Outcome { failed: true, again: None }
            }
        }
    }

    async fn look_at_cluster(&self) -> Result<Outcome, Error> {
        // First of all, because rights wait for it; but what else can be done is done without it.
        let policy = self.ensure(&cluster::policy(&self.terms.isolation)).await;
        let stands = policy.as_ref().is_ok_and(|outcome| !outcome.failed && outcome.again.is_none());
        if stands && !self.policy_stands.swap(true, Ordering::Relaxed) {
            for key in self.asking() {
                self.work.mark(key);
            }
        }
        let mut outcome = self.ensure(&cluster::wanted(&self.terms)).await?;
        let mut plan = self.catalogue().await?;
        plan.look_again_after(CLUSTER_AGAIN);
        outcome.add(self.carry_out(plan).await?);
        self.note_policy(policy.as_ref().err().map(ToString::to_string));
        if let Err(error) = &policy {
            tracing::warn!(%error, "The policy that keeps consumers apart cannot be written, so nobody may write cluster-scoped objects.");
        }
        outcome.add(policy.unwrap_or(Outcome { failed: true, again: None }));
        Ok(outcome)
    }

    /// Makes cluster-wide objects what they should be.
    async fn ensure(&self, wanted: &[Value]) -> Result<Outcome, Error> {
        let mut plan = Plan::default();
        for wanted in wanted {
            let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
            let Some(resource) = resources::of_object(wanted) else { continue };
            plan.ensure(self.client.get(&resource, None, name).await?.as_ref(), wanted);
        }
        self.carry_out(plan).await
    }

    async fn look_at_contract(&self, name: &str) -> Result<Outcome, Error> {
        let namespace = self.namespaces.get("", name);
        let contract = namespace.as_ref().and_then(Contract::of);
        if contract.as_ref().is_some_and(|contract| contract.deleting) {
            // The consumer can read nothing there any more, so nothing waits for it.
            return self.carry_out(withdrawal::let_go(&self.exports.typed(name))).await;
        }
        let (Some(namespace), Some(contract)) = (&namespace, contract) else {
            // What served a contract that is gone goes too.
            let gone = namespace.is_none().then(|| namespaces::clean_up(name, &[], self.found(name, &[]).values()));
            return self.carry_out(gone.unwrap_or_default()).await;
        };
        let now = Timestamp::now();
        let cluster_binding: Option<ClusterBinding> = self.cluster_bindings.read(name, CLUSTER_BINDING_NAME);
        let secret = kubeconfig_secret(cluster_binding.as_ref());
        let kubeconfig = self.kubeconfig_secret(name, &secret.name).await?;
        let (account, token) = (self.accounts.get(name, BINDER), self.tokens.get(name, BINDER));
        let role_binding = self.role_bindings.get(name, BINDER);
        let view = ContractView {
            contract: &contract,
            namespace,
            cluster_binding: cluster_binding.as_ref(),
            account: account.as_ref(),
            role_binding: role_binding.as_ref(),
            token: token.as_ref(),
            kubeconfig: kubeconfig.as_ref(),
        };
        let (mut plan, problem) = contract::decide(&view, &self.terms);
        self.note_problem(name, problem.map(|problem| problem.to_string()));
        if let Some(binding) = &cluster_binding {
            plan.add(health::decide(binding, now));
        }
        let objects = self.contract_objects(contract, cluster_binding);
        let offers = self.offers();
        plan.add(requests::decide(&objects, &offers, &self.terms, now));
        plan.add(exports::decide(&objects, &offers, now));
        plan.add(namespaces::decide(&objects, &self.terms, now));
        plan.add(rights::decide(
            &objects,
            &self.existing_roles(&objects),
            &self.terms,
            self.policy_stands.load(Ordering::Relaxed),
        ));
        let outcome = self.carry_out(plan).await;
        if let Err(error) = &outcome {
            self.note_problem(name, Some(error.to_string()));
        }
        for key in self.waiting.lock().remove(name).into_iter().flatten() {
            self.work.mark(key);
        }
        outcome
    }

    /// Remembers why the policy cannot be written; contracts say so.
    fn note_policy(&self, problem: Option<String>) {
        let is_known = problem.is_some();
        let before = std::mem::replace(&mut *self.policy_problem.lock(), problem);
        if before.is_some() != is_known {
            for key in self.asking() {
                self.work.mark(key);
            }
        }
    }

    fn contract_objects(&self, contract: Contract, cluster_binding: Option<ClusterBinding>) -> ContractObjects {
        let at = contract.namespace.clone();
        let service_namespaces = self.service_namespaces.typed(&at);
        let ordered = contract.ordered.iter().flatten();
        ContractObjects {
            unguarded: self.policy_problem.lock().clone(),
            templates: ordered.filter_map(|name| self.templates.read("", name)).collect(),
            found: self.found(&at, &service_namespaces),
            namespaces: service_namespaces,
            requests: self.export_requests.typed(&at),
            exports: self.exports.typed(&at),
            schemas: self.schemas.typed(&at),
            cluster_binding,
            contract,
        }
    }

    /// Namespaces that matter to a contract.
    fn found(
        &self,
        contract: &str,
        wanted: &[carrick_bind_api::v1alpha2::ApiServiceNamespace],
    ) -> BTreeMap<String, NamespaceFacts> {
        let mut names = self.index.serving(contract);
        for namespace in wanted {
            names.push(namespace.status.namespace.clone());
            names.extend(namespaces::assigned_name(contract, &namespace.metadata.name, &self.terms.isolation));
        }
        let found = names.into_iter().filter_map(|name| self.namespaces.get("", &name));
        found.map(|namespace| NamespaceFacts::of(&namespace)).map(|facts| (facts.name.clone(), facts)).collect()
    }

    /// Roles and bindings that a contract has.
    fn existing_roles(&self, objects: &ContractObjects) -> BTreeMap<RoleKey, Value> {
        let contract = &objects.contract;
        let mut all: Vec<Object> = Vec::new();
        for prefix in [EXPORTS_ROLE, "kube-binder-resources", "kube-binder-claims"] {
            let prefix = format!("{prefix}-{}", contract.namespace);
            all.extend(self.cluster_roles.all("", &prefix));
            all.extend(self.cluster_role_bindings.all("", &prefix));
        }
        let owned = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.into_iter().flatten().any(|owner| owner["uid"] == contract.uid.as_str())
        };
        let mut existing: Vec<Value> = all.iter().map(Object::value).filter(owned).collect();
        let spaces = objects.found.values().filter(|it| !it.deleting);
        let spaces = spaces.filter(|it| it.users().any(|(of, _)| *of == contract.namespace)).map(Some);
        for facts in spaces.chain([None]) {
            let namespace = facts.map_or(&contract.namespace, |facts| &facts.name);
            let concerns =
                |role: &Object| facts.is_none_or(|facts| rights::concerns(&role.name, facts, &contract.namespace));
            for cache in [&self.roles, &self.role_bindings] {
                let found = cache.all(namespace, "kube-binder-");
                existing.extend(found.iter().filter(|role| concerns(role)).map(Object::value));
            }
        }
        existing.into_iter().map(|object| (rights::key(&object), object)).collect()
    }

    async fn look_at_request(&self, namespace: &str, name: &str) -> Result<Outcome, Error> {
        let Some(request) = self.requests.read::<BindableResourcesRequest>(namespace, name) else {
            return Ok(Outcome::default());
        };
        if request::is_finished(&request) {
            let view = self.request_view(&request, "", &[]);
            return self.carry_out(request::decide(&view)).await;
        }
        let identity = &request.spec.cluster_identity.identity;
        let found = self.index.of_identity(identity);
        let found = found.iter().filter_map(|name| self.namespaces.get("", name)).filter_map(|it| Contract::of(&it));
        let contracts: Vec<Contract> = found.filter(|it| it.identity == *identity && !it.deleting).collect();
        let new_name = contract_namespace(&self.terms.namespace_prefix, identity);
        // The watch of namespaces may be behind that of requests.
        let home = match self.namespaces.get("", namespace) {
            Some(home) => Some(home),
            None => self.client.get(&resources::namespaces(), None, namespace).await?,
        };
        let Some(home) = home else { return Ok(Outcome::default()) };
        let from = format!("{namespace}/{}", home["metadata"]["uid"].as_str().unwrap_or_default());
        let mut view = self.request_view(&request, &from, &contracts);
        let template = request.spec.template_ref.as_ref().filter(|template| !template.name.is_empty());
        if let Some(template) = template {
            // The watch of templates may be behind that of requests, and what is said now is said for good.
            let known = self.templates.get("", &template.name).is_some();
            let resource = resources::of(API_SERVICE_EXPORT_TEMPLATE);
            view.template_exists = known || self.client.get(&resource, None, &template.name).await?.is_some();
        }
        // Before the answer: whoever has it asks for what was ordered.
        if let ([contract], Some(template), true) = (&contracts[..], template, view.template_exists)
            && contract.requested_from.as_deref() == Some(from.as_str())
            && let Some(ordered) = ordered::with(contract.ordered.as_deref(), &template.name)
            && let Some(mut namespace) = self.namespaces.get("", &contract.namespace)
        {
            namespace["metadata"]["annotations"][ORDERED_TEMPLATES_ANNOTATION] = ordered.into();
            let mut plan = Plan::default();
            plan.writes.push(Write::Replace(namespace));
            let mut outcome = self.carry_out(plan).await?;
            outcome.add(Outcome { failed: false, again: Some(AFTER_GRANTS) });
            return Ok(outcome);
        }
        if contracts.is_empty() {
            view.name_taken = self.namespaces.get("", &new_name).is_some();
        }
        // Before anything of the contract is read: whatever comes later is told.
        let awaited = contracts.first().map_or(new_name, |contract| contract.namespace.clone());
        let key = Key::Request(namespace.to_owned(), name.to_owned());
        self.waiting.lock().entry(awaited.clone()).or_default().insert(key.clone());
        let (kubeconfig, answer);
        let mut granted = true;
        if let [contract] = &contracts[..] {
            let at = &contract.namespace;
            let binding: Option<ClusterBinding> = self.cluster_bindings.read(at, CLUSTER_BINDING_NAME);
            let secret = kubeconfig_secret(binding.as_ref());
            let found = self.kubeconfig_secret(at, &secret.name).await?;
            kubeconfig = found.and_then(|found| kubeconfig_in(&found, &secret.key));
            view.problem = self.problems.lock().get(at).cloned();
            // Whoever gets it may use it at once.
            granted = self.cluster_roles.get("", BINDER).is_some() && self.role_bindings.get(at, BINDER).is_some();
            view.kubeconfig = kubeconfig.as_deref().filter(|_| view.problem.is_none() && granted);
            answer = self.client.get(&resources::secrets(), Some(namespace), &answer_to(&request).name).await?;
            view.answer = answer.as_ref();
        } else if contracts.len() > 1 {
            let names: Vec<&str> = contracts.iter().map(|it| it.namespace.as_str()).collect();
            view.problem =
                Some(format!("namespaces {} all say that they are for this identity; keep one", names.join(", ")));
        }
        if view.kubeconfig.is_some() {
            let mut waiting = self.waiting.lock();
            let left = waiting.remove(&awaited).into_iter().flatten().filter(|other| *other != key);
            let left: BTreeSet<Key> = left.collect();
            if !left.is_empty() {
                waiting.insert(awaited, left);
            }
        }
        let mut outcome = self.carry_out(request::decide(&view)).await?;
        if !granted {
            // Nobody waits for rights by name.
            outcome.add(Outcome { failed: false, again: Some(AFTER_GRANTS) });
        }
        Ok(outcome)
    }

    fn request_view<'a>(
        &'a self,
        request: &'a BindableResourcesRequest,
        from: &'a str,
        contracts: &'a [Contract],
    ) -> RequestView<'a> {
        RequestView {
            request,
            from,
            template_exists: true,
            contracts,
            name_taken: false,
            problem: None,
            kubeconfig: None,
            answer: None,
            prefix: &self.terms.namespace_prefix,
            now: Timestamp::now(),
        }
    }

    /// The Secret with a contract's kubeconfig; those of other names are not watched.
    async fn kubeconfig_secret(&self, namespace: &str, name: &str) -> Result<Option<Value>, Error> {
        if name == KUBECONFIG_KEY {
            return Ok(self.kubeconfigs.get(namespace, name));
        }
        self.client.get(&resources::secrets(), Some(namespace), name).await
    }

    fn note_problem(&self, contract: &str, problem: Option<String>) {
        let mut problems = self.problems.lock();
        match problem {
            Some(problem) => problems.insert(contract.to_owned(), problem),
            None => problems.remove(contract),
        };
    }

    /// Carries out a plan. What another write has overtaken comes again with the next look.
    async fn carry_out(&self, plan: Plan) -> Result<Outcome, Error> {
        let mut outcome = Outcome { failed: false, again: plan.look_again };
        for write in &plan.writes {
            if matches!(write, Write::Delete(_)) && !self.may_delete(write).await? {
                outcome.failed = true;
                continue;
            }
            match writer::carry_out(&self.client, write).await {
                Ok(()) => {}
                // Also what is created in a namespace that goes: the caches say so soon, and the plan is another one then.
                Err(error) if error.is_conflict() || error.is_already_exists() || error.is_not_found() => {
                    outcome.again = Some(outcome.again.map_or(AFTER_CONFLICT, |again| again.min(AFTER_CONFLICT)));
                    return Ok(outcome);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(outcome)
    }

    /// Whether something may go. A namespace holds a consumer's data: it is asked once more whether nobody wants it.
    async fn may_delete(&self, write: &Write) -> Result<bool, Error> {
        if !self.is_certain() {
            return Ok(false);
        }
        let object = write.object();
        if object["kind"] != "Namespace" {
            return Ok(true);
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let Some(there) = self.client.get(&resources::namespaces(), None, name).await? else { return Ok(true) };
        let facts = NamespaceFacts::of(&there);
        // Somebody may have come since.
        let Some((contract, wanted)) = facts.serves.filter(|_| facts.made && facts.shared.is_empty()) else {
            return Ok(false);
        };
        let wanted = self.client.get(&resources::of(API_SERVICE_NAMESPACE), Some(&contract), &wanted).await?;
        Ok(wanted.is_none())
    }
}
