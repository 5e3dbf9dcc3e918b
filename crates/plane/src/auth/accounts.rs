//! Service account tokens: signed here, and checked against their account.

use std::fs;
use std::io;
use std::path::Path;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::caller::{ACCOUNT_CLUSTER, Caller};
use crate::config::Mode;
use crate::store::{Key, Kind, Store};

const FILE: &str = "accounts.key";
const PREFIX: &str = "system:serviceaccount";
/// The type of Secrets that hold a token.
pub const TOKEN_SECRET: &str = "kubernetes.io/service-account-token";
const LEGACY: &str = "kubernetes.io/serviceaccount/";

/// Signs and checks tokens.
pub struct Accounts {
    key: [u8; 64],
    mode: Mode,
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accounts").finish_non_exhaustive()
    }
}

/// Whom a token is for.
#[derive(Debug, Clone, Copy)]
pub struct Account<'a> {
    /// Logical cluster, empty on a service cluster.
    pub cluster: &'a str,
    /// Namespace.
    pub namespace: &'a str,
    /// Name of the service account.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

/// A token that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The caller it authenticates.
    pub caller: Caller,
    /// Its audiences.
    pub audiences: Vec<String>,
}

impl Accounts {
    /// With a key that exists only in memory.
    pub fn new(mode: Mode) -> Self {
        let mut key = [0; 64];
        for part in key.chunks_exact_mut(16) {
            part.copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        }
        Self { key, mode }
    }

    /// With the key kept in a folder.
    pub fn load_or_make(folder: Option<&Path>, mode: Mode) -> io::Result<Self> {
        let new = Self::new(mode);
        let Some(path) = folder.map(|folder| folder.join(FILE)) else { return Ok(new) };
        if path.exists() {
            let kept = fs::read(&path)?;
            let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE} does not hold 64 bytes"));
            return Ok(Self { key: kept.as_slice().try_into().map_err(wrong)?, mode });
        }
        crate::files::write_private(&path, &new.key)?;
        Ok(new)
    }

    /// The issuer of the tokens, which is also their default audience.
    pub fn issuer(&self) -> &'static str {
        match self.mode {
            Mode::Kcp => "https://kcp.default.svc",
            Mode::Kube => "https://kubernetes.default.svc.cluster.local",
        }
    }

    /// A token that expires, for some audiences; it becomes invalid when the Secret `bound` is deleted.
    pub fn request(&self, account: Account<'_>, audiences: &[String], seconds: i64, bound: Option<&Value>) -> String {
        let now = jiff::Timestamp::now().as_second();
        let mut about = json!({
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        });
        if self.mode == Mode::Kcp {
            about["clusterName"] = account.cluster.into();
        }
        if let Some(bound) = bound {
            about["secret"] = json!({"name": bound["name"], "uid": bound["uid"]});
        }
        self.sign(&json!({
            "aud": audiences, "exp": now + seconds, "iat": now, "nbf": now, "iss": self.issuer(),
            "jti": uuid::Uuid::new_v4().to_string(), "kubernetes.io": about,
            "sub": format!("{PREFIX}:{}:{}", account.namespace, account.name),
        }))
    }

    /// A token for a Secret, valid as long as the Secret exists.
    pub fn for_secret(&self, account: Account<'_>, secret: &str) -> String {
        let mut claims = json!({
            "iss": "kubernetes/serviceaccount",
            "sub": format!("{PREFIX}:{}:{}", account.namespace, account.name),
        });
        let mut set = |key: &str, value: &str| claims[format!("{LEGACY}{key}")] = value.into();
        set("namespace", account.namespace);
        set("secret.name", secret);
        set("service-account.name", account.name);
        set("service-account.uid", account.uid);
        if self.mode == Mode::Kcp {
            set("clusterName", account.cluster);
        }
        self.sign(&claims)
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        let head = BASE64URL_NOPAD.encode(br#"{"alg":"HS256","typ":"JWT"}"#);
        let body = BASE64URL_NOPAD.encode(claims.to_string().as_bytes());
        let text = format!("{head}.{body}");
        let signature = BASE64URL_NOPAD.encode(&self.mac(&text).finalize().into_bytes());
        format!("{text}.{signature}")
    }

    fn mac(&self, text: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new(&self.key.into());
        mac.update(text.as_bytes());
        mac
    }

    /// The caller that a token authenticates; `None` if it is forged or expired, or its account is gone.
    pub fn check(&self, store: &Store, token: &str) -> Option<Checked> {
        let (text, signature) = token.rsplit_once('.')?;
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).ok()?;
        self.mac(text).verify_slice(&signature).ok()?;
        let (_, body) = text.split_once('.')?;
        let claims: Value = serde_json::from_slice(&BASE64URL_NOPAD.decode(body.as_bytes()).ok()?).ok()?;
        let legacy = |key: &str| claims[format!("{LEGACY}{key}")].as_str().unwrap_or_default();
        let modern = &claims["kubernetes.io"];
        let text = |pointer: &str| modern.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if modern.is_object() {
            if claims["exp"].as_i64()? <= jiff::Timestamp::now().as_second() {
                return None;
            }
            let account = Account {
                cluster: text("/clusterName"),
                namespace: text("/namespace"),
                name: text("/serviceaccount/name"),
                uid: text("/serviceaccount/uid"),
            };
            let bound = text("/secret/name");
            if !bound.is_empty() {
                let found = secret(store, account, bound)?;
                (found["metadata"]["uid"] == modern["secret"]["uid"]).then_some(())?;
            }
            let list = claims["aud"].as_array().into_iter().flatten();
            let audiences = list.filter_map(Value::as_str).map(str::to_owned).collect();
            let id = claims["jti"].as_str().unwrap_or_default();
            return Some(Checked { caller: self.caller(store, account, id)?, audiences });
        }
        let account = Account {
            cluster: legacy("clusterName"),
            namespace: legacy("namespace"),
            name: legacy("service-account.name"),
            uid: legacy("service-account.uid"),
        };
        let found = secret(store, account, legacy("secret.name"))?;
        (found["data"]["token"] == BASE64.encode(token.as_bytes())).then_some(())?;
        Some(Checked { caller: self.caller(store, account, "")?, audiences: vec![self.issuer().to_owned()] })
    }

    fn caller(&self, store: &Store, account: Account<'_>, id: &str) -> Option<Caller> {
        let Account { cluster, namespace, name, uid } = account;
        let found = store.get(&Key::new(&Kind::new("", "serviceaccounts"), cluster, namespace, name))?;
        (found.object["metadata"]["uid"] == *uid && !uid.is_empty()).then_some(())?;
        let mut caller = Caller {
            user: format!("{PREFIX}:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: vec![format!("{PREFIX}s"), format!("{PREFIX}s:{namespace}"), "system:authenticated".to_owned()],
            ..Caller::default()
        };
        let mut extra = |key: &str, value: String| caller.extra.insert(key.to_owned(), vec![value]);
        if !id.is_empty() {
            extra("authentication.kubernetes.io/credential-id", format!("JTI={id}"));
        }
        if self.mode == Mode::Kcp {
            extra(ACCOUNT_CLUSTER, cluster.to_owned());
            extra("authentication.kcp.io/scopes", format!("cluster:{cluster}"));
        }
        Some(caller)
    }
}

