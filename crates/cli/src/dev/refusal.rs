//! Why a server refuses an object, in words for the author of a file. Pure.

use carrick_client::{Error, wording};
use carrick_syncagent::api::unknown_field;

use super::ledger::ApplyError;

/// The server's message, shortened.
pub fn refused(error: &Error) -> ApplyError {
    let Error::Api(status) = error else { return ApplyError { text: error.to_string(), passes: false } };
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    let told =
        causes.iter().filter(|cause| !cause.message.is_empty() && !cause.message.contains(wording::NOT_VALIDATED));
    let causes: Vec<String> = told
        .map(|cause| match cause.field.as_str() {
            "" => cause.message.clone(),
            field => format!("{field}: {}", cause.message),
        })
        .collect();
    let text = match status.message.split_once(wording::STRICT_DECODING) {
        // Which fields there are is known of one kind only.
        Some((of, fields)) if of.starts_with("PublishedResource ") => unknown(fields),
        Some((_, fields)) => fields.to_owned(),
        None if causes.is_empty() => status.to_string(),
        None => causes.join("; "),
    };
    // A namespace or kind that does not exist yet gives a 404.
    ApplyError { text, passes: status.code == 404 }
}

/// Whether a server that applies objects speaks of the types in its own source code. When it creates an object, it names the fields.
pub fn is_obscure(error: &Error) -> bool {
    error.status().is_some_and(|status| wording::names_go_types(&status.message))
}

/// Fields that a server does not know, and which ones there are instead.
fn unknown(fields: &str) -> String {
    let each = fields.split(", ").map(|told| {
        let path = told.strip_prefix(wording::UNKNOWN_FIELD).and_then(|rest| rest.strip_suffix('"'));
        path.map_or_else(|| told.to_owned(), unknown_field)
    });
    each.collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use carrick_client::{Status, StatusCause, StatusDetails};

    use super::*;

    fn told(message: &str, causes: &[(&str, &str)]) -> String {
        let causes = causes.iter().map(|(field, message)| StatusCause {
            field: (*field).to_owned(),
            message: (*message).to_owned(),
            ..StatusCause::default()
        });
        let details = StatusDetails { causes: causes.collect(), ..StatusDetails::default() };
        let status =
            Status { code: 400, message: message.to_owned(), details: Some(Box::new(details)), ..Status::default() };
        refused(&Error::Api(Box::new(status))).text
    }

    #[test]
    fn fields_that_are_unknown_are_named_with_those_that_are_known() {
        let start = "PublishedResource in version \"v1alpha1\" cannot be handled as a PublishedResource: strict decoding error: ";
        let told = told(
            &format!(
                "{start}unknown field \"spec.resource.group\", unknown field \"spec.related[0].reference\", duplicate field \"a\""
            ),
            &[],
        );
        assert!(
            told.starts_with(
                "unknown field \"spec.resource.group\" (spec.resource has apiGroup, kind, version, versions), "
            ),
            "{told}"
        );
        assert!(told.contains("unknown field \"spec.related[0].reference\" (spec.related[0] has "), "{told}");
        assert!(told.ends_with(", duplicate field \"a\""), "{told}");
    }

    #[test]
    fn fields_of_other_kinds_are_not_those_of_a_published_resource() {
        let start = "Bucket in version \"v1\" cannot be handled as a Bucket: strict decoding error: ";
        assert_eq!(told(&format!("{start}unknown field \"spec.sise\""), &[]), "unknown field \"spec.sise\"");
    }

    #[test]
    fn what_nobody_can_change_is_left_out() {
        let causes = [
            ("spec.a", "Required value"),
            ("<nil>", "Invalid value: null: some validation rules were not checked because the object was invalid"),
        ];
        assert_eq!(told("x", &causes), "spec.a: Required value");
        assert_eq!(told("x", &[]), "x (400)");
    }
}
