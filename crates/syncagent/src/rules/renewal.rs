//! The token in the kubeconfig in a Secret: whose it is, when it is to be renewed, and the Secret with another one in its place.

use carrick_kcp::token::{AccountToken, SHORTEST, TokenError};
use data_encoding::BASE64;
use serde_json::{Value, json};
use thiserror::Error;

/// The key of the kubeconfig in the Secret, as the chart mounts it.
pub const KEY: &str = "kubeconfig";

/// Why there is no token in a Secret that could be renewed. No message holds a word of its content.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeldTokenError {
    /// The Secret lacks the key.
    #[error("it has no key {KEY:?}")]
    NoKey,
    /// The content of the key is something else.
    #[error("its key {KEY:?} does not hold a kubeconfig with a current context and a user of that context")]
    NoKubeconfig,
    /// The user of the current context logs in in another way.
    #[error("the user of its current context has no token in it, but some other login, which nobody can renew here")]
    NoToken,
    /// The token cannot be renewed.
    #[error("{0}, so that it cannot be renewed")]
    Token(#[from] TokenError),
}

/// A token in a kubeconfig.
#[derive(Clone)]
pub struct HeldToken {
    /// The whole kubeconfig.
    pub kubeconfig: String,
    /// The token of the user of its current context.
    pub token: String,
    /// What the token says.
    pub about: AccountToken,
}

/// The token in the kubeconfig in a Secret.
pub fn held(secret: &Value) -> Result<HeldToken, HeldTokenError> {
    let content = secret["data"][KEY].as_str().ok_or(HeldTokenError::NoKey)?;
    let content = BASE64.decode(content.as_bytes()).map_err(|_| HeldTokenError::NoKubeconfig)?;
    let kubeconfig = String::from_utf8(content).map_err(|_| HeldTokenError::NoKubeconfig)?;
    let token = token(&kubeconfig)?;
    Ok(HeldToken { about: AccountToken::read(&token)?, kubeconfig, token })
}

/// The token of the user of the current context of a kubeconfig.
pub fn token(kubeconfig: &str) -> Result<String, HeldTokenError> {
    let mut read = carrick_json::yaml::value(kubeconfig).map_err(|_| HeldTokenError::NoKubeconfig)?;
    let user = current_user(&mut read).ok_or(HeldTokenError::NoKubeconfig)?;
    // A file comes before a token, as in kubectl.
    let found = user["token"].as_str().filter(|token| !token.is_empty() && user["tokenFile"].is_null());
    found.map(str::to_owned).ok_or(HeldTokenError::NoToken)
}

/// A Secret with another kubeconfig, and otherwise as it is.
pub fn holding(secret: &Value, kubeconfig: &str) -> Value {
    let mut written = secret.clone();
    written["data"][KEY] = json!(BASE64.encode(kubeconfig.as_bytes()));
    written
}

impl HeldToken {
    /// Whether it is time to renew the token.
    pub fn is_due(&self, now: i64) -> bool {
        now >= self.about.half_time()
    }

    /// For how many seconds to ask for another one: for as long as the present one was given, if servers give tokens for so short a time.
    pub fn seconds(&self) -> i64 {
        self.about.lifetime().max(SHORTEST)
    }

    /// The kubeconfig with another token in the place of the present one: comments and all else stay.
    pub fn replaced_by(&self, token: &str) -> String {
        let read = |text: &str| carrick_json::yaml::value(text).unwrap_or_default();
        let mut wanted = read(&self.kubeconfig);
        if let Some(user) = current_user(&mut wanted) {
            user["token"] = json!(token);
        }
        let text = self.kubeconfig.replace(&self.token, token);
        // Other users may have the same token, and a text may be folded: then the content counts, and JSON is YAML.
        if read(&text) == wanted { text } else { wanted.to_string() }
    }
}

