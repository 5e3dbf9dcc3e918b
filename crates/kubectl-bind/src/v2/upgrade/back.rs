//! From v2 back to 0.8.

use std::collections::HashSet;
use std::fmt::Write as _;

use carrick_bind_api::core::schema;
use carrick_bind_api::names::CONTRACT_ANNOTATION;
use carrick_bind_api::v1alpha2::SecretKeyReference;
use carrick_client::Client;
use serde_json::{Value, json};

use super::super::known::Known;
use super::super::unbind::{end, is_gone};
use super::super::{At, V2Error, cluster_bindings, crds, is_ready, until};
use super::facts::{Saved, Twin, binding, crds_of, kubeconfig, provider, twins};
use super::marks::{FINALIZERS, UPGRADED_FROM_ANNOTATION, crd_to_binding, finalizer, given_back};
use super::writes::{patch, patch_copy, recreate};
use crate::{options, unbind};

/// Everything that is needed.
struct Facts {
    saved: Saved,
    crds: Vec<Value>,
    provider: Client,
    twins: Vec<Twin>,
}

/// Goes back, or says what would be done; returns what to print.
pub(super) async fn run(client: &Client, request: &options::Upgrade) -> Result<String, V2Error> {
    let name = request.name.as_str();
    let there = binding(client, name).await?;
    let mut found = crds_of(client, name, None).await?;
    found.retain(|crd| Saved::of_crd(crd).is_some());
    let Some(saved) = found.iter().find_map(Saved::of_crd) else {
        if there.is_some() {
            return Ok(format!("apiservicebinding/{name} is one of 0.8\n"));
        }
        let what = format!("ClusterBinding {name} that was upgraded");
        return Err(V2Error::Missing(what));
    };
    let facts = gather(client, saved, found).await?;
    let names: Vec<&str> = facts.crds.iter().map(schema::name).collect();
    let mut said = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(said, "clusterbinding/{name} becomes apiservicebinding/{name} again");
    let _ = writeln!(said, "{}: {} objects and their copies stay as they are", names.join(", "), facts.twins.len());
    if request.dry_run {
        return Ok(said);
    }
    for twin in &facts.twins {
        // Before v2 takes its own off.
        patch(client, &twin.kind, &twin.source, |source| finalizer(source, FINALIZERS[0], None)).await?;
    }
    let kind = cluster_bindings();
    let at = At { kind: &kind, namespace: None, name };
    if let Some(there) = at.get(client).await? {
        end(client, at, &there, true).await?;
        let uid = there["metadata"]["uid"].clone();
        until(client, at, request.timeout, |it| is_gone(it, &uid)).await?;
        let _ = writeln!(said, "clusterbinding/{name} is gone; copies stay");
    }
    for crd in &facts.crds {
        for twin in twins(client, &facts.provider, crd, false).await?.0 {
            let Some(copy) = twin.copy.as_ref().filter(|copy| is_of(copy, &twin)) else { continue };
            let contract = &facts.saved.contract;
            patch_copy(&facts.provider, &twin.kind, copy, |copy| given_back(copy, &twin.source, contract)).await?;
        }
    }
    let uid = recreate(client, &facts.saved).await?;
    let _ = writeln!(said, "apiservicebinding/{name} written");
    for crd in &facts.crds {
        patch(client, &crds(), crd, |crd| crd_to_binding(crd, name, &uid)).await?;
        let _ = writeln!(said, "customresourcedefinition/{} belongs to apiservicebinding/{name}", schema::name(crd));
    }
    let at = At { kind: &unbind::resource(), namespace: None, name };
    until(client, at, request.timeout, is_ready).await?;
    for crd in &facts.crds {
        patch(client, &crds(), crd, forgotten).await?;
    }
    let _ = writeln!(said, "apiservicebinding/{name} is ready");
    Ok(said)
}

/// The patch after which a CRD does not remember its upgrade.
fn forgotten(crd: &Value) -> Option<Value> {
    let metadata = &crd["metadata"];
    metadata["annotations"][UPGRADED_FROM_ANNOTATION]
        .is_string()
        .then(|| json!({"metadata": {"uid": metadata["uid"], "annotations": {UPGRADED_FROM_ANNOTATION: null}}}))
}

/// Whether an object at the provider is the copy of this one, under either contract.
fn is_of(copy: &Value, twin: &Twin) -> bool {
    let annotations = &copy["metadata"]["annotations"];
    [carrick_bind_api::names::CONSUMER_UID_ANNOTATION, carrick_bind_api::core::names::CONSUMER_OBJECT_UID_ANNOTATION]
        .iter()
        .any(|mark| annotations[mark] == twin.uid())
}

/// Reads both clusters; fails if something stands against it.
async fn gather(client: &Client, saved: Saved, crds: Vec<Value>) -> Result<Facts, V2Error> {
    let name = saved.name.clone();
    let known = Known::read(client).await?;
    let mut reasons = Vec::new();
    let names: Vec<&str> = crds.iter().map(schema::name).collect();
    let there = known.cluster_bindings.iter().find(|it| it.metadata.name == name);
    let more = there.into_iter().flat_map(|it| &it.spec.apis).map(|api| api.name.as_str());
    let more: Vec<&str> = more.filter(|api| !names.contains(api)).collect();
    if !more.is_empty() {
        reasons.push(format!("it lists {}, which 0.8 has not brought; list that in another binding", more.join(", ")));
    }
    for api in &names {
        let others = known.others_that_list(api, &name);
        if !others.is_empty() {
            reasons.push(format!("{api} is listed by {} as well; unbind it there first", others.join(", ")));
        }
    }
    let secret: SecretKeyReference =
        serde_json::from_value(saved.spec["kubeconfigSecretRef"].clone()).unwrap_or_default();
    if let Err(error) = kubeconfig(client, &secret).await {
        reasons.push(format!("the kubeconfig of the contract: {error}"));
    }
    let Some(connection) = known.connection(&saved.connection) else {
        reasons.push(format!("Connection {} is gone, and with it the way to the copies", saved.connection));
        return Err(V2Error::Refused { name: format!("ClusterBinding {name}"), reasons });
    };
    let provider = provider(client, connection).await?;
    let mut all = Vec::new();
    for crd in &crds {
        let twins = twins(client, &provider, crd, false).await?.0;
        reasons.extend(unknown_namespaces(&twins).map(|names| {
            format!("{}: the contract has no namespaces of their names for objects in {names}", schema::name(crd))
        }));
        all.extend(twins);
    }
    if reasons.is_empty() {
        return Ok(Facts { saved, crds, provider, twins: all });
    }
    Err(V2Error::Refused { name: format!("ClusterBinding {name}"), reasons })
}

/// The namespaces that came with v2: 0.8 would map them as its provider says, and copy their objects once more.
fn unknown_namespaces(twins: &[Twin]) -> Option<String> {
    let namespace = |twin: &Twin| twin.source["metadata"]["namespace"].as_str().map(str::to_owned);
    let is_old = |twin: &&Twin| {
        twin.copy.as_ref().is_some_and(|copy| copy["metadata"]["annotations"][CONTRACT_ANNOTATION].is_string())
    };
    let known: HashSet<String> = twins.iter().filter(is_old).filter_map(namespace).collect();
    let mut new: Vec<String> = twins.iter().filter_map(namespace).filter(|it| !known.contains(it)).collect();
    new.sort_unstable();
    new.dedup();
    (!new.is_empty()).then(|| new.join(", "))
}
