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

/// The longest part of a cookie: browsers drop what has more than 4096 bytes with its attributes.
const MOST: usize = 3_000;
/// The most parts: servers and proxies limit the headers of a request as well.
const MOST_PARTS: usize = 10;

/// A cookie as browsers take it: what is too long is cut into several, of which the first says how many there are. None if it is too long even so.
pub(super) fn cookie_parts(name: &str, value: &str) -> Option<Vec<(String, String)>> {
    let parts: Vec<&[u8]> = value.as_bytes().chunks(MOST).collect();
    let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    match &parts[..] {
        [] => Some(vec![(name.to_owned(), String::new())]),
        [whole] => Some(vec![(name.to_owned(), text(whole))]),
        parts if parts.len() > MOST_PARTS => None,
        [first, rest @ ..] => {
            let first = (name.to_owned(), format!("{}.{}", parts.len(), text(first)));
            let rest = rest.iter().enumerate().map(|(at, part)| (part_name(name, at + 1), text(part)));
            Some([first].into_iter().chain(rest).collect())
        }
    }
}

fn part_name(name: &str, at: usize) -> String {
    format!("{name}_{at}")
}

/// The cookie of which these are the parts.
pub(super) fn whole_cookie<'a>(name: &str, cookie: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let first = cookie(name)?;
    let Some((count, start)) = first.split_once('.') else { return Some(first.to_owned()) };
    let count: usize = count.parse().ok().filter(|count| *count <= MOST_PARTS)?;
    let mut whole = start.to_owned();
    for at in 1..count {
        whole.push_str(cookie(&part_name(name, at))?);
    }
    Some(whole)
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
        let cookie = whole_cookie(&cookie_name(cluster), |name| asked.cookie(name));
        let cookie = cookie.ok_or_else(|| Fault::Unauthenticated("nobody is logged in".to_owned()))?;
        // Browsers add cookies to whatever they send; a page of somebody else must not order anything.
        if asked.method == Method::POST && asked.is_cross_site() {
            return Err(Fault::Forbidden("the request comes from a page of another server".to_owned()));
        }
        let claims: Option<Claims> = self.keys.seal.open(COOKIE_PURPOSE, &cookie);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_cut_and_put_together_again_and_parts_of_an_older_one_do_no_harm() {
        for length in [0, 1, MOST, MOST + 1, MOST * MOST_PARTS] {
            let value: String = (0..length).map(|at| char::from(b'a' + u8::try_from(at % 26).unwrap())).collect();
            let parts = cookie_parts("kube-bind", &value).unwrap();
            assert!(parts.iter().all(|(name, part)| name.len() + part.len() < 3_500), "{length}");
            let find = |name: &str| {
                let found = parts.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
                // What was left of a longer one.
                found.or_else(|| name.starts_with("kube-bind_").then_some("old"))
            };
            assert_eq!(whole_cookie("kube-bind", find).as_deref(), Some(value.as_str()), "{length}");
        }
        assert_eq!(cookie_parts("kube-bind", &"x".repeat(MOST * MOST_PARTS + 1)), None);
        assert_eq!(whole_cookie("kube-bind", |name| (name == "kube-bind").then_some("2.x")), None, "a part is missing");
        assert_eq!(whole_cookie("kube-bind", |_| Some("999999.x")), None);
    }
}