/// The user of the current context.
fn current_user(kubeconfig: &mut Value) -> Option<&mut Value> {
    let named = |list: &Value, name: &str| list.as_array()?.iter().position(|one| one["name"] == name);
    let context = named(&kubeconfig["contexts"], kubeconfig["current-context"].as_str()?)?;
    let user = named(&kubeconfig["users"], kubeconfig["contexts"][context]["context"]["user"].as_str()?)?;
    kubeconfig["users"][user].get_mut("user").filter(|user| user.is_object())
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64URL_NOPAD;

    use super::*;

    fn jwt(issued: i64, ends: i64) -> String {
        let claims = json!({
            "iat": issued, "exp": ends,
            "kubernetes.io": { "namespace": "default", "serviceaccount": { "name": "agent", "uid": "u" } },
        });
        format!("e30.{}.x", BASE64URL_NOPAD.encode(claims.to_string().as_bytes()))
    }

    fn kubeconfig(user: &str) -> String {
        format!(
            "# ours\ncurrent-context: b\ncontexts:\n- {{name: a, context: {{cluster: c, user: other}}}}\n- {{name: b, context: {{cluster: c, user: me}}}}\nusers:\n- name: other\n  user: {{token: theirs}}\n- name: me\n  user: {{{user}}}\n"
        )
    }

    fn secret(kubeconfig: &str) -> Value {
        json!({ "metadata": { "resourceVersion": "7" }, "data": { KEY: BASE64.encode(kubeconfig.as_bytes()), "more": "Cg==" } })
    }

    #[test]
    fn a_token_is_renewed_when_half_of_its_time_is_over() {
        let held = held(&secret(&kubeconfig(&format!("token: {}", jwt(1_000, 3_000))))).unwrap();
        for (now, due) in [(0, false), (1_000, false), (1_999, false), (2_000, true), (2_999, true), (4_000, true)] {
            assert_eq!(held.is_due(now), due, "{now}");
        }
        assert_eq!(held.seconds(), 2_000);
    }

    #[test]
    fn a_token_is_asked_for_at_least_as_long_as_servers_give_one() {
        let held = held(&secret(&kubeconfig(&format!("token: {}", jwt(1_000, 1_020))))).unwrap();
        assert_eq!(held.seconds(), SHORTEST);
    }

    #[test]
    fn nothing_but_the_token_of_the_current_user_changes() {
        let (old, new) = (jwt(1, 2), jwt(3, 4));
        let text = kubeconfig(&format!("token: {old}"));
        let before = secret(&text);
        let after = holding(&before, &held(&before).unwrap().replaced_by(&new));
        assert_eq!(held(&after).unwrap().kubeconfig, text.replace(&old, &new));
        assert_eq!((&after["metadata"], &after["data"]["more"]), (&before["metadata"], &before["data"]["more"]));

        // Somebody else with the same token keeps it.
        let text = text.replace("theirs", &old);
        let changed = held(&secret(&text)).unwrap().replaced_by(&new);
        let read = carrick_json::yaml::value(&changed).unwrap();
        assert_eq!(
            (&read["users"][0]["user"]["token"], &read["users"][1]["user"]["token"]),
            (&json!(old), &json!(new))
        );
        assert_eq!(read["contexts"], carrick_json::yaml::value(&text).unwrap()["contexts"]);
    }

    #[test]
    fn what_holds_no_token_to_renew_is_told_apart_and_never_quoted() {
        let cases = [
            (json!({ "data": {} }), HeldTokenError::NoKey),
            (json!({ "data": { KEY: "%" } }), HeldTokenError::NoKubeconfig),
            (secret("hunter2: ["), HeldTokenError::NoKubeconfig),
            (secret("hunter2"), HeldTokenError::NoKubeconfig),
            (secret(&kubeconfig("").replace("name: me", "name: you")), HeldTokenError::NoKubeconfig),
            (secret(&kubeconfig("client-certificate-data: hunter2")), HeldTokenError::NoToken),
            (secret(&kubeconfig("token: hunter2, tokenFile: /hunter2")), HeldTokenError::NoToken),
            (secret(&kubeconfig("token: hunter2")), HeldTokenError::Token(TokenError::Opaque)),
        ];
        for (secret, wanted) in cases {
            let error = held(&secret).err();
            assert_eq!(error.as_ref(), Some(&wanted), "{secret}");
            assert!(!wanted.to_string().contains("hunter2"));
        }
    }
}
