//! Logging in with OIDC: where browsers are sent, and what becomes of the code that they bring back.

mod ask;
mod embedded;
mod external;
#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod id_token;
mod jwk;

use super::secrecy::Seal;

pub(super) use ask::{Ask, OidcError, challenge};
pub(super) use embedded::Embedded;
pub(super) use external::{External, ExternalError};
pub(super) use id_token::Identity;

/// Who says who somebody is.
pub(super) enum Issuer {
    Embedded(Box<Embedded>),
    External(Box<External>),
}

impl Issuer {
    /// Where to send a browser.
    pub(super) fn authorization_url(&self, ask: &Ask<'_>) -> String {
        let (endpoint, client_id, scopes) = match self {
            Self::Embedded(issuer) => {
                (issuer.authorization_endpoint(), embedded::CLIENT_ID, "openid groups".to_owned())
            }
            Self::External(issuer) => (issuer.authorization_endpoint(), issuer.client_id(), issuer.scopes()),
        };
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("response_type", "code").append_pair("client_id", client_id);
        query.append_pair("redirect_uri", ask.callback).append_pair("scope", &scopes);
        query.append_pair("state", ask.state).append_pair("nonce", ask.nonce);
        query.append_pair("code_challenge", &challenge(ask.verifier)).append_pair("code_challenge_method", "S256");
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        format!("{endpoint}{joint}{}", query.finish())
    }

    /// Exchanges a code for the identity of whoever has logged in.
    pub(super) async fn redeem(&self, seal: &Seal, code: &str, ask: &Ask<'_>, now: i64) -> Result<Identity, OidcError> {
        match self {
            Self::Embedded(issuer) => issuer.identity(seal, code, ask, now),
            Self::External(issuer) => issuer.identity(code, ask, now).await,
        }
    }

    /// Groups that somebody is in whatever the ID token says.
    pub(super) fn extra_groups(&self) -> &[&str] {
        match self {
            Self::Embedded(_) => &["system:authenticated"],
            Self::External(_) => &[],
        }
    }
}
