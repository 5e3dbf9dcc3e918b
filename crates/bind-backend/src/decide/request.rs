//! BindableResourcesRequests: a contract without a browser.

use std::time::Duration;

use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::clock;
use carrick_bind_api::conditions::{self, Condition, Severity};
use carrick_bind_api::identity::contract_namespace;
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::kinds::{GROUP, VERSION};
use carrick_bind_api::names::{
    BINDING_RESPONSE_KEY, KUBECONFIG_KEY, ORDERED_TEMPLATES_ANNOTATION, REQUESTED_FROM_ANNOTATION,
};
use carrick_bind_api::response::IN_SECRET;
use carrick_bind_api::v1alpha2::{BindableResourcesRequest, LocalSecretKeyReference, Phase};
use carrick_go::duration;
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::contract;
use super::objects::Contract;
use super::plan::{Plan, Write};

/// How soon to look again at what no watch tells about.
const AGAIN: Duration = Duration::from_secs(10);

/// What is known when a request is looked at.
#[derive(Clone, Debug)]
pub struct RequestView<'a> {
    /// The request.
    pub request: &'a BindableResourcesRequest,
    /// Whether the template that it names exists; true if it names none.
    pub template_exists: bool,
    /// Namespace of the request and its uid, as contracts note it down.
    pub from: &'a str,
    /// Contracts of its identity.
    pub contracts: &'a [Contract],
    /// Whether there is a namespace of the name that a new contract would get, and it is no contract of this identity.
    pub name_taken: bool,
    /// What stands in the contract's way.
    pub problem: Option<String>,
    /// The kubeconfig of the contract, as soon as there is one.
    pub kubeconfig: Option<&'a [u8]>,
    /// The Secret that the answer goes to.
    pub answer: Option<&'a Value>,
    /// Prefix of the names of contract namespaces.
    pub prefix: &'a str,
    /// What time it is.
    pub now: Timestamp,
}

/// Where the answer to a request goes.
pub fn answer_to(request: &BindableResourcesRequest) -> LocalSecretKeyReference {
    match &request.spec.kubeconfig_secret_ref {
        Some(named) if !named.name.is_empty() => {
            let key = if named.key.is_empty() { KUBECONFIG_KEY } else { &named.key };
            LocalSecretKeyReference::new(&named.name, key)
        }
        _ => LocalSecretKeyReference::new(format!("{}-binding-response", request.metadata.name), BINDING_RESPONSE_KEY),
    }
}

/// Whether nothing is left to be done but to go after a while.
pub fn is_finished(request: &BindableResourcesRequest) -> bool {
    matches!(request.status.phase, Phase::Succeeded | Phase::Failed)
}

/// What to do about a request.
pub fn decide(view: &RequestView<'_>) -> Plan {
    let RequestView { request, .. } = view;
    if request.metadata.is_deleting() {
        return Plan::default();
    }
    if is_finished(request) {
        return expire(view);
    }
    if let Some((reason, message)) = refusal(view) {
        return ended(view, Phase::Failed, Condition::fails("Ready", Severity::Unset, reason, message), |_| {});
    }
    let Some(contract) = view.contracts.first() else { return found_contract(view) };
    let mut plan = Plan::default();
    let Some(kubeconfig) = view.kubeconfig else {
        let (reason, message) = match &view.problem {
            Some(problem) => ("HandleResourcesFailed", problem.clone()),
            None => ("ContractPending", "the contract is being made".to_owned()),
        };
        waiting(view, &mut plan, &contract.namespace, reason, message);
        return plan;
    };
    let at = answer_to(request);
    let wanted = answer(request, &at, kubeconfig);
    match view.answer {
        None => plan.writes.push(Write::Create(wanted)),
        Some(there) if !is_owned(there, request) => {
            let message = format!(
                "Secret {} exists and is none of this request's; name another one in spec.kubeconfigSecretRef, or delete it",
                at.name
            );
            waiting(view, &mut plan, &contract.namespace, "SecretCreationFailed", message);
            return plan;
        }
        Some(there) => plan.ensure(Some(there), &wanted),
    }
    let mut ready = Condition::holds("Ready");
    "SecretReady".clone_into(&mut ready.reason);
    "the Secret holds the answer".clone_into(&mut ready.message);
    plan.add(ended(view, Phase::Succeeded, ready, |status| {
        status.namespace.clone_from(&contract.namespace);
        status.kubeconfig_secret_ref = Some(at);
    }));
    plan
}

