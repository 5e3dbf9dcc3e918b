//! `carrick diff`, run as a user would.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::running::carrick;
use serde_json::{Value, json};

fn crd(plural: &str, size: &Value) -> Value {
    let spec = json!({"type": "object", "properties": {"size": size}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": plural.to_uppercase(), "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

/// A file with these documents, removed at the end of the test run by the system.
fn file(name: &str, documents: &[Value]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}.yaml", std::process::id()));
    let text: Vec<String> = documents.iter().map(ToString::to_string).collect();
    std::fs::write(&path, text.join("\n---\n")).unwrap();
    path
}

/// Exit code, standard output and standard error.
fn diff(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = carrick(&[&["diff"], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input may have ended already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_exit_code_and_the_words_tell_the_class() {
    let old = crd("things", &json!({"type": "integer"}));
    let old_file = file("old", std::slice::from_ref(&old));
    for (name, size, code, words) in [
        ("same", json!({"type": "integer"}), 0, "compatible: nothing has changed\n"),
        ("number", json!({"type": "number"}), 0, "compatible: 1 compatible\n"),
        ("maximum", json!({"type": "integer", "maximum": 4}), 3, "tightening  v1.spec.size: maximum 4 is new\n"),
        ("string", json!({"type": "string"}), 4, "breaking: 1 breaking\n"),
    ] {
        let new = file(name, &[crd("things", &size)]);
        let (got, said, _) = diff(&[old_file.to_str().unwrap(), new.to_str().unwrap()], "");
        assert_eq!(got, code, "{name}: {said}");
        assert!(said.contains(words), "{name}: {said}");
        // The same from standard input.
        let (again, same, _) = diff(&["-", new.to_str().unwrap()], &old.to_string());
        assert_eq!((again, same), (got, said), "{name}");
    }
}

#[test]
fn programs_get_json_and_pull_requests_a_table() {
    let (old, new) = (json!({"type": "integer"}), json!({"type": "integer", "maximum": 4}));
    let old = file("json-old", &[crd("as", &old), crd("bs", &old), crd("cs", &old)]);
    let new = file("json-new", &[crd("bs", &new), crd("as", &json!({"type": "integer"}))]);
    let both = [old.to_str().unwrap(), new.to_str().unwrap()];
    let (code, said, _) = diff(&[&both[..], &["-o", "json"]].concat(), "");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &said["class"]), (4, &json!("breaking")));
    let changes = said["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 2, "{said}");
    let change = &changes[0];
    assert_eq!([&change["about"], &change["path"], &change["class"]], ["bs.example.com", "v1.spec.size", "tightening"]);
    assert_eq!(change["reason"], "maximum 4 is new");
    assert!(change["example"]["spec"]["size"].as_i64().unwrap() > 4, "{change}");
    assert_eq!(changes[1]["reason"], "CS goes away");
    let (_, table, _) = diff(&[&both[..], &["-o", "markdown"]].concat(), "");
    assert!(table.contains("### bs.example.com") && table.contains("| tightening | `v1.spec.size` |"), "{table}");
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let crd_file = file("error", &[crd("as", &json!({"type": "integer"}))]);
    let crd_file = crd_file.to_str().unwrap();
    for (arguments, input, words) in [
        (&["nowhere.yaml", crd_file][..], "", "cannot read nowhere.yaml"),
        (&["-", crd_file][..], "kind: Secret", "has no CustomResourceDefinition and no APIResourceSchema"),
        (&["-", crd_file][..], "{", "standard input: this is not valid YAML: line 1: "),
        (&["-", "-"][..], "", "can be only one of the two"),
        (&[][..], "", "no flag says which agent is meant, such as --kcp-kubeconfig"),
    ] {
        let (code, _, said) = diff(arguments, input);
        assert_eq!(code, 1, "{arguments:?} {said}");
        assert!(said.contains(words), "{arguments:?} {said}");
    }
}

/// What the action and the hook run: files of a repository, compared with what they were.
#[test]
fn changed_files_of_a_repository_are_judged_with_nothing_but_git() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("repository-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("config")).unwrap();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(&folder).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let write = |name: &str, document: &Value| std::fs::write(folder.join(name), document.to_string()).unwrap();
    let sized = |size: Value| crd("things", &size);
    write("config/crd.yaml", &sized(json!({"type": "integer"})));
    write("config/gone.yaml", &crd("others", &json!({"type": "integer"})));
    write("config/no-crd.yaml", &json!({"kind": "ConfigMap"}));
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first"]);
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../actions/diff/carrick-diff");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_carrick"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let run = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.arg(&script).args(arguments).current_dir(&folder).env("PATH", &path);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    };
    let all = ["config/crd.yaml", "config/no-crd.yaml", "config/new.yaml"];
    write("config/new.yaml", &crd("news", &json!({"type": "integer"})));
    let (code, text) = run(&all);
    assert!(code == 0 && text.contains("## config/crd.yaml") && !text.contains("new.yaml"), "{code} {text}");
    write("config/crd.yaml", &sized(json!({"type": "integer", "maximum": 3})));
    let (code, text) = run(&all);
    assert!(code == 3 && text.contains("| tightening |"), "{code} {text}");
    assert_eq!(run(&["--fail-on", "breaking", "--base", "HEAD", "config/crd.yaml"]).0, 0);
    std::fs::remove_file(folder.join("config/gone.yaml")).unwrap();
    let (code, text) = run(&["config/gone.yaml"]);
    assert!(code == 4 && text.contains("**breaking: its definitions go away"), "{code} {text}");
    assert_eq!(run(&["--base", "nowhere", "config/crd.yaml"]).0, 1);
    assert_eq!(run(&["--fail-on", "everything"]).0, 1);
}

/// The same in a folder that belongs to no repository, whatever is around it.
fn outside(mut command: Command, folder: &std::path::Path) -> (i32, String) {
    let output = command.current_dir(folder).env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// With a repository, its last release is what to compare with.
#[test]
fn files_are_compared_with_the_last_release_wherever_they_were_then() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("releases-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("config")).unwrap();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(&folder).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let sized = |size: Value| crd("things", &size).to_string();
    let run = |arguments: &[&str]| {
        let output = carrick(&[&["diff"], arguments].concat()).current_dir(&folder).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    for arguments in [&["--against-release"][..], &["--against-release=v1.0.0"]] {
        let output = carrick(&[&["diff"], arguments].concat());
        let (code, said) = outside(output, &folder);
        assert!(code == 1 && said.contains("not a git repository") && said.contains("carrick diff OLD NEW"), "{said}");
    }
    git(&["init", "--quiet"]);
    let (code, _, said) = run(&["--against-release"]);
    assert!(code == 1 && said.contains("this repository has no commit yet"), "{said}");
    let commit = |message: &str| {
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    };
    write("config/things.yaml", &sized(json!({"type": "integer"})));
    commit("first");
    let (code, _, said) = run(&["--against-release"]);
    assert!(code == 1 && said.contains("no tag such as v1.2.0") && said.contains("git fetch --tags"), "{code} {said}");
    git(&["tag", "v1.9.0"]);
    write("config/things.yaml", &sized(json!({"type": "integer", "maximum": 9})));
    commit("second");
    git(&["tag", "v1.10.0"]);
    // A release itself is compared with the one before.
    let (code, said, name) = run(&["--against-release", "config"]);
    assert!(code == 3 && said.contains("maximum 9 is new") && name.contains("# compared with v1.9.0"), "{said} {name}");
    // Moved, changed, and beside a template that is no YAML; none of it committed.
    std::fs::rename(folder.join("config/things.yaml"), folder.join("config/all.yaml")).unwrap();
    write("config/all.yaml", &sized(json!({"type": "integer", "maximum": 7})));
    write("config/template.yaml", "kind: CustomResourceDefinition\n{{- if .Values.crds }}\n");
    commit("third");
    write("config/all.yaml", &sized(json!({"type": "integer", "maximum": 6})));
    let (code, said, name) = run(&["--against-release", "-o", "json"]);
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said} {name}"));
    assert_eq!((code, &said["release"]), (3, &json!("v1.10.0")), "{said}");
    assert_eq!(said["changes"][0]["reason"], "maximum changes from 9 to 6", "{said}");
    assert!(name.contains("# left out: config/template.yaml: "), "{name}");
    let (code, _, said) = run(&["--against-release=v1.9.0", "config/all.yaml"]);
    assert!(code == 0 && said.contains("had no definitions at v1.9.0"), "{said}");
    for (arguments, words) in [
        (&["--against-release=nowhere"][..], "git knows no tag or commit nowhere; the last release here is v1.10.0"),
        (
            &["--against-release=v1.10.0-dirty"],
            "git knows no tag or commit v1.10.0-dirty; the last release here is v1.10.0",
        ),
        (&["--against-release=--output=x"], "git knows no tag or commit --output=x"),
        (&["--against-release", "nothing"], "nothing has no CustomResourceDefinition"),
        (&["one.yaml"], "two files are compared, OLD and NEW"),
    ] {
        let (code, _, said) = run(arguments);
        assert!(code == 1 && said.contains(words), "{arguments:?}: {code} {said}");
    }
}
