//! What is left of things that are no longer published, and copies that nobody ordered.

use std::collections::{BTreeMap, BTreeSet};

use carrick_kcp::apis::v1alpha2::{ApiExport, PermissionClaim, ResourceSchema};
use carrick_syncagent::api::{AGENT_NAME, KEEPER};
use carrick_syncagent::rules::abandoned::resource_of;
use carrick_syncagent::rules::keeper;
use serde_json::json;

use super::Finding;
use super::agents::is_fresh;
use crate::doctor::facts::{Facts, KindCopies, KnownCopy};
use crate::doctor::right::RightScope;

/// How many objects are named.
const NAMED: usize = 5;

pub(super) fn export(facts: &Facts) -> Vec<Finding> {
    let (Some(export), Some(Ok(_))) = (facts.export.object(), &facts.published) else { return Vec::new() };
    let mut found: Vec<Finding> = dead_apis(facts, export).into_iter().chain(unneeded_claims(facts, export)).collect();
    if found.is_empty() {
        found.push(Finding::green("everything in the export is published by a PublishedResource"));
    }
    found
}

/// APIs that this agent has exported and no PublishedResource publishes any more.
fn dead_apis(facts: &Facts, export: &ApiExport) -> Option<Finding> {
    let computed = facts.published().iter().filter_map(|one| one.schema.clone());
    let noted = facts.published().iter().filter_map(|one| one.object["status"]["resourceSchemaName"].as_str());
    let alive: BTreeSet<String> =
        computed.map(|name| resource_of(&name)).chain(noted.map(resource_of)).filter(|it| !it.is_empty()).collect();
    let own = |name: &str| {
        let schema = facts.schemas.iter().find(|schema| schema.metadata.name == name);
        schema.is_some_and(|schema| schema.metadata.label(AGENT_NAME) == Some(facts.asked.agent_name.as_str()))
    };
    let is_dead =
        |one: &&ResourceSchema| one.is_ordinary() && own(&one.schema) && !alive.contains(&resource_of(&one.schema));
    let (dead, rest): (Vec<&ResourceSchema>, Vec<&ResourceSchema>) = export.spec.resources.iter().partition(is_dead);
    if dead.is_empty() {
        return None;
    }
    let names: BTreeSet<String> = dead.iter().map(|one| resource_of(&one.schema)).collect();
    let names: Vec<String> = names.into_iter().collect();
    let text = format!(
        "the export still offers {}, which no PublishedResource publishes: orders of that are served by nobody",
        names.join(", ")
    );
    let patch = json!({ "spec": { "resources": rest } });
    Some(
        Finding::amber(text)
            .id("api-left")
            .fix("# publish it again, or withdraw it; consumers lose the API and all orders of it:")
            .by(&facts.tool(RightScope::Export, "apiexports"), &change(&export.metadata.name, &patch)),
    )
}

/// Claims that were made for something that is no longer published.
fn unneeded_claims(facts: &Facts, export: &ApiExport) -> Option<Finding> {
    let keepers = keeper::read(export.metadata.annotation(KEEPER));
    let shared = keepers.iter().any(|it| it.agent != facts.asked.agent_name && is_fresh(it, facts));
    let foreign = export.metadata.annotation(AGENT_NAME).is_some_and(|owner| owner != facts.asked.agent_name);
    // Others may need them.
    if shared || foreign || facts.unneeded_claims.is_empty() {
        return None;
    }
    let shown = |claim: &PermissionClaim| match claim.group.as_str() {
        "" => claim.resource.clone(),
        group => format!("{}.{group}", claim.resource),
    };
    let names: Vec<String> = facts.unneeded_claims.iter().map(shown).collect();
    let rest: Vec<&PermissionClaim> =
        export.spec.permission_claims.iter().filter(|claim| !facts.unneeded_claims.contains(claim)).collect();
    let patch = json!({ "spec": { "permissionClaims": rest } });
    Some(
        Finding::amber(format!("the export claims {}, which nothing published here needs", names.join(", ")))
            .id("claim-left")
            .fix("# unless somebody else needs them:")
            .by(&facts.tool(RightScope::Export, "apiexports"), &change(&export.metadata.name, &patch)),
    )
}

fn change(export: &str, patch: &serde_json::Value) -> String {
    format!("patch apiexports.v1alpha2.apis.kcp.io {export} --type=merge -p '{patch}'")
}

pub(super) fn copies(facts: &Facts) -> Vec<Finding> {
    facts.copies.iter().flat_map(|kind| of_kind(facts, kind)).collect()
}

