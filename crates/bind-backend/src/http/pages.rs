//! Web pages: the catalogue, and the page of one template with its form. They need no script.

mod html;

use carrick_bind_api::names::{KONNECTOR_NAMESPACE, KUBECONFIG_KEY, PROVIDER_KUBECONFIG_LABEL};
use data_encoding::{BASE64, BASE64URL};
use http::StatusCode;
use serde_json::{Value, json};

use super::answer::{Answer, Fault, answer, kept, page, redirect};
use super::api::{UI_IDENTITY, order, response};
use super::asked::{Asked, Values};
use super::code;
use super::front::Front;
use super::redirect;
use super::secrecy::random_text;
use super::token::Claims;
use crate::provider::{Bound, Provider};
use html::{Layout, escape};

/// Values of the query that follow somebody from page to page.
const CARRIED: [&str; 5] = ["cluster_id", "code_challenge", "consumer_id", "redirect_url", "session_id"];

/// The icon of all pages.
pub(super) fn icon() -> Answer {
    kept(answer(StatusCode::OK, "image/svg+xml", html::ICON))
}

/// The style of all pages.
pub(super) fn style() -> Answer {
    kept(answer(StatusCode::OK, "text/css; charset=utf-8", html::STYLE))
}

/// Whom an order is for: the command line that has opened the page, or whoever has logged in.
struct CommandLine<'a> {
    redirect_url: &'a str,
    session_id: &'a str,
    consumer_id: &'a str,
    /// If it takes a code instead of the answer.
    challenge: Option<&'a str>,
}

/// The command line that has opened a page, if one has.
fn command_line(values: &Values) -> Result<Option<CommandLine<'_>>, Fault> {
    let redirect_url = values.get("redirect_url");
    if redirect_url.is_empty() {
        return Ok(None);
    }
    if !redirect::is_loopback(redirect_url) {
        return Err(Fault::bad("redirect_url must be http://127.0.0.1:PORT/..., for credentials go there"));
    }
    let (session_id, consumer_id) = (values.get("session_id"), values.get("consumer_id"));
    if session_id.is_empty() || consumer_id.is_empty() {
        return Err(Fault::bad("session_id and consumer_id are needed beside redirect_url"));
    }
    let challenge = code::given(values.get("code_challenge")).map_err(Fault::bad)?;
    Ok(Some(CommandLine { redirect_url, session_id, consumer_id, challenge }))
}

impl<P: Provider> Front<P> {
    /// What went wrong, as a page.
    pub(super) fn problem(&self, asked: &Asked, status: StatusCode, message: &str) -> Answer {
        // What was wrong with the request must not come back with the link.
        let back = match (command_line(&asked.query), asked.cluster()) {
            (Ok(Some(_)), Ok(_)) => here("/", asked, &[]),
            (_, Ok(cluster)) if !cluster.is_empty() => redirect::with("/", &[("cluster_id", cluster)]),
            _ => "/".to_owned(),
        };
        let title = "That did not work";
        let layout = Layout { title, provider: &self.config.pretty_name, account: "" };
        page(status, layout.around(&html::problem(title, message, &back)), None)
    }

    /// All templates and collections.
    pub(super) async fn catalogue(&self, asked: &Asked) -> Result<Answer, Fault> {
        let for_command_line = command_line(&asked.query)?;
        let session = match self.session(asked).await {
            Err(Fault::Unauthenticated(_)) if for_command_line.is_some() => return Self::to_login(asked),
            Err(Fault::Unauthenticated(_)) => return self.welcome(asked),
            session => session?,
        };
        let claims = &session.claims;
        let templates = self.provider.templates(&claims.cid).await?;
        let collections = self.provider.collections(&claims.cid).await?;
        let mut content = String::from("<h1>Services</h1>");
        if let Some(line) = &for_command_line {
            content += &note(line);
        }
        content += &html::catalogue(&templates, &collections, |name| here("/bind", asked, &[("template", name)]));
        content += &self.logout_form(asked, claims);
        Ok(self.page(StatusCode::OK, "Services", &content, claims, None))
    }

