//! What templates of the sync agent look like, and how mistakes are reported.

use carrick_template::{CompileError, Position, RenderError, Template};
use serde_json::{Map, Value, json};

fn data() -> Map<String, Value> {
    let data = json!({
        "Object": {"metadata": {"name": "objname", "namespace": "objnamespace"}, "spec": {"n": 3, "nil": null}},
        "ClusterName": "testcluster",
        "Side": "kcp",
    });
    data.as_object().unwrap().clone()
}

fn render(text: &str) -> Result<String, RenderError> {
    Template::compile(text).unwrap().render(&data())
}

#[test]
fn names_have_the_hashes_that_existing_objects_have() {
    let table = [
        ("{{ .ClusterName }}", "testcluster"),
        (
            "{{ .Object.metadata.namespace | sha3short }}-{{ .Object.metadata.name | sha3short }}",
            "2928c2aa0e510f017f07-73d08a1ba188f1340dae",
        ),
        ("{{ .Object.metadata.name | shortHash }}", "8b09d63c82efb771a2c5"),
        ("{{ sha3sum .Object.metadata.name }}", "73d08a1ba188f1340daedff377219a9888bc559c6f847c035e3c320b674bef42"),
        ("{{ sha3short .Object.metadata.name 8 }}", "73d08a1b"),
        (
            "{{ sha3short .Object.metadata.name 99 }}",
            "73d08a1ba188f1340daedff377219a9888bc559c6f847c035e3c320b674bef42",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(render(text).unwrap(), expected, "{text}");
    }
    for text in
        ["{{ sha3short .ClusterName 0 }}", "{{ sha3short .ClusterName 1 2 }}", "{{ .Object.metadata.uid | sha3short }}"]
    {
        assert!(render(text).is_err(), "{text}");
    }
}

#[test]
fn the_root_is_a_struct_and_everything_below_are_maps() {
    let table = [
        ("{{ .Object.metadata.uid }}", Ok("<no value>")),
        ("{{ .Object.no.such.thing }}", Ok("<no value>")),
        ("{{ .Object.spec.nil }}", Ok("<no value>")),
        ("{{ $.Side }}", Ok("kcp")),
        ("{{ kindOf . }}", Ok("struct")),
        ("{{ .Objekt }}", Err("no field Objekt; there are ClusterName, Object, Side")),
        ("{{ .Object.spec.nil.x }}", Err("nil pointer evaluating interface {}.x")),
        ("{{ .Object.spec.n.x }}", Err("can't evaluate field x in type int64")),
        ("{{ index . \"Side\" }}", Err("error calling index: can't index item of type struct")),
        ("{{ keys . }}", Err("wrong type for value; expected map[string]interface {}; got struct")),
    ];
    for (text, expected) in table {
        let outcome = render(text).map_err(|error| match error {
            RenderError::Action { message, .. } => message,
            other => other.to_string(),
        });
        assert_eq!(outcome, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
    }
}

#[test]
fn errors_tell_the_place() {
    let error = render("first\n  {{ if true }}{{ lower .Object.spec.n }}{{ end }}").unwrap_err();
    let expected = "template line 2, column 25, at <.Object.spec.n>: wrong type for value; expected string; got int64";
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.position(), Some(Position { line: 2, column: 25, offset: 30, length: 14 }));
    assert_eq!(error.message(), "wrong type for value; expected string; got int64");
    let error = Template::compile("é {{ nosuch }}").unwrap_err();
    assert_eq!(error.position(), Some(Position { line: 1, column: 6, offset: 6, length: 6 }));
    assert_eq!(error.message(), "function \"nosuch\" does not exist");

    let table = [
        ("{{ nosuch 1 }}", "template line 1, column 4: function \"nosuch\" does not exist"),
        ("é\nä {{ nosuch \"x\" 1 }}", "template line 2, column 6: function \"nosuch\" does not exist"),
        ("a {{ if true }} b", "template line 1, column 18: unexpected end of text; an {{end}} is missing"),
        ("{{ .x", "template line 1, column 6: unclosed action"),
        ("{{ $x }}", "template line 1, column 4: undefined variable \"$x\""),
    ];
    for (text, expected) in table {
        assert_eq!(Template::compile(text).unwrap_err().to_string(), expected, "{text}");
    }
    assert!(
        matches!(Template::compile("{{ shasum 1 }}"), Err(CompileError::UnknownFunction { name, .. }) if name == "shasum")
    );
}

#[test]
fn rendering_changes_neither_the_data_nor_the_template() {
    let template = Template::compile(r#"{{ $_ := set .Object "x" "y" }}{{ .Object.x }}{{ len .Object }}"#).unwrap();
    let data = data();
    assert_eq!(template.render(&data).unwrap(), "y3");
    assert_eq!(template.render(&data).unwrap(), "y3");
    assert_eq!(data["Object"].as_object().unwrap().len(), 2);
}

#[test]
fn templates_can_be_shared_between_threads() {
    fn check<T: Send + Sync + Clone + std::fmt::Debug>(_: &T) {}
    let template = Template::compile("{{ .Side }}").unwrap();
    check(&template);
    let other = template.clone();
    assert_eq!(std::thread::spawn(move || other.render(&data()).unwrap()).join().unwrap(), "kcp");
    assert_eq!(template.text(), "{{ .Side }}");
}

#[test]
fn nothing_outside_is_visible() {
    let text = r#"[{{ env "PATH" }}{{ expandenv "$PATH" }}{{ getHostByName "localhost" }}]"#;
    assert_eq!(render(text).unwrap(), "[]");
}
