//! Binding on this cluster: the answer of a backend becomes a Secret, a konnector, an export request at the provider and an APIServiceBinding.

mod error;
mod grant;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use carrick_bind_api::install::{HostAliases, ProviderAccess};
use carrick_bind_api::kinds::{API_SERVICE_BINDING, API_SERVICE_EXPORT_REQUEST, GROUP, Kind, VERSION};
use carrick_bind_api::names::{ACCEPTED_CLAIMS_ANNOTATION, KONNECTOR_NAMESPACE, KUBECONFIG_KEY};
use carrick_bind_api::response::{BindingResponse, decode};
use carrick_client::{Client, InlineKubeconfig, Resource, Server};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use error::ConsumeError;

use crate::backend::{Backend, Place, shown};
use crate::callback::{self, Callback};
use crate::config::ConfigFile;
use crate::deploy::answer;
use crate::deploy::{self, Plan};
use crate::identity;
use crate::options::{self, Consume, Output};

/// How often the provider is asked for the state of a request.
const POLL: Duration = Duration::from_secs(1);

/// Binds a template or a request without a browser; returns what to print.
pub async fn apiservice(
    client: &Client,
    request: &options::ApiService,
    flags: &options::Backend,
) -> Result<String, ConsumeError> {
    if let Some(file) = &request.file {
        return by_file(client, request, file).await;
    }
    let template = request.template_name.as_deref().unwrap_or_default();
    let name = request.binding.as_deref().or(request.name.as_deref()).unwrap_or(template);
    let config = ConfigFile::at(flags.config_file.as_deref())?.read()?;
    let place = Place::choose(None, flags, &config)?;
    let login = place.login(&config, Timestamp::now())?;
    let backend = Backend::new(place.clone(), Some(&login.access_token), flags)?;
    let identity = identity(client, &request.consume).await?;
    let answer = backend.bind(name, template, &identity).await?;
    of_answer(client, &answer, &request.consume).await
}

/// Opens the provider's web page and binds what is chosen there; returns what to print.
pub async fn by_page(
    client: &Client,
    request: &options::Bind,
    flags: &options::Backend,
) -> Result<String, ConsumeError> {
    let config = ConfigFile::at(flags.config_file.as_deref())?.read()?;
    let place = Place::choose(request.server_url.as_deref(), flags, &config)?;
    let identity = identity(client, &request.consume).await?;
    let mut back = Callback::listen().await?;
    let mut values = vec![
        ("redirect_url", back.url.as_str()),
        ("session_id", &back.session),
        ("consumer_id", identity.as_str()),
        ("code_challenge", &back.challenge),
    ];
    if !place.cluster.is_empty() {
        values.push(("cluster_id", &place.cluster));
    }
    callback::open(&callback::with(&format!("{}/", place.url), &values), request.skip_browser);
    let brought = back.wait(request.consume.timeout).await?;
    if callback::value(&brought, "session_id") != Some(&back.session) {
        return Err(ConsumeError::OtherSession);
    }
    let backend = Backend::new(place, None, flags)?;
    let answer = if let Some(answer) = back.exchange(&backend, &brought).await? {
        answer.to_string()
    } else {
        let answer = callback::value(&brought, "binding_response").and_then(decode);
        answer.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(ConsumeError::NoAnswer)?
    };
    of_answer(client, &answer, &request.consume).await
}

async fn identity(client: &Client, consume: &Consume) -> Result<String, ConsumeError> {
    match &consume.cluster_identity {
        Some(identity) => Ok(identity.clone()),
        None => Ok(identity::of(client, &consume.cluster_identity_namespace).await?),
    }
}

async fn of_answer(client: &Client, text: &str, consume: &Consume) -> Result<String, ConsumeError> {
    let answer = BindingResponse::parse(text).map_err(deploy::DeployError::from)?;
    let provider = answer::read(text)?;
    let requests = answer.requests.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
    let requests = requests.map_err(|error| ConsumeError::Request(error.to_string()))?;
    // With a name in the answer the backend has asked for the export itself.
    let already = Some(answer.binding_name).filter(|name| !name.is_empty());
    bind(client, &provider, &requests, already, consume).await
}

