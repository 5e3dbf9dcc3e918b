//! Admission: rules that consumers' objects must keep. Pure.
//!
//! ```text
//!  spec.admission ──▶ a schema can express it ──▶ x-kubernetes-validations: kcp refuses at once
//!         │
//!         └─────────▶ unless it compares with oldSelf ──▶ Admission: the agent does not place what breaks it
//! ```

use std::sync::Arc;

use carrick_cel::{CompileError, FieldRead, Rule, Schema, Verdict, escape};
use serde_json::{Value, json};
use thiserror::Error;

use super::crd::{Crd, ValidationRule, Version};
use crate::api::{AdmissionRule, PublishedResource};

/// Why a rule is refused.
#[derive(Debug, Error)]
pub enum AdmissionError {
    /// It is no valid expression for objects of this kind.
    #[error("{at}: {listing}")]
    Compile {
        /// Field of the PublishedResource.
        at: String,
        /// What is wrong, and where.
        listing: String,
    },
    /// Only kcp could check it, and its schema is somebody else's.
    #[error(
        "{at}: oldSelf cannot be used here, because the schema of spec.implements stays as its owner has written it; remove the rule"
    )]
    Fixed {
        /// Field of the PublishedResource.
        at: String,
    },
    /// It compares with an earlier object, which only kcp knows.
    #[error("{at}: oldSelf cannot be used here, because no schema can express the rule: {listing}")]
    Transition {
        /// Field of the PublishedResource.
        at: String,
        /// What a schema cannot express, and where.
        listing: String,
    },
}

/// The rules that the agent itself checks, compiled.
#[derive(Debug, Clone, Default)]
pub struct Admission(Arc<[Check]>);

#[derive(Debug)]
struct Check {
    at: String,
    rule: Rule,
}

impl Admission {
    /// Compiles all rules of a PublishedResource for its kind as it looks in kcp, and for the version in which the agent reads objects.
    pub fn compile(pr: &PublishedResource, projected: &Crd, version: Option<&Version>) -> Result<Self, AdmissionError> {
        let version = version.map(document).unwrap_or_default();
        let mut checks = Vec::new();
        for (i, given) in pr.spec.admission.iter().enumerate() {
            let at = format!("spec.admission[{i}].expression");
            let in_schema = for_schema(given, projected);
            let own = own_check(given, &version);
            match (in_schema, own) {
                (_, Ok(rule)) if !rule.uses_old_self() => checks.push(Check { at, rule }),
                (Ok(_), _) if pr.spec.implements.is_some() => return Err(AdmissionError::Fixed { at }),
                (Ok(_), _) => {}
                (Err(error), Ok(_)) => {
                    return Err(AdmissionError::Transition { at, listing: error.listing(&given.expression) });
                }
                // What a schema cannot express is no mistake; what is wrong with the other one is.
                (Err(_), Err(error)) => {
                    return Err(AdmissionError::Compile { at, listing: error.listing(&given.expression) });
                }
            }
        }
        Ok(Self(checks.into()))
    }

    /// Why an object is refused, in words for its consumer.
    pub fn refuses(&self, object: &Value) -> Option<String> {
        self.0.iter().find_map(|check| match check.rule.eval(object, None) {
            Ok(Verdict::Pass | Verdict::Skipped) => None,
            Ok(Verdict::Fail { message }) => Some(message),
            // The API server refuses what it cannot judge, too.
            Err(error) => Some(format!("{} cannot be evaluated: {error}", check.at)),
        })
    }
}

/// Adds the rules that a schema can express to every version. Mistakes are left out: they are reported when rules are compiled.
pub fn add_to_schemas(pr: &PublishedResource, projected: &mut Crd) {
    for given in &pr.spec.admission {
        let Ok(rules) = for_schema(given, projected) else { continue };
        for (version, rule) in projected.spec.versions.iter_mut().zip(rules) {
            let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
            if let (Some(schema), Some(rule)) = (schema, rule) {
                schema.x_validations.push(rule);
            }
        }
    }
}

/// The rule for each version; an error if one of those that are served cannot express it.
fn for_schema(given: &AdmissionRule, projected: &Crd) -> Result<Vec<Option<ValidationRule>>, CompileError> {
    let each = projected.spec.versions.iter().map(|version| match for_version(given, &document(version)) {
        Err(_) if !version.served => Ok(None),
        rule => rule.map(Some),
    });
    each.collect()
}

