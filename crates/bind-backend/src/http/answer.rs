//! Answers: JSON, texts, pages, redirects, and errors in the form that kube-bind's clients know.

use bytes::Bytes;
use carrick_bind_api::kinds::{GROUP, VERSION};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, EXPIRES, LOCATION, PRAGMA, REFERRER_POLICY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::provider::ProviderError;

/// An answer.
pub(super) type Answer = Response<Full<Bytes>>;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nobody knows who asks.
    Unauthenticated(String),
    /// Whoever asks may not.
    Forbidden(String),
    /// There is no such thing.
    NotFound(String),
    /// The request is wrong.
    Bad(String),
    /// The body is too large.
    TooLarge,
    /// The path knows other methods only: which.
    Method(&'static str),
    /// The provider's cluster does not answer.
    Unavailable(String),
    /// It is our fault.
    Internal(String),
}

impl Fault {
    /// The request is wrong.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::Bad(message.into())
    }

    /// The status.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Bad(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Unauthenticated(_) => "AUTHENTICATION_FAILED",
            Self::Forbidden(_) => "AUTHORIZATION_FAILED",
            Self::NotFound(_) => "RESOURCE_NOT_FOUND",
            Self::Bad(_) | Self::TooLarge | Self::Method(_) => "BAD_REQUEST",
            Self::Unavailable(_) => "CLUSTER_CONNECTION_FAILED",
            Self::Internal(_) => "INTERNAL_ERROR",
        }
    }

    /// What went wrong, for people.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Unauthenticated(message)
            | Self::Forbidden(message)
            | Self::NotFound(message)
            | Self::Bad(message)
            | Self::Unavailable(message)
            | Self::Internal(message) => message.clone(),
            Self::TooLarge => "the body has more than 1 MiB".to_owned(),
            Self::Method(allowed) => format!("this path knows {allowed} only"),
        }
    }

    /// The error object of kube-bind.
    pub(super) fn answer(&self) -> Answer {
        let object = json!({"kind": "Error", "apiVersion": format!("{GROUP}/{VERSION}"), "message": self.message(),
            "code": self.code(), "details": self.details()});
        let mut answer = json_answer(self.status(), &object);
        match self {
            Self::Unauthenticated(_) => drop(set(&mut answer, WWW_AUTHENTICATE, "Bearer")),
            Self::Method(allowed) => drop(set(&mut answer, http::header::ALLOW, allowed)),
            _ => {}
        }
        answer
    }

    fn details(&self) -> &'static str {
        match self {
            Self::Unauthenticated(_) => "log in with `kubectl bind login`, or with the web page of this server",
            Self::Forbidden(_) => {
                "the provider decides with --oidc-allowed-groups and --oidc-allowed-users, or by RBAC"
            }
            _ => "",
        }
    }
}

impl From<ProviderError> for Fault {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::NotFound(message) => Self::NotFound(message),
            ProviderError::Forbidden(message) => Self::Forbidden(message),
            ProviderError::Invalid(message) => Self::Bad(message),
            ProviderError::Unavailable(message) => {
                tracing::warn!(problem = message, "The provider's cluster does not answer.");
                Self::Unavailable(message)
            }
        }
    }
}

impl From<super::secrecy::CryptoError> for Fault {
    fn from(error: super::secrecy::CryptoError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// Any answer.
pub(super) fn answer(status: StatusCode, kind: &'static str, content: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(content.into()));
    *answer.status_mut() = status;
    set(&mut answer, CONTENT_TYPE, kind);
    set(&mut answer, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut answer, REFERRER_POLICY, "no-referrer");
    not_kept(answer)
}

/// JSON.
pub(super) fn json_answer(status: StatusCode, content: &Value) -> Answer {
    answer(status, "application/json", content.to_string())
}

/// Plain text.
pub(super) fn text(status: StatusCode, content: impl Into<String>) -> Answer {
    answer(status, "text/plain; charset=utf-8", content.into())
}

/// Sends a browser elsewhere.
pub(super) fn redirect(status: StatusCode, url: &str) -> Answer {
    let mut answer = text(status, "");
    set(&mut answer, LOCATION, url);
    answer
}

/// A page. Nothing runs in it, nobody else embeds it, and its forms lead to this server only, or to `also` by a redirect.
pub(super) fn page(status: StatusCode, html: String, also: Option<&str>) -> Answer {
    let mut page = answer(status, "text/html; charset=utf-8", html);
    let also = also.map(|origin| format!(" {origin}")).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'{also}; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    set(&mut page, CONTENT_SECURITY_POLICY, &policy);
    set(&mut page, X_FRAME_OPTIONS, "DENY");
    // With no-referrer, browsers would hide from this server that its own forms are its own.
    page.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    page
}

/// Nobody keeps the answer.
fn not_kept(mut answer: Answer) -> Answer {
    set(&mut answer, CACHE_CONTROL, "no-cache, no-store, must-revalidate");
    set(&mut answer, PRAGMA, "no-cache");
    set(&mut answer, EXPIRES, "0");
    answer
}

/// The same for everybody: caches may keep the answer.
pub(super) fn kept(mut answer: Answer) -> Answer {
    for name in [CACHE_CONTROL, PRAGMA, EXPIRES] {
        answer.headers_mut().remove(name);
    }
    answer
}

/// Sets a header; what cannot be a header is left out.
pub(super) fn set(answer: &mut Answer, name: http::HeaderName, value: &str) -> bool {
    let value = HeaderValue::from_str(value);
    value.is_ok_and(|value| answer.headers_mut().append(name, value))
}
