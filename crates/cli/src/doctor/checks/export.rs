//! The slice, its endpoints, the export, and who else works on it.

use carrick_kcp::condition::{Condition, ConditionStatus};
use carrick_syncagent::agent::Timing;
use carrick_syncagent::api::{AGENT_NAME, KEEPER};
use carrick_syncagent::rules::abandoned::resource_of;
use carrick_syncagent::rules::keeper::{self, Keeper};

use super::Finding;
use super::servers::{host, way_out};
use crate::doctor::facts::{Facts, FailureKind, Lookup, ServerAnswer};

pub(super) fn slice(facts: &Facts) -> Vec<Finding> {
    let name = &facts.asked.slice;
    let kubectl = facts.kcp_kubectl(&facts.kcp.url);
    let found = match &facts.slice {
        Lookup::NotAsked => return Vec::new(),
        Lookup::Unreadable(trouble, problem) => {
            Finding::red(format!("APIExportEndpointSlice {name} cannot be read: {problem}"))
                .fix(way_out(*trouble, &host(&facts.kcp.url)))
        }
        Lookup::Missing if facts.slices.is_empty() => {
            let text = format!("there is no APIExportEndpointSlice {name} in this workspace, nor any other");
            Finding::red(text).fix(create_export(&kubectl, name))
        }
        Lookup::Missing => {
            let text = format!("there is no APIExportEndpointSlice {name} in this workspace");
            Finding::red(text)
                .fix(format!("--apiexportendpointslice-ref {}    # which exists", facts.slices.join(" or ")))
        }
        Lookup::There(slice) => match slice.spec.export.name.as_str() {
            "" => Finding::red(format!("APIExportEndpointSlice {name} names no APIExport")).fix(format!(
                "{kubectl} delete apiexportendpointslice {name}    # and create it with spec.export.name"
            )),
            export => Finding::green(format!("APIExportEndpointSlice {name} is for APIExport {export}")),
        },
    };
    vec![found]
}

/// kcp creates a slice of the same name for every export.
fn create_export(kubectl: &str, name: &str) -> String {
    format!(
        "{kubectl} apply -f - <<'END'\napiVersion: apis.kcp.io/v1alpha1\nkind: APIExport\nmetadata:\n  name: {name}\nspec: {{}}\nEND"
    )
}

pub(super) fn export(facts: &Facts) -> Vec<Finding> {
    let Some(slice) = facts.slice.object() else { return Vec::new() };
    let name = slice.spec.export.name.as_str();
    let kubectl = facts.kcp_kubectl(&facts.export_url);
    match &facts.export {
        Lookup::NotAsked => Vec::new(),
        Lookup::Missing => {
            let text = format!("APIExport {name} does not exist at {}", facts.export_url);
            vec![Finding::red(text).fix(create_export(&kubectl, name))]
        }
        Lookup::Unreadable(FailureKind::Rights, problem) => {
            let text = format!("APIExport {name} cannot be read, or does not exist: {problem}");
            vec![
                Finding::red(text)
                    .fix(format!("{kubectl} get apiexport {name}    # as an administrator: is it there?")),
            ]
        }
        Lookup::Unreadable(trouble, problem) => {
            let text = format!("APIExport {name} cannot be read: {problem}");
            vec![Finding::red(text).fix(way_out(*trouble, &host(&facts.export_url)))]
        }
        Lookup::There(export) => {
            let mut found = vec![Finding::green(format!("APIExport {name} exists at {}", facts.export_url))];
            found.extend(unmet(&export.status.conditions).map(|(kind, message)| {
                let text = format!("APIExport {name} has condition {kind} False: {message}");
                Finding::amber(text).fix(format!("{kubectl} get apiexport {name} -o yaml"))
            }));
            found
        }
    }
}

