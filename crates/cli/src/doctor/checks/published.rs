//! What the agent needs on the service cluster, and what is published there.

use serde_json::Value;

use super::Finding;
use super::export::unmet;
use super::imports;
use super::reported::{
    has_reported_doubts, held, of_interest, paused, refused, reported_on_rules, short, unseen_change,
};
use crate::doctor::facts::{Facts, Lookup, OriginState, Published, Tool};
use crate::doctor::right::RightScope;

pub(super) fn installation(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    let crds = facts.tool(RightScope::Service, "customresourcedefinitions");
    let apply = |found: Finding| {
        let command = format!("carrick init --agent-crd | {} apply -f -", crds.kubectl);
        crds.note.iter().cloned().chain([command]).fold(found, Finding::fix).runs()
    };
    match &facts.crd {
        Lookup::NotAsked => {}
        Lookup::Missing => {
            found.push(apply(Finding::red("the CRD of PublishedResources is not installed").id("crd-missing")));
        }
        Lookup::Unreadable(_, problem) => {
            found.push(
                Finding::red(format!("the CRD of PublishedResources cannot be read: {problem}")).id("crd-unreadable"),
            );
        }
        Lookup::There(crd) => {
            let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions";
            found.push(match crd.pointer(schema) {
                Some(_) => Finding::green("the CRD of PublishedResources is installed"),
                None => apply(
                    Finding::amber("the CRD of PublishedResources is the reference agent's, which has no conditions")
                        .id("crd-without-conditions"),
                ),
            });
        }
    }
    let namespace = &facts.asked.namespace;
    match &facts.namespace {
        Lookup::NotAsked => {}
        Lookup::Missing => {
            let missing =
                Finding::red(format!("the agent's namespace {namespace} does not exist")).id("namespace-missing");
            let tool = facts.tool(RightScope::Service, "namespaces");
            found.push(match facts.elsewhere.as_slice() {
                [] => missing.by(&tool, &format!("create namespace {namespace}")).runs(),
                there => missing.fixes(there.iter().map(|agent| runs_there(agent)).collect()),
            });
        }
        Lookup::Unreadable(_, problem) => {
            found.push(
                Finding::amber(format!("the agent's namespace {namespace} cannot be read: {problem}"))
                    .id("namespace-unreadable"),
            );
        }
        // Whoever has left a lease here runs here, in whatever way.
        Lookup::There(_) if !facts.elsewhere.is_empty() && facts.lease.object().is_none() => {
            let slice = &facts.asked.slice;
            let text =
                format!("no agent for slice {slice} is installed in namespace {namespace}, but one is elsewhere");
            let found_there = facts.elsewhere.iter().map(|agent| runs_there(agent)).collect();
            found.push(Finding::amber(text).id("namespace-other").fixes(found_there));
        }
        Lookup::There(_) => found.push(Finding::green(format!("the agent's namespace {namespace} exists"))),
    }
    found
}

/// The flag for an agent that runs in another namespace.
fn runs_there(agent: &str) -> String {
    let namespace = agent.split('/').next().unwrap_or_default();
    format!("--namespace {namespace}    # where Deployment {agent} runs an agent for this slice")
}

pub(super) fn published(facts: &Facts) -> Vec<Finding> {
    let tool = facts.tool(RightScope::Service, "publishedresources");
    match &facts.published {
        None => Vec::new(),
        Some(Err(problem)) => vec![
            Finding::red(format!("PublishedResources cannot be read: {problem}"))
                .id("published-unreadable")
                .fix("grant the rights on the service cluster that are listed as missing above"),
        ],
        Some(Ok(none)) if none.is_empty() => vec![
            Finding::amber("nothing is published: there is no PublishedResource, or the selector matches none")
                .id("nothing-published")
                .fix(format!(
                    "carrick init --from-cluster <group>/<Kind>    # then {} apply -f what it writes",
                    tool.kubectl
                )),
        ],
        Some(Ok(published)) => {
            let all = published.iter();
            all.flat_map(|one| {
                judge(one, facts, &tool).into_iter().chain(doubts(one, facts, &tool)).chain(platform(one, facts))
            })
            .collect()
        }
    }
}

