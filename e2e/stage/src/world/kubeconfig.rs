//! Kubeconfigs, put together and taken apart.

use anyhow::Context;
use serde_json::{Value, json};

/// What clients need to know about a server.
pub struct Access {
    /// The authority of its certificate: PEM in base64.
    pub authority: String,
    /// The administrator's token.
    pub admin: String,
    /// The agent's token.
    pub(super) agent: String,
}

impl Access {
    /// A kubeconfig for the server at a URL.
    pub(super) fn kubeconfig(&self, url: &str, user: super::User) -> String {
        let token = match user {
            super::User::Admin => &self.admin,
            super::User::Agent => &self.agent,
        };
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "server", "cluster": {
                "server": url,
                "certificate-authority-data": self.authority,
                // This is in every server's certificate, whichever way the server is reached.
                "tls-server-name": "127.0.0.1",
            }}],
            "users": [{ "name": "user", "user": { "token": token } }],
            "contexts": [{ "name": "server", "context": { "cluster": "server", "user": "user" } }],
            "current-context": "server",
        });
        // JSON is YAML.
        config.to_string()
    }
}

/// The authority and the token of the current context of a kubeconfig.
pub(super) fn credentials(text: &str) -> anyhow::Result<(String, String)> {
    let config: Value = serde_saphyr::from_str(text)?;
    let named = |list: &str, name: &Value| {
        config[list].as_array().and_then(|all| all.iter().find(|one| one["name"] == *name)).unwrap_or(&Value::Null)
    };
    let context = &named("contexts", &config["current-context"])["context"];
    let authority = &named("clusters", &context["cluster"])["cluster"]["certificate-authority-data"];
    let token = &named("users", &context["user"])["user"]["token"];
    let known = authority.as_str().zip(token.as_str());
    let (authority, token) = known.context("the kubeconfig has no authority or no token")?;
    Ok((authority.to_owned(), token.to_owned()))
}
