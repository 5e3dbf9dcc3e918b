//! `carrick import`, run as a user would, beside `carrick dev`.

#![cfg(unix)] // stopping needs signals

use std::fs;

use crate::look::Stage;
use crate::running::kubectl;
use serde_json::Value;

const OBJECTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: own}
---
apiVersion: example.com/v1
kind: Bucket
metadata: {name: db, namespace: own, labels: {tenant: a}}
spec: {region: eu}
---
apiVersion: example.com/v1
kind: Bucket
metadata: {name: first, namespace: own, labels: {tenant: a}}
spec: {region: us}
";

/// An object on the service cluster.
fn object(stage: &Stage, name: &str) -> Value {
    let kubeconfig = stage.folder.path("dev/service.kubeconfig");
    let output = kubectl(&["--kubeconfig", &kubeconfig, "get", "bucket", name, "-n", "own", "-o", "json"]).unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A report for programs.
fn report(stage: &Stage, args: &[&str], code: i32) -> Value {
    let (ended, printed, problem) = stage.ask(args, &["-o", "json"]);
    assert_eq!(ended, Some(code), "{printed}{problem}");
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn an_object_is_imported_as_the_table_says_and_taken_back() {
    let stage = Stage::open("import");
    fs::write(stage.folder.path("objects.yaml"), OBJECTS).unwrap();
    let kubeconfig = stage.folder.path("dev/service.kubeconfig");
    let Some(applied) = kubectl(&["--kubeconfig", &kubeconfig, "apply", "-f", &stage.folder.path("objects.yaml")])
    else {
        println!("skipped: there is no kubectl here");
        return;
    };
    assert!(applied.status.success(), "{applied:?}");
    let import = |more: &[&'static str]| [&["import", "buckets"][..], more].concat();
    let all = import(&["-l", "tenant=a", "--to", "root:consumer", "--dry-run"]);

    // The table says what would become of each; one name is taken.
    let (code, printed, problem) = stage.ask(&all, &[]);
    assert_eq!(code, Some(1), "{printed}{problem}");
    assert!(printed.starts_with("OBJECT     WORKSPACE      ORDER          WHAT BECOMES OF IT\n"), "{printed}");
    assert!(printed.contains("own/db     root:consumer  default/db     can be imported\n"), "{printed}");
    assert!(printed.contains("own/first  root:consumer  default/first  refused\n"), "{printed}");
    assert!(printed.contains("\nown/first:\n  there is an order of that name already"), "{printed}");
    assert!(printed.contains("Nothing was changed."), "{printed}");
    assert!(!object(&stage, "db").to_string().contains("syncagent.kcp.io"));

    // Nobody can be asked through a pipe.
    let one = import(&["own/db", "--to", "root:consumer"]);
    let (code, _, problem) = stage.ask(&one, &[]);
    assert_eq!(code, Some(1));
    assert!(problem.contains("say --yes to go on"), "{problem}");

    let before = object(&stage, "db");
    let printed = report(&stage, &import(&["own/db", "--to", "root:consumer", "--yes"]), 0);
    assert_eq!(
        (&printed["objects"][0]["outcome"], &printed["objects"][0]["order"]),
        (&"imported".into(), &"default/db".into())
    );
    let after = object(&stage, "db");
    assert_eq!(
        (&before["metadata"]["generation"], &before["spec"]),
        (&after["metadata"]["generation"], &after["spec"])
    );
    assert_eq!(after["metadata"]["annotations"]["syncagent.kcp.io/on-delete"], "Keep");

    let names = stage.folder.path("names");
    fs::write(&names, "own/db # ours\n").unwrap();
    let (code, printed, problem) = stage.ask(&["import", "buckets", "--from-file", &names, "--undo", "--yes"], &[]);
    assert_eq!(code, Some(0), "{printed}{problem}");
    assert!(printed.contains("own/db  root:consumer  default/db  taken back\n"), "{printed}");
    assert_eq!(object(&stage, "db")["spec"], before["spec"]);
    assert!(!object(&stage, "db")["metadata"]["labels"].to_string().contains("syncagent.kcp.io"));
    assert_eq!(stage.dev.stop("TERM").0, Some(0));
}
