//! From 0.8 to v2.

use std::fmt::Write as _;

use carrick_bind_api::core::{ApiName, BindingSpec, CLUSTER_BINDING, Connection, schema};
use carrick_bind_api::v1alpha2::ApiServiceBinding;
use carrick_client::Client;
use serde_json::{Value, json};

use super::super::bind;
use super::super::known::Known;
use super::super::{At, V2Error, cluster_bindings, crds, grant, is_ready, until};
use super::facts::{Saved, Twin, binding, crd_reasons, crds_of, kubeconfig, provider, twins};
use super::marks::{FINALIZERS, crd_to_connection, finalizer, taken_over, without_finalizer};
use super::writes::{forget, patch, patch_copy};
use crate::{options, unbind};

/// Everything that is needed.
struct Facts {
    /// The APIServiceBinding, unless it has gone already.
    binding: Option<ApiServiceBinding>,
    saved: Saved,
    crds: Vec<Value>,
    connection: Connection,
    provider: Client,
    known: Known,
    twins: Vec<Twin>,
}

/// Upgrades, or says what would be done; returns what to print.
pub(super) async fn run(client: &Client, request: &options::Upgrade, connection: &str) -> Result<String, V2Error> {
    let name = request.name.as_str();
    let facts = gather(client, name, connection).await?;
    let names: Vec<&str> = facts.crds.iter().map(schema::name).collect();
    let mut said = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(said, "apiservicebinding/{name} becomes clusterbinding/{name} of connection/{connection}");
    let _ = writeln!(said, "{}: {} objects and their copies stay as they are", names.join(", "), facts.twins.len());
    if request.dry_run {
        return Ok(said);
    }
    let saved = serde_json::to_string(&facts.saved).unwrap_or_default();
    for crd in &facts.crds {
        patch(client, &crds(), crd, |crd| crd_to_connection(crd, connection, &saved)).await?;
        let _ = writeln!(said, "customresourcedefinition/{} belongs to connection/{connection}", schema::name(crd));
    }
    if let Some(binding) = &facts.binding {
        forget(client, binding, request.timeout).await?;
        let _ = writeln!(said, "apiservicebinding/{name} is gone, without unbinding");
    }
    settle(client, &facts).await?;
    let mut spec = BindingSpec::default();
    connection.clone_into(&mut spec.connection_ref.name);
    spec.apis = names.iter().map(|name| ApiName::new(*name)).collect();
    if !request.skip_roles {
        grant(client, &facts.known.roles(Some((None, &spec)), None), &mut said).await;
    }
    let kind = cluster_bindings();
    let at = At { kind: &kind, namespace: None, name };
    let object = json!({"apiVersion": CLUSTER_BINDING.api_version(), "kind": CLUSTER_BINDING.kind,
        "metadata": {"name": name}, "spec": spec});
    let there = at.get(client).await?;
    bind::write(client, at, there.as_ref(), &object, &mut said).await?;
    until(client, at, request.timeout, is_ready).await?;
    // What 0.8 was writing when it was stopped.
    settle(client, &facts).await?;
    release(client, &facts, request).await?;
    let _ = writeln!(said, "clusterbinding/{name} is ready; kubectl bind upgrade {name} --undo leads back");
    Ok(said)
}

/// Reads both clusters; fails if something stands against it.
async fn gather(client: &Client, name: &str, connection: &str) -> Result<Facts, V2Error> {
    let binding = binding(client, name).await?;
    let crds = crds_of(client, name, binding.as_ref()).await?;
    if binding.is_none() && crds.is_empty() {
        return Err(V2Error::Missing(format!("APIServiceBinding {name}")));
    }
    let known = Known::read(client).await?;
    let found = known.connection(connection).cloned();
    let connection = found.ok_or_else(|| V2Error::Missing(format!("Connection {connection}")))?;
    let mut reasons = Vec::new();
    if crds.is_empty() {
        reasons.push("it has installed nothing yet; delete it, and bind".to_owned());
    }
    if let Some(binding) = &binding {
        reasons.extend(of_binding(binding));
    }
    reasons.extend(of_connection(&known, &connection, &crds, name));
    if !reasons.is_empty() {
        return Err(V2Error::Refused { name: format!("APIServiceBinding {name}"), reasons });
    }
    let provider = provider(client, &connection).await?;
    let mut all = Vec::new();
    for crd in &crds {
        reasons.extend(crd_reasons(&provider, &connection, crd).await?);
        if reasons.is_empty() {
            let (twins, more) = twins(client, &provider, crd, binding.is_some()).await?;
            all.extend(twins);
            reasons.extend(more);
        }
    }
    if !reasons.is_empty() {
        return Err(V2Error::Refused { name: format!("APIServiceBinding {name}"), reasons });
    }
    let saved = match crds.iter().find_map(Saved::of_crd) {
        Some(saved) => saved,
        None => save(client, name, binding.as_ref(), &connection.metadata.name).await?,
    };
    Ok(Facts { binding, saved, crds, connection, provider, known, twins: all })
}

