//! sprig functions, by the examples of its documentation.

use carrick_template::Template;
use serde_json::Map;

fn check(table: &[(&str, &str)]) {
    for (text, expected) in table {
        let template = Template::compile(&format!("{{{{ {text} }}}}")).unwrap();
        assert_eq!(template.render(&Map::new()).as_deref(), Ok(*expected), "{text}");
    }
}

#[test]
fn strings() {
    check(&[
        (r#"abbrev 5 "hello world""#, "he..."),
        (r#"abbrevboth 5 10 "1234 5678 9123""#, "...5678..."),
        (r#"abbrevboth 0 3 "hello""#, "hello"),
        (r#"initials "First Try""#, "FT"),
        (r#"wrap 8 "this is a long text""#, "this is\na long\ntext"),
        (r#"wrapWith 5 "\t" "Hello World""#, "Hello\tWorld"),
        (r#"wrapWith 3 "-" "abcdefgh""#, "abc-def-gh"),
        (r#"nospace "hello w o r l d""#, "helloworld"),
        (r#"trimAll "$" "$5.00""#, "5.00"),
        (r#"substr 0 5 "hello world""#, "hello"),
        (r#"substr 6 -1 "hello world""#, "world"),
        (r#"substr -1 5 "hello world""#, "hello"),
        (r#"trunc -5 "hello world""#, "world"),
        (r#"repeat 3 "ab""#, "ababab"),
        (r#"cat "hello" nil "world" 1"#, "hello world 1"),
        (r#"indent 2 "a\nb""#, "  a\n  b"),
        (r#"plural "one anchovy" "many anchovies" 1"#, "one anchovy"),
        (r#"swapcase "Hello World""#, "hELLO wORLD"),
        (r#"untitle "Hello World""#, "hello world"),
        (r#"title "hello wide-world o'neil""#, "Hello Wide-World O'Neil"),
        (r#"upper "straße""#, "STRAßE"),
        (r#"squote "a" 1"#, "'a' '1'"),
        (r#"(split "$" "foo$bar$baz")._1"#, "bar"),
        (r#"splitn "$" 2 "foo$bar$baz""#, "map[_0:foo _1:bar$baz]"),
        (r#"splitList "" "aé" | toJson"#, r#"["a","é"]"#),
        (r#"toStrings (list 1 nil "a") | toJson"#, r#"["1","a"]"#),
        (r#"join "-" (list 1 nil "a")"#, "1-a"),
        (r#"list "b" "a" 1 | sortAlpha"#, "[1 a b]"),
        (r#"replace "" "-" "ab""#, "-a-b-"),
        (r#"contains "" "a""#, "true"),
    ]);
}

#[test]
fn names_of_several_words() {
    check(&[
        (r#"snakecase "FirstName""#, "first_name"),
        (r#"snakecase "HTTPServer""#, "http_server"),
        (r#"snakecase "NoHTTPS""#, "no_https"),
        (r#"snakecase "GO_PATH""#, "go_path"),
        (r#"snakecase "GO PATH""#, "go_path"),
        (r#"snakecase "http2xx""#, "http_2xx"),
        (r#"snakecase "HTTP20xOK""#, "http_20x_ok"),
        (r#"snakecase "Duration2m3s""#, "duration_2m3s"),
        (r#"snakecase "Bld4Floor3rd""#, "bld4_floor_3rd"),
        (r#"kebabcase "FirstName""#, "first-name"),
        (r#"kebabcase "HTTP20xOK""#, "http-20x-ok"),
        (r#"camelcase "http_server""#, "HttpServer"),
        (r#"camelcase "_complex__case_""#, "_Complex_Case_"),
        (r#"camelcase "some words""#, "SomeWords"),
        (r#"camelcase "GOLANG_IS_GREAT""#, "GolangIsGreat"),
    ]);
}

#[test]
fn numbers() {
    check(&[
        ("add 1 2 3", "6"),
        ("typeOf (add 1 2)", "int64"),
        ("typeOf (int 1.5)", "int"),
        ("div 7 -2", "-3"),
        ("mod -7 3", "-1"),
        ("max 1 2 3", "3"),
        ("min 1 2 3", "1"),
        ("addf 0.1 0.2", "0.3"),
        ("add1f 1.5", "2.5"),
        ("subf 7.5 2 3", "2.5"),
        ("divf 10 2 4", "1.25"),
        ("divf 1 3", "0.3333333333333333"),
        ("mulf 1.5 2 2", "6"),
        ("mulf -1.1 1.1", "-1.21"),
        ("maxf 1 2.5 3", "3"),
        ("minf 1.5 2 3", "1.5"),
        ("floor 123.9999", "123"),
        ("ceil 123.001", "124"),
        ("round 123.555555 3", "123.556"),
        ("round 123.4 0 0.3", "124"),
        ("seq 5", "1 2 3 4 5"),
        ("seq -3", "1 0 -1 -2 -3"),
        ("seq 0 2", "0 1 2"),
        ("seq 2 -2", "2 1 0 -1 -2"),
        ("seq 0 2 10", "0 2 4 6 8 10"),
        ("seq 0 -2 -5", "0 -2 -4"),
        ("until 3 | toJson", "[0,1,2]"),
        ("untilStep 3 6 2", "[3 5]"),
        ("until -2", "[0 -1]"),
        (r#"int64 "1.0""#, "1"),
        (r#"int "1.5""#, "0"),
        (r#"int "0777""#, "511"),
        ("int true", "1"),
        ("toDecimal 777", "511"),
        (r#"float64 "1e3""#, "1000"),
        (r#"atoi "12x""#, "0"),
    ]);
}

#[test]
fn lists() {
    check(&[
        ("list 1 2 3 | first", "1"),
        ("list | first", "<no value>"),
        ("list 1 2 3 | rest", "[2 3]"),
        ("rest list | toJson", "null"),
        ("compact (list 1 \"a\" \"\" nil 0 false)", "[1 a]"),
        ("uniq (list 1 1 \"1\" 1.0)", "[1 1 1]"),
        ("has 4 (list 1 4)", "true"),
        ("has (int64 4) (list 1 4)", "false"),
        ("has 4 nil", "false"),
        ("slice (list 1 2 3 4) 1 3", "[2 3]"),
        ("concat (list 1) (list 2 3) (until 1)", "[1 2 3 0]"),
        ("chunk 3 (list 1 2 3 4 5 6 7)", "[[1 2 3] [4 5 6] [7]]"),
        ("typeOf (chunk 3 (list 1))", "[][]interface {}"),
        ("without (list 1 2 3) 1 3", "[2]"),
        ("deepEqual (list 1 \"a\") (list 1 \"a\")", "true"),
        ("deepEqual (list \"a\") (splitList \",\" \"a\")", "false"),
    ]);
}

#[test]
fn dictionaries() {
    check(&[
        (r#"dict "a" 1 2 "b" "c""#, "map[2:b a:1 c:]"),
        (r#"get (dict "a" 1) "b" | quote"#, r#""""#),
        (r#"pluck "a" (dict "a" 1) (dict "b" 2) (dict "a" 3)"#, "[1 3]"),
        (r#"keys (dict "b" 1 "a" 2) (dict "c" 3)"#, "[a b c]"),
        (r#"dig "a" "b" "default" (dict "a" (dict "b" 1))"#, "1"),
        (r#"dig "a" "x" "default" (dict "a" (dict "b" 1))"#, "default"),
        (
            r#"merge (dict "a" 1 "n" (dict "x" 1)) (dict "a" 2 "b" 2 "n" (dict "x" 2 "y" 2))"#,
            "map[a:1 b:2 n:map[x:1 y:2]]",
        ),
        (r#"merge (dict "a" "" "b" false) (dict "a" 2 "b" true)"#, "map[a:2 b:true]"),
        (r#"mergeOverwrite (dict "a" 1 "n" (dict "x" 1)) (dict "a" 2 "n" (dict "y" 2))"#, "map[a:2 n:map[x:1 y:2]]"),
        (r#"merge nil (dict "a" 1)"#, "map[a:1]"),
        (r#"omit (dict "a" 1 "b" 2) "a""#, "map[b:2]"),
        (r#"coalesce 0 "" (list) "x""#, "x"),
        (r#"default "d" """#, "d"),
        (r#"ternary "a" "b" false"#, "b"),
    ]);
}

#[test]
fn encodings_and_hashes() {
    check(&[
        (r#"b64dec "aGVsbG8=""#, "hello"),
        (r#"b64dec "aGVsbG8""#, "illegal base64 data at input byte 4"),
        (r#"b32enc "hello""#, "NBSWY3DP"),
        (r#"b32dec "NBSWY3DP""#, "hello"),
        (r#"adler32sum "Wikipedia""#, "300286872"),
        (r#"sha1sum """#, "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (r#"sha512sum "" | trunc 16"#, "cf83e1357eefb8bd"),
        (r#"sha256sum (b64dec "/w==") | trunc 16"#, "a8100ae6aa1940d0"),
        (r#"shortHash (dict "a" 1)"#, "8a3d961f7fe8ef7b41d4"),
        (
            r#"toJson (dict "a" "<&>" "b" 1e21 "c" 1e-7 "d" (list))"#,
            r#"{"a":"\u003c\u0026\u003e","b":1e+21,"c":1e-7,"d":[]}"#,
        ),
        (r#"fromJson "[1, 10000000, 0.5]""#, "[1 1e+07 0.5]"),
        (r#"fromJson "nonsense""#, "<no value>"),
        (r#"regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W""#, "-W-xxW-"),
        (r#"regexFindAll "[2,4,6,8]" "123456789" 2"#, "[2 4]"),
        (r#"regexFindAll "x" "y" -1 | toJson"#, "null"),
        (r#"regexMatch "(" "x""#, "false"),
        // A name has letters and decimal digits; the other number ends it.
        (r#"regexReplaceAll "(a)" "a" "$1²""#, "a²"),
        // Of two numbers that are equally close, the even one.
        ("toJson 2241009620944033.2", "2241009620944033.2"),
        (
            r#"urlParse "http://admin:secret@server.com:8080/api?list=false#anchor""#,
            "map[fragment:anchor host:server.com:8080 hostname:server.com opaque: path:/api query:list=false scheme:http userinfo:admin:secret]",
        ),
        (
            r#"urlJoin (dict "fragment" "f" "host" "h:80" "path" "/p q" "query" "a=1" "scheme" "http" "userinfo" "u:p")"#,
            "http://u:p@h:80/p%20q?a=1#f",
        ),
    ]);
}

#[test]
fn dates_and_durations() {
    check(&[
        (r#"date "2006-01-02 15:04:05 MST" 0"#, "1970-01-01 00:00:00 UTC"),
        (r#"dateInZone "Mon Jan _2 15:04 MST -07:00" 0 "America/New_York""#, "Wed Dec 31 19:00 EST -05:00"),
        ("htmlDate 1700000000", "2023-11-14"),
        (r#"toDate "2006-01-02" "2024-02-29" | dateModify "-24h" | htmlDate"#, "2024-02-28"),
        (r#"toDate "2006-01-02" "no date""#, "0001-01-01 00:00:00 +0000 UTC"),
        (r#"unixEpoch (toDate "2006-01-02T15:04:05Z07:00" "2024-03-04T05:06:07+02:00")"#, "1709521567"),
        (r#"(toDate "2006-01-02" "2024-03-04").Year"#, "2024"),
        (r#"duration "95""#, "1m35s"),
        (r#"durationRound "2h10m5s""#, "2h"),
        // Fractions are rounded as floats are.
        (r#"durationRound "0.3333333333333333333h""#, "20m"),
        (r#"durationRound "2400h10m5s""#, "3mo"),
        ("now | ago", "0s"),
    ]);
}

#[test]
fn versions() {
    check(&[
        (r#"semver "v1.2""#, "1.2.0"),
        (r#"(semver "1.2.3-alpha.1+123").Prerelease"#, "alpha.1"),
        (r#"(semver "1.2.3").Compare (semver "1.2.4")"#, "-1"),
        (r#"semverCompare "1.2.3" "1.2.3""#, "true"),
        (r#"semverCompare "^1.2.0" "2.0.0""#, "false"),
        (r#"semverCompare "^0.2.3" "0.3.0""#, "false"),
        (r#"semverCompare "~1.2.3" "1.2.9""#, "true"),
        (r#"semverCompare "~1" "1.9.0""#, "true"),
        (r#"semverCompare "1.2.x" "1.2.9""#, "true"),
        (r#"semverCompare "*" "1.0.0""#, "true"),
        (r#"semverCompare "1.2 - 1.4.5" "1.4.5""#, "true"),
        (r#"semverCompare "1.2 - 1.4.5" "1.4.6""#, "false"),
        (r#"semverCompare ">=1.2 <3.0.0 || >=4.2.3" "4.2.3""#, "true"),
        (r#"semverCompare ">=1.2, <3.0.0" "3.0.0""#, "false"),
        (r#"semverCompare ">1.2.0" "1.3.0-beta.1""#, "false"),
        (r#"semverCompare ">1.2.0-0" "1.3.0-beta.1""#, "true"),
        (r#"semverCompare ">11" "11.1.0""#, "false"),
        (r#"semverCompare "<=1.2" "1.2.7""#, "true"),
        (r#"semverCompare "!=1.2.x" "1.2.7""#, "false"),
    ]);
}

#[test]
fn paths_and_types() {
    check(&[
        (r#"base "foo/bar/""#, "bar"),
        (r#"base """#, "."),
        (r#"dir "/a/b""#, "/a"),
        (r#"clean "foo//bar/../baz/""#, "foo/baz"),
        (r#"clean "/../a""#, "/a"),
        (r#"ext "foo.tar.gz""#, ".gz"),
        (r#"isAbs "a""#, "false"),
        ("kindOf (list)", "slice"),
        (r#"kindIs "map" dict"#, "true"),
        (r#"typeIs "[]string" (keys dict)"#, "true"),
        (r#"typeIsLike "semver.Version" (semver "1")"#, "true"),
    ]);
}

#[test]
fn random_functions_have_the_asked_size() {
    check(&[
        ("len (randAlphaNum 20)", "20"),
        (r#"regexMatch "^[a-zA-Z]{8}$" (randAlpha 8)"#, "true"),
        (r#"regexMatch "^[0-9]{8}$" (randNumeric 8)"#, "true"),
        ("len (b64dec (randBytes 12))", "12"),
        ("randInt 5 6", "5"),
        (r#"regexMatch "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$" uuidv4"#, "true"),
        (r#"len (shuffle "hello")"#, "5"),
    ]);
}

#[test]
fn a_password_is_derived_for_known_kinds_only() {
    check(&[
        (r#"derivePassword 1 "nope" "p" "u" "s""#, "cannot find password template nope"),
        (r#"derivePassword 1 "pin" "password" "user" "example.com""#, "6685"),
    ]);
}

#[test]
fn a_rendering_has_time_for_few_slow_passwords() {
    let text = r#"{{ range 3 }}{{ $x := derivePassword 1 "pin" "p" "u" "s" }}{{ end }}"#;
    let outcome = Template::compile(text).unwrap().render(&Map::new());
    assert!(matches!(outcome, Err(carrick_template::RenderError::Limit { what: "steps", .. })), "{outcome:?}");
}

#[test]
fn what_is_different_at_every_rendering_is_refused_by_name_when_compiling() {
    let refused = carrick_template::reference::refused();
    let names: Vec<&str> = refused.iter().map(|(name, _)| *name).collect();
    for name in ["genCA", "genPrivateKey", "buildCustomCert", "bcrypt", "htpasswd", "encryptAES", "decryptAES"] {
        assert!(names.contains(&name), "{name}");
    }
    for (name, reason) in refused {
        // Also where it would never be called.
        let text = format!(r#"{{{{ if false }}}}{{{{ {name} "x" 1 }}}}{{{{ end }}}}"#);
        let error = Template::compile(&text).unwrap_err();
        assert!(matches!(&error, carrick_template::CompileError::Refused { name: refused, .. } if refused == name));
        let at = error.position().map(|at| (at.offset, at.length));
        assert_eq!(at, Some((text.find(name).unwrap(), name.len())), "{text}");
        assert_eq!(error.message(), format!("function {name:?} is refused: {reason}"));
        assert!(reason.contains("different at every rendering") && reason.contains("Secret"), "{reason}");
    }
}

#[test]
fn random_functions_are_refused_only_where_the_same_is_needed_each_time() {
    for call in [
        "randAlphaNum 5",
        "randAlpha 5",
        "randNumeric 5",
        "randAscii 5",
        "randBytes 5",
        "randInt 1 5",
        "uuidv4",
        r#"shuffle "ab""#,
    ] {
        let text = format!("{{{{ {call} }}}}");
        assert!(Template::compile(&text).is_ok(), "{text}");
        let error = Template::compile_steady(&text).unwrap_err();
        let name = call.split(' ').next().unwrap();
        assert!(
            error.to_string().starts_with(&format!("template line 1, column 4: function {name:?} is refused: ")),
            "{error}"
        );
    }
    assert!(Template::compile_steady("{{ now | date \"2006\" }}{{ .name | sha3short }}").is_ok());
}
