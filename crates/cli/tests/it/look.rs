//! What people see of a running agent: doctor, explain and top, run as a user would, beside `carrick dev`.

#![cfg(unix)] // stopping needs signals

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

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
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {region: {type: string}}}
          status: {type: object, properties: {url: {type: string}}}
";
// As kubectl apply would take it: a namespace where there is none, keys with nothing below, a comment that is longer than most.
const PUBLISHED: &str = "
# ------------------------------------------------------------------------------------------------------------------------------------
apiVersion: syncagent.kcp.io/v1alpha1
kind: PublishedResource
metadata: {name: buckets, namespace: default, labels: , annotations: }
spec:
  resource: {apiGroup: example.com, kind: Bucket, versions: [v1]}
  projection:
  related:
  - identifier: keys
    origin: service
    version: v1
    resource: secrets
    projection:
    object: {template: {template: '{{ .Object.metadata.name }}-keys'}}
status:
";
const ORDER: &str =
    "{apiVersion: example.com/v1, kind: Bucket, metadata: {name: first, namespace: default}, spec: {region: eu}}";

pub(crate) struct Stage {
    pub(crate) folder: Folder,
    pub(crate) dev: Running,
}

impl Stage {
    pub(crate) fn open(test: &str) -> Self {
        let folder = Folder::new(test);
        for (name, text) in [("crd.yaml", CRD), ("pr.yaml", PUBLISHED), ("order.yaml", ORDER)] {
            fs::write(folder.path(name), text).unwrap();
        }
        let paths = [("--crd", "crd.yaml"), ("--published-resource", "pr.yaml"), ("--object", "order.yaml")];
        let mut args = vec!["dev".to_owned(), "--data-dir".to_owned(), folder.path("dev")];
        args.extend(paths.iter().flat_map(|(flag, name)| [(*flag).to_owned(), folder.path(name)]));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut dev = Running::start_noted(&args, &folder.path("state"));
        dev.until("object buckets default/first: order generation 1 → copy generation 1");
        Self { folder, dev }
    }

    /// Runs a command with the flags of the agent that `carrick dev` runs, which has a name of its own; exit code, stdout and stderr.
    pub(crate) fn ask(&self, command: &[&str], more: &[&str]) -> (Option<i32>, String, String) {
        let flags = self.flags(&self.namespace());
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let output = carrick(&[command, flags.as_slice(), more].concat()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// The flags of the agent, in a namespace.
    fn flags(&self, namespace: &str) -> [String; 8] {
        [
            "--kubeconfig".to_owned(),
            self.folder.path("dev/service.kubeconfig"),
            "--kcp-kubeconfig".to_owned(),
            self.folder.path("dev/provider.kubeconfig"),
            "--apiexportendpointslice-ref".to_owned(),
            "dev".to_owned(),
            "--namespace".to_owned(),
            namespace.to_owned(),
        ]
    }

    /// The address of the dashboard that `carrick dev` prints.
    pub(crate) fn dashboard(&self) -> String {
        let line = self.dev.output.lines().find(|line| line.starts_with("dashboard")).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    /// The namespace of the agent, which has the name of the run.
    pub(crate) fn namespace(&self) -> String {
        let kubeconfig = self.folder.path("dev/service.kubeconfig");
        let output = crate::running::kubectl(&["--kubeconfig", &kubeconfig, "get", "ns", "-o", "name"]);
        let found = output.map(|output| String::from_utf8(output.stdout).unwrap()).unwrap_or_default();
        let found =
            found.lines().find_map(|line| line.strip_prefix("namespace/").filter(|it| it.starts_with("carrick-dev-")));
        found.unwrap_or("carrick-dev").to_owned()
    }

    /// Asks again until the answer is right.
    fn until(
        &self,
        command: &[&str],
        more: &[&str],
        is_right: impl Fn(&(Option<i32>, String, String)) -> bool,
    ) -> String {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let answer = self.ask(command, more);
            if is_right(&answer) {
                return answer.1;
            }
            assert!(Instant::now() < deadline, "{answer:?}");
        }
    }

    fn save(&self, name: &str, text: &str) {
        let beside = self.folder.path(".beside");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, self.folder.path(name)).unwrap();
    }
}

#[test]
fn explain_agrees_with_the_agent() {
    let mut stage = Stage::open("look-explain");
    // The agent is called dev, which is not what the name of the slice suggests.
    let told = stage.until(&["explain"], &[], |(code, told, _)| {
        *code == Some(0) && told.starts_with("Agent dev\n") && told.contains("in line with service Bucket")
    });
    assert!(
        told.contains("waits: related resource \"keys\": service Secret ") && told.contains(" does not exist"),
        "{told}"
    );
    assert!(told.contains("  root:consumer default/first: "), "{told}");

    for (more, wanted) in [
        (["--workspace", "root:nobody"], "no consumer's workspace is called \"root:nobody\""),
        (["--object", "default/nothing"], "no object default/nothing is offered"),
    ] {
        let (code, _, told) = stage.ask(&["explain"], &more);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains(wanted), "{told}");
    }

