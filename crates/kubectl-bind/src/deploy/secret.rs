//! The Secret that gets the kubeconfig.

use carrick_bind_api::names::{KONNECTOR_NAMESPACE, KUBECONFIG_KEY, PROVIDER_KUBECONFIG_LABEL};
use carrick_bind_api::secret;
use carrick_bind_api::v1alpha2::SecretKeyReference;
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::answer::{self, ProviderAccess};
use super::error::DeployError;

/// Where the kubeconfig is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSecret {
    /// The name of the Secret; empty if the server makes one up.
    pub name: String,
    /// What has to be written, if anything.
    pub object: Option<Value>,
}

/// Decides where a kubeconfig is kept, given the Secrets with kubeconfigs that there are.
pub fn plan(new: &ProviderAccess, known: &[Value], name: Option<&str>) -> Result<StoredSecret, DeployError> {
    let of = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let at = SecretKeyReference::new(KONNECTOR_NAMESPACE, &name, KUBECONFIG_KEY);
        let access = secret::text(Some(object), &at).ok().and_then(|text| answer::of_kubeconfig(text).ok());
        (name, access)
    };
    let same = |access: &ProviderAccess| access.server == new.server && access.contract == new.contract;
    let existing = known.iter().map(of).find(|(found, access)| match name {
        Some(name) => found == name,
        None => access.as_ref().is_some_and(same),
    });
    if let Some((found, Some(access))) = &existing {
        if !same(access) {
            return Err(DeployError::OtherProvider(found.clone()));
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

    fn access(server: &str, token: &str) -> ProviderAccess {
        let text = format!(
            "{{current-context: a, contexts: [{{name: a, context: {{cluster: b, user: c, namespace: c-1}}}}], \
             clusters: [{{name: b, cluster: {{server: 'https://{server}'}}}}], users: [{{name: c, user: {{token: {token}}}}}]}}"
        );
        answer::of_kubeconfig(text).unwrap()
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