fn secret(store: &Store, account: Account<'_>, name: &str) -> Option<std::sync::Arc<Value>> {
    let key = Key::new(&Kind::new("", "secrets"), account.cluster, account.namespace, name);
    store.get(&key).map(|found| found.object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Expect;

    const ACCOUNT: Account<'_> = Account { cluster: "c", namespace: "n", name: "bot", uid: "u1" };

    fn store() -> Store {
        let store = Store::default();
        let key = Key::new(&Kind::new("", "serviceaccounts"), "c", "n", "bot");
        store.commit(&key, Expect::Absent, Some(json!({"metadata": {"name": "bot", "uid": "u1"}}))).unwrap();
        store
    }

    #[test]
    fn a_token_speaks_for_its_account_as_long_as_that_exists() {
        let (accounts, store) = (Accounts::new(Mode::Kcp), store());
        let token = accounts.request(ACCOUNT, &["a".into()], 600, None);
        let checked = accounts.check(&store, &token).unwrap();
        assert_eq!(checked.caller.user, "system:serviceaccount:n:bot");
        assert_eq!(checked.caller.extra["authentication.kcp.io/cluster-name"], ["c"]);
        assert_eq!(checked.audiences, ["a"]);
        let other = Account { uid: "u2", ..ACCOUNT };
        assert_eq!(accounts.check(&store, &accounts.request(other, &[], 600, None)), None);
        let key = Key::new(&Kind::new("", "serviceaccounts"), "c", "n", "bot");
        store.commit(&key, Expect::Any, None).unwrap();
        assert_eq!(accounts.check(&store, &token), None);
    }

    #[test]
    fn forged_changed_and_old_tokens_are_nothing() {
        let (accounts, store) = (Accounts::new(Mode::Kube), store());
        let token = accounts.request(ACCOUNT, &[], 600, None);
        assert_eq!(accounts.check(&store, &accounts.request(ACCOUNT, &[], 0, None)), None);
        assert_eq!(Accounts::new(Mode::Kube).check(&store, &token), None);
        let unsigned = BASE64URL_NOPAD.encode(br#"{"alg":"none"}"#);
        let body = token.split('.').nth(1).unwrap();
        for forged in ["", ".", "..", "a.b.c", &format!("{unsigned}.{body}."), &token[..token.len() - 1]] {
            assert_eq!(accounts.check(&store, forged), None, "{forged}");
        }
        let mut bytes = token.into_bytes();
        for at in 0..bytes.len() {
            let kept = bytes[at];
            bytes[at] = if kept == b'A' { b'B' } else { b'A' };
            let text = String::from_utf8(bytes.clone()).unwrap();
            // The last character of each part has unused bits, which may differ.
            if let Some(checked) = accounts.check(&store, &text) {
                assert_eq!(checked.caller.user, "system:serviceaccount:n:bot");
                assert!(at + 1 == bytes.len());
            }
            bytes[at] = kept;
        }
    }
}
