//! Tokens of ServiceAccounts, by TokenRequest.

use serde_json::{Value, json};

use crate::client::Client;
use crate::error::Error;
use crate::resource::Resource;

impl Client {
    /// A new token of a ServiceAccount, for the server itself, valid for that many seconds if the server likes that.
    pub async fn request_token(&self, namespace: &str, account: &str, seconds: i64) -> Result<String, Error> {
        // A subresource is a resource as far as paths are concerned.
        let tokens = Resource::namespaced("", "v1", "TokenRequest", &format!("serviceaccounts/{account}/token"));
        let wanted = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "expirationSeconds": seconds },
        });
        let answer = self.create(&tokens, Some(namespace), &wanted).await?;
        answer.pointer("/status/token").and_then(Value::as_str).map(str::to_owned).ok_or_else(|| Error::Decode {
            request: format!("TokenRequest for ServiceAccount {namespace}/{account} at {}", self.url()),
            problem: "there is no token in it".to_owned(),
        })
    }
}