    /// One template, and the form to order it.
    pub(super) async fn bind_page(&self, asked: &Asked) -> Result<Answer, Fault> {
        let for_command_line = command_line(&asked.query)?;
        let session = match self.session(asked).await {
            Err(Fault::Unauthenticated(_)) => return Self::to_login(asked),
            session => session?,
        };
        let name = asked.query.get("template");
        let template = self.template(&session.claims.cid, name).await?;
        let form = self.form(asked, &session.claims, &template, for_command_line.as_ref(), None);
        let also = for_command_line.and_then(|line| redirect::origin_of(line.redirect_url));
        Ok(self.page(StatusCode::OK, name, &form, &session.claims, also.as_deref()))
    }

    /// The form comes back.
    pub(super) async fn bind_by_form(&self, asked: &Asked) -> Result<Answer, Fault> {
        let claims = match self.session(asked).await {
            Err(Fault::Unauthenticated(_)) => return Self::to_login(asked),
            session => session?.claims,
        };
        let form = Values::parse(&asked.body);
        if !self.is_own_form(&claims, form.get("mark")) {
            return Err(Fault::Forbidden("the form is not one of this login; go back to the catalogue".to_owned()));
        }
        let line = command_line(&asked.query)?;
        let name = form.get("template");
        let identity = line.as_ref().map_or(UI_IDENTITY, |line| line.consumer_id);
        let made = match order(&claims, form.get("name"), name, identity, "") {
            Ok(order) => self.provider.bind(&claims.cid, &order).await.map_err(Fault::from),
            Err(fault) => Err(fault),
        };
        let bound = match made {
            Ok(bound) => bound,
            Err(fault) => {
                let template = self.template(&claims.cid, name).await?;
                // The words of the API are not those of the page.
                let problem = fault.message().replacen("metadata.name", "the name", 1);
                let mistake = html::Mistake { typed: form.get("name"), problem: &problem };
                let shown = self.form(asked, &claims, &template, line.as_ref(), Some(&mistake));
                let also = line.and_then(|line| redirect::origin_of(line.redirect_url));
                return Ok(self.page(fault.status(), &format!("Error: {name}"), &shown, &claims, also.as_deref()));
            }
        };
        let Some(line) = line else {
            let shown = result(&bound, &here("/", asked, &[]));
            return Ok(self.page(StatusCode::OK, "Bound", &shown, &claims, None));
        };
        let answer = response(&claims, &bound);
        let (name, text) = match line.challenge {
            Some(challenge) => ("code", self.code(challenge, answer)?),
            // The command line of kube-bind reads no other alphabet.
            None => ("binding_response", BASE64URL.encode(answer.to_string().as_bytes())),
        };
        let values = [("session_id", line.session_id), (name, text.as_str())];
        Ok(redirect(StatusCode::SEE_OTHER, &redirect::with(line.redirect_url, &values)))
    }

    /// Ends the session of a browser by a form.
    pub(super) async fn logout_by_form(&self, asked: &Asked) -> Result<Answer, Fault> {
        let claims = match self.session(asked).await {
            // Somebody whose login has expired meanwhile has what he wants.
            Err(Fault::Unauthenticated(_)) => return Ok(redirect(StatusCode::SEE_OTHER, &here("/", asked, &[]))),
            session => session?.claims,
        };
        if !self.is_own_form(&claims, Values::parse(&asked.body).get("mark")) {
            return Err(Fault::Forbidden("the form is not one of this login".to_owned()));
        }
        let mut answer = Self::logout(asked)?;
        *answer.status_mut() = StatusCode::SEE_OTHER;
        super::answer::set(&mut answer, http::header::LOCATION, &here("/", asked, &[]));
        Ok(answer)
    }

    async fn template(&self, cluster: &str, name: &str) -> Result<Value, Fault> {
        let all = self.provider.templates(cluster).await?;
        let items = all["items"].as_array().cloned().unwrap_or_default();
        let found = items.into_iter().find(|template| template["metadata"]["name"] == name);
        found.ok_or_else(|| Fault::NotFound(format!("there is no template {name:?}")))
    }