/// What has to be known for the way back.
async fn save(
    client: &Client,
    name: &str,
    binding: Option<&ApiServiceBinding>,
    connection: &str,
) -> Result<Saved, V2Error> {
    let binding = binding.ok_or_else(|| V2Error::Missing(format!("APIServiceBinding {name}")))?;
    let contract = kubeconfig(client, &binding.spec.kubeconfig_secret_ref).await?;
    let contract = contract.namespace().unwrap_or_default().to_owned();
    let annotations = binding.metadata.annotations.iter();
    let annotations = annotations.filter(|(key, _)| !key.starts_with("kubectl.kubernetes.io/"));
    let annotations = annotations.map(|(key, value)| (key.clone(), json!(value))).collect();
    let (name, connection) = (name.to_owned(), connection.to_owned());
    Ok(Saved { name, spec: json!(binding.spec), annotations, contract, connection })
}

/// What an APIServiceBinding has that v2 has no word for.
fn of_binding(binding: &ApiServiceBinding) -> Vec<String> {
    let mut reasons = Vec::new();
    if binding.metadata.is_deleting() {
        reasons.push("it is being unbound".to_owned());
    }
    if let Some(bundle) = unbind::bundle(binding) {
        reasons.push(format!("it belongs to APIServiceBindingBundle {bundle}, which would create it again; delete the bundle first and bind what it has brought one by one"));
    }
    let claims = binding.status.permission_claims.iter().map(|claim| claim.resource.as_str());
    let claims: Vec<&str> = claims.collect();
    if !claims.is_empty() {
        let claims = claims.join(", ");
        reasons.push(format!(
            "its provider claims {claims}: permission claims cannot be carried over to relatedResources; end them first"
        ));
    }
    reasons
}

/// What stands against a Connection.
fn of_connection(known: &Known, connection: &Connection, crds: &[Value], name: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    let shown = json!(connection);
    if let Err(why) = is_ready(Some(&shown)) {
        reasons.push(format!("Connection {} is not ready: {why}", connection.metadata.name));
    }
    if connection.metadata.is_deleting() {
        reasons.push(format!("Connection {} is being deleted", connection.metadata.name));
    }
    if connection.spec.auto_bind {
        let name = &connection.metadata.name;
        reasons.push(format!("Connection {name} binds everything (autoBind), before copies have changed hands; upgrade first, and set spec.autoBind then"));
    }
    for crd in crds {
        let others = known.others_that_list(schema::name(crd), name);
        if !others.is_empty() {
            reasons.push(format!(
                "{} is listed by {} already; unbind it there first",
                schema::name(crd),
                others.join(", ")
            ));
        }
    }
    let mut there = known.cluster_bindings.iter().filter(|it| it.metadata.name == name);
    if let Some(there) = there.find(|it| it.spec.connection_ref.name != connection.metadata.name) {
        let of = &there.spec.connection_ref.name;
        reasons.push(format!("ClusterBinding {name} exists, for Connection {of}; rename or unbind it first"));
    }
    reasons
}

/// Gives copies and objects to v2. Objects that came since 0.8 was stopped get copies by v2.
async fn settle(client: &Client, facts: &Facts) -> Result<(), V2Error> {
    let cluster_uid = &facts.connection.status.local_cluster_uid;
    for crd in &facts.crds {
        for twin in twins(client, &facts.provider, crd, false).await?.0 {
            if let Some(copy) = twin.copy.as_ref().filter(|copy| is_of(copy, &twin, &facts.saved.contract)) {
                patch_copy(&facts.provider, &twin.kind, copy, |copy| taken_over(copy, twin.uid(), cluster_uid)).await?;
            }
            let [old, new] = FINALIZERS;
            patch(client, &twin.kind, &twin.source, |source| finalizer(source, new, Some(old))).await?;
        }
    }
    Ok(())
}

/// Whether an object at the provider is the copy of this one that 0.8 has made.
fn is_of(copy: &Value, twin: &Twin, contract: &str) -> bool {
    let annotations = &copy["metadata"]["annotations"];
    annotations[carrick_bind_api::names::CONTRACT_ANNOTATION] == contract
        && annotations[carrick_bind_api::names::CONSUMER_UID_ANNOTATION] == twin.uid()
}

