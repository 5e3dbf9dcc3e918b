//! Whether copies of different objects can get in each other's way.

use carrick_syncagent::rules::fields::is_namespaced_in_kcp;
use carrick_syncagent::rules::metadata::SourceKey;
use carrick_syncagent::rules::naming::Naming;
use serde_json::{Value, json};

use super::Finding;
use crate::doctor::facts::{Facts, Published};

/// A consumer's object: workspace, namespace, name.
type Sample = (&'static str, &'static str, &'static str);

/// Objects that must have different copies, and a description of each case.
const CASES: [(Sample, Sample, &str); 4] = [
    (("c1", "n1", "a"), ("c2", "n1", "a"), "of the same name in two workspaces"),
    (("c1", "n1", "a"), ("c1", "n2", "a"), "of the same name in two namespaces"),
    (("c1", "n1", "a"), ("c1", "n1", "b"), "of different names"),
    (("c1", "n-x", "a"), ("c1", "n", "x-a"), "such as n-x/a and n/x-a"),
];

const FIX: &str =
    "leave out spec.naming, or use all of .ClusterName, .Object.metadata.namespace and .Object.metadata.name in it:
  naming:
    namespace: \"{{ .ClusterName }}\"
    name: \"{{ .Object.metadata.namespace | sha3short }}-{{ .Object.metadata.name | sha3short }}\"";

pub(super) fn naming(facts: &Facts) -> Vec<Finding> {
    let known: Vec<_> = facts.published().iter().filter_map(|one| Some((one, rules(one)?))).collect();
    let mut found: Vec<Finding> = known.iter().filter_map(|(one, rules)| of_one(one, rules)).collect();
    for (at, (one, rules)) in known.iter().enumerate() {
        let kind = |one: &Published| one.pr.as_ref().map(|pr| pr.spec.resource.clone());
        let same = |(other, _): &&(&Published, Naming)| {
            kind(one).zip(kind(other)).is_some_and(|(a, b)| (a.api_group, a.kind) == (b.api_group, b.kind))
        };
        for (other, others) in known[at + 1..].iter().filter(same) {
            if let (Some(a), Some(b)) = (place(one, rules, CASES[0].0), place(other, others, CASES[0].0))
                && a == b
            {
                let text = format!(
                    "{} and {} publish the same kind and give copies the same name: {}",
                    one.name,
                    other.name,
                    shown(&a)
                );
                found.push(
                    Finding::amber(text)
                        .id("naming-same-place")
                        .fix("put the name of the PublishedResource into spec.naming.namespace of one of them"),
                );
            }
        }
    }
    if found.is_empty() && !known.is_empty() {
        found.push(Finding::green(format!("copies are kept apart ({} checked)", known.len())));
    }
    found
}

fn rules(one: &Published) -> Option<Naming> {
    let (pr, crd) = (one.pr.as_ref()?, one.crd.as_ref()?);
    let naming = pr.spec.naming.clone().unwrap_or_default();
    Naming::compile(&naming, crd.is_namespaced(), remote_namespaced(one)?).ok()
}

/// Whether objects in kcp live in namespaces.
fn remote_namespaced(one: &Published) -> Option<bool> {
    let (pr, crd) = (one.pr.as_ref()?, one.crd.as_ref()?);
    Some(is_namespaced_in_kcp(pr, crd.is_namespaced()))
}

fn of_one(one: &Published, rules: &Naming) -> Option<Finding> {
    let namespaced = remote_namespaced(one)?;
    let cases = CASES.iter().filter(|(a, b, _)| namespaced || a.1 == b.1);
    let mut collisions = cases.filter_map(|(a, b, what)| {
        let (a, b) = (place(one, rules, *a)?, place(one, rules, *b)?);
        (a == b).then(|| format!("{what} get the same copy, {}", shown(&a)))
    });
    let collision = collisions.next()?;
    let text = format!("{}: objects {collision}; the second one is refused", one.name);
    Some(Finding::amber(text).id("naming-collides").fix(FIX))
}

/// Where the copy of an object goes; `None` if the rules use fields that the sample lacks.
fn place(one: &Published, rules: &Naming, (cluster, namespace, name): Sample) -> Option<(Option<String>, String)> {
    let namespace = if remote_namespaced(one)? { namespace } else { "" };
    let mut metadata = json!({ "name": name });
    if !namespace.is_empty() {
        metadata["namespace"] = Value::from(namespace);
    }
    let object = json!({ "metadata": metadata, "spec": {}, "status": {} });
    let source = SourceKey { cluster: cluster.into(), namespace: namespace.into(), name: name.into() };
    let path = format!("root:{cluster}");
    let workspace = carrick_syncagent::rules::naming::Workspace { path: Some(&path), consumer: None };
    rules.evaluate(&source, workspace, &object).ok()
}

fn shown((namespace, name): &(Option<String>, String)) -> String {
    namespace.as_ref().map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use carrick_syncagent::rules::crd::Crd;

    use super::super::Severity::{Amber, Green};
    use super::*;

    fn published(name: &str, scope: &str, naming: &Value) -> Published {
        let crd = json!({
            "metadata": { "name": "buckets.example.com" },
            "spec": { "group": "example.com", "scope": scope, "names": { "plural": "buckets", "kind": "Bucket" } },
        });
        let spec = json!({ "resource": { "apiGroup": "example.com", "kind": "Bucket" }, "naming": naming });
        Published {
            name: name.to_owned(),
            problem: None,
            doubts: Vec::new(),
            pr: Some(Arc::new(serde_json::from_value(json!({ "spec": spec })).unwrap())),
            object: Value::Null,
            crd: Some(Arc::new(Crd::from_json(&crd).unwrap())),
            schema: None,
        }
    }

    fn found(published: Vec<Published>) -> Vec<Finding> {
        naming(&Facts { published: Some(Ok(published)), ..Facts::default() })
    }

    #[test]
    fn names_that_do_not_keep_objects_apart_are_reported() {
        let (cluster, namespace, name) =
            ("{{ .ClusterName }}", "{{ .Object.metadata.namespace }}", "{{ .Object.metadata.name }}");
        let cases = [
            (json!({}), None),
            (json!({ "name": name, "namespace": format!("{cluster}-{namespace}") }), None),
            (json!({ "name": "$remoteName", "namespace": "$remoteClusterName-$remoteNamespaceHash" }), None),
            (json!({ "name": name, "namespace": format!("synced-{namespace}") }), Some("in two workspaces")),
            (json!({ "name": name, "namespace": cluster }), Some("in two namespaces")),
            (json!({ "name": "fixed", "namespace": format!("{cluster}-{namespace}") }), Some("of different names")),
            (json!({ "name": format!("{namespace}-{name}"), "namespace": cluster }), Some("n-x/a and n/x-a")),
        ];
        for (naming, wanted) in cases {
            let found = found(vec![published("one", "Namespaced", &naming)]);
            assert_eq!(found.len(), 1, "{naming}");
            match wanted {
                None => assert_eq!(found[0].severity, Green, "{naming}: {found:?}"),
                Some(wanted) => {
                    assert_eq!(found[0].severity, Amber, "{naming}");
                    assert!(found[0].text.contains(wanted), "{naming}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn objects_without_a_namespace_need_no_namespace_in_their_name() {
        assert_eq!(found(vec![published("one", "Cluster", &json!({}))])[0].severity, Green);
    }

    #[test]
    fn two_for_one_kind_must_not_name_alike() {
        let both = vec![published("one", "Namespaced", &json!({})), published("two", "Namespaced", &json!({}))];
        let told = found(both);
        assert!(told[0].severity == Amber && told[0].text.starts_with("one and two publish the same kind"), "{told:?}");
        let apart = json!({ "namespace": "two-{{ .ClusterName }}" });
        let both = vec![published("one", "Namespaced", &json!({})), published("two", "Namespaced", &apart)];
        assert_eq!(found(both)[0].severity, Green);
    }
}
