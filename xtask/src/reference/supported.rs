//! The page of versions: what the scenarios were played on, as the servers reported it, and what else is pinned.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use super::MADE_OF_CODE;
use crate::tools;

/// What was played; `e2e/real --record` writes it.
const RAN: &str = "e2e/servers/ran.json";

/// A thing that has a version: its name, the file that pins it, the words before the version there, and what is known about others.
const PINS: [(&str, &str, &str, &str); 3] = [
    ("helm", "e2e/servers/helm/go.mod", "require helm.sh/helm/v3 v", "not tried"),
    ("Rust, to build it", "rust-toolchain.toml", "channel = \"", "`rust-version` in Cargo.toml refuses older ones"),
    ("Go, to build the real servers for tests", "e2e/servers/kcp/go.mod", "\ngo ", "newer ones do as well"),
];

const HEAD: &str = "\
# Supported versions

[The scenarios](../../e2e/scenarios/src/lib.rs) of the agents were played on these real servers, whose versions are those that they report themselves. CI plays them on the
[embedded plane](../plane.md) every time, and on these servers as many as there is time for.

| kcp | its Kubernetes | Kubernetes of the service cluster | its etcd | scenarios | comparisons of the plane with the servers |
| --- | --- | --- | --- | --- | --- |
";

const SERVERS: &str = "
`e2e/real --kcp VERSION --kube VERSION --record` plays them and writes this table. What is left out needs what the machine did not have: the CRDs of public operators,
which are fetched only if asked for, or time; or it was not asked for.

Other versions are not tried. kcp makes an APIExportEndpointSlice for each APIExport since 0.28; before that, create it by hand. The charts refuse clusters before 1.27,
that of the backend for kube-bind before 1.30.
";

const TAIL: &str = "
## Versions of APIs

