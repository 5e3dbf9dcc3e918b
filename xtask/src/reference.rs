//! The reference pages, made from the tables of the crates, and what charts have of the code.

mod bind;
mod chart;
mod fields;
mod markdown;
mod refusals;
mod set_up;
mod supported;

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use carrick_json::path::reference as paths;

use crate::tools;
use markdown::{capital, code, sentence};

/// One row of a page.
struct TableRow {
    group: &'static str,
    usage: &'static str,
    summary: &'static str,
    example: Option<(&'static str, &'static str)>,
}

/// The crates have an entry type each, with the same fields; the second one is what to call an entry by.
macro_rules! rows {
    ($entries:expr, $usage:ident) => {
        $entries
            .into_iter()
            .map(|e| TableRow { group: e.group, usage: e.$usage, summary: e.summary, example: e.example })
            .collect::<Vec<TableRow>>()
    };
}

/// Writes the pages.
pub fn write() -> anyhow::Result<()> {
    for (file, page) in pages() {
        fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
        println!("wrote {}", file.strip_prefix(tools::root()).unwrap_or(&file).display());
    }
    Ok(())
}

/// Every page and where it belongs.
fn pages() -> Vec<(PathBuf, String)> {
    let folder = tools::root().join("docs/reference");
    let documents = [
        ("reading", paths::DOCUMENT, "and lead to what is behind the arrow"),
        ("writing", paths::SMALL, "and leave behind what is behind the arrow"),
    ];
    let documents = documents.map(|(what, document, result)| {
        format!("Examples of {what} start from this document, {result}:\n\n```json\n{document}\n```\n")
    });
    vec![
        (folder.join("templates.md"), templates()),
        (folder.join("cel.md"), page(CEL, &rows!(carrick_cel::reference::entries(), usage))),
        (folder.join("flags.md"), flags()),
        (folder.join("metrics.md"), metrics()),
        (folder.join("paths.md"), page(&format!("{PATHS}\n{}", documents.join("\n")), &rows!(paths::entries(), name))),
        (folder.join("kube-bind-flags.md"), bind::flags()),
        (folder.join("publishedresource.md"), fields::page()),
        (folder.join("refusals.md"), refusals::page()),
        (folder.join("supported.md"), supported::page()),
        (tools::root().join("docs/set-up.sh"), set_up::script()),
        (tools::root().join("charts/kube-bind-backend/files/crds.json"), bind::crds()),
        (tools::root().join("charts/api-syncagent/README.md"), chart::agent()),
        (tools::root().join("charts/api-syncagent/files/grafana.json"), chart::grafana()),
        (tools::root().join("charts/konnector/README.md"), chart::konnector()),
        (tools::root().join("charts/kube-bind-backend/README.md"), chart::backend()),
    ]
}

const MADE: &str = "<!-- Made by `cargo xtask reference` from the tables that implement the language. Edit those. -->";

const TEMPLATES: &str = "\
# Functions of templates

