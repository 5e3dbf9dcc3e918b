//! What programs and people who wait get: JSON on stdout, errors on stderr, and a spinner on terminals only.

#![cfg(unix)] // stopping needs signals

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use crate::running::{Folder, Running, carrick};
use crate::terminal::Terminal;
use serde_json::{Value, json};

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Bucket, listKind: BucketList, plural: buckets, singular: bucket}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";

/// A server that takes connections and never says a word, and a kubeconfig that leads to it.
struct Silent {
    listener: TcpListener,
    folder: Folder,
}

impl Silent {
    fn new(test: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = Folder::new(test);
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             users: [{{name: a, user: {{token: t}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'https://{}/clusters/root:a', insecure-skip-tls-verify: true}}}}]\n",
            listener.local_addr().unwrap()
        );
        fs::write(folder.path("kubeconfig"), text).unwrap();
        let published = "apiVersion: syncagent.kcp.io/v1alpha1\nkind: PublishedResource\nmetadata: {name: buckets}\n\
                         spec: {resource: {apiGroup: example.com, kind: Bucket}}\n";
        fs::write(folder.path("pr.yaml"), published).unwrap();
        Self { listener, folder }
    }

    /// Every command that asks servers, and what it says while it waits.
    fn commands(&self) -> Vec<(Vec<String>, &'static str)> {
        let (file, published) = (self.folder.path("kubeconfig"), self.folder.path("pr.yaml"));
        let export =
            ["--kubeconfig", &file, "--kcp-kubeconfig", &file, "--apiexportendpointslice-ref", "a"].map(str::to_owned);
        let with = |words: &[&str], flags: &[String]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).chain(flags.iter().cloned()).collect()
        };
        let agent = [&export[..], &["--namespace".to_owned(), "a".to_owned()]].concat();
        let dashboard = self.listener.local_addr().unwrap().to_string();
        vec![
            (with(&["doctor"], &agent), "asking both servers"),
            (with(&["explain"], &agent), "reading both clusters"),
            (with(&["bind", "doctor", "--kubeconfig", &file], &[]), "asking consumer and provider"),
            (with(&["diff", "--live"], &export), "reading what is exported"),
            (with(&["approve", "buckets"], &export), "trying the schema on what consumers have"),
            (with(&["rollback", "buckets"], &export), "trying the schema on what consumers have"),
            (with(&["import", "buckets", "--all", "--to", "root:b"], &agent), "looking for the agent"),
            (with(&["withdraw", "Bucket"], &export), "asking who uses it"),
            (with(&["top", "--once", &dashboard], &[]), "asking the agent"),
            (with(&["toolkit", "crd", "--kubeconfig", &file, &published], &[]), "asking the service cluster"),
        ]
    }
}

#[test]
fn whoever_waits_at_a_terminal_sees_what_for() {
    if !Terminal::is_here() {
        println!("skipped: there is no script(1) with a terminal to offer");
        return;
    }
    let silent = Silent::new("machine-waits");
    for (command, wanted) in silent.commands() {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut terminal = Terminal::start(&command);
        terminal.until(wanted);
    }
}

#[test]
fn nobody_is_told_to_wait_through_a_pipe() {
    let silent = Silent::new("machine-pipe");
    for words in [&["bind", "doctor", "--timeout", "2"][..], &["bind", "doctor", "--timeout", "2", "-o", "json"]] {
        let output = carrick(&[words, &["--kubeconfig", &silent.folder.path("kubeconfig")]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty());
    }
}

#[test]
fn errors_for_programs_are_on_stderr_and_in_the_exit_code() {
    let missing = ["--kubeconfig", "/missing", "--kcp-kubeconfig", "/missing", "--apiexportendpointslice-ref", "a"];
    let cases: [(&[&str], &[&str]); 9] = [
        (&["explain", "--namespace", "a"], &missing),
        (&["diff"], &missing),
        (&["diff", "/missing", "/missing"], &[]),
        (&["approve", "buckets"], &missing),
        (&["rollback", "buckets"], &missing),
        (&["import", "buckets", "--all", "--to", "root:b", "--yes", "--namespace", "a"], &missing),
        (&["withdraw", "Bucket"], &missing),
        (&["top", "127.0.0.1:1"], &[]),
        (&["plane", "--data-dir", "/dev/null"], &[]),
    ];
    for (command, more) in cases {
        let output = carrick(&[command, more, &["-o", "json"]].concat()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}: {told}");
        assert!(told.starts_with("error: "), "{command:?}: {told}");
        assert!(output.stdout.is_empty(), "{command:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
    // What is wrong with the servers is what doctors are asked for.
    for command in
        [&["bind", "doctor", "--kubeconfig", "/missing"][..], &[&["doctor", "--namespace", "a"], &missing[..]].concat()]
    {
        let output = carrick(&[command, &["-o", "json"]].concat()).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &report["severity"]), (Some(2), &json!("red")), "{command:?}: {report}");
    }
}

#[test]
fn the_addresses_of_a_plane_are_one_line_for_programs() {
    let folder = Folder::new("machine-plane");
    let data = folder.path("data");
    let ports = ["--port-kcp", "0", "--port-service", "0", "--control", "-o", "json"];
    let mut plane = Running::start(&[&["plane", "--data-dir", &data][..], &ports].concat());
    plane.until("}");
    let told: Value = serde_json::from_str(&plane.output).unwrap();
    for server in ["kcp", "service", "provider"] {
        let kubeconfig = fs::read_to_string(told[server]["kubeconfig"].as_str().unwrap()).unwrap();
        assert!(kubeconfig.contains(told[server]["url"].as_str().unwrap()), "{told}");
    }
    let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["faults", "kcp", "provider", "service", "shards"], "{told}");
    assert!(told["faults"]["kcp"].as_str().unwrap().starts_with("http://"), "{told}");
    let (code, all) = plane.stop("TERM");
    assert_eq!(code, Some(0));
    assert_eq!(all.lines().count(), 1, "{all}");
}

#[test]
fn q_leaves_top() {
    if !Terminal::is_here() {
        println!("skipped: there is no script(1) with a terminal to offer");
        return;
    }
    let folder = Folder::new("machine-q");
    fs::write(folder.path("crd.yaml"), CRD).unwrap();
    let mut dev = Running::start(&["dev", "--crd", &folder.path("crd.yaml")]);
    dev.until("dashboard");
    let line = dev.output.lines().find(|line| line.starts_with("dashboard")).unwrap();
    let mut terminal = Terminal::start(&["top", line.split_whitespace().nth(1).unwrap()]);
    terminal.until("q quits");
    terminal.type_in("xq");
    assert_eq!(terminal.ended(Duration::from_mins(1)), Some(0));
    assert_eq!(dev.stop("TERM").0, Some(0));
}

#[test]
fn q_leaves_top_even_if_the_agent_does_not_answer() {
    if !Terminal::is_here() {
        println!("skipped: there is no script(1) with a terminal to offer");
        return;
    }
    let silent = Silent::new("machine-top");
    let mut terminal = Terminal::start(&["top", &silent.listener.local_addr().unwrap().to_string()]);
    // It asks as soon as it can be left.
    let _asked = silent.listener.accept().unwrap();
    terminal.type_in("q");
    assert_eq!(terminal.ended(Duration::from_mins(1)), Some(0));
}