/// Why a request can never be fulfilled: what it says cannot be changed.
fn refusal(view: &RequestView<'_>) -> Option<(&'static str, String)> {
    let spec = &view.request.spec;
    let identity = &spec.cluster_identity.identity;
    if identity.is_empty() {
        return Some(("InvalidRequest", "spec.clusterIdentity.identity is empty".to_owned()));
    }
    if !spec.ttl_after_finished.is_empty() && ttl(view.request).is_none() {
        let text = &spec.ttl_after_finished;
        return Some(("InvalidRequest", format!("spec.ttlAfterFinished {text:?} is not a duration such as 1h30m")));
    }
    if !view.template_exists {
        let name = spec.template_ref.as_ref().map(|template| template.name.as_str()).unwrap_or_default();
        return Some(("TemplateNotFound", format!("APIServiceExportTemplate {name:?} does not exist")));
    }
    // What the request says about its author counts for nothing: whoever may write one may write that.
    if let [contract] = view.contracts
        && contract.requested_from.as_deref() != Some(view.from)
    {
        let message = format!(
            "identity {identity:?} belongs to somebody else: its contract was not requested from this namespace; choose another identity, or \
             let the provider annotate namespace {} with {REQUESTED_FROM_ANNOTATION}: {}",
            contract.namespace, view.from
        );
        return Some(("IdentityTaken", message));
    }
    None
}

/// Makes a contract where there is none.
fn found_contract(view: &RequestView<'_>) -> Plan {
    let spec = &view.request.spec;
    let (identity, mut plan) = (&spec.cluster_identity.identity, Plan::default());
    let name = contract_namespace(view.prefix, identity);
    if view.name_taken {
        let message = format!("namespace {name} exists and is no contract of this identity; rename or delete it");
        waiting(view, &mut plan, "", "HandleResourcesFailed", message);
        return plan;
    }
    // kube-bind's backend calls the consumer like the request if nobody has said a name.
    let pretty_name = Some(&spec.cluster_identity.pretty_name).filter(|name| !name.is_empty());
    let pretty_name = pretty_name.unwrap_or(&view.request.metadata.name);
    let mut namespace = contract::namespace(&name, identity, &spec.author, pretty_name);
    if let Some(template) = spec.template_ref.as_ref().filter(|template| !template.name.is_empty()) {
        namespace["metadata"]["annotations"][ORDERED_TEMPLATES_ANNOTATION] = json!(template.name);
    }
    namespace["metadata"]["annotations"][REQUESTED_FROM_ANNOTATION] = json!(view.from);
    plan.writes.push(Write::Create(namespace));
    plan
}

/// Says why a request is not fulfilled yet.
fn waiting(view: &RequestView<'_>, plan: &mut Plan, namespace: &str, reason: &str, message: String) {
    let mut request = view.request.clone();
    request.status.phase = Phase::Pending;
    namespace.clone_into(&mut request.status.namespace);
    let condition = Condition::fails("Ready", Severity::Unset, reason, message);
    conditions::set_standard(&mut request.status.conditions, condition, view.now);
    plan.look_again_after(AGAIN);
    if request.status != view.request.status {
        plan.status(&request);
    }
}

fn ended(
    view: &RequestView<'_>,
    phase: Phase,
    ready: Condition,
    say: impl FnOnce(&mut carrick_bind_api::v1alpha2::BindableResourcesRequestStatus),
) -> Plan {
    let mut request = view.request.clone();
    request.status.phase = phase;
    request.status.completion_time = clock::show(view.now);
    say(&mut request.status);
    conditions::set_standard(&mut request.status.conditions, ready, view.now);
    let mut plan = Plan::default();
    plan.status(&request);
    plan
}

/// Deletes a finished request when its time has come.
fn expire(view: &RequestView<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(ttl) = ttl(view.request) else { return plan };
    let finished = clock::read(&view.request.status.completion_time).unwrap_or(view.now);
    let age = Duration::try_from(view.now.duration_since(finished)).unwrap_or_default();
    match ttl.checked_sub(age).filter(|left| !left.is_zero()) {
        Some(left) => plan.look_again_after(left),
        None => plan.delete(view.request),
    }
    plan
}

fn ttl(request: &BindableResourcesRequest) -> Option<Duration> {
    let nanos = duration::parse(&request.spec.ttl_after_finished)?;
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

fn answer(request: &BindableResourcesRequest, at: &LocalSecretKeyReference, kubeconfig: &[u8]) -> Value {
    let answer = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": IN_SECRET, "authentication": {},
        "kubeconfig": BASE64.encode(kubeconfig), "requests": null,
    });
    let mut owner = OwnerReference::to(request);
    owner.controller = true;
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": at.name, "namespace": request.metadata.namespace, "ownerReferences": [owner]},
        "data": {at.key.as_str(): BASE64.encode(answer.to_string().as_bytes())}})
}

