//! What may go wrong with a request.

use std::time::Duration;

use serde::Deserialize;

use crate::wording;

/// The longest time for which a server is left alone. It may ask for any, and not every number of seconds is one that a clock can show.
const LONGEST_WISH: Duration = Duration::from_hours(24);

/// Why a request had no good answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with an error.
    #[error("{0}")]
    Api(Box<Status>),
    /// No answer came, or it broke off: network, TLS, credentials plugin or time limit.
    #[error("{request}: {problem}")]
    Transport {
        /// Method and URL.
        request: String,
        /// The whole chain of causes.
        problem: String,
    },
    /// The answer is not what it should be.
    #[error("{request}: cannot understand the answer: {problem}")]
    Decode {
        /// Method and URL.
        request: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is more than is taken from this server; see [`Server::take_at_most`](crate::Server::take_at_most).
    #[error("{request}: there is more than {most} bytes of it, which is the most that is taken from this server")]
    TooLarge {
        /// Method and URL.
        request: String,
        /// The limit.
        most: usize,
    },
    /// The request cannot be built; nothing was sent.
    #[error("cannot send {request}: {problem}")]
    Request {
        /// Method and URL.
        request: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// An error answer of the server, as in a Kubernetes `Status` object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`; empty if the server gave none.
    pub reason: String,
    /// What the server said.
    pub message: String,
    /// More about the object and the fields concerned.
    pub details: Option<Box<StatusDetails>>,
    /// How long the server wants to be left alone; a day at most.
    pub retry_after: Option<Duration>,
    /// Method and URL of the request; empty if it is not known.
    pub request: String,
    /// What helps against a right that is missing, if the client knows; see [`Client::advising`](crate::Client::advising).
    pub cure: Option<String>,
}

/// Which object a [`Status`] is about, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StatusDetails {
    /// Name of the object.
    pub name: String,
    /// API group of the object.
    pub group: String,
    /// Kind, or plural, of the object.
    pub kind: String,
    /// Uid of the object.
    pub uid: String,
    /// The single problems, one per field for invalid objects.
    pub causes: Vec<StatusCause>,
}

/// One problem of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// Machine-readable reason, such as `FieldValueInvalid`.
    pub reason: String,
    /// What is wrong.
    pub message: String,
    /// Path of the field.
    pub field: String,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.message.as_str(), self.reason.as_str()) {
            ("", "") => write!(f, "the server answered {}", self.code),
            ("", reason) => write!(f, "the server answered {} ({reason})", self.code),
            (message, "") => write!(f, "{message} ({})", self.code),
            (message, reason) => write!(f, "{message} ({} {reason})", self.code),
        }?;
        self.cure.as_ref().map_or(Ok(()), |cure| write!(f, "; {cure}"))
    }
}

impl Status {
    /// Reads an error answer; answers that are no `Status` object (from proxies, for example) keep their first line.
    pub(crate) fn parse(code: u16, retry_after: Option<Duration>, request: &str, body: &[u8]) -> Self {
        match serde_json::from_slice::<Wire>(body) {
            Ok(wire) if wire.kind == "Status" => {
                Self { code, request: request.to_owned(), ..wire.into_status(retry_after) }
            }
            _ => {
                let text = String::from_utf8_lossy(&body[..body.len().min(300)]);
                let line = text.lines().next().unwrap_or_default().trim();
                let message = if line.is_empty() { request.to_owned() } else { format!("{request}: {line}") };
                let retry_after = retry_after.map(bounded);
                Self { code, message, retry_after, request: request.to_owned(), ..Self::default() }
            }
        }
    }

    /// Whether its message is about the request and not about the content of an object.
    fn is_harmless(&self) -> bool {
        match self.code {
            401 | 404 | 409 | 410 | 429 => true,
            403 => wording::is_about_a_resource(&self.message),
            _ => false,
        }
    }