/// Valid rules that refer to something that cannot exist.
fn doubts(one: &Published, facts: &Facts, tool: &Tool) -> impl Iterator<Item = Finding> {
    // A running agent has reported it already, and that is shown unless something worse is.
    let is_reported = has_reported_doubts(one) && state(one, facts, tool).is_none();
    one.doubts.iter().filter(move |_| !is_reported).map(move |doubt| {
        Finding::amber(format!("{}: {doubt}", one.name))
            .id("rules-doubtful")
            .by(tool, &format!("edit publishedresource {}", one.name))
    })
}

/// What the owner of an API has done to it since it was written down.
fn platform(one: &Published, facts: &Facts) -> Option<Finding> {
    let text = |pointer: &str| one.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let resource = text("/spec/implements/resource");
    let (path, export) = (text("/spec/implements/from/path"), text("/spec/implements/from/export"));
    let (name, place) = (&one.name, format!("APIExport {export} in workspace {path}"));
    match facts.origins.get(name)? {
        OriginState::Same => None,
        OriginState::Gone => Some(
            Finding::amber(format!("{name}: {place} exports no {resource} any more, which is served here all the same"))
                .id("platform-api-gone")
                .fix("# ask its owner; if it is not to come back:")
                .fixes(facts.carrick(&format!("withdraw {name}"))),
        ),
        OriginState::Changed => Some(
            Finding::amber(format!(
                "{name}: the platform's API has changed: {resource} of {place} is not what spec.implements.versions says"
            ))
            .id("platform-api-changed")
            .fix(format!(
                "carrick provider up --implements {path}:{export}/{resource} --published-resource <file of {name}> …    # \
                 with the flags of the first time"
            )),
        ),
    }
}

fn judge(one: &Published, facts: &Facts, tool: &Tool) -> Vec<Finding> {
    let unmet: Vec<Finding> = unmet(&of_interest(one, facts))
        .map(|(condition, message)| {
            let text = format!("{}: {condition} is False: {}", one.name, short(message));
            if condition == imports::CONDITION {
                return imports::refused(one, message, text, facts, tool);
            }
            let command = if condition == "DriftFree" { "drift" } else { "explain" };
            Finding::amber(text).id("condition-false").fixes(facts.carrick(&format!("{command} {}", one.name)))
        })
        .chain(unseen_change(one, facts))
        .collect();
    match state(one, facts, tool) {
        Some(found) => vec![found],
        None if unmet.is_empty() && paused(one).is_some() => paused(one).into_iter().collect(),
        None if unmet.is_empty() => {
            let schema = one.schema.as_deref().unwrap_or_default();
            vec![Finding::green(format!("{} is published as {schema}", one.name))]
        }
        None => unmet,
    }
}

