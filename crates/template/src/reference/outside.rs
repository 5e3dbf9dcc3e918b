//! Paths, URLs, hashes, and what would lie outside.

use super::row::Row;

pub(super) const PATHS: &[Row] = &[
    Row("base", "base PATH", "the last element", Some((r#"{{ base "a/b/c.txt" }}"#, "c.txt"))),
    Row("dir", "dir PATH", "all but the last element", Some((r#"{{ dir "a/b/c.txt" }}"#, "a/b"))),
    Row("ext", "ext PATH", "the suffix with its dot", Some((r#"{{ ext "a/b.txt" }}"#, ".txt"))),
    Row("clean", "clean PATH", "the shortest path that means the same", Some((r#"{{ clean "a/../b//c" }}"#, "b/c"))),
    Row("isAbs", "isAbs PATH", "whether a path is absolute", Some((r#"{{ isAbs "/a" }}"#, "true"))),
    Row("osBase", "osBase PATH", "as base", Some((r#"{{ osBase "a/b" }}"#, "b"))),
    Row("osDir", "osDir PATH", "as dir", Some((r#"{{ osDir "a/b" }}"#, "a"))),
    Row("osExt", "osExt PATH", "as ext", Some((r#"{{ osExt "a.b" }}"#, ".b"))),
    Row("osClean", "osClean PATH", "as clean", Some((r#"{{ osClean "./a" }}"#, "a"))),
    Row("osIsAbs", "osIsAbs PATH", "as isAbs", Some((r#"{{ osIsAbs "a" }}"#, "false"))),
];

pub(super) const CRYPTO: &[Row] = &[
    Row(
        "sha1sum",
        "sha1sum TEXT",
        "SHA-1 in hexadecimal digits",
        Some((r#"{{ sha1sum "abc" }}"#, "a9993e364706816aba3e25717850c26c9cd0d89d")),
    ),
    Row(
        "sha256sum",
        "sha256sum TEXT",
        "SHA-256 in hexadecimal digits",
        Some((r#"{{ sha256sum "abc" }}"#, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")),
    ),
    Row(
        "sha512sum",
        "sha512sum TEXT",
        "SHA-512 in hexadecimal digits",
        Some((r#"{{ sha512sum "abc" | trunc 16 }}"#, "ddaf35a193617aba")),
    ),
    Row(
        "adler32sum",
        "adler32sum TEXT",
        "Adler-32 as a decimal number",
        Some((r#"{{ adler32sum "abc" }}"#, "38600999")),
    ),
    Row(
        "randBytes",
        "randBytes COUNT",
        "random bytes as base64; new at every rendering",
        Some(("{{ len (randBytes 3) }}", "4")),
    ),
    Row(
        "derivePassword",
        "derivePassword COUNTER KIND PASSWORD USER SITE",
        "the Master Password algorithm; slow on purpose: a rendering may make two",
        Some((r#"{{ derivePassword 1 "pin" "password" "user" "example.com" }}"#, "6685")),
    ),
    Row("uuidv4", "uuidv4", "a random UUID; new at every rendering", Some(("{{ len uuidv4 }}", "36"))),
];

pub(super) const NETWORK: &[Row] = &[
    Row(
        "env",
        "env NAME",
        "exists and yields nothing: templates do not see the environment",
        Some((r#"{{ env "HOME" | quote }}"#, r#""""#)),
    ),
    Row(
        "expandenv",
        "expandenv TEXT",
        "exists and yields nothing: templates do not see the environment",
        Some((r#"{{ expandenv "$HOME" | quote }}"#, r#""""#)),
    ),
    Row(
        "getHostByName",
        "getHostByName NAME",
        "exists and yields nothing: templates do not see the network",
        Some((r#"{{ getHostByName "example.com" | quote }}"#, r#""""#)),
    ),
];

pub(super) const URLS: &[Row] = &[
    Row(
        "urlParse",
        "urlParse TEXT",
        "the parts of a URL as a map: scheme, host, path, query, fragment, userinfo and more",
        Some((r#"{{ (urlParse "http://admin@example.com:80/a?b=c").host }}"#, "example.com:80")),
    ),
    Row(
        "urlJoin",
        "urlJoin MAP",
        "a URL made from such parts",
        Some((r#"{{ urlJoin (dict "scheme" "http" "host" "h:80" "path" "/p" "query" "q=1") }}"#, "http://h:80/p?q=1")),
    ),
];
