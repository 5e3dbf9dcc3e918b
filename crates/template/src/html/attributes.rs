//! Names of attributes and what their values mean.

/// What a value of an attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Plain,
    Url,
    Srcset,
    Style,
    Script,
    /// It changes what other parts of the document mean, so its name must not come from a value.
    Delicate,
}

/// The meaning of an attribute, by its name in lower case; in doubt the one that needs more escaping.
pub(super) fn meaning(name: &str) -> Meaning {
    let name = match (name.strip_prefix("data-"), name.split_once(':')) {
        (Some(custom), _) => custom,
        (None, Some(("xmlns", _))) => return Meaning::Url,
        (None, Some((_, local))) => local,
        (None, None) => name,
    };
    match name {
        "action" | "archive" | "background" | "cite" | "classid" | "codebase" | "data" | "formaction" | "href"
        | "icon" | "longdesc" | "manifest" | "poster" | "profile" | "src" | "usemap" | "xmlns" => Meaning::Url,
        "srcset" => Meaning::Srcset,
        "style" => Meaning::Style,
        "accept-charset" | "async" | "challenge" | "charset" | "content" | "crossorigin" | "defer" | "enctype"
        | "form" | "formenctype" | "formmethod" | "formnovalidate" | "http-equiv" | "keytype" | "language"
        | "method" | "novalidate" | "pattern" | "rel" | "sandbox" | "srcdoc" | "type" | "value" => Meaning::Delicate,
        // Known and plain, although the rules for unknown names below would say otherwise.
        "srclang" => Meaning::Plain,
        _ if name.starts_with("on") => Meaning::Script,
        _ if ["src", "uri", "url"].iter().any(|part| name.contains(part)) => Meaning::Url,
        _ => Meaning::Plain,
    }
}

/// Whether a `type` of `<script>` means JavaScript or JSON.
pub(super) fn is_script_type(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value).to_lowercase();
    let name = text.split(';').next().unwrap_or_default().trim();
    let (family, kind) = name.split_once('/').unwrap_or(("", name));
    match (family, kind) {
        ("", "" | "module")
        | ("application" | "text", "ecmascript" | "javascript" | "x-ecmascript" | "x-javascript")
        | ("application", "json" | "ld+json")
        | ("text", "jscript" | "livescript") => true,
        ("text", kind) => {
            kind.strip_prefix("javascript1.").is_some_and(|n| matches!(n, "0" | "1" | "2" | "3" | "4" | "5"))
        }
        _ => false,
    }
}