/// The rule as a part of a schema. An update that leaves alone everything that the rule reads passes: whoever cannot keep a new rule can
/// still label, release and delete what there is.
fn for_version(given: &AdmissionRule, schema: &Value) -> Result<ValidationRule, CompileError> {
    let (root, message) = (Schema::root(schema), message(given));
    let plain = Rule::compile_typed(&json!({ "rule": given.expression, "message": message }), &root)?;
    let rule = ValidationRule { rule: given.expression.clone(), message, ..ValidationRule::default() };
    if plain.uses_old_self() {
        return Ok(rule);
    }
    let Some(unchanged) = unchanged(&plain, schema, &root) else { return Ok(rule) };
    // A comment would swallow what follows.
    let end = if given.expression.contains("//") { "\n" } else { "" };
    let guarded = format!("({}{end}) || (oldSelf.hasValue() && {unchanged})", given.expression.trim());
    let rule = ValidationRule { rule: guarded, optional_old_self: Some(true), ..rule };
    Rule::compile_typed(&json!({ "rule": rule.rule, "message": rule.message, "optionalOldSelf": true }), &root)?;
    Ok(rule)
}

/// An expression that is true if nothing has changed of what a rule reads; none if it reads nothing.
fn unchanged(rule: &Rule, schema: &Value, root: &Schema) -> Option<String> {
    let reads = rule.reads();
    let whole = reads.iter().any(|read| read.path.is_empty());
    let mut same: Vec<String> = Vec::new();
    if whole {
        let names = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        // Fields that rules cannot name did not matter to this one.
        let names = names.filter(|name| is_content(name)).filter_map(escape).filter(|name| {
            Rule::compile_typed(&json!({ "rule": format!("!has(self.{name}) || has(self.{name})") }), root).is_ok()
        });
        same.extend(names.map(|name| same_field(&[name], false)));
    } else {
        let covers = |outer: &FieldRead, read: &FieldRead| {
            !outer.presence_only && outer.path.len() < read.path.len() && read.path.starts_with(&outer.path)
        };
        for read in reads.iter().filter(|read| !reads.iter().any(|outer| covers(outer, read))) {
            let names: Option<Vec<String>> = read.path.iter().map(|name| escape(name)).collect();
            same.push(same_field(&names?, read.presence_only));
        }
    }
    (!same.is_empty()).then(|| same.join(" && "))
}

/// An expression that is true if a field is the same as before. API servers take the cost of comparing optional values (`self.?field`) for
/// endless and would refuse that, so it goes down step by step.
fn same_field(path: &[String], presence_only: bool) -> String {
    let at = |depth: usize| path[..depth].join(".");
    let whole = at(path.len());
    let mut same = (!presence_only).then(|| format!("self.{whole} == oldSelf.value().{whole}"));
    for field in (1..=path.len()).rev().map(at) {
        let both = format!("has(self.{field}) == has(oldSelf.value().{field})");
        same = Some(match same {
            Some(inner) => format!("{both} && (!has(self.{field}) || ({inner}))"),
            None => both,
        });
    }
    same.unwrap_or_default()
}

/// The rule as the agent checks it, which sees all metadata, and whatever is below a node that accepts fields that it does not name.
fn own_check(given: &AdmissionRule, schema: &Value) -> Result<Rule, CompileError> {
    let mut whole = opened(schema);
    if whole["properties"].is_object() {
        let text = json!({ "type": "string" });
        let texts = json!({ "type": "object", "additionalProperties": text });
        whole["properties"]["apiVersion"] = text.clone();
        whole["properties"]["kind"] = text.clone();
        whole["properties"]["metadata"] = json!({ "type": "object", "properties": {
            "name": text, "generateName": text, "namespace": text, "uid": text, "labels": texts, "annotations": texts,
        } });
    }
    let entry = json!({ "rule": given.expression, "message": message(given) });
    Rule::compile_typed(&entry, &Schema::node(&whole))
}

/// A schema in which nothing is said about nodes that accept anything.
fn opened(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) if fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) => {
            // Of such a node, nobody knows the type.
            json!({ "x-kubernetes-int-or-string": true })
        }
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), opened(field))).collect(),
        other => other.clone(),
    }
}

fn is_content(field: &str) -> bool {
    !matches!(field, "apiVersion" | "kind" | "metadata" | "status")
}

/// The schema of a version as a document.
fn document(version: &Version) -> Value {
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    schema.and_then(|schema| serde_json::to_value(schema).ok()).unwrap_or_default()
}