async fn by_file(client: &Client, request: &options::ApiService, file: &Path) -> Result<String, ConsumeError> {
    let text = answer::of_file(file)?;
    let mut order: Value = serde_saphyr::from_str(&text)
        .map_err(|_| ConsumeError::Request("it is not one object in YAML or JSON".to_owned()))?;
    if order["kind"] != API_SERVICE_EXPORT_REQUEST.kind {
        let problem = format!("its kind is {} instead of {}", order["kind"], API_SERVICE_EXPORT_REQUEST.kind);
        return Err(ConsumeError::Request(problem));
    }
    if let Some(name) = request.binding.as_deref().or(request.name.as_deref()) {
        order["metadata"]["name"] = json!(name);
    }
    let kubeconfig = match (&request.remote_kubeconfig, &request.remote_kubeconfig_namespace) {
        (Some(file), _) => answer::of_file(file)?,
        (None, namespace) => {
            let name = request.remote_kubeconfig_name.as_deref().unwrap_or_default();
            let shown = format!("{}/{name}", namespace.as_deref().unwrap_or(KONNECTOR_NAMESPACE));
            deploy::of_secret(client, &shown, Some(KUBECONFIG_KEY)).await?
        }
    };
    let provider = answer::of_kubeconfig(kubeconfig)?;
    bind(client, &provider, &[order], None, &request.consume).await
}

/// Binds, or prints what would be written here.
async fn bind(
    client: &Client,
    provider: &ProviderAccess,
    requests: &[Value],
    already: Option<String>,
    consume: &Consume,
) -> Result<String, ConsumeError> {
    let image = consume.konnector_image.as_deref();
    let aliases = HostAliases::all(&consume.konnector_host_alias);
    let plan = deploy::plan(client, provider, None, consume.skip_konnector, image, &aliases).await?;
    if consume.dry_run || consume.output.is_some() {
        let (grants, output) = (!consume.skip_konnector && !consume.skip_roles, consume.output.unwrap_or(Output::Yaml));
        return preview(provider, plan, requests, already.as_deref(), grants, output);
    }
    let mut said = plan.left.map_or_else(String::new, |why| format!("konnector left as it is: {why}\n"));
    let mut secret = plan.secret;
    for object in &plan.objects {
        let name = deploy::write(client, object).await?;
        if object["kind"] == "Secret" {
            secret.clone_from(&name);
        }
        // Writing to a String cannot fail.
        let _ = writeln!(said, "{}/{name} written", object["kind"].as_str().unwrap_or_default().to_lowercase());
    }
    deploy::served(client, API_SERVICE_BINDING.plural, consume.timeout.min(Duration::from_mins(5))).await?;
    let names = match already {
        Some(name) => vec![name],
        None => ask(provider, requests, consume.timeout).await?,
    };
    for (at, name) in names.iter().enumerate() {
        let known = requests.get(at).map(grant::read);
        // What is noted as accepted below is shown, whoever grants the rights for it.
        if let Some(request) = &known {
            eprint!("{}", carrick_process::printable::printable(&grant::announced(name, request)));
        }
        if !consume.skip_konnector && !consume.skip_roles {
            said += &granted(client, &grant::roles(name, &secret, &known.clone().unwrap_or_default())).await;
        }
        let accepted = known.as_ref().map(grant::accepted);
        let _ = writeln!(said, "{}", write_binding(client, name, &secret, accepted.as_deref()).await?);
    }
    Ok(said)
}

/// Grants roles; what was done, or who has to do it.
async fn granted(client: &Client, roles: &[Value]) -> String {
    let mut said = String::new();
    for role in roles {
        match deploy::write(client, role).await {
            Ok(name) => {
                let _ = writeln!(said, "{}/{name} written", role["kind"].as_str().unwrap_or_default().to_lowercase());
            }
            Err(error) => {
                let cure = "the binding waits until whoever administers this cluster runs: konnector roles | kubectl apply -f -";
                let _ = writeln!(said, "the konnector has not got its rights: {error}; {cure}");
                return said;
            }
        }
    }
    said
}

