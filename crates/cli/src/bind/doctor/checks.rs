//! The checks: small pure functions over the facts, in the order in which things must work.

mod consumer;
mod contract;
mod provider;

use super::facts::Facts;
use crate::doctor::checks::Finding;
use crate::doctor::checks::servers::way_out;
use crate::doctor::facts::{Access, ServerAnswer};

/// What every check has found out, by its name. One without a finding could not run.
pub fn all(facts: &Facts) -> Vec<(&'static str, Vec<Finding>)> {
    let mut all = Vec::new();
    if let Some(consumer) = &facts.consumer {
        all.push(("Consumer's cluster", consumer::cluster(consumer)));
        all.push(("Konnector", consumer::konnector(consumer)));
        all.push(("Rights of the konnector", consumer::rights(consumer)));
        all.push(("Kubeconfigs", contract::kubeconfigs(consumer)));
        all.push(("Way to the provider", contract::ways(consumer)));
        all.push(("Rights at the provider", contract::rights(consumer)));
        all.push(("Identity", contract::identities(consumer)));
        all.push(("Heartbeat", contract::heartbeats(consumer, facts.now)));
        all.push(("Versions", contract::versions(consumer)));
        all.push(("Bindings", consumer::bindings(consumer)));
    }
    if let Some(provider) = &facts.provider {
        all.push(("Provider's cluster", provider::cluster(provider)));
        all.push(("Kinds of the provider", provider::installation(provider)));
        all.push(("Consumers apart", provider::policy(provider)));
        all.push(("Identities of contracts", provider::identities(provider)));
        all.push(("Heartbeats of consumers", provider::heartbeats(provider, facts.now)));
        all.push(("Requests", provider::requests(provider)));
        all.push(("Exports", provider::exports(provider)));
    }
    all
}

/// Whether a server can be used.
fn reached(access: &Access, hint: &str) -> Finding {
    if let Some(problem) = &access.unusable {
        return Finding::red(problem.clone()).fix(hint);
    }
    let (origin, url) = (&access.origin, &access.url);
    match &access.answer {
        ServerAnswer::NotAsked => Finding::amber(format!("{origin} leads to {url}, which was not asked")),
        ServerAnswer::Works if access.user.is_empty() => Finding::green(format!("{origin} leads to {url}")),
        ServerAnswer::Works => Finding::green(format!("{origin} leads to {url} as {}", access.user)),
        ServerAnswer::Fails(trouble, problem) => {
            let text = format!("{origin} leads to {url}, which cannot be used: {problem}");
            Finding::red(text).fix(way_out(*trouble, url))
        }
    }
}

/// Whether a server has answered.
fn works(access: &Access) -> bool {
    access.answer == ServerAnswer::Works
}
