//! Tokens of ServiceAccounts: what they say about themselves. Nobody has checked that here; only servers can.

use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;
use thiserror::Error;

/// Servers give no token for a shorter time: ten minutes.
pub const SHORTEST: i64 = 600;

/// Types of Secrets that are credentials of a cluster, or become such once a controller sees them: they stay where they are.
pub const CREDENTIAL_SECRETS: [&str; 2] = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];

/// Why a token says too little about itself.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
pub enum TokenError {
    /// It is not a JSON web token.
    #[error("the token says nothing about itself: it is not a JSON web token")]
    Opaque,
    /// It belongs to somebody else than a ServiceAccount.
    #[error("the token is not one of a ServiceAccount")]
    NotAnAccount,
    /// It never ends, as those that are kept in Secrets of type kubernetes.io/service-account-token.
    #[error("the token has no end")]
    Endless,
}

/// What the token of a ServiceAccount says. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountToken {
    /// Logical cluster of the account; empty on a plain Kubernetes cluster.
    pub cluster: String,
    /// Namespace of the account.
    pub namespace: String,
    /// Name of the account.
    pub name: String,
    /// UID of the account: another account of the same name has another one.
    pub uid: String,
    /// When the token was issued.
    pub issued: i64,
    /// When it ends.
    pub ends: i64,
}

impl AccountToken {
    /// Reads a token.
    pub fn read(token: &str) -> Result<Self, TokenError> {
        let claims = claims(token).ok_or(TokenError::Opaque)?;
        let about = &claims["kubernetes.io"];
        let text = |pointer: &str| about.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = (text("/namespace"), text("/serviceaccount/name"));
        if claims["iss"] == "kubernetes/serviceaccount" {
            return Err(TokenError::Endless);
        }
        if namespace.is_empty() || name.is_empty() {
            return Err(TokenError::NotAnAccount);
        }
        let time = |name: &str| claims[name].as_i64().ok_or(TokenError::Endless);
        Ok(Self {
            cluster: text("/clusterName"),
            uid: text("/serviceaccount/uid"),
            issued: time("iat")?,
            ends: time("exp")?,
            namespace,
            name,
        })
    }

    /// For how many seconds it was given.
    pub fn lifetime(&self) -> i64 {
        self.ends.saturating_sub(self.issued)
    }

    /// When half of its time is over, and it is to be renewed: the other half is left for whatever may hinder that.
    pub fn half_time(&self) -> i64 {
        self.issued.saturating_add(self.lifetime() / 2)
    }

    /// Whether it is a token of the same account.
    pub fn is_of_the_same_account(&self, other: &Self) -> bool {
        let who =
            |token: &Self| (token.cluster.clone(), token.namespace.clone(), token.name.clone(), token.uid.clone());
        who(self) == who(other)
    }
}

fn claims(token: &str) -> Option<Value> {
    let payload = BASE64URL_NOPAD.decode(token.split('.').nth(1)?.as_bytes()).ok()?;
    serde_json::from_slice::<Value>(&payload).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(claims: &Value) -> String {
        format!("e30.{}.x", BASE64URL_NOPAD.encode(claims.to_string().as_bytes()))
    }

    fn account() -> Value {
        json!({
            "iat": 1_000, "exp": 2_001, "iss": "https://kcp.default.svc",
            "kubernetes.io": { "clusterName": "c", "namespace": "n", "serviceaccount": { "name": "a", "uid": "u" } },
        })
    }

    #[test]
    fn a_token_says_whose_it_is_and_when_half_of_its_time_is_over() {
        let read = AccountToken::read(&token(&account())).unwrap();
        assert_eq!((read.cluster.as_str(), read.namespace.as_str(), read.name.as_str()), ("c", "n", "a"));
        assert_eq!((read.uid.as_str(), read.lifetime(), read.half_time()), ("u", 1_001, 1_500));
        let mut other = account();
        other["exp"] = json!(9_000);
        assert!(read.is_of_the_same_account(&AccountToken::read(&token(&other)).unwrap()));
        other["kubernetes.io"]["serviceaccount"]["uid"] = json!("v");
        assert!(!read.is_of_the_same_account(&AccountToken::read(&token(&other)).unwrap()));
    }

    #[test]
    fn a_token_that_says_too_little_is_told_apart() {
        let with = |pointer: &str, value: Value| {
            let mut claims = account();
            *claims.pointer_mut(pointer).unwrap() = value;
            token(&claims)
        };
        for (text, wanted) in [
            (String::new(), TokenError::Opaque),
            ("secret".to_owned(), TokenError::Opaque),
            ("a.%.b".to_owned(), TokenError::Opaque),
            (token(&json!([])), TokenError::Opaque),
            (token(&json!({ "iat": 1, "exp": 2, "sub": "jane" })), TokenError::NotAnAccount),
            (with("/kubernetes.io/namespace", json!("")), TokenError::NotAnAccount),
            (with("/exp", json!(null)), TokenError::Endless),
            (with("/iss", json!("kubernetes/serviceaccount")), TokenError::Endless),
        ] {
            assert_eq!(AccountToken::read(&text), Err(wanted), "{text}");
        }
    }
}