fn is_owned(secret: &Value, request: &BindableResourcesRequest) -> bool {
    let owners = secret["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|owner| owner["uid"] == request.metadata.uid.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::objects::ContractObjects;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn request() -> BindableResourcesRequest {
        let mut request = BindableResourcesRequest::new("r");
        "default".clone_into(&mut request.metadata.namespace);
        "u".clone_into(&mut request.metadata.uid);
        "jane".clone_into(&mut request.spec.author);
        "the consumer".clone_into(&mut request.spec.cluster_identity.identity);
        request
    }

    fn view<'a>(request: &'a BindableResourcesRequest, contracts: &'a [Contract]) -> RequestView<'a> {
        RequestView {
            request,
            template_exists: true,
            from: "default/default-uid",
            contracts,
            name_taken: false,
            problem: None,
            kubeconfig: None,
            answer: None,
            prefix: "cluster-",
            now: at(0),
        }
    }

    fn status(plan: &Plan) -> (String, String) {
        let Some(Write::Status(object)) = plan.writes.last() else { panic!("{plan:?}") };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&object["status"]["phase"]), text(&object["status"]["conditions"][0]["reason"]))
    }

    #[test]
    fn nothing_is_made_for_a_request_that_cannot_be_fulfilled() {
        let contract = [ContractObjects::example().contract];
        let mut unknown = request();
        unknown.spec.template_ref = Some(carrick_bind_api::v1alpha2::TemplateReference::default());
        let mut missing = view(&unknown, &[]);
        missing.template_exists = false;
        let plan = decide(&missing);
        assert_eq!((plan.writes.len(), status(&plan)), (1, ("Failed".to_owned(), "TemplateNotFound".to_owned())));
        // Whatever it says about its author.
        let stranger = request();
        let by_login = [Contract { requested_from: None, ..contract[0].clone() }];
        for (from, contracts) in
            [("default/later-uid", &contract), ("joe/uid", &contract), ("default/default-uid", &by_login)]
        {
            let mut asked = view(&stranger, contracts);
            asked.from = from;
            asked.kubeconfig = Some(b"k");
            let plan = decide(&asked);
            assert_eq!((plan.writes.len(), status(&plan)), (1, ("Failed".to_owned(), "IdentityTaken".to_owned())));
        }
        let mut endless = request();
        "soon".clone_into(&mut endless.spec.ttl_after_finished);
        assert_eq!(status(&decide(&view(&endless, &[]))).1, "InvalidRequest");
        let mut taken = request();
        taken.spec.cluster_identity.identity.clear();
        assert_eq!(status(&decide(&view(&taken, &[]))).1, "InvalidRequest");
    }

    #[test]
    fn a_request_founds_a_contract_waits_for_it_and_answers() {
        let (request, contract) = (request(), [ContractObjects::example().contract]);
        let plan = decide(&view(&request, &[]));
        let [Write::Create(namespace)] = &plan.writes[..] else { panic!("{plan:?}") };
        let found = Contract::of(namespace).unwrap();
        assert_eq!((found.identity.as_str(), found.author.as_deref()), ("the consumer", Some("jane")));
        assert_eq!(found.requested_from.as_deref(), Some("default/default-uid"));
        let mut taken = view(&request, &[]);
        taken.name_taken = true;
        assert_eq!(status(&decide(&taken)), ("Pending".to_owned(), "HandleResourcesFailed".to_owned()));
        assert_eq!(status(&decide(&view(&request, &contract))).0, "Pending");
        let mut made = view(&request, &contract);
        made.kubeconfig = Some(b"k");
        let plan = decide(&made);
        let [Write::Create(secret), Write::Status(_)] = &plan.writes[..] else { panic!("{plan:?}") };
        assert_eq!(secret["metadata"]["name"], "r-binding-response");
        let text = BASE64.decode(secret["data"]["binding-response"].as_str().unwrap().as_bytes()).unwrap();
        let answer = carrick_bind_api::response::BindingResponse::parse(std::str::from_utf8(&text).unwrap()).unwrap();
        assert_eq!(answer.kubeconfig_text().unwrap(), "k");
        assert_eq!(status(&plan), ("Succeeded".to_owned(), "SecretReady".to_owned()));
    }

    #[test]
    fn a_secret_of_somebody_else_is_not_taken_over() {
        let (mut request, contract) = (request(), [ContractObjects::example().contract]);
        request.spec.kubeconfig_secret_ref = Some(LocalSecretKeyReference::new("theirs", ""));
        let theirs = json!({"metadata": {"name": "theirs"}, "data": {"kubeconfig": "YQ=="}});
        let mut made = view(&request, &contract);
        made.kubeconfig = Some(b"k");
        made.answer = Some(&theirs);
        let plan = decide(&made);
        assert_eq!(plan.writes.len(), 1);
        assert_eq!(status(&plan), ("Pending".to_owned(), "SecretCreationFailed".to_owned()));
    }

    #[test]
    fn a_finished_request_goes_when_its_time_has_come() {
        let mut request = request();
        "1m".clone_into(&mut request.spec.ttl_after_finished);
        request.status.phase = Phase::Succeeded;
        request.status.completion_time = clock::show(at(0));
        let mut early = view(&request, &[]);
        early.now = at(20);
        assert_eq!(decide(&early), Plan { writes: Vec::new(), look_again: Some(Duration::from_secs(40)) });
        early.now = at(60);
        assert!(matches!(&decide(&early).writes[..], [Write::Delete(_)]));
        request.spec.ttl_after_finished.clear();
        assert_eq!(decide(&view(&request, &[])), Plan::default(), "it stays for ever");
    }
}
