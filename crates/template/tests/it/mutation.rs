//! Templates of mutations: the value that is changed is a gjson result.

use carrick_template::{RenderError, Template};
use serde_json::{Value, json};

/// Enough of gjson for tests: one key.
fn get(json: &Value, path: &str) -> Option<Value> {
    json.get(path).cloned()
}

fn render(text: &str, value: Option<&Value>) -> Result<String, RenderError> {
    let data = json!({"LocalObject": {"a": 1}, "RemoteObject": null});
    Template::compile(text).unwrap().render_mutation(value, get, data.as_object().unwrap())
}

#[test]
fn values_have_the_methods_of_gjson_results() {
    let values = [
        Some(json!("alice")),
        Some(json!("-12")),
        Some(json!("True")),
        Some(json!(42)),
        Some(json!(1.5)),
        Some(json!(1e21)),
        Some(json!(true)),
        Some(json!(null)),
        Some(json!({"k": ["<v>"]})),
        Some(json!([1, "b", null])),
        None,
    ];
    let table = [
        (
            "{{ .Value }}",
            [
                "alice",
                "-12",
                "True",
                "42",
                "1.5",
                "1000000000000000000000",
                "true",
                "",
                r#"{"k":["\u003cv\u003e"]}"#,
                r#"[1,"b",null]"#,
                "",
            ],
        ),
        ("{{ .Value.Str }}", ["alice", "-12", "True", "", "", "", "", "", "", "", ""]),
        (
            "{{ .Value.Raw }}",
            [
                r#""alice""#,
                r#""-12""#,
                r#""True""#,
                "42",
                "1.5",
                "1e+21",
                "true",
                "null",
                r#"{"k":["\u003cv\u003e"]}"#,
                r#"[1,"b",null]"#,
                "",
            ],
        ),
        ("{{ .Value.Int }}", ["0", "-12", "0", "42", "1", "-9223372036854775808", "1", "0", "0", "0", "0"]),
        ("{{ .Value.Uint }}", ["0", "0", "0", "42", "1", "9223372036854775808", "1", "0", "0", "0", "0"]),
        ("{{ .Value.Num }}", ["0", "0", "0", "42", "1.5", "1e+21", "0", "0", "0", "0", "0"]),
        ("{{ .Value.Float }}", ["0", "-12", "0", "42", "1.5", "1e+21", "1", "0", "0", "0", "0"]),
        (
            "{{ .Value.Bool }}",
            ["false", "false", "true", "true", "true", "true", "true", "false", "false", "false", "false"],
        ),
        (
            "{{ .Value.Exists }}",
            ["true", "true", "true", "true", "true", "true", "true", "true", "true", "true", "false"],
        ),
        (
            "{{ .Value.Type }}{{ printf \"%d\" .Value.Type }}",
            [
                "String3", "String3", "String3", "Number2", "Number2", "Number2", "True4", "Null0", "JSON5", "JSON5",
                "Null0",
            ],
        ),
        (
            "{{ len .Value.Array }}{{ len .Value.Map }}",
            ["10", "10", "10", "10", "10", "10", "10", "00", "11", "30", "00"],
        ),
        (
            "{{ .Value.IsArray }}",
            ["false", "false", "false", "false", "false", "false", "false", "false", "false", "true", "false"],
        ),
        (
            "{{ (.Value.Get \"k\").Exists }}",
            ["false", "false", "false", "false", "false", "false", "false", "false", "true", "false", "false"],
        ),
        (
            "{{ kindOf .Value.Value }}",
            [
                "string", "string", "string", "float64", "float64", "float64", "bool", "invalid", "map", "slice",
                "invalid",
            ],
        ),
    ];
    for (text, expected) in table {
        for (value, expected) in values.iter().zip(expected) {
            assert_eq!(render(text, value.as_ref()).as_deref(), Ok(expected), "{text} of {value:?}");
        }
    }
}

#[test]
fn results_are_a_type_of_their_own() {
    let value = json!({"list": [1, 2], "at": "2024-05-06T07:08:09Z"});
    let table = [
        ("{{ typeOf .Value }} {{ kindOf .Value }} {{ typeOf .Value.Type }}", Ok("gjson.Result struct gjson.Type")),
        ("{{ typeOf .Value.Map }} {{ typeOf .Value.Array }}", Ok("map[string]gjson.Result []gjson.Result")),
        ("{{ range .Value.Map.list.Array }}[{{ .Int }}]{{ end }}", Ok("[1][2]")),
        ("{{ (.Value.Get \"list\").Array | join \"-\" }}", Ok("1-2")),
        ("{{ (index .Value.Map \"nope\").Exists }}", Ok("false")),
        ("{{ (.Value.Get \"at\").Time.Year }}", Ok("2024")),
        ("{{ quote (.Value.Get \"at\") }}", Ok("\"2024-05-06T07:08:09Z\"")),
        ("{{ if eq .Value.Type 5 }}yes{{ end }}", Ok("yes")),
        ("{{ eq .Value.Type.String \"JSON\" }}", Ok("true")),
        ("{{ if .Value.Map.nope }}yes{{ else }}no{{ end }}", Ok("no")),
        ("{{ .Value | upper }}", Err("wrong type for value; expected string; got gjson.Result")),
        ("{{ .Value.list }}", Err("can't evaluate field list in type gjson.Result")),
        ("{{ .Value.Get }}", Err("wrong number of args for Get: want 1 got 0")),
        (
            "{{ toJson (.Value.Get \"at\").Type }}{{ toJson (.Value.Get \"none\") }}",
            Ok(r#"3{"Type":0,"Raw":"","Str":"","Num":0,"Index":0,"Indexes":null}"#),
        ),
    ];
    for (text, expected) in table {
        let outcome = render(text, Some(&value)).map_err(|error| match error {
            RenderError::Action { message, .. } => message,
            other => other.to_string(),
        });
        assert_eq!(outcome, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
    }
}

#[test]
fn missing_keys_print_nothing_if_asked_to() {
    let data = json!({"LocalObject": {"a": 1}, "RemoteObject": null});
    let template = Template::compile("<{{ .LocalObject.nope }}{{ .RemoteObject }}>").unwrap();
    let rendered = |template: &Template| template.render_mutation(None, get, data.as_object().unwrap()).unwrap();
    assert_eq!(rendered(&template), "<<no value><no value>>");
    assert_eq!(rendered(&template.silent_about_missing()), "<>");
}

#[test]
fn large_values_cost_their_size() {
    let value = json!((0..1000).map(|i| json!({"k": i})).collect::<Vec<_>>());
    for text in
        ["{{ range 1000 }}{{ $x := $.Value.Array }}{{ end }}", "{{ range 1000 }}{{ $x := $.Value.Get \"k\" }}{{ end }}"]
    {
        assert!(matches!(render(text, Some(&value)), Err(RenderError::Limit { .. })), "{text}");
    }
}