    fn form(
        &self,
        asked: &Asked,
        claims: &Claims,
        template: &Value,
        line: Option<&CommandLine<'_>>,
        mistake: Option<&html::Mistake<'_>>,
    ) -> String {
        let name = template["metadata"]["name"].as_str().unwrap_or_default();
        let mut content = format!("<p><a href=\"{}\">All services</a></p>", escape(&here("/", asked, &[])));
        content += &html::details(template);
        if let Some(line) = line {
            content += &note(line);
        }
        content += &html::form(&here("/bind", asked, &[]), &self.form_mark(claims), name, mistake);
        content
    }

    fn logout_form(&self, asked: &Asked, claims: &Claims) -> String {
        format!(
            "<form method=\"post\" action=\"{}\"><input type=\"hidden\" name=\"mark\" value=\"{}\">\
             <button class=\"quiet\">Log out</button></form>",
            escape(&here("/logout", asked, &[])),
            escape(&self.form_mark(claims))
        )
    }

    fn welcome(&self, asked: &Asked) -> Result<Answer, Fault> {
        let name = escape(&self.config.pretty_name);
        let login = escape(&Self::login_url(asked)?);
        let content = format!(
            "<h1>{name}</h1><p>Log in to see which services this provider offers.</p>\
             <p><a class=\"button\" href=\"{login}\">Log in</a></p>"
        );
        let layout = Layout { title: "Log in", provider: &self.config.pretty_name, account: "" };
        Ok(page(StatusCode::OK, layout.around(&content), None))
    }

    fn to_login(asked: &Asked) -> Result<Answer, Fault> {
        Ok(redirect(StatusCode::SEE_OTHER, &Self::login_url(asked)?))
    }

    fn login_url(asked: &Asked) -> Result<String, Fault> {
        let session = match asked.query.get("session_id") {
            "" => random_text()?,
            known => known.to_owned(),
        };
        let back = match asked.query.get("template") {
            "" => here("/", asked, &[]),
            template => here("/bind", asked, &[("template", template)]),
        };
        let cluster = asked.cluster()?;
        let mut values = vec![("redirect_url", back.as_str()), ("session_id", &session), ("client_type", "ui")];
        if !cluster.is_empty() {
            values.push(("cluster_id", cluster));
        }
        Ok(redirect::with("/api/authorize", &values))
    }

    fn page(&self, status: StatusCode, title: &str, content: &str, claims: &Claims, also: Option<&str>) -> Answer {
        let layout = Layout { title, provider: &self.config.pretty_name, account: &claims.sub };
        page(status, layout.around(content), also)
    }
}

/// A page of this server, with what follows somebody from page to page.
fn here(path: &str, asked: &Asked, more: &[(&str, &str)]) -> String {
    let carried = CARRIED.iter().map(|name| (*name, asked.query.get(name))).filter(|(_, value)| !value.is_empty());
    // Without a command line that waits, the name of the session is of no use.
    let waits = !asked.query.get("redirect_url").is_empty();
    let carried = carried.filter(|(name, _)| waits || *name == "cluster_id");
    redirect::with(path, &carried.chain(more.iter().copied()).collect::<Vec<_>>())
}

fn note(line: &CommandLine<'_>) -> String {
    format!(
        "<p class=\"note\">kubectl is waiting: what you bind here is bound to the cluster with the identity <code>{}</code>.</p>",
        escape(line.consumer_id)
    )
}

/// What to do with what was bound.
fn result(bound: &Bound, back: &str) -> String {
    let name = bound.binding_name.as_deref().unwrap_or("provider");
    let secret = format!("kubeconfig-{name}");
    let objects = [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": KONNECTOR_NAMESPACE,
            "labels": {PROVIDER_KUBECONFIG_LABEL: "true"}}, "data": {KUBECONFIG_KEY: BASE64.encode(&bound.kubeconfig)}}),
        json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBindingBundle", "metadata": {"name": name},
            "spec": {"kubeconfigSecretRef": {"namespace": KONNECTOR_NAMESPACE, "name": secret, "key": KUBECONFIG_KEY}}}),
    ];
    let texts = objects.iter().map(|object| serde_saphyr::to_string(object).unwrap_or_default());
    let mut yaml = String::new();
    for text in texts {
        yaml = yaml + "---\n" + text.trim_end() + "\n";
    }
    html::result(name, &yaml, back)
}
