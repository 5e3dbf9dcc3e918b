//! What validation rules accept, refuse and say.

use carrick_cel::{EvalError, Rule, Schema, Verdict};
use serde_json::{Value, json};

fn verdict(rule: &Value, this: &Value, old: Option<&Value>) -> Verdict {
    Rule::compile(rule).expect("compiles").eval(this, old).expect("evaluates")
}

#[test]
fn rules_judge_values() {
    for (rule, this, pass) in [
        ("self.replicas <= self.max", json!({"replicas": 1, "max": 2}), true),
        ("self.replicas <= self.max", json!({"replicas": 3, "max": 2}), false),
        ("has(self.__namespace__)", json!({"namespace": "x"}), true),
        ("has(self.__namespace__)", json!({}), false),
        ("self.my__dash__field == 1 && self.a__dot__b == 2", json!({"my-field": 1, "a.b": 2}), true),
        ("self.snake_case == 1", json!({"snake_case": 1}), true),
        ("self.?a.b.orValue('d') == 'd'", json!({}), true),
        ("self.?my__dash__field.hasValue()", json!({"my-field": 1}), true),
        ("self.labels.all(k, k.size() < 5)", json!({"labels": {"a-b": "1"}}), true),
        ("size(self.s) == 5", json!({"s": "héllo"}), true),
        ("self.f == 3.0", json!({"f": 3}), true),
        (
            "self.l.sum() == 6 && self.l.isSorted() && self.l.max() == 3 && self.l.min() == 1",
            json!({"l": [1, 2, 3]}),
            true,
        ),
        (
            "self.l.indexOf(2) == 1 && self.l.lastIndexOf(2) == 2 && self.l.indexOf(9) == -1",
            json!({"l": [1, 2, 2]}),
            true,
        ),
        ("self.s.indexOf('l') == 2 && self.s.lowerAscii() == 'hello'", json!({"s": "hello"}), true),
        ("self == 'x'", json!("x"), true),
        ("self in ['a', 'b']", json!("c"), false),
        ("[self.a, 'x'].join() == 'yx' && ['x', self.a].size() == 2", json!({"a": "y"}), true),
        ("!has(self.a) || self.a.b > 1", json!({}), true),
        ("url('HTTP://a/%41') == url(self)", json!("http://a/%41"), true),
        ("duration('0.3333333333333333333h') == duration(self)", json!("20m"), true),
        (r"self.matches('^(?P<n>[[:alpha:]]+)\\.(?P<n>\\d+)$')", json!("a.1"), true),
    ] {
        let got = verdict(&json!({"rule": rule}), &this, None);
        let want = if pass { Verdict::Pass } else { Verdict::Fail { message: format!("failed rule: {rule}") } };
        assert_eq!(got, want, "{rule} on {this}");
    }
}

#[test]
fn transition_rules_wait_for_an_old_value() {
    let rule = json!({"rule": "self == oldSelf", "message": " is immutable "});
    assert!(Rule::compile(&rule).unwrap().uses_old_self());
    assert_eq!(verdict(&rule, &json!(1), None), Verdict::Skipped);
    assert_eq!(verdict(&rule, &json!(1), Some(&json!(1))), Verdict::Pass);
    assert_eq!(verdict(&rule, &json!(1), Some(&json!(2))), Verdict::Fail { message: "is immutable".into() });
    assert!(!Rule::compile(&json!({"rule": "self == 1"})).unwrap().uses_old_self());

    let optional = json!({"rule": "oldSelf.hasValue() ? self == oldSelf.value() : self == 1", "optionalOldSelf": true});
    assert_eq!(verdict(&optional, &json!(1), None), Verdict::Pass);
    assert_eq!(verdict(&optional, &json!(2), Some(&json!(2))), Verdict::Pass);
    assert!(matches!(verdict(&optional, &json!(2), None), Verdict::Fail { .. }));
}

