//! `carrick bind demo`, run as a user would, with its output in a pipe.

#![cfg(unix)] // as the other demo's

use crate::running::carrick;

const PROVIDER: [&str; 8] = [
    "a plain cluster answers at https://127.0.0.1:",
    "the cluster has Widgets with an operator, and kube-bind-backend hands them out",
    "workspace root:provider has contract kube-bind-",
    "APIExport wild.io in root:provider offers Widgets of the plain cluster",
    "team-a and team-b have bound it",
    "both teams have ordered mine; the plain cluster has both, apart",
    "each team reads its own status: small and ready, large and ready",
    "team-a has deleted its Widget; its copy is gone, team-b's is not",
];

const CONSUMER: [&str; 6] = [
    "kcp answers at https://127.0.0.1:",
    "account root:account uses a vendor's Widgets and has one, first",
    "kube-bind-backend serves the account; its catalogue has what the account has bound",
    "a konnector and one bundle: Widgets are served",
    "first has appeared on the workload cluster, and follows when the account changes it",
    "second, made on the workload cluster, reached the account, and went again when it was deleted",
];

const V2: [&str; 7] = [
    "kcp answers at https://127.0.0.1:",
    "account root:account uses a vendor's Widgets and has one, first",
    "a kubeconfig and a Connection: the account has the konnector's Lease, and nothing else of kube-bind",
    "one ClusterBinding: the workload cluster serves Widgets as the account does",
    "second reached the account under its own name, and its status came back: tiny and ready",
    "first of the account stayed as it was, and the object here says why it is not synced",
    "the copy went first, then the API here; the account has first, as before",
];

fn plays(story: &str, steps: &[&str]) {
    let output = carrick(&["bind", "demo", story]).env("CLICOLOR_FORCE", "1").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!told.contains('\x1b') && !told.contains('✗') && told.contains("Done in "), "{told}");
    let lines: Vec<&str> = told.lines().filter(|line| line.trim_start().starts_with('✓')).collect();
    assert_eq!(lines.len(), steps.len(), "{told}");
    for (line, step) in lines.iter().zip(steps) {
        assert!(line.contains(step), "{line}");
    }
}

#[test]
fn a_plain_cluster_becomes_a_provider() {
    plays("--provider", &PROVIDER);
}

#[test]
fn a_workload_cluster_shows_what_its_account_has() {
    plays("--consumer", &CONSUMER);
}

#[test]
fn a_workload_cluster_uses_its_account_with_nothing_in_between() {
    plays("--v2", &V2);
}
