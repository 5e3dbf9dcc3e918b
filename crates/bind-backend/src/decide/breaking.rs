//! Which change of a schema breaks consumers.

use carrick_bind_api::v1alpha2::BoundSchemaSpec;
use carrick_schema::evolution::{Class, Definition, diff};
use serde_json::{Value, json};

/// As much as people read in a condition.
const LONGEST: usize = 1024;

/// What would break for a consumer if its schema became the new one; none if nothing would. Objects that were fine must stay so: a consumer has no say
/// in it, and its own objects would be refused.
pub fn breaks(old: &BoundSchemaSpec, new: &BoundSchemaSpec) -> Option<String> {
    let (old, new) = match (definition(old), definition(new)) {
        (Ok(old), Ok(new)) => (old, new),
        // Whatever it is, a consumer can do nothing with it.
        (Err(problem), _) | (_, Err(problem)) => return Some(problem),
    };
    let report = diff(&old, &new);
    (report.class > Class::Compatible).then(|| report.summary(LONGEST))
}

/// The definition that a BoundSchema stands for.
fn definition(spec: &BoundSchemaSpec) -> Result<Definition, String> {
    let mut spec = serde_json::to_value(spec).map_err(|error| error.to_string())?;
    for version in spec["versions"].as_array_mut().into_iter().flatten() {
        if version["schema"].get("openAPIV3Schema").is_none() {
            // Schemas that come from kcp are not wrapped.
            let bare = version["schema"].take();
            version["schema"] = json!({"openAPIV3Schema": bare});
        }
    }
    let document: Value =
        json!({"kind": "CustomResourceDefinition", "metadata": {"name": spec["names"]["plural"]}, "spec": spec});
    Definition::read(&document).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(schema: &Value, wrapped: bool) -> BoundSchemaSpec {
        let schema = if wrapped { json!({"openAPIV3Schema": schema}) } else { schema.clone() };
        serde_json::from_value(json!({"informerScope": "Cluster", "group": "wild.io", "scope": "Namespaced",
            "names": {"kind": "Sheriff", "plural": "sheriffs"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}}]}))
        .unwrap()
    }

    /// A change, and where it is said to be.
    type Broken<'a> = (&'a dyn Fn(&mut Value), &'a str);

    #[test]
    fn only_what_takes_something_away_breaks() {
        let old = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "enum": ["x", "y"]}, "n": {"type": "integer", "maximum": 5},
            "l": {"type": "array", "items": {"type": "object", "properties": {"q": {"type": "string"}}}}}});
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut new = old.clone();
            change(&mut new);
            // The spelling of kcp and that of CRDs mean the same.
            let answers = [(true, true), (true, false), (false, true)]
                .map(|(before, after)| breaks(&spec(&old, before), &spec(&new, after)));
            assert!(answers.iter().all(|it| *it == answers[0]), "{answers:?}");
            answers[0].clone()
        };
        let fine: [&dyn Fn(&mut Value); 5] = [
            &|_| {},
            &|it| it["properties"]["b"] = json!({"type": "string"}),
            &|it| it["required"] = json!([]),
            &|it| it["properties"]["a"]["enum"] = json!(["x", "y", "z"]),
            &|it| it["properties"]["n"]["maximum"] = json!(9),
        ];
        for change in fine {
            assert_eq!(changed(change), None);
        }
        let broken: [Broken<'_>; 7] = [
            (&|it| it["properties"]["a"] = json!({"type": "integer"}), "v1.a: "),
            (&|it| drop(it["properties"].as_object_mut().unwrap().remove("n")), "v1.n: "),
            (&|it| it["required"] = json!(["a", "n"]), "v1.n: "),
            (&|it| it["properties"]["a"]["enum"] = json!(["x"]), "v1.a: "),
            (&|it| it["properties"]["n"]["maximum"] = json!(4), "v1.n: "),
            (&|it| it["properties"]["l"]["items"]["properties"] = json!({}), "v1.l[].q: "),
            (&|it| it["x-kubernetes-validations"] = json!([{"rule": "has(self.n)"}]), "has(self.n)"),
        ];
        for (change, said) in broken {
            let problem = changed(change).unwrap();
            assert!(problem.contains(said), "{problem}");
        }
    }

    #[test]
    fn scope_versions_and_subresources_belong_to_it() {
        let old = spec(&json!({"type": "object"}), true);
        let mut cluster = old.clone();
        cluster.scope = serde_json::from_value(json!("Cluster")).unwrap();
        let mut unserved = old.clone();
        unserved.versions[0].served = false;
        let mut without = old.clone();
        without.versions[0].subresources = serde_json::from_value(json!({})).unwrap();
        for (new, said) in [(cluster, "scope: "), (unserved, "v1: "), (without, "subresources")] {
            let problem = breaks(&old, &new).unwrap();
            assert!(problem.contains(said), "{problem}");
        }
        assert_eq!(breaks(&old, &old), None);
    }
}
