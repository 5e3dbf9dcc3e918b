//! The answers of Go's regexp package.

use carrick_json::regex::GoRegex;
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    pattern: String,
    input: String,
    replacement: String,
    output: Option<String>,
    error: Option<String>,
}

#[test]
fn all_recorded_answers_agree() {
    let file: File = serde_json::from_str(include_str!("regex.json")).unwrap();
    assert_eq!(file.cases.len(), 367);
    for case in &file.cases {
        let got = GoRegex::compile(&case.pattern).map(|regex| regex.replace_all(&case.input, &case.replacement));
        let want = case.error.clone().map_or_else(|| Ok(case.output.clone().unwrap()), Err);
        let place = format!("{} in {:?} by {}", case.pattern, case.input, case.replacement);
        assert_eq!(got.map_err(|error| error.to_string()), want, "{place}");
    }
}

#[test]
fn errors_say_where() {
    for (pattern, position) in [
        ("ab**", 2),
        ("a(b", 1),
        ("a)b", 1),
        ("é[z-a]", 3),
        ("a[b", 1),
        (r"a\y", 1),
        ("a\\", 1),
        ("(?i:a{1001})", 5),
        (r"x\p{Foo}", 1),
        ("(?P<a b>c)", 0),
        ("|*", 1),
    ] {
        let error = GoRegex::compile(pattern).expect_err(pattern);
        assert_eq!((error.pattern.as_str(), error.position), (pattern, Some(position)), "{error}");
    }
}

/// See the deviations in the documentation of the crate.
#[test]
fn patterns_that_nest_deeply_are_refused_and_long_names_of_scripts_are_not() {
    let error = GoRegex::compile(&format!("{}a{}", "(".repeat(900), ")".repeat(900))).unwrap_err();
    assert_eq!(error.reason, "expression nests too deeply");
    assert!(GoRegex::compile(r"^\p{Old_Persian}$").unwrap().is_match("\u{103a0}"));
}
