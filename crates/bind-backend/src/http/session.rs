//! Who asks, and whether they may.

use data_encoding::BASE64URL_NOPAD;
use http::Method;
use ring::hmac;

use super::answer::Fault;
use super::asked::Asked;
use super::front::{Front, now};
use super::token::{self, Claims, TokenError};
use crate::provider::{Person, Provider};

/// What cookies are encrypted for.
pub(super) const COOKIE_PURPOSE: &str = "cookie";

/// Somebody who has logged in and may bind.
pub(super) struct Session {
    pub(super) claims: Claims,
}

/// The cookie of a cluster's session.
pub(super) fn cookie_name(cluster: &str) -> String {
    if cluster.is_empty() { "kube-bind".to_owned() } else { format!("kube-bind-{cluster}") }
}

impl<P: Provider> Front<P> {
    /// Who asks, if they have logged in to the cluster that they ask about and may bind there.
    pub(super) async fn session(&self, asked: &Asked) -> Result<Session, Fault> {
        let cluster = asked.cluster()?;
        let claims = self.claims(asked, cluster)?;
        if claims.cid != cluster {
            let message =
                format!("the login is for cluster {:?}, the request for {cluster:?}; log in to it", claims.cid);
            return Err(Fault::Forbidden(message));
        }
        let extra = self.issuer.extra_groups().iter().map(|group| (*group).to_owned());
        let person = Person {
            subject: claims.sub.clone(),
            issuer: claims.iss.clone(),
            groups: claims.groups.iter().cloned().chain(extra).collect(),
        };
        if !self.provider.may_bind(cluster, &person).await? {
            let message = format!(
                "{:?} may not bind here; the provider can allow it with --oidc-allowed-users or --oidc-allowed-groups",
                claims.sub
            );
            return Err(Fault::Forbidden(message));
        }
        Ok(Session { claims })
    }

    fn claims(&self, asked: &Asked, cluster: &str) -> Result<Claims, Fault> {
        let refused = |error: TokenError| Fault::Unauthenticated(error.to_string());
        if asked.headers.contains_key(http::header::AUTHORIZATION) {
            let token = asked.bearer().ok_or(TokenError::Malformed).map_err(refused)?;
            return token::verify(&self.keys.signing, token, now()).map_err(refused);
        }
        let cookie = asked.cookie(&cookie_name(cluster));
        let cookie = cookie.ok_or_else(|| Fault::Unauthenticated("nobody is logged in".to_owned()))?;
        // Browsers add cookies to whatever they send; a page of somebody else must not order anything.
        if asked.method == Method::POST && asked.is_cross_site() {
            return Err(Fault::Forbidden("the request comes from a page of another server".to_owned()));
        }
        let claims: Option<Claims> = self.keys.seal.open(COOKIE_PURPOSE, cookie);
        let claims = claims.ok_or(TokenError::Foreign).map_err(refused)?;
        claims.check(now()).map_err(refused)?;
        Ok(claims)
    }

    /// What a form of this session holds, so that no other page can send it.
    pub(super) fn form_mark(&self, claims: &Claims) -> String {
        BASE64URL_NOPAD.encode(hmac::sign(&self.keys.signing, &marked(claims)).as_ref())
    }

    /// Whether a form is one of this session.
    pub(super) fn is_own_form(&self, claims: &Claims, mark: &str) -> bool {
        let mark = BASE64URL_NOPAD.decode(mark.as_bytes()).unwrap_or_default();
        hmac::verify(&self.keys.signing, &marked(claims), &mark).is_ok()
    }
}

fn marked(claims: &Claims) -> Vec<u8> {
    format!("form\0{}\0{}\0{}\0{}", claims.sid, claims.author(), claims.cid, claims.iat).into_bytes()
}
