//! How an order and its copy differ, field by field, and whether that is meant. Values that may be secret are never shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::rules::Rules;
use crate::rules::metadata::WORDS;

/// Longest value that is shown whole.
const LONGEST: usize = 200;
/// How many differences are shown.
const MOST: usize = 200;
/// Fields whose names end like this hold what nobody should see.
const DISCREET: [&str; 8] =
    ["password", "passphrase", "token", "apikey", "privatekey", "secretkey", "accesskey", "clientsecret"];

/// How an order and its copy differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Whether values are withheld, because objects of this kind hold Secret data.
    pub confidential: bool,
    /// Why it is not known what the rules make of the order, if they fail on it.
    pub problem: Option<String>,
    /// How many fields are the same on both sides.
    pub same: usize,
    /// Those that differ; the first of them, if there are very many.
    pub differences: Vec<Difference>,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where it is, such as `spec.region`.
    pub path: String,
    /// Its value in the order, as JSON; nothing if it is not there, or not shown.
    pub source: Option<String>,
    /// The same in the copy.
    pub copy: Option<String>,
    /// Why it differs.
    pub why: Why,
}

/// Why a field differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// The rules make it so.
    Rules,
    /// Only the service cluster has it: a default, or an operator's work. It is left alone.
    Service,
    /// It is not in line: a write is due, or fails.
    Open,
    /// Somebody else has changed it since it was written, and spec.drift asks for that.
    Drift,
}

/// How an order and its copy differ, given the fields that somebody else is known to have changed.
pub fn compare(rules: &Rules, source: &Value, copy: &Value, drifted: &[String]) -> Comparison {
    let confidential = rules.is_confidential(&rules.local) || rules.is_confidential(&rules.remote);
    let mutated = rules.mutation.spec(source, Some(copy));
    let returned = rules.mutation.status(copy, source);
    let problem = mutated.as_ref().err().or(returned.as_ref().err()).map(ToString::to_string);
    let down = |object: &Value| fields(object, |key| key != "status");
    let up = |object: &Value| fields(object, |key| key == "status");
    // Where the rules fail, nothing is known to be meant.
    let wanted = mutated.map_or_else(|_| BTreeMap::new(), |wanted| down(&wanted));
    let told = returned.map_or_else(|_| BTreeMap::new(), |told| up(&told));
    let (ordered, placed) = (down(source), down(copy));
    let spec = differences(&ordered, &placed, |path| match (wanted.get(path), placed.get(path)) {
        _ if is_named(path) => Why::Rules,
        _ if drifted.iter().any(|field| is_within(path, field)) => Why::Drift,
        (wanted, there) if wanted == there => Why::Rules,
        (None, Some(_)) if problem.is_none() => Why::Service,
        _ => Why::Open,
    });
    let (shown, reported) = (up(source), up(copy));
    let status = differences(&shown, &reported, |path| {
        let is_reported = rules.report.as_ref().is_some_and(|report| report.writes(path));
        let is_meant = is_reported || told.get(path) == shown.get(path);
        if is_meant && problem.is_none() { Why::Rules } else { Why::Open }
    });
    let mut differences: Vec<Difference> = spec.into_iter().chain(status).collect();
    let all = ordered.keys().chain(placed.keys().filter(|path| !ordered.contains_key(*path))).count()
        + shown.keys().chain(reported.keys().filter(|path| !shown.contains_key(*path))).count();
    let same = all - differences.len();
    differences.truncate(MOST);
    if confidential {
        for difference in &mut differences {
            (difference.source, difference.copy) = (None, None);
        }
    }
    Comparison { confidential, problem: problem.filter(|_| !confidential), same, differences }
}

/// How many fields that were changed are named.
const NAMED: usize = 5;

/// Fields of a copy that are not what the rules make of its source; the first of them. What only the copy has is not among them: defaults, and
/// what an operator adds.
pub fn changed(wanted: &Value, copy: &Value) -> Vec<String> {
    let content = |object: &Value| fields(object, |key| key != "status");
    let placed = content(copy);
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    let differs = |(path, value): &(String, Value)| match placed.get(path) {
        Some(there) => there != value,
        None => !is_nothing(value),
    };
    let mut changed =
        content(wanted).into_iter().filter(|(path, _)| !is_named(path)).filter(differs).map(|(path, _)| path);
    let mut first: Vec<String> = changed.by_ref().take(NAMED).collect();
    if changed.next().is_some() {
        first.push("…".to_owned());
    }
    first
}

