//! `carrick toolkit`, run as a user would.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const OBJECT: &str = r#"
apiVersion: example.com/v1
kind: Thing
metadata: {name: objname, namespace: objnamespace, annotations: {example.com/owner: me}}
spec: {image: "Ubuntu:Latest", replicas: 3, html: "<b>", items: [{name: a, size: 1}, {name: b, size: 2.50}]}
"#;

/// Exit code, standard output and standard error.
fn carrick(args: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_carrick"))
        .arg("toolkit")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // Not before the answers are read: pipes are small.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // A command that does not read its input ends before it is written.
    let _ = writer.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn answers_are_printed() {
    let cases: &[(&[&str], &str)] = &[
        (&["template", "--data", "-", "{{ .Object.metadata.name | sha3short }}"], "73d08a1ba188f1340dae\n"),
        (
            &["template", "-d", "-", "--cluster-name", "c1", "{{ .ClusterName }}-{{ .ClusterPath }}"],
            "c1-root:orgs:example\n",
        ),
        (&["template", "-d", "-", "--for", "related", "{{ .Side }} {{ .Object.kind }}"], "kcp Thing\n"),
        (&["template", "-d", "-", "--for", "selector", "{{ .LocalObject.kind }}"], "Thing\n"),
        (&["template", "-d", "-", "--for", "rewrite", "{{ .Value }} {{ .RelatedObject.kind }}"], "objname Thing\n"),
        (&["template", "-d", "-", "--path", "spec.image", "{{ .Value.String | lower }}"], "ubuntu:latest\n"),
        (&["template", "-d", "-", "--path", "spec.nope", "{{ .Value.Exists }}"], "false\n"),
        (&["template", "-d", "-", "--path", "spec.html", "{{ .Value }}{{ .LocalObject.nope }}"], "<b>\n"),
        (&["template", "-d", "-", "--path", "kind", "--remote", "{a: 1}", "{{ .RemoteObject.a }}"], "1\n"),
        (&["template", "-d", "{\"a\": [1]}", "{{ .a }}\n"], "[1]\n"),
        (&["template", "-d", "[1, 2]", "{{ len . }}"], "2\n"),
        (&["template", "{{ upper \"a\" }}"], "A\n"),
        (&["cel", "--self", "-", "self.spec.replicas + 1"], "4\n"),
        (&["cel", "--self", "-", "--path", "spec.image", "value.split(':')[0]"], "\"Ubuntu\"\n"),
        (
            &["cel", "--value", "[1]", "--other", "{\"a\": \"b\"}", "[other.a, value[0] + 0.5]"],
            "[\n  \"b\",\n  1.5\n]\n",
        ),
        (&["cel", "value == null && self == null && other == null"], "true\n"),
        (&["path", "get", "-d", "-", "spec.image"], "Ubuntu:Latest\n"),
        (&["path", "get", "-d", "-", "spec.items.#.name"], "[\"a\", \"b\"]\n"),
        (&["path", "get", "-d", "-", r"metadata.annotations.example\.com/owner"], "me\n"),
        (&["path", "get", "-d", "{\"a\": 1.50}", "a"], "1.50\n"),
        (
            &["path", "set", "-d", "{\"b\":12345678901234567890,\"a\":{}}", "a.c", "--value", "x"],
            "{\"b\":12345678901234567890,\"a\":{\"c\":\"x\"}}\n",
        ),
        (&["path", "set", "-d", "a: 1", "b", "--value", "\"3\""], "a: 1\nb: \"3\"\n"),
        (&["path", "delete", "-d", "{\"b\":[1,2]}", "b.0"], "{\"b\":[2]}\n"),
    ];
    for (args, wanted) in cases {
        let (code, told, complaint) = carrick(args, OBJECT);
        assert_eq!((code, told.as_str()), (0, *wanted), "{args:?}\n{complaint}");
        assert_eq!(complaint, "", "{args:?}");
    }
}

#[test]
fn errors_point_at_the_faulty_place() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["template", "-d", "-", "a\n{{ .Object.kind | uper }}"],
            "error: function \"uper\" does not exist\n --> template:2:19\n  |\n2 | {{ .Object.kind | uper }}\n  |                   ^^^^\n  = there is a function upper\n",
        ),
        (
            &["template", "{{ htpasswd \"u\" \"p\" }}"],
            "error: function \"htpasswd\" is refused: its result is different at every rendering, so that a rule with it never comes to rest; hash the password once, keep the hash in a Secret, and read it from there\n --> template:1:4\n  |\n1 | {{ htpasswd \"u\" \"p\" }}\n  |    ^^^^^^^^\n",
        ),
        (&["template", "--for", "related", "{{ uuidv4 }}"], "error: function \"uuidv4\" is refused: "),
        (&["template", "-d", "-", "{{ .Nope }}"], "1 | {{ .Nope }}\n  |    ^^^^^\n"),
        (&["template", "-d", "-", "{{ .Object.nope | upper }}"], "^^^^^\n  = its input is missing from the data; "),
        (&["template", "{{ .a }}"], "  = there is no data: give some with --data\n"),
        (&["template", "-d", "-", "--path", "kind", "<a {{ .Value.Nope }}"], " --> template:1:"),
        (&["template", "-d", "-", "-f", "no-such-file"], "error: cannot read no-such-file: "),
        (&["template", "-d", "a: [", "x"], "1 | a: [\n  |    ^\n"),
        (&["cel", "self.a +"], "1 | self.a +\n  |         ^\n"),
        (&["cel", "'e' + self.upper()"], "1 | 'e' + self.upper()\n  |            ^^^^^\n"),
        (&["cel", "selv.a"], "1 | selv.a\n  | ^^^^\n  = there is self\n"),
        (&["cel", "1 / 0"], "error: division by zero\n"),
        (&["cel", "--value", "word", "value"], "error: cannot read word: "),
        (
            &["path", "get", "-d", "-", "spec.imaeg"],
            "1 | spec.imaeg\n  |      ^^^^^\n  = spec has html, image, items, replicas\n",
        ),
        (
            &["path", "get", "-d", "-", "spec.items.7.name"],
            "1 | spec.items.7.name\n  |            ^\n  = spec.items is a list of 2\n",
        ),
        (&["path", "get", "-d", "-", "kind.a"], "  = there is nothing below kind\n"),
        (&["path", "set", "-d", "-", "spec.items.x", "--value", "1"], "1 | spec.items.x\n  |            ^\n"),
        (&["path", "set", "-d", "-", "", "--value", "1"], "error: path cannot be empty\n"),
        (&["path", "delete", "-d", "-", "spec.*"], "1 | spec.*\n  |      ^\n"),
    ];
    for (args, wanted) in cases {
        let (code, told, complaint) = carrick(args, OBJECT);
        assert_eq!((code, told.as_str()), (1, ""), "{args:?}\n{complaint}");
        assert!(complaint.starts_with("error: ") && complaint.contains(wanted), "{args:?}\n{complaint}");
    }
}

