//! The recorded results of gjson and sjson, and tables for what they leave out.

use carrick_json::path::{self, Kind, PathError, Problem};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Cases whose outcome depends on the order of keys, with the outcome for sorted keys.
const SORTED: [(&str, &str, &str); 1] = [("sjsonset", "spec.*", "aNumber")];

/// Raw JSON with sorted keys and plain numbers, as a document has after a trip through Go's encoder.
fn canonical(raw: &str, path: &str) -> String {
    match serde_json::from_str::<Value>(raw) {
        Ok(mut value) => {
            if let (true, Value::Array(keys)) = (path.ends_with("@keys"), &mut value) {
                keys.sort_by_key(ToString::to_string);
            }
            carrick_json::go::to_string(&value).expect("values encode")
        }
        Err(_) => raw.to_owned(),
    }
}

#[test]
fn all_recorded_cases_agree() {
    let file: Value = serde_json::from_str(include_str!("paths.json")).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 58);
    for case in cases {
        let (op, path) = (case["op"].as_str().unwrap(), case["path"].as_str().unwrap());
        let mut json: Value = serde_json::from_str(case["input"].as_str().unwrap()).unwrap();
        let output = case["output"].as_str().unwrap_or_default();
        let result = match op {
            "gjson" => {
                let found = path::get(&json, path);
                let (head, raw_and_text) = output.split_once(" raw=").unwrap();
                let (raw, text) = raw_and_text.rsplit_once(" str=").unwrap();
                assert_eq!(format!("exists={} type={}", found.exists(), found.kind()), head, "{path}");
                assert_eq!(found.raw(), canonical(raw, path), "{path}");
                let text = if found.kind() == Kind::Json { canonical(text, path) } else { text.to_owned() };
                assert_eq!(found.text(), text, "{path}");
                continue;
            }
            "sjsonset" => path::set(&mut json, path, case["value"].clone()),
            "sjsondel" => path::delete(&mut json, path),
            other => panic!("unknown operation {other}"),
        };
        match case["error"].as_str() {
            Some(error) => assert_eq!(result.unwrap_err().to_string(), error, "{op} {path}"),
            None => result.unwrap(),
        }
        let mut want: Value = serde_json::from_str(output).unwrap_or_else(|_| json.clone());
        if let Some((_, _, first)) = SORTED.iter().find(|(o, p, _)| (*o, *p) == (op, path)) {
            want = serde_json::from_str(case["input"].as_str().unwrap()).unwrap();
            want["spec"][first] = case["value"].clone();
        }
        // sjson writes the float 1 without a fraction
        assert_eq!(
            carrick_json::go::to_string(&json).unwrap(),
            carrick_json::go::to_string(&want).unwrap(),
            "{op} {path}"
        );
    }
}