fn of_kind(facts: &Facts, kind: &KindCopies) -> Vec<Finding> {
    let own = facts.asked.agent_name.as_str();
    let (ours, theirs): (Vec<&KnownCopy>, Vec<&KnownCopy>) = kind.copies.iter().partition(|copy| copy.agent == own);
    let (good, strays): (Vec<&KnownCopy>, Vec<&KnownCopy>) = ours.iter().partition(|copy| copy.has_order);
    let mut found = Vec::new();
    if !good.is_empty() {
        found.push(Finding::green(format!("{} of {} belong to an order", count(good.len(), "copy"), kind.resource)));
    }
    if !kind.waiting.is_empty() {
        let text = format!(
            "{} of {} without a copy for more than a minute: {}",
            count(kind.waiting.len(), "order"),
            kind.resource,
            named(kind.waiting.iter().cloned())
        );
        found.push(Finding::amber(text).id("order-without-copy").fixes(facts.carrick("explain")));
    }
    let (released, strays): (Vec<&KnownCopy>, Vec<&KnownCopy>) =
        strays.into_iter().partition(|copy| copy.may_be_released);
    let listed = |copies: &[&KnownCopy]| {
        let orders = copies.iter().map(|copy| format!("{}, made for {}", copy.place(), copy.order));
        format!("{} of {} without an order: {}", count(copies.len(), "copy"), kind.resource, named(orders))
    };
    if !released.is_empty() {
        let text = format!("{}. --release-after has let them go, or nobody saw it end", listed(&released));
        let stray = Finding::red(text)
            .id("copy-released")
            .fix("# others serve these orders; once nobody needs the data that is left:");
        found.push(stray.fixes(deletions(facts, kind, &released)));
    }
    if !strays.is_empty() {
        let stray = Finding::amber(listed(&strays)).id("copy-without-order");
        let stray = stray.fix("# if nobody needs their data any more:");
        found.push(stray.fixes(deletions(facts, kind, &strays)));
    }
    let mut by_agent: BTreeMap<&str, Vec<&KnownCopy>> = BTreeMap::new();
    for copy in theirs {
        by_agent.entry(&copy.agent).or_default().push(copy);
    }
    for (agent, copies) in by_agent {
        let twice: Vec<&&KnownCopy> =
            copies.iter().filter(|copy| ours.iter().any(|own| own.order == copy.order)).collect();
        if twice.is_empty() {
            let text = format!("{} of {} belong to agent {agent}", count(copies.len(), "copy"), kind.resource);
            found.push(Finding::green(text));
            continue;
        }
        let orders = named(twice.iter().map(|copy| copy.order.clone()));
        let text = format!(
            "{} of {} have a second copy, made by agent {agent}: {orders}",
            count(twice.len(), "order"),
            kind.resource
        );
        found.push(
            Finding::red(text)
                .id("copy-twice")
                .fix(format!("stop agent {agent}, or give it other PublishedResources, then delete its copies:"))
                .fix(format!("{} get {} -A -l {AGENT_NAME}={agent}", facts.kubectl(), kind.resource)),
        );
    }
    found
}

/// The commands that delete the first of some copies.
fn deletions(facts: &Facts, kind: &KindCopies, copies: &[&KnownCopy]) -> Vec<String> {
    let deletion = |copy: &&KnownCopy| {
        let inside = if copy.namespace.is_empty() { String::new() } else { format!(" -n {}", copy.namespace) };
        format!("{} delete {} {}{inside}", facts.kubectl(), kind.resource, copy.name)
    };
    copies.iter().take(NAMED).map(deletion).collect()
}

impl KnownCopy {
    fn place(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = noun.strip_suffix('y').map_or_else(|| format!("{noun}s"), |stem| format!("{stem}ies"));
    format!("{number} {}", if number == 1 { noun.to_owned() } else { plural })
}

fn named(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let more = if all.len() > NAMED { format!("; and {} more", all.len() - NAMED) } else { String::new() };
    format!("{}{more}", all[..all.len().min(NAMED)].join("; "))
}

#[cfg(test)]
mod tests {
    use carrick_kcp::apis::v1alpha1::ApiResourceSchema;
    use serde_json::Value;

    use super::super::Severity::{Amber, Green, Red};
    use super::*;
    use crate::doctor::facts::{Lookup, Published};

