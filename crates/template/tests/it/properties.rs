//! What holds for any text.

use std::fmt::Write;

use carrick_template::{Template, limits};
use proptest::prelude::*;
use serde_json::{Value, json};

fn data() -> Value {
    json!({"a": 1, "b": "text", "c": [1, "x", null], "d": {"e": 1.5}, "n": null})
}

/// Pieces of templates, so that random texts are often almost right.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{{- ",
    " -}}",
    "{{/* c */}}",
    "if ",
    "else",
    "else if ",
    "end",
    "range ",
    "with ",
    "define \"t\"",
    "block \"u\" .",
    "template \"t\" .",
    "break",
    "continue",
    ".",
    ".a",
    ".b",
    ".c",
    ".d.e",
    "$",
    "$x",
    " := ",
    " = ",
    "|",
    ",",
    "(",
    ")",
    "\"s\"",
    "`r`",
    "1",
    "-1",
    "1.5",
    "'x'",
    "nil",
    "true",
    "len ",
    "print ",
    "printf \"%v %d\" ",
    "upper ",
    "list ",
    "dict ",
    "until 3",
    "index ",
    "toJson ",
    "repeat 3 ",
    "regexMatch ",
    " ",
    "\n",
    "é",
    "{",
    "<a href=\"",
    "<script>",
    "'",
    "\\",
];

prop_compose! {
    fn almost_a_template()(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..24)) -> String {
        pieces.concat()
    }
}

/// An expression that compiles.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "1",
        "\"s\"",
        ".a",
        ".b",
        ".c",
        ".d",
        "$",
        ".",
        "true",
        "$.d.e",
        "nil | print",
        "'x'",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|e| format!("len ({e})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("list ({a}) ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) | print ({b})")),
            inner.clone().prop_map(|e| format!("({e}) | toJson | upper")),
            inner.prop_map(|e| format!("(dict \"k\" ({e})).k")),
        ]
    })
}

/// A template that compiles.
fn template() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-z{ \n]{0,6}".prop_map(|text| text.replace("{{", "{ ")),
        expression().prop_map(|e| format!("{{{{ {e} -}}}}")),
        expression().prop_map(|e| format!(" {{{{- $v := {e} }}}}{{{{ $v }}}}")),
        Just("{{- /* nothing */}}".to_owned()),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let body = prop::collection::vec(inner, 0..3).prop_map(|parts| parts.concat());
        prop_oneof![
            (expression(), body.clone(), body.clone())
                .prop_map(|(e, a, b)| format!("{{{{if {e}}}}}{a}{{{{else if {e}}}}}{b}{{{{else}}}}z{{{{end}}}}")),
            (expression(), body.clone())
                .prop_map(|(e, a)| format!("{{{{with {e}}}}}{a}{{{{else with 1}}}}w{{{{end}}}}")),
            (body.clone(), body.clone()).prop_map(|(a, b)| format!(
                "{{{{range $i, $e := .c}}}}{a}{{{{if $i}}}}{{{{break}}}}{{{{end}}}}{b}{{{{end}}}}"
            )),
            body.prop_map(|a| format!("{{{{block \"x\" .}}}}{a}{{{{end}}}}")),
        ]
    })
    .prop_map(|text| text.replace("{{{", "{ {{"))
}

fn outcome(template: &Template) -> Result<String, String> {
    template.render_value(&data()).map_err(|error| error.message())
}

proptest! {
    #[test]
    fn a_text_without_actions_renders_itself(text in "\\PC{0,200}") {
        prop_assume!(!text.contains("{{"));
        let template = Template::compile(&text).unwrap();
        prop_assert_eq!(template.render_value(&Value::Null).unwrap(), text);
    }

    #[test]
    fn what_is_printed_means_the_same(text in template()) {
        // A block may come twice, which is an error.
        if let Ok(template) = Template::compile(&text) {
            let printed = template.to_string();
            let again = Template::compile(&printed).unwrap_or_else(|error| panic!("{text:?} prints as {printed:?}: {error}"));
            prop_assert_eq!(again.to_string(), printed.clone());
            prop_assert_eq!(outcome(&again), outcome(&template), "{:?} prints as {:?}", text, printed);
        }
    }

    #[test]
    fn nothing_panics_or_exceeds_its_bounds(text in prop_oneof![almost_a_template(), template(), "\\PC{0,60}"]) {
        let position = match Template::compile(&text).map(|template| template.render_value(&data())) {
            Ok(Ok(output)) => {
                prop_assert!(output.len() <= 3 * limits::MAX_OUTPUT);
                None
            }
            Ok(Err(error)) => error.position(),
            Err(error) => error.position(),
        };
        if let Some(position) = position {
            prop_assert!(text.get(position.offset..position.offset + position.length).is_some());
        }
    }

    #[test]
    fn fields_are_read_however_they_are_reached(name in "[a-z]{1,5}", value in -1000..1000i64) {
        let mut text = String::new();
        let _ = write!(text, "{{{{ .o.{name} }}}} {{{{ $.o.{name} }}}} {{{{ with .o }}}}{{{{ .{name} }}}}{{{{ end }}}} ");
        let _ = write!(text, "{{{{ (.o).{name} }}}} {{{{ index .o {name:?} }}}} {{{{ $v := . }}}}{{{{ $v.o.{name} }}}}");
        let data = json!({"o": {name: value, "other": 0}, "p": 1});
        let expected = [value.to_string().as_str(); 6].join(" ");
        prop_assert_eq!(Template::compile(&text).unwrap().render_value(&data).unwrap(), expected);
    }
}
