//! Logging in with OIDC: where browsers are sent, and what becomes of the code that they bring back.

mod embedded;
mod external;
mod id_token;
mod jwk;

use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};

use super::secrecy::Seal;

pub(super) use embedded::Embedded;
pub(super) use external::{External, ExternalError};
pub(super) use id_token::Identity;

/// Why a login fails. No message holds a code or a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OidcError {
    /// The code, or what belongs to it, is not accepted.
    #[error("the issuer refuses the code: {0}; log in again")]
    Refused(String),
    /// The ID token does not prove who somebody is.
    #[error("the issuer's ID token is not accepted: {0}")]
    Token(String),
    /// The issuer does not answer, or not as it should.
    #[error("the issuer does not answer as it should: {0}")]
    Issuer(String),
}

/// What a browser takes along to the issuer.
pub(super) struct Ask<'a> {
    pub(super) state: &'a str,
    pub(super) nonce: &'a str,
    pub(super) verifier: &'a str,
    pub(super) callback: &'a str,
}

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

/// The challenge of PKCE.
fn challenge(verifier: &str) -> String {
    BASE64URL_NOPAD.encode(digest(&SHA256, verifier.as_bytes()).as_ref())
}