#[test]
fn messages_come_from_the_expression_then_the_text_then_the_rule() {
    for (expression, message, want) in [
        (Some("'got ' + string(self)"), Some("text"), "got 5"),
        (Some("''"), Some("text"), "text"),
        (Some("'two\\nlines'"), Some("text"), "text"),
        (Some("string(self.nope)"), Some("text"), "text"),
        (Some("string(self.nope)"), None, "failed rule: self > 9"),
        (None, Some("text"), "text"),
        (None, Some(""), "failed rule: self > 9"),
        (None, None, "failed rule: self > 9"),
    ] {
        let rule = json!({"rule": " self > 9\n", "messageExpression": expression, "message": message});
        assert_eq!(verdict(&rule, &json!(5), None), Verdict::Fail { message: want.into() }, "{rule}");
    }
}

#[test]
fn broken_rules_are_refused() {
    for (rule, message) in [
        (json!({}), "invalid validation rule: rule is required"),
        (json!({"rule": 5}), "invalid validation rule: rule must be a string"),
        (json!({"rule": "1 + 1"}), "rule must evaluate to a bool"),
        (json!({"rule": "true", "messageExpression": "1"}), "messageExpression must evaluate to a string"),
        (json!({"rule": "value == 1"}), "1:1: undeclared reference to 'value'"),
        (json!({"rule": "math.abs(self) == 1"}), "1:1: undeclared reference to 'math'"),
        (json!({"rule": "base64.encode(b'x') == ''"}), "1:1: undeclared reference to 'base64'"),
    ] {
        assert_eq!(Rule::compile(&rule).map(|_| ()).unwrap_err().to_string(), message, "{rule}");
    }
    let rule = Rule::compile(&json!({"rule": "self.a", "reason": "FieldValueForbidden", "fieldPath": ".a"})).unwrap();
    assert_eq!((rule.reason(), rule.field_path()), (Some("FieldValueForbidden"), Some(".a")));
    assert_eq!(rule.eval(&json!({"a": 1}), None), Err(EvalError::NotBool));
}

#[test]
fn typed_rules_know_their_schema() {
    let schema = Schema::root(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "ratio": {"type": "number"},
        "since": {"type": "string", "format": "date-time"},
        "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    }}}}));
    let object =
        json!({"metadata": {"name": "x"}, "spec": {"ratio": 2, "since": "2024-01-01T00:00:00Z", "names": ["a", "b"]}});
    for rule in [
        "self.spec.ratio == 2.0 && self.spec.ratio / 4.0 == 0.5",
        "self.spec.since.getFullYear() == 2024",
        "self.spec.names == ['b', 'a']",
        "self.metadata.name == 'x' && !has(self.spec.labels)",
    ] {
        let compiled = Rule::compile_typed(&json!({"rule": rule, "fieldPath": ".spec.ratio"}), &schema).expect(rule);
        assert_eq!(compiled.eval(&object, None), Ok(Verdict::Pass), "{rule}");
    }
    for (rule, message) in [
        (json!({"rule": "self.spec.nope == 1"}), "1:10: undefined field 'nope'"),
        (json!({"rule": "self.metadata.labels == {}"}), "1:14: undefined field 'labels'"),
        (
            json!({"rule": "self.spec.ratio == 2"}),
            "1:17: found no matching overload for '_==_' applied to '(double, int)'",
        ),
        (json!({"rule": "self.spec.ratio"}), "rule must evaluate to a bool"),
        (
            json!({"rule": "true", "fieldPath": ".spec.nope"}),
            "invalid validation rule: fieldPath .spec.nope does not refer to a valid field",
        ),
    ] {
        assert_eq!(Rule::compile_typed(&rule, &schema).map(|_| ()).unwrap_err().to_string(), message, "{rule}");
    }
    assert!(schema.has_field(".spec.labels['a.b']") && schema.has_field("['spec'].ratio"));
    assert!(!schema.has_field("spec") && !schema.has_field(".spec.ratio.x") && !schema.has_field(""));
}

#[test]
fn runaway_rules_are_stopped() {
    let rule = Rule::compile(&json!({"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"})).unwrap();
    let many: Vec<u32> = (0..1_000).collect();
    assert_eq!(rule.eval(&json!(many), None), Err(EvalError::TooManySteps));
    assert_eq!(rule.eval(&json!([1, 2, 3]), None), Ok(Verdict::Pass));
}
