//! What backends answer: over HTTP, and in the Secret of a BindableResourcesRequest.

use carrick_kcp::object::object;
use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD};
use serde_json::Value;

use crate::v1alpha2::ApiServiceExportRequest;

/// Kind of an answer over HTTP.
pub const OVER_HTTP: &str = "BindingResponse";
/// Kind of an answer in a Secret.
pub const IN_SECRET: &str = "BindingResourceResponse";

object! {
    /// An answer with the credentials of a contract.
    BindingResponse {
        /// Group and version.
        api_version: String => "apiVersion",
        /// [`OVER_HTTP`] or [`IN_SECRET`].
        kind: String => "kind",
        /// How the user has logged in.
        authentication: Value => "authentication",
        /// The kubeconfig, in base64.
        kubeconfig: String => "kubeconfig",
        /// What to ask for with it.
        requests: Vec<ApiServiceExportRequest> => "requests",
        /// The contract namespace.
        provider_namespace: String => "providerNamespace",
        /// The name of the binding.
        binding_name: String => "bindingName",
    }
}

/// Why an answer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// It is not JSON of this shape. What it holds is not repeated.
    #[error("the answer is not a {OVER_HTTP} or {IN_SECRET} in JSON")]
    Unreadable,
    /// It is an error of the backend.
    #[error("the backend answered with an error: {message} ({code})")]
    Backend {
        /// What it says.
        message: String,
        /// Its code.
        code: String,
    },
    /// It is something else.
    #[error("the answer is a {0:?} instead of a {OVER_HTTP} or {IN_SECRET}")]
    OtherKind(String),
    /// It has no kubeconfig.
    #[error("the answer has no kubeconfig")]
    NoKubeconfig,
    /// The kubeconfig is not base64 of text.
    #[error("the kubeconfig of the answer is not text in base64")]
    Encoding,
}

impl BindingResponse {
    /// Reads an answer in JSON.
    pub fn parse(text: &str) -> Result<Self, ResponseError> {
        let answer: Self = serde_json::from_str(text).map_err(|_| ResponseError::Unreadable)?;
        match answer.kind.as_str() {
            OVER_HTTP | IN_SECRET => Ok(answer),
            "Error" => {
                let field = |name: &str| answer.rest.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                Err(ResponseError::Backend { message: field("message"), code: field("code") })
            }
            other => Err(ResponseError::OtherKind(other.to_owned())),
        }
    }

    /// The kubeconfig itself. It must be looked at with care before it is used: whoever has written it may be nobody's friend.
    pub fn kubeconfig_text(&self) -> Result<String, ResponseError> {
        if self.kubeconfig.is_empty() {
            return Err(ResponseError::NoKubeconfig);
        }
        let bytes = decode(&self.kubeconfig).ok_or(ResponseError::Encoding)?;
        String::from_utf8(bytes).map_err(|_| ResponseError::Encoding)
    }
}

/// Base64 in either alphabet, padded or not: kube-bind's own programs do not agree on one.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim().as_bytes();
    [BASE64, BASE64URL, BASE64_NOPAD, BASE64URL_NOPAD].into_iter().find_map(|encoding| encoding.decode(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_over_http_and_in_secrets_are_read() {
        let over_http = r#"{"apiVersion": "kube-bind.io/v1alpha2", "kind": "BindingResponse",
            "authentication": {"oauth2CodeGrant": {"sid": "s", "id": "i"}}, "kubeconfig": "YTog", "providerNamespace": "n",
            "requests": [{"metadata": {"name": "r"}, "spec": {"resources": [{"group": "g.io", "resource": "things"}]}}]}"#;
        let answer = BindingResponse::parse(over_http).unwrap();
        assert_eq!(answer.kubeconfig_text().as_deref(), Ok("a: "));
        assert_eq!(answer.requests[0].spec.resources[0].resource, "things");
        let in_secret =
            r#"{"kind": "BindingResourceResponse", "authentication": {}, "kubeconfig": "YTog", "requests": null}"#;
        let answer = BindingResponse::parse(in_secret).unwrap();
        assert_eq!((answer.requests.len(), answer.kubeconfig_text().is_ok()), (0, true));
        assert_eq!(serde_json::to_value(&answer).unwrap(), serde_json::from_str::<Value>(in_secret).unwrap());
    }

    #[test]
    fn other_answers_say_what_they_are() {
        let error = |text: &str| BindingResponse::parse(text).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"kind": "Error", "message": "no such template", "code": "RESOURCE_NOT_FOUND"}"#),
            "the backend answered with an error: no such template (RESOURCE_NOT_FOUND)"
        );
        assert!(error(r#"{"kind": "Pod"}"#).contains("\"Pod\""));
        assert!(!error("very-secret").contains("secret"));
        let kubeconfig = |text: &str| {
            let mut answer = BindingResponse::default();
            text.clone_into(&mut answer.kubeconfig);
            answer.kubeconfig_text().unwrap_err()
        };
        assert_eq!(kubeconfig(""), ResponseError::NoKubeconfig);
        assert_eq!(kubeconfig("%"), ResponseError::Encoding);
        assert_eq!(kubeconfig("/w=="), ResponseError::Encoding);
    }

    #[test]
    fn base64_is_read_in_both_alphabets() {
        for text in ["_-8=", "/+8=", "_-8", "/+8", " /+8=\n"] {
            assert_eq!(decode(text).as_deref(), Some(&[0xff, 0xef][..]), "{text}");
        }
        assert_eq!(decode("/-8="), None);
    }
}
