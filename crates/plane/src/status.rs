//! Kubernetes `Status` errors: one constructor per situation.

use serde_json::{Map, Value, json};

pub use carrick_schema::Cause;

/// An error, in Kubernetes' wording.
#[allow(clippy::box_collection, reason = "errors are rare and must be small")]
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// HTTP code.
    pub code: u16,
    /// `NotFound`, `Conflict` and so on.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// The `details` object, null when absent.
    pub details: Value,
    /// `metadata.continue`, only for expired continue tokens.
    pub continue_token: Option<Box<String>>,
    /// Texts for `Warning` headers.
    pub warnings: Option<Box<Vec<String>>>,
    /// If set, the response is this plain text instead of a Status object.
    pub text: Option<Box<str>>,
}

/// `widgets.example.io`, or `secrets` in the core group.
pub fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

fn details(group: &str, kind: &str, name: &str) -> Value {
    let mut map = Map::new();
    for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            map.insert(key.into(), value.into());
        }
    }
    Value::Object(map)
}

impl Status {
    /// Any code, reason and message.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.into(),
            details: Value::Null,
            continue_token: None,
            warnings: None,
            text: None,
        }
    }

    /// Adds group, kind and name to the details.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details = details(group, kind, name);
        self
    }

    /// Details without anything in them.
    #[must_use]
    pub fn about_nothing(mut self) -> Self {
        self.details = json!({});
        self
    }

    /// Adds warnings, which clients get together with the error.
    #[must_use]
    pub fn warned(mut self, warnings: &[String]) -> Self {
        if !warnings.is_empty() {
            self.warnings = Some(Box::new(warnings.to_vec()));
        }
        self
    }

    /// Adds causes to the details.
    #[must_use]
    pub fn with_causes(mut self, causes: &[Cause]) -> Self {
        if !self.details.is_object() {
            self.details = json!({});
        }
        self.details["causes"] = causes.iter().map(Cause::value).collect();
        self
    }

    /// The object does not exist.
    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", qualified(group, plural));
        Self::new(404, "NotFound", message).about(group, plural, name)
    }

    /// No such path: the plain text answer.
    pub fn page_not_found() -> Self {
        let mut status = Self::new(404, "NotFound", "404 page not found");
        status.text = Some("404 page not found\n".into());
        status
    }

    /// A plain text that asks the client to retry in a second.
    pub fn wait_a_second(text: impl Into<String>) -> Self {
        let mut status = Self::plain(429, text);
        status.details = json!({"retryAfterSeconds": 1});
        status
    }

    /// A plain text answer.
    pub fn plain(code: u16, text: impl Into<String>) -> Self {
        let text = text.into();
        let mut status = Self::new(code, "", text.clone());
        status.text = Some(text.into());
        status
    }

    /// The kind is not served here, as a Status.
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_causes(&[Cause::new(
            "UnexpectedServerResponse",
            "",
            "404 page not found",
        )])
    }

    /// Create of an existing name.
    pub fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(group, plural));
        Self::new(409, "AlreadyExists", message).about(group, plural, name)
    }

    /// Optimistic locking failed, or a precondition did.
    pub fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified(group, plural));
        Self::new(409, "Conflict", message).about(group, plural, name)
    }

    /// The object was changed since it was read.
    pub fn stale(group: &str, plural: &str, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, plural, name, why)
    }

    /// The object breaks its schema or a rule.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        // Duplicate causes are reported once.
        let mut texts: Vec<String> = Vec::new();
        for text in causes.iter().map(Cause::text) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let text = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        let message = format!("{} \"{name}\" is invalid: {text}", qualified(group, kind));
        Self::new(422, "Invalid", message).about(group, kind, name).with_causes(causes)
    }

    /// Refused by admission.
    pub fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", qualified(group, plural));
        Self::new(403, "Forbidden", message).about(group, plural, name)
    }

    /// The namespace is being terminated.
    pub fn namespace_terminating(group: &str, plural: &str, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = format!("namespace {namespace} is being terminated");
        Self::forbidden(group, plural, name, &why).with_causes(&[Cause::new(
            "NamespaceTerminating",
            "metadata.namespace",
            cause,
        )])
    }

    /// The request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Wrong or expired credentials.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// A defect of the plane, or a refusal Kubernetes reports as 500.
    pub fn internal(message: impl Into<String>) -> Self {
        let mut status = Self::new(500, "InternalError", message);
        if let Some(why) = status.message.strip_prefix("Internal error occurred: ") {
            status.details = json!({"causes": [{"message": why}]});
        }
        status
    }

    /// The kind exists but not this verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).about_nothing()
    }

    /// None of the accepted media types can be produced.
    pub fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        Self::new(406, "NotAcceptable", message)
    }

    /// Nor does it accept any media type of a watch.
    pub fn not_acceptable_stream() -> Self {
        let message = "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        Self::new(406, "NotAcceptable", message)
    }

    /// The body's media type is unknown.
    pub fn unsupported_media(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The body is larger than the limit in bytes.
    pub fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// The database does not accept a write of this size; very large ones do not even reach it.
    pub fn too_large_to_store(size: usize) -> Self {
        /// The largest message that is sent to the database.
        const SENT: usize = 2 * 1024 * 1024;
        let message = if size > SENT {
            let why = format!("trying to send message larger than max ({size} vs. {SENT})");
            format!("rpc error: code = ResourceExhausted desc = {why}")
        } else {
            "etcdserver: request is too large".to_owned()
        };
        Self::new(500, "", message)
    }

    /// The revision has left the log.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The caller asks for a revision that does not exist yet.
    pub fn revision_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Self::new(504, "Timeout", message).with_causes(&[Cause::new(
            "ResourceVersionTooLarge",
            "",
            "Too large resource version",
        )]);
        status.details["retryAfterSeconds"] = 1.into();
        status
    }

    /// The JSON object sent to clients.
    pub fn value(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".into(), token.as_str().into());
        }
        let mut object = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            object["reason"] = self.reason.clone().into();
        }
        if !self.details.is_null() {
            object["details"] = self.details.clone();
        }
        object
    }
}
