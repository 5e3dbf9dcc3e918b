//! The consumer's cluster, its konnector and its bindings.

use carrick_bind_api::conditions::{self, Condition};
use carrick_bind_api::grant::RolesLine;
use carrick_bind_api::names::KONNECTOR_NAMESPACE;

use super::{reached, works};
use crate::bind::doctor::facts::ConsumerFacts;
use crate::doctor::checks::Finding;
use crate::doctor::facts::Lookup;

pub(super) fn kubectl(facts: &ConsumerFacts) -> String {
    format!("kubectl --kubeconfig {}", facts.access.origin)
}

pub(super) fn cluster(facts: &ConsumerFacts) -> Vec<Finding> {
    vec![reached(&facts.access, "pass a kubeconfig that works with --kubeconfig")]
}

pub(super) fn konnector(facts: &ConsumerFacts) -> Vec<Finding> {
    if !works(&facts.access) {
        return Vec::new();
    }
    let file = &facts.access.origin;
    let kinds = match &facts.missing_kinds {
        Ok(missing) if missing.is_empty() => Finding::green("the kinds of a consumer are served"),
        Ok(missing) => Finding::red(format!("{} are not served: no konnector has started here", missing.join(", ")))
            .fix(format!("konnector --kubeconfig {file}    # or, inside of the cluster:"))
            .fix(format!("kubectl bind deploy --kubeconfig {file} -f <answer of the backend>")),
        Err(problem) => Finding::amber(format!("nobody knows which kinds are served: {problem}")),
    };
    let mut found = vec![kinds];
    if let Lookup::There(deployment) = &facts.deployment {
        let count = |field: &str| deployment["status"][field].as_u64().unwrap_or_default();
        let ready = count("readyReplicas");
        if deployment["status"].is_object() && ready == 0 && count("replicas") > 0 {
            let fix = format!("{} -n {KONNECTOR_NAMESPACE} logs deployment/konnector", kubectl(facts));
            found.push(Finding::red("Deployment konnector has no pod that is ready").fix(fix));
        }
    }
    found
}

/// How many missing rights are named.
const MOST: usize = 5;

pub(super) fn rights(facts: &ConsumerFacts) -> Vec<Finding> {
    let Some(rights) = &facts.rights else { return Vec::new() };
    let account = &rights.account;
    let finding = match &rights.denied {
        Ok(denied) if denied.is_empty() => Finding::green(format!("ServiceAccount {account} may do here what it must")),
        Ok(denied) => {
            let mut named: Vec<String> = denied.iter().take(MOST).cloned().collect();
            named.extend((denied.len() > MOST).then(|| format!("and {} more", denied.len() - MOST)));
            Finding::red(format!("ServiceAccount {account} may not {}", named.join("; ")))
                .fix("# as whoever administers this cluster; it prints a warning for each claim of a provider:")
                .fix(rights.line.with_kubeconfig(&facts.access.origin))
        }
        Err(problem) => Finding::amber(format!("nobody knows what ServiceAccount {account} may do: {problem}")),
    };
    vec![finding]
}

pub(super) fn bindings(facts: &ConsumerFacts) -> Vec<Finding> {
    if !works(&facts.access) {
        return Vec::new();
    }
    let bindings = facts.bindings.iter().map(|it| ("APIServiceBinding", &it.metadata.name, &it.status.conditions));
    let bundles = facts.bundles.iter().map(|it| ("APIServiceBindingBundle", &it.metadata.name, &it.status.conditions));
    let mut found = Vec::new();
    let mut fine = 0;
    for (kind, name, all) in bindings.chain(bundles) {
        let bad: Vec<&Condition> = all.iter().filter(|it| is_own_trouble(it)).collect();
        if bad.is_empty() {
            fine += 1;
        }
        for condition in bad {
            let text = format!("{kind} {name}: {}: {}", condition.reason, condition.message);
            let describe = || format!("{} describe {} {name}", kubectl(facts), kind.to_lowercase());
            let fix = cure(facts, &condition.message).unwrap_or_else(describe);
            found.push(Finding::red(text).fix(fix));
        }
    }
    if found.is_empty() {
        let text = if fine == 0 { "nothing is bound yet".to_owned() } else { format!("{fine} are as they should be") };
        found.push(Finding::green(text));
    }
    found
}

/// The line that helps, if a condition has one.
fn cure(facts: &ConsumerFacts, message: &str) -> Option<String> {
    if let Some(line) = RolesLine::find(message) {
        return Some(line.with_kubeconfig(&facts.access.origin));
    }
    if message.contains("konnector roles") {
        let file = &facts.access.origin;
        return Some(format!("konnector roles --kubeconfig {file}    # give its user the rights that this prints"));
    }
    let (_, rest) = message.split_once("kubectl annotate apiservicebinding ")?;
    // What a provider has written before it is none of our words.
    let words: Vec<&str> = rest.split_whitespace().take(3).collect();
    Some(format!("{} annotate apiservicebinding {}", kubectl(facts), words.join(" ")))
}

/// Whether a condition says something that no other check here finds out by itself.
fn is_own_trouble(condition: &Condition) -> bool {
    let elsewhere = ["Ready", conditions::SECRET_VALID, conditions::HEARTBEATING];
    let is_false = condition.status.as_str() == "False";
    is_false && !elsewhere.contains(&condition.type_.as_str()) && condition.severity != conditions::Severity::Info
}
