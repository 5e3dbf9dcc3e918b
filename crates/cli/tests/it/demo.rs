//! `carrick demo`, run as a user would, with its output in a pipe.

#![cfg(unix)] // stopping needs signals

use crate::running::{Folder, Running, carrick, kubectl};

const STEPS: [&str; 18] = [
    "kcp answers at https://127.0.0.1:",
    "the service cluster answers at https://127.0.0.1:",
    "three workspaces are ready, each closed to the other two",
    "CRD httpbins.orchestrate.platform-mesh.io is established, its operator runs",
    "APIExport orchestrate.platform-mesh.io waits for its first kind in root:providers:httpbin",
    "PublishedResource httpbins says what to offer",
    "the agent has published v",
    "team-a and team-b have bound the export and accepted its claims",
    "both have created HttpBin default/demo: same name, different workspaces",
    "the agent has placed a copy of each on the service cluster",
    "status.url has come back to both workspaces",
    "/get?from=team-a answers 200",
    "Secret default/demo-credentials has come to both workspaces",
    "each team logs in with its Secret: 200 at its own endpoint, 401 at the other team's",
    "spec.region us-east has arrived at team-a's endpoint and in its status",
    "team-a has deleted its HttpBin: nothing is left of it",
    "team-b has deleted its HttpBin: nothing is left of it either",
    "agent, operator and servers have stopped",
];

/// Lines of steps that happened.
fn done(output: &str) -> Vec<&str> {
    output.lines().filter(|line| line.trim_start().starts_with('✓')).collect()
}

/// A line without what differs from run to run: words with digits, and secrets, of which the beginning is shown.
fn lasting(line: &str) -> Vec<&str> {
    line.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit() || c == '*')).collect()
}

/// The recording in the README shows what the demo still prints, up to the advice at its end. `cargo xtask record` makes it anew.
fn recording_is_up_to_date(printed: &str) {
    let recording = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/demo.svg")).unwrap();
    let shown = recording.lines().filter(|line| line.starts_with("<text ")).skip(1).map(text_of);
    let shown: Vec<String> = shown.take_while(|line| !line.starts_with("Done in")).collect();
    assert!(shown.len() > 40, "{shown:?}");
    let mut lines = printed.lines();
    for line in shown.iter().filter(|line| !line.is_empty()) {
        let is_printed = lines.any(|printed| lasting(printed) == lasting(line));
        assert!(is_printed, "the demo does not print, or not in this order: {line}; see `cargo xtask record`");
    }
}

/// The text between the tags of a line.
fn text_of(line: &str) -> String {
    let text: String = line.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
    text.replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
}

#[test]
fn every_step_is_observed_and_printed_as_plain_text() {
    let output = carrick(&["demo"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!told.contains('\x1b') && !told.contains('\r') && !told.contains('✗'), "{told}");
    let lines = done(&told);
    assert_eq!(lines.len(), STEPS.len(), "{told}");
    for (line, step) in lines.iter().zip(STEPS) {
        assert!(line.contains(step) && line.contains(" ms  "), "{line}");
    }
    for more in ["\"region\": \"eu-central\"", "password=", "Done in ", "What just happened", " demo --keep"] {
        assert!(told.contains(more), "{more}\n{told}");
    }
    recording_is_up_to_date(&told);
}

const BROKER_STEPS: [&str; 8] = [
    "kcp answers at https://127.0.0.1:",
    "the platform defines Certificates of platform.example, and serves none itself",
    "internal-ca serves it with its own SigningRequests, and takes *.corp.example",
    "public-ca serves it with its own SigningRequests, and takes *.shop.example",
    "team-a has ordered Certificate default/web: the broker has chosen internal-ca",
    "the broker has moved the order to public-ca: Available all the time",
    "team-a has deleted its Certificate: nothing is left of it at either provider",
    "broker, agents, operators and servers have stopped",
];

#[test]
fn behind_a_broker_an_order_moves_from_one_provider_to_the_other() {
    let output = carrick(&["demo", "--broker"]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let lines = done(&told);
    assert_eq!(lines.len(), BROKER_STEPS.len(), "{told}");
    for (line, step) in lines.iter().zip(BROKER_STEPS) {
        assert!(line.contains(step), "{line}");
    }
    for more in ["web.corp.example signed by internal-ca", "web.shop.example signed by public-ca", "Done in "] {
        assert!(told.contains(more), "{more}\n{told}");
    }
}

#[test]
fn kept_servers_answer_kubectl_until_stopped() {
    let folder = Folder::new("demo-keep");
    let mut demo = Running::start(&["demo", "--keep", "--data-dir", &folder.path("")]);
    demo.until("Running until Ctrl-C");
    let ask = |config: &str, args: &[&str]| {
        let config = folder.path(&format!("{config}.kubeconfig"));
        assert!(std::fs::exists(&config).unwrap(), "{config}");
        let answer = kubectl(&[&["--kubeconfig", &config], args].concat())?;
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        Some(String::from_utf8(answer.stdout).unwrap())
    };
    let cases: [(&str, &[&str], &str); 6] = [
        ("team-a", &["get", "httpbins"], "eu-central   true    http://127.0.0.1:"),
        ("team-b", &["get", "secret", "demo-credentials", "-o", "yaml"], "password: "),
        ("service", &["get", "publishedresources"], "httpbins"),
        ("service", &["get", "httpbins", "-A"], "eu-central   true"),
        ("provider", &["get", "apiexports"], "orchestrate.platform-mesh.io"),
        ("kcp-admin", &["get", "ws"], "providers"),
    ];
    for (config, args, wanted) in cases {
        match ask(config, args) {
            Some(answer) => assert!(answer.contains(wanted), "{config} {args:?}\n{answer}"),
            None => println!("skipped: there is no kubectl to ask {args:?} with"),
        }
    }
    let (code, told) = demo.stop("INT");
    assert_eq!(code, Some(0), "{told}");
    assert!(done(&told).last().unwrap().contains("agent, operator and servers have stopped"), "{told}");
}

#[test]
fn a_step_that_fails_says_what_was_expected_and_what_to_try() {
    let output = carrick(&["demo", "--keep"]).env("TMPDIR", "/dev/null/nowhere").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let (_, failure) = told.split_once('✗').unwrap();
    let words: Vec<_> = failure.lines().map(|line| line.trim_start().split("  ").next().unwrap()).collect();
    assert_eq!(words[1..], ["expected", "last seen", "try"], "{failure}");
    assert!(failure.contains("cannot create the folder /dev/null/nowhere"), "{failure}");
}

#[test]
fn a_bad_folder_is_reported_before_anything_starts() {
    let output = carrick(&["demo", "--keep", "--data-dir", "/dev/null"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: /dev/null is a file; give --data-dir a folder\n");
}
