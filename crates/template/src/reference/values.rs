//! Dates, defaults, encodings, types and versions.

use super::row::Row;

pub(super) const DATES: &[Row] = &[
    Row("now", "now", "the current time", Some(("{{ kindOf now }}", "struct"))),
    Row("ago", "ago DATE", "how long ago a date was, in seconds", Some(("{{ ago now }}", "0s"))),
    Row(
        "date",
        "date LAYOUT DATE",
        "a date in Go's layout of 2 January 2006; numbers are seconds since 1970",
        Some((r#"{{ date "2006-01-02" 86400 }}"#, "1970-01-02")),
    ),
    Row(
        "dateInZone",
        "dateInZone LAYOUT DATE ZONE",
        "as date, in a time zone",
        Some((r#"{{ dateInZone "15:04 MST" 0 "Europe/Berlin" }}"#, "01:00 CET")),
    ),
    Row(
        "date_in_zone",
        "date_in_zone LAYOUT DATE ZONE",
        "old spelling of dateInZone",
        Some((r#"{{ date_in_zone "15:04" 0 "UTC" }}"#, "00:00")),
    ),
    Row(
        "htmlDate",
        "htmlDate DATE",
        "a date as date pickers of HTML want it",
        Some(("{{ htmlDate 0 }}", "1970-01-01")),
    ),
    Row(
        "htmlDateInZone",
        "htmlDateInZone DATE ZONE",
        "as htmlDate, in a time zone",
        Some((r#"{{ htmlDateInZone 0 "America/New_York" }}"#, "1969-12-31")),
    ),
    Row(
        "duration",
        "duration SECONDS",
        "seconds as a duration; takes a string or an integer of the data",
        Some((r#"{{ duration "95" }}"#, "1m35s")),
    ),
    Row(
        "durationRound",
        "durationRound DURATION",
        "a duration rounded to its largest unit",
        Some((r#"{{ durationRound "2h10m5s" }}"#, "2h")),
    ),
    Row(
        "unixEpoch",
        "unixEpoch DATE",
        "seconds since 1970, as text",
        Some((r#"{{ unixEpoch (toDate "2006-01-02" "1970-01-02") }}"#, "86400")),
    ),
    Row(
        "dateModify",
        "dateModify DURATION DATE",
        "a date moved by a duration; an invalid duration leaves it unchanged",
        Some((r#"{{ toDate "2006-01-02" "2020-02-29" | dateModify "24h" | date "2006-01-02" }}"#, "2020-03-01")),
    ),
    Row(
        "date_modify",
        "date_modify DURATION DATE",
        "old spelling of dateModify",
        Some((r#"{{ toDate "2006-01-02" "2020-01-02" | date_modify "-24h" | date "2006-01-02" }}"#, "2020-01-01")),
    ),
    Row(
        "mustDateModify",
        "mustDateModify DURATION DATE",
        "as dateModify; an invalid duration is an error",
        Some((r#"{{ toDate "2006-01-02" "2020-01-02" | mustDateModify "1h" | date "15:04" }}"#, "01:00")),
    ),
    Row(
        "must_date_modify",
        "must_date_modify DURATION DATE",
        "old spelling of mustDateModify",
        Some((r#"{{ toDate "2006-01-02" "2020-01-02" | must_date_modify "90m" | date "15:04" }}"#, "01:30")),
    ),
    Row(
        "toDate",
        "toDate LAYOUT TEXT",
        "reads a date; the year 1 if it cannot be read",
        Some((r#"{{ toDate "2006-01-02" "2017-12-31" | date "02/01/2006" }}"#, "31/12/2017")),
    ),
    Row(
        "mustToDate",
        "mustToDate LAYOUT TEXT",
        "reads a date; an error if it cannot be read",
        Some((r#"{{ (mustToDate "2006-01-02" "2017-12-31").Year }}"#, "2017")),
    ),
];

pub(super) const DEFAULTS: &[Row] = &[
    Row(
        "default",
        "default VALUE GIVEN",
        "GIVEN, or VALUE if that is empty",
        Some((r#"{{ default "foo" "" }}"#, "foo")),
    ),
    Row(
        "empty",
        "empty VALUE",
        "whether a value is absent, zero, false or has no elements",
        Some((r#"{{ empty "" }}"#, "true")),
    ),
    Row("coalesce", "coalesce VALUE…", "the first value that is not empty", Some((r#"{{ coalesce "" 0 "x" }}"#, "x"))),
    Row("all", "all VALUE…", "whether all values are non-empty", Some((r#"{{ all 1 "" }}"#, "false"))),
    Row("any", "any VALUE…", "whether any value is non-empty", Some((r#"{{ any 0 "x" }}"#, "true"))),
    Row("ternary", "ternary YES NO CONDITION", "one of two values", Some((r#"{{ ternary "on" "off" true }}"#, "on"))),
    Row(
        "fromJson",
        "fromJson TEXT",
        "reads JSON; nothing if it is invalid",
        Some((r#"{{ (fromJson "{\"a\":[1,2]}").a }}"#, "[1 2]")),
    ),
    Row(
        "mustFromJson",
        "mustFromJson TEXT",
        "reads JSON; an error if it is invalid",
        Some((r#"{{ (mustFromJson "[1,2]") | len }}"#, "2")),
    ),
    Row(
        "toJson",
        "toJson VALUE",
        "JSON on one line, safe inside HTML",
        Some((r#"{{ toJson (dict "a" (list 1 "<")) }}"#, r#"{"a":[1,"\u003c"]}"#)),
    ),
    Row(
        "mustToJson",
        "mustToJson VALUE",
        "as toJson; an error if the value cannot be written",
        Some(("{{ mustToJson (list 1 nil) }}", "[1,null]")),
    ),
    Row(
        "toPrettyJson",
        "toPrettyJson VALUE",
        "JSON on several lines",
        Some((r#"{{ toPrettyJson (dict "a" 1) }}"#, "{\n  \"a\": 1\n}")),
    ),
    Row(
        "mustToPrettyJson",
        "mustToPrettyJson VALUE",
        "as toPrettyJson; an error if the value cannot be written",
        Some(("{{ mustToPrettyJson (list 1) }}", "[\n  1\n]")),
    ),
    Row(
        "toRawJson",
        "toRawJson VALUE",
        "JSON on one line, without escapes for HTML",
        Some((r#"{{ toRawJson (list "<&>") }}"#, r#"["<&>"]"#)),
    ),
    Row(
        "mustToRawJson",
        "mustToRawJson VALUE",
        "as toRawJson; an error if the value cannot be written",
        Some((r#"{{ mustToRawJson "<" }}"#, r#""<""#)),
    ),
];

pub(super) const ENCODING: &[Row] = &[
    Row("b64enc", "b64enc TEXT", "base64", Some((r#"{{ b64enc "abc" }}"#, "YWJj"))),
    Row(
        "b64dec",
        "b64dec TEXT",
        "decodes base64; an invalid text yields the error message",
        Some((r#"{{ b64dec "YWJj" }}"#, "abc")),
    ),
    Row("b32enc", "b32enc TEXT", "base32", Some((r#"{{ b32enc "abc" }}"#, "MFRGG==="))),
    Row(
        "b32dec",
        "b32dec TEXT",
        "decodes base32; an invalid text yields the error message",
        Some((r#"{{ b32dec "MFRGG===" }}"#, "abc")),
    ),
];

pub(super) const REFLECTION: &[Row] = &[
    Row(
        "kindOf",
        "kindOf VALUE",
        "the kind: string, int64, float64, slice, map and so on",
        Some(("{{ kindOf (list 1) }}", "slice")),
    ),
    Row("kindIs", "kindIs KIND VALUE", "whether a value is of a kind", Some((r#"{{ kindIs "int" 1 }}"#, "true"))),
    Row("typeOf", "typeOf VALUE", "Go's name of the type", Some(("{{ typeOf (dict) }}", "map[string]interface {}"))),
    Row("typeIs", "typeIs TYPE VALUE", "whether a value is of a type", Some((r#"{{ typeIs "string" "a" }}"#, "true"))),
    Row(
        "typeIsLike",
        "typeIsLike TYPE VALUE",
        "as typeIs, or a pointer to it",
        Some((r#"{{ typeIsLike "semver.Version" (semver "1.0.0") }}"#, "true")),
    ),
    Row(
        "deepEqual",
        "deepEqual A B",
        "whether two values are deeply equal",
        Some(("{{ deepEqual (list 1 2) (list 1 2) }}", "true")),
    ),
];

pub(super) const VERSIONS: &[Row] = &[
    Row(
        "semver",
        "semver TEXT",
        "reads a version, which has .Major, .Minor, .Patch, .Prerelease, .Metadata, .Original and .Compare",
        Some((r#"{{ (semver "1.2.3-rc1").Minor }}"#, "2")),
    ),
    Row(
        "semverCompare",
        "semverCompare CONSTRAINT TEXT",
        "whether a version meets a constraint",
        Some((r#"{{ semverCompare "^1.2.0" "1.4.7" }}"#, "true")),
    ),
];

pub(super) const FLOW: &[Row] = &[Row("fail", "fail TEXT", "ends the rendering with an error", None)];
