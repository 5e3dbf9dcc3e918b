//! What mutations compute and refuse.

use carrick_cel::{CompileError, EvalError, Mutation, Position};
use serde_json::{Value, json};

fn eval(expression: &str, value: &Value) -> Result<Value, EvalError> {
    let this =
        json!({"spec": {"replicas": 3, "labels": {"b": "2", "a": "1", "c": "3"}, "big": 9_007_199_254_740_993_i64}});
    let other = json!({"status": {"phase": "Ready"}});
    Mutation::compile(expression).expect("compiles").eval(value, &this, &other)
}

#[test]
fn results_are_proper_json() {
    for (expression, value, want) in [
        ("value + 1", json!(3), json!(4)),
        ("value + 1.0", json!(3), json!(4)),
        ("value * 1.5", json!(3), json!(4.5)),
        ("value / 2.0", json!(3), json!(1.5)),
        ("value / 2", json!(3), json!(1)),
        ("value.a / value.b", json!({"a": 7, "b": 2}), json!(3.5)),
        ("value", json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_993_i64)),
        ("value", json!({"a": [1, 2.5, null]}), json!({"a": [1, 2.5, null]})),
        ("value == null", json!(null), json!(true)),
        ("self.spec.big", json!(null), json!(9_007_199_254_740_993_i64)),
        ("other.status.phase + '!'", json!(null), json!("Ready!")),
        ("self.spec.labels", json!(null), json!({"a": "1", "b": "2", "c": "3"})),
        ("self.spec.labels.map(k, k)", json!(null), json!(["a", "b", "c"])),
        ("{'z': 1, 'y': 2, 3: 4, true: 5}.map(k, string(k))", json!(null), json!(["true", "3", "y", "z"])),
        ("duration('90m')", json!(null), json!("1h30m0s")),
        ("timestamp('2024-01-01T01:00:00.5+01:00')", json!(null), json!("2024-01-01T01:00:00.5+01:00")),
        ("b'abc'", json!(null), json!("YWJj")),
        ("18446744073709551615u", json!(null), json!(18_446_744_073_709_551_615_u64)),
        ("double(3)", json!(null), json!(3)),
        ("1e300", json!(null), json!(1e300)),
        ("1e18", json!(null), json!(1_000_000_000_000_000_000_i64)),
        ("double(1152921504606846976)", json!(null), json!(1_152_921_504_606_847_000_i64)),
        ("1e19", json!(null), json!(10_000_000_000_000_000_000_u64)),
        ("-0.5 * 2.0", json!(null), json!(-1)),
        ("type(1.5)", json!(null), json!("double")),
        ("'a-b-c'.split('-').map(p, p.upperAscii()).join('.')", json!(null), json!("A.B.C")),
        ("[3, 1, 2].sort()", json!(null), json!([1, 2, 3])),
        ("strings.quote('x')", json!(null), json!("\"x\"")),
        ("[1, 2].exists(x, x > 1) && ![1].all(x, x > 1)", json!(null), json!(true)),
    ] {
        assert_eq!(eval(expression, &value), Ok(want), "{expression} on {value}");
    }
}

#[test]
fn unknown_names_and_impossible_calls_are_refused_when_compiled() {
    for (expression, message) in [
        ("nope", "1:1: undeclared reference to 'nope'"),
        ("self.a == nope.b", "1:11: undeclared reference to 'nope'"),
        ("nofunc(1)", "1:7: undeclared reference to 'nofunc'"),
        ("self.nofunc()", "1:12: undeclared reference to 'nofunc'"),
        ("[1].map(x, y)", "1:12: undeclared reference to 'y'"),
        ("[1].map(x, x)[x]", "1:15: undeclared reference to 'x'"),
        ("oldSelf", "1:1: undeclared reference to 'oldSelf'"),
        ("size(1, 2)", "1:5: found no matching overload for 'size' applied to '(int, int)'"),
        ("Foo{a: 1}", "1:4: undeclared reference to 'Foo'"),
        ("true ||\n  nope", "2:3: undeclared reference to 'nope'"),
        ("lists.nope(1)", "1:11: undeclared reference to 'nope'"),
        ("1 + 1.0", "1:3: found no matching overload for '_+_' applied to '(int, double)'"),
        ("1 == 1u", "1:3: found no matching overload for '_==_' applied to '(int, uint)'"),
        ("'é' + self.upper()", "1:17: undeclared reference to 'upper'"),
        ("'日本' == 'x' &&\n  'ü' == nope", "2:10: undeclared reference to 'nope'"),
        ("'x'.format([1])", "1:12: too many arguments supplied to string.format (expected 0, got 1)"),
        ("!'x'", "1:1: found no matching overload for '!_' applied to '(string)'"),
    ] {
        assert_eq!(Mutation::compile(expression).map(|_| ()).unwrap_err().to_string(), message, "{expression}");
    }
    for (expression, line, column) in
        [("1 +", 1, 4), ("self.?a", 1, 5), ("'é' ++ 1", 1, 6), ("1 +\n  )", 2, 3), ("", 1, 1)]
    {
        let error = Mutation::compile(expression).map(|_| ()).unwrap_err();
        assert!(matches!(error, CompileError::Syntax { .. }), "{expression}: {error}");
        assert_eq!(error.position(), Some(Position { line, column }), "{expression}: {error}");
        assert!(error.to_string().matches("Syntax error").count() <= 1, "{error}");
    }
}

