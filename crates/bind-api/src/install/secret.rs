//! The Secret that gets the kubeconfig.

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::names::{KONNECTOR_NAMESPACE, KUBECONFIG_KEY, PROVIDER_KUBECONFIG_LABEL};
use crate::secret;
use crate::v1alpha2::SecretKeyReference;

/// The kubeconfig of a provider, read with care.
#[derive(Clone, Debug)]
pub struct ProviderAccess {
    /// Its text, as the backend has written it.
    pub text: String,
    /// The provider's URL.
    pub server: String,
    /// The contract namespace.
    pub contract: String,
}

/// The Secret of a name that was asked for is in use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("secret kube-bind/{0} holds another provider's kubeconfig; choose another name")]
pub struct OtherProvider(pub String);

/// Where the kubeconfig is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSecret {
    /// The name of the Secret; empty if the server makes one up.
    pub name: String,
    /// What has to be written, if anything.
    pub object: Option<Value>,
}

/// Decides where a kubeconfig is kept, given the Secrets with kubeconfigs that there are and how a kubeconfig is read.
pub fn stored(
    new: &ProviderAccess,
    known: &[Value],
    name: Option<&str>,
    read: impl Fn(String) -> Option<ProviderAccess>,
) -> Result<StoredSecret, OtherProvider> {
    let of = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let at = SecretKeyReference::new(KONNECTOR_NAMESPACE, &name, KUBECONFIG_KEY);
        let access = secret::text(Some(object), &at).ok().and_then(&read);
        (name, access)
    };
    let same = |access: &ProviderAccess| access.server == new.server && access.contract == new.contract;
    let existing = known.iter().map(of).find(|(found, access)| match name {
        Some(name) => found == name,
        None => access.as_ref().is_some_and(same),
    });
    if let Some((found, Some(access))) = &existing {
        if !same(access) {
            return Err(OtherProvider(found.clone()));
        }
        if access.text == new.text {
            return Ok(StoredSecret { name: found.clone(), object: None });
        }
    }
    let name = existing.map(|(name, _)| name).or_else(|| name.map(str::to_owned));
    let mut object = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": KONNECTOR_NAMESPACE, "labels": {PROVIDER_KUBECONFIG_LABEL: "true"}},
        "data": {KUBECONFIG_KEY: BASE64.encode(new.text.as_bytes())}});
    match &name {
        Some(name) => object["metadata"]["name"] = json!(name),
        None => object["metadata"]["generateName"] = json!("kubeconfig-"),
    }
    Ok(StoredSecret { name: name.unwrap_or_default(), object: Some(object) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Server and token, with a space between them.
    fn read(text: String) -> Option<ProviderAccess> {
        let server = text.split_once(' ')?.0.to_owned();
        Some(ProviderAccess { text, server, contract: "c-1".to_owned() })
    }

    fn access(server: &str, token: &str) -> ProviderAccess {
        read(format!("{server} {token}")).unwrap()
    }

    fn plan(new: &ProviderAccess, known: &[Value], name: Option<&str>) -> Result<StoredSecret, OtherProvider> {
        stored(new, known, name, read)
    }

    #[test]
    fn a_secret_for_the_same_contract_is_used_again() {
        let new = access("one.io", "t");
        let first = plan(&new, &[], None).unwrap();
        let mut stored = first.object.unwrap();
        assert_eq!(stored["metadata"]["generateName"], "kubeconfig-");
        stored["metadata"]["name"] = json!("kubeconfig-x");
        let known = [stored];
        assert_eq!(plan(&new, &known, None).unwrap(), StoredSecret { name: "kubeconfig-x".to_owned(), object: None });
        let renewed = plan(&access("one.io", "u"), &known, None).unwrap();
        assert_eq!(renewed.object.unwrap()["metadata"]["name"], "kubeconfig-x");
        let other = plan(&access("two.io", "t"), &known, None).unwrap();
        assert_eq!(other.name, "");
        assert_eq!(plan(&new, &known, Some("mine")).unwrap().object.unwrap()["metadata"]["name"], "mine");
        let taken = plan(&access("two.io", "t"), &known, Some("kubeconfig-x")).unwrap_err();
        assert!(taken.to_string().ends_with("choose another name"), "{taken}");
    }
}