| API | versions | who needs it |
| --- | --- | --- |
| PublishedResource | `syncagent.kcp.io/v1alpha1` | the agent; those of [kcp's agent](../operations/upgrade.md) are the same |
| APIExport, APIBinding | `apis.kcp.io/v1alpha2`; `v1alpha1` only where kcp serves nothing else | the agent reads and writes the newest that is served; consumers and platform owners use whichever they like |
| APIResourceSchema, APIExportEndpointSlice | `apis.kcp.io/v1alpha1` | the agent |
| CustomResourceDefinition | `apiextensions.k8s.io/v1` | the agent reads them on the service cluster |
| kube-bind | `kube-bind.io/v1alpha2` | konnector and backend, which work with [programs of kube-bind 0.8](../kube-bind/concepts.md) |

## Processors

Programs and images are released for Linux on x86-64 and arm64. Nothing else is built by CI.
";

/// The version that is pinned.
pub fn pinned(file: &str, before: &str) -> String {
    let text = fs::read_to_string(tools::root().join(file)).unwrap_or_default();
    let found = text.split_once(before).map_or("", |(_, rest)| rest);
    found.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default().to_owned()
}

/// What one run was played on.
struct Run {
    kcp: String,
    /// The Kubernetes that kcp is made of.
    forked: String,
    kubernetes: String,
    etcd: String,
    scenarios: Value,
    comparisons: Value,
}

/// All runs, the newest versions first.
fn runs() -> Vec<Run> {
    let text = fs::read_to_string(tools::root().join(RAN)).unwrap_or_default();
    let runs: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    runs.into_iter().map(run).collect()
}

fn run(mut value: Value) -> Run {
    let version = |name: &str| value[name].as_str().unwrap_or_default().trim_start_matches('v').to_owned();
    let [kcp, kubernetes, etcd] = ["kcp", "kubernetes", "etcd"].map(version);
    let (forked, kcp) = kcp.split_once("+kcp-v").unwrap_or(("", &kcp));
    let (forked, kcp) = (forked.to_owned(), kcp.to_owned());
    Run {
        kcp,
        forked,
        kubernetes,
        etcd,
        scenarios: value["scenarios"].take(),
        comparisons: value["comparisons"].take(),
    }
}

/// A module of kcp that was not to be had in kcp's own version.
fn borrowed() -> Option<String> {
    let file = "e2e/servers/kcp/go.mod";
    let kcp = pinned(file, "require github.com/kcp-dev/kcp v");
    let framework = pinned(file, "=> github.com/kcp-dev/virtual-workspace-framework v");
    (kcp != framework).then(|| {
        format!(
            "\nkcp {kcp} was built with its module `virtual-workspace-framework` {framework}, the newest to be had from the module proxy ([why](../../e2e/servers/README.md)): the OpenAPI documents of its virtual workspaces are those of kcp {framework}.\n"
        )
    })
}

/// How it went, in words.
fn result(count: &Value) -> String {
    let mut words = format!("{} passed", count["passed"]);
    let failed: Vec<String> = count["failed"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|name| format!("`{name}`"))
        .collect();
    if !failed.is_empty() {
        let _ = write!(words, ", {} failed: {}", failed.len(), failed.join(" "));
    }
    if count["leftOut"] != 0 {
        let _ = write!(words, ", {} left out", count["leftOut"]);
    }
    words
}

/// The page.
pub fn page() -> String {
    let mut page = format!("{MADE_OF_CODE}\n\n{HEAD}");
    for Run { kcp, forked, kubernetes, etcd, scenarios, comparisons } in runs() {
        let (scenarios, comparisons) = (result(&scenarios), result(&comparisons));
        let _ = writeln!(page, "| {kcp} | {forked} | {kubernetes} | {etcd} | {scenarios} | {comparisons} |");
    }
    page.push_str(SERVERS);
    page.extend(borrowed());
    page.push_str("\n| what else | version | pinned in | others |\n| --- | --- | --- | --- |\n");
    for (name, file, before, others) in PINS {
        let _ = writeln!(page, "| {name} | {} | `{file}` | {others} |", pinned(file, before));
    }
    page + TAIL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_is_found() {
        for (name, file, before, _) in PINS {
            assert!(pinned(file, before).contains('.'), "no version of {name} in {file}");
        }
    }

    #[test]
    fn the_readme_names_the_versions_that_were_played_and_no_other() {
        let readme = fs::read_to_string(tools::root().join("README.md")).unwrap();
        let versions = |of: fn(&Run) -> &str| {
            let runs = runs();
            let mut all: Vec<String> = Vec::new();
            for version in runs.iter().map(of) {
                if !all.iter().any(|known| known == version) {
                    all.push(version.to_owned());
                }
            }
            all.join(", ")
        };
        for row in [
            format!("| kcp | {} |", versions(|run| &run.kcp)),
            format!("| Kubernetes on the service cluster | {} |", versions(|run| &run.kubernetes)),
        ] {
            assert!(readme.contains(&row), "README.md has no row that begins with {row:?}, which is what {RAN} says");
        }
    }

    #[test]
    fn the_servers_that_are_built_by_default_were_played_on_and_no_scenario_failed() {
        let kcp = pinned("e2e/servers/kcp/go.mod", "require github.com/kcp-dev/kcp v");
        let kubernetes = pinned("e2e/servers/kube/go.mod", "require k8s.io/kubernetes v");
        let etcd = pinned("e2e/servers/etcd/go.mod", "require go.etcd.io/etcd/server/v3 v");
        let runs = runs();
        let run = runs.iter().find(|run| run.kcp == kcp && run.kubernetes == kubernetes && run.etcd == etcd);
        let run = run.unwrap_or_else(|| {
            panic!("{RAN} has no run on kcp {kcp}, Kubernetes {kubernetes} and etcd {etcd}: e2e/real --record")
        });
        assert!(run.scenarios["passed"].as_u64() > Some(0), "{}", run.scenarios);
        assert_eq!(run.scenarios["failed"].as_array().map(Vec::len), Some(0), "{}", run.scenarios);
    }

    #[test]
    fn what_failed_is_named() {
        let value = serde_json::json!({"kcp": "v1.36.0+kcp-v0.32.3", "kubernetes": "v1.34.2", "etcd": "3.6.8",
            "scenarios": {"passed": 3, "failed": ["a::b", "c::d"], "leftOut": 1}, "comparisons": {"passed": 2, "failed": [], "leftOut": 0}});
        let run = run(value);
        assert_eq!([run.forked, run.kcp, run.kubernetes, run.etcd], ["1.36.0", "0.32.3", "1.34.2", "3.6.8"]);
        assert_eq!(result(&run.scenarios), "3 passed, 2 failed: `a::b` `c::d`, 1 left out");
        assert_eq!(result(&run.comparisons), "2 passed");
    }
}
