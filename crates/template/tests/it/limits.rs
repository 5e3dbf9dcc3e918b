//! Hostile templates end with an error instead of taking time, memory or the stack.

use carrick_template::{CompileError, RenderError, Template, limits};
use serde_json::{Map, json};

fn render(text: &str) -> Result<String, RenderError> {
    Template::compile(text).unwrap().render(&Map::new())
}

/// Templates that would take long, grow without bounds or not end.
const HOSTILE: &[&str] = &[
    r#"{{ define "t" }}{{ template "t" }}{{ end }}{{ template "t" }}"#,
    "{{ range 9223372036854775807 }}{{ end }}",
    "{{ range until 1000000000 }}{{ end }}",
    "{{ seq 1000000000 }}",
    "{{ range 1000 }}{{ range 1000 }}{{ range 1000 }}{{ end }}{{ end }}{{ end }}",
    r#"{{ repeat 1000000000 "abc" }}"#,
    r#"{{ indent 1000000000 "abc" }}"#,
    r#"{{ range 100 }}{{ $x := printf "%1000000d" 1 }}{{ end }}"#,
    r#"{{ range 100 }}{{ $x := printf "%.1000000f" 1.5 }}{{ end }}"#,
    r#"{{ $x := "aaaa" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}"#,
    r#"{{ $x := "aaaa" }}{{ range 60 }}{{ $x = replace "a" $x $x }}{{ end }}"#,
    r#"{{ $x := "aaaa" }}{{ range 60 }}{{ $x = regexReplaceAll "a" $x "$0$0$0$0" }}{{ end }}"#,
    "{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}",
    "{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ deepEqual $x (list) }}{{ toJson $x }}",
    "{{ $x := list 1 }}{{ range 60 }}{{ $x = concat $x $x }}{{ end }}",
    r#"{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $x }}"#,
    r#"{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toJson $x }}"#,
    r#"{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ deepCopy $x }}"#,
    r#"{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $y := dict }}{{ $_ := set $y "x" $y }}{{ deepEqual $x $y }}"#,
    r#"{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $y := dict }}{{ $_ := set $y "x" $y }}{{ merge $x $y }}"#,
    r#"{{ $x := repeat 3000000 "a" }}{{ range 20000 }}{{ if eq $x (print $x) }}{{ end }}{{ end }}"#,
    r#"{{ $x := repeat 3000000 "a" }}{{ range 20000 }}{{ if hasPrefix $x $x }}{{ end }}{{ end }}"#,
    r#"{{ $x := repeat 500000 "a" }}{{ regexMatch "(a{1,31}b?){1,32}$" $x }}"#,
    r#"{{ $x := repeat 500000 "a" }}{{ range 1000 }}{{ $y := trimAll $x $x }}{{ end }}"#,
    r#"{{ range $i := until 100000 }}{{ $x := regexMatch (printf "a%d" $i) "a" }}{{ end }}"#,
    r#"{{ range 10000 }}{{ $x := sha512sum (repeat 1000 "a") }}{{ end }}"#,
    "{{ range 1000000 }}0123456789012345678901234567890123456789{{ end }}",
    r#"{{ range until 1000 }}{{ printf "%2000s" "" }}{{ end }}"#,
    r#"{{ range 100 }}{{ $x := nindent 1000000 "a\nb\nc" }}{{ end }}"#,
    r#"{{ $x := repeat 100000 "\n" }}{{ range 100 }}{{ $x = indent 1000 $x }}{{ end }}"#,
    r#"{{ printf "%*d" 1000000 1 | repeat 100 }}"#,
    r#"{{ $x := repeat 500000 "a " }}{{ range 1000 }}{{ $y := wrap 1 $x }}{{ end }}"#,
    r#"{{ $x := repeat 500000 "a " }}{{ range 1000 }}{{ $y := title $x | snakecase | camelcase }}{{ end }}"#,
    r#"{{ $x := repeat 500000 "a" }}{{ range 1000 }}{{ $y := splitList "" $x }}{{ end }}"#,
    r#"{{ $x := repeat 100000 "b,a," | splitList "," }}{{ range 1000 }}{{ $y := sortAlpha $x | uniq }}{{ end }}"#,
    "{{ $x := until 20000 }}{{ range 100 }}{{ $y := uniq $x }}{{ end }}",
    "{{ $x := until 20000 }}{{ range 100 }}{{ $y := without $x 1 2 3 }}{{ $z := has 19999 $x }}{{ end }}",
    "{{ untilStep 0 1000000000 1 }}",
    "{{ untilStep 0 -1000000000 -1 }}",
    "{{ randBytes 1000000000 }}",
    "{{ randAlphaNum 1000000000 }}",
    r#"{{ range 100 }}{{ $x := derivePassword 1 "long" "p" "u" "s" }}{{ end }}"#,
    r#"{{ $x := repeat 300000 "a" }}{{ range 100 }}{{ $y := regexFindAll "" $x -1 }}{{ end }}"#,
    r#"{{ regexMatch "((((((a{1,100}){1,100}){1,100}){1,100}))))" "a" }}{{ range 100000 }}{{ end }}"#,
    r#"{{ $x := dict }}{{ $y := dict "x" $x }}{{ $_ := set $x "y" $y }}{{ toPrettyJson $x }}"#,
    r#"{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $x | toString | len }}"#,
    r#"{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ printf "%#v" $x }}"#,
    r#"{{ $x := dict }}{{ $_ := set $x "x" (list $x) }}{{ shortHash $x }}"#,
    r#"{{ $x := "[" }}{{ range 18 }}{{ $x = print $x $x }}{{ end }}{{ fromJson $x }}{{ $x = repeat 400 "[1]," }}{{ range 2000 }}{{ $y := fromJson (print "[" $x "1]") }}{{ end }}"#,
    r#"{{ define "a" }}{{ template "b" . }}{{ template "b" . }}{{ end }}{{ define "b" }}{{ if lt (len .) 40 }}{{ template "a" (append . 1) }}{{ end }}{{ end }}{{ template "a" list }}"#,
];