/// Fields of an object that become others if it is written as the rules want it, with what they are before and after, as far as that may
/// be shown. Labels and annotations that only the object has stay.
pub fn changes(wanted: &Value, object: &Value, subresources: &[&str]) -> Vec<(String, Option<String>, Option<String>)> {
    let is_content = |key: &str| key != "status" && !subresources.contains(&key);
    let (after, before) = (fields(wanted, is_content), fields(object, is_content));
    let stays = |path: &str| is_named(path) || path.starts_with("metadata.") && !after.contains_key(path);
    let paths: BTreeSet<&String> = after.keys().chain(before.keys()).filter(|path| !stays(path)).collect();
    let text = |path: &str, value: Option<&Value>| value.map(|value| shown(path, value));
    let differing = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
    differing.map(|path| (path.clone(), text(path, before.get(path)), text(path, after.get(path)))).collect()
}

/// Whether a path is a field, or in a list that is one.
fn is_within(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
}

/// Where an object is and of which kind, which naming and projection decide.
fn is_named(path: &str) -> bool {
    ["apiVersion", "kind", "metadata.name", "metadata.namespace"].contains(&path)
}

fn differences(
    source: &BTreeMap<String, Value>,
    copy: &BTreeMap<String, Value>,
    why: impl Fn(&str) -> Why,
) -> Vec<Difference> {
    let paths = source.keys().chain(copy.keys().filter(|path| !source.contains_key(*path)));
    let mut differing: Vec<&String> = paths.filter(|path| source.get(*path) != copy.get(*path)).collect();
    differing.sort_unstable();
    let each = differing.into_iter().map(|path| Difference {
        path: path.clone(),
        source: source.get(path).map(|value| shown(path, value)),
        copy: copy.get(path).map(|value| shown(path, value)),
        why: why(path),
    });
    each.collect()
}

/// A value as it may be shown.
pub(super) fn shown(path: &str, value: &Value) -> String {
    if path.split(['.', '[', ']']).any(is_discreet) {
        return "(not shown)".to_owned();
    }
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Whether a field is named like something that nobody should see: `adminPassword`, `api-key`, `tokens`.
pub(crate) fn is_discreet(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    DISCREET.iter().any(|discreet| name.trim_end_matches('s').ends_with(discreet))
}

/// The fields of an object that cross, by their paths: those below some of its top-level keys, down to the last value.
fn fields(object: &Value, takes: impl Fn(&str) -> bool) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for (key, value) in WORDS.strip(object).as_object().into_iter().flatten().filter(|(key, _)| takes(key)) {
        collect(key, value, &mut all);
    }
    all
}

