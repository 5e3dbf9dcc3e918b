//! What the agent needs on the service cluster, and what is published there.

use carrick_kcp::condition::{Condition, ConditionStatus};
use serde::Deserialize;

use super::Finding;
use super::export::unmet;
use crate::doctor::facts::{Facts, Lookup, Published, Tool};
use crate::doctor::right::RightScope;

pub(super) fn installation(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    let crds = facts.tool(RightScope::Service, "customresourcedefinitions");
    let apply = |found: Finding| {
        let command = format!("carrick init --agent-crd | {} apply -f -", crds.kubectl);
        crds.note.iter().cloned().chain([command]).fold(found, Finding::fix)
    };
    match &facts.crd {
        Lookup::NotAsked => {}
        Lookup::Missing => found.push(apply(Finding::red("the CRD of PublishedResources is not installed"))),
        Lookup::Unreadable(_, problem) => {
            found.push(Finding::red(format!("the CRD of PublishedResources cannot be read: {problem}")));
        }
        Lookup::There(crd) => {
            let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions";
            found.push(match crd.pointer(schema) {
                Some(_) => Finding::green("the CRD of PublishedResources is installed"),
                None => apply(Finding::amber(
                    "the CRD of PublishedResources is the reference agent's, which has no conditions",
                )),
            });
        }
    }
    let namespace = &facts.asked.namespace;
    match &facts.namespace {
        Lookup::NotAsked => {}
        Lookup::Missing => found.push(
            Finding::red(format!("the agent's namespace {namespace} does not exist"))
                .by(&facts.tool(RightScope::Service, "namespaces"), &format!("create namespace {namespace}")),
        ),
        Lookup::Unreadable(_, problem) => {
            found.push(Finding::amber(format!("the agent's namespace {namespace} cannot be read: {problem}")));
        }
        Lookup::There(_) => found.push(Finding::green(format!("the agent's namespace {namespace} exists"))),
    }
    found
}

pub(super) fn published(facts: &Facts) -> Vec<Finding> {
    let tool = facts.tool(RightScope::Service, "publishedresources");
    match &facts.published {
        None => Vec::new(),
        Some(Err(problem)) => vec![
            Finding::red(format!("PublishedResources cannot be read: {problem}"))
                .fix("grant the rights on the service cluster that are listed as missing above"),
        ],
        Some(Ok(none)) if none.is_empty() => vec![
            Finding::amber("nothing is published: there is no PublishedResource, or the selector matches none").fix(
                format!(
                    "carrick init --from-cluster <group>/<Kind>    # then {} apply -f what it writes",
                    tool.kubectl
                ),
            ),
        ],
        Some(Ok(published)) => published
            .iter()
            .flat_map(|one| std::iter::once(judge(one, facts, &tool)).chain(doubts(one, &tool)))
            .collect(),
    }
}

/// The one condition that is good news when it is False.
const SCHEMA_HELD: &str = "SchemaHeld";

/// The conditions that the agent has set on a PublishedResource.
fn conditions(one: &Published) -> Vec<Condition> {
    Vec::deserialize(&one.object["status"]["conditions"]).unwrap_or_default()
}

/// Valid rules that refer to something that cannot exist.
fn doubts(one: &Published, tool: &Tool) -> impl Iterator<Item = Finding> {
    // A running agent has reported it already.
    let told = unmet(&conditions(one)).any(|(condition, _)| condition == "RulesPlausible");
    one.doubts.iter().filter(move |_| !told).map(move |doubt| {
        Finding::amber(format!("{}: {doubt}", one.name)).by(tool, &format!("edit publishedresource {}", one.name))
    })
}

/// A message, cut where it gets too long; those who explain it tell all of it.
fn short(message: &str) -> String {
    const LONGEST: usize = 300;
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

fn judge(one: &Published, facts: &Facts, tool: &Tool) -> Finding {
    let name = &one.name;
    if let Some(problem) = &one.problem {
        return Finding::red(format!("{name}: {problem}")).by(tool, &format!("edit publishedresource {name}"));
    }
    let Some(schema) = &one.schema else {
        return Finding::red(format!("{name} cannot be read")).by(tool, &format!("edit publishedresource {name}"));
    };
    // An older schema is exported on purpose.
    let held =
        conditions(one).into_iter().find(|told| told.type_ == SCHEMA_HELD && told.status == ConditionStatus::True);
    if let Some(told) = held {
        return Finding::amber(format!("{name}: {}", told.message))
            .fix(format!("carrick approve {name} …    # with the agent's flags"));
    }
    let look = || format!("carrick explain {name} …    # with the agent's flags: shows what it would do");
    let listed = facts.export.object().map(|export| export.spec.latest_resource_schemas.contains(schema));
    if listed == Some(false) {
        let exists = facts.schemas.iter().any(|made| made.metadata.name == *schema);
        let made = if exists { "created but not exported" } else { "not created" };
        let text = format!("{name}: schema {schema} is {made} yet; is the agent running?");
        return Finding::amber(text).fix(look());
    }
    if let Some((condition, message)) = unmet(&conditions(one)).find(|(condition, _)| *condition != SCHEMA_HELD) {
        return Finding::amber(format!("{name}: {condition} is False: {}", short(message))).fix(look());
    }
    Finding::green(format!("{name} is published as {schema}"))
}

#[cfg(test)]
mod tests {
    use carrick_kcp::apis::v1alpha1::ApiExport;
    use serde_json::{Value, json};

    use super::super::Severity::{Amber, Green, Red};
    use super::*;

    #[test]
    fn what_is_not_installed_is_reported_with_the_command_that_installs_it() {
        assert_eq!(installation(&Facts::default()), []);
        let mut facts = Facts { crd: Lookup::Missing, namespace: Lookup::Missing, ..Facts::default() };
        facts.asked.namespace = "own".to_owned();
        let found = installation(&facts);
        assert_eq!(found.iter().map(|one| one.severity).collect::<Vec<_>>(), [Red, Red]);
        assert_eq!(found[1].fix.last().map(String::as_str), Some("kubectl create namespace own"));
        facts.crd = Lookup::There(carrick_syncagent::api::crd());
        assert_eq!(installation(&facts)[0].severity, Green);
        facts.crd = Lookup::There(json!({}));
        assert_eq!(installation(&facts)[0].severity, Amber);
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
            export.spec.latest_resource_schemas = listed.iter().map(|name| (*name).to_owned()).collect();
            Lookup::There(export)
        };
        let unhappy = json!({ "status": { "conditions": [{ "type": "ObjectsSynced", "status": "False", "message": "one fails" }] } });
        let cases = [
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
        let doubtful = Published { doubts: vec!["spec.naming.name: no".to_owned()], ..one(None, Value::Null) };
        let told =
            json!({ "status": { "conditions": [{ "type": "RulesPlausible", "status": "False", "message": "no" }] } });
        let told = Published { object: told, ..doubtful.clone() };
        for (published, wanted) in [(doubtful, [Green, Amber].as_slice()), (told, &[Amber])] {
            let facts = Facts { published: Some(Ok(vec![published])), ..Facts::default() };
            let found = super::published(&facts);
            assert_eq!(found.iter().map(|one| one.severity).collect::<Vec<_>>(), wanted, "{found:?}");
        }
        let none = Facts { published: Some(Ok(Vec::new())), ..Facts::default() };
        assert_eq!(super::published(&none)[0].severity, Amber);
        let unreadable = Facts { published: Some(Err("no".to_owned())), ..Facts::default() };
        assert_eq!(super::published(&unreadable)[0].severity, Red);
    }
}
