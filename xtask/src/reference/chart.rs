//! The README of a chart: a table of its values, made from the comments in `values.yaml`.

use std::fs;

use serde_json::Value;

use super::markdown::{code, sentence};
use crate::tools;

const MADE: &str = "<!-- Made by `cargo xtask reference` from values.yaml. Edit that. -->";

const AGENT: &str = "\
# api-syncagent

Offers the CRDs of this cluster in kcp, carries consumers' objects here and their status back ([operating it](../../docs/operations/chart.md)).

```console
kubectl create secret generic kcp-kubeconfig --namespace kcp-system --from-file kubeconfig=agent.kubeconfig
helm install storage charts/api-syncagent --namespace kcp-system --set apiExportEndpointSliceName=example.com,kcpKubeconfig=kcp-kubeconfig
helm test storage --namespace kcp-system --logs
```

The values of the reference chart have the same names, defaults and effects, so its values files work unchanged. `charts/package` packages the chart, and pushes it to a registry.
";

const KONNECTOR: &str = "\
# konnector

Joins a cluster to [kube-bind](https://kube-bind.io) providers ([concepts](../../docs/kube-bind/concepts.md)).

```console
helm install konnector charts/konnector --namespace kube-bind --create-namespace
```

The release belongs into namespace `kube-bind`. Its rights are those that `konnector roles` prints; `rbac.bindings` adds those for what is bound. A konnector for a
workspace of kcp, which runs no pods, is told so by `kubeconfig` and may be anywhere. Unknown values are refused.
";

const BACKEND: &str = "\
# kube-bind-backend

Lets other clusters bind the APIs of this one ([operating it](../../docs/kube-bind/backend.md)).

```console
helm install kube-bind charts/kube-bind-backend --namespace kube-bind-system --create-namespace --values values.yaml
```

The values of kube-bind's chart `backend` have the same names and effects, and names and selectors are the same too: `helm upgrade` of its release works. What cannot
have the same effect is refused with the reason:

| value of kube-bind's chart | what happens here |
| --- | --- |
| `backend.clusterScopeIsolation` other than `prefix` and `prefixed` | refused: there it has no effect, and what runs is prefixed. Say what you want in `backend.isolation` |
| `backend.sessionStorage` | refused: replicas share keys by a Secret, there are no sessions to store |
| `backend.oidc.clientSecret`, `backend.cookieSigningKey`, `backend.cookieEncryptionKey` | kept in a Secret instead of in the Deployment |
| `backend.kubeconfig` | the backend then gets no rights on this cluster |
| `gatewayApi` | plain HTTP is redirected to HTTPS, because tokens travel there |
| `image` of older versions of the chart | wins over `backend.image` |

Anything else that is not in the table below is refused, too.
";

/// The README of the agent's chart.
pub fn agent() -> String {
    readme("api-syncagent", AGENT)
}

/// The README of the konnector's chart.
pub fn konnector() -> String {
    readme("konnector", KONNECTOR)
}

/// The README of the backend's chart.
pub fn backend() -> String {
    readme("kube-bind-backend", BACKEND)
}

/// The dashboard for Grafana, which the chart brings along: charts hold nothing from outside of their folder.
pub fn grafana() -> String {
    fs::read_to_string(tools::root().join("docs/dashboards/api-syncagent.json")).unwrap_or_default()
}

fn readme(chart: &str, head: &str) -> String {
    let folder = tools::root().join("charts").join(chart);
    // What cannot be read makes a page that differs from the committed one.
    let values = fs::read_to_string(folder.join("values.yaml")).unwrap_or_default();
    let schema = fs::read_to_string(folder.join("values.schema.json")).unwrap_or_default();
    let schema = serde_json::from_str(&schema).unwrap_or_default();
    let mut page = format!("{MADE}\n\n{head}\n| value | default | what it says |\n| --- | --- | --- |\n");
    for (path, default, comment) in rows(&values, &schema) {
        let default = if default.is_empty() { String::new() } else { code(&default) };
        let comment = if comment.is_empty() { comment } else { sentence(&comment) };
        page += &["| ", &code(&path), " | ", &default, " | ", &comment, " |\n"].concat();
    }
    page
}

/// Every value with its default and its comment; a value with values of its own only if it has a comment.
fn rows(values: &str, schema: &Value) -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut parents: Vec<(usize, String)> = Vec::new();
    let mut free: Option<usize> = None;
    for line in values.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(words) = text.strip_prefix('#') {
            // Examples are further in.
            if !words.starts_with("   ") {
                comment.push(words.trim());
            }
            continue;
        }
        let told = std::mem::take(&mut comment).join(" ");
        let Some((key, value)) = text.split_once(':').filter(|(key, _)| !key.contains([' ', '-'])) else { continue };
        if free.is_some_and(|depth| indent > depth) {
            continue;
        }
        free = None;
        parents.retain(|(depth, _)| *depth < indent);
        let path: Vec<&str> = parents.iter().map(|(_, key)| key.as_str()).chain([key]).collect();
        let name = path.join(".");
        let (value, has_values) = (value.trim(), has_values(schema, &path));
        if value.is_empty() && has_values {
            if !told.is_empty() {
                rows.push((name, String::new(), told));
            }
            parents.push((indent, key.to_owned()));
            continue;
        }
        if value.is_empty() {
            free = Some(indent);
        }
        let default = if matches!(value, "\"\"") { "" } else { value };
        let told = if value.is_empty() && told.is_empty() { "See values.yaml".to_owned() } else { told };
        rows.push((name, default.trim_matches('"').to_owned(), told));
    }
    rows
}

/// Whether the schema names values below a path; everything else is Kubernetes' own.
fn has_values(schema: &Value, path: &[&str]) -> bool {
    let found = path.iter().fold(schema, |at, key| &at["properties"][key]);
    found["properties"].is_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_told_with_their_path_their_default_and_their_comment() {
        let schema = json!({"properties": {"a": {"properties": {"b": {}, "c": {}}}, "d": {"type": "object"}}});
        let values = "# head\n\n# About a,\n# and more.\na:\n  # About b.\n  b: 1\n  c: \"\"\n# About d.\n#   d: example\nd:\n  x:\n    y: 2\ne: []\n";
        let wanted = [
            ("a", "", "About a, and more."),
            ("a.b", "1", "About b."),
            ("a.c", "", ""),
            ("d", "", "About d."),
            ("e", "[]", ""),
        ];
        let rows = rows(values, &schema);
        let rows: Vec<_> =
            rows.iter().map(|(path, default, told)| (path.as_str(), default.as_str(), told.as_str())).collect();
        assert_eq!(rows, wanted);
    }
}
