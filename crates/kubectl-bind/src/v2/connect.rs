//! Connecting to a provider: its kubeconfig in a Secret, the kinds of v2, a konnector with its rights, and a Connection.

use std::fmt::Write as _;

use carrick_bind_api::core::lease::NAMESPACE;
use carrick_bind_api::core::{CONNECTION, Connection, crds};
use carrick_bind_api::install::{self, HostAliases};
use carrick_bind_api::names::KUBECONFIG_KEY;
use carrick_bind_api::v1alpha2::SecretKeyReference;
use carrick_client::{Client, InlineKubeconfig};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::known::Known;
use super::{At, V2Error, connections, grant, is_established, is_ready, until, write_all};
use crate::deploy::{self, DeployError, answer};
use crate::options;

/// Connects, or prints what would be written; returns what to print.
pub async fn run(client: &Client, request: &options::Connect) -> Result<String, V2Error> {
    let (at, mut first) = kubeconfig(client, request).await?;
    let known = Known::read(client).await?;
    if let Some(there) = known.connection(&request.name).map(Connection::secret).filter(|there| *there != at) {
        let there = format!("{}/{}, key {}", there.namespace, there.name, there.key);
        return Err(V2Error::OtherSecret { name: request.name.clone(), there });
    }
    let mut said = String::new();
    if !request.skip_konnector {
        let image = request.konnector_image.as_deref();
        let (konnector, left) = deploy::konnector(client, image, &HostAliases::default()).await?;
        if let Some(why) = left {
            let _ = writeln!(said, "konnector left as it is: {why}");
        } else {
            first.push(install::namespace());
            first.extend(konnector);
        }
    }
    let kinds = crds::all();
    let roles =
        if request.skip_roles || request.skip_konnector { Vec::new() } else { known.roles(None, Some(at.clone())) };
    let connection = connection(request, &at);
    if request.dry_run {
        // Not a part of what is piped into kubectl.
        eprint!("{}", carrick_process::printable::printable(&said));
        return Ok(deploy::yaml(&[first, kinds, roles, vec![connection]].concat())?);
    }
    write_all(client, &first, &mut said).await?;
    write_all(client, &kinds, &mut said).await?;
    for crd in &kinds {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        until(client, At { kind: &super::crds(), namespace: None, name }, request.timeout, is_established).await?;
    }
    grant(client, &roles, &mut said).await;
    write_all(client, &[connection], &mut said).await?;
    let at = At { kind: &connections(), namespace: None, name: &request.name };
    until(client, at, request.timeout, is_ready).await?;
    let ready = at.get(client).await?.unwrap_or_default();
    let exported = ready["status"]["exportedAPIs"].as_array().into_iter().flatten();
    let names: Vec<&str> = exported.filter_map(|api| api["name"].as_str()).collect();
    let _ = writeln!(said, "connection/{} is ready and offers: {}", request.name, or_nothing(&names));
    Ok(said)
}

/// Names with commas between them.
pub(super) fn or_nothing(names: &[&str]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// Where the kubeconfig is, and what has to be written for that.
async fn kubeconfig(client: &Client, request: &options::Connect) -> Result<(SecretKeyReference, Vec<Value>), V2Error> {
    let safe = |text: &str| InlineKubeconfig::parse(text).map(drop).map_err(DeployError::from);
    if let Some(shown) = &request.secret {
        let text = deploy::of_secret(client, shown, Some(KUBECONFIG_KEY)).await?;
        safe(&text)?;
        let (namespace, name) = shown.split_once('/').unwrap_or_default();
        return Ok((SecretKeyReference::new(namespace, name, KUBECONFIG_KEY), Vec::new()));
    }
    let text = answer::of_file(request.file.as_deref().ok_or(DeployError::NoAnswer)?)?;
    safe(&text)?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": NAMESPACE, "name": request.name},
        "data": {KUBECONFIG_KEY: BASE64.encode(text.as_bytes())}});
    Ok((SecretKeyReference::new(NAMESPACE, &request.name, KUBECONFIG_KEY), vec![namespace, secret]))
}

fn connection(request: &options::Connect, at: &SecretKeyReference) -> Value {
    let mut spec = json!({"kubeconfigSecretRef": {"namespace": at.namespace, "name": at.name, "key": at.key},
        "schema": {"source": request.source.word()}});
    if request.auto_bind {
        spec["autoBind"] = json!(true);
    }
    json!({"apiVersion": CONNECTION.api_version(), "kind": CONNECTION.kind, "metadata": {"name": request.name}, "spec": spec})
}
