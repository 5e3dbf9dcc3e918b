//! Functions of text/template itself, and those of the sync agent.

use super::row::Row;

pub(super) const GO: &[Row] = &[
    Row(
        "and",
        "and A B…",
        "the first value that is false, else the last one; values after the first false one are not evaluated",
        Some((r#"{{ and 1 "" 2 | quote }}"#, r#""""#)),
    ),
    Row(
        "or",
        "or A B…",
        "the first value that is true, else the last one; values after the first true one are not evaluated",
        Some((r#"{{ or "" "b" "c" }}"#, "b")),
    ),
    Row("not", "not A", "whether the value is false, empty or absent", Some((r#"{{ not "" }}"#, "true"))),
    Row(
        "eq",
        "eq A B…",
        "whether the first value equals any of the others; both must be of the same kind",
        Some((r#"{{ eq "b" "a" "b" }}"#, "true")),
    ),
    Row("ne", "ne A B", "whether two values differ", Some(("{{ ne 1 2 }}", "true"))),
    Row("lt", "lt A B", "whether A is less than B", Some(("{{ lt 1 2 }}", "true"))),
    Row("le", "le A B", "whether A is less than B or equal to it", Some(("{{ le 2 2 }}", "true"))),
    Row("gt", "gt A B", "whether A is greater than B", Some((r#"{{ gt "b" "a" }}"#, "true"))),
    Row("ge", "ge A B", "whether A is greater than B or equal to it", Some(("{{ ge 1 2 }}", "false"))),
    Row(
        "index",
        "index VALUE KEY…",
        "an element of a list or map; further keys lead into nested ones",
        Some((r#"{{ index (dict "a" (list 1 2)) "a" 1 }}"#, "2")),
    ),
    Row("len", "len VALUE", "number of bytes, elements or entries", Some((r#"{{ len "abc" }}"#, "3"))),
    Row(
        "call",
        "call FUNCTION ARG…",
        "exists in Go for functions in the data; data of templates has none, so it always fails",
        None,
    ),
    Row(
        "print",
        "print VALUE…",
        "the values as text, with spaces between those that are not strings",
        Some((r#"{{ print "a" 1 2 "b" }}"#, "a1 2b")),
    ),
    Row(
        "printf",
        "printf FORMAT VALUE…",
        "formats values with Go's verbs",
        Some((r#"{{ printf "%s has %03d (%v)" "web" 7 1.5 }}"#, "web has 007 (1.5)")),
    ),
    Row(
        "println",
        "println VALUE…",
        "the values as text with spaces between them and a line break at the end",
        Some((r#"{{ println 1 "a" | quote }}"#, r#""1 a\n""#)),
    ),
    Row("html", "html VALUE…", "escapes text for HTML", Some((r#"{{ html "<b>" }}"#, "&lt;b&gt;"))),
    Row("js", "js VALUE…", "escapes text for JavaScript", Some((r#"{{ js "it's" }}"#, r"it\'s"))),
    Row(
        "urlquery",
        "urlquery VALUE…",
        "escapes text for the query of a URL",
        Some((r#"{{ urlquery "a b&c" }}"#, "a+b%26c")),
    ),
];

pub(super) const AGENT: &[Row] = &[
    Row(
        "sha3sum",
        "sha3sum TEXT",
        "SHA3-256 in hexadecimal digits",
        Some((r#"{{ sha3sum "objname" }}"#, "73d08a1ba188f1340daedff377219a9888bc559c6f847c035e3c320b674bef42")),
    ),
    Row(
        "sha3short",
        "sha3short TEXT, sha3short TEXT LENGTH",
        "the first digits of SHA3-256, 20 by default",
        Some((r#"{{ sha3short "objname" }}"#, "73d08a1ba188f1340dae")),
    ),
    Row(
        "shortHash",
        "shortHash VALUE",
        "the first 20 digits of SHA-1; anything but text is hashed as JSON",
        Some((r#"{{ shortHash "objname" }}"#, "8b09d63c82efb771a2c5")),
    ),
];