#[test]
fn wrong_usage_is_distinguished_from_wrong_rules() {
    let cases: &[&[&str]] = &[
        &["template"],
        &["template", "x", "-f", "y"],
        &["template", "-d", "-", "-f", "-"],
        &["template", "--for", "mutation", "x"],
        &["template", "--for", "nothing", "x"],
        &["template", "--batch", "x"],
        &["cel"],
        &["cel", "--self", "-", "--value", "-", "x"],
        &["cel", "--path", "a", "--value", "1", "x"],
        &["path", "get", "a"],
        &["path", "set", "-d", "{}", "a"],
        &["path", "--batch", "get", "-d", "{}", "a"],
        &["path"],
        &[],
    ];
    for args in cases {
        let (code, told, complaint) = carrick(args, "");
        assert_eq!((code, told.as_str()), (2, ""), "{args:?}\n{complaint}");
    }
}

#[test]
fn help_has_examples() {
    for args in [&["--help"][..], &["template", "--help"], &["cel", "--help"], &["path", "--help"]] {
        let (code, told, _) = carrick(args, "");
        assert!(code == 0 && told.contains("Examples:\n  carrick toolkit "), "{args:?}");
    }
}

/// The answers of a batch, each of them one line of JSON.
fn answers(language: &str, questions: &[Value]) -> Vec<Value> {
    let input = questions.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let (code, told, complaint) = carrick(&[language, "--batch"], &input);
    assert_eq!((code, complaint.as_str()), (0, ""));
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Compares the answers to recorded questions with what `expected` makes of them; none is an error.
fn compare(language: &str, cases: &[Value], expected: impl Fn(&Value) -> Option<Value>) {
    let answers = answers(language, cases);
    assert_eq!(answers.len(), cases.len());
    let key = if language == "cel" { "result" } else { "output" };
    let mut wrong = Vec::new();
    for (case, answer) in cases.iter().zip(&answers) {
        let agrees = match expected(case) {
            Some(wanted) => *answer == json!({ key: wanted }),
            None => answer.as_object().unwrap().len() == 1 && answer["error"].is_string(),
        };
        if !agrees {
            wrong.push(format!("{case}\n  {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn recorded(file: &str) -> (Value, Vec<Value>) {
    let mut file: Value = serde_json::from_str(file).unwrap();
    let Value::Array(cases) = file["cases"].take() else { panic!("no cases") };
    (file["data"].take(), cases)
}

#[test]
fn recorded_templates_are_answered_in_a_batch() {
    /// The deviations that the crate lists: no environment, no network, nothing that is different at every rendering.
    const DIFFERENT: [&str; 3] = ["{{ env \"HOME\" | empty }}", "getHostByName", "htpasswd"];
    let (data, mut cases) = recorded(include_str!("../../../template/tests/vectors.json"));
    cases.retain(|case| !DIFFERENT.iter().any(|part| case["template"].as_str().unwrap().contains(part)));
    for case in &mut cases {
        case["data"] = data.clone();
    }
    compare("template", &cases, |case| case.get("output").cloned());
}

#[test]
fn recorded_paths_are_answered_in_a_batch() {
    let (_, cases) = recorded(include_str!("../../../json/tests/paths.json"));
    compare("path", &cases, |case| case.get("output").cloned());
}

#[test]
fn recorded_expressions_are_answered_in_a_batch() {
    let (data, mut cases) = recorded(include_str!("../../../cel/tests/cel.json"));
    for case in &mut cases {
        case["self"] = data[0].clone();
    }
    // What the reference garbles is listed and checked in crates/cel: functions it lacks, null, lists, maps, types.
    cases.retain(|case| {
        let garbled = ["list ", "map ", "null_type ", "type "];
        let missing = ["join(", "format(", "replace(", "split(", "lowerAscii(", "sum("];
        let contains = |field: &str, parts: &[&str]| {
            case[field].as_str().is_some_and(|text| parts.iter().any(|part| text.contains(part)))
        };
        !contains("val", &garbled) && !contains("expression", &missing)
    });
    assert!(cases.len() > 60);
    compare("cel", &cases, |case| {
        let set: Value = serde_json::from_str(case["set"].as_str()?).unwrap();
        Some(set["a"]["b"].clone())
    });
}

#[test]
fn questions_may_share_data() {
    for (language, flag, questions, wanted) in [
        (
            "template",
            "--data",
            "{\"template\":\"{{ . }}\"}\n{\"template\":\"{{ . }}\",\"data\":1}\n",
            "{\"output\":\"[a b]\"}\n{\"output\":\"b\"}\n",
        ),
        (
            "cel",
            "--self",
            "{\"expression\":\"size(self)\"}\n{\"expression\":\"self\",\"self\":0}\n",
            "{\"result\":2}\n{\"result\":\"a\"}\n",
        ),
    ] {
        let (code, told, _) = carrick(&[language, "--batch", flag, "[a, b]"], questions);
        assert_eq!((code, told.as_str()), (0, wanted), "{language}");
    }
}

#[test]
fn lines_that_are_not_questions_are_answered_too() {
    let input = "{\"template\":\"a\"}\nnonsense\n\n{}\n{\"template\":7}\n\u{0}\n{\"template\":\"b\",\"more\":[]}";
    let (code, told, _) = carrick(&["template", "--batch"], input);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!((code, lines.len()), (0, 7));
    assert_eq!((lines[0], lines[6]), (r#"{"output":"a"}"#, r#"{"output":"b"}"#));
    assert!(lines[1..6].iter().all(|line| line.starts_with(r#"{"error":"this line is not a question: "#)), "{told}");
}

#[test]
fn a_batch_is_a_conversation() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_carrick"))
        .args(["toolkit", "cel", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for number in 0..3 {
        writeln!(input, r#"{{"expression":"self + 1","self":{number}}}"#).unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert_eq!(answer, format!("{{\"result\":{}}}\n", number + 1));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_stops_early_is_not_an_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_carrick"))
        .args(["toolkit", "cel", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    let _ = input.write_all(b"{\"expression\":\"1\"}\n");
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
