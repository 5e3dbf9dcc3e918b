//! Expressions of admission policies.

use carrick_cel::{Admission, AdmissionInput, AdmissionScope, AdmissionType, CompileError, EvalError, Evaluated};
use serde_json::{Value, json};

fn eval(source: &str, scope: &AdmissionScope, object: &Value, params: &Value) -> Result<Evaluated, EvalError> {
    let namespace =
        json!({"metadata": {"name": "n", "labels": {"a": "b"}, "creationTimestamp": "2024-01-02T03:04:05Z"}});
    let request = json!({"operation": "CREATE", "namespace": "n", "userInfo": {"username": "bob", "groups": ["x"]}});
    let input =
        AdmissionInput { object, params, namespace_object: &namespace, request: &request, ..AdmissionInput::default() };
    Admission::compile(source, scope, AdmissionType::Bool).unwrap().eval(&scope.bind(&input))
}

#[test]
fn expressions_see_the_request_and_its_surroundings() {
    let scope = AdmissionScope::new(true);
    let (object, params) = (json!({"spec": {"size": 3}, "metadata": {"namespace": "n"}}), json!({"most": 3}));
    for (source, expected) in [
        ("object.spec.size <= params.most", true),
        ("oldObject == null", true),
        ("request.namespace == 'n' && object.metadata.namespace == request.namespace", true),
        ("request.userInfo.groups.exists(g, g == 'x')", true),
        ("namespaceObject.metadata.labels['a'] == 'b'", true),
        ("namespaceObject.metadata.creationTimestamp.getFullYear() == 2024", true),
        ("has(object.status)", false),
        ("object.?spec.?name.orValue('none') == 'none'", true),
        ("quantity('1Gi').isGreaterThan(quantity('1Mi'))", true),
    ] {
        assert_eq!(eval(source, &scope, &object, &params), Ok(Evaluated::Bool(expected)), "{source}");
    }
}

#[test]
fn variables_are_evaluated_when_they_are_used_and_only_then() {
    let mut scope = AdmissionScope::new(false).with_variables();
    scope.define("missing", "object.nothing.here").unwrap();
    scope.define("size", "object.spec.size").unwrap();
    scope.define("double", "variables.size * 2").unwrap();
    let object = json!({"spec": {"size": 3}});
    assert_eq!(eval("variables.double == 6", &scope, &object, &Value::Null), Ok(Evaluated::Bool(true)));
    assert_eq!(eval("true || variables.missing == 1", &scope, &object, &Value::Null), Ok(Evaluated::Bool(true)));
    let failed = eval("variables.missing == 1", &scope, &object, &Value::Null).unwrap_err();
    assert_eq!(failed.wording(), "composited variable \"missing\" fails to evaluate: no such key: nothing");
    let failed = eval("oldObject.spec.size == 1", &scope, &object, &Value::Null).unwrap_err();
    assert_eq!(failed.wording(), "no such key: spec");
}

#[test]
fn what_is_not_declared_is_refused() {
    let mut scope = AdmissionScope::new(false).with_variables();
    scope.define("size", "1").unwrap();
    let refused = |source: &str, wanted: AdmissionType| Admission::compile(source, &scope, wanted).unwrap_err();
    for (source, wanted, message) in [
        ("params.x == 1", AdmissionType::Bool, "undeclared reference to 'params'"),
        ("request.color == ''", AdmissionType::Bool, "undefined field 'color'"),
        ("variables.other == 1", AdmissionType::Bool, "undefined field 'other'"),
        ("object.x", AdmissionType::Bool, "must evaluate to bool but got dyn"),
        ("variables.size", AdmissionType::Text, "must evaluate to string but got int"),
        (
            "request.userInfo == 1",
            AdmissionType::Bool,
            "found no matching overload for '_==_' applied to '(kubernetes.UserInfo, int)'",
        ),
        ("1", AdmissionType::TextOrNull, "must evaluate to one of [string null_type] but got int"),
        (
            "request.name + 1 == ''",
            AdmissionType::Bool,
            "found no matching overload for '_+_' applied to '(string, int)'",
        ),
    ] {
        assert_eq!(refused(source, wanted).message(), message, "{source}");
    }
    assert!(matches!(refused("object.x", AdmissionType::Bool), CompileError::InvalidResult(_)));
    assert!(scope.define("broken", "nope").is_err());
    // A broken variable is known, and fails where it is used.
    let broken = Admission::compile("variables.broken == 1", &scope, AdmissionType::Bool).unwrap();
    assert!(broken.eval(&scope.bind(&AdmissionInput::default())).is_err());
}
