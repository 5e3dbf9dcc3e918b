//! Which agents work on the export, and whether this one runs.

use std::collections::BTreeMap;

use carrick_syncagent::agent::Timing;
use carrick_syncagent::api::{AGENT_NAME, KEEPER, ServedFor};
use carrick_syncagent::rules::abandoned::resource_of;
use carrick_syncagent::rules::keeper::{self, Keeper};
use carrick_syncagent::rules::serving;
use serde::Deserialize as _;

use super::{Finding, Severity};
use crate::doctor::facts::Facts;
use crate::doctor::right::RightScope;
use crate::init::offer::label_of;

/// By how many seconds a sign of life may be late.
const LATE: i64 = 30;

pub(super) fn agents(facts: &Facts) -> Vec<Finding> {
    let Some(export) = facts.export.object() else { return Vec::new() };
    let own = facts.asked.agent_name.as_str();
    let mut found = Vec::new();
    let keeper = export.metadata.annotation(AGENT_NAME);
    let keepers = keeper::read(export.metadata.annotation(KEEPER));
    let sharing = |name: &str| keepers.iter().any(|it| it.agent == name && is_fresh(it, facts));
    match keeper {
        // Whether one runs is reported below.
        None => {}
        Some(keeper) if keeper == own => found.push(Finding::green(format!("the export is kept by this agent, {own}"))),
        // Agents that share the export are reported below.
        Some(keeper) if sharing(keeper) => {}
        Some(keeper) => found.push(
            Finding::amber(format!("the export is kept by agent {keeper}, but this agent is {own}: only one of them should serve it")).id("export-other-agent")
                .fix(format!("--agent-name {keeper}    # if it is the same agent; otherwise stop the other one, or give it an export of its own")),
        ),
    }
    found.extend(keepers.iter().filter(|it| is_fresh(it, facts)).map(|it| heard_of(it, facts)));
    for name in export.schemas() {
        let schema = facts.schemas.iter().find(|schema| schema.metadata.name == name);
        let owner = schema.and_then(|schema| schema.metadata.label(AGENT_NAME));
        if let Some(owner) = owner.filter(|owner| *owner != own && Some(*owner) != keeper && !sharing(owner)) {
            let text = format!("schema {name} of this export was made by agent {owner}");
            found.push(
                Finding::amber(text)
                    .id("schema-other-agent")
                    .fix("stop one of the two agents, or give each an export of its own"),
            );
        }
    }
    if !found.iter().any(|one| one.severity == Severity::Red && one.text.starts_with("no agent is running")) {
        found.extend(lease(facts));
    }
    found.extend(missing(facts, &keepers));
    found.extend(other_exports(facts));
    found
}

/// Agents of other exports that serve the same PublishedResources.
fn other_exports(facts: &Facts) -> Vec<Finding> {
    let Some(export) = facts.export.object() else { return Vec::new() };
    let (uid, name) = (export.metadata.uid.as_str(), export.metadata.name.as_str());
    let shown = format!("{}|{name}", carrick_kcp::url::workspace(&facts.export_url).unwrap_or_default());
    let is_own = |it: &ServedFor| it.export == shown || it.uid == uid && !uid.is_empty();
    let beat = Timing::default().into();
    let mut shared: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for one in facts.published() {
        let entries = Vec::<ServedFor>::deserialize(&one.object["status"]["servedFor"]).unwrap_or_default();
        for it in entries.into_iter().filter(|it| !is_own(it) && serving::is_fresh(it, facts.now * 1000, beat)) {
            shared.entry((it.export, it.agent)).or_default().push(&one.name);
        }
    }
    let tool = facts.tool(RightScope::Service, "publishedresources");
    let found = shared.into_iter().map(|((export, agent), names)| {
        let names = names.join(" ");
        let text = format!(
            "agent {agent} serves what this agent serves for another APIExport as well, {export}: {names}; consumers of both can order it, and only one of the two agents writes its status"
        );
        let (label, own) = label_of(name);
        let (_, other) = label_of(export.rsplit('|').next().unwrap_or_default());
        let command = format!("label publishedresource {names} {label}={own}    # or {label}={other}, whichever it is meant for");
        Finding::amber(text).id("served-for-several-exports").by(&tool, &command).fix(format!(
            "--published-resource-selector {label}={own}    # for this agent; {label}={other} for the other one; in the chart publishedResourceSelector"
        ))
    });
    found.collect()
}

