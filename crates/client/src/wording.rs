//! What is decided by the English wording of an answer, because servers and libraries give no code for it. All of it stands in this file.
//!
//! Everything else is decided by codes, reasons and causes. Words change between releases, so every function below errs on the careful side when it does
//! not recognise them: a right is not said to be missing, a consumer is not shown what a server said, a secret is not shown.
//!
//! The words were seen on the servers in [`CHECKED_ON`], which the scenarios and the comparison with real servers run against.

/// Programs and the versions whose words these are.
pub const CHECKED_ON: [(&str, &str); 4] =
    [("kube-apiserver", "1.34.2"), ("kcp", "0.32.3"), ("rustls", "0.23"), ("hyper", "1")];

/// How API servers introduce fields that they do not know: `strict decoding error: unknown field "spec.bogus"`.
pub const STRICT_DECODING: &str = "strict decoding error: ";

/// How they begin each of those fields.
pub const UNKNOWN_FIELD: &str = "unknown field \"";

/// What a server adds when it stopped validating; there is nothing to be done about it.
pub const NOT_VALIDATED: &str = "some validation rules were not checked because";

/// How admission webhooks, validating policies and quotas say no. The quota's words are those of kube-apiserver's own plugin.
const DENIALS: [&str; 3] = ["denied the request", "denied request", "exceeded quota"];

/// Which right the authorizer says is missing in a 403: `"u" cannot list resource "widgets" in API group "example.io"`, without the name of the object.
/// kcp answers 403 as well for schemas and bindings that it does not accept, and admission does for objects; both use other words.
pub fn missing_right(message: &str) -> Option<&str> {
    let (_, missing) = message.split_once("User ")?;
    missing.contains(" cannot ").then_some(missing)
}

/// Whether a 403 is about a right to a resource, so that its words hold nothing of any object's content.
pub fn is_about_a_resource(message: &str) -> bool {
    message.contains(" cannot ") && message.contains(" resource \"")
}

/// Whether an admission webhook, a policy or a quota speaks: that is about the object, so whoever wants the object may read it.
pub fn is_denial(message: &str) -> bool {
    DENIALS.iter().any(|words| message.contains(words))
}

/// Whether a server-side apply was refused because the schema lacks a field.
pub fn is_undeclared_field(message: &str) -> bool {
    message.contains("field not declared in schema")
}

/// Whether a server-side apply was refused in terms of the types in the server's source code. A create of the same object is refused in terms of its fields.
pub fn names_go_types(message: &str) -> bool {
    message.contains("failed to create typed patch object")
}

/// Whether a server was reached, but nobody who is trusted has signed its certificate: rustls' words.
pub fn is_untrusted(problem: &str) -> bool {
    problem.contains("invalid peer certificate")
}

/// Whether somebody answered in another protocol than HTTP, mostly TLS: hyper's words.
pub fn is_no_http(problem: &str) -> bool {
    problem.contains("invalid HTTP version")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages are those of the servers above.
    #[test]
    fn a_missing_right_is_what_the_authorizer_says_and_nothing_else_that_is_forbidden() {
        let resource = "widgets.example.io is forbidden: User \"u\" cannot list resource \"widgets\" in API group \"example.io\": access denied";
        let path = "forbidden: User \"u\" cannot get path \"/apis\": access denied";
        for (message, is_resource) in [(resource, true), (path, false)] {
            assert!(missing_right(message).is_some(), "{message}");
            assert_eq!(is_about_a_resource(message), is_resource, "{message}");
        }
        let others = [
            "workspace type \"nope\" cannot be resolved",
            "admission webhook \"w\" denied the request: no",
            "pods \"p\" is forbidden: exceeded quota: q",
            "configmaps \"c\" is forbidden: unable to create new content in namespace n because it is being terminated",
        ];
        for message in others {
            assert!(missing_right(message).is_none() && !is_about_a_resource(message), "{message}");
        }
    }

    #[test]
    fn a_denial_is_for_whoever_wants_the_object() {
        assert!(is_denial("admission webhook \"w\" denied the request: no"));
        assert!(is_denial("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"));
        assert!(is_denial("pods \"p\" is forbidden: exceeded quota: q"));
        assert!(!is_denial("pods is forbidden: User \"u\" cannot create resource \"pods\""));
    }

    #[test]
    fn words_of_apply_and_of_the_way_there_are_recognised() {
        let typed = "failed to create typed patch object (default/a; example.io/v1, Kind=Widget): .spec.bogus: field not declared in schema";
        assert!(is_undeclared_field(typed) && names_go_types(typed) && !is_untrusted(typed));
        assert!(is_untrusted("client error (Connect): invalid peer certificate: UnknownIssuer"));
        assert!(is_no_http("client error (SendRequest): invalid HTTP version parsed"));
    }
}
