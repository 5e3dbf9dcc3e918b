//! Binding APIs of a Connection, for the cluster or for one namespace.

use std::fmt::Write as _;

use carrick_bind_api::core::{ApiName, BINDING, BindingSpec, CLUSTER_BINDING, ConflictPolicy, Connection};
use carrick_client::Client;
use serde_json::{Value, json};

use super::connect::or_nothing;
use super::known::Known;
use super::{At, V2Error, grant, is_ready, resource, until};
use crate::{deploy, options};

/// Binds, or prints what would be written; returns what to print.
pub async fn run(client: &Client, request: &options::Join) -> Result<String, V2Error> {
    let name = request.name.as_deref().unwrap_or(&request.connection);
    let namespace = request.namespace.as_deref();
    let kind = if namespace.is_some() { BINDING } else { CLUSTER_BINDING };
    let resource = resource(kind);
    let at = At { kind: &resource, namespace, name };
    let known = Known::read(client).await?;
    let connection = known.connection(&request.connection);
    let connection = connection.ok_or_else(|| V2Error::Missing(format!("Connection {}", request.connection)))?;
    offered(connection, &request.apis)?;
    let there = at.get(client).await?;
    let before: BindingSpec = match &there {
        None => BindingSpec::default(),
        Some(there) => serde_json::from_value(there["spec"].clone())
            .map_err(|error| V2Error::Unreadable { what: at.to_string(), problem: error.to_string() })?,
    };
    let of = &before.connection_ref.name;
    if there.is_some() && *of != request.connection {
        return Err(V2Error::OtherConnection { what: at.to_string(), connection: of.clone() });
    }
    let spec = wanted(&before, request);
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name},
        "spec": spec});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    let roles = if request.skip_roles { Vec::new() } else { known.roles(Some((namespace, &spec)), None) };
    if request.dry_run {
        let mut all = roles;
        all.push(object);
        return Ok(deploy::yaml(&all)?);
    }
    let mut said = String::new();
    grant(client, &roles, &mut said).await;
    write(client, at, there.as_ref(), &object, &mut said).await?;
    until(client, at, request.timeout, is_ready).await?;
    let shown = shown(at);
    let names: Vec<&str> = spec.apis.iter().map(|api| api.name.as_str()).collect();
    let _ = writeln!(said, "{shown} is ready: {}", names.join(", "));
    Ok(said)
}

/// How kubectl names an object.
pub(super) fn shown(at: At<'_>) -> String {
    let namespace = at.namespace.map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
    format!("{}/{}{namespace}", at.kind.kind.to_lowercase(), at.name)
}

/// Whether a Connection that works offers these APIs. One that does not work yet says nothing about that.
fn offered(connection: &Connection, apis: &[String]) -> Result<(), V2Error> {
    let exported = &connection.status.exported_apis;
    let Some(api) = apis.iter().find(|api| !exported.is_empty() && !connection.exports(api)) else { return Ok(()) };
    let names: Vec<&str> = exported.iter().map(|api| api.name.as_str()).collect();
    let (connection, api) = (connection.metadata.name.clone(), api.clone());
    Err(V2Error::NotOffered { connection, api, offered: or_nothing(&names) })
}

/// What a binding lists with these APIs; those that it lists already stay.
fn wanted(before: &BindingSpec, request: &options::Join) -> BindingSpec {
    let mut spec = before.clone();
    spec.connection_ref.name.clone_from(&request.connection);
    for api in &request.apis {
        if !spec.apis.iter().any(|known| known.name == *api) {
            spec.apis.push(ApiName::new(api));
        }
    }
    if request.adopt {
        spec.conflict_policy = ConflictPolicy::Adopt;
    }
    spec
}

/// Writes a binding unless it is there and says the same.
pub(super) async fn write(
    client: &Client,
    at: At<'_>,
    there: Option<&Value>,
    object: &Value,
    said: &mut String,
) -> Result<(), V2Error> {
    let failed = |source| V2Error::Server { what: at.to_string(), source };
    match there {
        None => drop(client.create(at.kind, at.namespace, object).await.map_err(failed)?),
        Some(there) if there["spec"] == object["spec"] => {
            let _ = writeln!(said, "{} is there already", shown(at));
            return Ok(());
        }
        Some(there) => {
            let patch = json!({"metadata": {"uid": there["metadata"]["uid"],
                "resourceVersion": there["metadata"]["resourceVersion"]}, "spec": object["spec"]});
            client.merge_patch(at.kind, at.namespace, at.name, &patch).await.map_err(failed)?;
        }
    }
    let _ = writeln!(said, "{} written", shown(at));
    Ok(())
}

#[cfg(test)]
mod tests {
    use carrick_bind_api::core::ExportedApi;
    use clap::Parser as _;

    use super::*;
    use crate::options::{Command, Options};

    fn join(args: &[&str]) -> options::Join {
        let all = ["kubectl-bind", "bind"].iter().chain(args);
        let Some(Command::Join(join)) = Options::try_parse_from(all).unwrap().command else { panic!() };
        join
    }

    #[test]
    fn binding_again_adds_to_what_is_bound() {
        let first = wanted(&BindingSpec::default(), &join(&["west", "a.x"]));
        let second = wanted(&first, &join(&["west", "b.x", "a.x", "--adopt"]));
        let shown = json!({"connectionRef": {"name": "west"}, "apis": [{"name": "a.x"}, {"name": "b.x"}], "conflictPolicy": "Adopt"});
        assert_eq!(json!(second), shown);
    }

    #[test]
    fn only_what_is_offered_is_bound_as_far_as_that_is_known() {
        let mut connection = Connection::new("west");
        assert!(offered(&connection, &["b.x".to_owned()]).is_ok());
        connection.status.exported_apis = vec![ExportedApi::new("x", "a", "Namespaced", Vec::new())];
        assert!(offered(&connection, &["a.x".to_owned()]).is_ok());
        let error = offered(&connection, &["b.x".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "Connection west offers no b.x; it offers: a.x");
    }
}