/// What is wrong with what is published, apart from what conditions say.
fn state(one: &Published, facts: &Facts, tool: &Tool) -> Option<Finding> {
    let name = &one.name;
    if let Some(problem) = &one.problem {
        let told = reported_on_rules(one);
        let problem = told.as_ref().map_or(problem, |(problem, _)| problem);
        // Whoever ordered something is served all the same.
        let found = match told.as_ref().and_then(|(_, meanwhile)| meanwhile.as_ref()) {
            Some(meanwhile) => {
                Finding::amber(format!("{name}: {problem}; meanwhile objects are synchronized: {meanwhile}"))
                    .id("rules-invalid-earlier")
            }
            None => Finding::red(format!("{name}: {problem}")).id("rules-invalid"),
        };
        return Some(found.by(tool, &format!("edit publishedresource {name}")));
    }
    let Some(schema) = &one.schema else {
        return Some(
            Finding::red(format!("{name} cannot be read"))
                .id("published-resource-unreadable")
                .by(tool, &format!("edit publishedresource {name}")),
        );
    };
    // What is there is older on purpose.
    if let Some(found) = held(one, facts) {
        return Some(found);
    }
    if let Some(message) = refused(one) {
        let export = facts.export.object().map(|export| export.metadata.name.clone()).unwrap_or_default();
        return Some(Finding::red(format!("{name} is not offered: {}", short(&message))).id("export-refused").by(
            &facts.kcp_tool(&facts.export_url),
            &format!("get apiexports.v1alpha2.apis.kcp.io {export} -o yaml    # what is in its way?"),
        ));
    }
    let listed = facts.export.object().map(|export| export.schemas().any(|listed| listed == schema));
    if listed == Some(false) {
        let exists = facts.schemas.iter().any(|made| made.metadata.name == *schema);
        let made = if exists { "created but not exported" } else { "not created" };
        let text = format!("{name}: schema {schema} is {made} yet; is the agent running?");
        return Some(Finding::amber(text).id("schema-not-exported").fixes(facts.carrick(&format!("explain {name}"))));
    }
    None
}

#[cfg(test)]
mod tests {
    use carrick_kcp::apis::v1alpha2::{ApiExport, ResourceSchema};
    use serde_json::json;

    use super::super::Severity::{Amber, Green, Red};
    use super::*;
    use crate::doctor::facts::CheckedRight;
    use crate::doctor::right::NeededRight;

    #[test]
    fn what_is_not_installed_is_reported_with_the_command_that_installs_it() {
        assert_eq!(installation(&Facts::default()), []);
        let mut facts = Facts { crd: Lookup::Missing, namespace: Lookup::Missing, ..Facts::default() };
        facts.asked.namespace = "own".to_owned();
        let found = installation(&facts);
        assert_eq!(found.iter().map(|one| one.severity).collect::<Vec<_>>(), [Red, Red]);
        assert_eq!(found[1].fix.last().map(String::as_str), Some("kubectl create namespace own"));
        // Who mistypes the namespace does not want another one.
        facts.elsewhere = vec!["kcp-system/agent".to_owned()];
        for namespace in [Lookup::Missing, Lookup::There(Value::Null)] {
            let fix = installation(&Facts { namespace, ..facts.clone() }).remove(1).fix;
            assert_eq!(fix.len(), 1, "{fix:?}");
            assert!(fix[0].starts_with("--namespace kcp-system "), "{fix:?}");
        }
        facts.crd = Lookup::There(carrick_syncagent::api::crd());
        assert_eq!(installation(&facts)[0].severity, Green);
        facts.crd = Lookup::There(json!({}));
        assert_eq!(installation(&facts)[0].severity, Amber);
    }

    #[test]
    fn a_platforms_api_that_has_changed_is_found_with_the_command_that_takes_it_over() {
        let from = json!({ "path": "root:platform", "export": "certs", "digest": "1" });
        let one = Published {
            name: "certs".to_owned(),
            problem: None,
            doubts: Vec::new(),
            pr: None,
            object: json!({ "spec": { "implements": { "resource": "certs.platform.example", "from": from } } }),
            crd: None,
            schema: Some("v1.certs.platform.example".to_owned()),
        };
        let found = |state: Option<OriginState>| {
            let origins = state.into_iter().map(|state| ("certs".to_owned(), state)).collect();
            super::published(&Facts { published: Some(Ok(vec![one.clone()])), origins, ..Facts::default() })
        };
        for quiet in [None, Some(OriginState::Same)] {
            assert_eq!(found(quiet).iter().map(|it| it.severity).collect::<Vec<_>>(), [Green]);
        }
        let changed = found(Some(OriginState::Changed)).remove(1);
        assert_eq!((changed.severity, changed.id), (Amber, Some("platform-api-changed")));
        assert!(
            changed.text.contains("certs.platform.example of APIExport certs in workspace root:platform"),
            "{changed:?}"
        );
        assert!(
            changed.fix[0].contains("provider up --implements root:platform:certs/certs.platform.example "),
            "{changed:?}"
        );
        assert_eq!(found(Some(OriginState::Gone)).remove(1).id, Some("platform-api-gone"));
    }

