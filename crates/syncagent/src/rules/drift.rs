//! Drift: what happens to fields of copies that somebody else changes, by their paths.

use thiserror::Error;

use crate::api::Drift;

/// What happens to a field that has drifted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DriftPolicy {
    /// It stays, and nobody is told.
    #[default]
    Ignore,
    /// It stays, and everybody is told.
    Report,
    /// It is set back.
    Revert,
}

impl DriftPolicy {
    /// Parses the value that users write; nothing said means that it is ignored.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "" | "Ignore" => Some(Self::Ignore),
            "Report" => Some(Self::Report),
            "Revert" => Some(Self::Revert),
            _ => None,
        }
    }
}

/// Why what is said about drift is refused.
#[derive(Debug, Error)]
pub enum DriftError {
    /// A policy has another name.
    #[error("{at} is {policy:?}, but must be Ignore, Report or Revert")]
    Policy {
        /// Where it is said.
        at: String,
        /// The value.
        policy: String,
    },
    /// A path cannot be read, or leads to what cannot drift.
    #[error(
        "{at} is {path:?}, which is no path of a field that an order sets, such as spec.replicas, spec.backup.* or metadata.labels[example.com/tier]"
    )]
    Path {
        /// Where it is said.
        at: String,
        /// The path.
        path: String,
    },
    /// Related objects of the service are not watched for drift: their copies are the consumer's.
    #[error(
        "{at} is only for related objects whose origin is kcp: copies of the service's objects belong to the consumer"
    )]
    Origin {
        /// Where it is said.
        at: String,
    },
}

/// What happens to each field of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriftRules {
    policy: DriftPolicy,
    /// From the longest path to the shortest; of two that are equally long, the later one first.
    fields: Vec<(Vec<String>, DriftPolicy)>,
}

impl DriftRules {
    /// Compiles what a PublishedResource says, at a place that errors name.
    pub fn compile(at: &str, drift: Option<&Drift>) -> Result<Self, DriftError> {
        let Some(drift) = drift else { return Ok(Self::default()) };
        let policy = |at: String, word: &str| {
            DriftPolicy::parse(word).ok_or_else(|| DriftError::Policy { at, policy: word.to_owned() })
        };
        let mut fields = Vec::new();
        for (i, field) in drift.fields.iter().enumerate() {
            let at = format!("{at}.fields[{i}]");
            let keys = keys(&field.path).filter(|keys| can_drift(keys));
            let keys = keys.ok_or_else(|| DriftError::Path { at: format!("{at}.path"), path: field.path.clone() })?;
            fields.push((keys, policy(format!("{at}.policy"), &field.policy)?));
        }
        fields.reverse();
        fields.sort_by_key(|(keys, _)| std::cmp::Reverse(keys.len()));
        Ok(Self { policy: policy(format!("{at}.policy"), &drift.policy)?, fields })
    }

    /// Whether nothing is to be done about any field: then nobody looks, and nothing is remembered for it.
    pub fn is_off(&self) -> bool {
        self.policy == DriftPolicy::Ignore && self.fields.iter().all(|(_, policy)| *policy == DriftPolicy::Ignore)
    }

    /// What happens to a field.
    pub fn of(&self, field: &[String]) -> DriftPolicy {
        let covers = |keys: &[String]| {
            keys.len() <= field.len() && keys.iter().zip(field).all(|(key, there)| key == "*" || key == there)
        };
        self.fields.iter().find(|(keys, _)| covers(keys)).map_or(self.policy, |(_, policy)| *policy)
    }
}

/// The keys of a path: `spec.a`, and `metadata.labels[b.c/d]` where a key has dots itself.
pub fn keys(path: &str) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    let mut rest = path;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        if !key.is_empty() {
            keys.push(key.to_owned());
        }
        match after.strip_prefix('[') {
            Some(quoted) => {
                let (key, after) = quoted.split_once(']')?;
                keys.push(Some(key).filter(|key| !key.is_empty())?.to_owned());
                match after.strip_prefix('.') {
                    Some(after) => rest = after,
                    None if after.is_empty() => return Some(keys),
                    None if after.starts_with('[') => rest = after,
                    None => return None,
                }
            }
            None if key.is_empty() => return None,
            None if after.is_empty() => return Some(keys),
            None => rest = &after[1..],
        }
    }
}

/// Whether an order can set such a field.
fn can_drift(keys: &[String]) -> bool {
    match keys {
        [first, second, ..] if first == "metadata" => second == "labels" || second == "annotations",
        [first, ..] => !["apiVersion", "kind", "metadata", "status"].contains(&first.as_str()),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(drift: serde_json::Value) -> Result<DriftRules, DriftError> {
        DriftRules::compile("spec.drift", Some(&serde_json::from_value(drift).unwrap()))
    }

    #[test]
    fn the_longest_path_decides() {
        let rules = rules(json!({ "policy": "Report", "fields": [
            { "path": "spec.replicas", "policy": "Ignore" },
            { "path": "spec.backup.*", "policy": "Revert" },
            { "path": "spec.backup.schedule", "policy": "Report" },
            { "path": "metadata.labels[example.com/tier]", "policy": "Revert" },
            { "path": "spec.*.size", "policy": "Ignore" },
        ] }))
        .unwrap();
        for (path, policy) in [
            (vec!["spec", "other"], DriftPolicy::Report),
            (vec!["spec", "replicas"], DriftPolicy::Ignore),
            (vec!["spec", "replicas", "least"], DriftPolicy::Ignore),
            (vec!["spec", "backup", "keep", "days"], DriftPolicy::Revert),
            (vec!["spec", "backup"], DriftPolicy::Report),
            (vec!["spec", "backup", "schedule"], DriftPolicy::Report),
            (vec!["spec", "disk", "size"], DriftPolicy::Ignore),
            (vec!["metadata", "labels", "example.com/tier"], DriftPolicy::Revert),
            (vec!["metadata", "labels", "other"], DriftPolicy::Report),
        ] {
            let keys: Vec<String> = path.iter().map(ToString::to_string).collect();
            assert_eq!(rules.of(&keys), policy, "{path:?}");
        }
    }

    #[test]
    fn nobody_looks_where_nothing_is_to_be_done() {
        assert!(DriftRules::default().is_off() && rules(json!({})).unwrap().is_off());
        assert!(rules(json!({ "fields": [{ "path": "spec.a", "policy": "Ignore" }] })).unwrap().is_off());
        assert!(!rules(json!({ "fields": [{ "path": "spec.a", "policy": "Revert" }] })).unwrap().is_off());
        assert!(!rules(json!({ "policy": "Report" })).unwrap().is_off());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        for (path, is_fine) in [
            ("spec", true),
            ("data[a.b]", true),
            ("spec[a.b].c", true),
            ("spec[a.b][c.d]", true),
            ("metadata.annotations.a", true),
            ("", false),
            ("spec..a", false),
            ("spec.", false),
            (".spec", false),
            ("spec[a", false),
            ("spec[]", false),
            ("spec[a]b", false),
            ("status.ready", false),
            ("metadata.name", false),
            ("metadata", false),
            ("kind", false),
        ] {
            let compiled = rules(json!({ "fields": [{ "path": path, "policy": "Report" }] }));
            assert_eq!(compiled.is_ok(), is_fine, "{path}");
            if let Err(error) = compiled {
                assert!(error.to_string().starts_with("spec.drift.fields[0].path is "), "{error}");
            }
        }
        let error = rules(json!({ "policy": "Undo" })).unwrap_err();
        assert_eq!(error.to_string(), "spec.drift.policy is \"Undo\", but must be Ignore, Report or Revert");
    }
}