/// Conditions that are False, and why.
pub(super) fn unmet(conditions: &[Condition]) -> impl Iterator<Item = (&str, &str)> {
    conditions.iter().filter(|condition| condition.status == ConditionStatus::False).map(|condition| {
        let Condition { type_, message, reason, .. } = condition;
        (or(type_, "something"), or(message, or(reason, "no reason is given")))
    })
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

pub(super) fn endpoints(facts: &Facts) -> Vec<Finding> {
    let Some(slice) = facts.slice.object() else { return Vec::new() };
    if facts.endpoints.is_empty() {
        let mut found = Finding::amber(
            "the slice has no endpoints yet: kcp lists them once a consumer has bound the export, and the agent waits for that",
        );
        let export = &slice.spec.export.name;
        let path = carrick_kcp::url::workspace(&facts.export_url).unwrap_or("<workspace of the export>");
        found = found.fix(format!(
            "kubectl apply -f - <<'END'    # in a consumer's workspace\napiVersion: apis.kcp.io/v1alpha1\nkind: APIBinding\nmetadata:\n  name: {export}\nspec:\n  reference:\n    export:\n      path: {path}\n      name: {export}\nEND"
        ));
        return vec![found];
    }
    let each = facts.endpoints.iter().map(|endpoint| match &endpoint.answer {
        ServerAnswer::NotAsked => Finding::amber(format!("{} was not checked", endpoint.url)),
        ServerAnswer::Works => Finding::green(format!("{} answers", endpoint.url)),
        ServerAnswer::Fails(FailureKind::Rights, problem) => {
            Finding::red(format!("{} refuses: {problem}", endpoint.url))
                .fix("grant apiexports/content on the export: see the rights in kcp below")
        }
        ServerAnswer::Fails(trouble, problem) => {
            Finding::red(format!("{} cannot be reached from here: {problem}", endpoint.url))
                .fix(way_out(*trouble, &host(&endpoint.url)))
        }
    });
    each.collect()
}

pub(super) fn others(facts: &Facts) -> Vec<Finding> {
    let Some(export) = facts.export.object() else { return Vec::new() };
    let own = facts.asked.agent_name.as_str();
    let mut found = Vec::new();
    let keeper = export.metadata.annotation(AGENT_NAME);
    let keepers = keeper::read(export.metadata.annotation(KEEPER));
    let sharing = |name: &str| keepers.iter().any(|it| it.agent == name && is_fresh(it, facts));
    match keeper {
        None => found.push(Finding::green("no agent has worked on this export yet")),
        Some(keeper) if keeper == own => found.push(Finding::green(format!("the export is kept by this agent, {own}"))),
        // Agents that share the export are reported below.
        Some(keeper) if sharing(keeper) => {}
        Some(keeper) => found.push(
            Finding::amber(format!("the export is kept by agent {keeper}, but this agent is {own}: only one of them should serve it"))
                .fix(format!("--agent-name {keeper}    # if it is the same agent; otherwise stop the other one, or give it an export of its own")),
        ),
    }
    found.extend(keepers.iter().filter(|it| is_fresh(it, facts)).map(|it| heard_of(it, facts)));
    for name in &export.spec.latest_resource_schemas {
        let schema = facts.schemas.iter().find(|schema| schema.metadata.name == *name);
        let owner = schema.and_then(|schema| schema.metadata.label(AGENT_NAME));
        if let Some(owner) = owner.filter(|owner| *owner != own && Some(*owner) != keeper && !sharing(owner)) {
            let text = format!("schema {name} of this export was made by agent {owner}");
            found.push(Finding::amber(text).fix("stop one of the two agents, or give each an export of its own"));
        }
    }
    found.extend(lease(facts));
    found
}

fn age(keeper: &Keeper, facts: &Facts) -> i64 {
    keeper.age(facts.now * 1000) / 1000
}

/// Whether an agent has renewed its entry recently enough to count as running.
fn is_fresh(keeper: &Keeper, facts: &Facts) -> bool {
    age(keeper, facts) < i64::try_from(Timing::default().heartbeat_old.as_secs()).unwrap_or(i64::MAX)
}

/// What the entry of one agent on the export means for this one.
fn heard_of(keeper: &Keeper, facts: &Facts) -> Finding {
    let me = Keeper { agent: facts.asked.agent_name.clone(), cluster: facts.cluster.clone(), ..Keeper::default() };
    let names = |all: &mut dyn Iterator<Item = &String>| all.map(String::as_str).collect::<Vec<_>>().join(", ");
    let keeps = names(&mut keeper.keeps.iter());
    let ago = age(keeper, facts).max(0);
    if keeper.is(&me) {
        return Finding::green(format!(
            "this agent runs at {} and keeps {keeps}; renewed {ago} s ago",
            keeper.identity
        ));
    }
    let who = format!("{} at {}", keeper.shown(&me), keeper.identity);
    let own: Vec<String> = facts.published().iter().filter_map(|one| one.schema.as_deref().map(resource_of)).collect();
    let both = names(&mut own.iter().filter(|resource| keeper.keeps.contains(*resource)));
    if both.is_empty() {
        return Finding::green(format!("{who} shares the export and keeps {keeps}; renewed {ago} s ago"));
    }
    Finding::red(format!("{who} keeps {both}, renewed {ago} s ago: this agent stays out of it")).fix(format!(
        "--agent-name {}    # if it is the same agent; otherwise stop it, or start this one with --take-over, or give them different PublishedResources",
        keeper.agent
    ))
}

/// Whether somebody holds the lease of the agent.
fn lease(facts: &Facts) -> Option<Finding> {
    let spec = &facts.lease.object()?["spec"];
    let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty());
    let Some(holder) = holder else {
        return Some(Finding::amber("the lease of this agent is free: no replica leads").fix(format!(
            "{} -n {} get pods    # is the agent running?",
            facts.kubectl(),
            facts.asked.namespace
        )));
    };
    let renewed = spec["renewTime"].as_str()?.parse::<jiff::Timestamp>().ok()?.as_second();
    let (age, limit) = (facts.now - renewed, spec["leaseDurationSeconds"].as_i64().unwrap_or(15));
    if age <= limit {
        return Some(Finding::green(format!("{holder} leads; the lease was renewed {age} s ago")));
    }
    let text = format!("{holder} holds the lease, but has not renewed it for {age} s: it has probably exited");
    Some(Finding::amber(text).fix(format!(
        "{} -n {} get pods    # is the agent running?",
        facts.kubectl(),
        facts.asked.namespace
    )))
}

