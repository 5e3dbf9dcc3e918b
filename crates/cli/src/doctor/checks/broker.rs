//! What a broker of Platform Mesh finds here, where a PublishedResource asks it for orders.

use serde_json::Value;

use super::Finding;
use crate::doctor::facts::{Facts, Lookup, Published};
use crate::doctor::right::RightScope;

/// The word that a broker waits for before it moves an order here.
const WORD: &str = "status.status";

pub(super) fn broker(facts: &Facts) -> Vec<Finding> {
    let asking: Vec<&Published> = facts.published().iter().filter(|one| asks(one)).collect();
    let mut found = Vec::new();
    if !asking.is_empty() && facts.accepting == Lookup::Missing {
        let workspace = carrick_kcp::url::workspace(&facts.export_url).unwrap_or_default();
        let names: Vec<&str> = asking.iter().map(|one| one.name.as_str()).collect();
        let text = format!(
            "workspace {workspace} serves no AcceptAPIs, which {} asks for in spec.implements.accept: no broker brings orders",
            names.join(", ")
        );
        let fix =
            "carrick provider up … --broker <path of the platform's workspace>    # with the flags of the first time";
        found.push(Finding::amber(text).id("broker-not-bound").fix(fix));
    }
    for one in asking {
        found.extend(verdict(facts, one));
        found.extend(wordless(facts, one));
        found.extend(full(facts, one));
    }
    found
}

fn asks(one: &Published) -> bool {
    !one.object["spec"]["implements"]["accept"].is_null()
}

/// The API that it serves.
fn resource(one: &Published) -> &str {
    one.object["spec"]["implements"]["resource"].as_str().unwrap_or_default()
}

