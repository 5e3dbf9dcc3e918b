//! The page of versions: what CI runs, as it is pinned.

use std::fmt::Write as _;
use std::fs;

use super::MADE_OF_CODE;
use crate::tools;

/// A thing that has a version: its name, the file that pins it, the words before the version there, and what is known about others.
const PINS: [(&str, &str, &str, &str); 6] = [
    (
        "kcp",
        "e2e/servers/kcp/go.mod",
        "require github.com/kcp-dev/kcp v",
        "not tried. kcp makes an APIExportEndpointSlice for each APIExport since 0.28; before that, create it by hand",
    ),
    (
        "Kubernetes of the service cluster",
        "e2e/servers/kube/go.mod",
        "k8s.io/kubernetes v",
        "not tried. The charts refuse clusters before 1.27, that of the backend for kube-bind before 1.30",
    ),
    ("etcd behind it", "e2e/servers/kube/go.mod", "go.etcd.io/etcd/server/v3 v", "not tried"),
    ("helm", "e2e/servers/helm/go.mod", "require helm.sh/helm/v3 v", "not tried"),
    ("Rust, to build it", "rust-toolchain.toml", "channel = \"", "`rust-version` in Cargo.toml refuses older ones"),
    ("Go, to build the real servers for tests", "e2e/servers/kcp/go.mod", "\ngo ", "newer ones do as well"),
];

const HEAD: &str = "\
# Supported versions

CI plays [the scenarios](../../e2e/src/scenarios.rs) on these versions of real servers, and on the [embedded plane](../plane.md).
";

const TAIL: &str = "
## Versions of APIs

| API | versions | who needs it |
| --- | --- | --- |
| PublishedResource | `syncagent.kcp.io/v1alpha1` | the agent; those of [kcp's agent](../operations/upgrade.md) are the same |
| APIExport, APIResourceSchema, APIExportEndpointSlice | `apis.kcp.io/v1alpha1` | the agent; kcp converts to and from its own v1alpha2 |
| APIBinding | `apis.kcp.io/v1alpha1` or `v1alpha2` | consumers, as they like |
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

/// The page.
pub fn page() -> String {
    let mut page =
        format!("{MADE_OF_CODE}\n\n{HEAD}\n| what | version | pinned in | others |\n| --- | --- | --- | --- |\n");
    for (name, file, before, others) in PINS {
        let _ = writeln!(page, "| {name} | {} | `{file}` | {others} |", pinned(file, before));
    }
    page + TAIL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_is_found_and_the_readme_names_those_of_the_servers() {
        let readme = fs::read_to_string(tools::root().join("README.md")).unwrap();
        for (name, file, before, _) in PINS {
            let version = pinned(file, before);
            assert!(version.contains('.'), "no version of {name} in {file}");
            if ["kcp", "Kubernetes of the service cluster"].contains(&name) {
                assert!(readme.contains(&format!("| {version} |")), "README.md does not say {name} {version}");
            }
        }
    }
}