#[cfg(test)]
mod tests {
    use carrick_kcp::apis::v1alpha1::{ApiExport, ApiExportEndpointSlice, ApiResourceSchema};
    use carrick_kcp::condition::Severity;
    use serde_json::{Value, json};

    use super::super::Severity::{Amber, Green, Red};
    use super::*;
    use crate::doctor::facts::Endpoint;

    fn facts(slice: Lookup<ApiExportEndpointSlice>, export: Lookup<ApiExport>) -> Facts {
        let mut facts = Facts { slice, export, export_url: "https://h/clusters/root:p".to_owned(), ..Facts::default() };
        facts.asked.slice = "s".to_owned();
        facts.asked.agent_name = "me".to_owned();
        facts
    }

    fn good_slice() -> Lookup<ApiExportEndpointSlice> {
        let mut slice = ApiExportEndpointSlice::new("s");
        slice.spec.export.name = "e".to_owned();
        Lookup::There(slice)
    }

    fn kept_by(name: &str) -> ApiExport {
        let mut export = ApiExport::new("e");
        export.metadata.annotate(AGENT_NAME, name);
        export
    }

    #[test]
    fn a_slice_is_there_or_the_fix_names_what_is() {
        let missing = facts(Lookup::Missing, Lookup::NotAsked);
        assert!(slice(&missing)[0].fix.contains(&"  name: s".to_owned()));
        let other = Facts { slices: vec!["t".to_owned()], ..missing };
        assert!(slice(&other)[0].fix[0].starts_with("--apiexportendpointslice-ref t"));
        assert_eq!(slice(&facts(good_slice(), Lookup::NotAsked))[0].severity, Green);
        assert_eq!(slice(&facts(Lookup::There(ApiExportEndpointSlice::default()), Lookup::NotAsked))[0].severity, Red);
        assert_eq!(slice(&Facts::default()), []);
    }

    #[test]
    fn an_export_is_there_and_content() {
        assert_eq!(export(&facts(good_slice(), Lookup::Missing))[0].severity, Red);
        let mut bad = ApiExport::new("e");
        bad.status.conditions =
            vec![Condition::fails("IdentityValid", Severity::Error, "", "no"), Condition::holds("A")];
        let found = export(&facts(good_slice(), Lookup::There(bad)));
        assert_eq!(found.iter().map(|one| one.severity).collect::<Vec<_>>(), [Green, Amber]);
        assert!(found[1].text.contains("IdentityValid False: no"));
    }

