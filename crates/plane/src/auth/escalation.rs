//! Privilege escalation is refused: whoever writes or binds a role must hold its rules, or have the verb `escalate` or `bind` on it.

use serde_json::Value;

use super::rbac::{self, Rights};
use crate::caller::Caller;
use crate::request::Attributes;
use crate::status::Status;
use crate::store::Store;

const GROUP: &str = "rbac.authorization.k8s.io";

/// A role or binding somebody wants to write.
#[derive(Debug)]
pub struct Grant<'a> {
    /// `roles`, `clusterroles`, `rolebindings` or `clusterrolebindings`.
    pub plural: &'a str,
    /// Namespace or empty.
    pub namespace: &'a str,
    /// The new object.
    pub object: &'a Value,
    /// The current object.
    pub old: Option<&'a Value>,
}

/// Checks a write to a role or binding by a caller with these rights.
pub fn check(store: &Store, rights: &Rights<'_>, caller: &Caller, grant: &Grant<'_>) -> Result<(), Status> {
    if caller.system || caller.is_in("system:masters") {
        return Ok(());
    }
    let name = grant.object["metadata"]["name"].as_str().unwrap_or_default();
    let may = |verb: &str, plural: &str, name: &str| {
        let attributes = Attributes {
            verb: verb.into(),
            group: GROUP.into(),
            version: "v1".into(),
            resource: plural.into(),
            namespace: grant.namespace.into(),
            name: name.into(),
            ..Attributes::default()
        };
        rbac::allowed(store, rights, &attributes)
    };
    let same = |field: &str| grant.old.is_some_and(|old| old[field] == grant.object[field]);
    let (wanted, allowed) = if grant.plural.ends_with("bindings") {
        if same("subjects") && same("roleRef") {
            return Ok(());
        }
        let role = &grant.object["roleRef"];
        let role_name = role["name"].as_str().unwrap_or_default();
        let plural = if role["kind"] == "Role" { "roles" } else { "clusterroles" };
        if may("bind", plural, role_name) {
            return Ok(());
        }
        let rules = rbac::referenced(store, rights, grant.namespace, role);
        (rules.ok_or_else(|| Status::not_found(GROUP, plural, role_name))?, false)
    } else {
        if same("rules") && same("aggregationRule") {
            return Ok(());
        }
        let mut rules = grant.object["rules"].as_array().cloned().unwrap_or_default();
        if grant.object["aggregationRule"].is_object() && !same("aggregationRule") {
            // An aggregated role may later select any role.
            rules.push(serde_json::json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}));
            rules.push(serde_json::json!({"nonResourceURLs": ["*"], "verbs": ["*"]}));
        }
        (rules, may("escalate", grant.plural, name))
    };
    if allowed {
        return Ok(());
    }
    let (held, _) = rbac::rules(store, rights, grant.namespace);
    let missing: Vec<Value> =
        wanted.iter().flat_map(single).filter(|one| !held.iter().any(|held| covers(held, one))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let groups: Vec<String> = caller.groups.iter().map(|group| format!("{group:?}")).collect();
    let lines: Vec<String> = missing.iter().map(shown).collect();
    let why = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        caller.user,
        groups.join(" "),
        lines.join("\n")
    );
    Err(Status::forbidden(GROUP, grant.plural, name, &why))
}

fn texts<'a>(rule: &'a Value, key: &str) -> Vec<&'a str> {
    rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Splits a rule into rules with one verb, one group, one resource and one name, or one URL.
fn single(rule: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for verb in texts(rule, "verbs") {
        for url in texts(rule, "nonResourceURLs") {
            all.push(serde_json::json!({"verbs": [verb], "nonResourceURLs": [url]}));
        }
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                let one = serde_json::json!({"verbs": [verb], "apiGroups": [group], "resources": [resource]});
                let names = texts(rule, "resourceNames");
                if names.is_empty() {
                    all.push(one.clone());
                }
                for name in names {
                    let mut one = one.clone();
                    one["resourceNames"] = serde_json::json!([name]);
                    all.push(one);
                }
            }
        }
    }
    all
}

/// Whether a held rule includes a single one.
fn covers(held: &Value, one: &Value) -> bool {
    let has = |key: &str, wanted: &str| texts(held, key).iter().any(|found| *found == "*" || *found == wanted);
    let first = |key: &str| texts(one, key).first().copied();
    if !first("verbs").is_some_and(|verb| has("verbs", verb)) {
        return false;
    }
    if let Some(url) = first("nonResourceURLs") {
        let fits = |held: &&str| *held == url || held.strip_suffix('*').is_some_and(|prefix| url.starts_with(prefix));
        return texts(held, "nonResourceURLs").iter().any(fits);
    }
    let (Some(group), Some(resource)) = (first("apiGroups"), first("resources")) else { return false };
    let subresource = resource.split_once('/').map(|(_, sub)| sub);
    let any_sub = |held: &&str| held.strip_prefix("*/").is_some_and(|sub| Some(sub) == subresource);
    let names = texts(held, "resourceNames");
    has("apiGroups", group)
        && (has("resources", resource) || texts(held, "resources").iter().any(any_sub))
        && (names.is_empty() || first("resourceNames").is_some_and(|name| names.contains(&name)))
}

/// A rule as Kubernetes prints it.
fn shown(rule: &Value) -> String {
    let mut parts = Vec::new();
    let names = [
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("ResourceNames", "resourceNames"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("Verbs", "verbs"),
    ];
    for (title, key) in names {
        let list: Vec<String> = texts(rule, key).iter().map(|text| format!("{text:?}")).collect();
        if !list.is_empty() {
            parts.push(format!("{title}:[{}]", list.join(" ")));
        }
    }
    format!("{{{}}}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_covers_what_it_includes() {
        let rule = |groups: &[&str], resources: &[&str], names: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "resourceNames": names, "verbs": verbs});
        let get = rule(&[""], &["secrets"], &[], &["get"]);
        let one = rule(&[""], &["secrets"], &["a"], &["get"]);
        let cases = [
            (&get, &get, true),
            (&get, &one, true),
            (&one, &get, false),
            (&rule(&["*"], &["*"], &[], &["*"]), &get, true),
            (&rule(&["apps"], &["*"], &[], &["*"]), &get, false),
            (&rule(&[""], &["secrets"], &[], &["list"]), &get, false),
            (&rule(&[""], &["*/status"], &[], &["get"]), &rule(&[""], &["pods/status"], &[], &["get"]), true),
            (&rule(&[""], &["pods"], &[], &["get"]), &rule(&[""], &["pods/status"], &[], &["get"]), false),
            (
                &json!({"nonResourceURLs": ["/a/*"], "verbs": ["get"]}),
                &json!({"nonResourceURLs": ["/a/b"], "verbs": ["get"]}),
                true,
            ),
            (
                &json!({"nonResourceURLs": ["/a"], "verbs": ["get"]}),
                &json!({"nonResourceURLs": ["*"], "verbs": ["get"]}),
                false,
            ),
        ];
        for (held, wanted, expected) in cases {
            let found = single(wanted).iter().all(|one| covers(held, one));
            assert_eq!(found, expected, "{held} {wanted}");
        }
    }
}
