//! The order of an object that exists: what consumers would have to write to get it.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::rules::Rules;
use crate::rules::metadata::{SourceKey, WORDS};
use crate::rules::mutation::MutationError;

/// Why there can be no order for an object.
#[derive(Debug, Error)]
pub enum OrderError {
    /// The order would be of a kind that only leads here.
    #[error(
        "spec.implements leads from another API to this kind, and nothing leads back: create the order by hand, \
         with the content that its steps turn into this object"
    )]
    NoWayBack,
    /// The object cannot be converted to the version that consumers have.
    #[error("it cannot be converted to the version that consumers have: {0}")]
    Conversion(#[from] MutationError),
}

/// The order that stands for an object of the service cluster, without status and without what servers write. Labels and annotations that
/// `without` names stay on the object alone; a name that ends in `*` means all that begin like it.
pub fn order(rules: &Rules, object: &Value, key: &SourceKey, without: &[String]) -> Result<Value, OrderError> {
    let reversed = rules.mutation.reversed(object)?.ok_or(OrderError::NoWayBack)?;
    let mut order = WORDS.strip(&reversed);
    if let Some(fields) = order.as_object_mut() {
        fields.retain(|field, _| field != "status" && !rules.subresources.contains(&field.as_str()));
    }
    order["apiVersion"] = rules.remote.api_version().into();
    order["kind"] = rules.remote.kind.as_str().into();
    let metadata = &mut order["metadata"];
    let kept = |field: &str| kept(&metadata[field], without);
    let (labels, annotations) = (kept("labels"), kept("annotations"));
    let mut named = Map::new();
    named.insert("name".to_owned(), (&*key.name).into());
    if rules.remote.namespaced {
        named.insert("namespace".to_owned(), (&*key.namespace).into());
    }
    for (field, entries) in [("labels", labels), ("annotations", annotations)] {
        if !entries.is_empty() {
            named.insert(field.to_owned(), entries.into());
        }
    }
    *metadata = named.into();
    Ok(order)
}

fn kept(entries: &Value, without: &[String]) -> Map<String, Value> {
    let is_left = |key: &str| {
        without.iter().any(|name| match name.strip_suffix('*') {
            Some(start) => key.starts_with(start),
            None => key == name,
        })
    };
    let entries = entries.as_object().into_iter().flatten().filter(|(key, _)| !is_left(key));
    entries.map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::ON_DELETE;
    use crate::rules::tests::{crontab, published};

    fn key() -> SourceKey {
        SourceKey { cluster: "c1".into(), namespace: "team".into(), name: "mine".into() }
    }

    fn object() -> Value {
        json!({
            "apiVersion": "example.com/v1", "kind": "CronTab",
            "metadata": {
                "name": "theirs", "namespace": "prod", "uid": "u", "resourceVersion": "7", "generation": 3,
                "finalizers": ["operator"], "managedFields": [], "creationTimestamp": "t",
                "labels": {"app": "x"}, "annotations": {"tool.io/id": "1", "note": "n", ON_DELETE: "Keep"},
            },
            "spec": {"cronSpec": "* * *"}, "status": {"ready": true},
        })
    }

    #[test]
    fn an_order_has_the_content_and_nothing_of_the_servers() {
        let spec = json!({"projection": {"group": "orders.io", "kind": "Job"}});
        let rules = Rules::compile(&published(spec), &crontab(), "agent").unwrap();
        let made = order(&rules, &object(), &key(), &["tool.io/*".to_owned()]).unwrap();
        let wanted = json!({
            "apiVersion": "orders.io/v1", "kind": "Job",
            "metadata": {"name": "mine", "namespace": "team", "labels": {"app": "x"}, "annotations": {"note": "n"}},
            "spec": {"cronSpec": "* * *"},
        });
        assert_eq!(made, wanted);
    }

    #[test]
    fn a_kind_without_namespaces_in_kcp_has_none_in_its_order() {
        let rules =
            Rules::compile(&published(json!({"projection": {"scope": "Cluster"}})), &crontab(), "agent").unwrap();
        let all = ["app", "note", "tool.io/id"].map(str::to_owned);
        let made = order(&rules, &object(), &SourceKey { namespace: "".into(), ..key() }, &all).unwrap();
        assert_eq!(made["metadata"], json!({"name": "mine"}));
    }
}
