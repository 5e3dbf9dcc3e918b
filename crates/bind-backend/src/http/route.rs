//! Which path is answered by whom.

use http::{Method, StatusCode};

use super::answer::{Answer, Fault, json_answer, redirect, text};
use super::asked::{Asked, Values};
use super::front::{Front, now};
use super::oidc::{Embedded, Issuer};
use super::{api, pages, redirect};
use crate::provider::Provider;

impl<P: Provider> Front<P> {
    /// Answers a request.
    pub(super) async fn route(&self, asked: &Asked) -> Answer {
        let is_page = !asked.path.starts_with("/api/") && !asked.path.starts_with("/oidc/");
        match self.find(asked).await {
            Ok(answer) => answer,
            Err(fault) if is_page => self.problem(asked, fault.status(), &fault.message()),
            Err(fault) => fault.answer(),
        }
    }

    async fn find(&self, asked: &Asked) -> Result<Answer, Fault> {
        let path = asked.path.as_str();
        let allowed = methods(path);
        // Whoever may get a thing may also ask for its head.
        let method = if asked.method == Method::HEAD { Method::GET } else { asked.method.clone() };
        if !allowed.split(", ").any(|known| known == method.as_str()) {
            return Err(Fault::Method(allowed));
        }
        match path {
            "/healthz" | "/api/healthz" => Ok(text(StatusCode::OK, "ok")),
            "/readyz" => Ok(match self.provider.problem() {
                Some(problem) => text(StatusCode::SERVICE_UNAVAILABLE, problem),
                None => text(StatusCode::OK, "ok"),
            }),
            "/exports" => Ok(redirect(StatusCode::FOUND, &moved("/api/exports", asked))),
            "/api/exports" => Ok(self.exports(asked)),
            "/api/bindable-resources" => Ok(api::bindable_resources()),
            "/api/konnector-manifests" => api::konnector_manifests(&self.config.konnector_aliases),
            "/api/authorize" => Ok(self.authorize(asked)),
            "/api/callback" => Ok(self.callback(asked).await),
            "/api/exchange" => self.redeem_code(asked),
            "/api/logout" => Self::logout(asked),
            "/api/templates" => self.templates(asked).await,
            "/api/collections" => self.collections(asked).await,
            "/api/bind" => self.bind(asked).await,
            "/api/ping" => self.ping(asked).await,
            "/api/consumer-status" => self.consumer_status(asked).await,
            "/api/apply-binding" => self.apply_binding(asked).await,
            "/" | "/resources" => self.catalogue(asked).await,
            "/bind" if method == Method::POST => self.bind_by_form(asked).await,
            "/bind" => self.bind_page(asked).await,
            "/logout" => self.logout_by_form(asked).await,
            "/icon.svg" => Ok(pages::icon()),
            "/style.css" => Ok(pages::style()),
            _ => match &self.issuer {
                Issuer::Embedded(issuer) => self.embedded(issuer, asked),
                Issuer::External(_) => Err(missing(path)),
            },
        }
    }

    fn embedded(&self, issuer: &Embedded, asked: &Asked) -> Result<Answer, Fault> {
        let ok = |content| Ok(json_answer(StatusCode::OK, &content));
        let oauth = |status, error: &str| Ok(json_answer(status, &serde_json::json!({"error": error})));
        match asked.path.as_str() {
            "/oidc/.well-known/openid-configuration" => ok(issuer.discovery()),
            "/oidc/.well-known/jwks.json" => ok(issuer.jwks()),
            "/oidc/authorize" => {
                let get = |name: &str| Some(asked.query.get(name).to_owned());
                let callback = &self.config.callback;
                let code = Embedded::grant(&self.keys.seal, callback, get, now()).map_err(Fault::Bad)?;
                let url = redirect::with(callback, &[("code", &code), ("state", asked.query.get("state"))]);
                Ok(redirect(StatusCode::FOUND, &url))
            }
            "/oidc/token" => {
                let form = Values::parse(&asked.body);
                match issuer.exchange(&self.keys.seal, |name| Some(form.get(name).to_owned()), now()) {
                    Ok(tokens) => ok(tokens),
                    Err(error @ "invalid_client") => oauth(StatusCode::UNAUTHORIZED, error),
                    Err(error) => oauth(StatusCode::BAD_REQUEST, error),
                }
            }
            "/oidc/userinfo" => {
                let found = asked.bearer().and_then(|token| Embedded::userinfo(&self.keys.seal, token, now()));
                found.map_or_else(|| oauth(StatusCode::UNAUTHORIZED, "invalid_token"), ok)
            }
            path => Err(missing(path)),
        }
    }
}

/// The methods that a path knows.
fn methods(path: &str) -> &'static str {
    match path {
        "/api/authorize" | "/bind" => "GET, POST",
        "/api/exchange" | "/api/logout" | "/api/bind" | "/api/apply-binding" | "/oidc/token" | "/logout" => "POST",
        _ => "GET",
    }
}

fn moved(path: &str, asked: &Asked) -> String {
    if asked.raw_query.is_empty() { path.to_owned() } else { format!("{path}?{}", asked.raw_query) }
}

fn missing(path: &str) -> Fault {
    Fault::NotFound(format!("there is nothing at {path}"))
}
