//! Secrets of the type `kubernetes.io/service-account-token`: filled with a token, deleted with their account.

use data_encoding::BASE64;
use serde_json::{Value, json};
use tracing::warn;

use super::run::Reconcile;
use crate::api::{Api, DeleteOptions, WriteOptions};
use crate::auth::accounts::{Account, TOKEN_SECRET};
use crate::caller::Caller;
use crate::store::{Change, Key, Kind};

const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

pub(super) struct Accounts {
    secrets: Kind,
    accounts: Kind,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { secrets: Kind::new("", "secrets"), accounts: Kind::new("", "serviceaccounts") }
    }
}

impl Reconcile for Accounts {
    fn kinds(&self) -> Option<Vec<Kind>> {
        Some(vec![self.secrets.clone()])
    }

    fn noticed(&mut self, change: &Change) -> Vec<Key> {
        let is_ours = |object: &Value| object["type"] == TOKEN_SECRET;
        if change.key.kind == self.secrets && change.now().is_some_and(|secret| is_ours(&secret)) {
            return vec![change.key.clone()];
        }
        if change.key.kind == self.accounts {
            return vec![change.key.clone()];
        }
        Vec::new()
    }

    fn reconcile(&mut self, api: &Api, key: &Key) -> bool {
        if key.kind == self.secrets {
            return settle(api, &self.accounts, key);
        }
        let secrets = api.store.list(&self.secrets, Some(&key.cluster), Some(&key.namespace)).1;
        let ours = secrets.into_iter().filter(|(_, secret)| {
            let secret = secret.value();
            secret["type"] == TOKEN_SECRET && secret["metadata"]["annotations"][NAME] == *key.name
        });
        // All of them are processed, even if one fails.
        ours.map(|(key, _)| settle(api, &self.accounts, &key)).fold(true, |all, done| all & done)
    }
}

/// Fills one Secret, or deletes it if its account is gone; returns false if it must be retried.
fn settle(api: &Api, accounts: &Kind, key: &Key) -> bool {
    let Some(secret) = api.store.get(key) else { return true };
    let Some(scope) = api.scope(&key.cluster, "", "secrets") else { return true };
    let scope = scope.in_namespace(&key.namespace);
    let caller = Caller::system();
    let annotations = &secret.object["metadata"]["annotations"];
    let name = annotations[NAME].as_str().unwrap_or_default();
    let account = api.store.get(&Key::new(accounts, &key.cluster, &key.namespace, name));
    let uid = account.as_ref().and_then(|account| account.object["metadata"]["uid"].as_str()).unwrap_or_default();
    let known = annotations[UID].as_str();
    let result = if uid.is_empty() || known.is_some_and(|known| known != uid) {
        api.delete(&caller, &scope, &key.name, &DeleteOptions::default())
    } else if known.is_none() || secret.object["data"]["token"].is_null() {
        let who = Account { cluster: &key.cluster, namespace: &key.namespace, name, uid };
        let mut object = (*secret.object).clone();
        object["metadata"]["annotations"][UID] = uid.into();
        if !object["data"].is_object() {
            object["data"] = json!({});
        }
        let token = api.accounts.for_secret(who, &key.name);
        for (field, value) in [("token", token.as_str()), ("ca.crt", &api.ca_pem), ("namespace", &key.namespace)] {
            object["data"][field] = BASE64.encode(value.as_bytes()).into();
        }
        let options = WriteOptions { manager: "kube-controller-manager".into(), ..WriteOptions::default() };
        api.put(&caller, &scope, &key.name, "", object, &options)
    } else {
        return true;
    };
    match result {
        Ok(_) => true,
        Err(status) if status.code == 404 => true,
        Err(status) => {
            warn!(error = %status, secret = %key.name, "cannot settle the token of a service account");
            false
        }
    }
}