    #[test]
    fn endpoints_answer_or_wait_for_the_first_consumer() {
        let mut facts = facts(good_slice(), Lookup::NotAsked);
        let none = endpoints(&facts);
        assert_eq!(none[0].severity, Amber);
        assert!(none[0].fix.contains(&"      path: root:p".to_owned()), "{none:?}");
        facts.endpoints = [ServerAnswer::Works, ServerAnswer::Fails(FailureKind::Name, "unknown".to_owned())]
            .map(|answer| Endpoint { url: "https://shard:1/x".to_owned(), answer })
            .to_vec();
        let found = endpoints(&facts);
        assert_eq!(found.iter().map(|one| one.severity).collect::<Vec<_>>(), [Green, Red]);
        assert!(found[1].fix[0].contains("getent hosts shard "));
    }

    #[test]
    fn another_agent_on_the_export_is_reported() {
        assert_eq!(others(&facts(good_slice(), Lookup::There(kept_by("me"))))[0].severity, Green);
        let found = others(&facts(good_slice(), Lookup::There(kept_by("you"))));
        assert_eq!(found[0].severity, Amber);
        assert!(found[0].fix[0].starts_with("--agent-name you"));
        let mut export = kept_by("me");
        export.spec.latest_resource_schemas = vec!["v1.a.b".to_owned()];
        let mut facts = facts(good_slice(), Lookup::There(export));
        let mut schema = ApiResourceSchema::new("v1.a.b");
        schema.metadata.set_label(AGENT_NAME, "you");
        facts.schemas = vec![schema];
        assert_eq!(others(&facts)[1].severity, Amber);
    }

    #[test]
    fn the_keeper_of_the_export_is_known_from_its_own_entry() {
        let entry = |agent: &str, second: i64, resource: &str| json!({ "agent": agent, "identity": "host", "renewed": format!("2001-09-09T01:{}:{:02}Z", 46, second), "keeps": [resource] });
        let found = |entries: Value, owner: &str| {
            let mut export = kept_by(owner);
            export.metadata.annotate(KEEPER, entries.to_string());
            let mut facts = facts(good_slice(), Lookup::There(export));
            facts.now = 1_000_000_000;
            facts.published = Some(Ok(vec![crate::doctor::facts::Published {
                name: "buckets".to_owned(),
                problem: None,
                doubts: Vec::new(),
                pr: None,
                object: Value::Null,
                crd: None,
                schema: Some("v1.buckets.x".to_owned()),
            }]));
            let found = others(&facts);
            found.iter().map(|one| (one.severity, one.text.clone())).collect::<Vec<_>>()
        };
        let mine = found(json!([entry("me", 30, "buckets.x")]), "me");
        assert_eq!((mine.len(), mine[1].0), (2, Green));
        assert!(mine[1].1.ends_with("keeps buckets.x; renewed 10 s ago"), "{mine:?}");
        let rival = found(json!([entry("you", 30, "buckets.x")]), "you");
        assert_eq!((rival.len(), rival[0].0), (1, Red));
        assert!(rival[0].1.starts_with("agent you at host keeps buckets.x"), "{rival:?}");
        let shared = found(json!([entry("me", 30, "buckets.x"), entry("you", 30, "queues.x")]), "you");
        assert_eq!(shared.iter().map(|it| it.0).collect::<Vec<_>>(), [Green, Green], "{shared:?}");
        // An agent that does not renew its entry does not count.
        let silent = json!([{ "agent": "you", "renewed": "2001-09-09T01:30:00Z", "keeps": ["buckets.x"] }]);
        assert_eq!(found(silent, "me").len(), 1);
    }

    #[test]
    fn a_lease_that_nobody_renews_is_reported() {
        let lease_of = |holder: &str, renewed: &str| {
            let lease =
                json!({ "spec": { "holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15 } });
            let mut facts = facts(good_slice(), Lookup::There(ApiExport::default()));
            facts.lease = Lookup::There(lease);
            facts.now = 1_000_000_000;
            super::lease(&facts).unwrap().severity
        };
        assert_eq!(lease_of("a", "2001-09-09T01:46:30.000000Z"), Green);
        assert_eq!(lease_of("a", "2001-09-09T01:46:00.000000Z"), Amber);
        assert_eq!(lease_of("", "2001-09-09T01:46:40.000000Z"), Amber);
    }
}