fn friends() -> Value {
    json!({
        "name": {"first": "Tom", "last": "Anderson"},
        "age": 37,
        "children": ["Sara", "Alex", "Jack"],
        "fav.movie": "Deer Hunter",
        "friends": [
            {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
            {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
            {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"], "vip": true}
        ],
        "nested": [[1, 2], [3, [4]]],
        "loose": [{"a": 1}, {"a": null}, {"a": "true"}, {"b": 2}, {"a": 0}, {"a": false}],
        "columns": {"id": ["x", "y"], "n": [1, 2, 3]},
        "quoted": "{\"in\":[1]}",
        "a*b": "star",
        "deep": {"a": {"a": {"b": 1}}},
        "@odd": {"x": 1}
    })
}

#[test]
fn reading_follows_the_syntax_of_gjson() {
    let json = friends();
    for (path, want) in [
        ("name.last", r#""Anderson""#),
        ("children.#", "3"),
        ("child*.2", r#""Jack""#),
        ("c?ildren.0", r#""Sara""#),
        (r"fav\.movie", r#""Deer Hunter""#),
        (r"a\*b", r#""star""#),
        ("friends.#.first", r#"["Dale","Roger","Jane"]"#),
        ("friends.1.last", r#""Craig""#),
        ("friends.#.vip", "[true]"),
        ("friends.#.nope", "[]"),
        (r#"friends.#(last=="Murphy").first"#, r#""Dale""#),
        (r#"friends.#(last=="Murphy")#.first"#, r#"["Dale","Jane"]"#),
        (r#"friends.#(last="Craig").age"#, "68"),
        ("friends.#(age>45)#.last", r#"["Craig","Murphy"]"#),
        ("friends.#(age<=44)#.age", "[44]"),
        (r#"friends.#(first%"D*").last"#, r#""Murphy""#),
        (r#"friends.#(first!%"D*").last"#, r#""Craig""#),
        (r#"friends.#(nets.#(=="ig"))#.first"#, r#"["Dale","Jane"]"#),
        ("friends.#(vip).first", r#""Jane""#),
        ("friends.#(nope)#", "[]"),
        (r#"children.#(!="Sara")"#, r#""Alex""#),
        (r#"children.#(>"B")#"#, r#"["Sara","Jack"]"#),
        ("loose.#(a==~true)#.a", r#"[1,"true"]"#),
        ("loose.#(a==~false)#", r#"[{"a":null},{"b":2},{"a":0},{"a":false}]"#),
        ("loose.#(a==~null)#", r#"[{"a":null},{"b":2}]"#),
        ("loose.#(a!=~*)#", r#"[{"b":2}]"#),
        ("friends|#", "3"),
        ("friends.#.first|0", r#""Dale""#),
        ("friends.#(age>45)#|#", "2"),
        ("friends.#(age>45)#.first|1", r#""Jane""#),
        ("friends.#.nets.#", "[3,2,2]"),
        ("friends.#.nets.0", r#"["ig","fb","ig"]"#),
        ("children|@reverse", r#"["Jack","Alex","Sara"]"#),
        ("children.@reverse.0", r#""Jack""#),
        ("name.@keys", r#"["first","last"]"#),
        ("name.@keys.1", r#""last""#),
        ("name.@values", r#"["Tom","Anderson"]"#),
        ("friends.0.nets.@values|0", r#""ig""#),
        ("nested.@flatten", "[1,2,3,[4]]"),
        (r#"nested.@flatten:{"deep":true}"#, "[1,2,3,4]"),
        (r#"nested.@flatten:{"deep":true}.#"#, "4"),
        ("friends.@join.first", r#""Jane""#),
        ("columns.@group", r#"[{"id":"x","n":1},{"id":"y","n":2},{"n":3}]"#),
        ("quoted.@fromstr.in.0", "1"),
        ("name.@tostr", r#""{\"first\":\"Tom\",\"last\":\"Anderson\"}""#),
        ("@dig:vip", "[true]"),
        ("@this.age", "37"),
        ("@odd.x", "1"),
        ("name.@this.first", r#""Tom""#),
        ("{age,name.first}", r#"{"age":37,"first":"Tom"}"#),
        (r#"{"years":age,who:name.first,children.#}"#, r#"{"_":3,"who":"Tom","years":37}"#),
        ("[age,name.first,nope]", r#"[37,"Tom"]"#),
        ("friends.#.{first,age}|0", r#"{"age":44,"first":"Dale"}"#),
        ("friends.0.[first,age].1", "44"),
        ("{age,lit:!\"x\"}", r#"{"age":37,"lit":"x"}"#),
        ("!true", "true"),
        ("![1,2].1", "2"),
        ("..#", "1"),
        ("..0.age", "37"),
        ("", ""),
        ("age.x", ""),
        ("deep.a.b", ""),
        ("d*.a.a.b", "1"),
        ("children.x", ""),
        ("children.-1", ""),
        ("children.9", ""),
        ("children.+1", ""),
        ("friends.#(age", ""),
        ("{age", ""),
        ("name.nope.@keys", "[]"),
        ("nope.nope.@keys", ""),
        ("name.nope|[first]", "[]"),
        ("name.nope|@this", ""),
        (".name", ""),
    ] {
        assert_eq!(path::get(&json, path).raw(), want, "{path}");
    }
}

#[test]
fn wildcards_try_every_key_until_the_rest_of_the_path_fits() {
    let json = json!({"a1": {"x": 1}, "a2": {"y": 2}, "a3": 3});
    assert_eq!(path::get(&json, "a*.y").raw(), "2");
    assert!(!path::get(&json, "a*|y").exists());
}

#[test]
fn values_convert_as_gjson_converts_them() {
    for (json, text, int, float, bool) in [
        (json!(null), "", 0, 0.0, false),
        (json!(true), "true", 1, 1.0, true),
        (json!(1.5), "1.5", 1, 1.5, true),
        (json!(3.0), "3", 3, 3.0, true),
        (json!(1e21), "1000000000000000000000", i64::MAX, 1e21, true),
        (json!(0.000_000_1), "0.0000001", 0, 0.000_000_1, true),
        (json!(9_007_199_254_740_993_i64), "9007199254740993", 9_007_199_254_740_993, 9_007_199_254_740_992.0, true),
        (json!("12"), "12", 12, 12.0, false),
        (json!("T"), "T", 0, 0.0, true),
        (json!({"a": "<"}), r#"{"a":"\u003c"}"#, 0, 0.0, false),
    ] {
        let document = json!({"v": json});
        let found = path::get(&document, "v");
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
fn writing_follows_the_rules_of_sjson() {
    for (json, path, want) in [
        (json!({}), "a.b", json!({"a": {"b": "X"}})),
        (json!({}), "a.1", json!({"a": [null, "X"]})),
        (json!({}), "a.:1", json!({"a": {"1": "X"}})),
        (json!({}), "a.-1", json!({"a": ["X"]})),
        (json!({}), "a.-1.b", json!({"a": [{"b": "X"}]})),
        (json!({}), "a.1.b.0", json!({"a": [null, {"b": ["X"]}]})),
        (json!({"a": [1, 2]}), "a.-1", json!({"a": [1, 2, "X"]})),
        (json!({"a": [1, 2]}), "a.3", json!({"a": [1, 2, null, "X"]})),
        (json!({"a": [1, 2]}), "a.:1", json!({"a": [1, "X"]})),
        (json!({"a": {"1": 2}}), "a.1", json!({"a": {"1": "X"}})),
        (json!({"a": {}}), "a.1", json!({"a": {"1": "X"}})),
        (json!({"a": {}}), "a.-1", json!({"a": {"-1": "X"}})),
        (json!({"a": 5}), "a.b", json!({"a": {"b": "X"}})),
        (json!({"a": 5}), "a.0", json!({"a": ["X"]})),
        (json!({"a": 5}), "a.-1", json!({"a": {"-1": "X"}})),
        (json!({"a": null}), "a.-1", json!({"a": {"-1": "X"}})),
        (json!({"a": [1]}), "a..b", json!({"a": [{"b": "X"}]})),
        (json!({}), "a[0]", json!({"a[0]": "X"})),
        (json!({}), r"a\.b.c", json!({"a.b": {"c": "X"}})),
        (json!({}), r"a\*", json!({"a*": "X"})),
        (json!({}), ".a", json!({"": {"a": "X"}})),
        (json!({"l": [{"n": 1}, {"m": 2}, {"n": 3}]}), "l.#.n", json!({"l": [{"n": "X"}, {"m": 2}, {"n": "X"}]})),
        (json!({"l": [{"n": 1, "k": 1}, {"n": 2}]}), "l.#(n==2).n", json!({"l": [{"n": 1, "k": 1}, {"n": "X"}]})),
        (json!({"l": [{"n": 1, "k": 1}, {"n": 2}]}), "l.#(n>0)#.n", json!({"l": [{"n": "X", "k": 1}, {"n": "X"}]})),
        (json!({"l": [{"n": 1}, {"n": 2}]}), "l.#(n==2)", json!({"l": [{"n": 1}, "X"]})),
        (json!({"l": [1]}), "l.#", json!({"l": [1]})),
        (json!({"l": [1]}), "l.#(==5)", json!({"l": [1]})),
        (json!({"a": {"b": 1}}), "a|b", json!({"a": {"b": 1}})),
        (json!({"a": {"b": 1}}), "a.@this", json!({"a": {"b": 1}})),
        (json!({"a": {"b": 1}}), "nope.*", json!({"a": {"b": 1}})),
        (json!({"a": {"b": 1}}), "?.b", json!({"a": {"b": "X"}})),
    ] {
        let mut got = json.clone();
        path::set(&mut got, path, json!("X")).unwrap();
        assert_eq!(got, want, "{json} {path}");
    }
}

#[test]
fn deleting_removes_what_is_there() {
    for (json, path, want) in [
        (json!({"a": {"b": 1, "c": 2}}), "a.b", json!({"a": {"c": 2}})),
        (json!({"a": [1, 2, 3]}), "a.0", json!({"a": [2, 3]})),
        (json!({"a": [1, 2, 3]}), "a.-1", json!({"a": [1, 2]})),
        (json!({"a": []}), "a.-1", json!({"a": []})),
        (json!({"a": [{"b": 1}]}), "a.0.b", json!({"a": [{}]})),
        (json!({"a": [{"b": 1}, {"b": 2}]}), "a.-1.b", json!({"a": [{"b": 1}, {}]})),
        (json!({"a.b": 1}), r"a\.b", json!({})),
        (json!({"a": 1}), "a.b.c", json!({"a": 1})),
        (json!({"a": {"1": 1}}), "a.:1", json!({"a": {}})),
    ] {
        let mut got = json.clone();
        path::delete(&mut got, path).unwrap();
        assert_eq!(got, want, "{json} {path}");
    }
}

#[test]
fn impossible_writes_are_refused_and_change_nothing() {
    for (path, error) in [
        ("", Problem::Empty),
        ("l.x", Problem::NonNumericKey("x".into())),
        ("l.x.y", Problem::NonNumericKey("x".into())),
        ("l.:5", Problem::NonNumericKey("5".into())),
        ("l.99999999", Problem::IndexTooLarge("99999999".into())),
        ("l.99999999999999999999999", Problem::IndexTooLarge("99999999999999999999999".into())),
        ("new.a.99999999", Problem::IndexTooLarge("99999999".into())),
    ] {
        let mut json = json!({"l": [1]});
        assert_eq!(path::set(&mut json, path, json!("X")).map_err(|error| error.problem), Err(error), "{path}");
        assert_eq!(json, json!({"l": [1]}));
    }
    assert_eq!(path::delete(&mut json!({}), "").unwrap_err().problem, Problem::Empty);
    let error = path::delete(&mut json!({}), "a.#.b").unwrap_err();
    assert_eq!(error, PathError { problem: Problem::ComplexDelete, position: Some(2) });
}

#[test]
fn deeply_nested_paths_lead_nowhere_instead_of_exhausting_the_stack() {
    let json = json!({"a": 1});
    for path in ["[".repeat(100_000), format!("{}a", "@this|".repeat(100_000)), "#(".repeat(100_000)] {
        assert!(!path::get(&json, &path).exists());
    }
    let path = format!("{}a{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(path::get(&json, &path).raw().len() < 200);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_path_panics(wanted in r#"[ab.|#()\[\]{}@:!*?\\"'=<>%~,0-9é-]{0,24}"#) {
        let mut json = friends();
        path::get(&json, &wanted);
        let _ = path::set(&mut json, &wanted, json!(1));
        let _ = path::delete(&mut json, &wanted);
    }

    #[test]
    fn what_was_set_is_read_back(parts in prop::collection::vec("[a-c]{1,2}|[0-3]", 1..5)) {
        let wanted = parts.join(".");
        let mut json = json!({"a": {"b": {"c": 1}}, "b": "text", "c": [[1], {"a": 2}]});
        if path::set(&mut json, &wanted, json!("new")).is_ok() {
            prop_assert_eq!(path::get(&json, &wanted).text(), "new");
            path::delete(&mut json, &wanted).expect("plain paths delete");
            let after = path::get(&json, &wanted);
            prop_assert!(after.text() != "new");
        }
    }
}