    /// Reads the `Status` object of an ERROR event of a watch.
    pub(crate) fn from_event(object: &str) -> Result<Self, serde_json::Error> {
        Ok(serde_json::from_str::<Wire>(object)?.into_status(None))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    kind: String,
    code: u16,
    reason: String,
    message: String,
    details: Option<WireDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireDetails {
    retry_after_seconds: u64,
    #[serde(flatten)]
    rest: StatusDetails,
}

fn bounded(wish: Duration) -> Duration {
    wish.min(LONGEST_WISH)
}

impl Wire {
    fn into_status(self, header: Option<Duration>) -> Status {
        let seconds = self.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        Status {
            code: self.code,
            reason: self.reason,
            message: self.message,
            details: self.details.map(|details| Box::new(details.rest)),
            retry_after: header.or((seconds > 0).then(|| Duration::from_secs(seconds))).map(bounded),
            request: String::new(),
            cure: None,
        }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Api(Box::new(status))
    }
}

impl Error {
    /// One word for metrics: the server's reason or code where it answered, else what is wrong with the way there.
    pub fn reason(&self) -> String {
        match self {
            Self::Api(status) if status.reason.is_empty() => status.code.to_string(),
            Self::Api(status) => status.reason.clone(),
            Self::Transport { .. } => "Unreachable".to_owned(),
            Self::Decode { .. } => "Undecodable".to_owned(),
            Self::TooLarge { .. } => "TooLarge".to_owned(),
            Self::Request { .. } => "Unsendable".to_owned(),
        }
    }

    /// The server's answer, if there was one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(status) => Some(status),
            _ => None,
        }
    }

    /// A description of what other requests fail for as well until it is over: a server that does not work, or a permission that is missing. `None`
    /// if the request itself may be to blame.
    pub fn shared_cause(&self) -> Option<String> {
        match self {
            Self::Transport { request, .. } => Some(format!("{} does not work", server(request))),
            Self::Api(status) if self.is_transient() => Some(format!("{} does not work", server(&status.request))),
            Self::Api(status) if status.code == 401 => Some(format!("{} does not know us", server(&status.request))),
            Self::Api(status) => self.missing_right().map(|missing| format!("{}: {missing}", server(&status.request))),
            Self::Decode { .. } | Self::TooLarge { .. } | Self::Request { .. } => None,
        }
    }

    /// The object, kind or path does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// The server says about this very object that it does not exist. A kind that is not served, or not yet, is another matter.
    pub fn is_missing(&self, name: &str) -> bool {
        let details = self.status().and_then(|status| status.details.as_ref());
        self.is_not_found() && details.is_some_and(|details| details.name == name)
    }

    /// The object changed in between, or a precondition failed.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409) && !self.is_already_exists()
    }

    /// An object of that name exists.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.code == 409 && status.reason == "AlreadyExists")
    }

    /// The resource version asked for is too old.
    pub fn is_gone(&self) -> bool {
        self.code() == Some(410)
    }

    /// The server knows the user and says no.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// Which right the server says is missing. It also forbids what it does not accept for other reasons.
    pub fn missing_right(&self) -> Option<&str> {
        self.status().filter(|status| status.code == 403).and_then(|status| wording::missing_right(&status.message))
    }

    /// What an admission webhook, a policy or a quota said about the object.
    pub fn denial(&self) -> Option<&str> {
        let status = self.status().filter(|status| status.code < 500)?;
        wording::is_denial(&status.message).then_some(status.message.as_str())
    }

    /// The server was reached, but nobody who is trusted has signed its certificate.
    pub fn is_untrusted(&self) -> bool {
        self.status().is_none() && wording::is_untrusted(&self.to_string())
    }

    /// The object does not satisfy its schema or validation.
    pub fn is_invalid(&self) -> bool {
        self.code() == Some(422)
    }

    /// Whether a server refused a request because of its size, or a patch because of its many operations.
    pub fn is_too_large(&self) -> bool {
        self.status().is_some_and(|status| status.code == 413)
    }

    /// The server has too much to do.
    pub fn is_overload(&self) -> bool {
        matches!(self.code(), Some(429 | 503 | 504))
    }

    /// The same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Transport { .. } => true,
            Self::Api(status) => matches!(status.code, 408 | 429 | 500 | 502..=504),
            Self::Decode { .. } | Self::TooLarge { .. } | Self::Request { .. } => false,
        }
    }

    /// How long the server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        self.status().and_then(|status| status.retry_after)
    }

    /// The same error for an object whose content is nobody's business. Refusals quote the values they refuse, and so may admission; what stays
    /// is the code, the reason and the fields concerned. Words about names, versions and rights stay too: no content is in them.
    #[must_use]
    pub fn discreet(self) -> Self {
        match self {
            Self::Api(mut status) if !status.is_harmless() => {
                let causes = status.details.iter_mut().flat_map(|details| &mut details.causes);
                let fields: Vec<String> = causes
                    .map(|cause| {
                        cause.message.clear();
                        format!("{} ({})", cause.field, cause.reason)
                    })
                    .collect();
                let where_to_look =
                    if fields.is_empty() { String::new() } else { format!(" at {}", fields.join(", ")) };
                status.message =
                    format!("the server refuses it{where_to_look}; its words are not shown, they may quote a secret");
                Self::Api(status)
            }
            Self::Decode { request, .. } => {
                Self::Decode { request, problem: "not shown, it may be a secret".to_owned() }
            }
            error => error,
        }
    }

    fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }
}

