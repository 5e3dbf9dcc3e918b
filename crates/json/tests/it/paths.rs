//! The answers of gjson and sjson, and what holds beyond them.

use carrick_json::path::{self, Kind, PathError, Problem, text};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    cases: Vec<Case<'a>>,
}

#[derive(Deserialize)]
struct Case<'a> {
    op: String,
    path: String,
    input: String,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    output: Option<String>,
    error: Option<String>,
}

#[test]
fn all_recorded_answers_agree() {
    for (file, count) in [(include_str!("../paths.json"), 58), (include_str!("../paths-more.json"), 542)] {
        let file: File<'_> = serde_json::from_str(file).unwrap();
        assert_eq!(file.cases.len(), count);
        for case in &file.cases {
            // an absent value reads as null, as in Go
            let got = path::answer(&case.op, &case.path, &case.input, case.value.map(RawValue::get));
            let want = case.error.clone().map_or_else(|| Ok(case.output.clone().unwrap()), Err);
            assert_eq!(got.map_err(|error| error.to_string()), want, "{} {} in {}", case.op, case.path, case.input);
        }
    }
}

#[test]
fn unknown_operations_and_broken_values_are_refused() {
    assert_eq!(path::answer("jq", "a", "{}", None).unwrap_err().problem, Problem::Operation("jq".into()));
    assert!(matches!(path::answer("set", "a", "{}", Some("{")).unwrap_err().problem, Problem::Value(_)));
}