fn collect(path: &str, value: &Value, all: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                // Keys of labels and annotations have dots themselves.
                let quoted = if key.contains('.') { format!("{path}[{key}]") } else { format!("{path}.{key}") };
                collect(&quoted, value, all);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (at, value) in list.iter().enumerate() {
                collect(&format!("{path}[{at}]"), value, all);
            }
        }
        value => drop(all.insert(path.to_owned(), value.clone())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::tests::{crontab, published};

    fn told(comparison: &Comparison) -> Vec<(&str, Option<&str>, Option<&str>, Why)> {
        let each = comparison.differences.iter();
        each.map(|it| (it.path.as_str(), it.source.as_deref(), it.copy.as_deref(), it.why)).collect()
    }

    #[test]
    fn what_others_have_changed_is_told_apart() {
        let rules = Rules::compile(&published(json!({})), &crontab(), "agent").unwrap();
        let source = json!({ "spec": { "size": 1, "list": ["a"], "late": 1 } });
        let copy = json!({ "spec": { "size": 7, "list": ["b"], "late": 0, "default": true } });
        let drifted = ["spec.size".to_owned(), "spec.list".to_owned()];
        let comparison = compare(&rules, &source, &copy, &drifted);
        let why: Vec<_> = comparison.differences.iter().map(|it| (it.path.as_str(), it.why)).collect();
        let wanted = [
            ("spec.default", Why::Service),
            ("spec.late", Why::Open),
            ("spec.list[0]", Why::Drift),
            ("spec.size", Why::Drift),
        ];
        assert_eq!(why, wanted);
    }

    #[test]
    fn what_the_agent_reports_is_no_difference_to_be_mended() {
        let mut crd = crontab();
        crd.spec.versions[0].subresources = serde_json::from_value(json!({"status": {}})).unwrap();
        let rules =
            Rules::compile(&published(json!({ "report": { "status": "'Available'" } })), &crd, "agent").unwrap();
        let source = json!({"status": {"status": "Available", "relatedResources": {"a": {"name": "b"}}, "conditions": [{"type": "Placed"}], "url": "old"}});
        let comparison = compare(&rules, &source, &json!({"status": {"url": "new"}}), &[]);
        let open: Vec<&str> = told(&comparison).into_iter().filter(|it| it.3 == Why::Open).map(|it| it.0).collect();
        assert_eq!(open, ["status.url"]);
    }

    #[test]
    fn every_field_that_differs_says_why() {
        let mutation = json!({"spec": [{"regex": {"path": "spec.image", "pattern": "^", "replacement": "mirror/"}}]});
        let rules = Rules::compile(&published(json!({ "mutation": mutation })), &crontab(), "agent").unwrap();
        let source = json!({
            "metadata": {"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "2", "labels": {"x.io/y": "1"}},
            "spec": {"image": "nginx", "replicas": 2, "cronSpec": "* * *", "adminPasswords": ["hunter2"], "list": [1, 2]},
            "status": {"phase": "Old"},
        });
        let copy = json!({
            "metadata": {"name": "c-a", "namespace": "ns", "uid": "3", "labels": {"x.io/y": "2"}},
            "spec": {"image": "mirror/nginx", "replicas": 3, "cronSpec": "* * *", "default": true, "list": [1]},
            "status": {"phase": "New"},
        });
        let comparison = compare(&rules, &source, &copy, &[]);
        let wanted = [
            ("metadata.labels[x.io/y]", Some("\"1\""), Some("\"2\""), Why::Open),
            ("metadata.name", Some("\"a\""), Some("\"c-a\""), Why::Rules),
            ("metadata.namespace", Some("\"default\""), Some("\"ns\""), Why::Rules),
            ("spec.adminPasswords[0]", Some("(not shown)"), None, Why::Open),
            ("spec.default", None, Some("true"), Why::Service),
            ("spec.image", Some("\"nginx\""), Some("\"mirror/nginx\""), Why::Rules),
            ("spec.list[1]", Some("2"), None, Why::Open),
            ("spec.replicas", Some("2"), Some("3"), Why::Open),
            ("status.phase", Some("\"Old\""), Some("\"New\""), Why::Open),
        ];
        assert_eq!(told(&comparison), wanted);
        assert_eq!((comparison.same, comparison.confidential, comparison.problem), (2, false, None));
    }

    #[test]
    fn fields_that_somebody_has_changed_on_the_copy_are_named_and_additions_are_not() {
        let source = json!({"metadata": {"name": "a", "labels": {"x": "1"}}, "spec": {"a": 1, "list": [1, 2], "none": {}}, "status": {"a": 1}});
        let named = |copy: Value| changed(&source, &copy).join(" ");
        let same = json!({"metadata": {"name": "c", "labels": {"x": "1", "y": "2"}}, "spec": {"a": 1, "list": [1, 2], "more": 1}, "status": {"a": 2}});
        assert_eq!(named(same), "");
        let edited = json!({"metadata": {"name": "c", "labels": {"x": "1"}}, "spec": {"a": 2, "list": [1]}});
        assert_eq!(named(edited), "spec.a spec.list[1]");
        let many: Value = (0..9).map(|at| (format!("f{at}"), json!(at))).collect::<serde_json::Map<_, _>>().into();
        let changed = changed(&json!({ "spec": many }), &json!({}));
        assert_eq!((changed.len(), changed[5].as_str()), (6, "…"));
    }

    #[test]
    fn no_value_of_a_secret_is_shown() {
        let mut rules = Rules::compile(&published(json!({})), &crontab(), "agent").unwrap();
        assert!(!compare(&rules, &json!({}), &json!({}), &[]).confidential);
        (rules.local.group, rules.local.plural) = (String::new(), "secrets".to_owned());
        let source = json!({"data": {"key": "czNjcjN0"}, "metadata": {"annotations": {"copy": "czNjcjN0"}}});
        let comparison = compare(&rules, &source, &json!({"data": {"key": "b3RoZXI="}}), &[]);
        let wanted = [("data.key", None, None, Why::Open), ("metadata.annotations.copy", None, None, Why::Open)];
        assert_eq!(told(&comparison), wanted);
        assert!(comparison.confidential);
    }
}