    // A related kind that nobody serves is an error of every object, and a doubt before there is any.
    stage.save("pr.yaml", &PUBLISHED.replace("resource: secrets", "resource: safes"));
    let told = stage.until(&["explain"], &[], |(_, told, _)| told.contains("1 with errors"));
    assert!(
        told.contains("    error: related resource \"keys\": the service cluster has no resource safes./v1"),
        "{told}"
    );
    assert!(told.contains("  doubtful: spec.related[0]: the service cluster serves no safes"), "{told}");

    // Rules that are not valid: the agent goes on by the earlier ones, and explain says so.
    stage.save("pr.yaml", &PUBLISHED.replace("metadata.name }}-keys", "metadata.name | uper }}-keys"));
    stage.dev.until("did you mean upper?");
    let told =
        stage.until(&["explain"], &[], |(_, told, _)| told.contains("the running agent reports Syncing: By the rules"));
    assert!(told.contains("  problem: ") && told.contains("→uper←"), "{told}");
    assert!(told.contains("default/first: the rules of its PublishedResource are not valid"), "{told}");
    stage.save("pr.yaml", PUBLISHED);
    stage.dev.until("✓ published buckets: Bucket.example.com as v");
    assert_eq!(stage.dev.stop("TERM").0, Some(0));
}

#[test]
fn the_way_of_an_order_is_a_tree_down_to_what_the_operator_made() {
    let stage = Stage::open("trace");
    let text = stage.until(&["trace", "default/first"], &[], |(code, out, _)| *code == Some(0) && out.contains("└─ "));
    assert!(text.starts_with("Bucket default/first  in workspace root:consumer, since "), "{text}");
    let service = stage.folder.path("dev/service.kubeconfig");
    let Some(found) = crate::running::kubectl(&["--kubeconfig", &service, "get", "buckets", "-A", "-o", "json"]) else {
        return;
    };
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    let copy = &found["items"][0]["metadata"];
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Bucket", "name": copy["name"], "uid": copy["uid"] });
    let made = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "made", "namespace": copy["namespace"], "ownerReferences": [owner] },
    });
    fs::write(stage.folder.path("made.json"), made.to_string()).unwrap();
    crate::running::kubectl(&["--kubeconfig", &service, "apply", "-f", &stage.folder.path("made.json")]).unwrap();
    let (code, out, told) = stage.ask(&["trace", "default/first"], &["-o", "json"]);
    assert_eq!(code, Some(0), "{told}");
    let orders: Value = serde_json::from_str(&out).unwrap();
    let below = &orders[0]["children"][0]["children"][0];
    let namespace = copy["namespace"].as_str().unwrap();
    assert_eq!(below["object"], format!("ConfigMap {namespace}/made"), "{out}");
    let (code, _, told) = stage.ask(&["trace", "default/other"], &[]);
    assert!(code == Some(1) && told.contains("default/other"), "{code:?} {told}");
}