fn resource(kind: Kind) -> Resource {
    let make = if kind == API_SERVICE_BINDING { Resource::cluster_wide } else { Resource::namespaced };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

/// Creates the requests at the provider and waits until each has succeeded; returns their names.
async fn ask(provider: &ProviderAccess, requests: &[Value], longest: Duration) -> Result<Vec<String>, ConsumeError> {
    let kubeconfig = InlineKubeconfig::parse(&provider.text).map_err(deploy::DeployError::from)?;
    let client = Server::from_inline(&kubeconfig)?.client();
    let kind = resource(API_SERVICE_EXPORT_REQUEST);
    let mut names = Vec::new();
    for request in requests {
        let created = create(&client, &kind, &provider.contract, request).await?;
        let name = created["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        succeeded(&client, &kind, &provider.contract, &name, longest).await?;
        names.push(name);
    }
    Ok(names)
}

async fn create(client: &Client, kind: &Resource, namespace: &str, request: &Value) -> Result<Value, ConsumeError> {
    let name = request["metadata"]["name"].as_str().filter(|name| !name.is_empty());
    let failed = |source| ConsumeError::Provider { what: format!("request {}", name.unwrap_or("export-")), source };
    let mut object = json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": API_SERVICE_EXPORT_REQUEST.kind,
        "spec": request["spec"]});
    object["metadata"] = match name {
        Some(name) => json!({"name": name, "namespace": namespace}),
        None => json!({"generateName": "export-", "namespace": namespace}),
    };
    match client.create(kind, Some(namespace), &object).await {
        Err(error) if error.is_already_exists() => {}
        made => return made.map_err(failed),
    }
    // Somebody repeats an order, or has another one of the same name.
    let name = name.unwrap_or_default();
    let there = client.get(kind, Some(namespace), name).await.map_err(failed)?;
    if let Some(there) = there.filter(|there| same(&there["spec"], &object["spec"])) {
        return Ok(there);
    }
    object["metadata"] = json!({"generateName": format!("{name}-"), "namespace": namespace});
    client.create(kind, Some(namespace), &object).await.map_err(failed)
}

/// Whether a request asks for all that another one does; servers add defaults.
fn same(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| there.get(name).is_some_and(|there| same(there, value)))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(there, wanted)| same(there, wanted))
        }
        (there, wanted) => there == wanted,
    }
}

async fn succeeded(
    client: &Client,
    kind: &Resource,
    namespace: &str,
    name: &str,
    longest: Duration,
) -> Result<(), ConsumeError> {
    let deadline = Instant::now() + longest;
    loop {
        let found = match client.get(kind, Some(namespace), name).await {
            Err(error) if error.is_transient() => None,
            found => {
                let what = format!("request {name}");
                let found = found.map_err(|source| ConsumeError::Provider { what, source })?;
                Some(found.ok_or_else(|| ConsumeError::Deleted(name.to_owned()))?)
            }
        };
        let status = found.as_ref().map_or(&Value::Null, |found| &found["status"]);
        match status["phase"].as_str() {
            Some("Succeeded") => return Ok(()),
            Some("Failed") => {
                let why = status["terminalMessage"].as_str().unwrap_or("it does not say why");
                return Err(ConsumeError::Failed { name: name.to_owned(), why: shown(why) });
            }
            _ if Instant::now() >= deadline => {
                return Err(ConsumeError::Late {
                    name: name.to_owned(),
                    why: conditions(status),
                    seconds: longest.as_secs(),
                });
            }
            _ => tokio::time::sleep(POLL).await,
        }
    }
}

