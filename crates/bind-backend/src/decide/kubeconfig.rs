//! The kubeconfig that a consumer gets.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::terms::Address;

/// The text of a kubeconfig whose context names the contract namespace. JSON is YAML too, and leaves no doubt about quoting.
pub fn text(address: &Address, contract: &str, token: &str, account_authority: &str) -> String {
    let mut cluster = json!({"server": address.server});
    let authority = address.authority.as_deref().unwrap_or(account_authority);
    if !authority.is_empty() {
        cluster["certificate-authority-data"] = json!(BASE64.encode(authority.as_bytes()));
    }
    if let Some(name) = &address.server_name {
        cluster["tls-server-name"] = json!(name);
    }
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "default",
        "clusters": [{"name": "default", "cluster": cluster}],
        "users": [{"name": "default", "user": {"token": token}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default", "namespace": contract}}],
    });
    format!("{kubeconfig:#}\n")
}

/// What a kubeconfig says, whoever has written it: server, authority, name in the certificate, token and namespace of its current context.
pub fn content(text: &str) -> Option<[String; 5]> {
    let kubeconfig: Value = serde_saphyr::from_str(text).ok()?;
    let named = |list: &str, name: &Value, part: &str| {
        let all = kubeconfig[list].as_array()?;
        Some(all.iter().find(|it| it["name"] == *name)?[part].clone())
    };
    let context = named("contexts", &kubeconfig["current-context"], "context")?;
    let cluster = named("clusters", &context["cluster"], "cluster")?;
    let user = named("users", &context["user"], "user")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some([
        text(&cluster["server"]),
        text(&cluster["certificate-authority-data"]),
        text(&cluster["tls-server-name"]),
        text(&user["token"]),
        text(&context["namespace"]),
    ])
}

/// Whether kubeconfigs differ in nothing but who has signed the server's certificate, and both name somebody.
pub fn differs_in_authority(there: &[String; 5], wanted: &str) -> bool {
    let Some(wanted) = content(wanted) else { return false };
    let rest = |all: &[String; 5]| [0, 2, 3, 4].map(|at| all[at].clone());
    rest(there) == rest(&wanted) && !there[1].is_empty() && there[1] != wanted[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_that_was_only_found_out_replaces_none_that_may_work() {
        let text = |authority: &str, token: &str| {
            let address = Address { server: "https://a".to_owned(), ..Address::default() };
            text(&address, "cluster-a", token, authority)
        };
        let there = content(&text("GO", "t")).unwrap();
        assert!(differs_in_authority(&there, &text("OURS", "t")));
        assert!(!differs_in_authority(&there, &text("GO", "t")) && !differs_in_authority(&there, &text("OURS", "new")));
        assert!(!differs_in_authority(&content(&text("", "t")).unwrap(), &text("OURS", "t")));
    }

    #[test]
    fn a_kubeconfig_leads_to_the_contract_and_is_known_again_in_another_spelling() {
        let address = Address {
            server: "https://provider.example".to_owned(),
            authority: None,
            authority_given: false,
            server_name: Some("inner.example".to_owned()),
        };
        let text = text(&address, "cluster-a", "a-token", "PEM");
        let content = content(&text).unwrap();
        assert_eq!(content, ["https://provider.example", "UEVN", "inner.example", "a-token", "cluster-a"]);
        let other = "current-context: default\nclusters: [{name: default, cluster: {server: 'https://provider.example', \
            certificate-authority-data: UEVN, tls-server-name: inner.example}}]\n\
            contexts:\n- name: default\n  context: {cluster: default, user: default, namespace: cluster-a}\n\
            users: [{name: default, user: {token: a-token}}]\n";
        assert_eq!(super::content(other), Some(content));
        for foreign in ["", "a: b", "current-context: x", "]"] {
            assert_eq!(super::content(foreign), None, "{foreign}");
        }
    }
}
