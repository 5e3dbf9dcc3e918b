//! What conversions lose, found out on objects that the schemas allow. Pure.

use carrick_schema::evolution::{Definition, Loss, round_trips};
use serde_json::{Value, json};

use super::conversion::Conversions;
use super::crd::{Crd, Version};
use super::projection::{exchanged, name_in_kcp, project};
use crate::api::PublishedResource;

/// How many losses by the apiVersion alone are told.
const MOST: usize = 3;

/// What is lost between the versions of a PublishedResource, in words, each with the field that can mend it. Invalid rules are reported
/// elsewhere.
pub fn doubts(pr: &PublishedResource, crd: &Crd) -> Vec<String> {
    let told = |loss: &Loss| format!("spec.conversion.rules: {loss}, as in {}", shortened(&loss.example));
    let mut doubts: Vec<String> = losses(pr, crd).iter().map(told).collect();
    doubts.extend(by_name_alone(pr, crd));
    doubts
}

/// What the rules lose on the way from one version to another and back.
pub fn losses(pr: &PublishedResource, crd: &Crd) -> Vec<Loss> {
    let conversions = Conversions::compile(pr.spec.conversion.as_ref()).unwrap_or_default();
    if conversions.is_empty() {
        return Vec::new();
    }
    let Some(definition) = definition(pr, crd) else { return Vec::new() };
    round_trips(&definition, &|object, to| conversions.convert(object, to).map_err(|error| error.to_string()))
}

/// What kcp loses if nobody converts for it.
fn by_name_alone(pr: &PublishedResource, crd: &Crd) -> Option<String> {
    let conversion = pr.spec.conversion.as_ref()?;
    let projected = project(pr, crd).ok()?;
    if conversion.webhook.is_some() || projected.spec.versions.len() < 2 {
        return None;
    }
    let definition = read(&projected)?;
    let renamed = |object: &Value, to: &str| {
        let mut object = object.clone();
        object["apiVersion"] = format!("{}/{to}", projected.spec.group).into();
        Ok(object)
    };
    let losses = round_trips(&definition, &renamed);
    if losses.is_empty() {
        return None;
    }
    let told: Vec<String> = losses.iter().take(MOST).map(ToString::to_string).collect();
    Some(format!(
        "spec.conversion.webhook: without it, kcp changes nothing but the apiVersion of an object: {}",
        told.join(", ")
    ))
}

/// All versions between which objects are converted: those in kcp, and that of the copies.
fn definition(pr: &PublishedResource, crd: &Crd) -> Option<Definition> {
    let mut all = project(pr, crd).ok()?;
    let local = exchanged(pr, crd).ok()?;
    let name = name_in_kcp(pr, crd, &local.name);
    match all.spec.versions.iter_mut().find(|version| version.name == name) {
        Some(known) => known.served = true,
        None => all.spec.versions.push(Version { name, served: true, storage: false, ..local.clone() }),
    }
    read(&all)
}

fn read(crd: &Crd) -> Option<Definition> {
    let spec = serde_json::to_value(&crd.spec).ok()?;
    let document = json!({ "kind": "CustomResourceDefinition", "metadata": { "name": crd.name }, "spec": spec });
    Definition::read(&document).ok()
}