/// What consumers are told, in one line, as schemas require.
fn message(given: &AdmissionRule) -> String {
    let text = if given.message.trim().is_empty() {
        format!("failed rule: {}", given.expression)
    } else {
        given.message.clone()
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests {
    use super::*;
    use crate::rules::tests::{crontab, published};

    fn with(rules: Value) -> PublishedResource {
        published(json!({ "admission": rules }))
    }

    fn validations(pr: &PublishedResource) -> Vec<ValidationRule> {
        let mut projected = crontab();
        add_to_schemas(pr, &mut projected);
        projected.spec.versions[0].schema.clone().unwrap().open_api_v3_schema.unwrap().x_validations
    }

    fn compile(pr: &PublishedResource) -> Result<Admission, AdmissionError> {
        let crd = crontab();
        Admission::compile(pr, &crd, crd.spec.versions.first())
    }

    #[test]
    fn what_a_schema_can_express_becomes_part_of_it_and_spares_what_there_is() {
        let pr = with(json!([{ "expression": "self.spec.replicas <= 3", "message": "at most three" }]));
        let rules = validations(&pr);
        assert_eq!((rules.len(), rules[0].message.as_str()), (1, "at most three"));
        let entry = serde_json::to_value(&rules[0]).unwrap();
        let schema = document(&crontab().spec.versions[0]);
        let rule = Rule::compile_typed(&entry, &Schema::root(&schema)).unwrap();
        let of = |replicas: i64, labels: Value| json!({ "metadata": { "name": "a", "labels": labels }, "spec": { "replicas": replicas } });
        let refused = Verdict::Fail { message: "at most three".into() };
        for (new, old, verdict) in [
            (of(3, json!({})), None, Verdict::Pass),
            (of(4, json!({})), None, refused.clone()),
            (of(4, json!({})), Some(of(3, json!({}))), refused.clone()),
            // It was there before the rule.
            (of(4, json!({ "a": "b" })), Some(of(4, json!({}))), Verdict::Pass),
            (of(5, json!({})), Some(of(4, json!({}))), refused),
            (of(2, json!({})), Some(of(4, json!({}))), Verdict::Pass),
            // What the rule does not read may change.
            (
                json!({ "metadata": { "name": "a" }, "spec": { "replicas": 4, "image": "b" } }),
                Some(of(4, json!({}))),
                Verdict::Pass,
            ),
            (json!({ "metadata": { "name": "a" } }), Some(json!({ "metadata": { "name": "a" } })), Verdict::Pass),
        ] {
            assert_eq!(rule.eval(&new, old.as_ref()).unwrap(), verdict, "{new} after {old:?}");
        }
    }

    #[test]
    fn the_agent_checks_everything_but_transitions() {
        let pr = with(json!([
            { "expression": "self.spec.replicas <= 3 // at most", "message": "at most\nthree" },
            { "expression": "self.metadata.?labels['team'].hasValue()" },
            { "expression": "self.spec.replicas >= oldSelf.spec.replicas" },
        ]));
        let rules = validations(&pr);
        assert_eq!(rules.len(), 2, "{rules:?}");
        assert_eq!((rules[0].message.as_str(), rules[0].optional_old_self), ("at most three", Some(true)));
        assert_eq!(
            (rules[1].rule.as_str(), rules[1].optional_old_self),
            ("self.spec.replicas >= oldSelf.spec.replicas", None)
        );
        let admission = compile(&pr).unwrap();
        let team = json!({ "team": "a" });
        for (replicas, labels, refusal) in [
            (json!(3), team.clone(), None),
            (json!(4), team.clone(), Some("at most three")),
            (json!(1), json!({}), Some("failed rule: self.metadata.?labels['team'].hasValue()")),
        ] {
            let object = json!({ "metadata": { "name": "a", "labels": labels }, "spec": { "replicas": replicas } });
            assert_eq!(admission.refuses(&object).as_deref(), refusal, "{object}");
        }
        let odd = admission.refuses(&json!({ "metadata": { "name": "a", "labels": team }, "spec": {} }));
        assert!(odd.unwrap().starts_with("spec.admission[0].expression cannot be evaluated: "));
    }

    #[test]
    fn mistakes_are_shown_with_their_place() {
        for (expression, wanted) in [
            ("self.spec.replicaz <= 3", "undefined field 'replicaz'\n | self.spec.replicaz <= 3\n | .........^"),
            ("self.spec.replicas <=", "Syntax error"),
            ("self.spec.replicas", "must evaluate to a bool"),
            ("self.metadata.labels == oldSelf.metadata.labels", "oldSelf cannot be used here"),
        ] {
            let pr = with(json!([{ "expression": "true" }, { "expression": expression }]));
            let error = compile(&pr).unwrap_err().to_string();
            assert!(error.starts_with("spec.admission[1].expression: ") && error.contains(wanted), "{error}");
            assert_eq!(validations(&pr).len(), 1, "the others stay");
        }
    }

    #[test]
    fn fields_that_no_schema_names_can_be_checked_by_the_agent() {
        let mut crd = crontab();
        let schema = crd.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
        schema.properties.get_mut("spec").unwrap().x_preserve_unknown_fields = Some(true);
        let pr = with(json!([{ "expression": "self.spec.colour != 'red'" }]));
        let admission = Admission::compile(&pr, &crd, crd.spec.versions.first()).unwrap();
        assert!(admission.refuses(&json!({ "spec": { "colour": "red" } })).is_some());
        assert!(admission.refuses(&json!({ "spec": { "colour": "blue" } })).is_none());
        let typo = with(json!([{ "expression": "self.spek.colour != 'red'" }]));
        assert!(Admission::compile(&typo, &crd, crd.spec.versions.first()).is_err(), "the others are known");
    }
}