#[test]
fn what_would_not_end_or_grows_without_bounds_reaches_a_limit() {
    for text in HOSTILE {
        let outcome = render(text);
        assert!(matches!(outcome, Err(RenderError::Limit { .. })), "{text}: {:?}", outcome.map(|o| o.len()));
    }
}

#[test]
fn deeply_nested_values_are_dropped_without_exhausting_the_stack() {
    assert_eq!(render("{{ $x := list }}{{ range 9000 }}{{ $x = list $x }}{{ end }}done").unwrap(), "done");
    let nested = r#"{{ $x := dict }}{{ range 6000 }}{{ $x = dict "x" $x }}{{ end }}done"#;
    assert_eq!(render(nested).unwrap(), "done");
}

#[test]
fn the_deepest_allowed_nesting_works_on_a_small_stack() {
    let levels = limits::MAX_PARSE_DEPTH;
    let parentheses = format!("{{{{ {}1{} }}}}", "(".repeat(levels), ")".repeat(levels));
    let conditions = format!("{}1{}", "{{ if true }}".repeat(levels), "{{ end }}".repeat(levels));
    let recursion = r#"{{ define "t" }}{{ if lt (len .) 30 }}{{ template "t" (append . 1) }}{{ else }}1{{ end }}{{ end }}{{ template "t" list }}"#;
    let worker = std::thread::Builder::new().stack_size(1024 * 1024);
    let outcome =
        worker.spawn(move || [parentheses.as_str(), &conditions, recursion].map(render)).unwrap().join().unwrap();
    assert_eq!(outcome, [Ok("1".to_owned()), Ok("1".to_owned()), Ok("1".to_owned())]);
}

#[test]
fn texts_that_are_too_deep_or_too_long_are_refused_when_compiling() {
    for open in ["{{ (", "{{ if (", "{{ if 1 }}", "{{ range . }}{{ with . }}", "{{ if 1 }}{{ else "] {
        let text = open.repeat(20_000);
        let refused = Template::compile(&text).unwrap_err();
        assert!(matches!(refused, CompileError::Syntax { .. } | CompileError::TooLong { .. }), "{open}: {refused}");
    }
    let text = format!("{{{{ {} }}}}", "(".repeat(100_000));
    assert!(matches!(Template::compile(&text), Err(CompileError::Syntax { .. })));
    let long = "x".repeat(limits::MAX_SOURCE_BYTES + 1);
    assert_eq!(Template::compile(&long).unwrap_err(), CompileError::TooLong { bytes: long.len() });
}

#[test]
fn data_that_is_too_deep_is_refused() {
    let deep = (0..1000).fold(json!(1), |inner, _| json!([inner]));
    let data = json!({ "Deep": deep });
    let outcome = Template::compile("{{ .Deep }}").unwrap().render(data.as_object().unwrap());
    assert!(matches!(outcome, Err(RenderError::Limit { what: "levels of nesting", .. })), "{outcome:?}");
}

#[test]
fn a_large_object_fits_into_the_limits() {
    let entries: Map<String, serde_json::Value> =
        (0..10_000).map(|i| (format!("key-{i}"), json!("some value of middling length"))).collect();
    let data = json!({ "Object": { "data": entries } });
    let template = Template::compile("{{ .Object.data | toJson | sha256sum }}{{ len (keys .Object.data) }}").unwrap();
    assert!(template.render(data.as_object().unwrap()).unwrap().ends_with("10000"));
}

#[test]
#[ignore = "measures; run it with --release and --nocapture"]
fn hostile_templates_end_within_milliseconds() {
    let mut times: Vec<_> = HOSTILE
        .iter()
        .map(|text| {
            let template = Template::compile(text).unwrap();
            let start = std::time::Instant::now();
            let _ = template.render(&Map::new());
            (start.elapsed(), text)
        })
        .collect();
    times.sort();
    for (time, text) in times.iter().rev() {
        println!("{time:>12.1?}  {text}");
    }
}
