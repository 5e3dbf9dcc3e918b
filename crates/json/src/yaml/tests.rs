use serde_json::{Value, json};

use super::{Duplicate, read, read_all, read_nested, value, values};

/// What `sigs.k8s.io/yaml` 1.6 makes of the same texts.
#[test]
fn scalars_are_those_of_yaml_1_1() {
    let table: Vec<(&str, Value)> = vec![
        ("0444", json!(292)),
        ("-0444", json!(-292)),
        ("0o14", json!(12)),
        ("0x1F", json!(31)),
        ("0b101", json!(5)),
        ("-0b101", json!(-5)),
        ("08", json!(8)),
        ("09.5", json!(9.5)),
        ("1_000", json!(1000)),
        ("+12", json!(12)),
        ("0", json!(0)),
        ("-0", json!(0)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        ("1.5e-3", json!(0.0015)),
        (".5", json!(0.5)),
        ("5.", json!(5)),
        ("9223372036854775807", json!(9_223_372_036_854_775_807_i64)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ("1e400", json!("1e400")),
        ("0x", json!("0x")),
        ("12:30:45", json!("12:30:45")),
        ("1.2.3", json!("1.2.3")),
        ("2001-01-01", json!("2001-01-01")),
        ("-", json!([null])),
        ("+", json!("+")),
        (".", json!(".")),
        ("e3", json!("e3")),
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("y", json!(true)),
        ("yEs", json!("yEs")),
        ("~", json!(null)),
        ("NULL", json!(null)),
        ("nUll", json!("nUll")),
        ("\"0444\"", json!("0444")),
        ("'yes'", json!("yes")),
        ("!!str 0444", json!("0444")),
        ("!!int \"12\"", json!(12)),
        ("!!float 1", json!(1)),
        ("!local 12", json!("12")),
        ("!!binary aGVsbG8=", json!("hello")),
        ("!!binary |\n  aGVs\n  bG8=\n", json!("hello")),
        ("!!binary /w==", json!("\u{fffd}")),
        ("|\n  0444\n", json!("0444\n")),
        ("<<", json!("<<")),
    ];
    for (text, wanted) in table {
        assert_eq!(value(text).unwrap(), wanted, "{text}");
    }
}

#[test]
fn keys_become_texts() {
    let read = value("1: a\n0777: b\non: c\n1.5: d\n\"2\": e\n").unwrap();
    assert_eq!(read, json!({"1": "a", "511": "b", "true": "c", "1.5": "d", "2": "e"}));
    assert!(value("!!binary a").unwrap_err().to_string().contains("invalid base64"));
    for refused in ["~: a", "? [a]\n: b", "? {a: b}\n: c"] {
        assert!(value(refused).is_err(), "{refused}");
    }
}

#[test]
fn a_key_that_occurs_twice_is_told_and_the_last_one_counts() {
    let document = read("a: 1\nb:\n  c: 2\n  c: 3\na: 4\n").unwrap();
    assert_eq!(document.value, json!({"a": 4, "b": {"c": 3}}));
    let twice = |key: &str, line| Duplicate { key: key.to_owned(), line };
    assert_eq!(document.duplicates, [twice("\"c\"", 4), twice("\"a\"", 5)]);
    assert_eq!(
        document.strict_error().unwrap(),
        "yaml: unmarshal errors:\n  line 4: key \"c\" already set in map\n  line 5: key \"a\" already set in map"
    );
    assert_eq!(read("a: 1\nb: 1").unwrap().strict_error(), None);
    // The line is the one on which the second value begins.
    let document = read("a: 1\na:\n- b\n- c\na:\n  d: 1\n  e: 2\n").unwrap();
    assert_eq!(document.duplicates, [twice("\"a\"", 3), twice("\"a\"", 6)]);
}

#[test]
fn maps_are_merged_and_anchors_copied() {
    let text = "base: &base {a: 1, b: 2}\none:\n  <<: *base\n  b: 3\ntwo:\n  <<: [{a: 4}, *base]\nthree: *base\n";
    let read = value(text).unwrap();
    assert_eq!(read["one"], json!({"a": 1, "b": 3}));
    assert_eq!(read["two"], json!({"a": 4, "b": 2}));
    assert_eq!(read["three"], json!({"a": 1, "b": 2}));
    assert_eq!(value("- &n 0444\n- *n\n- {*n : a}").unwrap(), json!([292, 292, {"292": "a"}]));
    assert!(value("<<: 1").is_err());
    assert!(value("a: *nobody").is_err());
}

#[test]
fn comments_are_as_long_as_they_like() {
    let text = format!("spec:\n{}  size: 1\n", "  # a line\n".repeat(5000));
    assert_eq!(value(&text).unwrap(), json!({"spec": {"size": 1}}));
}

#[test]
fn quoted_texts_may_go_on_anywhere() {
    let text = "a:\n  b:\n    - text: 'one\n    two\n  three'\n      more: \"four\n  five\"\n";
    let wanted = json!({"a": {"b": [{"text": "one two three", "more": "four five"}]}});
    assert_eq!(value(text).unwrap(), wanted);
    assert_eq!(values(&format!("{text}---\n{text}")).unwrap(), [wanted.clone(), wanted]);
}

#[test]
fn documents_are_read_one_after_the_other() {
    let text = "# header\n---\na: 1\n---\n---\nb: 2\n...\n";
    assert_eq!(values(text).unwrap(), [json!({"a": 1}), json!(null), json!({"b": 2})]);
    assert_eq!(value("a: 1\n---\nb: [").unwrap(), json!({"a": 1}));
    assert_eq!(value("").unwrap(), json!(null));
    assert!(read_all("a: 1\n---\nb: [").is_err());
    assert!(values("").unwrap().is_empty());
}

#[test]
fn texts_that_grow_or_nest_without_end_are_refused() {
    let mut text = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (one, other) in "abcdefgh".chars().zip("bcdefghi".chars()) {
        let all = vec![format!("*{one}"); 9].join(", ");
        let line = format!("{other}: &{other} [{all}]\n");
        text.push_str(&line);
    }
    assert!(value(&text).unwrap_err().message.contains("excessive aliasing"));
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert!(read_nested(&nested(50), 50).is_ok());
    assert!(read_nested(&nested(51), 50).is_err());
    let block = |levels: usize| "- ".repeat(levels) + "1";
    assert!(read_nested(&block(51), 50).is_err());
    assert!(value("a: &a [*a]").is_err());
}

#[test]
fn what_is_wrong_has_a_place() {
    let error = value("a: 1\nb: [1, 2\nc: 3\n").unwrap_err();
    assert!(error.line >= 2, "{error}");
    let error = value("a: 1\nb: .nan\n").unwrap_err();
    assert_eq!((error.line, error.column), (2, 4), "{error}");
}