Templates are Go's [text/template](https://pkg.go.dev/text/template), with the functions below: Go's own, those of
[sprig](https://masterminds.github.io/sprig/), and three for hashes. In mutations a missing value prints nothing instead of `<no value>`.

| rule of a PublishedResource | fields of the data |
| --- | --- |
| `naming` | `.Object`, `.ClusterName`, `.ClusterPath`, `.ConsumerCluster` |
| `related[].object.template`, `related[].object.namespace.template` | `.Side` (`kcp` or `service`), `.Object`, `.ClusterName`, `.ClusterPath` |
| labels of selectors | `.LocalObject`, `.RemoteObject`, `.ClusterName`, `.ClusterPath` |
| `rewrite.template` | `.Value`, `.RelatedObject`, `.LocalObject`, `.RemoteObject`, `.ClusterName`, `.ClusterPath` |
| `mutation` | `.Value` (what the path leads to), `.LocalObject` (the object that is changed), `.RemoteObject` (the other one) |

Try one: `carrick toolkit template --data object.yaml '{{ .Object.metadata.name | sha3short }}'` ([more](../toolkit.md)).
";

const CEL: &str = "\
# Functions of CEL expressions

Expressions of mutations have the variables `value` (what is at the path), `self` (the object that is changed) and `other` (the
object on the other side); their result is written to the path. Validation rules of CRDs have `self` and `oldSelf` and give a boolean.
Numbers of `value` are doubles where that works, and integers otherwise.

Try one: `carrick toolkit cel --self object.yaml 'self.spec.replicas + 1'` ([more](../toolkit.md)).
";

const PATHS: &str = "\
# Paths

Paths say where in an object a mutation or reference finds its value. Reading follows [gjson](https://github.com/tidwall/gjson),
writing and deleting follow [sjson](https://github.com/tidwall/sjson).

Try one: `carrick toolkit path get --data object.yaml 'spec.items.#.name'` ([more](../toolkit.md)).
";

const METRICS: &str = "\
# Metrics

The agent serves these in Prometheus' text format at `/metrics` of `--metrics-address` (`127.0.0.1:8085` unless told otherwise).
[A dashboard for Grafana](../dashboards/api-syncagent.json) shows them.

Histograms have `_bucket`, `_sum` and `_count`. Names that begin with `controller_runtime_`, `workqueue_`, `rest_client_` and
`leader_election_` are those of other Kubernetes controllers, so that their dashboards and alerts work; `carrick_` are those of
the library for controllers over many clusters. No metric holds content of objects.
";

const MADE_OF_CODE: &str = "<!-- Made by `cargo xtask reference` from the tables in the code. Edit those. -->";

const FLAGS: &str = "\
# Flags of api-syncagent

`--flag value` and `--flag=value` both work; booleans are `--flag` or `--flag=false`; lists are separated by commas, repeated, or both. If a flag is repeated,
the last one wins.
";

const REFUSED: &str = "\
## Refused

The agent renders a rule whenever it compares, so a function whose result is different each time would make it write for ever. These are functions of sprig;
a rule that names one is not valid, and the condition `RulesValid` says so. The random functions above (`randAlphaNum`, `shuffle`, `uuidv4` …) may be part of names,
which are made once, and of mutations, where `.RemoteObject` holds what was made before: `{{ if .RemoteObject }}{{ .RemoteObject.spec.id }}{{ else }}{{ randAlphaNum 16 }}{{ end }}`.
They are refused everywhere else.

| function | why, and what to do instead |
| --- | --- |
";

/// All functions of templates, and those that are refused.
fn templates() -> String {
    let mut page = page(TEMPLATES, &rows!(carrick_template::reference::entries(), usage));
    page.push('\n');
    page.push_str(REFUSED);
    for (name, reason) in carrick_template::reference::refused() {
        page += &["| ", &code(name), " | ", &sentence(reason), " |\n"].concat();
    }
    page
}

/// One row for each flag of the agent.
fn flags() -> String {
    let mut page =
        format!("{MADE_OF_CODE}\n\n{FLAGS}\n| flag | value | default | what it does |\n| --- | --- | --- | --- |\n");
    let command = <carrick_syncagent::options::Options as clap::CommandFactory>::command();
    for flag in command.get_arguments() {
        let Some(name) = flag.get_long() else { continue };
        let values = flag.get_value_names().unwrap_or_default();
        let value = values.first().map(|name| name.to_lowercase()).unwrap_or_default();
        page += &markdown::flag(&code(&format!("--{name}")), &value, flag);
    }
    page
}

/// One row for each metric.
fn metrics() -> String {
    let mut page =
        format!("{MADE_OF_CODE}\n\n{METRICS}\n| metric | type | labels | what it tells |\n| --- | --- | --- | --- |\n");
    for (name, kind, labels, help) in carrick_syncagent::agent::metrics::names() {
        page += &["| ", &code(name), " | ", kind, " | ", &labels, " | ", &sentence(help), " |\n"].concat();
    }
    page + &bind::metrics()
}

/// An introduction and a table for each group, in the order in which the groups begin.
fn page(introduction: &str, entries: &[TableRow]) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for entry in entries {
        if !groups.contains(&entry.group) {
            groups.push(entry.group);
        }
    }
    let mut page = format!("{MADE}\n\n{introduction}");
    for group in groups {
        page += &["\n## ", &capital(group), "\n\n| use | what it does |\n| --- | --- |\n"].concat();
        for entry in entries.iter().filter(|entry| entry.group == group) {
            let usage: Vec<String> = entry.usage.lines().map(code).collect();
            let example = entry.example.map(|(input, output)| format!("<br>{} → {}", code(input), code(output)));
            let example = example.unwrap_or_default();
            page += &["| ", &usage.join("<br>"), " | ", &sentence(entry.summary), &example, " |\n"].concat();
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_those_that_the_code_makes() {
        for (file, page) in pages() {
            let committed = fs::read_to_string(&file).unwrap_or_default();
            assert!(committed == page, "{} is stale: run `cargo xtask reference`", file.display());
        }
    }

    /// Names of metrics in an expression: words with an underscore, outside of labels and quotes, that are neither a function nor a variable of Grafana.
    fn metrics_of(expression: &str) -> Vec<&str> {
        let outside = expression.split('{').enumerate().filter_map(|(number, part)| {
            if number == 0 { Some(part) } else { part.split_once('}').map(|(_, rest)| rest) }
        });
        let words = outside.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'));
        words.filter(|word| word.contains('_') && !word.starts_with('_') && *word != "histogram_quantile").collect()
    }

    #[test]
    fn dashboard_and_alerts_name_only_metrics_that_exist() {
        let known: Vec<String> = carrick_syncagent::agent::metrics::names()
            .into_iter()
            .flat_map(|(name, kind, ..)| match kind {
                "histogram" => vec![format!("{name}_bucket"), format!("{name}_sum"), format!("{name}_count")],
                _ => vec![name.to_owned()],
            })
            .collect();
        let read = |file: &str| fs::read_to_string(tools::root().join(file)).unwrap();
        let dashboard: serde_json::Value = serde_json::from_str(&read("docs/dashboards/api-syncagent.json")).unwrap();
        let panels = dashboard["panels"].as_array().unwrap().iter();
        let shown = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
        let shown: Vec<String> = shown.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
        // Alerts, as the chart renders them and as the page shows them.
        let alerts = |file: &str| -> Vec<String> {
            read(file).lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(str::to_owned).collect()
        };
        for (expressions, least) in
            [(shown, 20), (alerts("charts/tests/full.yaml"), 4), (alerts("docs/operations/monitoring.md"), 4)]
        {
            let mut seen = 0;
            for expression in &expressions {
                for name in metrics_of(expression) {
                    assert!(known.iter().any(|known| known == name), "{name} of {expression} is not served");
                    seen += 1;
                }
            }
            assert!(seen >= least, "only {seen} metrics were found");
        }
    }
}
