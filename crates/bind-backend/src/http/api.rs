//! What kube-bind's clients ask for.

use carrick_bind_api::install::{self, HostAliases};
use carrick_bind_api::kinds::{GROUP, VERSION};
use carrick_bind_api::response::OVER_HTTP;
use carrick_bind_api::version;
use data_encoding::BASE64;
use http::StatusCode;
use http::header::CONTENT_DISPOSITION;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Answer, Fault, answer, json_answer, kept, set};
use super::asked::Asked;
use super::front::Front;
use super::redirect;
use super::token::Claims;
use crate::provider::{BindOrder, Bound, Provider};

/// What stands for the identity of whoever has logged in.
pub(super) const UI_IDENTITY: &str = "ui-identity";

/// The body of an order.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OrderBody {
    metadata: OrderName,
    spec: OrderSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OrderName {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OrderSpec {
    template_ref: OrderName,
    cluster_identity: OrderIdentity,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OrderIdentity {
    identity: String,
    pretty_name: String,
}

impl<P: Provider> Front<P> {
    /// Who this provider is, and where to log in.
    pub(super) fn exports(&self, asked: &Asked) -> Answer {
        let mut url = format!("{}/api/authorize", asked.origin);
        if !asked.raw_query.is_empty() {
            let pairs = form_urlencoded::parse(asked.raw_query.as_bytes()).collect::<Vec<_>>();
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
            url = redirect::with(&url, &pairs);
        }
        let provider = json!({
            // Without its group, as clients expect it.
            "apiVersion": VERSION, "kind": "BindingProvider", "version": version::spoken_by(crate::VERSION),
            "providerPrettyName": self.config.pretty_name,
            "authenticationMethods": [{"method": "OAuth2CodeGrant", "oauth2CodeGrant": {"authenticatedURL": url}}],
        });
        kept(json_answer(StatusCode::OK, &provider))
    }

    /// Templates.
    pub(super) async fn templates(&self, asked: &Asked) -> Result<Answer, Fault> {
        let session = self.session(asked).await?;
        Ok(json_answer(StatusCode::OK, &self.provider.templates(&session.claims.cid).await?))
    }

    /// Collections.
    pub(super) async fn collections(&self, asked: &Asked) -> Result<Answer, Fault> {
        let session = self.session(asked).await?;
        Ok(json_answer(StatusCode::OK, &self.provider.collections(&session.claims.cid).await?))
    }

    /// Whether a session holds.
    pub(super) async fn ping(&self, asked: &Asked) -> Result<Answer, Fault> {
        self.session(asked).await?;
        Ok(super::answer::text(StatusCode::OK, "pong"))
    }

    /// What somebody has bound with the web page.
    pub(super) async fn consumer_status(&self, asked: &Asked) -> Result<Answer, Fault> {
        let claims = self.session(asked).await?.claims;
        let found = self.provider.exports(&claims.cid, &claims.author()).await?;
        let (namespace, exports) = found.unwrap_or_default();
        let status = json!({"connected": !exports.is_empty(), "namespace": namespace, "exports": exports});
        Ok(json_answer(StatusCode::OK, &status))
    }

    /// Binds, and hands out credentials.
    pub(super) async fn bind(&self, asked: &Asked) -> Result<Answer, Fault> {
        let claims = self.session(asked).await?.claims;
        let body: OrderBody = serde_json::from_slice(&asked.body)
            .map_err(|error| Fault::bad(format!("the body is not an order in JSON: {}", category(&error))))?;
        let given = asked.query.get("consumer_id");
        let identity = if given.is_empty() { &body.spec.cluster_identity.identity } else { given };
        let order = order(
            &claims,
            &body.metadata.name,
            &body.spec.template_ref.name,
            identity,
            &body.spec.cluster_identity.pretty_name,
        )?;
        let bound = self.provider.bind(&claims.cid, &order).await?;
        tracing::info!(template = order.template, namespace = bound.namespace, subject = claims.sub, "Bound.");
        Ok(json_answer(StatusCode::OK, &response(&claims, &bound)))
    }
}

/// An order, if there is nothing wrong with it. Its author is whoever has logged in, whatever the request says.
pub(super) fn order(
    claims: &Claims,
    name: &str,
    template: &str,
    identity: &str,
    pretty_name: &str,
) -> Result<BindOrder, Fault> {
    if !name.is_empty() && !carrick_go::names::V1_34.dns1123_subdomain(name).is_empty() {
        return Err(Fault::bad(format!(
            "metadata.name {name:?} must be lower-case letters, digits, - and ., as in my-db"
        )));
    }
    if template.is_empty() {
        return Err(Fault::bad("spec.templateRef.name is missing"));
    }
    if identity.is_empty() {
        return Err(Fault::bad("spec.clusterIdentity.identity is missing"));
    }
    if identity.len() > 512 || identity.chars().any(char::is_control) {
        return Err(Fault::bad("spec.clusterIdentity.identity is longer than 512 bytes, or has control characters"));
    }
    let author = claims.author();
    // Identities of this form are made here, for the one who has logged in.
    if identity.starts_with(&format!("{}/", claims.iss)) && identity != author {
        return Err(Fault::Forbidden("this identity is somebody else's".to_owned()));
    }
    let by_page = identity == UI_IDENTITY;
    Ok(BindOrder {
        name: name.to_owned(),
        template: template.to_owned(),
        identity: if by_page { author.clone() } else { identity.to_owned() },
        pretty_name: pretty_name.to_owned(),
        author,
        subject: claims.sub.clone(),
        request_export: by_page,
    })
}

/// The answer to an order.
pub(super) fn response(claims: &Claims, bound: &Bound) -> Value {
    let mut response = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": OVER_HTTP,
        "authentication": {"oauth2CodeGrant": {"sid": claims.sid, "id": claims.author()}},
        "kubeconfig": BASE64.encode(&bound.kubeconfig), "requests": bound.requests, "providerNamespace": bound.namespace,
    });
    if let Some(name) = &bound.binding_name {
        response["bindingName"] = json!(name);
    }
    response
}

/// What may be claimed, in the words of Go's fields.
pub(super) fn bindable_resources() -> Answer {
    let claimable = [("ConfigMap", "configmap"), ("Secret", "secret"), ("ServiceAccount", "serviceaccount")];
    let all = claimable.map(|(kind, singular)| {
        let plural = format!("{singular}s");
        json!({
            "Names": {"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
            "GroupVersionResource": {"Group": "", "Version": "v1", "Resource": plural},
            "Instance": null, "ResourceScope": "Namespaced", "HasStatus": false,
        })
    });
    kept(json_answer(StatusCode::OK, &json!(all)))
}

/// A konnector, to be applied by hand.
pub(super) fn konnector_manifests(aliases: &HostAliases) -> Result<Answer, Fault> {
    let objects = [vec![install::namespace()], install::konnector(&install::image(), aliases)].concat();
    let texts = objects.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>();
    let texts = texts.map_err(|error| Fault::Internal(error.to_string()))?;
    let text: String = texts.iter().flat_map(|text| ["---\n", text.trim_end(), "\n"]).collect();
    let mut file = answer(StatusCode::OK, "text/yaml", text);
    set(&mut file, CONTENT_DISPOSITION, "attachment; filename=\"konnector.yaml\"");
    Ok(file)
}

/// What is wrong with JSON, without a word of it.
fn category(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}