/// Nobody serves what is published, as far as heartbeat and lease tell.
fn missing(facts: &Facts, keepers: &[Keeper]) -> Option<Finding> {
    let me = Keeper { agent: facts.asked.agent_name.clone(), cluster: facts.cluster.clone(), ..Keeper::default() };
    let own = keepers.iter().find(|keeper| keeper.is(&me));
    let leads = lease(facts).is_some_and(|found| found.severity == Severity::Green);
    let served = |keeper: &Keeper| is_fresh(keeper, facts) && !keeper.keeps.is_empty();
    // One that was refused has left no sign of life on the export, but it has on what it publishes.
    let refused = facts.published().iter().any(|one| super::reported::refused(one).is_some());
    if facts.published().is_empty() || leads || refused || keepers.iter().any(served) {
        return None;
    }
    let agent = &facts.asked.agent_name;
    let is_owner = facts.export.object()?.metadata.annotation(AGENT_NAME) == Some(agent.as_str());
    let found = match own {
        Some(own) if own.renewed.is_empty() => return None,
        Some(own) => {
            let ago = duration(age(own, facts));
            Finding::red(format!("no agent is running: {agent} at {} was last seen {ago} ago", own.identity)).id("agent-gone")
        }
        // kcp's own agent renews nothing.
        None if is_owner => Finding::amber(format!(
            "agent {agent} has worked on this export, but has left no sign of life: is it running? kcp's own agent never leaves one"
        )).id("agent-silent"),
        None => Finding::amber("no agent is running: none has worked on this export yet").id("agent-never"),
    };
    Some(found.fix(has_pods(facts)))
}

fn has_pods(facts: &Facts) -> String {
    format!("{} -n {} get pods    # is the agent running?", facts.kubectl(), facts.asked.namespace)
}

/// A duration in the largest unit that fits.
fn duration(seconds: i64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn age(keeper: &Keeper, facts: &Facts) -> i64 {
    keeper.age(facts.now * 1000) / 1000
}

/// Whether an agent has renewed its entry recently enough to count as running.
pub(super) fn is_fresh(keeper: &Keeper, facts: &Facts) -> bool {
    age(keeper, facts) < i64::try_from(Timing::default().heartbeat_old.as_secs()).unwrap_or(i64::MAX)
}

/// What the entry of one agent on the export means for this one.
fn heard_of(keeper: &Keeper, facts: &Facts) -> Finding {
    let me = Keeper { agent: facts.asked.agent_name.clone(), cluster: facts.cluster.clone(), ..Keeper::default() };
    let names = |all: &mut dyn Iterator<Item = &String>| all.map(String::as_str).collect::<Vec<_>>().join(", ");
    let keeps = names(&mut keeper.keeps.iter());
    let ago = age(keeper, facts).max(0);
    if keeper.is(&me) {
        // A lease is released at once, an entry only grows old.
        if let Some(silent) = lease(facts).filter(|found| found.severity != Severity::Green) {
            let text =
                format!("no agent is running: last seen at {} {ago} s ago, and {}", keeper.identity, silent.text);
            return Finding { severity: Severity::Red, text, ..silent }.id("agent-gone");
        }
        if lease(facts).is_some() {
            let text = format!("this agent runs at {} and keeps {keeps}; renewed {ago} s ago", keeper.identity);
            return Finding::green(text);
        }
        // Without leader election nothing says that it has stopped, but that its next sign of life does not come.
        let last = format!("this agent keeps {keeps} at {}; last sign of life {ago} s ago", keeper.identity);
        let every = Timing::default().heartbeat.as_secs();
        if ago <= i64::try_from(every).unwrap_or(i64::MAX).saturating_add(LATE) {
            return Finding::green(last);
        }
        return Finding::amber(format!("{last}, and one is due every {every} s: is it running?"))
            .id("agent-silent")
            .fix(has_pods(facts));
    }
    let who = format!("{} at {}", keeper.shown(&me), keeper.identity);
    let own: Vec<String> = facts.published().iter().filter_map(|one| one.schema.as_deref().map(resource_of)).collect();
    let both = names(&mut own.iter().filter(|resource| keeper.keeps.contains(*resource)));
    if both.is_empty() {
        return Finding::green(format!("{who} shares the export and keeps {keeps}; renewed {ago} s ago"));
    }
    Finding::red(format!("{who} keeps {both}, renewed {ago} s ago: this agent stays out of it")).id("resource-other-agent").fix(format!(
        "--agent-name {}    # if it is the same agent; otherwise stop it, or start this one with --take-over, or give them different PublishedResources",
        keeper.agent
    ))
}

/// Whether somebody holds the lease of the agent.
fn lease(facts: &Facts) -> Option<Finding> {
    let spec = &facts.lease.object()?["spec"];
    let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty());
    let Some(holder) = holder else {
        return Some(
            Finding::amber("the lease of this agent is free: no replica leads").id("lease-free").fix(has_pods(facts)),
        );
    };
    let renewed = spec["renewTime"].as_str()?.parse::<jiff::Timestamp>().ok()?.as_second();
    let (age, limit) = (facts.now - renewed, spec["leaseDurationSeconds"].as_i64().unwrap_or(15));
    if age <= limit {
        return Some(Finding::green(format!("{holder} leads; the lease was renewed {age} s ago")));
    }
    let text = format!("{holder} holds the lease, but has not renewed it for {age} s: it has probably exited");
    Some(Finding::amber(text).id("lease-expired").fix(has_pods(facts)))
}

