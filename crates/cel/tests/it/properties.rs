//! What holds for any expression: no panic, no end beyond the budget, integers stay integers.

use carrick_cel::{EvalError, Mutation, Rule, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Parts of expressions, so that many of the texts made of them compile.
const PARTS: [&str; 58] = [
    "self",
    "value",
    "other",
    "self.a",
    "self.l",
    "self.m",
    "1",
    "-1",
    "0",
    "9223372036854775807",
    "1u",
    "1.5",
    "1e300",
    "'text'",
    "'é'",
    "''",
    "b'x'",
    "true",
    "null",
    "[]",
    "[1, 2]",
    "{}",
    "{'k': 1}",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " == ",
    " < ",
    " && ",
    " || ",
    " in ",
    " ? ",
    " : ",
    "!",
    "-",
    "(",
    ")",
    "[",
    "]",
    ", ",
    ".map(x, ",
    ".filter(x, ",
    ".all(x, ",
    ".exists(x, ",
    "x",
    ".size()",
    ".a",
    ".split('')",
    ".replace('', 'aaaa')",
    ".join('-')",
    ".matches(",
    "lists.range(",
    "string(",
    "int(",
    "timestamp(",
    "duration(",
];

fn expression() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::collection::vec(proptest::sample::select(&PARTS[..]), 1..14).prop_map(|parts| parts.concat()),
        grown(),
        "\\PC{0,60}",
    ]
}

/// Expressions that are whole, and grow what they are given.
fn grown() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(&["self.l", "self.m", "value", "'ab'", "3", "[1, 2, 3]", "self.a"][..]);
    leaf.prop_map(str::to_owned).prop_recursive(6, 40, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} + {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("dyn({a}).map(x, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("dyn({a}).all(x, dyn({b}) == x)")),
            inner.clone().prop_map(|a| format!("[{a}, {a}]")),
            inner.clone().prop_map(|a| format!("lists.range(dyn({a}))")),
            inner.clone().prop_map(|a| format!("dyn({a}).flatten(9)")),
            inner.clone().prop_map(|a| format!("dyn({a}).replace('a', dyn({a}))")),
            inner.prop_map(|a| format!("'%s%s'.format([{a}, {a}])")),
        ]
    })
}

fn object() -> Value {
    json!({"a": 3, "l": [3, 1, 2], "m": {"x": 1, "y": "b"}, "s": "text"})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn hostile_mutations_end(expression in expression(), value in "\\PC{0,20}") {
        if let Ok(mutation) = Mutation::compile(&expression) {
            let _ = mutation.eval(&json!(value), &object(), &Value::Null);
        }
    }

    #[test]
    fn hostile_rules_end(expression in expression()) {
        let schema = Schema::node(&json!({"type": "object", "properties": {
            "a": {"type": "integer"}, "l": {"type": "array", "items": {"type": "integer"}}, "s": {"type": "string"},
        }}));
        for entry in [json!({"rule": expression}), json!({"rule": "false", "messageExpression": expression})] {
            if let Ok(rule) = Rule::compile_typed(&entry, &schema) {
                let mut steps = 10_000;
                let verdict = rule.eval_within(&object(), None, &mut steps);
                prop_assert!(verdict != Err(EvalError::TooManySteps) || steps == 0);
            }
            let _ = Rule::compile(&entry).map(|rule| rule.eval(&object(), None));
        }
    }

    #[test]
    fn integers_stay_integers(number in any::<i64>(), small in -1_000_000_i64..1_000_000) {
        for (expression, value) in [("value", number), ("self.n", number), ("[self.n][0]", number), ("value + 1 - 1", small)] {
            let mutation = Mutation::compile(expression).unwrap();
            let got = mutation.eval(&json!(value), &json!({"n": value}), &Value::Null);
            prop_assert_eq!(got, Ok(json!(value)), "{}", expression);
        }
    }

    #[test]
    fn plain_data_comes_back_as_it_went_in(words in proptest::collection::vec("\\PC{0,8}", 0..5), flag: bool, number in any::<i64>()) {
        let data = json!({"words": words, "flag": flag, "deep": {"n": [number, null]}});
        let got = Mutation::compile("self").unwrap().eval(&Value::Null, &data, &Value::Null);
        prop_assert_eq!(got, Ok(data));
    }

    #[test]
    fn text_survives_quoting(text in "\\PC{0,30}") {
        let quoted = json!(text).to_string();
        prop_assume!(!quoted.contains("\\u"));
        let got = Mutation::compile(&quoted).unwrap().eval(&Value::Null, &Value::Null, &Value::Null);
        prop_assert_eq!(got, Ok(json!(text)));
    }
}