/// What the broker says of the AcceptAPI. Whether it is there is the agent's business, which says so in a condition.
fn verdict(facts: &Facts, one: &Published) -> Option<Finding> {
    let name = resource(one);
    let accept = facts.accepting.object()?.iter().find(|accept| accept["metadata"]["name"] == name)?;
    let conditions = accept["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
    if of("Ready").is_some_and(|ready| ready["status"] == "True") {
        return Some(Finding::green(format!("the broker has verified AcceptAPI {name}, and may bring orders")));
    }
    // What went wrong stands at its step.
    let step = of("BindingVerified").or_else(|| of("Ready"));
    let why = step.and_then(|step| step["message"].as_str()).unwrap_or("it has not taken note of it yet");
    Some(
        Finding::amber(format!("the broker has not verified AcceptAPI {name}: {why}"))
            .id("broker-not-verified")
            .fix("# it binds your APIExport in a workspace of its own; whether it may, say the roles with the verb bind:")
            .by(&facts.tool(RightScope::Export, "apiexports"), "get clusterroles,clusterrolebindings"),
    )
}

/// Nobody says the word that a broker waits for: orders come, and are never moved here.
fn wordless(facts: &Facts, one: &Published) -> Option<Finding> {
    let spec = &one.object["spec"];
    let reported = spec["report"]["status"].is_string();
    let writes = |step: &Value| {
        let each = step.as_object().into_iter().flat_map(serde_json::Map::values);
        each.filter_map(|part| part["path"].as_str().or_else(|| part["to"].as_str()))
            .any(|path| path == "status" || path == WORD)
    };
    let written = spec["implements"]["status"].as_array().is_some_and(|steps| steps.iter().any(writes));
    let elsewhere = spec["report"]["statusPath"].as_str().is_some_and(|path| path != WORD);
    ((!reported || elsewhere) && !written).then(|| {
        let name = &one.name;
        Finding::amber(format!(
            "{name}: nothing writes {WORD} of orders, so the broker never moves one here: it waits for the word Available"
        ))
        .id("broker-no-word")
        .fix("# say in spec.report.status when an order is Available:")
        .by(&facts.tool(RightScope::Service, "publishedresources"), &format!("edit publishedresource {name}"))
    })
}

/// Nobody can make a broker bring no more.
fn full(facts: &Facts, one: &Published) -> Option<Finding> {
    let refused: usize =
        facts.copies.iter().filter(|kind| kind.ordered == resource(one)).map(|kind| kind.over_limit).sum();
    (refused > 0).then(|| {
        let (name, tool) = (&one.name, facts.tool(RightScope::Service, "publishedresources"));
        let orders = if refused == 1 { "1 order is".to_owned() } else { format!("{refused} orders are") };
        Finding::amber(format!(
            "{name}: {orders} over a limit. The broker goes on bringing orders, and moves none away: nothing but the end of \
             the AcceptAPI makes it, and that moves all orders"
        ))
        .id("broker-over-limit")
        .fix("# raise spec.limits, or have all orders moved elsewhere:")
        .by(&tool, &format!("annotate publishedresource {name} {}=true", carrick_syncagent::api::DRAIN))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Severity::{Amber, Green};
    use super::*;
    use crate::doctor::facts::KindCopies;

    fn facts(accepting: Lookup<Vec<Value>>, spec: &Value) -> Facts {
        let published = Published {
            name: "certificates".to_owned(),
            problem: None,
            doubts: Vec::new(),
            pr: None,
            object: json!({ "spec": spec }),
            crd: None,
            schema: None,
        };
        Facts {
            export_url: "https://h/clusters/root:p".to_owned(),
            published: Some(Ok(vec![published])),
            accepting,
            ..Facts::default()
        }
    }

    fn asking() -> Value {
        json!({
            "implements": { "resource": "cs.example.com", "accept": {} }, "report": { "status": "'Available'" },
        })
    }

    fn accept(conditions: &Value) -> Lookup<Vec<Value>> {
        Lookup::There(vec![json!({ "metadata": { "name": "cs.example.com" }, "status": { "conditions": conditions } })])
    }

    fn ids(found: &[Finding]) -> Vec<&str> {
        found.iter().filter_map(|it| it.id).collect()
    }

    #[test]
    fn a_broker_is_of_interest_only_to_those_who_ask_for_orders() {
        let none = json!({ "implements": { "resource": "cs.example.com" } });
        assert_eq!(broker(&facts(Lookup::Missing, &none)), []);
        let found = broker(&facts(Lookup::Missing, &asking()));
        assert_eq!(ids(&found), ["broker-not-bound"]);
        assert!(found[0].text.contains("workspace root:p") && found[0].fix[0].contains("--broker"), "{found:?}");
        assert_eq!(broker(&facts(Lookup::There(Vec::new()), &asking())), [], "its condition says why there is none");
    }

    #[test]
    fn what_the_broker_says_is_passed_on() {
        let ready = |status: &str| json!([{ "type": "BindingVerified", "message": "pending" }, { "type": "Ready", "status": status }]);
        let found = broker(&facts(accept(&ready("True")), &asking()));
        assert_eq!((found.len(), found[0].severity), (1, Green), "{found:?}");
        for (conditions, words) in [(ready("Unknown"), ": pending"), (json!([]), "not taken note")] {
            let found = broker(&facts(accept(&conditions), &asking()));
            assert_eq!((ids(&found), found[0].severity), (vec!["broker-not-verified"], Amber));
            assert!(found[0].text.contains(words), "{found:?}");
        }
    }

    #[test]
    fn without_the_word_available_nothing_moves_here() {
        let step = |path: &str| json!({ "cel": { "path": path, "expression": "'Available'" } });
        for (status, report, is_found) in [
            (json!([]), json!({}), true),
            (json!([step("status.other")]), json!({}), true),
            (json!([step("status.status")]), json!({}), false),
            (json!([{ "move": { "from": "status", "to": "status" } }]), json!({}), false),
            (json!([]), json!({ "status": "'Available'" }), false),
            (json!([]), json!({ "status": "'Available'", "statusPath": "status.phase" }), true),
        ] {
            let mut spec = asking();
            spec["implements"]["status"] = status;
            spec["report"] = report;
            let found = broker(&facts(Lookup::NotAsked, &spec));
            assert_eq!(ids(&found) == ["broker-no-word"], is_found, "{spec}");
        }
    }

    #[test]
    fn a_provider_who_is_full_learns_that_orders_go_on_coming() {
        let mut facts = facts(Lookup::NotAsked, &asking());
        let kind = |ordered: &str| KindCopies { ordered: ordered.to_owned(), over_limit: 2, ..KindCopies::default() };
        facts.copies = vec![kind("cs.example.com"), kind("others.example.com")];
        let found = broker(&facts);
        assert_eq!(ids(&found), ["broker-over-limit"]);
        assert!(found[0].text.contains("2 orders are over a limit"), "{found:?}");
        assert!(found[0].fix.last().unwrap().contains("syncagent.kcp.io/drain=true"), "{found:?}");
    }
}
