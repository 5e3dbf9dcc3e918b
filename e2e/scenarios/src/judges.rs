//! What is wrong with rules: the agent says it by conditions, the doctor by findings, and both say the same.

use std::sync::Arc;

use anyhow::ensure;
use carrick_client::ListOptions;
use carrick_e2e_stage::stage::{Stage, condition, shown};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{fixtures, kinds};
use serde_json::{Value, json};

use super::doctor::{Flags, Told, ask};

/// How an agent says what is doubtful.
const DOUBTFUL: &str = "This will probably not do what you want: ";

/// What becomes of rules.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Valid,
    /// With the reason of the condition.
    Invalid(&'static str),
    Doubtful,
    /// Neither valid nor without a doubt.
    Both,
}

use Verdict::{Both, Doubtful, Invalid, Valid};

/// Kinds with their rules, and what becomes of them. All but `Nowhere` have a CRD.
fn table(group: &str) -> Vec<(&'static str, Verdict, Value)> {
    let rules = Invalid("InvalidRules");
    let related = |identifier: &str, origin: &str, resource: &str, object: Value| {
        json!({
            "identifier": identifier, "origin": origin, "version": "v1", "resource": resource, "object": object,
            "group": if resource == "nowheres" { group } else { "" },
        })
    };
    let by_name = || json!({ "template": { "template": "{{ .Object.metadata.name }}" } });
    let mutation = |step: Value| json!({ "mutation": { "spec": [step] } });
    vec![
        ("Bucket", Valid, json!({})),
        ("Nowhere", Invalid("KindNotFound"), json!({})),
        ("Rival", Invalid("Conflict"), json!({ "projection": { "plural": "buckets" } })),
        ("Index", Invalid("InvalidProjection"), json!({ "projection": { "plural": "Not/Valid" } })),
        ("Shard", Invalid("InvalidProjection"), json!({ "projection": { "versions": { "v1": "not a version" } } })),
        ("Queue", rules, json!({ "naming": { "name": "{{ .Object.metadata.name " } })),
        ("Topic", rules, mutation(json!({ "cel": { "path": "spec.size", "expression": "value + + )" } }))),
        ("Table", rules, mutation(json!({ "regex": { "path": "spec.region", "pattern": "(", "replacement": "" } }))),
        ("Stream", rules, mutation(json!({}))),
        ("Lake", rules, mutation(json!({ "template": { "path": "spec.region", "template": "{{ noSuchFunction }}" } }))),
        ("Gate", rules, json!({ "admission": [{ "expression": "self.spec.size +" }] })),
        ("Tale", rules, json!({ "report": { "status": "self.status. ==" } })),
        (
            "Guard",
            rules,
            json!({ "drift": { "policy": "Report", "fields": [{ "path": "spec..size", "policy": "Ignore" }] } }),
        ),
        (
            "Sieve",
            rules,
            json!({ "filter": { "resource": { "matchExpressions": [{ "key": "a", "operator": "Near" }] } } }),
        ),
        (
            "Twin",
            rules,
            json!({ "related": [
            related("same", "service", "secrets", by_name()), related("same", "service", "configmaps", by_name()),
        ] }),
        ),
        (
            "Link",
            rules,
            json!({ "related": [
            related("one", "service", "secrets", json!({ "template": { "template": "{{ .Object" } })),
        ] }),
        ),
        ("Guess", Doubtful, json!({ "naming": { "name": "{{ .Object.spec.sise }}-{{ .Object.metadata.name }}" } })),
        ("Loose", Doubtful, json!({ "related": [related("gone", "service", "nowheres", by_name())] })),
        ("Mess", Both, json!({ "naming": { "name": "{{ nonsense }}", "namespace": "{{ .Object.spec.sise }}" } })),
    ]
}

