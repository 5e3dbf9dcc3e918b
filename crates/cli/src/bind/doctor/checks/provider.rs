//! The provider's cluster: what is installed, who its consumers are, what they have asked for.

use std::collections::BTreeMap;

use carrick_bind_api::conditions::{self, PROVIDER_IN_SYNC};
use carrick_bind_api::heartbeat;
use carrick_bind_api::v1alpha2::Phase;
use jiff::Timestamp;

use super::{reached, works};
use crate::bind::doctor::facts::ProviderFacts;
use crate::doctor::checks::Finding;
use crate::doctor::facts::Lookup;

fn kubectl(facts: &ProviderFacts) -> String {
    format!("kubectl --kubeconfig {}", facts.access.origin)
}

pub(super) fn cluster(facts: &ProviderFacts) -> Vec<Finding> {
    vec![reached(&facts.access, "pass a kubeconfig that works with --provider-kubeconfig")]
}

pub(super) fn installation(facts: &ProviderFacts) -> Vec<Finding> {
    if !works(&facts.access) {
        return Vec::new();
    }
    let finding = match &facts.missing_kinds {
        Ok(missing) if missing.is_empty() => Finding::green("the kinds of a provider are served"),
        Ok(missing) => Finding::red(format!("not served: {}", missing.join(", ")))
            .fix(format!("kube-bind-backend --kubeconfig {} init", facts.access.origin)),
        Err(problem) => Finding::amber(format!("nobody knows which kinds are served: {problem}")),
    };
    vec![finding]
}

pub(super) fn policy(facts: &ProviderFacts) -> Vec<Finding> {
    let finding = match &facts.policy {
        Lookup::NotAsked => return Vec::new(),
        Lookup::There(_) => Finding::green("a policy keeps consumers of cluster-scoped objects apart"),
        Lookup::Missing => Finding::amber(
            "there is no ValidatingAdmissionPolicy kube-binder-own-objects, so nobody may write cluster-scoped objects",
        )
        .fix("# the backend writes it when it starts; let it, as an administrator:")
        .fix(format!(
            "kube-bind-backend --kubeconfig {} roles | {} apply -f -",
            facts.access.origin,
            kubectl(facts)
        )),
        Lookup::Unreadable(_, problem) => Finding::amber(format!("the policy could not be read: {problem}")),
    };
    vec![finding]
}

pub(super) fn identities(facts: &ProviderFacts) -> Vec<Finding> {
    if !works(&facts.access) {
        return Vec::new();
    }
    let contracts = match &facts.contracts {
        Ok(contracts) => contracts,
        Err(problem) => return vec![Finding::amber(format!("namespaces could not be read: {problem}"))],
    };
    let mut by_identity: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, identity) in contracts {
        by_identity.entry(identity).or_default().push(name);
    }
    let mut found = Vec::new();
    for (identity, names) in by_identity.iter().filter(|(_, names)| names.len() > 1) {
        let text = format!("namespaces {} all say that they are for {identity}", names.join(", "));
        found.push(
            Finding::red(text)
                .fix(format!("{} get clusterbindings.kube-bind.io -A    # which one has a heartbeat?", kubectl(facts)))
                .fix(format!("{} delete namespace <one without a heartbeat>", kubectl(facts))),
        );
    }
    if found.is_empty() {
        found.push(Finding::green(format!("{} contracts, each for somebody else", contracts.len())));
    }
    found
}

pub(super) fn heartbeats(facts: &ProviderFacts, now: Timestamp) -> Vec<Finding> {
    let judge = |binding: &carrick_bind_api::v1alpha2::ClusterBinding| {
        let contract = &binding.metadata.namespace;
        let health = heartbeat::health(&binding.status, now).condition;
        let finding = match (health.is_true(), health.severity == conditions::Severity::Info) {
            (true, _) => {
                return Finding::green(format!("{contract}: last heartbeat at {}", binding.status.last_heartbeat_time));
            }
            (false, true) => Finding::amber(format!("{contract}: {}", health.message)),
            (false, false) => Finding::red(format!("{contract}: {}", health.message)),
        };
        finding
            .fix("# on the consumer's side:")
            .fix("carrick bind doctor --kubeconfig <kubeconfig of the consumer's cluster>")
    };
    facts.bindings.iter().map(judge).collect()
}

pub(super) fn requests(facts: &ProviderFacts) -> Vec<Finding> {
    if !works(&facts.access) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for request in facts.requests.iter().filter(|it| it.status.phase != Phase::Succeeded) {
        let (name, at) = (&request.metadata.name, &request.metadata.namespace);
        let ready = conditions::find(&request.status.conditions, "Ready").filter(|it| !it.is_true());
        let why = ready.map_or("no backend has processed it", |it| it.message.as_str());
        let text = format!("APIServiceExportRequest {at}/{name}: {why}");
        let fix = format!(
            "{} -n {at} delete apiserviceexportrequest {name}    # and ask again, once that is mended",
            kubectl(facts)
        );
        found.push(
            if request.status.phase == Phase::Failed { Finding::red(text) } else { Finding::amber(text) }.fix(fix),
        );
    }
    for order in &facts.orders {
        let text = |path: &str| order.pointer(path).and_then(|it| it.as_str()).unwrap_or_default();
        let phase = text("/status/phase");
        if phase == "Succeeded" {
            continue;
        }
        let conditions = order["status"]["conditions"].as_array();
        let mut bad = conditions.into_iter().flatten().filter(|it| it["status"] == "False");
        let why = bad.next().and_then(|it| it["message"].as_str()).unwrap_or("no backend has processed it");
        let (at, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let fix = format!(
            "{} -n {at} delete bindableresourcesrequest {name}    # and ask again, once that is mended",
            kubectl(facts)
        );
        let words = format!("BindableResourcesRequest {at}/{name}: {why}");
        found.push(if phase == "Failed" { Finding::red(words) } else { Finding::amber(words) }.fix(fix));
    }
    if found.is_empty() {
        let all = facts.requests.len() + facts.orders.len();
        found.push(Finding::green(format!("{all} requests, all answered")));
    }
    found
}

pub(super) fn exports(facts: &ProviderFacts) -> Vec<Finding> {
    if !works(&facts.access) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for export in &facts.exports {
        let (name, at) = (&export.metadata.name, &export.metadata.namespace);
        let condition = conditions::find(&export.status.conditions, PROVIDER_IN_SYNC).filter(|it| !it.is_true());
        if let Some(condition) = condition {
            let text = format!("APIServiceExport {at}/{name}: {}: {}", condition.reason, condition.message);
            found
                .push(Finding::amber(text).fix(format!("{} -n {at} describe apiserviceexport {name}", kubectl(facts))));
        }
    }
    if found.is_empty() {
        found.push(Finding::green(format!("{} exports follow their schemas", facts.exports.len())));
    }
    found
}