    fn facts() -> Facts {
        let mut export = ApiExport::new("e");
        export.spec.resources = ["v1.buckets.x", "v1.queues.x", "v1.foreign.x"].map(ResourceSchema::of).to_vec();
        for resource in ["events", "secrets"] {
            export.claim_all("", resource, "");
        }
        let schema = |name: &str, agent: &str| {
            let mut schema = ApiResourceSchema::new(name);
            schema.metadata.set_label(AGENT_NAME, agent);
            schema
        };
        let mut facts = Facts {
            export: Lookup::There(export),
            export_url: "https://h/clusters/root:p".to_owned(),
            schemas: vec![schema("v1.buckets.x", "me"), schema("v1.queues.x", "me"), schema("v1.foreign.x", "you")],
            published: Some(Ok(vec![Published {
                name: "buckets".to_owned(),
                problem: None,
                doubts: Vec::new(),
                pr: None,
                object: Value::Null,
                crd: None,
                schema: Some("v2.buckets.x".to_owned()),
            }])),
            ..Facts::default()
        };
        facts.asked.agent_name = "me".to_owned();
        facts
    }

    #[test]
    fn an_api_that_nobody_publishes_is_found_with_the_command_that_withdraws_it() {
        let found = export(&facts());
        assert_eq!((found.len(), found[0].severity), (1, Amber), "{found:?}");
        assert!(found[0].text.contains("offers queues.x, which"), "{found:?}");
        let command = found[0].fix.last().unwrap();
        assert!(
            command.contains(r#"patch apiexports.v1alpha2.apis.kcp.io e --type=merge -p '{"spec":{"resources":[{"group":"x","name":"buckets","schema":"v1.buckets.x","storage":{"crd":{}}},"#),
            "{command}"
        );
        assert!(command.contains("v1.foreign.x") && !command.contains("queues"), "{command}");
        assert_eq!(export(&Facts { published: None, ..facts() }), [], "nothing is known");
    }

    #[test]
    fn a_claim_that_nothing_needs_is_found_unless_others_may_need_it() {
        let mut facts = facts();
        facts.unneeded_claims = vec![PermissionClaim::new("", "secrets", &["*"])];
        let found = export(&facts);
        assert!(found[1].text.starts_with("the export claims secrets, which"), "{found:?}");
        assert!(found[1].fix.last().unwrap().contains(r#""resource":"events""#), "{found:?}");
        assert!(!found[1].fix.last().unwrap().contains("secrets"), "{found:?}");
        if let Lookup::There(export) = &mut facts.export {
            export.metadata.annotate(AGENT_NAME, "you");
        }
        assert_eq!(export(&facts).len(), 1);
    }

    #[test]
    fn copies_without_an_order_and_second_copies_are_found() {
        let copy = |name: &str, agent: &str, order: &str, has_order| KnownCopy {
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            agent: agent.to_owned(),
            order: order.to_owned(),
            has_order,
            may_be_released: name.starts_with("released"),
        };
        let of = |copies: Vec<KnownCopy>| {
            let kind = KindCopies { resource: "buckets.x".to_owned(), copies, ..KindCopies::default() };
            super::copies(&Facts { copies: vec![kind], ..facts() })
        };
        let found =
            of(vec![copy("a", "me", "c|d/a", true), copy("b", "me", "c|d/b", false), copy("z", "you", "c|d/z", true)]);
        assert_eq!(found.iter().map(|it| it.severity).collect::<Vec<_>>(), [Green, Amber, Green], "{found:?}");
        assert_eq!(found[1].text, "1 copy of buckets.x without an order: ns/b, made for c|d/b");
        assert_eq!(found[1].fix[1], "kubectl delete buckets.x b -n ns");
        let found = of(vec![copy("a", "me", "c|d/a", true), copy("b", "you", "c|d/a", true)]);
        assert_eq!(found[1].severity, Red);
        assert!(found[1].text.contains("made by agent you: c|d/a"), "{found:?}");
        let found = of(vec![copy("released", "me", "root:staging:s d/c", false), copy("b", "me", "c|d/b", false)]);
        assert_eq!(found.iter().map(|it| it.severity).collect::<Vec<_>>(), [Red, Amber], "{found:?}");
        assert!(
            found[0]
                .text
                .starts_with("1 copy of buckets.x without an order: ns/released, made for root:staging:s d/c."),
            "{found:?}"
        );
        assert_eq!(found[0].fix[1], "kubectl delete buckets.x released -n ns");
        let many = of((0..7).map(|at| copy(&at.to_string(), "me", "o", false)).collect());
        assert!(many[0].text.ends_with("; and 2 more") && many[0].fix.len() == 6, "{many:?}");
    }

    #[test]
    fn orders_without_a_copy_are_found() {
        let waiting = vec!["c d/a".to_owned(), "c d/b".to_owned()];
        let kind = KindCopies { resource: "buckets.x".to_owned(), waiting, ..KindCopies::default() };
        let found = super::copies(&Facts { copies: vec![kind], ..facts() });
        assert_eq!(found[0].severity, Amber);
        assert_eq!(found[0].text, "2 orders of buckets.x without a copy for more than a minute: c d/a; c d/b");
    }
}
