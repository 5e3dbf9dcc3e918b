//! What the konnector's kubeconfigs lead to: DNS, TLS, credentials, rights, identity, heartbeat, versions.

use carrick_bind_api::conditions::{self, HEARTBEATING};
use carrick_bind_api::identity::identity_of;
use carrick_bind_api::v1alpha2::ClusterBinding;
use carrick_bind_api::{heartbeat, version};
use jiff::Timestamp;

use super::consumer::kubectl;
use super::{reached, works};
use crate::bind::doctor::facts::{ConsumerFacts, ContractFacts, DeniedRight};
use crate::doctor::checks::Finding;
use crate::doctor::facts::Lookup;

pub(super) fn kubeconfigs(facts: &ConsumerFacts) -> Vec<Finding> {
    if !works(&facts.access) {
        return Vec::new();
    }
    if facts.contracts.is_empty() {
        let fix = format!("kubectl bind deploy --kubeconfig {} -f <answer of the backend>", facts.access.origin);
        return vec![Finding::amber("no kubeconfig of a provider is here yet").fix(fix)];
    }
    let judge = |contract: &ContractFacts| {
        let secret = format!("Secret {}/{}", contract.at.namespace, contract.at.name);
        match &contract.namespace {
            Ok(namespace) => Finding::green(format!("{secret} leads to contract {namespace}")),
            Err(problem) => Finding::red(format!("{secret} gives no kubeconfig: {problem}"))
                .fix("# ask the provider for the answer to the request once more, then:")
                .fix(format!(
                    "kubectl bind deploy --kubeconfig {} -f <answer of the backend> --provider-kubeconfig-secret-name {}",
                    facts.access.origin, contract.at.name
                )),
        }
    };
    facts.contracts.iter().map(judge).collect()
}

pub(super) fn ways(facts: &ConsumerFacts) -> Vec<Finding> {
    let usable = facts.contracts.iter().filter(|contract| contract.namespace.is_ok());
    usable.map(|contract| reached(&contract.access, "ask the provider for a new kubeconfig")).collect()
}

pub(super) fn rights(facts: &ConsumerFacts) -> Vec<Finding> {
    let asked = facts.contracts.iter().filter_map(|contract| Some((contract, contract.denied.as_ref()?)));
    let judge = |(contract, denied): (&ContractFacts, &Result<Vec<DeniedRight>, String>)| {
        let namespace = contract.namespace.as_deref().unwrap_or_default();
        let user = &contract.access.user;
        match denied {
            Ok(denied) if denied.is_empty() => Finding::green(format!("{user} may do in {namespace} what it must")),
            Ok(denied) => {
                let shown: Vec<String> = denied.iter().map(shown).collect();
                Finding::red(format!("{user} may not {} in namespace {namespace}", shown.join("; ")))
                    .fix("# at the provider: the backend makes these rights anew when it runs")
                    .fix(format!(
                        "kubectl -n {namespace} create rolebinding kube-binder --clusterrole=kube-binder --serviceaccount={namespace}:kube-binder"
                    ))
            }
            Err(problem) => Finding::amber(format!("nobody knows the rights of {user} in {namespace}: {problem}")),
        }
    };
    asked.map(judge).collect()
}

fn shown(right: &DeniedRight) -> String {
    let (plural, rest) = right
        .resource
        .split_once('/')
        .map_or((right.resource, String::new()), |(plural, rest)| (plural, format!("/{rest}")));
    let dot = if right.group.is_empty() { "" } else { "." };
    format!("{} {plural}{dot}{}{rest}", right.verbs.join(", "), right.group)
}

/// Contracts whose ClusterBinding was read.
fn agreed(facts: &ConsumerFacts) -> impl Iterator<Item = (&ContractFacts, &ClusterBinding)> {
    facts.contracts.iter().filter_map(|contract| Some((contract, contract.binding.object()?)))
}

pub(super) fn identities(facts: &ConsumerFacts) -> Vec<Finding> {
    agreed(facts).map(|(contract, binding)| identity(facts, contract, binding)).collect()
}

