//! HTML templates: where values stand decides how they are escaped.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use carrick_template::{CompileError, Template};
use serde_json::json;

#[test]
fn values_are_escaped_by_the_place_where_they_stand() {
    let data = json!({"v": "a<b>'\"+& c", "url": "javascript:alert(1)", "list": ["</script>", 1]});
    let table = [
        ("{{ .v }}", "a&lt;b&gt;&#39;&#34;&#43;&amp; c"),
        (
            "<p title='{{ .v }}' class={{ .v }}>",
            "<p title='a&lt;b&gt;&#39;&#34;&#43;&amp; c' class=a&lt;b&gt;&#39;&#34;&#43;&amp;&#32;c>",
        ),
        ("<a href='{{ .url }}'>", "<a href='#ZgotmplZ'>"),
        ("<a href='/find?q={{ .v }}'>", "<a href='/find?q=a%3cb%3e%27%22%2b%26%20c'>"),
        (
            "<script>f({{ .list }}, '{{ .v }}')</script>",
            r#"<script>f(["\u003c/script\u003e",1], 'a\u003cb\u003e\u0027\u0022\u002b\u0026 c')</script>"#,
        ),
        ("<style>p { width: {{ .v }} }</style>", "<style>p { width: ZgotmplZ }</style>"),
        ("<!-- {{ .v }} -->x", "x"),
        ("{{ .missing }}{{ .missing | default \"<\" }}", "&lt;"),
        ("1 < 2 {{ .v | html }}", "1 &lt; 2 a&lt;b&gt;&#39;&#34;+&amp; c"),
        // A template's second call stands where its first one stood; Go forgets that and lets the script through.
        (
            r#"{{ define "a" }}<a href="{{ end }}{{ template "a" }}{{ .url }}">{{ template "a" }}{{ .url }}">"#,
            r##"<a href="#ZgotmplZ"><a href="#ZgotmplZ">"##,
        ),
    ];
    for (text, expected) in table {
        assert_eq!(Template::compile_html(text).unwrap().render_value(&data).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn unsafe_texts_are_refused_when_compiling() {
    let table = [
        ("<b {{ .v }}", "template line 1, column 12: the template ends inside a tag"),
        ("<a href='{{ .v }}", "template line 1, column 18: the template ends inside the value of an attribute"),
        ("<script>\n{{ .v }}", "template line 2, column 9: the template ends inside a script"),
        (
            "{{ if .v }}<b title='{{ end }}'>",
            "template line 1, column 7: branches end in different contexts: one inside the value of an attribute, one inside text",
        ),
        (
            "<a x=b'{{ .v }}>",
            "template line 1, column 1: '\\'' in the value of an attribute without quotes; write the value in quotes",
        ),
        (
            "{{ html .v | upper }}",
            "template line 1, column 4: html may only stand at the end of an action, and not in attributes without quotes",
        ),
        ("{{ template \"x\" }}", "template line 1, column 13: template \"x\" is not defined"),
        ("{{ sha3short .v }}", "template line 1, column 4: function \"sha3short\" does not exist"),
    ];
    for (text, expected) in table {
        assert_eq!(Template::compile_html(text).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn compiling_is_bounded_as_well() {
    let ranges = format!("<a {}x{}>", "{{ range . }} a".repeat(50), "{{ end }}".repeat(50));
    let links: Vec<_> =
        (0..2000).map(|i| format!("{{{{define \"{i}\"}}}}{{{{template \"{}\"}}}}{{{{end}}}}", i + 1)).collect();
    let chain = links.concat();
    let chain = format!("{chain}{{{{define \"2000\"}}}}{{{{end}}}}{{{{template \"0\"}}}}");
    let growing = "{{define \"t\"}}`${ {{template \"t\"}} }`{{end}}<script>{{template \"t\"}}</script>";
    let quotes = format!("<script>{}</script>", "''".repeat(100_000));
    let escapes = format!("<style>'{}'</style>", "\\a".repeat(100_000));
    for text in [ranges.as_str(), &chain, growing, &quotes, &escapes] {
        match Template::compile_html(text) {
            Ok(_) | Err(CompileError::Html { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    for text in [chain.as_str(), growing] {
        assert!(matches!(Template::compile_html(text), Err(CompileError::Html { .. })));
    }
}
