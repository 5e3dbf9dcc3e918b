//! Claims: who owns a copy that does not name the kind of its source.
//!
//! The reference agent, and older versions of this one, write no such annotation. That does no harm as long as only one PublishedResource
//! has copies of a kind.

use serde_json::Value;

use super::ObjectAddress;
use super::error::DecideError;
use crate::api::REMOTE_RESOURCE;
use crate::rules::Rules;
use crate::rules::metadata::{SERVICE_SIDE, SourceKey, annotation};
use crate::rules::naming::Workspace;
use std::sync::Arc;

/// Who owns a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It belongs to this source.
    Ours,
    /// It belongs to a source of another kind.
    Theirs,
}

/// Decides who owns a copy whose link leads to a source, given other sources with the same cluster, namespace and name, and their rules.
///
/// The name of the copy decides, because a copy keeps its name. If it does not settle the question, nobody owns the copy.
pub fn claim(
    rules: &Rules,
    key: &SourceKey,
    source: &Value,
    rivals: &[(Arc<Rules>, Value)],
    copy: &Value,
) -> Result<Claim, DecideError> {
    if let Some(resource) = annotation(copy, REMOTE_RESOURCE) {
        return Ok(if resource == rules.remote.resource() { Claim::Ours } else { Claim::Theirs });
    }
    let text = |field: &str| copy["metadata"][field].as_str().map(str::to_owned);
    let (namespace, name) = (text("namespace"), text("name").unwrap_or_default());
    let is_named_by = |rules: &Rules, source: &Value| {
        let named = rules.naming.evaluate(key, Workspace::default(), source);
        named.is_ok_and(|(there, called)| called == name && (there.is_none() || there == namespace))
    };
    let by_us = is_named_by(rules, source);
    let mut claim = Claim::Ours;
    for (theirs, rival) in rivals {
        match (by_us, is_named_by(theirs, rival)) {
            (true, false) => {}
            (false, true) => claim = Claim::Theirs,
            _ => {
                let at = ObjectAddress { side: SERVICE_SIDE, kind: Arc::new(rules.local.clone()), namespace, name };
                return Err(DecideError::Disputed {
                    copy: at.to_string(),
                    ours: rules.remote.resource(),
                    theirs: theirs.remote.resource(),
                });
            }
        }
    }
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::tests::{crontab, published};

    fn rules(group: &str, name: &str) -> Arc<Rules> {
        let spec = json!({"projection": {"group": group}, "naming": {"name": name, "namespace": "ns"}});
        Arc::new(Rules::compile(&published(spec), &crontab(), "agent").unwrap())
    }

    #[test]
    fn a_mark_decides_and_then_the_name_and_then_nobody() {
        let key = SourceKey { cluster: "c".into(), namespace: "default".into(), name: "n".into() };
        let source = json!({"metadata": {"namespace": "default", "name": "n"}});
        let (a, b) = (rules("a.io", "a-{{ .Object.metadata.name }}"), rules("b.io", "b-{{ .Object.metadata.name }}"));
        let copy = |name: &str| json!({"metadata": {"namespace": "ns", "name": name}});
        let ask = |copy: &Value, rivals: &[(Arc<Rules>, Value)]| claim(&a, &key, &source, rivals, copy);
        let rival = [(b, source.clone())];
        assert_eq!(ask(&copy("anything"), &[]).unwrap(), Claim::Ours, "there is nobody else");
        assert_eq!(ask(&copy("a-n"), &rival).unwrap(), Claim::Ours);
        assert_eq!(ask(&copy("b-n"), &rival).unwrap(), Claim::Theirs);
        let disputed = ask(&copy("anything"), &rival).unwrap_err().to_string();
        assert!(disputed.contains("crontabs.a.io") && disputed.contains("crontabs.b.io"), "{disputed}");
        for (mark, expected) in [("crontabs.a.io", Claim::Ours), ("crontabs.b.io", Claim::Theirs)] {
            let mut marked = copy("anything");
            marked["metadata"]["annotations"] = json!({ REMOTE_RESOURCE: mark });
            assert_eq!(ask(&marked, &rival).unwrap(), expected);
        }
    }

    #[test]
    fn a_name_in_another_namespace_is_another_name() {
        let key = SourceKey { cluster: "c".into(), namespace: "default".into(), name: "n".into() };
        let source = json!({"metadata": {"namespace": "default", "name": "n"}});
        let spec = |group: &str, namespace: &str| json!({"projection": {"group": group}, "naming": {"name": "n", "namespace": namespace}});
        let compiled = |spec: Value| Arc::new(Rules::compile(&published(spec), &crontab(), "agent").unwrap());
        let (ours, theirs) = (compiled(spec("a.io", "ns")), compiled(spec("b.io", "theirs")));
        let copy = json!({"metadata": {"namespace": "theirs", "name": "n"}});
        assert_eq!(claim(&ours, &key, &source, &[(theirs, source.clone())], &copy).unwrap(), Claim::Theirs);
    }
}