fn identity(facts: &ConsumerFacts, contract: &ContractFacts, binding: &ClusterBinding) -> Finding {
    let namespace = contract.namespace.as_deref().unwrap_or_default();
    let (Some(identity), Some(uid)) = (identity_of(&binding.metadata), &facts.uid) else {
        return Finding::green(format!("contract {namespace} is for whoever has its kubeconfig"));
    };
    let anew = [
        "# at the provider: ask for a contract of this cluster's own, then deploy the answer here".to_owned(),
        format!("kubectl bind cluster-identity --kubeconfig {}    # its identity", facts.access.origin),
    ];
    let red = |text: String| Finding::red(text).fix(anew.join("\n"));
    // Other identities are anybody's choice, but this one is the uid of some cluster.
    let is_uid = identity.len() == 36 && identity.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-');
    if is_uid && identity != uid {
        return red(format!("contract {namespace} was made for cluster {identity}, and this one is {uid}"));
    }
    let keeps = binding.status.consumer_secret_ref.as_ref();
    if let Some(other) = keeps.filter(|it| !it.name.is_empty() && !is_here(facts, &it.namespace, &it.name)) {
        return red(format!(
            "somebody else heartbeats in contract {namespace}, with Secret {}/{}, which is not here",
            other.namespace, other.name
        ));
    }
    let strange = facts.bindings.iter().filter(|it| it.spec.kubeconfig_secret_ref == contract.at).find_map(|it| {
        conditions::find(&it.status.conditions, HEARTBEATING).filter(|it| it.reason == "ForeignHeartbeat")
    });
    match strange {
        Some(condition) => red(condition.message.clone()),
        None => Finding::green(format!("contract {namespace} is for this cluster: {identity}")),
    }
}

fn is_here(facts: &ConsumerFacts, namespace: &str, name: &str) -> bool {
    facts.contracts.iter().any(|it| it.at.namespace == namespace && it.at.name == name)
}

pub(super) fn heartbeats(facts: &ConsumerFacts, now: Timestamp) -> Vec<Finding> {
    let mut found = Vec::new();
    for contract in &facts.contracts {
        let namespace = contract.namespace.as_deref().unwrap_or_default();
        match &contract.binding {
            Lookup::There(binding) => found.push(beat(facts, namespace, binding, now)),
            Lookup::Missing => {
                let text = format!("contract {namespace} has no ClusterBinding: the provider has ended it");
                let fix = "# at the provider: ask for a new contract with a BindableResourcesRequest, then deploy its answer here";
                found.push(Finding::red(text).fix(fix));
            }
            // Without the right to read it, the check of rights says so.
            Lookup::NotAsked | Lookup::Unreadable(..) => {}
        }
    }
    found
}

fn beat(facts: &ConsumerFacts, namespace: &str, binding: &ClusterBinding, now: Timestamp) -> Finding {
    let health = heartbeat::health(&binding.status, now).condition;
    let last = &binding.status.last_heartbeat_time;
    if health.is_true() {
        return Finding::green(format!("the konnector was in contract {namespace} at {last}"));
    }
    let start = [
        format!(
            "{} -n kube-bind get deployment/konnector lease/kube-bind    # is it running, does one lead?",
            kubectl(facts)
        ),
        format!("{} -n kube-bind logs deployment/konnector", kubectl(facts)),
    ];
    Finding::red(format!("contract {namespace}: {}", health.message)).fix(start.join("\n"))
}

pub(super) fn versions(facts: &ConsumerFacts) -> Vec<Finding> {
    agreed(facts).map(|(_, binding)| konnector_version(&binding.status.konnector_version, &kubectl(facts))).collect()
}

/// Whether a konnector is one that contracts can be kept with.
pub(super) fn konnector_version(text: &str, kubectl: &str) -> Finding {
    if text.is_empty() {
        return Finding::green("no konnector has said its version yet");
    }
    let fix = format!("{kubectl} -n kube-bind set image deployment/konnector '*=<image of a released konnector>'");
    match version::of_program(text) {
        Err(problem) => Finding::amber(problem.to_string()).fix(fix),
        Ok(found) if version::is_older(found, version::OLDEST) && !is_ours(found) => {
            let oldest = version::OLDEST;
            Finding::amber(format!("konnector {found} is older than {oldest}, the oldest that works with this API"))
                .fix(fix)
        }
        Ok(found) => Finding::green(format!("the konnector is {found}")),
    }
}

/// Whether a version is that of our own programs, which count from the beginning.
fn is_ours(version: &str) -> bool {
    version.trim_start_matches('v') == env!("CARGO_PKG_VERSION")
}