#[cfg(test)]
mod tests {
    use carrick_kcp::apis::v1alpha1::ApiResourceSchema;
    use carrick_kcp::apis::v1alpha2::{ApiExport, ResourceSchema};
    use serde_json::{Value, json};

    use super::super::Severity::{Amber, Green, Red};
    use super::*;
    use crate::doctor::facts::{Lookup, Published};

    fn facts(export: ApiExport) -> Facts {
        let mut facts = Facts { export: Lookup::There(export), now: 1_000_000_000, ..Facts::default() };
        facts.asked.slice = "s".to_owned();
        facts.asked.agent_name = "me".to_owned();
        facts
    }

    fn kept_by(name: &str) -> ApiExport {
        let mut export = ApiExport::new("e");
        export.metadata.annotate(AGENT_NAME, name);
        export
    }

    #[test]
    fn an_agent_of_another_export_that_serves_the_same_is_named_with_the_way_out() {
        let mut export = kept_by("me");
        export.metadata.uid = "u".to_owned();
        let mut facts = facts(export);
        facts.export_url = "https://h/clusters/root:a".to_owned();
        let entry = |export: &str, uid: &str, renewed: &str| json!({ "export": export, "uid": uid, "agent": "you", "renewed": renewed });
        let mut found = |entries: Value| {
            facts.published = Some(Ok(vec![Published {
                name: "buckets".to_owned(),
                problem: None,
                doubts: Vec::new(),
                pr: None,
                object: json!({ "status": { "servedFor": entries } }),
                crd: None,
                schema: Some("v1.buckets.x".to_owned()),
            }]));
            other_exports(&facts)
        };
        let (now, before) = ("2001-09-09T01:46:30Z", "2001-09-09T01:00:00Z");
        let own = [entry("root:a|e", "", before), entry("1a2b3c|e", "u", now)];
        assert_eq!(found(json!(own)), []);
        assert_eq!(found(json!([entry("root:b|f", "v", before)])), [], "it does not run any more");
        let found = found(json!([entry("root:a|e", "u", now), entry("root:b|f", "v", now)]));
        let [Finding { severity: Amber, text, fix, .. }] = &found[..] else { panic!("{found:?}") };
        assert!(text.contains("agent you serves") && text.contains("root:b|f: buckets"), "{text}");
        assert!(
            fix.iter().any(|line| line.contains("label publishedresource buckets syncagent.kcp.io/export=e ")),
            "{fix:?}"
        );
        assert!(
            fix.iter().any(|line| line.starts_with("--published-resource-selector syncagent.kcp.io/export=e ")),
            "{fix:?}"
        );
    }

    #[test]
    fn another_agent_on_the_export_is_reported() {
        assert_eq!(agents(&facts(kept_by("me")))[0].severity, Green);
        let found = agents(&facts(kept_by("you")));
        assert_eq!(found[0].severity, Amber);
        assert!(found[0].fix[0].starts_with("--agent-name you"));
        let mut export = kept_by("me");
        export.spec.resources = vec![ResourceSchema::of("v1.a.b")];
        let mut facts = facts(export);
        let mut schema = ApiResourceSchema::new("v1.a.b");
        schema.metadata.set_label(AGENT_NAME, "you");
        facts.schemas = vec![schema];
        assert_eq!(agents(&facts)[1].severity, Amber);
    }