/// An example that fits into a sentence.
pub(super) fn shortened(example: &Value) -> String {
    let mut example = example.clone();
    if let Some(map) = example.as_object_mut() {
        for key in ["apiVersion", "kind", "metadata"] {
            map.remove(key);
        }
    }
    let text = example.to_string();
    if text.chars().count() <= 200 { text } else { format!("{}…", text.chars().take(200).collect::<String>()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::{crontab, published};

    /// v2 calls the image a container; the CRD has v1 only.
    fn conversion(steps: [Value; 2], webhook: bool) -> Value {
        let [down, up] = steps;
        let text = json!({ "type": "string" });
        let spec = json!({ "type": "object", "properties": {
            "cronSpec": text, "container": text, "replicas": { "type": "integer" } } });
        let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
        let mut conversion = json!({
            "versions": [{ "name": "v2", "schema": schema }],
            "rules": [{ "from": "v1", "to": "v2", "steps": up }, { "from": "v2", "to": "v1", "steps": down }],
        });
        if webhook {
            conversion["webhook"] = json!({ "url": "https://example.com" });
        }
        json!({ "conversion": conversion })
    }

    fn moved(from: &str, to: &str) -> Value {
        json!([{ "move": { "from": from, "to": to } }])
    }

    #[test]
    fn rules_that_lose_nothing_are_beyond_doubt() {
        let steps = [moved("spec.container", "spec.image"), moved("spec.image", "spec.container")];
        assert_eq!(doubts(&published(conversion(steps, true)), &crontab()), Vec::<String>::new());
    }

    #[test]
    fn losses_are_named_with_their_field() {
        let steps = [json!([{ "delete": { "path": "spec.container" } }]), moved("spec.image", "spec.container")];
        let told = doubts(&published(conversion(steps, true)), &crontab());
        assert!(told.iter().all(|it| it.starts_with("spec.conversion.rules: v")), "{told:?}");
        assert!(told.iter().any(|it| it.contains("v1 → v2: spec.image: ")), "{told:?}");
        assert!(told.iter().any(|it| it.contains("v2 → v1: spec.container: ")), "{told:?}");
    }

    #[test]
    fn without_a_webhook_kcp_itself_loses_what_differs() {
        let steps = [moved("spec.container", "spec.image"), moved("spec.image", "spec.container")];
        let told = doubts(&published(conversion(steps, false)), &crontab());
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("spec.conversion.webhook: ") && told[0].contains("spec.image"), "{told:?}");
    }

    /// What becomes of a field of v2 on its way to v1.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fate {
        Stays,
        Moves,
        MovesDeep,
        Preserved,
        Lost,
    }

    /// A kind with one field for each fate, and the rules that make it so.
    fn generated(fates: &[(Fate, &str)]) -> (Value, Value) {
        let (mut old, mut new) = (json!({}), json!({}));
        let (mut down, mut up, mut preserve) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (fate, kind)) in fates.iter().enumerate() {
            let typed = json!({ "type": kind });
            let name = format!("f{index}");
            let (from, to) = (format!("spec.new.{name}"), format!("spec.old{index}"));
            match fate {
                Fate::Stays => {
                    old[&name] = typed.clone();
                    new[&name] = typed;
                }
                Fate::Moves | Fate::MovesDeep => {
                    let from = if *fate == Fate::Moves { format!("spec.{name}") } else { from };
                    if *fate == Fate::Moves {
                        new[&name] = typed.clone();
                    } else {
                        new["new"]["type"] = "object".into();
                        new["new"]["properties"][&name] = typed.clone();
                    }
                    old[format!("old{index}")] = typed;
                    down.push(json!({ "move": { "from": from, "to": to } }));
                    up.push(json!({ "move": { "from": to, "to": from } }));
                }
                Fate::Preserved => {
                    new[&name] = typed;
                    preserve.push(format!("spec.{name}"));
                }
                Fate::Lost => {
                    new[&name] = typed;
                    down.push(json!({ "delete": { "path": format!("spec.{name}") } }));
                }
            }
        }
        let schema = |properties: Value| {
            let spec = json!({ "type": "object", "properties": properties });
            json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } })
        };
        let mut crd = json!({ "metadata": { "name": "crontabs.example.com" }, "spec": crontab().spec });
        crd["spec"]["versions"][0]["schema"] = schema(old);
        let conversion = json!({
            "versions": [{ "name": "v2", "schema": schema(new) }],
            "rules": [
                { "from": "v2", "to": "v1", "steps": down, "preserve": preserve },
                { "from": "v1", "to": "v2", "steps": up },
            ],
            "webhook": { "url": "https://example.com" },
        });
        (crd, conversion)
    }

    proptest::proptest! {
        // One case tries hundreds of objects.
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]

        #[test]
        fn exactly_what_is_lost_is_told(
            fates in proptest::collection::vec((
                proptest::sample::select(vec![Fate::Stays, Fate::Moves, Fate::MovesDeep, Fate::Preserved, Fate::Lost]),
                proptest::sample::select(vec!["string", "integer", "boolean"]),
            ), 1..6),
        ) {
            let (crd, conversion) = generated(&fates);
            let crd = Crd::from_json(&crd).unwrap();
            let told: Vec<String> = losses(&published(json!({ "conversion": conversion })), &crd)
                .into_iter()
                .map(|loss| format!("{} {}", loss.from, loss.path))
                .collect();
            let lost: Vec<String> = fates
                .iter()
                .enumerate()
                .filter(|(_, (fate, _))| *fate == Fate::Lost)
                .map(|(index, _)| format!("v2 spec.f{index}"))
                .collect();
            proptest::prop_assert_eq!(told, lost);
        }
    }
}
