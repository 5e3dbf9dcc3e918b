//! Writes that may be repeated: each is made for the version that was read, and decided again if somebody else was faster.

use std::time::Duration;

use carrick_bind_api::names::BINDING_FINALIZER;
use carrick_bind_api::v1alpha2::ApiServiceBinding;
use carrick_client::{Client, DeleteOptions, Resource};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::{At, POLL, V2Error, condition};
use super::facts::place;
use crate::unbind;

/// How long 0.8's konnector may take to notice that its CRDs are gone to somebody else. Without one nothing has to be noticed.
const NOTICE: Duration = Duration::from_secs(10);

/// Patches an object until there is nothing left to patch, or no object.
pub(super) async fn patch(
    client: &Client,
    kind: &Resource,
    object: &Value,
    decide: impl Fn(&Value) -> Option<Value>,
) -> Result<(), V2Error> {
    let (namespace, name) = place(object);
    let at = At { kind, namespace, name };
    let mut found = object.clone();
    while let Some(patch) = decide(&found) {
        match client.merge_patch(kind, namespace, name, &patch).await {
            Ok(new) => found = new,
            Err(error) if error.is_conflict() => match at.get(client).await? {
                Some(new) if new["metadata"]["uid"] == object["metadata"]["uid"] => found = new,
                _ => return Ok(()),
            },
            Err(error) if error.is_not_found() => return Ok(()),
            Err(source) => return Err(V2Error::Server { what: at.to_string(), source }),
        }
    }
    Ok(())
}

/// Patches a copy in the same way. It is read first, because lists do not say who manages its fields.
pub(super) async fn patch_copy(
    client: &Client,
    kind: &Resource,
    copy: &Value,
    decide: impl Fn(&Value) -> Option<Value>,
) -> Result<(), V2Error> {
    let (namespace, name) = place(copy);
    let found = At { kind, namespace, name }.get(client).await?;
    match found.filter(|found| found["metadata"]["uid"] == copy["metadata"]["uid"]) {
        Some(found) => patch(client, kind, &found, decide).await,
        None => Ok(()),
    }
}

/// Removes an APIServiceBinding without unbinding: its finalizer goes first, and the binding in just that version. A konnector that begins to unbind
/// would delete the CRDs if it has not noticed yet that they belong to somebody else.
pub(super) async fn forget(client: &Client, binding: &ApiServiceBinding, longest: Duration) -> Result<(), V2Error> {
    let (kind, name) = (unbind::resource(), binding.metadata.name.as_str());
    let at = At { kind: &kind, namespace: None, name };
    let failed = |source| V2Error::Server { what: at.to_string(), source };
    let deadline = Instant::now() + longest;
    notice(client, at, longest.min(NOTICE)).await?;
    while let Some(found) = at.get(client).await?.filter(|it| it["metadata"]["uid"] == binding.metadata.uid.as_str()) {
        if Instant::now() >= deadline {
            let orphans =
                found["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|it| it == "orphan"));
            let why = if orphans {
                "its finalizer orphan is removed by the garbage collector of kube-controller-manager, which has not done so"
            } else {
                "somebody puts its finalizer back on"
            };
            let why = why.to_owned();
            return Err(V2Error::Late { what: at.to_string(), seconds: longest.as_secs(), why });
        }
        let patch = super::marks::without_finalizer(&found, BINDING_FINALIZER);
        let found = match patch {
            None => found,
            Some(patch) => match client.merge_patch(&kind, None, name, &patch).await {
                Err(error) if error.is_conflict() || error.is_not_found() => continue,
                patched => patched.map_err(failed)?,
            },
        };
        let text = |field: &str| found["metadata"][field].as_str().map(str::to_owned);
        let options = DeleteOptions {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            propagation_policy: Some("Orphan".to_owned()),
        };
        match client.delete(&kind, None, name, &options).await {
            Err(error) if !error.is_conflict() && !error.is_not_found() => return Err(failed(error)),
            Err(_) => {}
            Ok(()) => tokio::time::sleep(POLL).await,
        }
    }
    Ok(())
}

/// Waits a moment until 0.8 says that its CRDs are somebody else's.
async fn notice(client: &Client, at: At<'_>, longest: Duration) -> Result<(), V2Error> {
    let deadline = Instant::now() + longest;
    while Instant::now() < deadline {
        let Some(found) = at.get(client).await? else { return Ok(()) };
        if condition(&found, "Connected").is_some_and(|it| it["reason"] == "ForeignCustomResourceDefinition") {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// Creates an APIServiceBinding as it was, unless it is there; returns its uid.
pub(super) async fn recreate(client: &Client, saved: &super::facts::Saved) -> Result<String, V2Error> {
    let kind = unbind::resource();
    let at = At { kind: &kind, namespace: None, name: &saved.name };
    let object = json!({"apiVersion": kind.api_version(), "kind": &*kind.kind,
        "metadata": {"name": saved.name, "annotations": saved.annotations}, "spec": saved.spec});
    let made = match client.create(&kind, None, &object).await {
        Err(error) if error.is_already_exists() => at.get(client).await?.unwrap_or_default(),
        made => made.map_err(|source| V2Error::Server { what: at.to_string(), source })?,
    };
    Ok(made["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
}