/// What is not yet as it should be.
fn conditions(status: &Value) -> String {
    let all = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let bad = all.iter().filter(|condition| condition["status"] == "False");
    let said: Vec<String> = bad.filter_map(|condition| condition["message"].as_str()).map(shown).collect();
    if said.is_empty() { "the provider says nothing".to_owned() } else { said.join("; ") }
}

fn binding(name: &str, secret: &str, accepted: Option<&str>) -> Value {
    let mut binding = json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": API_SERVICE_BINDING.kind, "metadata": {"name": name},
        "spec": {"kubeconfigSecretRef": {"namespace": KONNECTOR_NAMESPACE, "name": secret, "key": KUBECONFIG_KEY}}});
    if let Some(accepted) = accepted {
        // What was shown is accepted, and not what the provider claims later.
        binding["metadata"]["annotations"] = json!({ACCEPTED_CLAIMS_ANNOTATION: accepted});
    }
    binding
}

async fn write_binding(
    client: &Client,
    name: &str,
    secret: &str,
    accepted: Option<&str>,
) -> Result<String, ConsumeError> {
    let kind = resource(API_SERVICE_BINDING);
    let failed = |source| ConsumeError::Consumer { what: format!("APIServiceBinding {name}"), source };
    let object = binding(name, secret, accepted);
    match client.create(&kind, None, &object).await {
        Err(error) if error.is_already_exists() => {}
        made => return made.map(|_| format!("apiservicebinding/{name} written")).map_err(failed),
    }
    let there = client.get(&kind, None, name).await.map_err(failed)?.unwrap_or_default();
    if there["spec"] == object["spec"] {
        return Ok(format!("apiservicebinding/{name} is there already"));
    }
    Err(ConsumeError::OtherBinding(name.to_owned()))
}

/// What would be written: here as objects, at the provider as a comment, so that nobody applies it here.
fn preview(
    provider: &ProviderAccess,
    plan: Plan,
    requests: &[Value],
    already: Option<&str>,
    grants: bool,
    output: Output,
) -> Result<String, ConsumeError> {
    let mut objects = plan.objects;
    let mut secret = plan.secret;
    for object in &mut objects {
        if object["kind"] == "Secret" && object["metadata"]["name"].is_null() {
            // The binding has to name it, so it needs a name that can be told now.
            secret = format!("kubeconfig-{}", provider.contract);
            object["metadata"]["name"] = json!(secret);
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("generateName");
            }
        }
    }
    let asked = requests.iter().filter_map(|request| request["metadata"]["name"].as_str()).map(str::to_owned);
    let names: Vec<String> = match already {
        Some(name) => vec![name.to_owned()],
        None => asked.collect(),
    };
    for (at, name) in names.iter().enumerate() {
        let known = requests.get(at).map(grant::read);
        if grants {
            objects.extend(grant::roles(name, &secret, &known.clone().unwrap_or_default()));
        }
        objects.push(binding(name, &secret, known.as_ref().map(grant::accepted).as_deref()));
    }
    if matches!(output, Output::Json | Output::Name) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        return crate::catalogue::print(&list, output).map_err(ConsumeError::Request);
    }
    let mut text = String::new();
    if already.is_none() {
        let shown = deploy::yaml(requests)?;
        let _ = writeln!(text, "# At the provider, in namespace {}:", provider.contract);
        text.extend(shown.lines().map(|line| format!("#   {line}\n")));
    }
    text += &deploy::yaml(&objects)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_the_same_if_the_server_has_only_added_to_it() {
        let wanted = json!({"resources": [{"group": "g", "resource": "r"}]});
        let there =
            json!({"resources": [{"group": "g", "resource": "r", "versions": ["v1"]}], "schemaUpdatePolicy": "Never"});
        assert!(same(&there, &wanted));
        assert!(!same(&wanted, &there));
        assert!(!same(&there, &json!({"resources": []})));
        assert_eq!(conditions(&json!({})), "the provider says nothing");
        let status =
            json!({"conditions": [{"status": "False", "message": "no schema"}, {"status": "True", "message": "x"}]});
        assert_eq!(conditions(&status), "no schema");
    }
}
