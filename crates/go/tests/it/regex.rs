//! The answers of Go's regexp package.

use carrick_go::regex::{GoRegex, Pattern};
use proptest::prelude::*;
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
    let file: File = serde_json::from_str(include_str!("../regex.json")).unwrap();
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

/// What Go says, without "error parsing regexp".
const REFUSED: &[(&str, &str)] = &[
    ("[", "missing closing ]: `[`"),
    ("a[b", "missing closing ]: `[b`"),
    ("(", "missing closing ): `(`"),
    ("a(b(c)", "missing closing ): `a(b(c)`"),
    ("a)", "unexpected ): `a)`"),
    ("*", "missing argument to repetition operator: `*`"),
    ("a|*", "missing argument to repetition operator: `*`"),
    ("a**", "invalid nested repetition operator: `**`"),
    ("a+?*", "invalid nested repetition operator: `+?*`"),
    ("\\y", "invalid escape sequence: `\\y`"),
    ("(a)\\1", "invalid escape sequence: `\\1`"),
    ("a\\", "trailing backslash at end of expression: ``"),
    ("[z-a]", "invalid character class range: `z-a`"),
    ("a{2,1}", "invalid repeat count: `{2,1}`"),
    ("a{1001}", "invalid repeat count: `{1001}`"),
    ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
    ("[a-\\d]", "invalid escape sequence: `\\d`"),
    ("\\x{", "invalid escape sequence: `\\x{`"),
    ("a{2}*", "invalid nested repetition operator: `{2}*`"),
    ("(?i)*", "missing argument to repetition operator: `*`"),
    ("(?<=a)", "invalid named capture: `(?<=a)`"),
    ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
    ("(?P<a", "invalid named capture: `(?P<a`"),
    ("\\pX", "invalid character class range: `\\pX`"),
    ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
];

const TAKEN: &[&str] = &[
    "",
    "^[a-z]+$",
    "a{1",
    "{",
    "a{2}",
    "a{2,}",
    "[]a]",
    "[^]a]",
    "[a-]",
    "\\d+\\.\\w",
    "(?i)a",
    "(?:a|b)*?",
    "\\Q*\\E",
    "(?P<n>a)",
    "(?<n>a)",
    "[[:alpha:]]",
    "\\x41",
    "[\\d-]",
    "a|",
    "()*",
    "x*y+z?",
];

#[test]
fn what_go_refuses_is_refused_in_its_words() {
    for (pattern, why) in REFUSED {
        let got = Pattern::parse(pattern).err().map(|error| error.to_string());
        assert_eq!(got, Some(format!("error parsing regexp: {why}")), "{pattern}");
    }
    for pattern in TAKEN {
        assert!(GoRegex::compile(pattern).is_ok(), "{pattern}");
    }
}

#[test]
fn patterns_mean_what_they_mean_in_re2() {
    for (pattern, text, want) in [
        (r"^\d+$", "12", true),
        (r"^\d+$", "१२", false),
        (r"^\w$", "é", false),
        (r"^[\w-]+$", "a-b", true),
        (r"^[^\s]+$", "a b", false),
        (r"\bfoo\b", "a foo b", true),
        (r"^\Qa.b\E+$", "a.bb", true),
        (r"^[a&&b]+$", "&", true),
        (r"^[[a]+$", "[", true),
        (r"^[]a]+$", "]", true),
        (r"^[[:alpha:]]+$", "abc", true),
        (r"^(?i)abc$", "ABC", true),
        (r"^.$", "é", true),
        (r"^[a-z]{1,63}(\.[a-z]{1,63})*$", "a.b", true),
        (r"^(a{100}){10}$", "a", false),
    ] {
        assert_eq!(GoRegex::compile(pattern).unwrap().is_match(text), want, "{pattern} on {text}");
    }
    for wrong in ["((((x{9}){9}){9}){9})", "(a{101}){10}"] {
        assert_eq!(Pattern::parse(wrong).unwrap_err().reason, "invalid repeat count", "{wrong}");
    }
}

#[test]
fn states_grow_with_repetitions() {
    let states = |pattern: &str| Pattern::parse(pattern).unwrap().states();
    assert!(states("a{1000}") > 900 && states("(ab){500}") > 900 && states("((a{10}){10}){10}") > 900);
    assert!(states(r"\pL{10}") > 900 && states(r"[\pL\d]{10}") > 900);
    assert!(states("[a-z]{1,63}") < 200 && states("abc|def*") < 20);
    // A pattern that becomes too large is refused, however much memory there is.
    assert_eq!(Pattern::parse(r"\pL{1000}").unwrap().compile(1 << 20).unwrap_err().reason, "expression too large");
}

proptest! {
    #[test]
    fn no_pattern_panics(pattern in r"[a-c.*+?|()\[\]{}^$\\dwsbQEpPLx0-9,:<>iU-]{0,20}|\PC{0,12}", text in "[a-c0-9é ]{0,12}", replacement in r"[$a{}1-2_é]{0,8}") {
        if let Ok(regex) = GoRegex::compile(&pattern) {
            regex.replace_all(&text, &replacement);
        }
    }
}
