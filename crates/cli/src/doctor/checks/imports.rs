//! Objects that a PublishedResource selects for import and that are not imported, with a way out for each reason.

use serde_json::Value;

use super::Finding;
use crate::agent_flags::quoted;
use crate::doctor::facts::{Facts, Published, Tool};

/// The condition that reports them.
pub(super) const CONDITION: &str = "ObjectsImported";

/// What the message of the condition says: which object is the first, and why it is refused.
struct Refused<'a> {
    /// `namespace/name`, or `name` for kinds without namespaces.
    object: &'a str,
    /// The reason.
    why: &'a str,
}

impl<'a> Refused<'a> {
    fn read(message: &'a str) -> Option<Self> {
        let (object, why) = message.split_once("the first is ")?.1.split_once(": ")?;
        Some(Self { object, why })
    }

    /// The fields that the order would change.
    fn fields(&self) -> Vec<&'a str> {
        let named = self.why.strip_prefix("its order would change ").and_then(|rest| rest.split_once("; "));
        named.map(|(fields, _)| fields.split(", ").collect()).unwrap_or_default()
    }
}

/// A finding for the condition, with the ways out that fit the reason.
pub(super) fn refused(one: &Published, message: &str, text: String, facts: &Facts, tool: &Tool) -> Finding {
    let found = Finding::amber(text).id("objects-not-imported");
    let import = &one.object["spec"]["import"];
    let command = |what: &str| facts.carrick(&format!("import {} {what}{}", one.name, flags(import)));
    let labels = labels(import);
    let Some(refused) = Refused::read(message) else {
        let all = labels.map_or("--all".to_owned(), |labels| format!("-l {}", quoted(&labels.join(","))));
        return found.fixes(command(&format!("{all} --dry-run")));
    };
    let object = quoted(refused.object);
    let on_it = |verb: &str, change: &str| {
        let (namespace, name) = refused.object.split_once('/').unwrap_or(("", refused.object));
        let at = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
        format!("{verb} {} {name}{at} {change}", resource(one))
    };
    let fields = refused.fields();
    let found = if refused.why.contains("annotation syncagent.kcp.io/on-delete") {
        let remove = on_it("annotate", "syncagent.kcp.io/on-delete-");
        found.fix("# if nobody's order stands behind it any more:").by(tool, &remove)
    } else if fields.is_empty() {
        found
            .fix("# what stands in the way of it, and what it would become:")
            .fixes(command(&format!("{object} --dry-run")))
    } else {
        let accept: String = fields.iter().fold(String::new(), |text, field| text + " --accept " + &quoted(field));
        let differ =
            format!("# change {} on the object or by the rules; or, if the change is meant:", fields.join(" and "));
        found.fix(differ).fixes(command(&format!("{object}{accept} --dry-run")))
    };
    match labels.as_deref() {
        Some([first, ..]) => {
            let key = first.split('=').next().unwrap_or_default();
            found.fix("# if it is not to be imported:").by(tool, &on_it("label", &format!("{key}-")))
        }
        _ => found,
    }
}

/// Where the orders belong, as spec.import says.
fn flags(import: &Value) -> String {
    let fields = [("to", "to"), ("namespace", "order-namespace"), ("name", "order-name"), ("onDelete", "on-delete")];
    let given = fields.into_iter().filter_map(|(field, flag)| {
        let value = import[field].as_str().filter(|value| !value.is_empty())?;
        Some(format!(" --{flag} {}", quoted(value)))
    });
    let without = import["without"].as_array().into_iter().flatten().filter_map(Value::as_str);
    given.chain(without.map(|key| format!(" --without {}", quoted(key)))).collect()
}

/// The labels that select objects, if nothing else does.
fn labels(import: &Value) -> Option<Vec<String>> {
    let selector = &import["selector"];
    if selector["matchExpressions"].as_array().is_some_and(|all| !all.is_empty()) {
        return None;
    }
    let labels = selector["matchLabels"].as_object()?;
    let all = labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    Some(all.collect::<Vec<_>>()).filter(|all| !all.is_empty())
}

/// The kind, as kubectl takes it.
fn resource(one: &Published) -> String {
    if let Some(crd) = &one.crd {
        return crd.name.clone();
    }
    let text = |field: &str| one.object["spec"]["resource"][field].as_str().unwrap_or_default();
    match (text("kind"), text("apiGroup")) {
        (kind, "") => kind.to_owned(),
        (kind, group) => format!("{kind}.{group}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_that_are_not_imported_get_the_way_out_of_their_reason() {
        let found = |why: &str, selector: &Value| {
            let import =
                json!({ "selector": selector, "to": "root:{{ .Object.metadata.name }}", "without": ["import"] });
            let object =
                json!({ "spec": { "resource": { "apiGroup": "example.com", "kind": "Bucket" }, "import": import } });
            let one = Published {
                name: "buckets".to_owned(),
                problem: None,
                doubts: Vec::new(),
                pr: None,
                object,
                crd: None,
                schema: None,
            };
            let tool = Tool { kubectl: "kubectl".to_owned(), note: None };
            refused(&one, why, "buckets: no".to_owned(), &Facts::default(), &tool)
        };
        let labelled = json!({ "matchLabels": { "import": "yes" } });
        let to = "--to 'root:{{ .Object.metadata.name }}' --without import";
        let first = |why: &str| format!("2 objects are not imported, the first is own/db: {why}.");
        let cases = [
            (
                first(
                    "its order would change spec.size, spec.a[b]; change the rules or the object, or use carrick import",
                ),
                vec![
                    "# change spec.size and spec.a[b] on the object or by the rules; or, if the change is meant:"
                        .to_owned(),
                    format!("carrick import buckets own/db --accept spec.size --accept 'spec.a[b]' --dry-run {to}"),
                    "# if it is not to be imported:".to_owned(),
                    "kubectl label Bucket.example.com db -n own import-".to_owned(),
                ],
            ),
            (
                first(
                    "its annotation syncagent.kcp.io/on-delete says that it was the copy of an order; remove that annotation, or use carrick import",
                ),
                vec![
                    "# if nobody's order stands behind it any more:".to_owned(),
                    "kubectl annotate Bucket.example.com db -n own syncagent.kcp.io/on-delete-".to_owned(),
                    "# if it is not to be imported:".to_owned(),
                    "kubectl label Bucket.example.com db -n own import-".to_owned(),
                ],
            ),
            (
                first("there is no workspace root:db"),
                vec![
                    "# what stands in the way of it, and what it would become:".to_owned(),
                    format!("carrick import buckets own/db --dry-run {to}"),
                    "# if it is not to be imported:".to_owned(),
                    "kubectl label Bucket.example.com db -n own import-".to_owned(),
                ],
            ),
            ("other words".to_owned(), vec![format!("carrick import buckets -l import=yes --dry-run {to}")]),
        ];
        for (message, wanted) in cases {
            let found = found(&message, &labelled);
            assert_eq!((found.id, found.fix), (Some("objects-not-imported"), wanted), "{message}");
        }
        let expressed = json!({ "matchExpressions": [{ "key": "import", "operator": "Exists" }] });
        let found = found(&first("no"), &expressed);
        assert!(!found.fix.iter().any(|line| line.contains("kubectl label")), "{found:?}");
    }
}
