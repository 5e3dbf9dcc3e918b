use serde_json::{Value, json};

use super::{drop_nulls, objects, text};

/// A ConfigMap, and what follows in the same map.
fn map(name: &str, rest: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{rest}")
}

fn names(text: &str) -> Vec<String> {
    let found = objects(text).unwrap_or_else(|error| panic!("{error}: {text:?}"));
    found.iter().map(|object| object["metadata"]["name"].as_str().unwrap_or("?").to_owned()).collect()
}

/// kubectl 1.32 finds the same objects in these.
#[test]
fn pieces_are_found_wherever_kubectl_finds_them() {
    let (a, b) = (map("a", ""), map("b", ""));
    let windows = |text: String| text.replace('\n', "\r\n");
    let json = |name: &str| format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#);
    let (ja, jb) = (json("a"), json("b"));
    let indented = |text: &str| text.trim_end().replace('\n', "\n  ");
    let table: Vec<(String, &[&str])> = vec![
        (a.clone(), &["a"]),
        (a.trim_end().to_owned(), &["a"]),
        (format!("\u{feff}{a}"), &["a"]),
        (format!("\u{feff}---\n{a}"), &["a"]),
        (windows(a.clone()), &["a"]),
        (windows(format!("---\n{a}---\n{b}")), &["a", "b"]),
        (a.replace('\n', "\r"), &["a"]),
        (format!("{a}---\n\u{feff}{b}"), &["a", "b"]),
        (format!("{a}---\n{b}"), &["a", "b"]),
        (format!("--- # first\n{a}--- # second\n{b}"), &["a", "b"]),
        (format!("{a}---   \n{b}"), &["a", "b"]),
        (format!("{a}---\t\n{b}"), &["a", "b"]),
        (format!("{a}...\n"), &["a"]),
        (format!("{a}...\n---\n{b}"), &["a", "b"]),
        // What comes after the end of a document, in the same piece, is not read.
        (format!("{a}...\n{b}"), &["a"]),
        (format!("---\n---\n# nothing\n---\n{a}---\n---\nnull\n---\n~\n"), &["a"]),
        ("# nothing\n".to_owned(), &[]),
        (String::new(), &[]),
        (format!("# {}\n{a}# {}\n", "x".repeat(300_000), "y".repeat(300_000)), &["a"]),
        (format!("{}{a}", "# x\n".repeat(20_000)), &["a"]),
        (ja.clone(), &["a"]),
        (format!("\n\n   {ja}\n\n"), &["a"]),
        (format!("{ja}\n{jb}"), &["a", "b"]),
        (format!("{a}---\n{jb}"), &["a", "b"]),
        (format!("# JSON\n{ja}"), &["a"]),
        (format!("apiVersion: v1\nkind: List\nitems:\n- {}\n- {}\n", indented(&a), indented(&b)), &["a", "b"]),
        ("apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n".to_owned(), &["a"]),
        ("apiVersion: v1\nkind: List\nitems: []\n".to_owned(), &[]),
        // Whatever has items is a list.
        (map("a", "items: []\n"), &[]),
        // kubectl 1.32 takes none of these, but they are YAML.
        (format!("{ja}\n---\n{jb}"), &["a", "b"]),
        (format!("{ja}\n---\n{b}"), &["a", "b"]),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}".to_owned(), &["a"]),
    ];
    for (text, wanted) in table {
        assert_eq!(names(&text), wanted, "{:?}", &text[..text.len().min(300)]);
    }
}

/// kubectl 1.32 reads the same data.
#[test]
fn content_means_what_it_means_to_kubectl() {
    let table: Vec<(&str, Value)> = vec![
        ("data: {mode: 0644, new: 0o644}\n", json!({ "mode": 420, "new": 420 })),
        ("data:\n  on: yes\n  n: off\n", json!({ "true": true, "false": false })),
        ("data:\n", json!(null)),
        ("data:\n  x: a\n  x: b\n", json!({ "x": "b" })),
        ("data: {x: a}\ndata: {y: b}\n", json!({ "true": "b" })),
        ("data:\n  1: a\n  1.5: b\n  0x10: c\n  true: d\n", json!({ "1": "a", "1.5": "b", "16": "c", "true": "d" })),
        (
            "data:\n  t: 2001-12-14t21:59:43.10-05:00\n  d: 2001-12-14\n  s: 190:20:30\n",
            json!({ "t": "2001-12-14t21:59:43.10-05:00", "d": "2001-12-14", "s": "190:20:30" }),
        ),
        (
            "data: {a: 1e3, b: 1E400, c: 1_000, d: 0b11, e: +5}\n",
            json!({ "a": 1000, "b": "1E400", "c": 1000, "d": 3, "e": 5 }),
        ),
        ("base: &b {x: v, z: w}\ndata:\n  <<: *b\n  z: own\n", json!({ "x": "v", "z": "own" })),
        ("one: &o {x: '1'}\ntwo: &t {x: '2', z: '2'}\ndata:\n  <<: [*o, *t]\n", json!({ "x": "1", "z": "2" })),
        ("data:\n  a: !!str 1\n  b: !own 2\n  c: !!binary aGVsbG8=\n", json!({ "a": "1", "b": "2", "c": "hello" })),
        (
            "data:\n  a: |-\n    x\n      y\n\n  b: >+\n    p\n    q\n\n  c: |2\n      z\n",
            json!({ "a": "x\n  y", "b": "p q\n\n", "c": "  z\n" }),
        ),
        ("data:\n  a: |\n    x\n    ---\n    y\n", json!({ "a": "x\n---\ny\n" })),
        ("data:\n  a: \"one\n    two\\\n    three\\n\"\n  b: 'it''s'\n", json!({ "a": "one twothree\n", "b": "it's" })),
        ("data:\n  a: \"\\u00e4\\x41\\U0001F600\"\n", json!({ "a": "äA😀" })),
        ("data:\n  a: b\t\n", json!({ "a": "b" })),
    ];
    for (rest, wanted) in table {
        let found = objects(&map("a", rest)).unwrap_or_else(|error| panic!("{error}: {rest:?}"));
        assert_eq!(found[0]["data"], wanted, "{rest:?}");
        let found = objects(&map("a", rest).replace('\n', "\r\n")).unwrap();
        assert_eq!(found[0]["data"], wanted, "with line ends of Windows: {rest:?}");
    }
}