/// Where a request went, without its path.
fn server(request: &str) -> &str {
    let url = request.split_once(' ').map_or(request, |(_, url)| url);
    let path = url.find("://").and_then(|at| url[at + 3..].find('/').map(|slash| at + 3 + slash));
    &url[..path.unwrap_or(url.len())]
}

/// An error and all its causes in one line; hyper hides the interesting part in the sources.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16, body: &str) -> Error {
        Status::parse(code, None, "GET /x", body.as_bytes()).into()
    }

    #[test]
    fn answers_are_told_apart_by_code_and_reason() {
        let exists = api(409, r#"{"kind":"Status","code":409,"reason":"AlreadyExists","message":"m"}"#);
        assert!(exists.is_already_exists() && !exists.is_conflict());
        let conflict = api(409, r#"{"kind":"Status","code":409,"reason":"Conflict","message":"m"}"#);
        assert!(conflict.is_conflict() && !conflict.is_already_exists() && !conflict.is_transient());
        assert!(api(404, "404 page not found").is_not_found());
        assert!(api(410, "").is_gone());
        assert!(api(403, "").is_forbidden());
        assert!(api(422, "").is_invalid());
        for code in [408, 429, 500, 502, 503, 504] {
            assert!(api(code, "").is_transient(), "{code}");
        }
        for code in [400, 401, 403, 404, 409, 410, 422, 501] {
            assert!(!api(code, "").is_transient(), "{code}");
        }
    }

    #[test]
    fn details_and_the_wish_to_be_left_alone_are_read() {
        let error = api(
            429,
            r#"{"kind":"Status","status":"Failure","code":429,"reason":"TooManyRequests","message":"slow down",
                "details":{"name":"a","kind":"secrets","retryAfterSeconds":3,"causes":[{"reason":"r","message":"m","field":"f"}]}}"#,
        );
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
        let status = error.status().unwrap();
        assert_eq!(status.to_string(), "slow down (429 TooManyRequests)");
        let details = status.details.as_ref().unwrap();
        assert_eq!((details.name.as_str(), details.causes[0].field.as_str()), ("a", "f"));
    }

    #[test]
    fn no_server_is_left_alone_for_ever() {
        let wish = |seconds: u64| {
            let body = format!(r#"{{"kind":"Status","code":429,"details":{{"retryAfterSeconds":{seconds}}}}}"#);
            let header = Some(Duration::from_secs(seconds));
            let in_event = Status::from_event(&body).unwrap().retry_after;
            assert_eq!(in_event, Status::parse(429, header, "GET /x", body.as_bytes()).retry_after);
            assert_eq!(in_event, Status::parse(429, header, "GET /x", b"slow down").retry_after);
            in_event.unwrap()
        };
        assert_eq!(wish(77), Duration::from_secs(77));
        assert_eq!((wish(86_400), wish(u64::MAX)), (LONGEST_WISH, LONGEST_WISH));
        assert!(std::time::Instant::now().checked_add(wish(u64::MAX)).is_some(), "there is a time to wait for");
    }

    #[test]
    fn a_discreet_error_quotes_no_value() {
        let body = |code: u16, reason: &str, message: &str| {
            let details = r#"{"causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"hunter2\"","field":"data.password"}]}"#;
            format!(
                r#"{{"kind":"Status","code":{code},"reason":"{reason}","message":"{message}","details":{details}}}"#
            )
        };
        let refused = api(422, &body(422, "Invalid", r#"data.password: Invalid value: \"hunter2\""#)).discreet();
        assert!(refused.is_invalid() && !format!("{refused:?}").contains("hunter2"), "{refused:?}");
        assert!(
            refused.to_string().starts_with("the server refuses it at data.password (FieldValueInvalid); "),
            "{refused}"
        );
        for (code, reason, message, stays) in [
            (
                403,
                "Forbidden",
                r#"secrets \"a\" is forbidden: User \"b\" cannot create resource \"secrets\" in API group \"\""#,
                true,
            ),
            (403, "Forbidden", "admission webhook: hunter2 is too short", false),
            (400, "BadRequest", "cannot unmarshal hunter2", false),
            (500, "InternalError", "failed on hunter2", false),
            (404, "NotFound", r#"namespaces \"x\" not found"#, true),
            (409, "AlreadyExists", r#"secrets \"x\" already exists"#, true),
        ] {
            let reported = api(code, &body(code, reason, message)).discreet().to_string();
            assert_eq!(reported.starts_with(&message.replace('\\', "")), stays, "{reported}");
            assert!(reported.ends_with(&format!("({code} {reason})")) && !reported.contains("hunter2"), "{reported}");
        }
    }

    #[test]
    fn what_errors_have_in_common_is_told_without_the_object() {
        let at = |request: &str, code: u16, message: &str| {
            let body = format!(r#"{{"kind":"Status","message":{}}}"#, serde_json::json!(message));
            Error::from(Status::parse(code, None, request, body.as_bytes())).shared_cause()
        };
        let away =
            |request: &str| Error::Transport { request: request.into(), problem: "refused".into() }.shared_cause();
        assert_eq!(away("PUT https://a:1/api/v1/x").as_deref(), Some("https://a:1 does not work"));
        assert_eq!(away("PUT https://a:1/y"), at("GET https://a:1/z?w", 503, "starting"));
        assert_ne!(away("PUT https://a:1/y"), away("PUT https://b:1/y"));
        assert_eq!(at("GET https://a", 401, "").as_deref(), Some("https://a does not know us"));
        let rbac = |name: &str| {
            let text =
                format!("things {name:?} is forbidden: User \"u\" cannot patch resource \"things\" in API group \"g\"");
            at("PATCH https://a/t", 403, &text)
        };
        assert!(rbac("one").is_some() && rbac("one") == rbac("two"));
        assert_eq!(at("POST https://a/t", 403, "pods \"p\" is forbidden: exceeded quota: q"), None);
        assert_eq!(at("POST https://a/t", 422, "invalid"), None);
    }

    #[test]
    fn a_cure_stands_at_the_end_and_changes_nothing_else() {
        let status = Status { code: 403, message: "User \"u\" cannot list x".to_owned(), ..Status::default() };
        let bare = Error::from(status.clone());
        let cured = Error::from(Status { cure: Some("ask for it".to_owned()), ..status });
        assert_eq!(cured.to_string(), "User \"u\" cannot list x (403); ask for it");
        assert_eq!((cured.missing_right(), cured.shared_cause()), (bare.missing_right(), bare.shared_cause()));
    }

    #[test]
    fn an_answer_that_is_no_status_names_the_request() {
        assert_eq!(api(502, "<html>\nbad gateway").to_string(), "GET /x: <html> (502)");
        assert_eq!(api(503, "").to_string(), "GET /x (503)");
    }
}