    #[test]
    fn each_published_resource_is_judged() {
        let schema = "v1.buckets.example.com";
        let one = |problem: Option<&str>, object: Value| Published {
            name: "buckets".to_owned(),
            problem: problem.map(str::to_owned),
            doubts: Vec::new(),
            pr: None,
            object,
            crd: None,
            schema: problem.is_none().then(|| schema.to_owned()),
        };
        let exported = |listed: &[&str]| {
            let mut export = ApiExport::new("e");
            export.spec.resources = listed.iter().map(|name| ResourceSchema::of(name)).collect();
            Lookup::There(export)
        };
        let unhappy = json!({ "status": { "conditions": [{ "type": "ObjectsSynced", "status": "False", "message": "one fails" }] } });
        let withdrawn = |reason: &str| json!({ "status": { "conditions": [{ "type": "Withdrawn", "status": "False", "reason": reason, "message": "m" }] } });
        let mapping = |status: &str| json!({ "status": { "conditions": [{ "type": "MappingHeld", "status": status, "message": "the steps x" }] } });
        let paused = json!({ "status": { "conditions": [{ "type": "ObjectsSynced", "status": "True", "message": "No object fails. 1 object is paused, the first is c|ns/a: All by its provider." }] } });
        let drifted = json!({ "status": { "conditions": [{ "type": "DriftFree", "status": "False", "message": "1 copy was changed" }] } });
        let imported = json!({ "status": { "conditions": [{ "type": "ObjectsImported", "status": "False", "message": "1 object is not imported, the first is own/db: m." }] } });
        let cases = [
            (one(None, imported), exported(&[schema]), Amber, "ObjectsImported is False: 1 object is not imported"),
            (one(None, paused), exported(&[schema]), Amber, "buckets: 1 object is paused, the first is"),
            (one(None, drifted), exported(&[schema]), Amber, "DriftFree is False: 1 copy was changed"),
            (one(None, withdrawn("Offered")), exported(&[schema]), Green, "published as v1"),
            (one(None, mapping("True")), exported(&[schema]), Amber, "buckets: the steps x"),
            (one(None, mapping("False")), exported(&[schema]), Green, "published as v1"),
            (one(None, withdrawn("Announced")), exported(&[schema]), Amber, "Withdrawn is False: m"),
            (one(None, Value::Null), exported(&[schema]), Green, "published as v1"),
            (one(None, Value::Null), exported(&[]), Amber, "not created yet"),
            (one(None, Value::Null), Lookup::NotAsked, Green, "published as"),
            (one(None, unhappy), exported(&[schema]), Amber, "one fails"),
            (one(Some("no such kind"), Value::Null), exported(&[]), Red, "no such kind"),
        ];
        for (published, export, severity, wanted) in cases {
            let facts = Facts { published: Some(Ok(vec![published])), export, ..Facts::default() };
            let [found] = &super::published(&facts)[..] else { panic!("not one finding") };
            assert_eq!(found.severity, severity, "{found:?}");
            assert!(found.text.contains(wanted), "{found:?}");
        }
        // The agent knows what it does meanwhile.
        let earlier = json!({ "metadata": { "generation": 2 }, "status": { "conditions": [
            { "type": "RulesValid", "status": "False", "message": "no such kind, says the agent", "observedGeneration": 2 },
            { "type": "Syncing", "status": "True", "reason": "EarlierRules", "message": "By the rules of generation 1.", "observedGeneration": 2 },
        ] } });
        for (object, severity, wanted) in [
            (
                earlier.clone(),
                Amber,
                "says the agent; meanwhile objects are synchronized: By the rules of generation 1.",
            ),
            (json!({ "metadata": { "generation": 3 }, "status": earlier["status"] }), Red, "buckets: no such kind"),
        ] {
            let facts = Facts { published: Some(Ok(vec![one(Some("no such kind"), object)])), ..Facts::default() };
            let found = super::published(&facts).remove(0);
            assert!(found.severity == severity && found.text.ends_with(wanted), "{found:?}");
        }
        let doubtful = Published { doubts: vec!["spec.naming.name: no".to_owned()], ..one(None, Value::Null) };
        let told =
            json!({ "status": { "conditions": [{ "type": "RulesPlausible", "status": "False", "message": "no" }] } });
        let told = Published { object: told, ..doubtful.clone() };
        for (published, wanted) in [(doubtful, [Green, Amber].as_slice()), (told, &[Amber])] {
            let facts = Facts { published: Some(Ok(vec![published])), ..Facts::default() };
            let found = super::published(&facts);
            assert_eq!(found.iter().map(|one| one.severity).collect::<Vec<_>>(), wanted, "{found:?}");
        }
        // What was said of an earlier generation is not said of this one.
        let of_earlier = |doubts: &[&str]| {
            let conditions = json!([
                { "type": "RulesValid", "status": "False", "reason": "InvalidRules", "message": "once", "observedGeneration": 1 },
                { "type": "SchemaPublished", "status": "False", "reason": "InvalidRules", "message": "once", "observedGeneration": 1 },
                { "type": "ObjectsSynced", "status": "False", "reason": "NotSyncing", "message": "once", "observedGeneration": 1 },
                { "type": "RulesPlausible", "status": "False", "message": "once", "observedGeneration": 1 },
            ]);
            let object = json!({ "metadata": { "generation": 2 }, "status": { "conditions": conditions } });
            let doubts = doubts.iter().map(|&doubt| doubt.to_owned()).collect();
            let facts =
                Facts { published: Some(Ok(vec![Published { doubts, ..one(None, object) }])), ..Facts::default() };
            super::published(&facts).into_iter().map(|it| (it.id, it.text)).collect::<Vec<_>>()
        };
        let unseen = "buckets: no agent has taken up its last change yet, generation 2; what its conditions say is of generation 1";
        let unseen = (Some("change-not-taken-up"), unseen.to_owned());
        assert_eq!(of_earlier(&[]), std::slice::from_ref(&unseen));
        let doubtful = (Some("rules-doubtful"), "buckets: now".to_owned());
        assert_eq!(of_earlier(&["now"]), [unseen, doubtful]);
        // Each condition that is False is a finding, with its remedy, which stands at the end.
        let long = format!("{} grant it", "right ".repeat(80));
        let two = json!({ "status": { "conditions": [
            { "type": "ObjectsSynced", "status": "False", "message": "one fails" },
            { "type": "RightsGranted", "status": "False", "message": long },
        ] } });
        let facts = Facts { published: Some(Ok(vec![one(None, two)])), ..Facts::default() };
        let found = super::published(&facts);
        assert!(found.len() == 2 && found[1].text.ends_with("grant it"), "{found:?}");
        let need = NeededRight::new(RightScope::Service, "", "secrets", &["get"], "");
        let denied = CheckedRight { need, denied: Ok(vec!["get"]) };
        let found = super::published(&Facts { rights: vec![denied], ..facts });
        assert!(found.len() == 1 && found[0].text.contains("ObjectsSynced"), "the check of rights names it: {found:?}");
        let none = Facts { published: Some(Ok(Vec::new())), ..Facts::default() };
        assert_eq!(super::published(&none)[0].severity, Amber);
        let unreadable = Facts { published: Some(Err("no".to_owned())), ..Facts::default() };
        assert_eq!(super::published(&unreadable)[0].severity, Red);
    }
}