/// kubectl 1.32 refuses all of these.
#[test]
fn what_kubectl_refuses_is_refused_with_line_and_reason() {
    let (a, b) = (map("a", ""), map("b", ""));
    let table: Vec<(String, &str)> = vec![
        (a.replace("  name", "\tname"), "line 4: tabs disallowed"),
        (
            format!("x: &x {{}}\n{a}---\n{}", map("b", "data: *x\n")),
            "line 11: while parsing node, found unknown anchor",
        ),
        ("--- {kind: A}\n".to_owned(), "line 1: only a comment may follow ---"),
        (format!("{a}--- x\n{b}"), "line 5: only a comment may follow ---"),
        (format!("{a}----\n{b}"), "line 5: only a comment may follow ---"),
        (format!("%YAML 1.1\n---\n{a}"), "line 1: kubectl takes no directives"),
        (format!("{a}---\na: [\n"), "line 6: unclosed bracket"),
        (format!("{a}  ---\n{b}"), "line 5: simple key expected ':'"),
        (map("a", "data:\n  ~: a\n"), "line 6: null cannot be the key"),
        (map("a", "data:\n  ? [a, b]\n  : c\n"), "line 6: a list or a map cannot be the key"),
        (map("a", "data:\n  a: .inf\n"), "line 6: JSON has no number .inf"),
        (map("a", "data: &a\n  x: *a\n"), "an anchor's value contains itself"),
        (map("a", "data:\n  a: x\u{7}y\n"), "line 6: unexpected character"),
        (map("a", "data:\n  a: b: c\n"), "line 6: mapping values are not allowed"),
        (
            map("a", "data:\n  a: {{ .Values.x }}\n"),
            "line 6: a list or a map cannot be the key of a map; a template has to be rendered first",
        ),
        ("just words\n".to_owned(), "object 1 is text, where apiVersion, kind and metadata should be"),
        (format!("{a}---\n- a\n"), "object 2 is a list, where"),
        ("42\n".to_owned(), "object 1 is a number"),
        ("apiVersion: v1\nkind: List\nitems:\n- \n".to_owned(), "object 1 is a List, but"),
        ("apiVersion: v1\nkind: List\nitems:\n".to_owned(), "object 1 is a List, but"),
        ("apiVersion: v1\nkind: List\n".to_owned(), "object 1 is a List, but"),
        ("apiVersion: example.com/v1\nkind: Checklist\nitems: [one]\n".to_owned(), "object 1 is a List, but"),
        ("kind: List\nitems:\n- {kind: List, items: []}\n".to_owned(), "object 1 is a List in a List"),
    ];
    for (text, wanted) in table {
        let reported = objects(&text).expect_err(&text).to_string();
        assert!(reported.contains(wanted), "{reported}\nwanted {wanted}\n{text}");
    }
}

#[test]
fn files_may_be_utf_16_and_bytes_that_are_no_text_do_no_harm() {
    let wanted = "kind: Ä\n";
    let units: Vec<u16> = wanted.encode_utf16().collect();
    let little: Vec<u8> = [0xff, 0xfe].into_iter().chain(units.iter().flat_map(|unit| unit.to_le_bytes())).collect();
    let big: Vec<u8> = [0xfe, 0xff].into_iter().chain(units.iter().flat_map(|unit| unit.to_be_bytes())).collect();
    assert_eq!((text(&little).as_str(), text(&big).as_str()), (wanted, wanted));
    assert_eq!(text(b"\xef\xbb\xbfkind: A"), "kind: A");
    assert_eq!(text(b"# gr\xfcn\nkind: A"), "# gr\u{fffd}n\nkind: A");
    assert_eq!((text(b"\xff\xfe"), text(b"")), (String::new(), String::new()));
}

#[test]
fn keys_with_nothing_below_are_dropped() {
    let mut object = json!({ "spec": { "related": null, "list": [null, { "a": null, "b": 1 }] }, "status": null });
    drop_nulls(&mut object);
    assert_eq!(object, json!({ "spec": { "list": [null, { "b": 1 }] } }));
}