#[test]
fn numbers_stay_as_they_are_written() {
    let json = r#"{"big":123456789012345678901234567890,"long":0.12345678901234567890123,"odd":1.50E+03,"l":[9007199254740993]}"#;
    let found = text::get(json, "{big,long,odd,l}");
    assert_eq!(found.raw(), json);
    assert_eq!(text::get(json, "big").text(), "123456789012345678901234567890");
    assert_eq!(text::get(json, "l.0").int(), 9_007_199_254_740_993);
    let changed = text::set(json, "new", r#""x""#).unwrap();
    assert_eq!(text::delete(&changed, "new").unwrap(), json);
    for (value, want) in [
        ("9007199254740993", "9007199254740993"),
        ("0.12345678901234567890123", "0.12345678901234567890123"),
        ("1.50", "1.5"),
        ("1e400", "1e400"),
        ("[1.0,1e21,12345678901234567890]", "[1,1e+21,12345678901234567890]"),
    ] {
        assert_eq!(path::answer("set", "a", "{}", Some(value)).unwrap(), format!(r#"{{"a":{want}}}"#));
    }
}

#[test]
fn values_keep_their_kind_of_number() {
    let mut json = json!({"f": 1.0, "g": 1e21, "h": 5e-324, "i": u64::MAX, "j": i64::MIN, "k": 0.1});
    let before = json.clone();
    path::set(&mut json, "x", json!([1.0, 2])).unwrap();
    assert_eq!(json["x"], json!([1.0, 2]));
    path::delete(&mut json, "x").unwrap();
    assert_eq!(json, before);
}

#[test]
fn values_convert_as_gjson_converts_them() {
    for (json, text, int, float, bool) in [
        ("null", "", 0, 0.0, false),
        ("true", "true", 1, 1.0, true),
        ("1.5", "1.5", 1, 1.5, true),
        ("3.0", "3", 3, 3.0, true),
        ("1e21", "1000000000000000000000", i64::MIN, 1e21, true),
        ("1e-7", "0.0000001", 0, 0.000_000_1, true),
        ("9007199254740993", "9007199254740993", 9_007_199_254_740_993, 9_007_199_254_740_992.0, true),
        (r#""12""#, "12", 12, 12.0, false),
        (r#""T""#, "T", 0, 0.0, true),
        (r#""0x1.8p1""#, "0x1.8p1", 0, 3.0, false),
        (r#""1_000.5""#, "1_000.5", 0, 1000.5, false),
        (r#"{"a": "<"}"#, r#"{"a": "<"}"#, 0, 0.0, false),
    ] {
        let document = format!(r#"{{"v":{json}}}"#);
        let found = text::get(&document, "v");
        assert_eq!((found.text().as_str(), found.int(), found.bool()), (text, int, bool), "{json}");
        assert!((found.float() - float).abs() <= f64::EPSILON * float.abs(), "{json}");
    }
}

#[test]
fn arrays_iterate_and_single_values_count_as_one() {
    let json = json!({"l": [1, "a", null], "s": "x", "n": null});
    let texts = |path: &str| path::get(&json, path).array().map(|item| item.text()).collect::<Vec<_>>();
    assert_eq!(texts("l"), ["1", "a", ""]);
    assert_eq!(texts("s"), ["x"]);
    assert!(texts("n").is_empty());
    assert!(texts("nope").is_empty());
}

#[test]
fn results_tell_where_they_are() {
    let json = r#"{"a": [{"b": 1}, {"b": 22}], "c": "x"}"#;
    for (path, index, indexes) in [
        ("a", 6, None),
        ("a.1.b", 23, None),
        ("a.#.b", 0, Some(vec![13, 23])),
        ("a.#(b>0)#.b", 0, Some(vec![13, 23])),
        ("a.#(b>1).b", 23, None),
        ("a|1.b", 0, None),
        ("a.#", 0, None),
        ("nope", 0, None),
    ] {
        let found = text::get(json, path);
        assert_eq!((found.index(), found.indexes()), (index, indexes), "{path}");
    }
    assert_eq!(text::get(json, "a").get("#.b").raw(), "[1,22]");
}

/// Where the place of a result gets lost in gjson, sjson destroys the document; see the documentation of the crate.
#[test]
fn writes_that_go_garbles_are_done_right_or_not_at_all() {
    let json = r#"{"z":0,"l":[{"n":1,"i":[{"v":1},{"v":2}]},{"n":2,"i":[{"v":3}]}],"s":"[1,2]","e":[1,2]}"#;
    for (path, want) in [
        ("l|#.n", json.replace(r#""n":1"#, r#""n":"X""#).replace(r#""n":2"#, r#""n":"X""#)),
        ("l|0", json.to_owned()),
        ("@this|l.#.n", json.to_owned()),
        ("{l}.l.#.n", json.to_owned()),
        ("l.#.@keys", json.to_owned()),
        ("l.#(n==2).@this.n", json.replace(r#""n":2"#, r#""n":"X""#)),
        ("l.#(n==1).i.#.v", json.replace(r#""v":1"#, r#""v":"X""#).replace(r#""v":2"#, r#""v":"X""#)),
        (
            "l.#.i.#.v",
            json.replace(r#""v":1"#, r#""v":"X""#).replace(r#""v":2"#, r#""v":"X""#).replace(r#""v":3"#, r#""v":"X""#),
        ),
        ("e.#.@this", json.replace("[1,2]}", r#"["X","X"]}"#)),
        ("s.0", json.replace(r#""[1,2]""#, r#"["X"]"#)),
    ] {
        assert_eq!(text::set(json, path, r#""X""#).unwrap(), want, "{path}");
    }
    assert_eq!(text::delete(json, "s.0").unwrap(), json);
}

#[test]
fn impossible_writes_are_refused_and_say_where() {
    let error = |problem, at| PathError { problem, position: Some(at) };
    for (path, want) in [
        ("", error(Problem::Empty, 0)),
        ("l.x", error(Problem::NonNumericKey("x".into()), 2)),
        ("l.x.y", error(Problem::NonNumericKey("x".into()), 2)),
        ("l.:5", error(Problem::NonNumericKey("5".into()), 3)),
        ("l.99999999", error(Problem::IndexTooLarge("99999999".into()), 2)),
        ("l.99999999999999999999999", error(Problem::IndexTooLarge("99999999999999999999999".into()), 2)),
        ("new.a.99999999", error(Problem::IndexTooLarge("99999999".into()), 6)),
    ] {
        let mut json = json!({"l": [1]});
        assert_eq!(path::set(&mut json, path, json!("X")), Err(want), "{path}");
        assert_eq!(json, json!({"l": [1]}));
    }
    assert_eq!(path::delete(&mut json!({}), "").unwrap_err().problem, Problem::Empty);
    assert_eq!(path::delete(&mut json!({}), "a.#.b").unwrap_err(), error(Problem::ComplexDelete, 2));
    let deep = vec!["a"; 1_100].join(".");
    assert!(matches!(path::set(&mut json!({}), &deep, json!(1)).unwrap_err().problem, Problem::TooDeep(_)));
}

#[test]
fn deeply_nested_paths_and_documents_do_not_exhaust_the_stack() {
    let json = json!({"a": 1});
    for path in ["[".repeat(20_000), "#(".repeat(20_000), "a.".repeat(20_000), "!".repeat(20_000)] {
        assert!(!path::get(&json, &path).exists());
    }
    assert_eq!(path::get(&json, &format!("{}a", "@this|".repeat(10_000))).raw(), "1");
    let path = format!("{}a{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(matches!(text::try_get(r#"{"a":1}"#, &path).unwrap_err().problem, Problem::TooMuchWork));
    let deep = "[".repeat(20_000);
    let nested = format!("{deep}{}", "]".repeat(20_000));
    for document in [&deep, &nested, &r#"{"a":"#.repeat(20_000)] {
        let paths = ["@pretty", "@ugly", "@flatten:{\"deep\":true}", "@dig:a", "@valid", "@reverse", "@join", "@group"];
        for path in paths.iter().copied().chain(["*.*.*.*", "#.#.#", "0.0.0", "#(#(#))"]) {
            text::get(document, path);
            let _ = text::set(document, path, "1");
        }
        let _ = text::set(document, &"a.".repeat(1000), "1");
        let _ = text::delete(document, &"0.".repeat(1000));
    }
}

#[test]
fn paths_that_multiply_their_result_end_early() {
    let json = r#"{"a":[1,2,3,4,5,6,7,8]}"#;
    for path in [
        vec!["[@this,@this]"; 60].join("|"),
        ["@dig:@dig:@dig:@dig:@dig:@dig:@dig:@dig"; 8].join("|"),
        vec!["@tostr"; 60].join("|"),
        format!("a.#(%\"{}b\")", "*a".repeat(5_000)),
    ] {
        assert!(text::get(json, &path).raw().len() < 64 << 20);
        assert!(text::set(json, &path, "1").is_ok_and(|out| out == json) || text::try_get(json, &path).is_err());
    }
}

#[test]
fn kinds_are_named_as_in_gjson() {
    let names: Vec<String> = [Kind::Null, Kind::False, Kind::Number, Kind::String, Kind::True, Kind::Json]
        .map(|kind| kind.to_string())
        .into();
    assert_eq!(names, ["Null", "False", "Number", "String", "True", "JSON"]);
}

#[test]
fn values_read_as_their_sorted_text() {
    let json: Value = serde_json::from_str(r#"{"z":1,"a":{"y":"<","x":2}}"#).unwrap();
    assert_eq!(path::get(&json, "@keys").raw(), r#"["a","z"]"#);
    assert_eq!(path::get(&json, "a").text(), r#"{"x":2,"y":"\u003c"}"#);
    assert_eq!(path::get(&json, "a").into_value(), json["a"]);
    assert_eq!(path::get(&json, "nope").value(), None);
}