/// Exit code, standard output and standard error of a command.
pub(crate) fn ask(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = carrick(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn doctor_is_green_for_a_running_agent_and_fits_the_screen() {
    let stage = Stage::open("look-doctor");
    let wanted =
        ["the export is kept by this agent, dev", "; last sign of life ", "1 copy of buckets.example.com belong"];
    let told = stage.until(&["doctor"], &[], |(code, told, _)| {
        *code == Some(0) && wanted.iter().all(|wanted| told.contains(wanted))
    });
    assert!(told.lines().all(|line| line.chars().count() <= 100), "{told}");

    // The same flags in a file.
    let file = stage.folder.path("agent.yaml");
    let text = format!(
        "kubeconfig: {}\nkcp-kubeconfig: {}\napiexportendpointslice-ref: dev\nnamespace: {}\n",
        stage.folder.path("dev/service.kubeconfig"),
        stage.folder.path("dev/provider.kubeconfig"),
        stage.namespace()
    );
    fs::write(&file, text).unwrap();
    let output = carrick(&["doctor", "--config", &file, "-o", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["severity"], "green", "{report}");

    // Nothing that is no longer published stays unnoticed.
    fs::remove_file(stage.folder.path("pr.yaml")).unwrap();
    let offers = "the export still offers buckets.example.com";
    let json = ["-o", "json"];
    let told = stage.until(&["doctor"], &json, |(_, told, _)| told.contains(offers));
    // The command can be pasted as it is.
    let report: Value = serde_json::from_str(&told).unwrap();
    let mut findings = report["findings"].as_array().unwrap().iter();
    let finding = findings.find(|it| it["text"].as_str().unwrap().starts_with(offers)).unwrap();
    let command = finding["fix"].as_array().unwrap().last().unwrap().as_str().unwrap();
    if crate::running::kubectl(&["version", "--client"]).is_some() {
        let output = Command::new("sh").args(["-c", command]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        stage.until(&["doctor"], &json, |(_, told, _)| !told.contains(offers));
    }
    assert_eq!(stage.dev.stop("TERM").0, Some(0));
}

#[test]
fn a_watching_doctor_reports_what_goes_wrong_and_that_it_is_mended() {
    let stage = Stage::open("look-watch");
    let flags = stage.flags(&stage.namespace());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut watching = Running::start(&[&["doctor", "--watch", "--interval", "1"], flags.as_slice()].concat());
    watching.until("the export is kept by this agent, dev");
    fs::remove_file(stage.folder.path("pr.yaml")).unwrap();
    let offers = "the export still offers buckets.example.com";
    watching.until(offers);
    stage.save("pr.yaml", PUBLISHED);
    watching.until("1 copy of buckets.example.com belong");
    assert_eq!(stage.dev.stop("TERM").0, Some(0));
}

#[test]
fn the_doctor_runs_what_it_shows_after_a_yes_and_not_before() {
    if crate::running::kubectl(&["version", "--client"]).is_none() {
        return;
    }
    let stage = Stage::open("look-fix");
    let service = stage.folder.path("dev/service.kubeconfig");
    let is_there = || {
        let found = crate::running::kubectl(&["--kubeconfig", &service, "get", "namespace", "brand-new"]);
        found.is_some_and(|output| output.status.success())
    };
    let flags = stage.flags("brand-new");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let fix = [&["doctor", "--fix"], flags.as_slice()].concat();
    let (_, told, asked) = ask(&fix);
    assert!(told.contains("[namespace-missing]"), "{told}");
    assert!(asked.contains("create namespace brand-new") && asked.contains("nobody can be asked here"), "{asked}");
    assert!(!is_there());
    if Terminal::is_here() {
        for (answer, wanted) in [("n\r", false), ("y\r", true)] {
            let mut terminal = Terminal::start(&fix);
            terminal.until("Run this? [y/N]");
            terminal.type_in(answer);
            terminal.ended(Duration::from_mins(1));
            assert_eq!(is_there(), wanted, "{answer:?}");
        }
    }
    let (_, told, _) = ask(&[&["doctor"], flags.as_slice()].concat());
    assert_eq!(told.contains("[namespace-missing]"), !Terminal::is_here(), "{told}");
    assert_eq!(stage.dev.stop("TERM").0, Some(0));
}

/// Looks until it sees what is right: an agent whose first copy has just been placed may still be starting elsewhere.
fn once<T: std::fmt::Debug>(look: impl Fn() -> T, is_right: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let seen = look();
        if is_right(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "{seen:?}");
    }
}

/// What `carrick top` prints about the agent dev once it works.
fn top_of_one_that_works(url: &str) -> String {
    let look = || String::from_utf8(carrick(&["top", url]).output().unwrap().stdout).unwrap();
    once(look, |told| told.starts_with("dev  works  up "))
}

#[test]
fn top_takes_the_address_that_dev_prints() {
    let stage = Stage::open("look-top");
    let url = stage.dashboard();
    let told = top_of_one_that_works(&url);
    assert!(told.contains("\nroot:consumer "), "{told}");
    let output = carrick(&["top", &url, "-o", "json"]).output().unwrap();
    let state: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(state["workspaces"][0]["path"], "root:consumer");
    assert_eq!(stage.dev.stop("TERM").0, Some(0));
}

#[test]
fn top_tells_what_fails_until_it_is_healed() {
    let stage = Stage::open("look-fails");
    let url = stage.dashboard();
    let until = |wanted: &dyn Fn(&str) -> bool| {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let told = String::from_utf8(carrick(&["top", &url]).output().unwrap().stdout).unwrap();
            if wanted(&told) {
                return;
            }
            assert!(Instant::now() < deadline, "{told}");
        }
    };
    stage.save("pr.yaml", &PUBLISHED.replace("resource: secrets", "resource: safes"));
    until(&|told| {
        let wanted = "! 1 order of buckets fails (Related): root:consumer/default/first: related resource \"keys\"";
        // The claim of a kind that nobody knows is refused, too.
        !told.starts_with("dev  works") && told.contains(wanted)
    });
    stage.save("pr.yaml", PUBLISHED);
    until(&|told| told.starts_with("dev  works  up ") && !told.contains("! "));
    assert_eq!(stage.dev.stop("TERM").0, Some(0));
}

#[test]
fn copies_without_an_order_are_listed_with_the_command_that_deletes_them() {
    let stage = Stage::open("look-orphans");
    let (url, consumer) = (stage.dashboard(), stage.folder.path("dev/consumer.kubeconfig"));
    let service = stage.folder.path("dev/service.kubeconfig");
    let ask = |config: &str, args: &[&str]| {
        let output = crate::running::kubectl(&[&["--kubeconfig", config], args].concat())?;
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    };
    let until = |wanted: &dyn Fn(&Value) -> bool| {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let output = carrick(&["top", &url, "-o", "json"]).output().unwrap();
            let state: Value = serde_json::from_slice(&output.stdout).unwrap();
            if wanted(&state["orphans"]) {
                return state["orphans"].clone();
            }
            assert!(Instant::now() < deadline, "{}", state["orphans"]);
        }
    };
    let place = "jsonpath={.items[0].metadata.namespace} {.items[0].metadata.name}";
    let Some(copy) = ask(&service, &["get", "buckets", "-A", "-o", place]) else { return };
    let (namespace, name) = copy.split_once(' ').unwrap();
    // Somebody keeps the copy while the order is deleted by force.
    let keep = r#"{"metadata": {"finalizers": ["example.com/kept"]}}"#;
    let patch = ["patch", "bucket", name, "-n", namespace, "--type=merge", "-p"];
    ask(&service, &[&patch[..], &[keep]].concat());
    fs::remove_file(stage.folder.path("order.yaml")).unwrap();
    ask(&consumer, &["delete", "bucket", "first", "--wait=false", "--ignore-not-found"]);
    let free = r#"{"metadata": {"finalizers": null}}"#;
    ask(&consumer, &["patch", "bucket", "first", "--type=merge", "-p", free]);
    let orphans = until(&|orphans| orphans.as_array().is_some_and(|all| !all.is_empty()));
    let orphan = &orphans[0];
    assert_eq!(
        (&orphan["order"], &orphan["publishedResource"]),
        (&json!("root:consumer/default/first"), &json!("buckets"))
    );
    assert_eq!(orphan["fix"], format!("kubectl delete buckets.example.com {name} -n {namespace}"));
    assert!(orphan["copy"]["since"].as_str().is_some_and(|since| since.ends_with('Z')), "{orphan}");
    ask(&service, &[&patch[..], &[free]].concat());
    until(&|orphans| *orphans == json!([]));
    assert_eq!(stage.dev.stop("TERM").0, Some(0));
}

#[test]
fn one_page_shows_several_agents() {
    let stage = Stage::open("look-agents");
    let url = stage.dashboard();
    let mut page = Running::start(&["dashboard", "--address", "127.0.0.1:0", &url, "127.0.0.1:1"]);
    page.until("2 agents at http://127.0.0.1:");
    let all = page.output.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let all = all.trim_end_matches(';').to_owned();
    let of_first = |agents: &Value| {
        let first = &agents["agents"][0];
        (first["agent"]["verdict"].clone(), first["orders"].clone())
    };
    let ask = || serde_json::from_str::<Value>(&crate::running::get(&all, "/agents.json")).unwrap();
    let agents = once(ask, |agents| of_first(agents) == (json!("works"), json!(1.0)));
    let down = agents["agents"][1]["problem"].as_str().unwrap();
    assert!(down.contains("http://127.0.0.1:1/state.json"), "{down}");
    // The page of one agent, and what it asks for, are there as well; whatever else an agent may serve is not.
    assert!(crate::running::get(&all, "/agents/1/").contains("<html data-agents"));
    top_of_one_that_works(&format!("{all}/agents/1"));
    let found: Value =
        serde_json::from_str(&crate::running::get(&all, "/agents/1/find.json?q=root:consumer/default/first")).unwrap();
    assert_eq!((&found["total"], &found["found"][0]["object"]), (&json!(1), &json!("default/first")));
    assert_eq!(crate::running::get(&all, "/agents/1/metrics"), "/agents/1/metrics is not here\n");
    let refused = "this is shown only at localhost or an IP address\n";
    assert_eq!(crate::running::get_as(&all, "rebound.example", "/agents.json"), refused);
    assert_eq!(page.stop("TERM").0, Some(0));

    let output = carrick(&["dashboard", "--address", "0.0.0.0:8090", &url]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && told.contains("on loopback only; use 127.0.0.1:8090"), "{told}");
    assert_eq!(stage.dev.stop("TERM").0, Some(0));
}

#[test]
fn shells_and_man_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let output = carrick(&["completions", shell]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("from-deployment"), "{shell}: {text}");
    }
    let folder = Folder::new("look-man");
    let output = carrick(&["man", "--dir", &folder.path("man")]).output().unwrap();
    assert!(output.status.success());
    let page = fs::read_to_string(folder.path("man/carrick-doctor.1")).unwrap();
    assert!(page.contains("carrick\\-doctor") && page.contains("from\\-deployment"), "{page}");
    // Global flags are listed once, apart from those of the command.
    let output = carrick(&["doctor", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert_eq!(help.matches("--verbose").count(), 1, "{help}");
    assert!(help.find("Global options:").unwrap() > help.find("The agent:").unwrap(), "{help}");
}