/// Lets go of objects that somebody has deleted in between, once their copies are gone: they could not get v2's finalizer.
async fn release(client: &Client, facts: &Facts, request: &options::Upgrade) -> Result<(), V2Error> {
    let deadline = tokio::time::Instant::now() + request.timeout;
    for crd in &facts.crds {
        loop {
            let all = twins(client, &facts.provider, crd, false).await?.0;
            let [old, _] = FINALIZERS;
            let held = all.into_iter().filter(|twin| without_finalizer(&twin.source, old).is_some());
            let held: Vec<Twin> = held.collect();
            for twin in held
                .iter()
                .filter(|twin| twin.copy.as_ref().is_none_or(|copy| !is_of(copy, twin, &facts.saved.contract)))
            {
                patch(client, &twin.kind, &twin.source, |source| without_finalizer(source, old)).await?;
            }
            if held.is_empty() {
                break;
            }
            if tokio::time::Instant::now() >= deadline {
                let why = format!("{} objects that are being deleted wait for their copies", held.len());
                return Err(V2Error::Late {
                    what: schema::name(crd).to_owned(),
                    seconds: request.timeout.as_secs(),
                    why,
                });
            }
            tokio::time::sleep(super::super::POLL).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use carrick_bind_api::core::ClusterBinding;

    use super::*;

    fn binding(more: &Value) -> ApiServiceBinding {
        let mut object = json!({"metadata": {"name": "law"}});
        carrick_json::merge::apply(&mut object, more);
        serde_json::from_value(object).unwrap()
    }

    fn connection(more: &Value) -> Connection {
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let mut object = json!({"metadata": {"name": "west"}, "status": {"conditions": ready}});
        carrick_json::merge::apply(&mut object, more);
        serde_json::from_value(object).unwrap()
    }

    fn cluster_binding(name: &str, connection: &str, api: &str) -> ClusterBinding {
        let spec = json!({"connectionRef": {"name": connection}, "apis": [{"name": api}]});
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_bundle_a_claim_and_an_end_stand_against_an_upgrade_and_each_says_what_to_do() {
        assert_eq!(of_binding(&binding(&json!({}))), Vec::<String>::new());
        let claims = json!({"status": {"permissionClaims": [{"group": "", "resource": "secrets"}, {"group": "", "resource": "configmaps"}]}});
        let owner = json!([{"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBindingBundle", "name": "all", "uid": "u", "controller": true}]);
        for (more, says) in [
            (
                claims,
                "claims secrets, configmaps: permission claims cannot be carried over to relatedResources; end them first",
            ),
            (
                json!({"metadata": {"ownerReferences": owner}}),
                "APIServiceBindingBundle all, which would create it again; delete the bundle first",
            ),
            (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), "it is being unbound"),
        ] {
            let reasons = of_binding(&binding(&more));
            assert!(reasons.len() == 1 && reasons[0].contains(says), "{reasons:?}");
        }
    }

    #[test]
    fn a_connection_that_cannot_take_over_yet_says_why() {
        let crds = [json!({"metadata": {"name": "a.x"}})];
        let reasons = |known: &Known, more: &Value| of_connection(known, &connection(more), &crds, "law");
        let known = Known { cluster_bindings: vec![cluster_binding("law", "west", "a.x")], ..Known::default() };
        assert_eq!(reasons(&known, &json!({})), Vec::<String>::new(), "what an upgrade that was interrupted has left");
        let other = |name: &str, connection: &str, api: &str| Known {
            cluster_bindings: vec![cluster_binding(name, connection, api)],
            ..Known::default()
        };
        let not_ready =
            json!({"status": {"conditions": [{"type": "Ready", "status": "False", "message": "no answer"}]}});
        for (known, more, says) in [
            (Known::default(), not_ready, "Connection west is not ready: no answer"),
            (Known::default(), json!({"spec": {"autoBind": true}}), "upgrade first, and set spec.autoBind then"),
            (
                Known::default(),
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
                "Connection west is being deleted",
            ),
            (
                other("shop", "west", "a.x"),
                json!({}),
                "a.x is listed by ClusterBinding shop already; unbind it there first",
            ),
            (
                other("law", "east", "b.x"),
                json!({}),
                "ClusterBinding law exists, for Connection east; rename or unbind it first",
            ),
        ] {
            let reasons = reasons(&known, &more);
            assert!(reasons.len() == 1 && reasons[0].contains(says), "{says}: {reasons:?}");
        }
    }
}