#[test]
fn positions_count_characters_and_not_bytes() {
    let mut wrong = Vec::new();
    for line in include_str!("../answers.jsonl").lines().filter(|line| line.contains("compile: ERROR")).step_by(12) {
        let question: serde_json::Value = serde_json::from_str(line).unwrap();
        let expression = question["expression"].as_str().unwrap_or_default();
        let position = |text: &str| {
            let source = format!("'{text}' == 'x' || ({expression}) == '{text}'.nope");
            Mutation::compile(&source).err().and_then(|error| error.position())
        };
        let (plain, wide) = (position("abc"), position("é日😀"));
        if plain != wide {
            wrong.push(format!("{expression}: {plain:?} {wide:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn doubles_have_one_sign_at_most() {
    for text in ["--1", "+-1", "-+1", "++1", "--inf", "-", "", "0x+8p1", "0x-8p1", "-0x+1p1", "1e", "1e--1", "0x1p+-1"]
    {
        let mutation = Mutation::compile(&format!("double('{text}')")).unwrap();
        let result = mutation.eval(&json!(null), &json!(null), &json!(null));
        assert!(result.is_err(), "{text}: {result:?}");
    }
    for (text, want) in [("-1", -1.0), ("+1.5", 1.5), ("1e-1", 0.1), ("-0x1.8p+3", -12.0), ("1e+1", 10.0)] {
        let mutation = Mutation::compile(&format!("double('{text}') == {want:?}")).unwrap();
        let result = mutation.eval(&json!(null), &json!(null), &json!(null));
        assert_eq!(result, Ok(json!(true)), "{text}");
    }
}

#[test]
fn parts_of_json_are_read_as_those_of_values() {
    let this = json!({
        "m": {"a": 1, "b": {"c": [1, 2.5, "x"]}, "1": "one", "nul": null, "none": {}}, "l": [[1], {"k": "v"}, "s", null],
        "n": 3, "t": "text", "long": "0123456789".repeat(20), "f": 1.0, "big": u64::MAX, "empty": [],
    });
    let roots =
        ["X", "X.m", "X.l", "X.n", "X.t", "X.long", "X.m.b.c", "X.m.nul", "X.empty", "X.m.none", "X.big", "X.f"];
    let reads = [
        "",
        ".a",
        ".b.c[1]",
        ".b.c[2u]",
        "['1']",
        "[1]",
        "[1.0]",
        "[1.5]",
        "[-1]",
        "[-1.0]",
        "[99]",
        "[1u]",
        "[true]",
        "[null]",
        "[[1]]",
        "[1].k",
        "[0][0]",
        ".m.b",
        ".nope",
        ".nul",
        "['nope'].x",
        "[3]",
        "[0][5]",
        "[dyn('a')]",
    ];
    for (root, read) in roots.iter().flat_map(|root| reads.map(|read| (root, read))) {
        let part = format!("{root}{read}");
        for expression in [
            part.clone(),
            format!("1 in {part} || 'a' in {part}"),
            format!("has({part}.a)"),
            format!("{part}.exists(e, e == {part})"),
        ] {
            let run = |root: &str| {
                let mutation = Mutation::compile(&expression.replace('X', root)).ok()?;
                Some(mutation.eval(&json!(null), &this, &json!(null)))
            };
            assert_eq!(run("self"), run("[self][0]"), "{expression}");
        }
    }
}

#[test]
fn the_same_json_may_be_several_variables() {
    let shared = json!({"n": [1, 2]});
    let lists = ["value.n", "self.n", "value.n.map(x, x)", "self.n.map(x, x)", "other.n.map(x, x)"];
    let expression = lists.map(|list| format!("type({list}[0])")).join(", ");
    let mutation = Mutation::compile(&format!("[{expression}]")).unwrap();
    let types = mutation.eval(&shared, &shared, &shared).unwrap();
    assert_eq!(types, json!(["double", "int", "double", "int", "int"]));
}

#[test]
fn failures_name_no_values() {
    for (expression, want) in [
        ("self.spec.nope", EvalError::NoSuchKey("nope".into())),
        ("[1][5]", EvalError::IndexOutOfBounds),
        ("1 / 0", EvalError::DivisionByZero),
        ("1 % 0", EvalError::DivisionByZero),
        ("9223372036854775807 + 1", EvalError::Overflow),
        ("int(value)", EvalError::Function("int".into())),
        ("value + 1", EvalError::NoSuchOverload("_+_(string, int)".into())),
        ("0.0 / 0.0", EvalError::NotJson("double that is infinite or not a number")),
    ] {
        let error = eval(expression, &json!("secret")).unwrap_err();
        assert!(!error.to_string().contains("secret"));
        assert_eq!(error, want, "{expression}");
    }
}

#[test]
fn runaway_expressions_are_stopped() {
    let words: Vec<String> = (0..2_000).map(|n| format!("word-{n}")).collect();
    let value = json!(words);
    let nested = "value.map(a, value.map(b, value.map(c, a + b + c)))".to_owned();
    let hidden = "value.exists(a, value.exists(b, value.exists(c, a + b + c == 'x')) || false) || true".to_owned();
    let doubled = format!("'aaaaaaaaaaaaaaaa'{}", ".replace('a', 'aaaaaaaaaaaaaaaa')".repeat(20));
    let joined = format!("[[value]]{}.flatten(9).size()", ".map(x, x + x)".repeat(100));
    let added =
        "[value.join(',')].map(a, a + a + a + a).map(a, a + a + a + a)".to_owned() + &".map(a, a + a + a)".repeat(20);
    for expression in [
        nested,
        hidden,
        doubled,
        joined,
        added,
        "lists.range(1000).map(a, lists.range(1000).map(b, a * b))".to_owned(),
        "lists.range(1000).map(a, lists.range(1000)).flatten().distinct()".to_owned(),
        "value.map(a, value.map(b, b.matches('(' + a + '|x*)*$')))".to_owned(),
        "value.all(a, value.all(b, value == value.map(c, c)))".to_owned(),
        "value.map(a, '%s'.format([value]))".to_owned(),
    ] {
        let result = Mutation::compile(&expression).expect("compiles").eval(&value, &json!({}), &json!(null));
        assert_eq!(result, Err(EvalError::TooManySteps), "{expression}");
    }
    assert_eq!(eval("lists.range(3).map(n, n * n)", &json!(null)), Ok(json!([0, 1, 4])));
    assert_eq!(eval("lists.range(1000000000)", &json!(null)), Err(EvalError::TooManySteps));
}

#[test]
fn deep_expressions_neither_overflow_the_stack_nor_pass_unnoticed() {
    let nested = |open: &str, close: &str, times: usize| format!("{}1{}", open.repeat(times), close.repeat(times));
    for (expression, want) in [
        (nested("(", ")", 60), Some(json!(1))),
        (nested("-(", ")", 60), Some(json!(1))),
        (nested("dyn(", ")", 60), Some(json!(1))),
        ("1+".repeat(150) + "1", Some(json!(151))),
        ("true||".repeat(2_000) + "true", Some(json!(true))),
        (nested("[1].map(x,", ").size()", 15), Some(json!(1))),
        (nested("(", ")", 8_000), None),
        (nested("[", "]", 8_000), None),
        (nested("{1:", "}", 4_000), None),
        (nested("dyn(", ")", 3_000), None),
        ("true?1:".repeat(2_000) + "1", None),
        ("1+".repeat(8_000) + "1", None),
        ("1<".repeat(8_000) + "1", None),
        (format!("self{}", ".a".repeat(8_000)), None),
        (format!("self{}", "[0]".repeat(5_000)), None),
        (format!("self{}", ".size()".repeat(2_000)), None),
        ("(".repeat(16_000), None),
        ("x".repeat(20_000), None),
    ] {
        let start: String = expression.chars().take(30).collect();
        let got = std::thread::scope(|scope| {
            let worker = std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, || {
                let compiled = Mutation::compile(&expression).ok()?;
                Some(compiled.eval(&json!(1), &json!({}), &json!(null)).unwrap())
            });
            worker.unwrap().join().unwrap()
        });
        assert_eq!(got, want, "{start}");
    }
}

#[test]
fn compiled_expressions_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Mutation>();
    shared::<carrick_cel::Rule>();
}