pub(super) async fn agent_and_doctor_say_the_same_of_rules(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.create_export().await?;
    let table = table(&stage.group);
    for (kind, _, spec) in &table {
        if *kind != "Nowhere" {
            stage.install_crd(&fixtures::crd(&stage.group, kind)).await?;
        }
        stage.publish(kind, spec.clone()).await?;
    }
    // The doctor has nobody to repeat yet.
    let alone = ask(&stage, &Flags::of(&stage, User::Admin)).await?;
    let agent = stage.start_agent()?;
    let judged = judged(&stage).await?;
    for (kind, verdict, _) in &table {
        let name = stage.published_name(kind);
        let one = judged.iter().find(|one| one["metadata"]["name"] == *name).unwrap_or(&Value::Null);
        let (valid, plausible) = (condition(one, "RulesValid"), condition(one, "RulesPlausible"));
        let found = match (valid["status"] == "True", plausible["status"] != "False") {
            (true, true) => Valid,
            (true, false) => Doubtful,
            (false, false) => Both,
            (false, true) => match verdict {
                Invalid(reason) if valid["reason"] == *reason => *verdict,
                _ => Invalid("another reason"),
            },
        };
        ensure!(found == *verdict, "{kind}: {valid} {plausible}");
    }
    agree(&alone, &judged)?;
    agree(&ask(&stage, &Flags::of(&stage, User::Admin)).await?, &judged)?;

    // A running agent goes on by earlier rules, and judges those of now.
    let resources = kinds::published_resources();
    let edit = async |kind: &str, naming: Value| {
        let patch = json!({ "spec": { "naming": naming } });
        stage.service.merge_patch(&resources, None, &stage.published_name(kind), &patch).await
    };
    edit("Guess", json!({ "name": "{{ nonsense }}" })).await?;
    edit("Bucket", json!({ "name": "{{ nonsense }}", "namespace": "{{ .Object.spec.sise }}" })).await?;
    let edited = self::judged(&stage).await?;
    let goes_on = |one: &&Value| condition(one, "Syncing")["reason"] == "EarlierRules";
    ensure!(edited.iter().filter(goes_on).count() == 2, "{}", json!(edited));
    agree(&ask(&stage, &Flags::of(&stage, User::Admin)).await?, &edited)?;
    agent.stop().await
}

/// All PublishedResources, once a running agent has judged their rules as they are now.
async fn judged(stage: &Stage) -> anyhow::Result<Vec<Value>> {
    let ours = ListOptions { label_selector: Some(stage.selector()), ..ListOptions::default() };
    stage
        .eventually("all rules are judged", async || {
            let all = stage.service.list(&kinds::published_resources(), None, &ours).await?;
            for one in &all {
                let now = &one["metadata"]["generation"];
                let is_judged = |kind: &str| condition(one, kind)["observedGeneration"] == *now;
                // What related kinds are doubtful is known once rules are valid, and both servers were asked.
                let related = one["spec"]["related"].is_array() && condition(one, "RulesValid")["status"] == "False";
                ensure!(is_judged("RulesValid") && (related || is_judged("RulesPlausible")), "it is {}", shown(one));
            }
            Ok(all)
        })
        .await
}

/// Whether the doctor finds of each PublishedResource what its conditions say, word for word, and nothing else.
fn agree(doctor: &Told, judged: &[Value]) -> anyhow::Result<()> {
    for one in judged {
        let prefix = format!("{}: ", one["metadata"]["name"].as_str().unwrap_or_default());
        let found = |id: &str| -> Vec<String> {
            let texts = doctor.with_id(id).into_iter().filter_map(|text| text.strip_prefix(&prefix));
            texts.map(str::to_owned).collect()
        };
        let told = |kind: &str| {
            let condition = condition(one, kind);
            let message = condition["message"].as_str().unwrap_or_default();
            // The doctor keeps each finding in one line.
            (condition["status"] == "False").then(|| message.trim_start_matches(DOUBTFUL).replace('\n', "\\n"))
        };
        let earlier = found("rules-invalid-earlier").into_iter().map(|text| {
            let (problem, _) = text.split_once("; meanwhile ").unwrap_or_default();
            problem.to_owned()
        });
        let invalid: Vec<String> = found("rules-invalid").into_iter().chain(earlier).collect();
        ensure!(invalid.first() == told("RulesValid").as_ref() && invalid.len() < 2, "{invalid:#?}: {}", shown(one));
        let repeated = found("condition-false").into_iter().filter_map(|text| {
            text.strip_prefix("RulesPlausible is False: ").map(|text| text.trim_start_matches(DOUBTFUL).to_owned())
        });
        let own = found("rules-doubtful");
        let own = (!own.is_empty()).then(|| own.join("; "));
        let doubts: Vec<String> = own.into_iter().chain(repeated).collect();
        ensure!(doubts.first() == told("RulesPlausible").as_ref() && doubts.len() < 2, "{doubts:#?}: {}", shown(one));
    }
    Ok(())
}