    #[test]
    fn the_keeper_of_the_export_is_known_from_its_own_entry() {
        let entry = |agent: &str, second: i64, resource: &str| json!({ "agent": agent, "identity": "host", "renewed": format!("2001-09-09T01:{}:{:02}Z", 46, second), "keeps": [resource] });
        let found = |entries: Value, owner: &str| {
            let mut export = kept_by(owner);
            export.metadata.annotate(KEEPER, entries.to_string());
            let mut facts = facts(export);
            facts.now = 1_000_000_000;
            facts.published = Some(Ok(vec![Published {
                name: "buckets".to_owned(),
                problem: None,
                doubts: Vec::new(),
                pr: None,
                object: Value::Null,
                crd: None,
                schema: Some("v1.buckets.x".to_owned()),
            }]));
            let found = agents(&facts);
            found.iter().map(|one| (one.severity, one.text.clone())).collect::<Vec<_>>()
        };
        let mine = found(json!([entry("me", 30, "buckets.x")]), "me");
        assert_eq!((mine.len(), mine[1].0), (2, Green));
        assert!(mine[1].1.ends_with("keeps buckets.x at host; last sign of life 10 s ago"), "{mine:?}");
        let rival = found(json!([entry("you", 30, "buckets.x")]), "you");
        assert_eq!((rival.len(), rival[0].0), (1, Red));
        assert!(rival[0].1.starts_with("agent you at host keeps buckets.x"), "{rival:?}");
        let shared = found(json!([entry("me", 30, "buckets.x"), entry("you", 30, "queues.x")]), "you");
        assert_eq!(shared.iter().map(|it| it.0).collect::<Vec<_>>(), [Green, Green], "{shared:?}");
        // An agent that does not renew its entry does not count.
        let silent = json!([{ "agent": "you", "renewed": "2001-09-09T01:30:00Z", "keeps": ["buckets.x"] }]);
        let silent = found(silent, "me");
        assert_eq!((silent.len(), silent[1].0), (2, Amber), "{silent:?}");
        assert!(silent[1].1.contains("has left no sign of life"), "{silent:?}");
        let gone = found(
            json!([{ "agent": "me", "identity": "host", "renewed": "2001-09-09T00:46:40Z", "keeps": ["buckets.x"] }]),
            "me",
        );
        assert_eq!(gone[1], (Red, "no agent is running: me at host was last seen 60 min ago".to_owned()));
        let never = found(json!([]), "me");
        assert_eq!(never[1].0, Amber, "{never:?}");
    }

    #[test]
    fn an_agent_that_has_released_its_lease_does_not_run_however_young_its_entry_is() {
        let mut export = kept_by("me");
        let entry =
            json!([{ "agent": "me", "identity": "host", "renewed": "2001-09-09T01:46:30Z", "keeps": ["buckets.x"] }]);
        export.metadata.annotate(KEEPER, entry.to_string());
        let mut facts = facts(export);
        facts.lease = Lookup::There(json!({ "spec": { "holderIdentity": "", "leaseDurationSeconds": 15 } }));
        let found = agents(&facts);
        let told: Vec<_> = found.iter().map(|one| (one.severity, one.text.as_str())).collect();
        let text =
            "no agent is running: last seen at host 10 s ago, and the lease of this agent is free: no replica leads";
        assert_eq!(told[1..], [(Red, text)], "{told:?}");
    }

    #[test]
    fn without_a_lease_a_late_sign_of_life_is_doubted_before_it_is_old() {
        let found = |ago: i64, lease: Lookup| {
            let mut facts = facts(kept_by("me"));
            let renewed = jiff::Timestamp::from_second(facts.now - ago).unwrap().to_string();
            let entry = json!({ "agent": "me", "identity": "host", "renewed": renewed, "keeps": ["buckets.x"] });
            let keeper = keeper::read(Some(&json!([entry]).to_string())).remove(0);
            facts.lease = lease;
            heard_of(&keeper, &facts)
        };
        let young = found(150, Lookup::Missing);
        assert_eq!(
            (young.severity, young.text.as_str()),
            (Green, "this agent keeps buckets.x at host; last sign of life 150 s ago")
        );
        let late = found(151, Lookup::Missing);
        assert_eq!((late.severity, late.id), (Amber, Some("agent-silent")));
        assert!(late.text.contains("last sign of life 151 s ago") && late.fix[0].contains("get pods"), "{late:?}");
        let held = json!({ "spec": { "holderIdentity": "host", "renewTime": "2001-09-09T01:46:35Z" } });
        let leads = found(200, Lookup::There(held));
        assert!(leads.severity == Green && leads.text.starts_with("this agent runs at host"), "{leads:?}");
    }

    #[test]
    fn a_lease_that_nobody_renews_is_reported() {
        let lease_of = |holder: &str, renewed: &str| {
            let lease =
                json!({ "spec": { "holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15 } });
            let mut facts = facts(ApiExport::default());
            facts.lease = Lookup::There(lease);
            facts.now = 1_000_000_000;
            super::lease(&facts).unwrap().severity
        };
        assert_eq!(lease_of("a", "2001-09-09T01:46:30.000000Z"), Green);
        assert_eq!(lease_of("a", "2001-09-09T01:46:00.000000Z"), Amber);
        assert_eq!(lease_of("", "2001-09-09T01:46:40.000000Z"), Amber);
    }
}
